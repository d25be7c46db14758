// Indexed tables: searches of vectors of 9 words and more, and all operations other than searches for any width.
#include <cstring>

#include "indexed.hpp"

namespace warpset {
namespace {

void geometry_of_indexed(u32, SlotsOf, u32 slot_bits, Geometry* geometry)
{
    *geometry = slot_bits == 32 ? geometry_of(IndexedTable<0, 32>::Layout{}, sizeof(IndexedView))
                                : geometry_of(IndexedTable<0, 64>::Layout{}, sizeof(IndexedView));
}

// Copies a row, if it is stored. No thread writes to a stored row, so its words need no atomic loads. (A loop over words took 1.1
// to 2.8 times as long as kernels for one width.)
template <class Table>
bool read_row(const Table& table, u64 row, u32* vector)
{
    if (!table.holds(row)) return false;
    std::memcpy(vector, table.rows.at(row), table.width() * sizeof(u32));
    return true;
}

}  // namespace

const SearchKernels indexed_from_9 = search_kernels_of<AnyIndexedTables>();

const MaintenanceKernels indexed_maintenance = {
    geometry_of_indexed,
    [](const View& view) { AnyIndexedTables::with_table(view, [](const auto& table) { clear_table(table); }); },
    [](const View& view, const u64* references, u64 count, u32* vectors, u64* invalid) {
        AnyIndexedTables::with_table(view, [&](const auto& table) {
            get_each(table.slots(), table.width(), references, count, vectors, invalid,
                     [&](u64 row, u32* vector) { return read_row(table, row, vector); });
        });
    },
    [](const View& view, u64 first, u64 last, u32* vectors, u64* references, u64* count) {
        AnyIndexedTables::with_table(view, [&](const auto& table) {
            export_each(table.width(), first, last, vectors, references, count,
                        [&](u64 row, u32* vector) { return read_row(table, row, vector); });
        });
    },
    [](const View& view, u64 first, u64 last, u64* lengths, u32 bins, ProbeTotals* totals) {
        AnyIndexedTables::with_table(view, [&](const auto& table) { measure_probes(table, first, last, lengths, bins, totals); });
    },
};

// Find-or-put, and then a pass over the references. Searches that combine values themselves would add as much code again (60 KB).
void upsert_indexed(const View& view, const SearchKernels& search, const BatchView& batch, const UpsertView& upsert)
{
    constexpr u64 most = 2048, ahead = 16;  // vectors at a time, and how far the pass prefetches values
    const u64 value_bytes = upsert.kind < NumberKind::U64 ? 4 : 8;
    const UpsertBatch values{batch, upsert};
    u64 of_block[most];
    for (u64 first = 0; first < batch.count; first += most) {
        BatchView block = batch;
        block.count = batch.count - first < most ? batch.count - first : most;
        block.vectors += first * view.as<IndexedView>().rows.width;
        if (batch.outcomes) block.outcomes += first;
        block.references = batch.references ? batch.references + first : of_block;
        search.find_or_put(view, block);
        const u64* const references = block.references;
        const auto is_stored = [&](u64 at) { return at < block.count && references[at] != batch.no_slot(); };
        for (u64 at = 0; at < block.count; ++at) {
            if (is_stored(at + ahead)) __builtin_prefetch(upsert.values + (references[at + ahead] & slot_mask) * value_bytes, 1);
            if (is_stored(at)) values.combine(first + at, references[at]);
        }
    }
}

void rebuild_indexed(const View& view, const View& larger, u64 first, u64 last, BatchCounts* counts)
{
    AnyIndexedTables::with_table(view, [&](const auto& old) {
        AnyIndexedTables::with_table(larger, [&](const auto& table) { rebuild(old, table, first, last, counts); });
    });
}

void list_holes_indexed(const View& view, u64 first, u64 last, u64* holes, u64 capacity, u64* count)
{
    AnyIndexedTables::with_table(view, [&](const auto& table) { list_holes(table, first, last, holes, capacity, count); });
}

void move_rows_indexed(const View& view, const RowMove* moves, u64 count)
{
    AnyIndexedTables::with_table(view, [&](const auto& table) { move_rows(table, moves, count); });
}

void count_unstored_indexed(const View& view, const u64* references, u64 count, u64* invalid)
{
    AnyIndexedTables::with_table(view, [&](const auto& table) { count_unstored(table, references, count, invalid); });
}

}  // namespace warpset
