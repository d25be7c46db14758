// Builder for incremental searches: a warp makes the root pairs of its vectors, with one lane for every changed word.
//
// As in tree/incremental.cuh, only the pairs on the *ways* matter: the paths from the root to the changed words. Here each way
// has its own lane. A warp takes as many vectors as together have 32 changed words. All lanes open their ways, from the root
// down, and then close them, from below, one level at a time:
//
//                                        lane 0   lane 1   lane 2      of a vector whose words 1, 2 and 7 have changed
//   depth 0, the root pair (r0, r1)        o
//   depth 1, (w0..w3), (w4..w7)            o ------------>   o         a pair that ways share belongs to the first of them:
//   depth 2, (w0, w1) (w2, w3) (w6, w7)    o --->   o        o         lane 1 *joins* lane 0 at depth 1, lane 2 at depth 0
//   words                                 w1       w2       w7
//
// To open its way, a lane reads all pairs on it, and keeps those that belong to it in shared memory. (Lanes read the same node at
// the same time, so their reads of one parent's pairs share requests.) To close it, the lane replaces the word in the lowest
// pair. Then it finds or puts its own pairs from below, and writes each reference into the pair above, which is its own or
// belongs to the lane that it joins. So no lane waits for another one that has more to do.
//
// H200, walks of 2^26 states of 8 / 16 / 32 words (`cargo bench --bench walks`, even), a node table of 4 million slots, G/s:
//   - one lane per way, as here: 11.2 / 9.5 / 8.5;
//   - one lane per vector, one pair after another (incremental_key): in passes of half the lanes 8.0 / 6.5 / 5.8, in passes of
//     all lanes 8.6 / 7.7 / -;
//   - one lane per vector, up to four of its ways level by level: 8.4 / 6.9 / 5.8.
// Throughput is bound by instructions. By the hardware counters, the second variant executes 83 warp instructions per vector,
// with 17 of 32 lanes active. The first one executes 56, with 25 active, since the search for a single node has its own loop.
// With that loop and a node table half full, the rates are 12.6 / 10.8 / 9.1 with 36 resident warps, 12.2 / 10.4 / 9.0 with 32
// and 12.2 / 10.1 / 8.9 with 40.
//
// A vector with more than 32 changed words, or without a readable parent, interrupts the passes. The search first resolves all
// vectors that it has. Then the warp makes the root pairs of 32 vectors, from that one on, with one lane per vector
// (incremental_key). That code is separate from the search, because it would cost the search registers.
//
// Root pairs are made ahead of the search, which takes some whenever lanes become free. So each pass can give every lane a way.
#pragma once

#include "warpset/bucket/builder.cuh"
#include "warpset/bucket/warp_search.cuh"
#include "warpset/core/batch_view.cuh"
#include "warpset/tree/incremental.cuh"
#include "warpset/tree/table.cuh"

namespace warpset {

template <class RootTable, u32 width, class Strategy, Operation operation>
struct Builder<TreeTable<RootTable, width, Strategy>, operation, Offer::Incremental> {
    static_assert(operation == Operation::FindOrPut, "incremental is a way to put");
    using Table = TreeTable<RootTable, width, Strategy>;
    static_assert(Table::is_incremental, "the way to the next changed word is to the right of the one before");
    using Search = WarpSearch<typename Table::Roots, operation, true>;
    using Warp = platform::Warp;
    using Shape = typename Table::Shape;
    using Path = typename Shape::Path;

    static constexpr u32 levels = Shape::levels(width);
    static constexpr u32 mask_words = (width + 31) / 32;
    static constexpr u32 capacity = 2 * Warp::size;  // finished root pairs that are not yet taken
    // Whether one lane per vector reads the parents' root pairs in advance. Decompressing a root pair takes some 100
    // instructions, which otherwise all lanes of a vector would execute.
    static constexpr bool reads_ahead = Table::Roots::is_compact;
    static constexpr u32 scratch_bytes = (levels * Warp::size + capacity + (reads_ahead ? capacity : 0)) * 8;

