// Growth of bucket tables of up to 9 words, and of the roots of trees that lie in one.
//
// From 10 words on a bucket is one slot, so nearly half of the vectors of a table that grows are not in their first bucket. Those
// of 16 words took as long as by find-or-put of all of them (126 and 127 ns a vector).
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

void count_parts_of_buckets(const View& view, u64* count)
{
    with_tables(view, view, [&](const auto& table, const auto&) { *count = Parts(table).count; });
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
