#include "bucket.hpp"

namespace warpset {

const Kernels bucket_1_to_4 = kernels_of<BucketTables<1, 4>>();

}  // namespace warpset
