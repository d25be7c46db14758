// Tree tables whose roots lie in a bucket table.
#include "kernels.hpp"

namespace warpset {
namespace {

struct TreeTables {
    // Calls `use(shape)` with the shape of roots.
    template <class Use>
    static void with_root_shape(SlotsOf slots, Use use)
    {
        if constexpr (has_chunks_of_16) {
            if (slots.chunk_bytes == 16) return use(StaticShape<2, 16, 32>{});
        }
        use(StaticShape<2, 8, 64>{});
    }

    static void geometry(u32, SlotsOf slots, u32, Geometry* geometry)
    {
        with_root_shape(slots, [&](auto shape) { *geometry = geometry_of(Layout<decltype(shape)>{shape}, sizeof(TreeView)); });
    }

    // A thread depends only on the pairing of a table's strategy.
    template <class Use>
    static void with_table(const View& view, Use use)
    {
        const TreeView& tree = view.as<TreeView>();
        const auto use_as = [&](auto strategy) {
            with_root_shape(view.slots, [&](auto shape) {
                using Roots = BucketTable<decltype(shape)>;
                use(TreeTable<Roots, 0, decltype(strategy)>{Roots::of(tree.roots), {tree.nodes}, tree.nodes.width});
            });
        };
        switch (view.pairing) {
            case Pairing::Neighboured: return use_as(Strategy<Lanes::One, Pairing::Neighboured, Workspace::Registers>{});
            case Pairing::Interleaved: return use_as(Strategy<Lanes::One, Pairing::Interleaved, Workspace::Registers>{});
            case Pairing::Halved: return use_as(Strategy<Lanes::One, Pairing::Halved, Workspace::Registers>{});
        }
    }
};

}  // namespace

const Kernels tree_kernels = kernels_of<TreeTables>();

}  // namespace warpset
