// Tests of firings and sums of tokens in a state of a net, from words in memory (survey.cu, branching.cu).

namespace explore {

using warpset::u32;
using warpset::u64;

// A firing: the numbers of its tests for equality and for a least value, then the tests, each a word, a mask and a value.
template <class Words>
__device__ bool is_enabled(const u32* firing, const Words& state)
{
    const u32* at = firing + 2;
    for (u32 left = firing[0]; left != 0; --left, at += 3)
        if ((state[at[0]] & at[1]) != at[2]) return false;
    for (u32 left = firing[1]; left != 0; --left, at += 3)
        if ((state[at[0]] & at[1]) < at[2]) return false;
    return true;
}

// A sum as `Sum::words` writes it.
template <class Words>
__device__ u64 value_of(const u32* sum, const Words& state)
{
    u64 value = sum[0] | static_cast<u64>(sum[1]) << 32;
    const u32* at = sum + 6;
    for (u32 left = sum[2]; left != 0; --left, at += 2) value += warpset::platform::population_count(state[at[0]] & at[1]);
    for (u32 left = sum[3]; left != 0; --left, at += 3) value += state[at[0]] >> at[1] & at[2];
    for (u32 left = sum[4]; left != 0; --left, at += 3) value += (state[at[0]] & at[1]) == at[2];
    for (u32 left = sum[5]; left != 0; --left, at += 2) value += (state[at[0]] & at[1]) != 0;
    return value;
}

}  // namespace explore
