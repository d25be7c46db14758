// Linked into the test suite by .ci/sanitize, and only there: tells the sanitizers of GCC what they cannot see by themselves,
// because only the C++ of the crate is instrumented and the Rust around it is not.
//
// 1. Every mapping that a table asks for ends before a page that may not be touched, and begins after one: the sanitizers put
//    such margins around memory from malloc only, and the slots of tables come from mmap.
// 2. Threads of Rust's standard library wait for each other by system calls that ThreadSanitizer does not know. Every entry point
//    of cpu_tables.cpp and cpu_cluster.cpp is ordered after those that ended before it began; calls that overlap are not ordered,
//    and what they do to the same memory has to be atomic. (Which calls may overlap is for the borrow checker and the lock in
//    RawTable.)
//
// This file itself is compiled without a sanitizer. ThreadSanitizer calls `munmap` while it reports a race, and would wait for
// itself forever if it then found another one here.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>

#include "cpu_entries.hpp"

#ifdef SHIM_OF_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif
#ifdef SHIM_OF_THREAD_SANITIZER
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
#endif

namespace {

using Map = void* (*)(void*, size_t, int, int, int, off_t);
using Unmap = int (*)(void*, size_t);

// The sanitizer's own function, which forgets what it knew of the memory.
template <class Function>
Function next(const char* name)
{
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

struct Guarded {
    char* start;  // with both pages
    size_t bytes;
};

std::mutex guarded_mutex;

// Existing mappings, by the start of the caller's memory. Never destroyed: threads may outlive the statics.
std::map<void*, Guarded>& guarded()
{
    static auto* all = new std::map<void*, Guarded>;
    return *all;
}

const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));

size_t whole_pages(size_t bytes) { return (bytes + page - 1) / page * page; }

}  // namespace

extern "C" {

void* mmap64(void* address, size_t bytes, int protection, int flags, int file, off_t offset)
{
    static const Map map = next<Map>("mmap64");
    const bool is_plain = address == nullptr && protection == (PROT_READ | PROT_WRITE) &&
                          (flags & ~MAP_NORESERVE) == (MAP_PRIVATE | MAP_ANONYMOUS);
    if (!is_plain || bytes == 0) return map(address, bytes, protection, flags, file, offset);
    const size_t room = whole_pages(bytes);
    char* start = static_cast<char*>(map(nullptr, room + 2 * page, protection, flags, file, offset));
    if (start == MAP_FAILED) return start;
    if (mprotect(start, page, PROT_NONE) != 0 || mprotect(start + page + room, page, PROT_NONE) != 0) abort();
    char* memory = start + page;
#ifdef SHIM_OF_ADDRESS_SANITIZER
    __asan_poison_memory_region(memory + bytes, room - bytes);  // up to the end of the page
#endif
    std::lock_guard<std::mutex> lock(guarded_mutex);
    guarded()[memory] = {start, room + 2 * page};
    return memory;
}

int munmap(void* address, size_t bytes)
{
    static const Unmap unmap = next<Unmap>("munmap");
    Guarded whole{};
    {
        std::lock_guard<std::mutex> lock(guarded_mutex);
        const auto found = guarded().find(address);
        if (found != guarded().end()) {
            whole = found->second;
            guarded().erase(found);
        }
    }
    if (whole.bytes == 0) return unmap(address, bytes);
#ifdef SHIM_OF_ADDRESS_SANITIZER
    __asan_unpoison_memory_region(whole.start, whole.bytes);  // the next mapping may lie here
#endif
    return unmap(whole.start, whole.bytes);
}

}  // extern "C"

namespace {

char order;  // an address that stands for what the host orders

struct Call {
#ifdef SHIM_OF_THREAD_SANITIZER
    Call() { __tsan_acquire(&order); }
    ~Call() { __tsan_release(&order); }
#else
    Call() { (void)order; }
    ~Call() {}
#endif
};

}  // namespace

// `--wrap` of the linker: calls of NAME come to __wrap_NAME, and __real_NAME is the function itself. All arguments are integers
// and addresses.
#define WARPSET_WRAP(name, parameters, arguments)   \
    extern "C" void __real_##name parameters;       \
    extern "C" void __wrap_##name parameters        \
    {                                               \
        const Call call;                            \
        __real_##name arguments;                    \
    }
// With the name that cuda/cpu_entries.hpp gives the function.
#define WARPSET_ENTRY(name, parameters, arguments) WARPSET_WRAP(name, parameters, arguments)

using u32 = unsigned;
using u64 = unsigned long long;

WARPSET_ENTRY(warpset_cpu_geometry, (u32 a, u32 b, u32 c, u32 d, u32 e, void* f), (a, b, c, d, e, f))
WARPSET_ENTRY(warpset_cpu_launch, (const void* a, const void* b, u64 c, u64 d, const u64* e), (a, b, c, d, e))
WARPSET_ENTRY(warpset_cpu_find_or_put, (const void* a, const void* b), (a, b))
WARPSET_ENTRY(warpset_cpu_upsert, (const void* a, const void* b, const void* c), (a, b, c))
WARPSET_ENTRY(warpset_cpu_find, (const void* a, const void* b), (a, b))
WARPSET_ENTRY(warpset_cpu_count_parts, (const void* a, const void* b, u64* c, u64* d), (a, b, c, d))
WARPSET_ENTRY(warpset_cpu_fill_part, (const void* a, const void* b, u64 c, u32 d, const void* e, u64* f), (a, b, c, d, e, f))
WARPSET_ENTRY(warpset_cpu_export_left, (const void* a, u64 b, u64 c, const void* d, u32* e, u64* f), (a, b, c, d, e, f))
WARPSET_ENTRY(warpset_cpu_count_tree_lists, (const void* a, u64* b), (a, b))
WARPSET_ENTRY(warpset_cpu_move_trees, (const void* a, const void* b, u32* c, u32* d, u64* e, u64* f), (a, b, c, d, e, f))
WARPSET_ENTRY(warpset_cpu_cluster_claim, (const void* a, u64 b, u64 c), (a, b, c))
WARPSET_ENTRY(warpset_cpu_cluster_scatter, (const void* a, u64 b, u64 c), (a, b, c))
WARPSET_ENTRY(warpset_cpu_cluster_gather_put, (const void* a, u64 b, u64 c), (a, b, c))
WARPSET_ENTRY(warpset_cpu_cluster_gather_found, (const void* a, u64 b, u64 c), (a, b, c))
WARPSET_ENTRY(warpset_cpu_cluster_write_stamps, (const void* a, u64 b, u64 c), (a, b, c))
WARPSET_ENTRY(warpset_cpu_cluster_check_stamps, (const void* a, u64 b, u64 c), (a, b, c))
