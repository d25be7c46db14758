// Bucket tables of 17 words a vector and more.
#include "bucket.hpp"

namespace warpset {

const Kernels bucket_from_17 = kernels_of<BucketTablesOf<WideShapes>>();

}  // namespace warpset
