//! Does the simulator notice when something is taken out of the real headers? Each mutant is a copy of `cuda/` with one change
//! that must make a test of tests/bucket.rs, tests/compact.rs, tests/indexed.rs or tests/tree.rs fail.
//!
//! `cargo test -p warpset-simt --test mutants -- --ignored --nocapture`, about three quarters of an hour: everything is compiled
//! and run again for each. `WARPSET_SIMT_MUTANT` picks those whose description or file has this in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Mutant {
    /// What is missing.
    what: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
}

impl Mutant {
    /// The header with the change.
    fn text(&self) -> String {
        let text = fs::read_to_string(headers().join(self.file)).expect("a header");
        assert_eq!(text.matches(self.from).count(), 1, "{}: the text to change must be there once", self.what);
        text.replace(self.from, self.to)
    }
}

fn headers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cuda")
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        what: "the compare-and-swap that confirms a chunk seen EMPTY",
        file: "warpset/core/claim.cuh",
        from: "    if (seen == empty) seen = claim(chunk, empty, value);\n",
        to: "    if (seen == empty) claim(chunk, empty, value);\n",
    },
    Mutant {
        what: "the compare with what a failed compare-and-swap returned: a loser goes on to the next slot",
        file: "warpset/core/claim.cuh",
        from: "    if (seen == empty) return Decision::Won;\n    return seen == value ? Decision::Agreed : Decision::Different;",
        to: "    if (seen == empty) return Decision::Won;\n    return Decision::Different;",
    },
    Mutant {
        what: "the compare with what a failed compare-and-swap returned: a loser takes the slot for its own",
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
        what: "the claim of the last chunk: New for whoever agrees too (by a warp)",
        file: "warpset/bucket/warp_search.cuh",
        from: "return decision == Decision::Won ? Outcome::New : Outcome::Seen;",
        to: "return Outcome::New;",
    },
    Mutant {
        what: "the claim of the last chunk: New for whoever won any chunk (by one thread)",
        file: "warpset/bucket/table.cuh",
        from: "            Decision decision = glance == Glance::Empty ? Decision::Won : Decision::Agreed;\n            for (u32 \
               chunk = 0; chunk < layout.chunks() && decision != Decision::Different; ++chunk)\n                decision = \
               decide_chunk(bucket, index, chunk, vector, decision == Decision::Won);\n            if (decision == \
               Decision::Different) continue;",
        to: "            Decision decision = glance == Glance::Empty ? Decision::Won : Decision::Agreed;\n            bool won = \
             false;\n            for (u32 chunk = 0; chunk < layout.chunks() && decision != Decision::Different; ++chunk) {\n\
             \x20               decision = decide_chunk(bucket, index, chunk, vector, decision == Decision::Won);\n\
             \x20               won |= decision == Decision::Won;\n            }\n            if (decision == \
             Decision::Different) continue;\n            if (won) decision = Decision::Won;",
    },
    Mutant {
        what: "the bar on vectors that look EMPTY (by one thread)",
        file: "warpset/bucket/table.cuh",
        from: "            if (forbids(forbidden, bucket, index)) continue;\n            const Glance glance = glance_at(bucket, \
               index, vector);\n            if (glance == Glance::Holds) return {Outcome::Seen, slot_number(bucket, \
               index)};\n            if (glance == Glance::Other) continue;\n            Decision decision = glance ==",
        to: "            const Glance glance = Glance::Begun;\n            Decision decision = glance ==",
    },
    Mutant {
        what: "the bar on vectors that look EMPTY (by a warp)",
        file: "warpset/bucket/warp_search.cuh",
        from: "            if (table.forbids(forbidden, probe.bucket, slot)) continue;\n",
        to: "",
    },
    Mutant {
        what: "all but the last chunk in is_complete",
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
        what: "the barrier after vectors have been copied to scratch memory",
        file: "warpset/batch/builder.cuh",
        from: "        }\n        Warp::sync();\n        return false;\n",
        to: "        }\n        return false;\n",
    },
    Mutant {
        what: "the barrier after the ranks of lanes have been written",
        file: "warpset/batch/builder.cuh",
        from: "            Warp::sync();\n            WARPSET_UNROLL_BY(1)\n",
        to: "            WARPSET_UNROLL_BY(1)\n",
    },
    Mutant {
        what: "a lane in a vote",
        file: "warpset/batch/results.cuh",
        from: "        u32 hit = platform::Warp::ballot(outcome ==",
        to: "        u32 hit = platform::Warp::lane() == 7 && outcome != Outcome::Unwritten ? 0 : platform::Warp::ballot(outcome ==",
    },
    Mutant {
        what: "a slot at the end of clearing",
        file: "warpset/batch/maintenance.cuh",
        from: "    const auto share = platform::Grid::share(blocks * block_words);\n",
        to: "    const auto share = platform::Grid::share(blocks * block_words + 1);\n",
    },
    Mutant {
        what: "the count of what is stored (by one thread)",
        file: "warpset/bucket/table.cuh",
        from: "        platform::count_relaxed(view.stored, found.outcome == Outcome::New);\n",
        to: "",
    },
    Mutant {
        what: "a probe: vectors leave a bucket with a free slot (by a warp)",
        file: "warpset/bucket/warp_search.cuh",
        from: "return ++index == layout.slots_per_bucket() ? next_bucket() : Outcome::Unwritten;",
        to: "return next_bucket();",
    },
    Mutant {
        what: "the compare with what a failed compare-and-swap of a node returned: a loser takes the slot for its own",
        file: "warpset/tree/nodes.cuh",
        from: "continue;  // lost to another node: the bucket is looked at again",
        to: "found = node[i];",
    },
    Mutant {
        what: "the compare with what a failed compare-and-swap of a node returned: a loser to an equal node goes on to the next bucket",
        file: "warpset/tree/nodes.cuh",
        from: "} else if (found != node[i]) {",
        to: "} else if (found == node[i]) {\nat[i] = next_slot(at[i], hash(node[i]));\ncontinue;\n} else {",
    },
    Mutant {
        what: "the second look at a bucket of nodes after a lost claim",
        file: "warpset/tree/nodes.cuh",
        from: "continue;  // lost to another node: the bucket is looked at again",
        to: "",
    },
    Mutant {
        what: "the buckets of a node that remain: a lost claim takes one too",
        file: "warpset/tree/nodes.cuh",
        from: "continue;  // lost to another node: the bucket is looked at again",
        to: "if (((left -= 1u << 16 * i) >> 16 * i & 0xFFFF) != 0) continue;\ntasks.finish(i, missing);\nbusy &= ~(1u << i);\ncontinue;",
    },
    Mutant {
        what: "the count of nodes: those that another has put count too",
        file: "warpset/tree/nodes.cuh",
        from: "(view.slots + at[i] + in_second, empty, node[i]);\n",
        to: "(view.slots + at[i] + in_second, empty, node[i]);\nfresh += found == node[i];\n",
    },
    Mutant {
        what: "the first EMPTY slot of a bucket of nodes: it is passed over, and the bucket left over it",
        file: "warpset/tree/nodes.cuh",
        from: "in_second = first != node[i] && first != empty;",
        to: "in_second = first != node[i];",
    },
    Mutant {
        what: "the first EMPTY slot of a bucket of nodes: where both are, the second is taken",
        file: "warpset/tree/nodes.cuh",
        from: "in_second = first != node[i] && first != empty;",
        to: "in_second = first != node[i] && (first != empty || seen[i].chunk[1] == empty);",
    },
    Mutant {
        what: "the virtual node: (0, 0) is claimed as others are",
        file: "warpset/tree/nodes.cuh",
        from: "if (node[i] == empty) {",
        to: "if (false) {",
    },
    Mutant {
        what: "the clearing of the virtual node",
        file: "warpset/batch/maintenance.cuh",
        from: "platform::Grid::share(table.nodes.zero() + 1ull)",
        to: "platform::Grid::share(table.nodes.zero())",
    },
    Mutant {
        what: "the check that a node is to be seen",
        file: "warpset/tree/table.cuh",
        from: "return node != NodeTable::empty || reference == nodes.zero();",
        to: "return true;",
    },
    Mutant {
        what: "the exception for the virtual node, when it is read",
        file: "warpset/tree/table.cuh",
        from: "return node != NodeTable::empty || reference == nodes.zero();",
        to: "return node != NodeTable::empty;",
    },
    Mutant {
        what: "all words but the first in whether a slot holds a vector",
        file: "warpset/tree/table.cuh",
        from: "return read_words(slot, 0, 1, [](u32, u32) {});",
        to: "return read_words(slot, 0, width(), [](u32, u32) {});",
    },
    Mutant {
        what: "the missing node of a leaf (by one thread)",
        file: "warpset/tree/table.cuh",
        from: "(vector.pair(2 * i), fresh);\n            complete = row[i] != NodeTable::missing;\n",
        to: "(vector.pair(2 * i), fresh);\n",
    },
    Mutant {
        what: "the missing node of an inner node (by one thread)",
        file: "warpset/tree/table.cuh",
        from: "row[Shape::right(length, i)]), fresh);\n                complete = row[i] != NodeTable::missing;\n",
        to: "row[Shape::right(length, i)]), fresh);\n",
    },
    Mutant {
        what: "the missing node below a node (by a warp)",
        file: "warpset/tree/builder.cuh",
        from: "            else if (!of_words && is_missing(node, length.get(), position)) to[current] = NodeTable::missing;\n",
        to: "",
    },
    Mutant {
        what: "the missing node below a root (by a warp)",
        file: "warpset/tree/builder.cuh",
        from: "missing = is_missing(root, 2, 0);",
        to: "missing = false;",
    },
    Mutant {
        what: "the exception for a word that looks like a missing node (by a warp)",
        file: "warpset/tree/builder.cuh",
        from: "const bool right_is_word = Shape::is_word(width, length, 2 * position + 1);",
        to: "const bool right_is_word = false;",
    },
    Mutant {
        what: "the position of a word that looks like a missing node (by a warp)",
        file: "warpset/tree/builder.cuh",
        from: "const bool right_is_word = Shape::is_word(width, length, 2 * position + 1);",
        to: "const bool right_is_word = 2 * position + 1 == length - 1;",
    },
    Mutant {
        what: "the scratch memory of a level's own: it is made in that of the one below",
        file: "warpset/tree/builder.cuh",
        from: "u32* above = halves + Warp::size * leaves;",
        to: "u32* above = halves;",
    },
    Mutant {
        what: "the barrier after the leaves have been written",
        file: "warpset/tree/builder.cuh",
        from: "(first, fresh);\n        Warp::sync();\n",
        to: "(first, fresh);\n",
    },
    Mutant {
        what: "the barrier after the halves of a level have been written",
        file: "warpset/tree/builder.cuh",
        from: "(next_level, fresh);\n            Warp::sync();\n",
        to: "(next_level, fresh);\n",
    },
    Mutant {
        what: "the barrier after roots have been written to scratch memory",
        file: "warpset/tree/builder.cuh",
        from: "        Warp::sync();\n        return missing;\n",
        to: "        return missing;\n",
    },
    Mutant {
        what: "the outcome of a vector that lacks a node (by a warp)",
        file: "warpset/batch/search.cuh",
        from: "if (takes && !resolved) search.begin();",
        to: "if (takes) search.begin();",
    },
    Mutant {
        what: "the check that a node of a parent is to be seen",
        file: "warpset/tree/incremental.cuh",
        from: "        if (!read) {",
        to: "        if (false) {",
    },
    Mutant {
        what: "the start anew without a parent: it goes on with the next word",
        file: "warpset/tree/incremental.cuh",
        from: "            words.start(true);\n",
        to: "",
    },
    Mutant {
        what: "words that are 0 like a pair that nothing was read into",
        file: "warpset/tree/incremental.cuh",
        from: "if (has_parent && Table::half(pair, side) == value) return;",
        to: "if (Table::half(pair, side) == value) return;",
    },
    Mutant {
        what: "pairs that differ, when a way leaves them: the last one counts",
        file: "warpset/tree/incremental.cuh",
        from: "            if (!(changed >> depth & 1)) continue;\n",
        to: "            if (!(changed >> depth & 1) || meet != 0) continue;\n",
    },
    Mutant {
        what: "the pair in which ways part: it is closed with the others",
        file: "warpset/tree/incremental.cuh",
        from: "for (; depth > meet; --depth)",
        to: "for (; depth > (meet == 0 ? 0 : meet - 1); --depth)",
    },
    Mutant {
        what: "the exchange of a closed pair's reference in the pair above",
        file: "warpset/tree/incremental.cuh",
        from: "            exchange(depth - 1, way.sides >> (depth - 1) & 1, reference);\n",
        to: "",
    },
    Mutant {
        what: "masks of words beyond the 32nd",
        file: "warpset/tree/incremental.cuh",
        from: "bits = mask(first / 32);",
        to: "bits = mask(0);",
    },
    Mutant {
        what: "the want of a node of an incremental put",
        file: "warpset/tree/incremental.cuh",
        from: "            if (reference == NodeTable::missing) return false;\n",
        to: "",
    },
    Mutant {
        what: "the barrier between opening ways and exchanging words",
        file: "warpset/tree/incremental_builder.cuh",
        from: "        Warp::sync();\n        if (way.path.length != 0) exchange(",
        to: "        if (way.path.length != 0) exchange(",
    },
    Mutant {
        what: "the barrier between exchanging words and closing ways",
        file: "warpset/tree/incremental_builder.cuh",
        from: "exchange(way, way.path.length - 1, way.value);\n        Warp::sync();\n",
        to: "exchange(way, way.path.length - 1, way.value);\n",
    },
    Mutant {
        what: "the barrier after a level of ways is closed",
        file: "warpset/tree/incremental_builder.cuh",
        from: "            complete = (Warp::ballot(!complete) & lanes) == 0;\n            Warp::sync();\n",
        to: "            complete = (Warp::ballot(!complete) & lanes) == 0;\n",
    },
    Mutant {
        what: "the barrier after root pairs have been made by ways",
        file: "warpset/tree/incremental_builder.cuh",
        from: "        Warp::sync();\n        return vectors;\n",
        to: "        return vectors;\n",
    },
    Mutant {
        what: "the barrier after root pairs of incremental puts have been written to scratch memory",
        file: "warpset/tree/incremental_builder.cuh",
        from: "        Warp::sync();\n        return missing;\n",
        to: "        return missing;\n",
    },
    Mutant {
        what: "the lane that a way joins: the first one of its vector",
        file: "warpset/tree/incremental_builder.cuh",
        from: "way.joins = highest(earlier & below(lane));",
        to: "way.joins = way.head;",
    },
    Mutant {
        what: "where a way leaves the one before it: one pair too late",
        file: "warpset/tree/incremental_builder.cuh",
        from: "platform::lowest_bit(before ^ way.path.sides) + 1;",
        to: "platform::lowest_bit(before ^ way.path.sides) + 2;",
    },
    Mutant {
        what: "parents that cannot be read, by ways",
        file: "warpset/tree/incremental_builder.cuh",
        from: "Warp::ballot(!open(batch, way));",
        to: "Warp::ballot(!open(batch, way) && false);",
    },
    Mutant {
        what: "the want of a node of an incremental put, by ways",
        file: "warpset/tree/incremental_builder.cuh",
        from: "made[(end + way.vector) % room] = complete ? root : NodeTable::missing;",
        to: "made[(end + way.vector) % room] = root;",
    },
    Mutant {
        what: "the loss of spare rows of an earlier level",
        file: "warpset/indexed/rows.cuh",
        from: "                if (seen - 1 >= first_spare) return seen - 1;\n",
        to: "                return seen - 1;\n",
    },
    Mutant {
        what: "the barrier after the count of rows is cleared",
        file: "warpset/block_cache.cuh",
        from: "        if (Block::thread() == 0) *taken() = 0;\n        Block::sync();\n    }",
        to: "        if (Block::thread() == 0) *taken() = 0;\n    }",
    },
    Mutant {
        what: "the barrier before the room of a cache is read",
        file: "warpset/block_cache.cuh",
        from: "        Block::sync();  // all have added what they add before it\n",
        to: "",
    },
    Mutant {
        what: "the barrier after the room of a cache has been read",
        file: "warpset/block_cache.cuh",
        from: "        Block::sync();  // and what they add after it does not count\n",
        to: "",
    },
    Mutant {
        what: "the barrier before rows are read",
        file: "warpset/block_cache.cuh",
        from: "        Block::sync();  // the rows are written\n",
        to: "",
    },
    Mutant {
        what: "the barrier before rows are overwritten",
        file: "warpset/block_cache.cuh",
        from: "        Block::sync();  // the rows may be overwritten\n",
        to: "",
    },
    Mutant {
        what: "the barrier after the index is cleared",
        file: "warpset/block_cache.cuh",
        from: "index()[at] = none;\n        Block::sync();\n",
        to: "index()[at] = none;\n",
    },
    Mutant {
        what: "the barrier after rows are marked as kept",
        file: "warpset/block_cache.cuh",
        from: "        Block::sync();\n        return kept_before(offered);",
        to: "        return kept_before(offered);",
    },
    Mutant {
        what: "the barrier before rows move into gaps",
        file: "warpset/block_cache.cuh",
        from: "gaps[row - kept_before(row)] = row;\n        Block::sync();\n",
        to: "gaps[row - kept_before(row)] = row;\n",
    },
    Mutant {
        what: "the barrier after rows have moved",
        file: "warpset/block_cache.cuh",
        from: "            if (is_kept(row)) move(row, gaps[kept_before(row) - kept_in_front]);\n        Block::sync();\n",
        to: "            if (is_kept(row)) move(row, gaps[kept_before(row) - kept_in_front]);\n",
    },
    Mutant {
        what: "the first word when rows are compared",
        file: "warpset/block_cache.cuh",
        from: "for (u32 word = 0; word < width && equal; ++word) equal",
        to: "for (u32 word = 1; word < width && equal; ++word) equal",
    },
    Mutant {
        what: "the move of a row's parent",
        file: "warpset/block_cache.cuh",
        from: "            parents()[to] = parents()[from];\n",
        to: "",
    },
    Mutant {
        what: "the move of a row's mask",
        file: "warpset/block_cache.cuh",
        from: "changed()[to * mask_words + i] = changed()[from * mask_words + i];",
        to: "(void)i;",
    },
    Mutant {
        what: "the bound on rows",
        file: "warpset/block_cache.cuh",
        from: "        if (row >= rows) return false;\n",
        to: "",
    },
    Mutant {
        what: "the exception for a word that looks like a missing node (by rows)",
        file: "warpset/tree/strategies/row_builder.cuh",
        from: "(Table::half(pair, 1) == NodeTable::missing && !Shape::is_word(width, length, right));",
        to: "Table::half(pair, 1) == NodeTable::missing;",
    },
    Mutant {
        what: "the missing node below a node (by rows)",
        file: "warpset/tree/strategies/row_builder.cuh",
        from: "!of_words && is_missing(pair, length, right) ? NodeTable::missing : ",
        to: "",
    },
    Mutant {
        what: "the missing node below a root (by rows)",
        file: "warpset/tree/strategies/row_builder.cuh",
        from: "is_missing(root, 2, 1) ? NodeTable::missing : root;",
        to: "root;",
    },
    Mutant {
        what: "the barrier between the reads and the writes of a round",
        file: "warpset/tree/strategies/row_builder.cuh",
        from: "            sync();\n            if (mine) halves.write(",
        to: "            if (mine) halves.write(",
    },
    Mutant {
        what: "the barrier after the writes of a round",
        file: "warpset/tree/strategies/row_builder.cuh",
        from: "task.position, half);\n            sync();\n",
        to: "task.position, half);\n",
    },
    Mutant {
        what: "the workspace of a warp's own, in global memory",
        file: "warpset/tree/strategies/row_builder.cuh",
        from: "batch.workspace + platform::Grid::warp() * workspace_bytes",
        to: "batch.workspace",
    },
    Mutant {
        what: "the order of the rows of a vector: shuffled halves lie where others' do",
        file: "warpset/tree/strategies/row_builder.cuh",
        from: "(in_order & ~63u) | (in_order & 1) << 5 |",
        to: "(in_order & ~63u) |",
    },
    Mutant {
        what: "the half that moves up, in the middle of a row",
        file: "warpset/tree/strategies/row_builder.cuh",
        from: "if (mine) halves.write(",
        to: "if (paired) halves.write(",
    },
    Mutant {
        what: "the barrier before roots are handed over",
        file: "warpset/tree/strategies/root_builder.cuh",
        from: "bool missing = false;\n        Warp::sync();\n",
        to: "bool missing = false;\n",
    },
    Mutant {
        what: "the barrier after roots have been handed over",
        file: "warpset/tree/strategies/root_builder.cuh",
        from: "        Warp::sync();\n        return missing;\n",
        to: "        return missing;\n",
    },
    Mutant {
        what: "the missing node in a recursion: its number becomes a half",
        file: "warpset/tree/strategies/recursive_builder.cuh",
        from: "complete = complete && reference != NodeTable::missing;",
        to: "",
    },
    Mutant {
        what: "the other lane's judgement of a slot",
        file: "warpset/tree/nodes.cuh",
        from: "const bool holds = (Warp::ballot(entry == mine) >> pair_start & 3) == 3;",
        to: "const bool holds = (Warp::ballot(entry == mine) >> pair_start & 3) != 0;",
    },
    Mutant {
        what: "the whole read of a slot by one lane: each reads its half of both",
        file: "warpset/tree/nodes.cuh",
        from: "const u32 from_other = Warp::shuffle(half(read, 1 - side), Warp::lane() ^ 1);",
        to: "const u32 from_other = half(searching ? load(at + 1 - side) : empty, side);",
    },
    Mutant {
        what: "the compare with what a failed compare-and-swap of a node returned (by two lanes)",
        file: "warpset/tree/nodes.cuh",
        from: "} else if (found == empty || found == node) {",
        to: "} else {",
    },
    Mutant {
        what: "the compare with what a failed compare-and-swap of a code returned",
        file: "warpset/compact/table.cuh",
        from: "                if (operation == Operation::FindOrPut) seen = claim(bucket, slot, code);\n                if (operation == \
               Operation::FindOrPut && seen == empty) return",
        to: "                if (operation == Operation::FindOrPut && claim(bucket, slot, code) == empty) return",
    },
    Mutant {
        what: "the other slot of a word when a code is put",
        file: "warpset/compact/table.cuh",
        from: "word | code << slot * slot_bits",
        to: "code << slot * slot_bits",
    },
    Mutant {
        what: "the compare-and-swap of a word of two slots: one that fails counts",
        file: "warpset/compact/table.cuh",
        from: "            if (seen == expected) return empty;\n",
        to: "            if (seen == expected || seen != expected) return empty;\n",
    },
    Mutant {
        what: "the skip of functions under which a key's code is EMPTY",
        file: "warpset/compact/table.cuh",
        from: "} while (walk.at.code == empty);",
        to: "} while (false);",
    },
    Mutant {
        what: "the limit of a round (by one thread)",
        file: "warpset/compact/table.cuh",
        from: " && slot < last_slot(walk.round)) {",
        to: ") {",
    },
    Mutant {
        what: "the function of a code: the product is taken for right",
        file: "warpset/compact/table.cuh",
        from: "    return function + (code - function * view.window >= view.window);",
        to: "    return function;",
    },
    Mutant {
        what: "the remainder of a code: the last of three hashes is not tried",
        file: "warpset/compact/table.cuh",
        from: "for (u64 before = 0; before < 2 && before < remainder; ++before)",
        to: "for (u64 before = 0; before < 1 && before < remainder; ++before)",
    },
    Mutant {
        what: "the numbers of the stash's slots",
        file: "warpset/compact/table.cuh",
        from: "        if (found.reference != no_reference) found.reference += main.slots();\n",
        to: "",
    },
    Mutant {
        what: "the bits of a key (by one thread)",
        file: "warpset/compact/table.cuh",
        from: "        if (!hash.has(key)) return",
        to: "        if (false) return",
    },
    Mutant {
        what: "the count of keys that are stored (by one thread)",
        file: "warpset/compact/table.cuh",
        from: "        platform::count_relaxed(stored, found.outcome == Outcome::New);\n",
        to: "",
    },
    Mutant {
        what: "the code of a key that another has put (by a warp)",
        file: "warpset/compact/search.cuh",
        from: "        if (report.same != 0) return finish(",
        to: "        if (report.same == ~0u) return finish(",
    },
    Mutant {
        what: "the second look at a bucket after a lost claim of a slot (by a warp)",
        file: "warpset/compact/search.cuh",
        from: "        slot = look;  // at the bucket again",
        to: "        table.main.advance(walk, table.hash, scrambled);\n        slot = look;  // at the bucket again",
    },
    Mutant {
        what: "the bits of a key (by a warp)",
        file: "warpset/compact/search.cuh",
        from: "        if (!table.hash.has(key)) walk.round = too_wide;\n",
        to: "",
    },
    Mutant {
        what: "the limit of a round (by a warp)",
        file: "warpset/compact/search.cuh",
        from: "report.empty & taken_by_now & ~taken_before",
        to: "report.empty & ~taken_before",
    },
    Mutant {
        what: "the stash (by a warp)",
        file: "warpset/compact/search.cuh",
        from: "        const Found in_stash = table.template search_stash<operation>(scrambled);",
        to: "        const Found in_stash{operation == Operation::FindOrPut ? Outcome::Full : Outcome::Absent, no_reference};",
    },
    Mutant {
        what: "whose bucket a row was of, where two are in flight",
        file: "warpset/compact/search.cuh",
        from: "<< (first + i) * owner_bits;",
        to: "<< i * owner_bits;",
    },
    Mutant {
        what: "the bits of a word in a compact root",
        file: "warpset/tree/table.cuh",
        from: "return shape().ends_in_word() ? roots.hash.bits() - 32 : roots.hash.bits() / 2;",
        to: "return roots.hash.bits() / 2;",
    },
    Mutant {
        what: "the barrier after parents have been read in advance",
        file: "warpset/tree/incremental_builder.cuh",
        from: "            read = last - read < Warp::size ? last : read + Warp::size;\n        }\n        Warp::sync();\n",
        to: "            read = last - read < Warp::size ? last : read + Warp::size;\n        }\n",
    },
    Mutant {
        what: "parents that are not stored, read in advance",
        file: "warpset/tree/incremental_builder.cuh",
        from: "= stored ? pair : NodeTable::missing;",
        to: "= pair;",
    },
    Mutant {
        what: "words that could not be read, but the first of a row",
        file: "warpset/batch/maintenance.cuh",
        from: "        else platform::add_relaxed(invalid, 1);\n",
        to: "        else if (word == 0) platform::add_relaxed(invalid, 1);\n",
    },
    Mutant {
        what: "the end of a vector's other ways when one of them lacks a node",
        file: "warpset/tree/incremental_builder.cuh",
        from: "            complete = (Warp::ballot(!complete) & lanes) == 0;\n",
        to: "",
    },
    Mutant {
        what: "the code that another has put into a slot that was seen EMPTY (relocation)",
        file: "warpset/compact/relocation.cuh",
        from: "            if (table.main.claim(at.bucket, slot, at.code) == Level::empty) return true;",
        to: "            table.main.claim(at.bucket, slot, at.code);\n            return true;",
    },
    Mutant {
        what: "the function under which a key has EMPTY's code (relocation)",
        file: "warpset/compact/relocation.cuh",
        from: "            if (at.code == Level::empty) continue;  // the key skips this function\n",
        to: "",
    },
    Mutant {
        what: "the last slot of a bucket, before another key gives way",
        file: "warpset/compact/relocation.cuh",
        from: "        for (u32 slot = 0; slot < Level::slots_per_bucket; ++slot) {\n            if (table.main.load(",
        to: "        for (u32 slot = 0; slot + 1 < Level::slots_per_bucket; ++slot) {\n            if (table.main.load(",
    },
    Mutant {
        what: "the key that has given way",
        file: "warpset/compact/relocation.cuh",
        from: "            key = table.hash.key(level.fraction(",
        to: "            table.hash.key(level.fraction(",
    },
    Mutant {
        what: "the clearing of a slot whose key is relocated",
        file: "warpset/compact/relocation.cuh",
        from: "        table.stash.clear(at);\n",
        to: "",
    },
    Mutant {
        what: "the count of stored keys, less those that are left over",
        file: "warpset/compact/relocation.cuh",
        from: "        platform::add_relaxed(table.stored, ~0ull);\n",
        to: "",
    },
    Mutant {
        what: "the slot whose code gives way, in a word of two",
        file: "warpset/compact/table.cuh",
        from: "            const Word without = expected ^ with(0, slot, code_in(expected, slot));",
        to: "            const Word without = slots_per_word == 1 ? 0 : expected;",
    },
    Mutant {
        what: "the second look at a word whose other slot has changed (relocation)",
        file: "warpset/compact/table.cuh",
        from: "            if (seen == expected) return code_in(expected, slot);\n            expected = seen;\n        }\n    }\n\n    // Makes",
        to: "            return code_in(seen, slot);\n        }\n    }\n\n    // Makes",
    },
    Mutant {
        what: "the slots that are kept for keys that are put back: find-or-put takes them",
        file: "warpset/compact/table.cuh",
        from: "return walk.round >= view.rounds;",
        to: "return walk.round >= view.all_rounds;",
    },
    Mutant {
        what: "the slots that are kept for keys that are put back: they are not looked at",
        file: "warpset/compact/table.cuh",
        from: "        for (u32 slot = 0; slot < slots_per_bucket; ++slot) {\n            Code seen",
        to: "        for (u32 slot = 0; slot < last_slot(walk.round); ++slot) {\n            Code seen",
    },
    Mutant {
        what: "the compare with what a failed compare-and-swap of a code returned: who loses to an equal key is told New",
        file: "warpset/compact/table.cuh",
        from: "operation == Operation::FindOrPut && seen == empty) return",
        to: "operation == Operation::FindOrPut && (seen == empty || seen == code)) return",
    },
    Mutant {
        what: "the clearing of the stash",
        file: "warpset/batch/maintenance.cuh",
        from: "(table.main.view.buckets + static_cast<u64>(table.stash.view.buckets))",
        to: "(table.main.view.buckets + static_cast<u64>(0))",
    },
    Mutant {
        what: "the fence (by a warp)",
        file: "warpset/indexed/search.cuh",
        from: "        platform::fence_acquire_release();\n",
        to: "",
    },
    Mutant {
        what: "the barrier between the fence and the lanes that read the row of a slot that another has acquired",
        file: "warpset/indexed/search.cuh",
        from: "        Warp::sync();  // a row is read by others than the lane that has seen its slot\n",
        to: "",
    },
    Mutant {
        what: "the barrier between the lanes that write a row and the one that publishes it",
        file: "warpset/indexed/search.cuh",
        from: "        Warp::sync();  // a row is written by others than the lane that claims\n",
        to: "",
    },
    Mutant {
        what: "the fence between rows and the claims that publish them (by a warp), if nothing is compared",
        file: "warpset/indexed/search.cuh",
        from: "        if ((comparing | claiming) != 0) fence();\n",
        to: "        if (comparing != 0) fence();\n",
    },
    Mutant {
        what: "the fence between the looks and the comparisons (by a warp), if nothing is claimed",
        file: "warpset/indexed/search.cuh",
        from: "        if ((comparing | claiming) != 0) fence();\n",
        to: "        if (claiming != 0) fence();\n",
    },
    Mutant {
        what: "the order of rows and fence (by a warp): it is before they are written",
        file: "warpset/indexed/search.cuh",
        from: "            if (claiming != 0) write_rows(claiming);\n        }\n        if ((comparing | claiming) != 0) fence();\n",
        to: "            if (claiming != 0) fence();\n            if (claiming != 0) write_rows(claiming);\n        }\n        if (comparing != 0 && claiming == 0) fence();\n",
    },
    Mutant {
        what: "the order of fence and claims (by a warp): they are before it",
        file: "warpset/indexed/search.cuh",
        from: "        if ((comparing | claiming) != 0) fence();\n        // The claims are under way while rows are compared: nothing is done with `seen` before.\n        const Slot seen = claims ? request_claim() : Table::empty;\n",
        to: "        const Slot seen = claims ? request_claim() : Table::empty;\n        if ((comparing | claiming) != 0) fence();\n",
    },
    Mutant {
        what: "the fence between a claim that is lost and the comparison with the row that it was lost to (by a warp)",
        file: "warpset/indexed/search.cuh",
        from: "        if (claims) outcome = finish_claim(seen);\n",
        to: "        if (claims) outcome = finish_claim(seen);\n        const u32 lost = Warp::ballot(claims && next == Next::Compare);\n        if (lost != 0) {\n            const Outcome compared = compare(lost);\n            if (lost >> Warp::lane() & 1) outcome = compared;\n        }\n",
    },
    Mutant {
        what: "the comparison with the row that a claim was lost to (by a warp)",
        file: "warpset/indexed/search.cuh",
        from: "        if (!table.fits(seen, tag)) return next_slot();\n",
        to: "        if (seen != 0) return next_slot();\n",
    },
    Mutant {
        what: "the end of owning a row that is published (by a warp)",
        file: "warpset/indexed/search.cuh",
        from: "            found = own;\n            own = no_row;\n",
        to: "            found = own;\n",
    },
    Mutant {
        what: "the numbers of new rows: all lanes get the first of them",
        file: "warpset/indexed/search.cuh",
        from: "        const u64 row = first + platform::population_count(rows.lanes & ((1u << lane) - 1));\n",
        to: "        const u64 row = first;\n",
    },
    Mutant {
        what: "the lanes that get a row that was taken ahead: those that own one get another",
        file: "warpset/indexed/search.cuh",
        from: "request_rows(takes_ahead && next == Next::Look && own == no_row);",
        to: "request_rows(takes_ahead && next == Next::Look);",
    },
    Mutant {
        what: "the lanes that have lost a claim: they leave the bucket (by a warp)",
        file: "warpset/indexed/search.cuh",
        from: "        return ++index == layout.slots_per_bucket() ? next_bucket() : Outcome::Unwritten;",
        to: "        return next_bucket();",
    },
    Mutant {
        what: "the acquire of slots that are looked at (by one thread)",
        file: "warpset/indexed/table.cuh",
        from: "            Slot seen = platform::load_acquire(slot_at(bucket, index));\n            if (seen == empty) {\n                if (lane",
        to: "            Slot seen = platform::load_relaxed(slot_at(bucket, index));\n            if (seen == empty) {\n                if (lane",
    },
    Mutant {
        what: "the release of a row (by one thread)",
        file: "warpset/indexed/table.cuh",
        from: "platform::compare_and_swap_acquire_release(slot_at",
        to: "platform::compare_and_swap_acquire(slot_at",
    },
    Mutant {
        what: "the acquire of a slot whose claim is lost (by one thread)",
        file: "warpset/indexed/table.cuh",
        from: "platform::compare_and_swap_acquire_release(slot_at",
        to: "platform::compare_and_swap_release(slot_at",
    },
    Mutant {
        what: "the end of owning a row that is published (by one thread)",
        file: "warpset/indexed/table.cuh",
        from: "                    lane.row = no_row;\n                    return {Outcome::New, row};",
        to: "                    return {Outcome::New, row};",
    },
    Mutant {
        what: "the writing of a row anew for the next vector of its owner",
        file: "warpset/indexed/table.cuh",
        from: "                if (!written) rows.write(lane.row, vector);\n",
        to: "                if (!written && lane.row + 1 == rows.count()) rows.write(lane.row, vector);\n",
    },
    Mutant {
        what: "the look for a slot that names a row, before it is read",
        file: "warpset/indexed/table.cuh",
        from: "(row < rows.count() && slot_naming(row) != nullptr)",
        to: "(row < rows.count())",
    },
    Mutant {
        what: "the compare-and-swap that takes a spare row for one lane",
        file: "warpset/indexed/rows.cuh",
        from: "if (seen != 0 && platform::compare_and_swap_acquire(cell, seen, u64{0}) == seen) {",
        to: "if (seen != 0) {\n                platform::compare_and_swap_acquire(cell, seen, u64{0});",
    },
    Mutant {
        what: "the rows that are taken back by clearing",
        file: "warpset/indexed/maintenance.cuh",
        from: "        *rows.given = 0;\n",
        to: "",
    },
];

