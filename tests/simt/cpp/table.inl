// The table of one spec on the simulated GPU: its kernels (cuda/table_kernels.cu, unchanged) and functions for the tests.
//
// Arguments have the views of all kinds of tables. Slots and their chunks are those of the roots.
//
// Compiled once for each spec, with the macros of warpset/table.cuh; WARPSET_SIMT_NAME, the name of the structure that the file
// defines; and WARPSET_SIMT_STRATEGY, the suffix of the table's name.
#include "table_kernels.cu"

#include "script.h"
#include "warpset/block_cache.cuh"

namespace {

using warpset::WordVector;

#if WARPSET_TREE && WARPSET_PAIRING != 1
void put_incremental(const View& view, const BatchView& batch) { warpset_find_or_put_incremental(view, batch); }
#else
void put_incremental(const View& view, const BatchView& batch) { warpset_find_or_put(view, batch); }
#endif

View view_of(const Views& views)
{
#if WARPSET_TREE && WARPSET_KEY_BITS
    return {views.compact, views.tree.nodes};
#elif WARPSET_TREE
    return views.tree;
#elif WARPSET_KEY_BITS
    return views.compact;
#elif WARPSET_INDEXED
    return views.indexed;
#else
    return views.tree.roots;
#endif
}

struct Batch {
    Views view;
    BatchView batch;
};

// Interleaved trees have no cache.
constexpr bool has_cache = Table::is_incremental || !Table::has_nodes;
template <u32 rows>
using CacheOf = warpset::BlockCache<warpset::Choose<has_cache, Table, Table::Roots>::Type, rows, true>;
using Cache = CacheOf<64>;  // one row for each lane of two warps

// Puts the vectors that a cache has gathered. Tables that do not use parents get the vectors' numbers in their place; the numbers
// show which vectors are new: each reference must lead to the vector that it was reported for.
template <class Cache, class Table>
void put_gathered(Cache& cache, const Table& table, const BatchView& batch)
{
    if constexpr (Table::is_incremental) {
        cache.find_or_put(table, batch.new_references, batch.counts);
    } else {
        const auto on_new = [&](u64 index, u64 reference) {
            if (batch.new_references == nullptr) return;
            bool same = index < batch.count;
            const auto compare = [&](u32 word, u32 value) {
                same = same && value == batch.vectors[index * Table::static_width + word];
            };
            same = table.read_words(reference, 0, 1, compare) && same;
            const u64 at = warpset::platform::fetch_add_relaxed(&batch.counts->new_references, 1);
            batch.new_references[at] = same ? reference : warpset::no_reference;
        };
        cache.find_or_put_distinct(table, cache.drop_duplicates(), warpset::ReferenceList{nullptr}, batch.counts, on_new);
    }
}

// Puts a batch by blocks that gather its vectors, one vector per thread at a time. If `makes_sure`, empties the cache before it
// can lack room; otherwise empties it when it is full, and offers again the vectors that found no room.
template <class Cache, class Table>
void put_by_blocks_of(const Table& table, const BatchView& batch, bool makes_sure)
{
    using warpset::platform::Block;
    using warpset::platform::Grid;
    Cache cache(Block::scratch());
    cache.clear();
    for (u64 first = Grid::thread() - Block::thread(); first < batch.count; first += Grid::threads()) {
        if (makes_sure && cache.free_rows() < Block::threads()) put_gathered(cache, table, batch);
        const u64 index = first + Block::thread();
        bool waits = index < batch.count, full;
        do {
            if (waits) {
                const u64 parent = !Table::is_incremental    ? index
                                   : batch.parents == nullptr ? warpset::no_reference
                                                              : batch.parents[index];
                waits = !cache.add(warpset::ChangedVectorOf<BatchView>{batch, Table::static_width, index}, parent);
            }
            full = !makes_sure && cache.free_rows() == 0;
            if (full) put_gathered(cache, table, batch);
        } while (full);
    }
    put_gathered(cache, table, batch);
}

void put_by_blocks(const View& view, const BatchView& batch)
{
    if constexpr (has_cache) {
        const bool makes_sure = batch.count % 2 == 0;
        // If two warps do not make sure, the cache has room for half of what they offer.
        if (!makes_sure && warpset::platform::Block::threads() > 32)
            put_by_blocks_of<CacheOf<32>>(Table::of(view), batch, makes_sure);
        else
            put_by_blocks_of<Cache>(Table::of(view), batch, makes_sure);
    }
}

struct Get {
    Views view;
    const u64* references;
    u64 count;
    u32* vectors;
    u64* invalid;
};

struct Export {
    Views view;
    u64 first, last;
    u32* vectors;
    u64* references;
    u64* cursor;
};

struct Measure {
    Views view;
    u64 first, last;
    u64* lengths;
    warpset::ProbeTotals* totals;
    u32 bins;
};

struct Relocate {
    Views view;
    u64 seed;
    u64* keys;
    warpset::Relocated* counts;
};

void relocate([[maybe_unused]] const Relocate& argument)
{
#if WARPSET_KEY_BITS && !WARPSET_TREE
    warpset_relocate(view_of(argument.view), argument.seed, argument.keys, argument.counts);
#endif
}

// A batch whose vectors are the keys that relocation has left over; relocation has counted them.
struct PutBack {
    Batch batch;
    const warpset::Relocated* relocated;
};

void put_back(const PutBack& argument)
{
    BatchView batch = argument.batch.batch;
    batch.count = argument.relocated->left_over;
    warpset_find_or_put(view_of(argument.batch.view), batch);
}

// Makes an index of another size from the rows before `last`.
struct Rebuild {
    Views view, larger;
    u32 larger_slot_bits;
    u64 last;
    warpset::BatchCounts* counts;
};

// Moves the vectors of a table to a larger one.
struct Grow {
    Views view, larger;
    warpset::ShortSeeds seeds;
    u32 slices_a_part, is_staged;
    u64 first, last, writes;
    u64* left;
    u64 capacity;
    u64* progress;
    u32* vectors;
};

void grow([[maybe_unused]] const Grow& x)
{
#if !WARPSET_TREE && !WARPSET_KEY_BITS && !WARPSET_INDEXED
    warpset_grow(view_of(x.view), view_of(x.larger), x.seeds, x.slices_a_part, x.is_staged, x.first, x.last,
                 static_cast<u32>(x.writes), x.left, x.capacity, x.progress);
#endif
}

void keep_left([[maybe_unused]] const Grow& x)
{
#if !WARPSET_TREE && !WARPSET_KEY_BITS && !WARPSET_INDEXED
    auto* const progress = reinterpret_cast<warpset::InPlace*>(x.progress);
    warpset_keep_left(view_of(x.view), x.left, x.capacity, progress, x.vectors);
#endif
}

// A step of bulk find-or-put.
struct BulkStep {
    Views view;
    warpset::BulkPass pass;
    warpset::BulkSlices slices;
};

#if WARPSET_HAS_BULK
void bulk_partition(const BulkStep& x) { warpset_bulk_partition(view_of(x.view), x.pass); }
void bulk_fill(const BulkStep& x) { warpset_bulk_fill(view_of(x.view), x.slices); }
void bulk_put_left(const BulkStep& x) { warpset_bulk_put_left(view_of(x.view), x.slices); }
void bulk_replay(const BulkStep& x) { warpset_bulk_replay(x.pass); }
#else
void bulk_partition(const BulkStep&) {}
void bulk_fill(const BulkStep&) {}
void bulk_put_left(const BulkStep&) {}
void bulk_replay(const BulkStep&) {}
#endif

// Lists the rows before `last` that are not stored, and counts the references to such rows.
struct Holes {
    Views view;
    u64 last;
    u64* holes;
    u64 room;
    u64* count;
    const u64* references;
    u64 references_count;
    u64* invalid;
};

#if WARPSET_INDEXED
void rebuild(const Rebuild& x) { warpset_rebuild(x.view.indexed, x.larger.indexed, x.larger_slot_bits, 0, x.last, x.counts); }
void list_holes(const Holes& x)
{
    warpset_list_holes(x.view.indexed, 0, x.last, x.holes, x.room, x.count);
    warpset_count_unstored(x.view.indexed, x.references, x.references_count, x.invalid);
}
#else
void rebuild(const Rebuild&) {}
void list_holes(const Holes&) {}
#endif

#if WARPSET_KEY_BITS || WARPSET_INDEXED
// For compact tables (src/compact.rs) and indexed tables (src/indexed.rs) the tests compute this themselves.
void chunk_of_slot(const Views&, u64, u32, warpset_simt_chunk*) {}
bool is_barred(const Views&, const u32*, u64) { return false; }
u32 walk(const Views&, const warpset::u128*, const u32*, u64*) { return 0; }
#else
// A vector of zeros.
struct Nothing {
    static constexpr bool is_padded = true;
    void read(u32, u32& chunk) const { chunk = 0; }
    void read(u32, u64& chunk) const { chunk = 0; }
    void read(u32, warpset::u128& chunk) const { chunk = {0, 0}; }
};

// For the tests, outside of any launch: location of a slot's chunk, and its contents while it is undecided.
void chunk_of_slot(const Views& view, u64 slot, u32 chunk, warpset_simt_chunk* result)
{
    const Table table = Table::of(view_of(view));
    const u64 bucket = slot / layout.slots_per_bucket();
    const u32 index = static_cast<u32>(slot % layout.slots_per_bucket());
    table.root_table().with_chunk(bucket, index, chunk, Nothing{}, [&](auto* address, auto empty, auto) {
        result->offset = static_cast<u64>(reinterpret_cast<const warpset::u8*>(address) - view.tree.roots.slots);
        result->bytes = sizeof empty;
        __builtin_memcpy(result->empty, &empty, sizeof empty);
    });
}

bool is_barred(const Views& view, const u32* words, u64 slot)
{
    const Table table = Table::of(view_of(view));
    const auto& roots = table.root_table();
    return roots.forbids(roots.forbidden_classes(WordVector{words}), slot / layout.slots_per_bucket(),
                         static_cast<u32>(slot % layout.slots_per_bucket()));
}

u32 walk(const Views& view, const warpset::u128* seeds, const u32* words, u64* buckets)
{
    const Table table = Table::of(view_of(view));
    const auto& roots = table.root_table();
    constexpr u32 width = WARPSET_TREE ? 2 : WARPSET_WIDTH;
    warpset::PartialHash hash;
    for (u32 word = 0; word + 1 < width; word += 2) hash.add_pair(seeds[word], seeds[word + 1], words[word], words[word + 1]);
    if (width % 2 == 1) hash.add_last(seeds[width - 1], words[width - 1]);
    auto probe = warpset::Probe::start(hash.finish(seeds[width], roots.view.hash_mask), roots.view);
    u32 count = 0;
    do buckets[count++] = probe.bucket;
    while (probe.advance(roots.view));
    return count;
}
#endif

template <class Argument>
const Argument& as(const void* argument)
{
    return *static_cast<const Argument*>(argument);
}

}  // namespace

