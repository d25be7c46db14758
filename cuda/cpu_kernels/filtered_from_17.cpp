#include "filtered.hpp"

namespace warpset {

const FilteredKernels filtered_from_17 = filtered_kernels_of<BucketTablesOf<WideShapes>>();

}  // namespace warpset
