// The type `Table` of one spec, for kernels that are compiled for it: the library's (table_kernels.cu) and your own.
//
// `compile` of the table in Rust defines these macros, equal to those of the table whose view the kernel gets:
//
//   WARPSET_TREE                                         0 or 1
//   WARPSET_INDEXED                                      0 or 1: rows in order, and an index with slots of WARPSET_SLOT_BITS
//   WARPSET_WIDTH                                        words per vector
//   WARPSET_SLOT_WORDS                                   words per slot of a bucket table: more than a vector has if it is padded
//   WARPSET_CHUNK_BYTES                                  8 or 16; 16 needs sm_90
//   WARPSET_LINE_BYTES                                   32, 64 or 128
//   WARPSET_KEY_BITS                                     0, or the bits of a compact table's keys
//   WARPSET_SLOT_BITS                                    16, 32 or 64
//   WARPSET_LANES, WARPSET_PAIRING, WARPSET_WORKSPACE    0, or those of a tree table's strategy (tree/strategy.cuh)
//
// The roots of a tree table are a bucket table of two words with these chunks and lines, or a compact table if WARPSET_KEY_BITS
// is not 0. With these macros, the following kernel finds or puts vectors, one per thread:
//
//   extern "C" __global__ void visit(warpset::View view, const unsigned* states, unsigned count) {
//       unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
//       if (i >= count) return;
//       warpset::Found found = warpset::table(view).find_or_put(warpset::WordVector{states + i * WARPSET_WIDTH});
//       if (found.outcome == warpset::Outcome::New) ...
//   }
//
// A whole warp is faster with WarpSearch (bucket/warp_search.cuh).
#pragma once

#include "warpset/bucket/table.cuh"
#include "warpset/compact/table.cuh"
#include "warpset/indexed/table.cuh"
#include "warpset/tree/table.cuh"

namespace warpset {

using TableStrategy = Strategy<Lanes{WARPSET_LANES}, Pairing{WARPSET_PAIRING}, Workspace{WARPSET_WORKSPACE}>;
using SlotTable = Choose<WARPSET_KEY_BITS != 0, CompactTable<WARPSET_SLOT_BITS, WARPSET_KEY_BITS>,
                         BucketTable<StaticShape<WARPSET_TREE ? 2 : WARPSET_WIDTH, WARPSET_CHUNK_BYTES, WARPSET_LINE_BYTES,
                                                 WARPSET_TREE ? 2 : WARPSET_SLOT_WORDS>>>::Type;
using VectorTable = Choose<WARPSET_INDEXED, IndexedTable<WARPSET_WIDTH, WARPSET_SLOT_BITS>, SlotTable>::Type;
using Table = Choose<WARPSET_TREE, TreeTable<SlotTable, WARPSET_WIDTH, TableStrategy>, VectorTable>::Type;
using View = Table::View;

WARPSET_FN Table table(const View& view) { return Table::of(view); }

}  // namespace warpset
