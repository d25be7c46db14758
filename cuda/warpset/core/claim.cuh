// Chained claiming: stores a vector in a slot without locks or copies, and never mixes two vectors.
//
// A slot is a chain of chunks. Each chunk is *decided* once, by one compare-and-swap, and a thread decides a chunk only after
// all chunks before it were decided in its favour:
//
//   | chunk      | holds           | may be changed by                                              | to            |
//   |------------|-----------------|----------------------------------------------------------------|---------------|
//   | undecided  | EMPTY           | a thread whose vector equals all chunks before it, by one CAS  | that vector's |
//   | decided    | that value      | no thread                                                      | -             |
//
//   slot:  EMPTY ... EMPTY  --CAS chunk 0-->  v0 EMPTY ... EMPTY  --CAS chunk 1-->  ...  --CAS last chunk-->  complete
//
// Invariants, and what follows:
//   1. A chunk goes from EMPTY to a value once and never changes. (Only `claim` writes. It expects EMPTY and stores a value
//      that is not EMPTY.) So a decided chunk may be read at any time, by any number of separate loads, in any order.
//   2. Only a thread whose vector equals chunks 0 .. i-1 ever writes chunk i. So a complete slot holds one whole vector that a
//      thread offered, never a mixture.
//   3. A thread leaves a slot only over a decided, different chunk. The slot can then never come to hold its vector. Equal
//      vectors walk the same slots in the same order, so a vector is never stored twice; and the one thread that decides the
//      last chunk is the only one to report New.
//   4. A thread that decides a chunk goes on to the next one. If it loses that, the winner has the same prefix and goes on. No
//      thread waits for another. If all threads of a slot stop (a killed kernel), the slot stays half decided. It is not a member
//      of the set: vectors with its prefix complete it, all others pass over it. It costs one slot and no correctness.
//   5. Between requesting a claim and finishing it, a lane looks at no other slot of its vector. (A warp's claims are under way
//      while its lanes read buckets for other lanes: WarpSearch::request_claim and finish_claim. The owner does not advance in
//      its walk until it has judged the answer.) So a vector's slots are decided for it in the order of its walk; 3 rests on
//      that order.
//
// Writers of slots:
//   - Bucket tables: `claim` alone. A thread calls it through `decide`, as does a lane for a vector of one word
//     (bucket/lane_search.cuh). For other vectors a warp keeps claims in flight while it reads buckets: it calls `claim` first,
//     and `decision` on the returned value later (bucket/warp_search.cuh). For the tails of slots, which are rare, it calls
//     `decide`.
//   - Node tables: `claim` alone (NodeTable::find, find_all and find_by_two in tree/nodes.cuh). A node is a chain of one chunk.
//   - Compact tables: CompactLevel::claim (compact/table.cuh). If a slot is a whole word, this calls `claim` on a chain of one
//     chunk. If two slots share a word, it compare-and-swaps the word: a code goes into an EMPTY slot, and the other slot is
//     written back as it was.
//   - Indexed tables: their own compare-and-swaps, which also publish a row (indexed/table.cuh).
//   - Bulk find-or-put claims slots in a copy of a slice in shared memory, and copies that back (bucket/bulk_filler.cuh). An
//     undecided chunk of the copy is 0.
//   - While nothing else uses the table: clear_table (batch/maintenance.cuh) writes EMPTY everywhere. On a CPU, growth fills a
//     table part by part, one thread a part, with EMPTY and whole vectors (cpu_kernels/growth.hpp). Relocation in a cuckoo table
//     (compact/relocation.cuh) claims EMPTY slots of the main level, exchanges the codes of others, and clears the stash. The
//     invariants hold between these passes.
//
// Headers that continue the argument: bucket/table.cuh, bucket/warp_search.cuh, bucket/lane_search.cuh (the walk, and claims of
// a warp), compact/table.cuh (keys instead of vectors, two levels), compact/relocation.cuh (keys that move), tree/nodes.cuh and
// tree/table.cuh (nodes, and when a tree is visible), tree/incremental.cuh (parents), indexed/table.cuh and indexed/rows.cuh
// (rows behind the slots).
//
// "Decided and different" must be seen in one atomic access of the whole chunk: a torn view could show a chunk that is neither
// EMPTY nor its final value. `load_relaxed` and the value that a failed compare-and-swap returns are such accesses. So are the
// loads of `Warp::match_bucket` (platform/cpu) and of each chunk of a `Row`, which read several slots. Nothing else is used.
//
// Relaxed order, device scope, for both: the value read is the value compared, and no other location is read because of it.
//
// Tried and dropped: claiming all middle chunks of a slot at once, and the last one after them. That takes one request for a
// 128-byte slot instead of eight, but wastes a slot whenever two vectors with the same prefix race. On an H200 it gained 9 %
// for 32 words at fill 0.25 and lost 7 % for 16 words; not worth a weaker invariant 2.
//
// Not built: tags beside wide slots. A tag is a byte of a vector's hash, or 0; one request reads the tags of 16 slots, so a
// search reads hardly any slot of another vector. The thread that claims a tag stores its vector by one request and without a
// fence, because EMPTY chunks show what is not stored yet. But a thread that finds its tag on a half stored vector does not know
// whether that vector is equal. If it looks again until it knows, it waits for the storing thread, and if that one has stopped,
// all later searches for such a vector wait for ever. Without waiting, the thread has three ways to go on:
//   - *Decide* the missing chunks for its own vector. Then all threads must claim all chunks, since a plain store could change a
//     decided one. That is chained claiming again, with tags as hints that are written when a slot is complete. All chunks but
//     the last may be claimed at once, and the last one after them, if a slot that has got chunks of two vectors is given up.
//   - *Leave* the slot and put its vector elsewhere. Then the storing thread must confirm its slot afterwards, by a claim that
//     the leaving thread has made fail; otherwise two equal vectors are stored. Where many threads put one vector, each may
//     spoil the slot of the one before, so that none is ever stored. Besides, a thread that sees the confirmation must see the
//     vector, so a fence stands between them. Writing the vector where no thread finds it, and naming the place after a fence,
//     has the same cost and spoils nothing. That is the indexed table, which has 7.5 / 6.6 / 6.6 G/s for 32 words where the
//     bucket table has 6.6 / 5.5 / 4.6 (H200).
//   - *Read* the vector from where it was offered. But vectors are offered from registers and from shared memory, too, and a
//     killed kernel would leave names of memory that is gone.
// Prototypes on an H200, 2^27 vectors of 32 words and 2^26 of 64, duplication 2, G/s at fill 0.25 / 0.7 / 0.9. With tags, the
// rate hardly depends on the fill. But without waiting, new vectors of 64 words keep 20 to 44 % of the gain. Those of 32 words
// keep 20 % at fill 0.9, and are slower than chained claiming below it:
//
//   | words | prototype                      | new             | seen               |
//   |-------|--------------------------------|-----------------|--------------------|
//   | 32    | chained claiming               | 7.5 / 6.2 / 5.2 | 13.2 / 10.3 / 7.8  |
//   | 32    | tags, with waiting             | 9.1 / 9.2 / 9.2 | 11.2 / 11.1 / 10.9 |
//   | 32    | tags as hints, chained claims  | 5.5 / 5.6 / 5.5 | 11.5 / 11.4 / 11.1 |
//   | 32    | tags as hints, claims at once  | 6.0 / 6.1 / 6.0 | 9.8 / 9.6 / 9.2    |
//   | 64    | chained claiming               | 3.2 / 2.7 / 2.4 | 6.5 / 5.0 / 3.9    |
//   | 64    | tags, with waiting             | 5.2 / 5.2 / 5.1 | 6.0 / 6.0 / 5.9    |
//   | 64    | tags as hints, chained claims  | 2.6 / 2.6 / 2.6 | 6.2 / 6.1 / 6.0    |
//   | 64    | tags as hints, claims at once  | 3.6 / 3.6 / 3.6 | 5.3 / 5.2 / 5.1    |
#pragma once

