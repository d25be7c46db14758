#include "indexed.hpp"

namespace warpset {

const IndexedKernels indexed_from_9 = indexed_kernels_of<IndexedTables<9, 17>>();

}  // namespace warpset
