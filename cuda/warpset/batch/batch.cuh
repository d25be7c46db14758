// Batch kernels: loops over the vectors of a batch, or over the slots of a table, and nothing else.
//
// `SearchBatch` has two bodies. Where a warp has lanes to share the work, they do (bucket/warp_search.cuh); on a machine with one
// lane a warp, a thread has several searches under way that take turns.
#pragma once

#include "warpset/bucket/table.cuh"
#include "warpset/compact/search.cuh"
#include "warpset/compact/table.cuh"
#include "warpset/bucket/thread_search.cuh"
#include "warpset/tree/incremental.cuh"
#include "warpset/tree/table.cuh"
#include "warpset/bucket/warp_search.cuh"

namespace warpset {

// What kernels add to. Seen, or Absent, is what is left of `offered`. Mirrored by `Counts` in src/gpu.rs.
struct BatchCounts {
    u64 offered;         // vectors of the batch
    u64 hits;            // find-or-put: New; find: Seen
    u64 full;
    u64 new_references;  // how many have been written
    u64 full_nodes;      // of those that were full: for want of a node, not of a slot
};

// A reference is a slot's number, or has a tag above it: the table's generation, by which a stale one is told (src/outcome.rs).
constexpr u32 reference_slot_bits = 40;
constexpr u64 slot_mask = (1ull << reference_slot_bits) - 1;

// One call's input and output. Mirrored by `BatchView` in src/raw/view.rs. Any output pointer may be null.
struct BatchView {
    const u32* vectors;   // count x width words, row-major, aligned to the largest power of two (to 16) that divides 4 x width
    u64 count;            // at most 2^31: the caller splits longer batches
    u8* outcomes;         // count, by position
    u64* references;      // count, by position
    u64* new_references;  // of the New vectors, in no order, appended at counts->new_references; needs counts
    u64 new_capacity;         // elements of new_references: what finds no room is counted, and not written
    BatchCounts* counts;  // added to
    const u64* parents;   // count, or null: of which stored vector each is a change (tree/incremental.cuh); no_reference: of none
    const u32* changed;   // count x ceil(width / 32), or null: the words that may differ, a bit each, aligned to 4 bytes
    u8* workspace;        // of each warp of the grid search_workspace_bytes, aligned to 16 bytes; nobody else's until the kernel has ended
    u64 tag;              // of references read and written: 0, or the generation of the table, in the bits above slot_bits

    // Reads a part of the input.
    template <class Word>
    WARPSET_FN static Word load(const Word* address)
    {
        return platform::load_input(address);
    }

    // Where unit `unit` of the vectors' words is, of units of which a vector has `units`: counted in units.
    WARPSET_FN static u32 place(u32 unit, u32) { return unit; }

    // What is written for a vector in a slot; and for one that is not stored, which among references with a tag is 0.
    WARPSET_FN u64 reference_to(u64 slot) const { return slot | tag; }
    WARPSET_FN u64 no_slot() const { return tag == 0 ? no_reference : 0; }
};

// The slot of the parent of vector `index`. A reference of another generation is to another vector by now: it counts as of none.
template <class Batch>
WARPSET_FN u64 parent_slot(const Batch& batch, u64 index)
{
    const u64 reference = batch.load(batch.parents + index);
    return (reference ^ batch.tag) >> reference_slot_bits == 0 ? reference & slot_mask : no_reference;
}

// Vector `index` of a batch of changes, for one thread.
template <class Batch>
struct ChangeOf {
    const Batch& batch;
    u32 width;
    u64 index;

    WARPSET_FN u32 word(u32 word) const { return batch.load(batch.vectors + index * Batch::place(width, width) + word); }
    WARPSET_FN u32 mask(u32 i) const { return batch.changed == nullptr ? ~0u : batch.load(batch.changed + index * ((width + 31) / 32) + i); }
};

// Writes out what a warp has resolved: vector by vector, and its counts at the end.
template <Operation operation>
struct Results {
    u64* stored;
    const BatchView& batch;
    u32 hits = 0;  // of the whole warp

