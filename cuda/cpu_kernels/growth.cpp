// Growth of bucket tables, and of the roots of trees that lie in one.
#include "bucket.hpp"
#include "growth.hpp"

namespace warpset {
namespace {

// Calls `use(from, to)` with the tables of two views that differ in the number of buckets only.
template <class Use>
void with_tables(const View& from, const View& to, Use use)
{
    const auto use_both = [&](const auto& table) { use(table, std::decay_t<decltype(table)>{to.as<TableView>(), table.layout}); };
    // From 10 words on a bucket is one slot, and time is that of memory: they share kernels.
    if (from.as<TableView>().width <= 9) BucketTables<1, 9>::with_table(from, use_both);
    else BucketTablesOf<WideShapes>::with_table(from, use_both);
}

}  // namespace

void count_parts_of_buckets(const View& from, const View& to, u64* count)
{
    with_tables(from, to, [&](const auto& table, const auto& larger) { *count = GrowthParts(table, larger).count; });
}

void fill_part_of_buckets(const View& from, const View& to, u64 part, u64* left, u64* count)
{
    with_tables(from, to, [&](const auto& table, const auto& larger) { *count = fill_part(table, larger, part, {left}); });
}

void export_left_of_buckets(const View& from, u64 first, u64 last, u64* left, u32* vectors, u64* count)
{
    with_tables(from, from, [&](const auto& table, const auto&) { *count = export_left(table, first, last, {left}, vectors); });
}

}  // namespace warpset
