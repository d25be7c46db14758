// Input and output of one batch, as a call passes them to a kernel, and the counts that kernels add to.
#pragma once

#include "warpset/core/outcome.cuh"

namespace warpset {

// Counts that kernels add to. Offered vectors that are neither hits nor full were Seen (find-or-put) or Absent (find). Mirrored
// by `Counts` in src/layout/view.rs.
struct BatchCounts {
    u64 offered;         // vectors of the batch
    u64 hits;            // find-or-put: New; find: Seen
    u64 full;
    u64 new_references;  // references of New vectors, whether or not they fit
    u64 full_nodes;      // vectors among `full` that lacked a node, not a slot
};

// A reference is a slot's number, with an optional tag in the bits above: the table's generation, by which a stale reference is
// detected (src/layout/reference.rs).
constexpr u32 reference_slot_bits = 40;
constexpr u64 slot_mask = (1ull << reference_slot_bits) - 1;

// One call's input and output. Mirrored by `BatchView` in src/layout/view.rs. Any output pointer may be null.
struct BatchView {
    const u32* vectors;   // count x width words, row-major, aligned to the largest power of two (to 16) that divides 4 x width
    u64 count;            // at most 2^31: the caller splits longer batches
    u8* outcomes;         // count, by position
    u64* references;      // count, by position
    u64* new_references;  // references of the New vectors, in no order, appended at counts->new_references; needs counts
    u64 new_capacity;     // elements of new_references: references beyond it are counted, not written
    BatchCounts* counts;  // the kernel adds to these
    const u64* parents;   // count, or null: reference of each vector's parent (tree/incremental.cuh), or no_reference
    const u32* changed;   // count x ceil(width / 32), or null: the words that may differ, a bit each, aligned to 4 bytes
    u8* workspace;        // search_workspace_bytes for each warp of the grid, aligned to 16 bytes, used by this kernel only
    u64 tag;              // tag of references read and written: 0, or the table's generation above reference_slot_bits

    // Reads a word or a larger unit of the input.
    template <class Word>
    WARPSET_FN static Word load(const Word* address)
    {
        return platform::load_input(address);
    }

    // Called with the position and reference of each New vector, by the lane that has put it.
    WARPSET_FN void on_new_vector(u64, u64) const {}

    // Whether references of New vectors are listed, and the list's element `at`.
    WARPSET_FN bool lists_new() const { return new_references != nullptr; }
    WARPSET_FN void list_new(u64 at, u64 reference) const
    {
        if (at < new_capacity) new_references[at] = reference;
    }

    // Called once with the position and reference of each vector that is New or Seen.
    WARPSET_FN void combine(u64, u64) const {}

    // Offset of unit `unit` of the vectors' words, in units. The second argument is the number of units of a vector.
    WARPSET_FN static u32 unit_offset(u32 unit, u32) { return unit; }

    // Reference to a slot, and the reference reported for a vector that is not stored: 0 if the batch has a tag.
    WARPSET_FN u64 reference_to(u64 slot) const { return slot | tag; }
    WARPSET_FN u64 no_slot() const { return tag == 0 ? no_reference : 0; }
};

// Returns the slot of the parent of vector `index`. A reference from another generation may now name another vector, so it counts
// as no_reference.
template <class Batch>
WARPSET_FN u64 parent_slot(const Batch& batch, u64 index)
{
    const u64 reference = batch.load(batch.parents + index);
    return (reference ^ batch.tag) >> reference_slot_bits == 0 ? reference & slot_mask : no_reference;
}

// ChangedVector (tree/incremental.cuh) of a batch: vector `index` and the mask of its changed words, read by `Batch::load`.
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
