#include "bucket.hpp"

namespace warpset {

const Kernels bucket_5_to_10 = kernels_of<BucketTables<5, 10>>();

}  // namespace warpset
