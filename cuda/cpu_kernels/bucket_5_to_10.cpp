#include "bucket.hpp"

namespace warpset {

const SearchKernels bucket_5_to_10 = bucket_searches_of<BucketTables<5, 10>>();

}  // namespace warpset
