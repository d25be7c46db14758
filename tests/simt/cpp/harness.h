// Interface of the tests' C++ and Rust (src/table.rs).
#pragma once

#include "warpset/platform.cuh"

extern "C" {

// `give` puts a vector and passes its reference on. `take` reads back the vector whose reference was passed on, if there was one.
// `scan` reads the contents of a slot. `incremental` puts a vector with a parent: the vector of the lane's previous operation,
// with a mask; or, if that vector is not stored, the contents of slot `parent`, without a mask.
enum {
    warpset_simt_nothing,
    warpset_simt_put,
    warpset_simt_find,
    warpset_simt_scan,
    warpset_simt_give,
    warpset_simt_take,
    warpset_simt_incremental
};

// One operation of a lane, and its result. In memory that the simulator does not watch.
struct warpset_simt_operation {
    warpset::u32 kind, vector;  // of a scan: the slot
    warpset::u32 outcome, reads_back, misread, parent;
    warpset::u64 reference;
    warpset::u64 began, ended;  // in steps of the machine
};

struct warpset_simt_chunk {
    warpset::u64 offset, bytes;
    warpset::u32 empty[4];
};

typedef void warpset_simt_kernel(const void* argument);

struct warpset_simt_table_kernels {
    warpset::u32 indexed, tree, width, padded_words, chunk_bytes, line_bytes, key_bits, slot_bits;
    warpset::u32 pairing;       // of a tree
    const char* strategy;  // for names
    const warpset::u32* geometry;
    warpset::u32 cache_bytes[2];  // shared memory for a block of one and of two warps that put by blocks
    warpset_simt_kernel *find_or_put, *find_or_put_incremental, *put_by_blocks, *find, *clear, *get, *export_all, *measure,
        *script,
        *relocate, *put_back,      // of compact tables
        *rebuild, *list_holes,  // of indexed tables
        *grow, *keep_left,      // of bucket tables
        *bulk_partition, *bulk_fill, *bulk_put_left, *bulk_replay;  // of bucket tables of 1 and 2 words
    void (*chunk_of_slot)(const void* view, warpset::u64 slot, warpset::u32 chunk, warpset_simt_chunk* result);
    bool (*is_barred)(const void* view, const warpset::u32* words, warpset::u64 slot);
    // Writes the buckets of a vector's walk, at most `probe_limit`. Returns their number.
    warpset::u32 (*walk)(const void* view, const warpset::u128* seeds, const warpset::u32* words, warpset::u64* buckets);
};

// Number of steps that the machine has made.
warpset::u64 warpset_simt_steps();
}