    // All lanes of a warp call it, converged; those with Outcome::Unwritten have nothing to record.
    WARPSET_FN void record(u64 index, Outcome outcome, u64 reference)
    {
        if (outcome != Outcome::Unwritten) {
            if (batch.outcomes) batch.outcomes[index] = static_cast<u8>(outcome);
            if (batch.references) batch.references[index] = reference;
        }
        u32 hit = platform::Warp::ballot(outcome == (operation == Operation::FindOrPut ? Outcome::New : Outcome::Seen));
        hits += platform::population_count(hit);
        // Added as it happens: it is rare, and a sum would cost every search a register.
        if (operation == Operation::FindOrPut && outcome == Outcome::Full && batch.counts)
            platform::add_relaxed(&batch.counts->full, 1);
        if (operation == Operation::FindOrPut && batch.new_references && hit != 0) give_reference(hit, reference);
    }

    WARPSET_FN void finish() const
    {
        if (platform::Warp::lane() != 0) return;
        if (operation == Operation::FindOrPut && hits != 0) platform::add_relaxed(stored, hits);
        if (batch.counts && hits != 0) platform::add_relaxed(&batch.counts->hits, hits);
    }

private:
    WARPSET_FN void give_reference(u32 fresh, u64 reference) const
    {
        const u32 lane = platform::Warp::lane(), leader = platform::lowest_bit(fresh);
        // Relaxed: only the uniqueness of the places matters.
        u64 start = 0;
        if (lane == leader)
            start = platform::fetch_add_relaxed(&batch.counts->new_references, platform::population_count(fresh));
        start = platform::Warp::shuffle(start, leader);
        const u64 at = start + platform::population_count(fresh & ((1u << lane) - 1));
        if ((fresh >> lane & 1) && at < batch.new_capacity) batch.new_references[at] = reference;
    }
};

// What the vectors of a batch are given as: whole, or as changes of stored ones.
enum class Offer { Whole, Incremental };

// How a warp takes vectors of a batch into a search: here, as they are. A tree table's builders take root pairs (tree/strategies/strategy.cuh,
// tree/incremental_builder.cuh).
template <class Table, Operation operation, Offer offer>
struct Builder {
    using Search = WarpSearch<Table, operation>;
    using Warp = platform::Warp;
    static constexpr u32 width = Search::layout.width();
    // The largest unit in which vectors of this width may be copied.
    using Unit = typename Choose<width % 4 == 0, u128, typename Choose<width % 2 == 0, u64, u32>::Type>::Type;

    static constexpr u32 workspace_bytes = 0;
    static constexpr u32 scratch_bytes = 32;
    u8* lane_of_rank;

    WARPSET_FN Builder(const Table&, u8* scratch) : lane_of_rank(scratch) {}

    // How many of the vectors `next .. next + count` can be taken: here, all.
    template <class Batch>
    WARPSET_FN u32 ready(const Batch&, u32, u32 count, u32) const { return count; }

    // Makes those ready that are not: there are none.
    template <class Batch>
    WARPSET_FN void make_alone(const Batch&, u32) const {}

