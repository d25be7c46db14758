// Compact tables of keys.
#include "compact.hpp"

namespace warpset {
namespace {

struct CompactTables {
    static constexpr auto geometry = geometry_of_slots<CompactView>;

    template <class Use>
    static void with_table(const View& view, Use use)
    {
        with_slots(view.slot_bits, [&](auto* type) { use(std::remove_pointer_t<decltype(type)>::of(view.as<CompactView>())); });
    }
};

}  // namespace

const Kernels compact_kernels = kernels_of<CompactTables>();

void relocate_compact(const View& view, u64 seed, u64* keys, Relocated* counts)
{
    CompactTables::with_table(view, [&](const auto& table) { relocate_keys(table, seed, keys, counts); });
}

void quotient_compact(const View& view, u32 level, u32 function, u64 key, u32* bucket, u64* code, u64* key_back)
{
    CompactTables::with_table(view, [&](const auto& table) {
        const auto quotient_in = [&](const auto& level) {
            const u32 in_family = level.view.first_function + function;
            const auto at = level.quotiented(table.hash.fraction(table.hash.scramble(key), in_family), function);
            *bucket = at.bucket;
            *code = at.code;
            *key_back = table.hash.key(level.fraction(at, table.hash.bits()), in_family);
        };
        level == 0 ? quotient_in(table.main) : quotient_in(table.stash);
    });
}

}  // namespace warpset