extern "C" {
extern const warpset_simt_table_kernels WARPSET_SIMT_NAME;
}
const warpset_simt_table_kernels WARPSET_SIMT_NAME = {
    WARPSET_INDEXED,
    WARPSET_TREE,
    WARPSET_WIDTH,
    WARPSET_SLOT_WORDS,
    WARPSET_CHUNK_BYTES,
    WARPSET_LINE_BYTES,
    WARPSET_KEY_BITS,
    WARPSET_SLOT_BITS,
    WARPSET_PAIRING,
    WARPSET_SIMT_STRATEGY,
    warpset_geometry,
    {has_cache ? Cache::bytes(1) : 0, has_cache ? Cache::bytes(2) : 0},
    [](const void* a) { auto& x = as<Batch>(a); warpset_find_or_put(view_of(x.view), x.batch); },
    [](const void* a) { auto& x = as<Batch>(a); put_incremental(view_of(x.view), x.batch); },
    [](const void* a) { auto& x = as<Batch>(a); put_by_blocks(view_of(x.view), x.batch); },
    [](const void* a) { auto& x = as<Batch>(a); warpset_find(view_of(x.view), x.batch); },
    [](const void* a) { warpset_clear(view_of(as<Views>(a))); },
    [](const void* a) { auto& x = as<Get>(a); warpset_get(view_of(x.view), x.references, x.count, x.vectors, x.invalid); },
    [](const void* a) {
        auto& x = as<Export>(a);
        warpset_export(view_of(x.view), x.first, x.last, x.vectors, x.references, x.cursor, nullptr);
    },
    [](const void* a) {
        auto& x = as<Measure>(a);
        warpset_measure(view_of(x.view), x.first, x.last, x.lengths, x.bins, x.totals);
    },
    [](const void* a) {
        using warpset::simt::Order;
        run_script(Table::of(view_of(as<Script>(a).view)), as<Script>(a), Order::Release, Order::Acquire);
    },
    [](const void* a) { relocate(as<Relocate>(a)); },
    [](const void* a) { put_back(as<PutBack>(a)); },
    [](const void* a) { rebuild(as<Rebuild>(a)); },
    [](const void* a) { list_holes(as<Holes>(a)); },
    [](const void* a) { grow(as<Grow>(a)); },
    [](const void* a) { keep_left(as<Grow>(a)); },
    [](const void* a) { bulk_partition(as<BulkStep>(a)); },
    [](const void* a) { bulk_fill(as<BulkStep>(a)); },
    [](const void* a) { bulk_put_left(as<BulkStep>(a)); },
    [](const void* a) { bulk_replay(as<BulkStep>(a)); },
    [](const void* view, u64 slot, u32 chunk, warpset_simt_chunk* result) {
        chunk_of_slot(as<Views>(view), slot, chunk, result);
    },
    [](const void* view, const u32* words, u64 slot) { return is_barred(as<Views>(view), words, slot); },
    [](const void* view, const warpset::u128* seeds, const u32* words, u64* buckets) {
        return walk(as<Views>(view), seeds, words, buckets);
    },
};
