#include "filter.hpp"

namespace warpset {

void NewHashes::add(Filter filter, u64 hash)
{
    __builtin_prefetch(filter.word_of(hash), 1);
    u64& place = hashes[count % size];
    if (count >= size) filter.set(place);
    place = hash;
    ++count;
}

void NewHashes::finish(Filter filter) const
{
    for (u32 i = 0; i < (count < size ? count : size); ++i) filter.set(hashes[i]);
}

namespace {

// Hashes vectors and prefetches their words of the filter. `static_width`: words of a vector, or 0 to use `table.width`.
template <u32 static_width>
void hash_block(const TableView& table, Filter filter, const u32* vector, u32 count, u64* hashes)
{
    const u32 width = static_width != 0 ? static_width : table.width;
    for (u32 i = 0; i < count; ++i, vector += width) {
        hashes[i] = hash_vector(table.seeds, width, table.hash_mask, WordVector{vector});
        __builtin_prefetch(filter.word_of(hashes[i]), 1);
    }
}

}  // namespace

u32 Candidates::pass(const TableView& table, Filter filter, const BatchView& batch)
{
    // (2 words, ns per lookup of an absent vector: 4.8 with a loop for that width, 6.4 with one loop for all widths.)
    constexpr decltype(&hash_block<0>) of_width[] = {hash_block<0>, hash_block<1>, hash_block<2>, hash_block<3>, hash_block<4>,
                                                     hash_block<5>, hash_block<6>, hash_block<7>, hash_block<8>};
    u32 candidate = 0;
    while (candidate == 0 && next < batch.count) {
        const u32 count = static_cast<u32>(batch.count - next < block ? batch.count - next : block);
        u64 hashes[block];
        of_width[table.width <= 8 ? table.width : 0](table, filter, batch.vectors + next * table.width, count, hashes);
        // No branch here depends on a vector.
        for (u32 i = 0; i < count; ++i) {
            if (batch.outcomes) batch.outcomes[next + i] = static_cast<u8>(Outcome::Absent);
            if (batch.references) batch.references[next + i] = batch.no_slot();
            candidates[candidate] = {next + i, hashes[i]};
            candidate += filter.may_hold(hashes[i]);
        }
        next += count;
    }
    return candidate;
}

}  // namespace warpset
