// Growth of bucket tables with vectors of up to 9 words, and of bucket tables that hold the roots of trees.
//
// Tables with vectors of 10 words or more grow by find-or-put of all vectors. Growth by slices would take longer, because a slice
// does not fit the second-level cache (16 words, 8,192 slots: 512 KiB), and each of its lines is written twice.
#include "bucket.hpp"
#include "growth.hpp"

namespace warpset {
namespace {

// Calls `use(from, to)` with the tables of two views that differ in the number of buckets only.
template <class Use>
void with_tables(const View& from, const View& to, Use use)
{
    const auto use_both = [&](const auto& table) { use(table, std::decay_t<decltype(table)>{to.as<TableView>(), table.layout}); };
    BucketTables<1, 9>::with_table(from, use_both);
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
