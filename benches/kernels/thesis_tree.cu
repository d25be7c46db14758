// The baseline: the tree-compressed GPU hash tables of D. Bergsma's master thesis (2019), with nodes and roots in one table of
// 64-bit entries. There is the recursive one in its best version (section 6.3.2: base case of two words, 64-bit entries), and the
// non-recursive one that the thesis measures (section 7.1, 1_np_sm; all fifteen took about the same time there). Both are written
// from the text of the thesis, and tuned as far as the design goes.
//
// A table is an array of entries, each a node: two halves of 32 bits. The top bit of the lower half is the *root bit*. One thread
// builds the tree of a vector, and finds or puts each node, including the root (sections 6.3.2 and 7.1: buckets of one node,
// examined by one thread). A search goes through the 32-byte segment of the node's bucket, four nodes (linear probing up to 8
// words), then through that of the next hash function. The thread that sets the root bit of its root has put a new vector.
//
// Why it is right. An entry goes from empty to its node by one compare-and-swap, and only its root bit changes after that, once.
// Accesses are single, strong, relaxed ones of 8 bytes (the thesis reads values that may be stale, and relies on the
// compare-and-swap; it found reading coherently no faster).
//
// Cases that the thesis leaves open or forbids, and their treatment here. The empty entry is 0, and lower halves are stored plus
// one, so that all words from 0 to 2^31 - 2 are legal: THE TOP BIT OF EVERY INPUT WORD MUST BE CLEAR. References are less than
// 2^31 - 1. The width is a power of two, at which the thesis' trees have no incomplete row.
//
// Macros, defined before this text: THESIS_WIDTH words a vector, a power of two, 4 to 32; THESIS_RECURSIVE 0 or 1;
// THESIS_FUNCTIONS, hash functions tried before Full. Seeds: 4 random u64 for each function, the last unused.
namespace thesis {

using u8 = unsigned char;
using u32 = unsigned int;
using u64 = unsigned long long;

constexpr u32 width = THESIS_WIDTH;
static_assert(width >= 4 && width <= 32 && (width & (width - 1)) == 0, "a power of two, 4 to 32");
constexpr u32 threads = 256, leaves = width / 2, nodes_of_segment = 4;
constexpr u32 full = ~0u;
constexpr u64 empty = 0, root_bit = 1ull << 31;

enum class Outcome : u8 { New = 1, Seen = 2, Full = 3 };

struct Table {
    u64* entries;
    u64 segments;
    const u64* seeds;
};

struct Found {
    u32 reference;  // or `full`
    bool is_root;   // whether it was seen as a root
};

__device__ __forceinline__ u64 load_relaxed(const u64* address)
{
    u64 value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

// Returns the previous value.
__device__ __forceinline__ u64 compare_and_swap(u64* address, u64 expected, u64 desired)
{
    u64 old;
    asm volatile("atom.relaxed.gpu.global.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(old)
                 : "l"(address), "l"(expected), "l"(desired)
                 : "memory");
    return old;
}

// Pair-multiply-shift (thesis 2.3) of one pair.
__device__ __forceinline__ u32 hash(const u64* seeds, u64 node)
{
    const ulonglong2 a = __ldg(reinterpret_cast<const ulonglong2*>(seeds));
    return static_cast<u32>(((a.x + (node >> 32)) * (a.y + static_cast<u32>(node)) + __ldg(seeds + 2)) >> 32);
}

__device__ __forceinline__ Found find_or_put(const Table& table, u32 left, u32 right)
{
    const u64 node = (left + 1u) | static_cast<u64>(right) << 32;
#pragma unroll 1
    for (u32 function = 0; function < THESIS_FUNCTIONS; ++function) {
        const u32 hashed = hash(table.seeds + 4 * function, node);
        const u64 segment = hashed * table.segments >> 32;
#pragma unroll 1
        for (u32 next = 0; next < nodes_of_segment; ++next) {
            const u64 at = segment * nodes_of_segment + ((hashed ^ next) & (nodes_of_segment - 1));
            u64 seen = load_relaxed(table.entries + at);
            if (seen == empty) {
                seen = compare_and_swap(table.entries + at, empty, node);
                if (seen == empty) return {static_cast<u32>(at), false};
            }
            if ((seen & ~root_bit) == node) return {static_cast<u32>(at), (seen & root_bit) != 0};
        }
    }
    return {full, false};
}

#if THESIS_RECURSIVE
// One call for each subtree; the stack holds the halves that a thread needs later. `length` is 2^depth: one function for each, so
// that the size of the stack is known.
template <u32 depth>
__device__ __noinline__ Found tree(const Table& table, const u32* vector)
{
    if constexpr (depth == 1) {
        const uint2 pair = *reinterpret_cast<const uint2*>(vector);
        return find_or_put(table, pair.x, pair.y);
    } else {
        const u32 left = tree<depth - 1>(table, vector).reference;
        if (left == full) return {full, false};
        const u32 right = tree<depth - 1>(table, vector + (1u << (depth - 1))).reference;
        if (right == full) return {full, false};
        return find_or_put(table, left, right);
    }
}

__device__ constexpr u32 log2(u32 n) { return n == 1 ? 0 : 1 + log2(n / 2); }

__device__ __forceinline__ Found tree(const Table& table, const u32* vector, u32*) { return tree<log2(width)>(table, vector); }
#else
// Row by row, in place; `row` is the thread's own.
__device__ __forceinline__ Found tree(const Table& table, const u32* vector, u32* row)
{
#pragma unroll 1
    for (u32 i = 0; i < leaves; ++i) {
        const uint2 pair = *reinterpret_cast<const uint2*>(vector + 2 * i);
        row[i] = find_or_put(table, pair.x, pair.y).reference;
        if (row[i] == full) return {full, false};
    }
#pragma unroll 1
    for (u32 length = leaves / 2; length > 1; length /= 2) {
#pragma unroll 1
        for (u32 i = 0; i < length; ++i) {
            row[i] = find_or_put(table, row[2 * i], row[2 * i + 1]).reference;
            if (row[i] == full) return {full, false};
        }
    }
    return find_or_put(table, row[0], row[1]);
}
#endif

}  // namespace thesis

// Puts `count` vectors, one a thread at a time, in a grid-stride loop; outcomes[i] is 1 (New), 2 (Seen) or 3 (Full).
// - `entries`: segments x 4, zero before the first call, 32-byte aligned; fewer than 2^31 of them.
// - `vectors`: count x THESIS_WIDTH words, 8-byte aligned.
// - Any grid of blocks of 256 threads.
extern "C" __global__ void __launch_bounds__(256)
thesis_tree_find_or_put(unsigned long long* entries, unsigned long long segments, const unsigned long long* seeds,
                        const unsigned* vectors, unsigned long long count, unsigned char* outcomes)
{
    using namespace thesis;
    // Words of neighbouring threads side by side would avoid bank conflicts: the thesis' 1_np_s_sm, which took about the same
    // time there.
    __shared__ u32 rows[THESIS_RECURSIVE ? 1 : threads * leaves];
    u32* row = THESIS_RECURSIVE ? rows : rows + threadIdx.x * leaves;
    const Table table{entries, segments, seeds};
    const u64 step = gridDim.x * static_cast<u64>(blockDim.x);
    for (u64 index = blockIdx.x * static_cast<u64>(blockDim.x) + threadIdx.x; index < count; index += step) {
        const Found root = tree(table, vectors + index * width, row);
        Outcome outcome = Outcome::Full;
        if (root.reference != full) {
            // If the bit is seen set, it stays set. If it is seen unset, the atomic operation determines which thread sets it.
            const bool was_root = root.is_root || (atomicOr(entries + root.reference, root_bit) & root_bit) != 0;
            outcome = was_root ? Outcome::Seen : Outcome::New;
        }
        outcomes[index] = static_cast<u8>(outcome);
    }
}
