#include "bucket.hpp"

namespace warpset {

const Kernels bucket_11_to_16 = kernels_of<BucketTables<11, 16>>();

}  // namespace warpset