    const Table& table;
    u32* halves;    // the pair of lane l at depth d is at 2 * (d * Warp::size + l) and the next
    u64* made;      // root pair of vector i at i % capacity; its left half is `missing` if the node table is full
    u32 end = 0;    // end of the vectors whose root pairs are made
    u32 read = 0;   // end of the vectors with a parent's root pair in `made[capacity + i % capacity]` (left half `missing`: none)
    u32 fresh = 0;  // nodes that this lane has put

    WARPSET_FN Builder(const Table& table, u8* scratch)
        : table(table), halves(reinterpret_cast<u32*>(scratch)), made(reinterpret_cast<u64*>(scratch) + levels * Warp::size)
    {
    }

    // Makes the root pairs of vectors `next .. next + count`, and perhaps of more, up to `last`. Returns how many of the `count`
    // are ready: fewer than `count`, down to 0, if one of them must be made alone.
    template <class Batch>
    WARPSET_FN u32 ready(const Batch& batch, u32 next, u32 count, u32 last)
    {
        if (end < next) end = next;  // the first time
        while (end < next + count) {
            const u32 vectors = make(batch, last);
            if (vectors == 0) break;
            end += vectors;
        }
        return end < next + count ? end - next : count;
    }

    // Writes the ready root pairs from vector `next` on, in order, to the scratch memory of the lanes set in `takers`. Returns
    // true on a lane whose vector has no root pair because no node was free.
    template <class Batch>
    WARPSET_FN bool take(const Search& search, const Batch&, u32 next, u32, u32 takers)
    {
        bool missing = false;
        if (takers >> Warp::lane() & 1) {
            const u32 rank = platform::population_count(takers & below(Warp::lane()));
            const u64 root = made[(next + rank) % capacity];
            // The left half of a root pair is a reference: these vectors have three words or more.
            missing = Table::half(root, 0) == NodeTable::missing;
            *reinterpret_cast<u64*>(search.vector_of(Warp::lane())) = table.pack(root).value;
        }
        Warp::sync();
        return missing;
    }

    // Makes the next root pairs with one lane per vector, for vectors of any kind. When called, no root pair is ready.
    template <class Batch>
    WARPSET_FN void make_alone(const Batch& batch, u32 last)
    {
        const u32 index = end + Warp::lane();
        if (index < last) {
            u64 root;
            const u64 parent = parent_slot(batch, index);
            u64* pairs = reinterpret_cast<u64*>(halves) + Warp::lane();
            const bool complete = incremental_key(table, parent, ChangedVectorOf<Batch>{batch, width, index},
                                                  OpenPairs<Warp::size>{pairs}, root, fresh);
            made[index % capacity] = complete ? root : NodeTable::missing;
        }
        end = last - end < Warp::size ? last : end + Warp::size;
        // A barrier ends this step of the batch (batch/search.cuh); the root pairs are taken after it.
    }

    WARPSET_FN void finish() const
    {
        if (fresh != 0) platform::add_relaxed(table.nodes.view.stored, fresh);
    }

private:
    // Way that a lane handles in a pass.
    struct Way {
        u32 vector;    // number of the vector in the pass
        u32 head;      // the lane of this vector's first way
        Path path;     // length 0 if the vector has no way, or does not belong to the pass
        u32 start;     // depth of the first pair that belongs to this lane
        u32 joins;     // the lane that owns the pair above that one
        u32 value;     // the word

        WARPSET_FN bool owns(u32 depth) const { return depth >= start && depth < path.length; }
        WARPSET_FN u32 owner(u32 depth) const { return depth >= start ? Warp::lane() : joins; }
        WARPSET_FN u32 side(u32 depth) const { return path.sides >> depth & 1; }
    };

