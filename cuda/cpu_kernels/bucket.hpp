// Searches of bucket tables.
#pragma once

#include "filter.hpp"

namespace warpset {

// Tables of the shapes that `Shapes::with_shape` chooses by the width of a vector and its slots.
template <class Shapes>
struct BucketTablesOf {
    template <class Use>
    static void with_table(const View& view, Use use)
    {
        const TableView& table = view.as<TableView>();
        Shapes::with_shape(table.width, view.slots, [&](auto shape) { use(BucketTable<decltype(shape)>{table, {shape}}); });
    }
};

// Shapes for widths from `first_width` to `last_width`, at most 16 words.
template <u32 first_width, u32 last_width>
struct NarrowShapes {
    // Calls `use(shape)` with the shape for a width. The lines are as long as `Spec::bucket` says. Slots of 3 to 16 words are
    // claimed in chunks of 8 bytes (src/backend/cpu/cas_width.rs).
    template <u32 width_words = first_width, class Use>
    static void with_shape(u32 width, SlotsOf slots, Use use)
    {
        if constexpr (width_words < last_width) {
            if (width != width_words) return with_shape<width_words + 1>(width, slots, use);
        }
        if constexpr (width_words <= 2 && has_chunks_of_16) {
            if (slots.chunk_bytes == 16) return use(StaticShape<width_words, 16, 32>{});
        }
        use(StaticShape<width_words, 8, 64>{});
    }
};

// Shapes for wider vectors.
struct WideShapes {
    template <class Use>
    static void with_shape(u32 width, SlotsOf slots, Use use)
    {
        if constexpr (has_chunks_of_16) {
            if (slots.chunk_bytes == 16) {
                switch (slots.words) {
                    case 20: return use(SlotShape<20>{width});
                    case 24: return use(SlotShape<24>{width});
                    case 28: return use(SlotShape<28>{width});
                    case 32: return use(SlotShape<32>{width});
                    case 64: return use(SlotShape<64>{width});
                    default: return use(DynamicShape<16>{width, slots.words});
                }
            }
        }
        use(DynamicShape<8>{width, slots.words});
    }
};

// Whether the tables that a kernel searches have a filter.
enum class Filtered { No, Yes, Either };

// Searches for a batch as `SearchBatch::run_thread` does, and uses the filter if the table has one. With a filter, a put also
// sets the bits of its new vectors, and a lookup searches only for the vectors that the filter does not rule out. (Without
// `__builtin_expect`, searches of 11 to 16 words took 1 to 2 % longer.)
template <Operation operation, Filtered filtered, class Shape>
void search_buckets(const BucketTable<Shape>& table, const BatchView& batch, Filter filter)
{
    constexpr u32 max_turns = Shape::static_width == 1 ? 32 : 24;
    using Search = ThreadSearch<BucketTable<Shape>, operation>;
    struct Turn {
        u64 index;  // position of the vector in the batch
        WordVector key;
        u64 hash;
        Search search;
    };
    const u32 width = table.width();
    const bool is_filtered = filtered == Filtered::Either ? filter.words != nullptr : filtered == Filtered::Yes;
    const bool passes = operation == Operation::Find && is_filtered;
    Results<operation, BatchView> results{table.stored_count(), batch};
    Candidates left;
    NewHashes fresh;
    u64 next = 0, end = passes ? 0 : batch.count;
    // Takes the next vector. Returns false if there is none.
    const auto begin = [&](Turn& turn) {
        if (next == end) {
            if (!passes) return false;
            next = 0;
            end = left.pass(table.view, filter, batch);
            if (end == 0) return false;
        }
        u64 hash;
        if (__builtin_expect(passes, 0)) {
            turn.index = left.candidates[next].index;
            turn.key = WordVector{batch.vectors + turn.index * width};
            hash = left.candidates[next].hash;
        } else {
            turn.index = next;
            turn.key = WordVector{batch.vectors + next * width};
            hash = table.hash(turn.key);
        }
        if (operation == Operation::FindOrPut) turn.hash = hash;
        turn.search.begin(table, turn.key, hash);
        ++next;
        return true;
    };
    typename Search::Lane lane{};
    Turn turns[max_turns];
    u32 unused = max_turns;  // turns that have had no vector yet; see `run_thread`
    for (Turn *turn = turns, *last = turns + max_turns; last != turns; turn = turn + 1 < last ? turn + 1 : turns) {
        const bool is_unused = unused != 0;
        if (__builtin_expect(is_unused, 0)) {
            --unused;
        } else {
            const Found found = turn->search.step(table, turn->key, lane);
            if (found.outcome == Outcome::Pending) continue;
            const bool stored = found.outcome == Outcome::New || found.outcome == Outcome::Seen;
            results.record(turn->index, found.outcome, stored ? batch.reference_to(found.reference) : batch.no_slot());
            const bool is_new = operation == Operation::FindOrPut && found.outcome == Outcome::New;
            if (is_new && __builtin_expect(is_filtered, 0)) fresh.add(filter, turn->hash);
        }
        if (begin(*turn)) continue;
        if (__builtin_expect(is_unused, 0)) {
            unused = 0;
            last = turn;
        } else {
            *turn = *--last;
        }
    }
    if (operation == Operation::FindOrPut && is_filtered) fresh.finish(filter);
    results.finish();
    if (batch.counts) platform::add_relaxed(&batch.counts->offered, batch.count);
}

// Tables with and without a filter share kernels. (Separate kernels for those with a filter were 186 KB of machine code, and took
// a fifth of the time to compile all.) Only vectors of one and two words have separate kernels: their searches take 7 to 20 ns,
// and would take 2 to 6 % longer in shared kernels. On a processor without claims of 16 bytes, these vectors use shared kernels
// too.
template <class Shape>
constexpr bool has_both_kernels()
{
    if constexpr (Shape::static_width == 1 || Shape::static_width == 2)
        return Shape::claim_bytes() == (has_chunks_of_16 ? 16 : 8);
    else
        return false;
}

template <class Tables, Operation operation>
void search_buckets_of(const View& view, const BatchView& batch)
{
    const Filter filter{view.filter, view.filter_words};
    Tables::with_table(view, [&](const auto& table) {
        using Shape = typename std::decay_t<decltype(table)>::Layout;
        if constexpr (has_both_kernels<Shape>()) {
            if (filter.words) return search_buckets<operation, Filtered::Yes>(table, batch, filter);
            search_buckets<operation, Filtered::No>(table, batch, filter);
        } else {
            search_buckets<operation, Filtered::Either>(table, batch, filter);
        }
    });
}

template <class Tables>
constexpr SearchKernels bucket_searches_of()
{
    return {search_buckets_of<Tables, Operation::FindOrPut>, search_buckets_of<Tables, Operation::Find>};
}

template <u32 first_width, u32 last_width>
using BucketTables = BucketTablesOf<NarrowShapes<first_width, last_width>>;

}  // namespace warpset