    // Copies the vectors `next .. next + count` of the batch to the scratch memory of the lanes set in `takers`, in order. All of them
    // are then to be searched for: no vector is resolved by being taken.
    template <class Batch>
    WARPSET_FN bool take(const Search& search, const Batch& batch, u32 next, u32 count, u32 takers)
    {
        constexpr u32 units = width * 4 / sizeof(Unit);
        const u32 lane = Warp::lane();
        const Unit* source = reinterpret_cast<const Unit*>(batch.vectors) + static_cast<u64>(next) * Batch::place(units, units);
        u32 rank = platform::population_count(takers & ((1u << lane) - 1));
        if constexpr (units == 1) {
            if (takers >> lane & 1) *reinterpret_cast<Unit*>(search.vector_of(lane)) = batch.load(source + Batch::place(rank, 1));
        } else {
            // Unit u of the run belongs to the lane of rank u / units: the run is read without gaps, several requests at a time.
            constexpr u32 at_once = units < 4 ? units : 4;
            if (takers >> lane & 1) lane_of_rank[rank] = static_cast<u8>(lane);
            Warp::sync();
            WARPSET_UNROLL_BY(1)
            for (u32 first = lane; first < count * units; first += 32 * at_once) {
                Unit unit[at_once];
                WARPSET_UNROLL
                for (u32 i = 0; i < at_once; ++i)
                    if (first + i * 32 < count * units) unit[i] = batch.load(source + Batch::place(first + i * 32, units));
                WARPSET_UNROLL
                for (u32 i = 0; i < at_once; ++i) {
                    u32 u = first + i * 32;
                    if (u < count * units) reinterpret_cast<Unit*>(search.vector_of(lane_of_rank[u / units]))[u % units] = unit[i];
                }
            }
        }
        Warp::sync();
        return false;
    }

    WARPSET_FN void finish() const {}
};

template <class Table, Operation operation, Offer offer = Offer::Whole>
struct SearchBatch {
    using Warp = platform::Warp;
    using Roots = typename Table::Roots;
    static constexpr Outcome not_stored = operation == Operation::FindOrPut ? Outcome::Full : Outcome::Absent;

    // Scratch memory of one warp: what it searches for, and what its builder wants.
    WARPSET_FN static constexpr u32 scratch_bytes()
    {
        if constexpr (Warp::size == 1)
            return 0;
        else
            return Builder<Table, operation, offer>::Search::scratch_bytes + Builder<Table, operation, offer>::scratch_bytes;
    }

    // By the warps of a grid, which share the batch.
    WARPSET_FN static void run_warps(const Table& table, const BatchView& batch)
    {
        const u64 warp = platform::Grid::warp();
        run_warp(table, batch, share(batch.count, warp), share(batch.count, warp + 1), Warp::scratch(scratch_bytes()));
        count_offered(batch);
    }

    // By one warp: of the vectors `next .. end`. `scratch` is shared memory, `scratch_bytes()` long and aligned to 16 bytes.
    template <class Batch>
    WARPSET_FN static void run_warp(const Table& table, const Batch& batch, u32 next, u32 end, u8* scratch)
    {
        using Search = typename Builder<Table, operation, offer>::Search;
        // When half the lanes are idle (bucket/warp_search.cuh); for trees a little later: making root pairs costs the same instructions
        // for few. H200, walks of 16 words, when 16, 24, 32 are idle: whole 8.2, 8.6, 8.5 G/s, changes 10.8, 10.7, 10.3.
        constexpr u32 refill_at = Table::has_nodes ? 24 : Warp::size / 2;
        Search search(table.root_table(), scratch);
        Builder<Table, operation, offer> builder(table, scratch + Search::scratch_bytes);
        Results<operation> results{table.root_table().stored_count(), batch};
        u32 index = 0;
        while (true) {
            u32 idle = Warp::ballot(search.is_idle());
            u32 count = platform::population_count(idle);
            count = count < refill_at ? 0 : builder.ready(batch, next, end - next < count ? end - next : count, end);
            bool resolved = false;  // by the builder, as not stored
            if (count > 0) {
                u32 rank = platform::population_count(idle & ((1u << Warp::lane()) - 1));
                bool takes = search.is_idle() && rank < count;
                resolved = builder.take(search, batch, next, count, Warp::ballot(takes));
                if (takes) index = next + rank;
                if (takes && !resolved) search.begin();
                next += count;
            } else if (idle == ~0u) {
                if (next == end) break;
                builder.make_alone(batch, end);
            }
            Outcome outcome = search.step();
            if (resolved) outcome = not_stored;
            bool stored = outcome == Outcome::New || outcome == Outcome::Seen;
            results.record(index, outcome, stored ? batch.reference_to(search.reference()) : batch.no_slot());
            if (resolved && operation == Operation::FindOrPut && batch.counts) platform::add_relaxed(&batch.counts->full_nodes, 1);
            Warp::sync();  // a vector is read by its tile until here, and may be overwritten by its owner from here
        }
        builder.finish();
        results.finish();
    }

