// Operations that lanes do with a table one after another, as in a user's kernel. The table is the library's or a control's.
#pragma once

#include "harness.h"
#include "warpset/indexed/table.cuh"
#include "warpset/tree/table.cuh"

// Views of all kinds of tables. A compact table uses `compact`; a tree with compact roots also uses `tree.nodes`. Mirrored by
// `View` in src/table.rs.
struct Views {
    warpset::TreeView tree;
    warpset::CompactView compact;
    warpset::IndexedView indexed;
};

// A launch in which each lane does `operations_a_lane` of the operations.
struct Script {
    Views view;
    const warpset::u32* vectors;
    warpset::u64 count;  // number of vectors
    warpset_simt_operation* operations;
    warpset::u64 operations_a_lane;
    warpset::u64* cell;  // passes references from lane to lane: one more than the reference, or 0
};

inline bool is_vector(const Script& script, warpset::u32 number, const warpset::u32* words, warpset::u32 width)
{
    bool is = true;
    for (warpset::u32 word = 0; word < width; ++word) is = is && script.vectors[number * width + word] == words[word];
    return is;
}

template <class Table>
bool misreads(const Table& table, const Script& script, warpset::u64 reference, warpset::u32 vector)
{
    warpset::u32 words[256];
    for (warpset::u32 word = 0; word < table.width(); ++word) words[word] = table.word(reference, word);
    return !is_vector(script, vector, words, table.width());
}

// Reads a slot. If the slot holds a vector, it must be one that was put.
template <class Table>
void scan(const Table& table, const Script& script, warpset_simt_operation& operation)
{
    operation.reference = operation.vector;
    operation.outcome = static_cast<warpset::u32>(warpset::Outcome::Absent);
    if (!table.holds(operation.reference)) return;
    operation.outcome = static_cast<warpset::u32>(warpset::Outcome::Seen);
    warpset::u32 words[256];
    bool reads = true;
    for (warpset::u32 word = 0; word < table.width(); ++word)
        reads = table.read_word(operation.reference, word, words[word]) && reads;
    bool known = false;
    for (warpset::u32 vector = 0; vector < script.count; ++vector)
        known = known || is_vector(script, vector, words, table.width());
    operation.misread = !reads || !known;
}

// Puts the vector incrementally. The parent is the vector of `before`, with a mask of the differing words, or the contents of a
// slot, without a mask. (Controls do not have this operation.)
template <class Table>
warpset::Found put_incremental(const Table&, const Script&, const warpset_simt_operation&, const warpset_simt_operation*)
{
    return {warpset::Outcome::Pending, warpset::no_reference};
}

template <class Roots, warpset::u32 width, class Strategy>
warpset::Found put_incremental(const warpset::TreeTable<Roots, width, Strategy>& table, const Script& script,
                               const warpset_simt_operation& operation, const warpset_simt_operation* before)
{
    using warpset::Outcome;
    using warpset::u32;
    const u32* vector = script.vectors + operation.vector * table.width();
    const bool about_vector = before != nullptr && before->kind != warpset_simt_scan && before->kind != warpset_simt_take;
    const auto outcome = about_vector ? static_cast<Outcome>(before->outcome) : Outcome::Pending;
    if (outcome != Outcome::New && outcome != Outcome::Seen)
        return table.find_or_put_incremental(operation.parent, warpset::ChangedVector{vector, nullptr});
    u32 mask[8] = {};
    for (u32 word = 0; word < table.width(); ++word)
        if (vector[word] != script.vectors[before->vector * table.width() + word]) mask[word / 32] |= 1u << word % 32;
    return table.find_or_put_incremental(before->reference, warpset::ChangedVector{vector, mask});
}

template <class Table>
void run_script(const Table& table, const Script& script, warpset::simt::Order giving, warpset::simt::Order taking)
{
    using warpset::Outcome;
    using warpset::simt::Site;
    for (warpset::u64 i = 0; i < script.operations_a_lane; ++i) {
        auto& operation = script.operations[warpset::platform::Grid::thread() * script.operations_a_lane + i];
        if (operation.kind == warpset_simt_nothing) continue;
        operation.began = warpset_simt_steps();
        if (operation.kind == warpset_simt_scan) {
            scan(table, script, operation);
        } else if (operation.kind == warpset_simt_take) {
            operation.reference = warpset::simt::load(script.cell, taking, Site::here()) - 1;
            const bool given = operation.reference != warpset::no_reference;
            operation.outcome = static_cast<warpset::u32>(given ? Outcome::Seen : Outcome::Absent);
            operation.misread = given && misreads(table, script, operation.reference, operation.vector);
        } else {
            const warpset::WordVector vector{script.vectors + operation.vector * table.width()};
            const warpset::Found found =
                operation.kind == warpset_simt_find          ? table.find(vector)
                : operation.kind == warpset_simt_incremental ? put_incremental(table, script, operation,
                                                                               i == 0 ? nullptr : &operation - 1)
                                                             : table.find_or_put(vector);
            operation.ended = warpset_simt_steps();
            operation.outcome = static_cast<warpset::u32>(found.outcome);
            operation.reference = found.reference;
            const bool stored = found.outcome == Outcome::New || found.outcome == Outcome::Seen;
            if (stored && operation.kind == warpset_simt_give)
                warpset::simt::store(script.cell, found.reference + 1, giving, Site::here());
            if (stored && operation.reads_back) operation.misread = misreads(table, script, found.reference, operation.vector);
        }
    }
}
