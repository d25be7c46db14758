// Bucket tables of 17 words a vector and more.
#include "bucket.hpp"

namespace warpset {
namespace {

struct WideShapes {
    template <class Use>
    static void with_shape(u32 width, SlotsOf slots, Use use)
    {
        if constexpr (has_chunks_of_16) {
            if (slots.chunk_bytes == 16) {
                switch (slots.words) {
                    case 20: return use(SlotShape<20>{width});
                    case 24: return use(SlotShape<24>{width});
                    case 28: return use(SlotShape<28>{width});
                    case 32: return use(SlotShape<32>{width});
                    case 64: return use(SlotShape<64>{width});
                    default: return use(DynamicShape<16>{width, slots.words});
                }
            }
        }
        use(DynamicShape<8>{width, slots.words});
    }
};

}  // namespace

const Kernels bucket_from_17 = kernels_of<BucketTablesOf<WideShapes>>();

}  // namespace warpset
