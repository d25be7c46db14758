//! Mutants of parts that all tables share: claims of chunks, searches of buckets, and loops over batches and slots. The tests use
//! all specs.

use super::{Group, Mutant};

pub const GROUP: Group = Group { modules: &["bucket", "compact", "indexed", "tree"], specs: "", mutants: MUTANTS };

/// Searches for vectors of one word.
pub const LANES: Group = Group { modules: &["bucket"], specs: "bucket_1_16", mutants: LANE_MUTANTS };

/// Batches in bulk.
pub const BULK: Group =
    Group { modules: &["bucket::bulk"], specs: "bucket_1_16_32,bucket_2_16_32,bucket_4_16_64", mutants: BULK_MUTANTS };

const BULK_MUTANTS: &[Mutant] = &[
    Mutant {
        what: "bulk: the barrier before a slice is copied back",
        file: "warpset/bucket/bulk_filler.cuh",
        from: "        const u32 hits = put_vectors(slice, count);\n        Block::sync();\n",
        to: "        const u32 hits = put_vectors(slice, count);\n",
    },
    Mutant {
        what: "bulk: the room of a part is its capacity",
        file: "warpset/bucket/bulk.cuh",
        from: "if (place < run_end(run)) to[",
        to: "if (place <= run_end(run)) to[",
    },
    Mutant {
        what: "bulk: vectors whose walk leaves the slice are left",
        file: "warpset/bucket/bulk_filler.cuh",
        from: "return stays ? goes_on : is_left;",
        to: "return stays ? goes_on : static_cast<u32>(Outcome::Full);",
    },
    Mutant {
        what: "bulk: a walk leaves the slice where that of find-or-put does",
        file: "warpset/core/probe.cuh",
        from: "return (probes & (view.slice_mask >> looked_at_log2)) != 0 && probes < view.probe_limit;",
        to: "return probes < view.probe_limit;",
    },
    Mutant {
        what: "bulk: a search that goes on has gone past one bucket more",
        file: "warpset/bucket/bulk_filler.cuh",
        from: "            search.probes = probe.probes;\n",
        to: "",
    },
    Mutant {
        what: "bulk: vectors that some slots may not hold are left",
        file: "warpset/bucket/bulk_filler.cuh",
        from: "        if (head < classes || second_half == 0) return",
        to: "        if (second_half == 0) return",
    },
    Mutant {
        what: "bulk: vectors with a half that is EMPTY are left",
        file: "warpset/bucket/bulk_filler.cuh",
        from: "        if (head < classes || second_half == 0) return",
        to: "        if (head < classes) return",
    },
    Mutant {
        what: "bulk: a slot with a half that is EMPTY is blocked",
        file: "warpset/bucket/bulk_filler.cuh",
        from: "        if (has_halves && (image.low == 0) != (image.high == 0)) image.low = blocked;\n",
        to: "",
    },
    Mutant {
        what: "bulk: a blocked slot is not copied back",
        file: "warpset/bucket/bulk_filler.cuh",
        from: "            if (has_halves && image.low == blocked) continue;\n",
        to: "",
    },
    Mutant {
        what: "bulk: no stored vector looks EMPTY",
        file: "warpset/bucket/bulk_filler.cuh",
        from: "return image < classes ? image ^ slot_class : image;",
        to: "return image == slot_class ? Word{0} : image;",
    },
    Mutant {
        what: "bulk: a search goes on behind a slot whose head alone is that of its vector",
        file: "warpset/bucket/bulk_filler.cuh",
        from: "            search.slot = found + 1;\n",
        to: "            search.slot = found + 2;\n",
    },
    Mutant {
        what: "bulk: searches are read before others are kept in their place",
        file: "warpset/bucket/bulk_filler.cuh",
        from: "                // Other lanes write there next.\n                Warp::sync();\n",
        to: "",
    },
    Mutant {
        what: "bulk: searches are kept before others read them",
        file: "warpset/bucket/bulk_filler.cuh",
        from: "        progress.kept += platform::population_count(going_on);\n        Warp::sync();\n",
        to: "        progress.kept += platform::population_count(going_on);\n",
    },
    Mutant {
        what: "bulk: outcomes of vectors that were put at once stay as they are",
        file: "warpset/bucket/bulk.cuh",
        from: "if (known == 15 && reinterpret_cast",
        to: "if (reinterpret_cast",
    },
    Mutant {
        what: "bulk: only vectors that were left are put once more",
        file: "warpset/bucket/bulk.cuh",
        from: "for (u32 rest = marks[word];",
        to: "for (u32 rest = vectors - word * 32 < 32 ? (1u << (vectors - word * 32)) - 1 : ~0u;",
    },
];

