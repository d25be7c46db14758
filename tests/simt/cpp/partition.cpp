// The kernels with which a rank of a cluster sorts a batch (warpset/cluster/partition.cuh), on the simulated GPU. Kernels of one
// lane do the host's work between them. (search_rank.cpp has the kernel that makes the offers of a model checker's rank.)
#include "warpset/cluster/partition.cuh"

using namespace warpset;

namespace {

struct Argument {
    PartitionView view;
    u64* capacities;
    u64* runs;
    u64* answers;
    u8* send;
    u8* reply;
};

const Argument& as_argument(const void* argument) { return *static_cast<const Argument*>(argument); }

// Outcome of a row, such as an owner might report it.
Outcome outcome_of(u64 row) { return static_cast<Outcome>(1 + row % 3); }

}  // namespace

extern "C" {

extern const u64 warpset_simt_partition_bytes[2] = {sizeof(PartitionView), sizeof(Argument)};

void warpset_simt_partition_claim(const void* argument) { Partition::claim(as_argument(argument).view); }
void warpset_simt_partition_scatter(const void* argument) { Partition::scatter(as_argument(argument).view); }
void warpset_simt_partition_gather(const void* argument) { Partition::gather(as_argument(argument).view, Outcome::New); }

// Lays out runs in other memory, with as many rows as were counted.
void warpset_simt_partition_lay_out(const void* of)
{
    const Argument& argument = as_argument(of);
    u64 at = reinterpret_cast<u64>(argument.send), answers = 0;
    for (u32 rank = 0; rank < argument.view.ranks; ++rank) {
        u64& rows = argument.view.cursors[rank * cursor_step];
        argument.capacities[rank] = rows;
        argument.runs[rank] = at;
        argument.answers[rank] = answers + message_line_bytes;
        at += (rows * argument.view.width * 4 + 15) / 16 * 16;
        answers += message_line_bytes + whole_lines(rows) + whole_lines(8 * rows);
        rows = 0;
    }
}

// Writes the owners' answers: outcomes, and references that equal the numbers of the rows.
void warpset_simt_partition_answer(const void* of)
{
    const Argument& argument = as_argument(of);
    for (u32 rank = 0; rank < argument.view.ranks; ++rank) {
        u8* at = argument.reply + argument.answers[rank];
        const u64 count = argument.view.cursors[rank * cursor_step];
        for (u64 row = 0; row < count; ++row) at[row] = static_cast<u8>(outcome_of(row));
        at += whole_lines(count);
        for (u64 row = 0; row < count; ++row) reinterpret_cast<u64*>(at)[row] = row + 1;
    }
}
}
