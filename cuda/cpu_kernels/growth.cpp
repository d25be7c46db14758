// Growth of bucket tables, and of bucket tables that hold the roots of trees.
//
// If there is a second table, tables with vectors of 10 words or more grow by find-or-put of all vectors
// (src/backend/cpu/growth.rs). Growth by slices would take longer, because a slice does not fit the second-level cache (16 words,
// 8,192 slots: 512 KiB), and each of its lines is written twice.
#include "bucket.hpp"
#include "growth.hpp"

namespace warpset {
namespace {

// Calls `use(from, to)` with the tables of two views that differ in the number of buckets only.
template <class Use>
void with_tables(const View& from, const View& to, Use use)
{
    const auto use_both = [&](const auto& table) { use(table, std::decay_t<decltype(table)>{to.as<TableView>(), table.layout}); };
    const u32 width = from.as<TableView>().width;
    if (width <= 16) BucketTables<1, 16>::with_table(from, use_both);
    else BucketTablesOf<WideShapes>::with_table(from, use_both);
}

}  // namespace

void count_parts_of_buckets(const View& from, const View& to, u64* count, u64* units_a_part)
{
    with_tables(from, to, [&](const auto& table, const auto& larger) {
        const GrowthParts parts(table, larger);
        *count = parts.count;
        *units_a_part = parts.units_a_part;
    });
}

void fill_part_of_buckets(const View& from, const View& to, u64 part, bool writes, const LeftVectors& left, u64* count)
{
    with_tables(from, to, [&](const auto& table, const auto& larger) { *count = fill_part(table, larger, part, writes, left); });
}

void export_left_of_buckets(const View& from, u64 first, u64 last, const LeftVectors& left, u32* vectors, u64* count)
{
    with_tables(from, from, [&](const auto& table, const auto&) { *count = export_left(table, first, last, left, vectors); });
}

}  // namespace warpset
