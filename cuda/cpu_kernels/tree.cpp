// Tree tables whose roots lie in a bucket table.
#include "kernels.hpp"

namespace warpset {
namespace {

using LongLines = BucketTable<StaticShape<2, 8, 64>>;

#if WARPSET_CLAIMS_16_BYTES
// Root table with lines of 32 bytes, or of 64 bytes on a processor without claims of 16 bytes. Such processors are rare, and
// kernels of trees are long. So each kernel is compiled once and calls a function to search long lines. (With a kernel for each
// of the two line sizes, 79 KB instead of 45.)
struct RootTable : BucketTable<StaticShape<2, 16, 32>> {
    using Base = BucketTable<StaticShape<2, 16, 32>>;
    using Roots = RootTable;

    bool has_long_lines;

    RootTable(const TableView& view, SlotsOf slots) : Base(Base::of(view)), has_long_lines(slots.chunk_bytes == 8) {}

    LongLines with_long_lines() const { return LongLines::of(view); }

    u64 slots() const { return has_long_lines ? with_long_lines().slots() : Base::slots(); }

    void prefetch(u64 bucket) const { has_long_lines ? with_long_lines().prefetch(bucket) : Base::prefetch(bucket); }

    template <class Vector>
    Found find_or_put_in(u64 bucket, const Vector& vector, const Classes& forbidden) const
    {
        return has_long_lines ? find_or_put_in_long(bucket, vector, forbidden) : Base::find_or_put_in(bucket, vector, forbidden);
    }

    template <class Vector>
    Found find_in(u64 bucket, const Vector& vector, const Classes& forbidden) const
    {
        return has_long_lines ? find_in_long(bucket, vector, forbidden) : Base::find_in(bucket, vector, forbidden);
    }

    bool read_chunk(u64 slot, u64& value) const
    {
        return has_long_lines ? with_long_lines().read_chunk(slot, value) : Base::read_chunk(slot, value);
    }

private:
    template <class Vector>
    WARPSET_CALLED Found find_or_put_in_long(u64 bucket, const Vector& vector, const Classes& forbidden) const
    {
        return with_long_lines().find_or_put_in(bucket, vector, forbidden);
    }

    template <class Vector>
    WARPSET_CALLED Found find_in_long(u64 bucket, const Vector& vector, const Classes& forbidden) const
    {
        return with_long_lines().find_in(bucket, vector, forbidden);
    }
};
#else
struct RootTable : LongLines {
    using Roots = RootTable;

    RootTable(const TableView& view, SlotsOf) : LongLines(LongLines::of(view)) {}
};
#endif

struct TreeTables {
    static void geometry(u32, SlotsOf slots, u32 slot_bits, Geometry* geometry)
    {
        bucket_maintenance.geometry(2, slots, slot_bits, geometry);
        geometry->table_view_bytes = sizeof(TreeView);
    }

    // Only the pairing of a table's strategy matters to a thread.
    template <class Use>
    static void with_table(const View& view, Use use)
    {
        const TreeView& tree = view.as<TreeView>();
        const auto use_as = [&](auto strategy) {
            use(TreeTable<RootTable, 0, decltype(strategy)>{RootTable(tree.roots, view.slots), {tree.nodes}, tree.nodes.width});
        };
        switch (view.pairing) {
            case Pairing::Neighboured: return use_as(Strategy<Lanes::One, Pairing::Neighboured, Workspace::Registers>{});
            case Pairing::Interleaved: return use_as(Strategy<Lanes::One, Pairing::Interleaved, Workspace::Registers>{});
            case Pairing::Halved: return use_as(Strategy<Lanes::One, Pairing::Halved, Workspace::Registers>{});
        }
    }
};

// The view of a tree table begins with the view of its roots, so the kernels of bucket tables accept it.
constexpr MaintenanceKernels tree_maintenance()
{
    MaintenanceKernels kernels = maintenance_kernels_of<TreeTables>();
    kernels.clear = [](const View& view) {
        bucket_maintenance.clear(view);
        const NodeTable nodes{view.as<TreeView>().nodes};
        const auto share = platform::Grid::share(nodes.zero() + 1ull);
        for (u64 at = share.first; at < share.last; ++at) nodes.view.slots[at] = NodeTable::empty;
        if (platform::Grid::thread() == 0) *nodes.view.stored = 0;
    };
    kernels.measure = [](const View& view, u64 first, u64 last, u64* lengths, u32 bins, ProbeTotals* totals) {
        bucket_maintenance.measure(view, first, last, lengths, bins, totals);
        TreeTables::with_table(view, [&](const auto& table) {
            u64 probes = 0;
            for (u64 slot = first; slot < last; ++slot)
                if (table.holds(slot)) probes += table.node_probes(slot);
            platform::add_relaxed(&totals->node_probes, probes);
        });
    };
    return kernels;
}

}  // namespace

const Kernels tree_kernels = {search_kernels_of<TreeTables>(), tree_maintenance()};

}  // namespace warpset
