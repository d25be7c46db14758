#include "filtered.hpp"

namespace warpset {

const FilteredKernels filtered_9_to_16 = filtered_kernels_of<BucketTables<9, 16>>();

}  // namespace warpset
