// Compares the masks of a bucket whose slots are compared at once (`Warp::match_bucket`) with those of one slot after another.
//
// `.ci/run` compiles and runs it, also for AArch64 where a compiler and an emulator of that machine are installed. Buckets of 64
// bytes are only searched at once on AArch64, but their function is compiled everywhere.
#include "warpset/platform.cuh"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

using namespace warpset;

namespace {

std::mt19937_64 random_bits{1};

// A slot that holds the value or an EMPTY pattern, differs from one of them in one bit or in its high word, or holds anything.
template <class Chunk>
Chunk any_slot(Chunk value, Chunk empty, u32 class_bits)
{
    const Chunk near = random_bits() % 2 ? value : empty;
    switch (random_bits() % 5) {
        case 0: return value;
        case 1: return empty ^ static_cast<Chunk>(random_bits() & class_bits);
        case 2: return near ^ Chunk{1} << random_bits() % (8 * sizeof(Chunk));
        case 3: return static_cast<Chunk>((near & 0xFFFFFFFF) | u64{random_bits()} << 32);
        default: return static_cast<Chunk>(random_bits());
    }
}

// `match(bucket, value, empty, class_bits)` for buckets of `bytes`.
template <class Chunk, u32 bytes, class Match>
void check(const char* name, Match match)
{
    constexpr u32 count = bytes / sizeof(Chunk);
    u64 equal_slots = 0, empty_slots = 0;
    for (u32 round = 0; round < 100000; ++round) {
        const u32 class_bits = round % 2 ? 1 : 3;
        const Chunk value = round % 5 ? static_cast<Chunk>(random_bits()) : 0;
        const Chunk empty = (round % 7 ? static_cast<Chunk>(random_bits()) : static_cast<Chunk>(-1)) & ~Chunk{class_bits};
        alignas(64) Chunk slots[count];
        platform::SlotMasks wanted{0, 0};
        for (u32 slot = 0; slot < count; ++slot) {
            slots[slot] = any_slot(value, empty, class_bits);
            wanted.equal |= u32{slots[slot] == value} << slot;
            wanted.may_be_empty |= u32{(slots[slot] | class_bits) == (empty | class_bits)} << slot;
        }
        const platform::SlotMasks masks = match(slots, value, empty, class_bits);
        if (masks.equal != wanted.equal || masks.may_be_empty != wanted.may_be_empty) {
            std::printf("%s, round %u: masks %x and %x, not %x and %x\n", name, round, masks.equal, masks.may_be_empty,
                        wanted.equal, wanted.may_be_empty);
            std::exit(1);
        }
        equal_slots += platform::population_count(masks.equal);
        empty_slots += platform::population_count(masks.may_be_empty);
    }
    std::printf("%s: %llu equal slots, %llu empty ones\n", name, equal_slots, empty_slots);
    if (equal_slots == 0 || empty_slots == 0) std::exit(1);
}

template <class Chunk>
void check_both(const char* name)
{
    check<Chunk, 64>(name, platform::match_bucket_of_64<Chunk>);
    if constexpr (platform::Warp::matches_buckets<Chunk, 16, 32>) check<Chunk, 32>(name, platform::Warp::match_bucket<Chunk>);
#if defined(__aarch64__)
    static_assert(platform::Warp::matches_buckets<Chunk, 8, 64>, "the bucket tables use it");
    check<Chunk, 64>(name, platform::Warp::match_bucket<Chunk>);
#endif
}

}  // namespace

int main()
{
    check_both<u32>("slots of 1 word");
    check_both<u64>("slots of 2 words");
}
