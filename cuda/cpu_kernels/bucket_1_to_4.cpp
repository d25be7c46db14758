#include "bucket.hpp"

namespace warpset {

const SearchKernels bucket_1_to_4 = bucket_searches_of<BucketTables<1, 4>>();

}  // namespace warpset