    // By one thread. Several searches take turns, one bucket a turn; each asks for its next bucket at the end of its turn, which is there when its
    // turn comes again. (Intel Xeon, one thread, 200 MB table, 8 words, ns a find-or-put at fill 0.67 / 0.9: 31 / 40; hashing and
    // asking for the first buckets of 16 vectors, then searching each to its end: 64 / 92. 8, 16 and 32 turns: 38, 31 and 33.)
    WARPSET_FN static void run_thread(const Table& table, const BatchView& batch)
    {
        constexpr u32 max_turns = 24;
        struct Turn {
            u64 index;  // of the vector in the batch
            typename Table::Key key;
            ThreadSearch<Roots, operation> search;
        };
        const Roots& roots = table.root_table();
        Results<operation> results{roots.stored_count(), batch};
        u64 next = 0;
        // The next vector that is not resolved by its nodes; false if there is none.
        const auto begin = [&](Turn& turn) {
            for (; next < batch.count; ++next) {
                if (key(table, batch, next, turn.key)) {
                    turn.index = next++;
                    turn.search.begin(roots, turn.key);
                    return true;
                }
                results.record(next, not_stored, batch.no_slot());
                if (operation == Operation::FindOrPut && batch.counts) platform::add_relaxed(&batch.counts->full_nodes, 1);
            }
            return false;
        };
        Turn turns[max_turns];
        u32 count = 0;
        while (count < max_turns && begin(turns[count])) ++count;
        for (u32 at = 0; count > 0; at = at + 1 < count ? at + 1 : 0) {
            Turn& turn = turns[at];
            const Found found = turn.search.step(roots, turn.key);
            if (found.outcome == Outcome::Unwritten) continue;
            const bool stored = found.outcome == Outcome::New || found.outcome == Outcome::Seen;
            results.record(turn.index, found.outcome, stored ? batch.reference_to(found.reference) : batch.no_slot());
            if (!begin(turn)) turn = turns[--count];
        }
        results.finish();
        count_offered(batch);
    }

private:
    WARPSET_FN static void count_offered(const BatchView& batch)
    {
        if (batch.counts && platform::Grid::thread() == 0) platform::add_relaxed(&batch.counts->offered, batch.count);
    }

    // What is to be looked for among the roots; false if the vector is resolved without.
    WARPSET_FN static bool key(const Table& table, const BatchView& batch, u64 index, typename Table::Key& key)
    {
        const u32 width = table.width();
        if constexpr (offer == Offer::Whole)
            return table.template key<operation>(WordVector{batch.vectors + index * width}, key);
        else
            return table.incremental_key(parent_slot(batch, index), ChangeOf<BatchView>{batch, width, index}, key);
    }

