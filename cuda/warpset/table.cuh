// The table of one spec, by name, for kernels that are compiled for it: ours (bucket_kernels.cu) and yours.
//
// Compile with -D WARPSET_WIDTH=words, -D WARPSET_CHUNK_BYTES=8 or 16 (16 needs sm_90), -D WARPSET_LINE_BYTES=32, 64 or 128,
// equal to those of the table whose view the kernel gets; `BucketTable::compile` in Rust passes them. Then
//
//   extern "C" __global__ void visit(warpset::TableView view, const unsigned* states, unsigned count) {
//       unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
//       if (i >= count) return;
//       warpset::Found found = warpset::table(view).find_or_put(warpset::WordVector{states + i * WARPSET_WIDTH});
//       if (found.outcome == warpset::Outcome::New) ...
//   }
//
// find-or-puts by a thread. A whole warp does it faster with WarpSearch (warp_search.cuh).
#pragma once

#include "warpset/bucket_table.cuh"

namespace warpset {

using Table = BucketTable<StaticShape<WARPSET_WIDTH, WARPSET_CHUNK_BYTES, WARPSET_LINE_BYTES>>;

WARPSET_FN Table table(const TableView& view) { return Table{view, {}}; }

}  // namespace warpset
