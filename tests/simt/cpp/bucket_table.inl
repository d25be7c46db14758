// The bucket table of one spec on the simulated GPU: its kernels (cuda/table_kernels.cu, unchanged) and what tests ask of it.
//
// Compiled once for each spec, with the macros of warpset/table.cuh and WARPSET_SIMT_NAME, the name of the structure it defines.
#include "table_kernels.cu"

#include "harness.h"

namespace {

using warpset::BatchCounts;
using warpset::Found;
using warpset::Outcome;
using warpset::WordVector;

using warpset::TableView;

struct Batch {
    TableView view;
    BatchView batch;
};

struct Get {
    TableView view;
    const u64* references;
    u64 count;
    u32* vectors;
    u64* invalid;
};

struct Export {
    TableView view;
    u64 first, last;
    u32* vectors;
    u64* references;
    u64* cursor;
};

struct Measure {
    TableView view;
    u64 first, last;
    u64* lengths;
    u64* longest;
    u32 bins;
};

// The one-thread operations, as a user's kernel calls them: each lane does `operations_a_lane` of them, one after another.
struct Script {
    TableView view;
    const u32* vectors;
    warpset_simt_operation* operations;
    u64 operations_a_lane;
};

void run_script(const Script& script)
{
    const Table table = Table::of(script.view);
    for (u64 i = 0; i < script.operations_a_lane; ++i) {
        auto& operation = script.operations[warpset::platform::Grid::thread() * script.operations_a_lane + i];
        if (operation.kind == warpset_simt_nothing) continue;
        const u32* words = script.vectors + operation.vector * WARPSET_WIDTH;
        const WordVector vector{words};
        operation.began = warpset_simt_steps();
        const Found found = operation.kind == warpset_simt_find ? table.find(vector) : table.find_or_put(vector);
        operation.ended = warpset_simt_steps();
        operation.outcome = static_cast<u32>(found.outcome);
        operation.reference = found.reference;
        const bool stored = found.outcome == Outcome::New || found.outcome == Outcome::Seen;
        if (stored && operation.reads_back)
            for (u32 word = 0; word < WARPSET_WIDTH; ++word) operation.misread |= table.word(found.reference, word) != words[word];
    }
}

// For the tests, outside of any launch: where a chunk of a slot is, and what it holds while it is undecided.
void chunk_of_slot(const TableView* view, u64 slot, u32 chunk, warpset_simt_chunk* result)
{
    const Table table = Table::of(*view);
    struct Nothing {
        void read(u32, u32& chunk) const { chunk = 0; }
        void read(u32, u64& chunk) const { chunk = 0; }
        void read(u32, warpset::u128& chunk) const { chunk = {0, 0}; }
    };
    const u64 bucket = slot / layout.slots_per_bucket();
    const u32 place = static_cast<u32>(slot % layout.slots_per_bucket());
    table.with_chunk(bucket, place, chunk, Nothing{}, [&](auto* address, auto empty, auto) {
        result->offset = static_cast<u64>(reinterpret_cast<const warpset::u8*>(address) - view->slots);
        result->bytes = sizeof empty;
        __builtin_memcpy(result->empty, &empty, sizeof empty);
    });
}

bool is_barred(const TableView* view, const u32* words, u64 slot)
{
    const Table table = Table::of(*view);
    return table.forbids(table.forbidden_classes(WordVector{words}), slot / layout.slots_per_bucket(),
                         static_cast<u32>(slot % layout.slots_per_bucket()));
}

template <class Argument>
const Argument& as(const void* argument)
{
    return *static_cast<const Argument*>(argument);
}

}  // namespace

extern "C" {
extern const warpset_simt_bucket_kernels WARPSET_SIMT_NAME;
}
const warpset_simt_bucket_kernels WARPSET_SIMT_NAME = {
    WARPSET_WIDTH,
    WARPSET_CHUNK_BYTES,
    WARPSET_LINE_BYTES,
    warpset_geometry,
    [](const void* a) { warpset_find_or_put(as<Batch>(a).view, as<Batch>(a).batch); },
    [](const void* a) { warpset_find(as<Batch>(a).view, as<Batch>(a).batch); },
    [](const void* a) { warpset_clear(as<TableView>(a)); },
    [](const void* a) { auto& x = as<Get>(a); warpset_get(x.view, x.references, x.count, x.vectors, x.invalid); },
    [](const void* a) { auto& x = as<Export>(a); warpset_export(x.view, x.first, x.last, x.vectors, x.references, x.cursor); },
    [](const void* a) { auto& x = as<Measure>(a); warpset_measure(x.view, x.first, x.last, x.lengths, x.bins, x.longest); },
    [](const void* a) { run_script(as<Script>(a)); },
    [](const void* view, u64 slot, u32 chunk, warpset_simt_chunk* result) {
        chunk_of_slot(static_cast<const TableView*>(view), slot, chunk, result);
    },
    [](const void* view, const u32* words, u64 slot) { return is_barred(static_cast<const TableView*>(view), words, slot); },
};