    // Makes the root pairs of the vectors from `end` on: as many as together have at most 32 ways. Stops before a vector that
    // must be made alone. Returns the number of root pairs.
    template <class Batch>
    WARPSET_FN u32 make(const Batch& batch, u32 last)
    {
        const u32 lane = Warp::lane();
        const u32 index = end + lane;
        if (reads_ahead) read_parents(batch, last);
        const u32 first_mask = index < last ? mask(batch, index, 0) : 0;
        const u32 wanted = index < last ? lanes_for(batch, index, first_mask) : 0;
        const u32 ways = Warp::sum_up_to(wanted);
        const u32 fitting = Warp::ballot(index < last && ways <= Warp::size);
        u32 vectors = platform::population_count(fitting);
        if (vectors == 0) return 0;  // the first has too many ways
        const u32 heads = Warp::any(fitting >> lane & 1 ? 1u << (ways - wanted) : 0);

        Way way = find_way(batch, heads, first_mask, lane < Warp::shuffle(ways, vectors - 1));
        const u32 unreadable = Warp::ballot(!open(batch, way));
        if (unreadable != 0) {
            vectors = Warp::shuffle(way.vector, platform::lowest_bit(unreadable));
            if (way.vector >= vectors) way.path.length = 0;
        }
        Warp::sync();
        if (way.path.length != 0) exchange(way, way.path.length - 1, way.value);
        Warp::sync();
        const u32 behind = heads & ~(below(way.head) | 1u << way.head);
        const bool complete = close(way, ~below(way.head) & (behind == 0 ? ~0u : below(platform::lowest_bit(behind))));
        if ((heads >> lane & 1) && way.vector < vectors) {
            const u64 root = reinterpret_cast<const u64*>(halves)[lane];
            made[(end + way.vector) % capacity] = complete ? root : NodeTable::missing;
        }
        Warp::sync();
        return vectors;
    }

    // Reads the parents' root pairs of all vectors that the next pass may take.
    template <class Batch>
    WARPSET_FN void read_parents(const Batch& batch, u32 last)
    {
        if (read < end) read = end;
        while (read < last && read - end < Warp::size) {
            const u32 index = read + Warp::lane();
            if (index < last) {
                u64 pair;
                const bool stored = table.read_root(parent_slot(batch, index), pair);
                made[capacity + index % capacity] = stored ? pair : NodeTable::missing;
            }
            read = last - read < Warp::size ? last : read + Warp::size;
        }
        Warp::sync();
    }

    // Reads the root pair of the parent of one of the pass's vectors. Returns false if the parent has no readable root pair.
    template <class Batch>
    WARPSET_FN bool parent_of(const Batch& batch, u32 vector, u64& pair) const
    {
        if constexpr (!reads_ahead) return table.read_root(parent_slot(batch, end + vector), pair);
        pair = made[capacity + (end + vector) % capacity];
        return Table::half(pair, 0) != NodeTable::missing;
    }

    // Number of lanes for a vector: one for each changed word, or one if no word has changed.
    template <class Batch>
    WARPSET_FN static u32 lanes_for(const Batch& batch, u32 index, u32 first_mask)
    {
        u32 count = platform::population_count(first_mask);
        for (u32 i = 1; i < mask_words; ++i) count += platform::population_count(mask(batch, index, i));
        return count == 0 ? 1 : count;
    }

    template <class Batch>
    WARPSET_FN static u32 mask(const Batch& batch, u32 index, u32 i)
    {
        constexpr u32 last_bits = width % 32 == 0 ? ~0u : (1u << width % 32) - 1;
        const u32 bits = ChangedVectorOf<Batch>{batch, width, index}.mask(i);
        return i == mask_words - 1 ? bits & last_bits : bits;
    }

