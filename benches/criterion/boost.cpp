// boost::concurrent_flat_set of keys of some widths, for the bench `cpu_sets`. Since Boost 1.84; compiled by build.rs.
#include <boost/unordered/concurrent_flat_set.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace {

// Multiplies pairs of words and folds the product: what foldhash, which the Rust sets have, does with them.
template <std::size_t width>
struct Hash {
    using is_avalanching = void;

    std::size_t operator()(const std::array<std::uint32_t, width>& key) const
    {
        std::uint64_t hash = 0x243F6A8885A308D3;
        for (std::size_t word = 0; word < width; word += 4) {
            std::uint64_t halves[2] = {};
            std::memcpy(halves, key.data() + word, (width - word < 4 ? width - word : 4) * 4);
            const auto product = static_cast<unsigned __int128>(halves[0] ^ hash) * (halves[1] ^ 0x13198A2E03707344);
            hash = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
        }
        return hash;
    }
};

template <std::size_t width>
struct Set {
    using Key = std::array<std::uint32_t, width>;

    boost::concurrent_flat_set<Key, Hash<width>> keys;

    explicit Set(std::size_t capacity) : keys(capacity) {}

    std::size_t insert(const Key* offered, std::size_t count)
    {
        std::size_t fresh = 0;
        for (const Key* key = offered; key != offered + count; ++key) fresh += keys.insert(*key);
        return fresh;
    }

    // Bulk visitation prefetches the groups of several keys.
    std::size_t count_stored(const Key* wanted, std::size_t count) const
    {
        return keys.cvisit(wanted, wanted + count, [](const Key&) {});
    }
};

}  // namespace

#define WARPSET_SET(width)                                                                                             \
    void* warpset_boost_new_##width(std::size_t capacity) { return new Set<width>(capacity); }                        \
    void warpset_boost_delete_##width(void* set) { delete static_cast<Set<width>*>(set); }                            \
    std::size_t warpset_boost_insert_##width(void* set, const std::uint32_t* keys, std::size_t count)                 \
    {                                                                                                                  \
        return static_cast<Set<width>*>(set)->insert(reinterpret_cast<const Set<width>::Key*>(keys), count);          \
    }                                                                                                                  \
    std::size_t warpset_boost_count_##width(const void* set, const std::uint32_t* keys, std::size_t count)            \
    {                                                                                                                  \
        return static_cast<const Set<width>*>(set)->count_stored(reinterpret_cast<const Set<width>::Key*>(keys), count); \
    }

extern "C" {
WARPSET_SET(1)
WARPSET_SET(2)
WARPSET_SET(8)
WARPSET_SET(32)
}
