// Tree tables whose roots lie in a compact table.
#include "compact.hpp"

namespace warpset {
namespace {

struct CompactTreeTables {
    static constexpr auto geometry = geometry_of_slots<CompactTreeView>;

    template <class Use>
    static void with_table(const View& view, Use use)
    {
        const CompactTreeView& tree = view.as<CompactTreeView>();
        with_slots(view.slot_bits, [&](auto* type) {
            using Roots = std::remove_pointer_t<decltype(type)>;
            use(TreeTable<Roots, 0>{Roots::of(tree.roots), {tree.nodes}, tree.nodes.width});
        });
    }
};

}  // namespace

const Kernels compact_tree_kernels = kernels_of<CompactTreeTables>();

}  // namespace warpset
