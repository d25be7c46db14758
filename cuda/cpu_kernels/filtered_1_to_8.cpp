#include "filtered.hpp"

namespace warpset {

const FilteredKernels filtered_1_to_8 = filtered_kernels_of<BucketTables<1, 8>>();

}  // namespace warpset
