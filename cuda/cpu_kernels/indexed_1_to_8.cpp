#include "indexed.hpp"

namespace warpset {

const SearchKernels indexed_1_to_8 = search_kernels_of<IndexedTables<1, 8>>();

}  // namespace warpset