/// The changes are of the headers as they are.
#[test]
fn every_mutant_differs() {
    MUTANTS.iter().for_each(|mutant| drop(mutant.text()));
}

#[test]
#[ignore = "compiles and runs everything again for each mutant"]
fn every_mutant_is_killed() {
    let only = std::env::var("WARPSET_SIMT_MUTANT").ok();
    let wanted = |mutant: &&Mutant| only.as_ref().is_none_or(|only| mutant.what.contains(only) || mutant.file.contains(only));
    let survivors: Vec<&str> =
        MUTANTS.iter().filter(wanted).filter(|mutant| survives(mutant)).map(|mutant| mutant.what).collect();
    assert!(survivors.is_empty(), "not noticed: {survivors:#?}");
}

/// Whether all tests pass without what the mutant lacks; says which fail.
fn survives(mutant: &Mutant) -> bool {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutant");
    let _ = fs::remove_dir_all(&copy);
    copy_folder(&headers(), &copy);
    fs::write(copy.join(mutant.file), mutant.text()).expect("a copy can be written");

    // Headers that only trees use concern only their tests, some only a few specs.
    let uses = |names: &[&str]| names.iter().any(|name| mutant.file.contains(name));
    let (tests, specs): (&[&str], _) = if uses(&["compact/relocation"])
        || ["relocation", "gives way", "put back", "is told New"].iter().any(|of| mutant.what.contains(of))
    {
        (&["--test", "compact"], "compact")
    } else if mutant.what.contains("earlier level") {
        (&["--test", "search"], "indexed_2,bucket_2")
    } else if uses(&["indexed/"]) {
        (&["--test", "indexed"], "indexed")
    } else if uses(&["compact"]) {
        (&["--test", "compact", "--test", "tree"], "compact,tree")
    } else if uses(&["incremental_builder", "block_cache"]) {
        // Some of the specs are for the exhaustive trials.
        (&["--test", "tree"], "tree_3_8_64,tree_4_8_32,tree_8,tree_17,tree_compact_3_44,tree_compact_4_14,tree_compact_5")
    } else if uses(&["strategies/"]) {
        (&["--test", "tree"], "strategy,tree_3_8_64,tree_4_8_32,tree_compact_3_44,tree_compact_4_14")
    } else if uses(&["tree/nodes", "tree/shape", "tree/table"]) {
        (&["--test", "tree"], "strategy,tree")
    } else if uses(&["tree/"]) {
        (&["--test", "tree"], "tree")
    } else {
        (&["--test", "bucket", "--test", "compact", "--test", "indexed", "--test", "tree"], "")
    };
    let output = Command::new(env!("CARGO"))
        .args(["test", "--package", "warpset-simt", "--no-fail-fast"])
        .args(tests)
        .env("WARPSET_SIMT_HEADERS", &copy)
        .env("WARPSET_TEST_FULL", "1")
        .env("WARPSET_SIMT_SPECS", specs)
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutants"))
        .output()
        .expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("running "), "{} does not compile:\n{errors}", mutant.what);
    let failed: Vec<&str> = text.lines().filter_map(|line| line.strip_suffix("... FAILED")).map(str::trim).collect();
    let named = |line: &&str| ["bucket-", "compact-", "indexed-", "tree-"].iter().any(|kind| line.starts_with(kind));
    let how = text.lines().find(|line| line.contains(": ") && named(line) && !line.contains("schedules,"));
    println!(
        "{}: {}; {} trials fail; {}",
        if failed.is_empty() { "SURVIVES" } else { "killed" },
        mutant.what,
        failed.len(),
        how.unwrap_or("")
    );
    failed.is_empty()
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("a folder") {
        let path: PathBuf = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_folder(&path, &target)
        } else {
            fs::copy(&path, &target).map(drop).expect("a file can be copied")
        }
    }
}