    template <class Batch>
    WARPSET_FN Way find_way(const Batch& batch, u32 heads, u32 first_mask, bool used) const
    {
        const u32 lane = Warp::lane();
        Way way{};
        const u32 heads_up_to = heads & (below(lane) | 1u << lane);
        way.head = highest(heads_up_to);
        way.vector = platform::population_count(heads_up_to) - 1;
        first_mask = Warp::shuffle(first_mask, way.vector);
        if (used) {
            const u32 index = end + way.vector;
            const u32 word = nth_changed(batch, index, first_mask, lane - way.head);
            if (word < width) {
                way.path = Shape{width}.path(word);
                way.value = ChangedVectorOf<Batch>{batch, width, index}.word(word);
            }
        }
        // The ways of one vector are in order: a way branches off from the one before it where their sides first differ.
        const u32 before = Warp::shuffle(way.path.sides, (lane - 1) % Warp::size);
        way.start = lane == way.head ? 0 : platform::lowest_bit(before ^ way.path.sides) + 1;
        for (u32 start = 1; start <= levels; ++start) {
            const u32 earlier = Warp::ballot(way.start < start);
            if (way.start == start) way.joins = highest(earlier & below(lane));
        }
        return way;
    }

    // The n-th changed word of a vector; `width` if it has fewer.
    template <class Batch>
    WARPSET_FN static u32 nth_changed(const Batch& batch, u32 index, u32 first_mask, u32 n)
    {
        u32 count = 0, found = width;
        for (u32 i = 0; i < mask_words; ++i) {
            u32 bits = i == 0 ? first_mask : mask(batch, index, i);
            const u32 here = platform::population_count(bits);
            if (found == width && n < count + here) {
                for (u32 skip = n - count; skip > 0; --skip) bits &= bits - 1;
                found = i * 32 + platform::lowest_bit(bits);
            }
            count += here;
        }
        return found;
    }

    // Reads the pairs on a way from the parent's tree. Returns false if one of them is not visible.
    template <class Batch>
    WARPSET_FN bool open(const Batch& batch, const Way& way) const
    {
        u64 pair;
        if (!parent_of(batch, way.vector, pair)) return false;
        u64* pairs = reinterpret_cast<u64*>(halves) + Warp::lane();
        if (way.start == 0) pairs[0] = pair;
        WARPSET_UNROLL_BY(1)
        for (u32 depth = 1; depth < way.path.length; ++depth) {
            if (!table.read_node(Table::half(pair, way.side(depth - 1)), pair)) return false;
            if (way.owns(depth)) pairs[depth * Warp::size] = pair;
        }
        return true;
    }

    // Writes a word or a reference into that half of a pair through which the way leads.
    WARPSET_FN void exchange(const Way& way, u32 depth, u32 value) const
    {
        halves[2 * (depth * Warp::size + way.owner(depth)) + way.side(depth)] = value;
    }

    // Finds or puts the pairs of all ways, except the root pairs. `lanes` are those of this lane's vector. If the node table is
    // full for one of the vector's pairs, returns false on all of these lanes and puts nothing more for the vector, because the
    // pairs above would refer to a missing node.
    WARPSET_FN bool close(const Way& way, u32 lanes)
    {
        bool complete = true;
        WARPSET_UNROLL_BY(1)
        for (u32 depth = levels - 1; depth > 0; --depth) {
            if (way.owns(depth) && complete) {
                const u64 pair = reinterpret_cast<const u64*>(halves)[depth * Warp::size + Warp::lane()];
                const u32 reference = table.nodes.template find<operation>(pair, fresh);
                complete = reference != NodeTable::missing;
                exchange(way, depth - 1, reference);
            }
            complete = (Warp::ballot(!complete) & lanes) == 0;
            Warp::sync();
        }
        return complete;
    }

    WARPSET_FN static u32 below(u32 lane) { return (1u << lane) - 1; }
    WARPSET_FN static u32 highest(u32 bits) { return 31 - platform::leading_zeros(bits); }
};

}  // namespace warpset
