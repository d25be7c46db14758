// The kernels of a cluster's rank on the simulated GPU, and what the host does between them, as kernels of one lane.
#include "warpset/cluster/partition.cuh"

using namespace warpset;

namespace {

struct Argument {
    PartitionView view;
    u64* first_rows;
    u64* runs;
    u64* replies;
    u8* send;
    u8* reply;
};

const Argument& as_argument(const void* argument) { return *static_cast<const Argument*>(argument); }

// The outcome of a row, as an owner might say.
Outcome outcome_of(u64 row) { return static_cast<Outcome>(1 + row % 3); }

}  // namespace

extern "C" {

extern const u64 warpset_simt_partition_bytes[2] = {sizeof(PartitionView), sizeof(Argument)};

void warpset_simt_partition_claim(const void* argument) { Partition::claim(as_argument(argument).view); }
void warpset_simt_partition_scatter(const void* argument) { Partition::scatter(as_argument(argument).view); }
void warpset_simt_partition_gather(const void* argument) { Partition::gather(as_argument(argument).view, Outcome::New); }

// Where runs begin.
void warpset_simt_partition_lay_out(const void* of)
{
    const Argument& argument = as_argument(of);
    u64 at = reinterpret_cast<u64>(argument.send), row = 0;
    for (u32 rank = 0; rank < argument.view.ranks; ++rank) {
        argument.first_rows[rank] = row;
        argument.runs[rank] = at;
        row += argument.view.counts[rank];
        at += argument.view.counts[rank] * argument.view.width * 4;
    }
    argument.first_rows[argument.view.ranks] = row;
}

// What the owners answer: outcomes, and references that are their rows.
void warpset_simt_partition_answer(const void* of)
{
    const Argument& argument = as_argument(of);
    u8* at = argument.reply;
    for (u32 rank = 0; rank < argument.view.ranks; ++rank) {
        const u64 first = argument.first_rows[rank], count = argument.first_rows[rank + 1] - first;
        argument.replies[rank] = reinterpret_cast<u64>(at);
        for (u64 row = 0; row < count; ++row) at[row] = static_cast<u8>(outcome_of(first + row));
        at += whole_lines(count);
        for (u64 row = 0; row < count; ++row) reinterpret_cast<u64*>(at)[row] = first + row + 1;
        at += whole_lines(8 * count);
    }
}
}