const LANE_MUTANTS: &[Mutant] = &[
    Mutant {
        what: "the rule that a vector is not put where it equals EMPTY (by a lane)",
        file: "warpset/bucket/lane_search.cuh",
        from: "u32 left = seen.equal ^ seen.empty;",
        to: "u32 left = seen.equal | seen.empty;",
    },
    Mutant {
        what: "the claim of a slot: lanes that agree with it report New, too (by a lane)",
        file: "warpset/bucket/lane_search.cuh",
        from: "if (decision == Decision::Agreed) return Outcome::Seen;",
        to: "if (decision == Decision::Agreed) return Outcome::New;",
    },
    Mutant {
        what: "the slots after a lost claim (by a lane)",
        file: "warpset/bucket/lane_search.cuh",
        from: "left != 0; left &= left - 1)",
        to: "left != 0; left = 0)",
    },
    Mutant {
        what: "the order of the halves of a bucket (by a lane)",
        file: "warpset/bucket/lane_search.cuh",
        from: "compare(seen, bucket_class, (side ^ 1) * half_slots + i, others, vector);",
        to: "compare(seen, bucket_class, side * half_slots + i, others, vector);",
    },
];

const MUTANTS: &[Mutant] = &[
    Mutant {
        what: "the compare-and-swap that confirms a chunk seen EMPTY",
        file: "warpset/core/claim.cuh",
        from: "    if (seen == empty) seen = claim(chunk, empty, value);\n",
        to: "    if (seen == empty) claim(chunk, empty, value);\n",
    },
    Mutant {
        what: "the comparison with the value that a failed compare-and-swap returned: the loser goes on to the next slot",
        file: "warpset/core/claim.cuh",
        from: "    if (seen == empty) return Decision::Won;\n    return seen == value ? Decision::Agreed : Decision::Different;",
        to: "    if (seen == empty) return Decision::Won;\n    return Decision::Different;",
    },
    Mutant {
        what: "the comparison with the value that a failed compare-and-swap returned: the loser takes the slot for its own",
        file: "warpset/core/claim.cuh",
        from: "    if (seen == empty) return Decision::Won;\n    return seen == value ? Decision::Agreed : Decision::Different;",
        to: "    if (seen == empty) return Decision::Won;\n    return Decision::Agreed;",
    },
    Mutant {
        what: "the prefix check before a later chunk (by one thread)",
        file: "warpset/bucket/table.cuh",
        from: "chunk < layout.chunks() && decision != Decision::Different; ++chunk)",
        to: "chunk < layout.chunks(); ++chunk)",
    },
    Mutant {
        what: "the prefix check before a later chunk (by a warp)",
        file: "warpset/bucket/warp_search.cuh",
        from: "            if (different) continue;\n",
        to: "            if (different && first_empty == ~0u) continue;\n",
    },
    Mutant {
        what: "the prefix check after a lost claim (by a warp)",
        file: "warpset/bucket/warp_search.cuh",
        from: "        if (decision == Decision::Different) {\n            chunk = look;",
        to: "        if (decision == Decision::Different && chunk + 1 == layout.chunks()) {\n            chunk = look;",
    },
    Mutant {
        what: "the order of chunks: the last EMPTY one of a slot is claimed first (by a warp)",
        file: "warpset/bucket/warp_search.cuh",
        from: "if (empty != 0) first_empty = platform::lowest_bit(empty);",
        to: "while (empty != 0) { first_empty = platform::lowest_bit(empty); empty &= empty - 1; }",
    },
    Mutant {
        what: "the order of chunks: the second before the first (by one thread)",
        file: "warpset/bucket/table.cuh",
        from: "decision = decide_chunk(bucket, index, chunk, vector, decision == Decision::Won);",
        to: "decision = decide_chunk(bucket, index, layout.chunks() > 1 && chunk < 2 ? 1 - chunk : chunk, vector, false);",
    },
    Mutant {
        what: "the claim of the last chunk: threads that agree with it report New, too (by a warp)",
        file: "warpset/bucket/warp_search.cuh",
        from: "return decision == Decision::Won ? Outcome::New : Outcome::Seen;",
        to: "return Outcome::New;",
    },
    Mutant {
        what: "the claim of the last chunk: a thread that won any chunk reports New (by one thread)",
        file: "warpset/bucket/table.cuh",
        from: "            Decision decision = peek == Peek::Empty ? Decision::Won : Decision::Agreed;\n            for (u32 \
               chunk = 0; chunk < layout.chunks() && decision != Decision::Different; ++chunk)\n                decision = \
               decide_chunk(bucket, index, chunk, vector, decision == Decision::Won);\n            if (decision == \
               Decision::Different) continue;",
        to: "            Decision decision = peek == Peek::Empty ? Decision::Won : Decision::Agreed;\n            bool won = \
             false;\n            for (u32 chunk = 0; chunk < layout.chunks() && decision != Decision::Different; ++chunk) {\n\
             \x20               decision = decide_chunk(bucket, index, chunk, vector, decision == Decision::Won);\n\
             \x20               won |= decision == Decision::Won;\n            }\n            if (decision == \
             Decision::Different) continue;\n            if (won) decision = Decision::Won;",
    },
    Mutant {
        what: "the rule that a vector is not put where a chunk of it equals EMPTY (by one thread)",
        file: "warpset/bucket/table.cuh",
        from: "            if (forbids(forbidden, bucket, index)) continue;\n            const Peek peek = peek_at(bucket, \
               index, vector);\n            if (peek == Peek::Holds) return {Outcome::Seen, slot_number(bucket, \
               index)};\n            if (peek == Peek::Other) continue;\n            Decision decision = peek ==",
        to: "            const Peek peek = Peek::Begun;\n            Decision decision = peek ==",
    },
    Mutant {
        what: "the rule that a vector is not put where a chunk of it equals EMPTY (by a warp)",
        file: "warpset/bucket/warp_search.cuh",
        from: "            if (table.forbids(forbidden, probe.bucket, slot)) continue;\n",
        to: "",
    },
    Mutant {
        what: "all chunks but the last one in is_complete",
        file: "warpset/bucket/table.cuh",
        from: "for (u32 chunk = layout.chunks(); complete && chunk-- > 0;)",
        to: "for (u32 chunk = layout.chunks(); complete && chunk-- > layout.chunks() - 1;)",
    },
    Mutant {
        what: "the barrier between seeing slots complete and reading them for another lane",
        file: "warpset/batch/maintenance.cuh",
        from: "        Warp::sync();\n        u64 row = 0;\n",
        to: "        u64 row = 0;\n",
    },
    Mutant {
        what: "the barrier between the last look at a vector in scratch memory and the next vector",
        file: "warpset/batch/search.cuh",
        from: "            Warp::sync();  // a vector is read by its tile until here",
        to: "            // a vector is read by its tile until here",
    },
    Mutant {
        what: "the barrier between the list of looking lanes and the lanes that read it",
        file: "warpset/bucket/warp_search.cuh",
        from: "                Warp::sync();\n                if (Warp::lane() < turns) owner_of_turn",
        to: "                if (Warp::lane() < turns) owner_of_turn",
    },
    Mutant {
        what: "the turn of a lane: it takes the votes of another lane's bucket",
        file: "warpset/bucket/warp_search.cuh",
        from: "shares_looks ? my_turn - (first + i * tiles)",
        to: "shares_looks ? my_turn - first",
    },
    Mutant {
        what: "the barrier after vectors have been copied to scratch memory",
        file: "warpset/bucket/builder.cuh",
        from: "        }\n        Warp::sync();\n        return false;\n",
        to: "        }\n        return false;\n",
    },
    Mutant {
        what: "the barrier after the ranks of lanes have been written",
        file: "warpset/bucket/builder.cuh",
        from: "            Warp::sync();\n            WARPSET_UNROLL_BY(1)\n",
        to: "            WARPSET_UNROLL_BY(1)\n",
    },
    Mutant {
        what: "the part of one lane in a vote",
        file: "warpset/core/results.cuh",
        from: "        u32 hit = platform::Warp::ballot(outcome ==",
        to: "        u32 hit = platform::Warp::lane() == 7 && outcome != Outcome::Pending ? 0 : platform::Warp::ballot(outcome ==",
    },
    Mutant {
        what: "the clearing of the last slot",
        file: "warpset/batch/maintenance.cuh",
        from: "    const auto share = platform::Grid::share(blocks * block_words);\n",
        to: "    const auto share = platform::Grid::share(blocks * block_words + 1);\n",
    },
    Mutant {
        what: "the count of stored vectors (by one thread)",
        file: "warpset/bucket/table.cuh",
        from: "        platform::count_relaxed(view.stored, found.outcome == Outcome::New);\n",
        to: "",
    },
    Mutant {
        what: "a probe: vectors leave a bucket with a free slot (by a warp)",
        file: "warpset/bucket/warp_search.cuh",
        from: "return go_on_at(index + 1);",
        to: "return go_on_at(layout.slots_per_bucket());",
    },
    Mutant {
        what: "growth by slices: the barrier before slots are counted",
        file: "warpset/bucket/block_growth.cuh",
        from: "        slots.counters.clear(slots.buckets());\n        Block::sync();\n",
        to: "        slots.counters.clear(slots.buckets());\n",
    },
    Mutant {
        what: "growth by slices: the barrier before a part is copied from shared memory",
        file: "warpset/bucket/block_growth.cuh",
        from: "move_chunks() : move_vectors();\n        Block::sync();\n",
        to: "move_chunks() : move_vectors();\n",
    },
    Mutant {
        what: "growth by slices: EMPTY in the free slots of a part in shared memory",
        file: "warpset/bucket/block_growth.cuh",
        from: "if (index >= taken) unit.chunk[i] = empty;",
        to: "if (index > taken) unit.chunk[i] = empty;",
    },
    Mutant {
        what: "growth by slices: a block has one opinion whether the list is full",
        file: "warpset/bucket/block_growth.cuh",
        from: "const bool is_full = counters.words[0] != 0;",
        to: "const bool is_full = platform::load_relaxed(left.count) > left.capacity;",
    },
    Mutant {
        what: "growth in place: the barrier before a wave is done",
        file: "warpset/bucket/block_growth.cuh",
        from: "    Block::sync();\n    if (Block::thread() != 0) return;\n",
        to: "    if (Block::thread() != 0) return;\n",
    },
    Mutant {
        what: "growth by slices: one part that leaves a vector",
        file: "warpset/bucket/growth.cuh",
        from: " && number == parts.first_reader(from_unit)",
        to: "",
    },
    Mutant {
        what: "the clearing of the virtual node",
        file: "warpset/batch/maintenance.cuh",
        from: "platform::Grid::share(table.nodes.zero() + 1ull)",
        to: "platform::Grid::share(table.nodes.zero())",
    },
    Mutant {
        what: "the outcome of a vector that lacks a node (by a warp)",
        file: "warpset/batch/search.cuh",
        from: "if (takes && !resolved) search.begin();",
        to: "if (takes) search.begin();",
    },
    Mutant {
        what: "the count of unreadable words, except the first word of a row",
        file: "warpset/batch/maintenance.cuh",
        from: "        else platform::add_relaxed(invalid, 1);\n",
        to: "        else if (word == 0) platform::add_relaxed(invalid, 1);\n",
    },
    Mutant {
        what: "the clearing of the stash",
        file: "warpset/batch/maintenance.cuh",
        from: "(table.main.view.buckets + static_cast<u64>(table.stash.view.buckets))",
        to: "(table.main.view.buckets + static_cast<u64>(0))",
    },
];
