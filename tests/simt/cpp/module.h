// The simulator's functions, for a shared object that a test compiles and loads (src/module.rs). The object's source must include
// this header first.
//
// The program that loads the object passes its functions to the object. Instrumented code calls the functions below by the
// sanitizer's names.
#pragma once

#include "warpset/platform.cuh"

namespace simt_module {

// Mirrored by `Functions` in src/module.rs.
struct Functions {
    void (*request)(warpset::simt::Request* request);
    const warpset::simt::Identity* (*identity)();
    void (*misaligned)(const void* address, warpset::u32 bytes, const char* file, warpset::u32 line);
    void (*access)(void* address, unsigned long size, bool write);
};
inline Functions functions;

}  // namespace simt_module

// Instrumented code calls these functions, so they are not instrumented.
#define SIMT_HOOK __attribute__((no_sanitize("thread"), used))

extern "C" {
SIMT_HOOK void warpset_simt_connect(const simt_module::Functions* given) { simt_module::functions = *given; }

#define SIMT_ACCESS(name, size, write) \
    SIMT_HOOK void name(void* address) { simt_module::functions.access(address, size, write); }
SIMT_ACCESS(__tsan_read1, 1, false)
SIMT_ACCESS(__tsan_read2, 2, false)
SIMT_ACCESS(__tsan_read4, 4, false)
SIMT_ACCESS(__tsan_read8, 8, false)
SIMT_ACCESS(__tsan_read16, 16, false)
SIMT_ACCESS(__tsan_write1, 1, true)
SIMT_ACCESS(__tsan_write2, 2, true)
SIMT_ACCESS(__tsan_write4, 4, true)
SIMT_ACCESS(__tsan_write8, 8, true)
SIMT_ACCESS(__tsan_write16, 16, true)
SIMT_ACCESS(__tsan_unaligned_read2, 2, false)
SIMT_ACCESS(__tsan_unaligned_read4, 4, false)
SIMT_ACCESS(__tsan_unaligned_read8, 8, false)
SIMT_ACCESS(__tsan_unaligned_read16, 16, false)
SIMT_ACCESS(__tsan_unaligned_write2, 2, true)
SIMT_ACCESS(__tsan_unaligned_write4, 4, true)
SIMT_ACCESS(__tsan_unaligned_write8, 8, true)
SIMT_ACCESS(__tsan_unaligned_write16, 16, true)
#undef SIMT_ACCESS

SIMT_HOOK void __tsan_read_range(void* address, unsigned long size) { simt_module::functions.access(address, size, false); }
SIMT_HOOK void __tsan_write_range(void* address, unsigned long size) { simt_module::functions.access(address, size, true); }
SIMT_HOOK void __tsan_init() {}
SIMT_HOOK void __tsan_func_entry(void*) {}
SIMT_HOOK void __tsan_func_exit() {}
SIMT_HOOK void __tsan_vptr_update(void*, void*) {}
}

namespace warpset::simt {
extern "C" {
SIMT_HOOK inline void warpset_simt_request(Request* request) { simt_module::functions.request(request); }
SIMT_HOOK inline const Identity* warpset_simt_identity() { return simt_module::functions.identity(); }
SIMT_HOOK inline void warpset_simt_misaligned(const void* address, u32 bytes, const char* file, u32 line)
{
    simt_module::functions.misaligned(address, bytes, file, line);
}
}
}  // namespace warpset::simt