    // Where the share of warp `warp` of the batch starts: contiguous, of equal size up to one.
    WARPSET_FN static u32 share(u64 count, u64 warp)
    {
        u64 warps = platform::Grid::warps();
        return static_cast<u32>(count / warps * warp + (warp < count % warps ? warp : count % warps));
    }
};

// Scratch memory of a warp in whichever search of a table.
template <class Table>
WARPSET_FN constexpr u32 search_scratch_bytes()
{
    constexpr u32 vectors = SearchBatch<Table, Operation::FindOrPut>::scratch_bytes();
    if constexpr (Table::is_incremental) {
        constexpr u32 changes = SearchBatch<Table, Operation::FindOrPut, Offer::Incremental>::scratch_bytes();
        return vectors > changes ? vectors : changes;
    }
    return vectors;
}

// What a warp needs of the batch's workspace in a search by vectors.
template <class Table>
WARPSET_FN constexpr u32 search_workspace_bytes()
{
    return Builder<Table, Operation::FindOrPut, Offer::Whole>::workspace_bytes;
}

// Writes EMPTY over the whole table, padding included, and sets `stored` to 0. Nothing else may use the table at the same time.
template <class Shape>
WARPSET_FN void clear_table(const BucketTable<Shape>& table)
{
    using Table = BucketTable<Shape>;
    const auto& layout = table.layout;
    u64 blocks = (table.view.buckets + layout.buckets_per_block() - 1) / layout.buckets_per_block();
    u32 block_words = layout.block_bytes() / 4, main_words = layout.main_bytes() / 4;
    u32 tail8 = layout.tail8_offset() / 4, tail4 = layout.tail4_offset() / 4;
    u32 chunk_words = sizeof(typename Table::Main) / 4;
    u32* words = reinterpret_cast<u32*>(table.view.slots);
    const auto share = platform::Grid::share(blocks * block_words);
    for (u64 at = share.first; at < share.last; at += share.step) {
        u64 block = at / block_words;
        u32 in_block = static_cast<u32>(at % block_words), slot, chunk_word;
        if (in_block < tail8) {
            slot = in_block / main_words;
            chunk_word = in_block % main_words % chunk_words;
        } else if (in_block < tail4) {
            slot = (in_block - tail8) / 2;
            chunk_word = (in_block - tail8) % 2;
        } else {
            slot = in_block - tail4;
            chunk_word = 0;
        }
        u64 bucket = block * layout.buckets_per_block() + slot / layout.slots_per_bucket();
        u32 pattern = table.empty_class(bucket, slot % layout.slots_per_bucket());
        words[at] = table.view.empty[chunk_word] ^ (chunk_word == 0 ? pattern : 0);
    }
    if (platform::Grid::thread() == 0) *table.view.stored = 0;
}

template <u32 slot_bits, u32 static_bits>
WARPSET_FN void clear_table(const CompactTable<slot_bits, static_bits>& table)
{
    // The levels lie one after another.
    const u64 bytes = (table.main.view.buckets + static_cast<u64>(table.stash.view.buckets)) * CompactLevel<slot_bits>::bucket_bytes;
    u64* words = reinterpret_cast<u64*>(table.main.view.slots);
    const auto share = platform::Grid::share(bytes / sizeof(u64));
    for (u64 at = share.first; at < share.last; at += share.step) words[at] = CompactLevel<slot_bits>::empty;
    if (platform::Grid::thread() == 0) *table.stored = 0;
}

template <class RootTable, u32 width, class Strategy>
WARPSET_FN void clear_table(const TreeTable<RootTable, width, Strategy>& table)
{
    clear_table(table.roots);
    const auto share = platform::Grid::share(table.nodes.zero() + 1ull);
    for (u64 at = share.first; at < share.last; at += share.step) table.nodes.view.slots[at] = NodeTable::empty;
    if (platform::Grid::thread() == 0) *table.nodes.view.stored = 0;
}

// vectors[i] = the vector at references[i], for i < count. Adds to `invalid` the number of words that could not be read, and leaves these
// unwritten: all words of a reference to no stored vector; some, perhaps, of one whose vector is being put meanwhile.
template <class Table>
WARPSET_FN void get_vectors(const Table& table, const u64* references, u64 count, u32* vectors, u64* invalid)
{
    const u32 width = table.width();
    for (u64 at = platform::Grid::thread(); at < count * width; at += platform::Grid::threads()) {
        u64 reference = references[at / width] & slot_mask;  // whoever gives them has looked at the tags
        u32 word = static_cast<u32>(at % width);
        u32 value;
        if (reference < table.slots() && table.read_word(reference, word, value)) vectors[at] = value;
        else platform::add_relaxed(invalid, 1);
    }
}

// Copies the vectors stored in slots `first .. last` to `vectors`, and their references to `references` (unless null), in no
// order; adds their number to `cursor`. Room for last - first. Slots that are completed meanwhile may be missed.
template <class Table>
WARPSET_FN void export_vectors(const Table& table, u64 first, u64 last, u32* vectors, u64* references, u64* cursor)
{
    using Warp = platform::Warp;
    const u32 width = table.width();
    for (u64 start = first + platform::Grid::warp() * Warp::size; start < last; start += platform::Grid::warps() * Warp::size) {
        u64 slot = start + Warp::lane();
        bool stored = slot < last && table.holds(slot);
        u32 stored_lanes = Warp::ballot(stored), count = platform::population_count(stored_lanes);
        if (count == 0) continue;
        // What a lane found complete is read by all: a vote orders nothing in memory, so without this they might see chunks EMPTY.
        Warp::sync();
        u64 row = 0;
        // Relaxed: only the uniqueness of the places matters.
        if (Warp::lane() == 0) row = platform::fetch_add_relaxed(cursor, count);
        row = Warp::shuffle(row, 0);
        if (references && stored)
            references[row + platform::population_count(stored_lanes & ((1u << Warp::lane()) - 1))] = slot;
        for (; stored_lanes != 0; stored_lanes &= stored_lanes - 1, ++row) {
            u64 from = start + platform::lowest_bit(stored_lanes);
            for (u32 word = Warp::lane(); word < width; word += Warp::size) table.read_word(from, word, vectors[row * width + word]);
        }
    }
}

// What measuring counts besides. Mirrored by `Totals` in src/raw/view.rs.
struct ProbeTotals {
    u64 longest;      // probe sequence
    u64 node_probes;  // of a tree table: buckets of the node table looked at to find all nodes of all vectors
};

// Adds to lengths[min(n, bins) - 1] the number of vectors in slots `first .. last` that are found in the n-th bucket of their
// probe sequence; `totals.longest` becomes the greatest n. Of a tree table: of its roots.
template <class Table>
WARPSET_FN void measure_probes(const Table& table, u64 first, u64 last, u64* lengths, u32 bins, ProbeTotals* totals)
{
    struct Stored {
        const Table& table;
        u64 slot;
        WARPSET_FN u32 word(u32 index) const { return table.word(slot, index); }
        WARPSET_FN u64 pair(u32 index) const { return word(index) | static_cast<u64>(word(index + 1)) << 32; }
    };
    const u32 places = table.layout.slots_per_bucket();
    for (u64 slot = first + platform::Grid::thread(); slot < last; slot += platform::Grid::threads()) {
        if (!table.holds(slot)) continue;
        Probe probe = Probe::start(table.hash(Stored{table, slot}), table.view.buckets);
        u64 length = 1;
        for (; probe.bucket != slot / places; ++length) probe.advance(table.view.buckets);
        platform::add_relaxed(lengths + (length < bins ? length : bins) - 1, 1);
        platform::max_relaxed(&totals->longest, length);
    }
}

// The same of a compact table: n - 1 is the function that a key is stored under.
template <u32 slot_bits, u32 static_bits>
WARPSET_FN void measure_probes(const CompactTable<slot_bits, static_bits>& table, u64 first, u64 last, u64* lengths, u32 bins, ProbeTotals* totals)
{
    for (u64 slot = first + platform::Grid::thread(); slot < last; slot += platform::Grid::threads()) {
        u64 key;
        u32 function;
        if (!table.read(slot, key, function)) continue;
        platform::add_relaxed(lengths + (function < bins ? function : bins - 1), 1);
        platform::max_relaxed(&totals->longest, function + 1);
    }
}

template <class RootTable, u32 width, class Strategy>
WARPSET_FN void measure_probes(const TreeTable<RootTable, width, Strategy>& table, u64 first, u64 last, u64* lengths, u32 bins, ProbeTotals* totals)
{
    measure_probes(table.root_table(), first, last, lengths, bins, totals);
    u64 probes = 0;
    for (u64 slot = first + platform::Grid::thread(); slot < last; slot += platform::Grid::threads())
        if (table.holds(slot)) probes += table.node_probes(slot);
    if (probes != 0) platform::add_relaxed(&totals->node_probes, probes);
}

}  // namespace warpset