#include "warpset/platform.cuh"

namespace warpset {

enum class Decision : u32 {
    Won,        // this call decided the chunk
    Agreed,     // already decided, with the same value
    Different,  // already decided, with another value
    Empty,      // still EMPTY; only `look` returns this
};

// Decision of a claim that found `seen`.
template <class Chunk>
WARPSET_FN Decision decision(Chunk seen, Chunk empty, Chunk value)
{
    if (seen == empty) return Decision::Won;
    return seen == value ? Decision::Agreed : Decision::Different;
}

// The only write of chained claiming: stores `value` if the chunk is still `empty`, and returns the previous value. `value` must
// differ from `empty`.
template <class Chunk>
WARPSET_FN Chunk claim(Chunk* chunk, Chunk empty, Chunk value)
{
    return platform::compare_and_swap_relaxed(chunk, empty, value);
}

// Decides a chunk in favour of `value`, or reports how it was decided. `value` must differ from `empty`.
// `expect_empty`: the caller has just seen EMPTY here or expects it, so the load before the compare-and-swap is skipped.
template <class Chunk>
WARPSET_FN Decision decide(Chunk* chunk, Chunk empty, Chunk value, bool expect_empty)
{
    Chunk seen = expect_empty ? empty : platform::load_relaxed(chunk);
    if (seen == empty) seen = claim(chunk, empty, value);
    return decision(seen, empty, value);
}

// Reports how a chunk was decided, without deciding it.
template <class Chunk>
WARPSET_FN Decision look(const Chunk* chunk, Chunk empty, Chunk value)
{
    Chunk seen = platform::load_relaxed(chunk);
    if (seen == empty) return Decision::Empty;
    return seen == value ? Decision::Agreed : Decision::Different;
}

}  // namespace warpset
