#include "indexed.hpp"

namespace warpset {

const IndexedKernels indexed_1_to_8 = indexed_kernels_of<IndexedTables<1, 8>>();

}  // namespace warpset
