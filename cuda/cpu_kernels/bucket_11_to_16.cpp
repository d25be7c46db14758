#include "bucket.hpp"

namespace warpset {

const SearchKernels bucket_11_to_16 = bucket_searches_of<BucketTables<11, 16>>();

}  // namespace warpset
