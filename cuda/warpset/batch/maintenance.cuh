// Kernels that are loops over the slots of a table, or over references: clear, get, export, measure.
//
// Growth exports the vectors of a table range by range and puts them into a larger one (src/core/growth.rs). On a CPU, most
// tables grow in another way (cpu_kernels/growth.hpp and tree_growth.cpp).
//
// On an H200, growing tables with 33.5 million vectors of 2 and 8 words, and trees of 8, takes 2.3, 5.6 and 9.4 ms. Advancing the
// export cursor once per warp of 32 slots took 4.1 and 8.2 ms (2 and 8 words). Reading vectors word by word took 2.5, 7.0 and
// 10.4 ms. At 8 words, clearing 2.7 GB takes 0.6 ms, and freeing device memory 1 ms for 2 GB.
#pragma once

#include "warpset/bucket/table.cuh"
#include "warpset/compact/table.cuh"
#include "warpset/core/batch_view.cuh"
#include "warpset/core/probe.cuh"
#include "warpset/indexed/maintenance.cuh"
#include "warpset/tree/table.cuh"

namespace warpset {

// Each thread writes one slot after another.
template <class Shape>
WARPSET_FN void clear_by_slots(const BucketTable<Shape>& table, u64 blocks)
{
    const auto share = platform::Grid::share(blocks * table.layout.buckets_per_block());
    for (u64 bucket = share.first; bucket < share.last; ++bucket)
        for (u32 index = 0; index < table.layout.slots_per_bucket(); ++index) table.clear_slot(bucket, index);
}

// The lanes of a warp write adjacent words.
template <class Shape>
WARPSET_FN void clear_by_words(const BucketTable<Shape>& table, u64 blocks)
{
    using Table = BucketTable<Shape>;
    const auto& layout = table.layout;
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
}

// Writes EMPTY over the whole table, padding included, and sets `stored` to 0. Nothing else may use the table at the same time.
template <class Shape>
WARPSET_FN void clear_table(const BucketTable<Shape>& table)
{
    const u64 blocks = (table.view.buckets + table.layout.buckets_per_block() - 1) / table.layout.buckets_per_block();
    if constexpr (platform::Warp::size == 1)
        clear_by_slots(table, blocks);
    else
        clear_by_words(table, blocks);
    if (platform::Grid::thread() == 0) *table.view.stored = 0;
}

template <u32 slot_bits, u32 static_bits>
WARPSET_FN void clear_table(const CompactTable<slot_bits, static_bits>& table)
{
    // The levels are adjacent in memory.
    const u64 bytes =
        (table.main.view.buckets + static_cast<u64>(table.stash.view.buckets)) * CompactLevel<slot_bits>::bucket_bytes;
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

// vectors[i] = the vector at references[i], for i < count. Words that cannot be read stay unwritten, and their number is added to
// `invalid`: all words of a reference that names no stored vector, and possibly some words of a vector that is being put
// meanwhile.
template <class Table>
WARPSET_FN void get_vectors(const Table& table, const u64* references, u64 count, u32* vectors, u64* invalid)
{
    const u32 width = table.width();
    for (u64 at = platform::Grid::thread(); at < count * width; at += platform::Grid::threads()) {
        u64 reference = references[at / width] & slot_mask;  // the caller has checked the tags
        u32 word = static_cast<u32>(at % width);
        u32 value;
        if (reference < table.slots() && table.read_word(reference, word, value)) vectors[at] = value;
        else platform::add_relaxed(invalid, 1);
    }
}

// Copies rows of an indexed table. Determining whether a row is stored may take a search, so it is done once per row, not once
// per word: each lane of a warp checks one row, then all lanes share the words of these rows.
template <u32 width, u32 slot_bits>
WARPSET_FN void get_vectors(const IndexedTable<width, slot_bits>& table, const u64* references, u64 count, u32* vectors,
                            u64* invalid)
{
    using Warp = platform::Warp;
    const u32 words = table.width();
    for (u64 start = platform::Grid::warp() * Warp::size; start < count; start += platform::Grid::warps() * Warp::size) {
        const u64 at = start + Warp::lane();
        const bool asked = at < count, stored = asked && table.holds(references[at] & slot_mask);
        const u32 mask = Warp::ballot(stored);
        Warp::sync();  // all lanes read the rows that one lane found stored, and a vote orders nothing in memory
        if (asked && !stored) platform::add_relaxed(invalid, words);
        const u32 rows = static_cast<u32>(count - start < Warp::size ? count - start : Warp::size);
        for (u32 i = Warp::lane(); i < rows * words; i += Warp::size)
            if (mask >> (i / words) & 1)
                vectors[start * words + i] = table.word(references[start + i / words] & slot_mask, i % words);
    }
}

// Copies the vectors in slots `from + i`, for each bit i set in `mask`, one after another to `rows`. All lanes of a warp call it,
// after a Warp::sync since they found these slots complete. They share the words, so that these are written without gaps.
template <class Table>
WARPSET_FN void copy_words(const Table& table, u64 from, u32 mask, u32* rows)
{
    using Warp = platform::Warp;
    const u32 width = table.width(), words = platform::population_count(mask) * width;
    for (u32 at = Warp::lane(); at < words; at += Warp::size) rows[at] = table.word(from + nth_bit(mask, at / width), at % width);
}

template <class Table>
WARPSET_FN void copy_vectors(const Table& table, u64 from, u32 mask, u32* rows)
{
    copy_words(table, from, mask, rows);
}

// Copies vectors chunk by chunk, if a vector is a whole number of chunks. On a GPU the rows are in a separate buffer, aligned to
// chunks.
template <class Shape>
WARPSET_FN void copy_vectors(const BucketTable<Shape>& table, u64 from, u32 mask, u32* rows)
{
    using Warp = platform::Warp;
    using Chunk = typename Shape::Main;
    if constexpr (Warp::size > 1 && Shape::static_width != 0 && Shape::static_width * 4 % sizeof(Chunk) == 0) {
        constexpr u32 chunks = Shape::static_width * 4 / sizeof(Chunk);
        const u32 all = platform::population_count(mask) * chunks;
        for (u32 at = Warp::lane(); at < all; at += Warp::size)
            reinterpret_cast<Chunk*>(rows)[at] = table.chunk(from + nth_bit(mask, at / chunks), at % chunks);
    } else {
        copy_words(table, from, mask, rows);
    }
}

// Copies vectors of tree tables. Each lane walks once through the tree of a slot; reading every word separately would walk down
// from the root each time. A lane writes four words at a time if the width is a multiple of four.
template <class RootTable, u32 width, class Strategy>
WARPSET_FN void copy_vectors(const TreeTable<RootTable, width, Strategy>& table, u64 from, u32 mask, u32* rows)
{
    using Warp = platform::Warp;
    const u32 lane = Warp::lane();
    if (!(mask >> lane & 1)) return;
    u32* const row = rows + platform::population_count(mask & ((1u << lane) - 1)) * static_cast<u64>(table.width());
    u32 before[3] = {};
    table.read_words(from + lane, 0, 1, [&](u32 word, u32 value) {
        if constexpr (Warp::size > 1 && width != 0 && width % 4 == 0) {
            if (word % 4 < 3) before[word % 4] = value;
            else reinterpret_cast<u128*>(row)[word / 4] = {before[0] | static_cast<u64>(before[1]) << 32,
                                                           before[2] | static_cast<u64>(value) << 32};
        } else {
            row[word] = value;
        }
    });
}

// Copies the vectors stored in slots `first .. last` to `vectors`, and their references to `references` (unless null), in no
// order; adds their number to `cursor`. Both arrays must hold last - first elements. Slots that are completed meanwhile may be
// missed. `marks`, unless null: one byte for each slot of the table; slots whose byte is 0 are skipped.
//
// All warps advance the same cursor. So a warp takes several times as many slots as it has lanes for one advance. (H200,
// `cargo bench --bench growth`, 2 words: 2.5 to 2.8 ms a growth; 4.4 ms if warps advance it per 32 slots and copy one by one.)
template <class Table>
WARPSET_FN void export_vectors(const Table& table, u64 first, u64 last, u32* vectors, u64* references, u64* cursor,
                               const u8* marks = nullptr)
{
    using Warp = platform::Warp;
    constexpr u32 rounds = Warp::size == 1 ? 1 : 8, at_once = rounds * Warp::size;
    for (u64 start = first + platform::Grid::warp() * at_once; start < last; start += platform::Grid::warps() * at_once) {
        u32 stored[rounds], count = 0;  // in each round: which lanes' slots hold a vector
        WARPSET_UNROLL
        for (u32 round = 0; round < rounds; ++round) {
            const u64 slot = start + round * Warp::size + Warp::lane();
            stored[round] = Warp::ballot(slot < last && (marks == nullptr || marks[slot] != 0) && table.holds(slot));
            count += platform::population_count(stored[round]);
        }
        if (count == 0) continue;
        // All lanes read the slots that one lane found complete. A vote orders nothing in memory, so without this barrier they
        // might see EMPTY chunks.
        Warp::sync();
        u64 row = 0;
        // Relaxed: only the uniqueness of the rows matters.
        if (Warp::lane() == 0) row = platform::fetch_add_relaxed(cursor, count);
        row = Warp::shuffle(row, 0);
        WARPSET_UNROLL
        for (u32 round = 0; round < rounds; ++round) {
            const u32 mask = stored[round], lane = Warp::lane();
            const u64 from = start + round * Warp::size;
            if (references && (mask >> lane & 1))
                references[row + platform::population_count(mask & ((1u << lane) - 1))] = from + lane;
            copy_vectors(table, from, mask, vectors + row * table.width());
            row += platform::population_count(mask);
        }
    }
}

// Totals of a measurement, besides the lengths. Mirrored by `ProbeTotals` in src/layout/view.rs.
struct ProbeTotals {
    u64 longest;      // length of the longest probe sequence
    u64 node_probes;  // tree tables: buckets of the node table looked at to find all nodes of all vectors
};

// Lengths of probe sequences that one thread has measured. Nearly all vectors have one of a few lengths. The thread sums these up
// and adds each sum to memory once. Adding them one by one took an H200 0.19 s for 131 million vectors, because all threads
// update the same numbers.
struct ProbeCounts {
    static constexpr u32 few = 4;
    u64* lengths;
    u32 bins;
    u32 counts[few] = {};
    u64 longest = 0;

    WARPSET_FN ProbeCounts(u64* lengths, u32 bins) : lengths(lengths), bins(bins) {}

    WARPSET_FN void add(u64 length)
    {
        WARPSET_UNROLL
        for (u32 i = 0; i < few; ++i) counts[i] += length == i + 1;
        if (length > few) platform::add_relaxed(lengths + (length < bins ? length : bins) - 1, 1);
        if (length > longest) longest = length;
    }

    WARPSET_FN void finish(ProbeTotals* totals) const
    {
        WARPSET_UNROLL
        for (u32 i = 0; i < few; ++i)
            if (counts[i] != 0) platform::add_relaxed(lengths + (i < bins ? i : bins - 1), counts[i]);
        if (longest != 0) platform::max_relaxed(&totals->longest, longest);
    }
};

// Adds to lengths[min(n, bins) - 1] the number of vectors in slots `first .. last` that are found in the n-th bucket of their
// probe sequence. `totals.longest` becomes the greatest n. In a tree table this measures the roots. No n exceeds `probe_limit`: a
// vector that no search finds (a file may hold it in any slot) counts as found in the last bucket of a search.
template <class Table>
WARPSET_FN void measure_probes(const Table& table, u64 first, u64 last, u64* lengths, u32 bins, ProbeTotals* totals)
{
    struct Stored {
        const Table& table;
        u64 slot;
        WARPSET_FN u32 word(u32 index) const { return table.word(slot, index); }
        WARPSET_FN u64 pair(u32 index) const { return word(index) | static_cast<u64>(word(index + 1)) << 32; }
    };
    const u32 slots_per_bucket = table.layout.slots_per_bucket();
    ProbeCounts counts(lengths, bins);
    for (u64 slot = first + platform::Grid::thread(); slot < last; slot += platform::Grid::threads()) {
        if (!table.holds(slot)) continue;
        Probe probe = Probe::start(table.hash(Stored{table, slot}), table.view);
        u64 length = 1;
        while (probe.bucket != slot / slots_per_bucket && probe.advance(table.view)) ++length;
        counts.add(length);
    }
    counts.finish(totals);
}

// Measures the index of an indexed table. Rows supply the hashes.
template <u32 width, u32 slot_bits>
WARPSET_FN void measure_probes(const IndexedTable<width, slot_bits>& table, u64 first, u64 last, u64* lengths, u32 bins,
                               ProbeTotals* totals)
{
    const u32 slots_per_bucket = table.layout.slots_per_bucket();
    const u64 slots = table.view.buckets * slots_per_bucket;
    ProbeCounts counts(lengths, bins);
    for (u64 slot = first + platform::Grid::thread(); slot < last && slot < slots; slot += platform::Grid::threads()) {
        // Acquire, device scope: pairs with the release of the claim (indexed/table.cuh).
        const auto seen =
            platform::load_acquire(table.slot_at(slot / slots_per_bucket, static_cast<u32>(slot % slots_per_bucket)));
        if (seen == table.empty) continue;
        Probe probe = Probe::start(table.hash(RowVector<width>{table.rows, table.row_of(seen)}), table.view);
        u64 length = 1;
        while (probe.bucket != slot / slots_per_bucket && probe.advance(table.view)) ++length;
        counts.add(length);
    }
    counts.finish(totals);
}

// Measures a compact table. Here n - 1 is the number of the function under which a key is stored.
template <u32 slot_bits, u32 static_bits>
WARPSET_FN void measure_probes(const CompactTable<slot_bits, static_bits>& table, u64 first, u64 last, u64* lengths, u32 bins,
                               ProbeTotals* totals)
{
    ProbeCounts counts(lengths, bins);
    for (u64 slot = first + platform::Grid::thread(); slot < last; slot += platform::Grid::threads()) {
        u64 key;
        u32 function;
        if (table.read(slot, key, function)) counts.add(function + 1ull);
    }
    counts.finish(totals);
}

template <class RootTable, u32 width, class Strategy>
WARPSET_FN void measure_probes(const TreeTable<RootTable, width, Strategy>& table, u64 first, u64 last, u64* lengths, u32 bins,
                               ProbeTotals* totals)
{
    measure_probes(table.root_table(), first, last, lengths, bins, totals);
    u64 probes = 0;
    for (u64 slot = first + platform::Grid::thread(); slot < last; slot += platform::Grid::threads())
        if (table.holds(slot)) probes += table.node_probes(slot);
    if (probes != 0) platform::add_relaxed(&totals->node_probes, probes);
}

}  // namespace warpset
