// Bucket tables of 17 words a vector and more.
#include "bucket.hpp"

namespace warpset {

const SearchKernels bucket_from_17 = bucket_searches_of<BucketTablesOf<WideShapes>>();

}  // namespace warpset
