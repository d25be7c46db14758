// Input and output of a batch, which one call passes to a kernel, and the counts that kernels add to.
#pragma once

#include "warpset/core/outcome.cuh"

namespace warpset {

// Counts that kernels add to. The vectors that are in no other count were Seen (find-or-put) or Absent (find). Mirrored by
// `Counts` in src/layout/view.rs.
struct BatchCounts {
    u64 offered;         // vectors of the batch
    u64 hits;            // find-or-put: New; find: Seen
    u64 full;
    u64 new_references;  // references of New vectors: those written, and those that did not fit
    u64 full_nodes;      // vectors among `full` that lacked a node, not a slot
};

// A reference is a slot's number. It may have a tag above the number: the table's generation, which shows that a reference is
// stale (src/layout/reference.rs).
constexpr u32 reference_slot_bits = 40;
constexpr u64 slot_mask = (1ull << reference_slot_bits) - 1;

// One call's input and output. Mirrored by `BatchView` in src/layout/view.rs. Any output pointer may be null.
struct BatchView {
    const u32* vectors;   // count x width words, row-major, aligned to the largest power of two (to 16) that divides 4 x width
    u64 count;            // at most 2^31: the caller splits longer batches
    u8* outcomes;         // count, by position
    u64* references;      // count, by position
    u64* new_references;  // references of the New vectors, in no order, appended at counts->new_references; needs counts
    u64 new_capacity;     // elements of new_references: references that do not fit are counted, and not written
    BatchCounts* counts;  // the kernel adds to these
    const u64* parents;   // count, or null: the stored vector that each differs from in some words, or no_reference
    const u32* changed;   // count x ceil(width / 32), or null: the words that may differ, a bit each, aligned to 4 bytes
    u8* workspace;        // search_workspace_bytes for each warp of the grid, aligned to 16 bytes, used by this kernel only
    u64 tag;              // tag of references read and written: 0, or the table's generation above reference_slot_bits

    // Reads a word or a larger unit of the input.
    template <class Word>
    WARPSET_FN static Word load(const Word* address)
    {
        return platform::load_input(address);
    }

    // The lane that has put a New vector calls this with the vector's position and reference.
    WARPSET_FN void on_new_vector(u64, u64) const {}

    // Called once for each vector that is New or Seen, with its position and reference.
    WARPSET_FN void combine(u64, u64) const {}

    // Returns the distance of unit `unit` of the vectors' words from the first unit, in units. A vector has `units` units.
    WARPSET_FN static u32 unit_offset(u32 unit, u32) { return unit; }

    // The reference to a slot, and the reference of a vector that is not stored. With a tag the latter is 0.
    WARPSET_FN u64 reference_to(u64 slot) const { return slot | tag; }
    WARPSET_FN u64 no_slot() const { return tag == 0 ? no_reference : 0; }
};

// Returns the slot of the parent of vector `index`. A reference of another generation means another vector by now, so it counts
// as no_reference.
template <class Batch>
WARPSET_FN u64 parent_slot(const Batch& batch, u64 index)
{
    const u64 reference = batch.load(batch.parents + index);
    return (reference ^ batch.tag) >> reference_slot_bits == 0 ? reference & slot_mask : no_reference;
}

// Vector `index` of a batch, and the mask of its changed words: a ChangedVector (tree/incremental.cuh), read by `Batch::load`.
template <class Batch>
struct ChangedVectorOf {
    const Batch& batch;
    u32 width;
    u64 index;

    WARPSET_FN u32 word(u32 word) const { return batch.load(batch.vectors + index * Batch::unit_offset(width, width) + word); }
    WARPSET_FN u32 mask(u32 i) const
    {
        return batch.changed == nullptr ? ~0u : batch.load(batch.changed + index * ((width + 31) / 32) + i);
    }
};

}  // namespace warpset
