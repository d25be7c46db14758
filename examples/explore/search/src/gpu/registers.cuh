// A state in registers, for few words. An element of an array is selected from all words that the array occupies.

namespace explore {

struct RegisterState {
    u32 words[state_words];

    template <u32 first, u32 count>
    EXPLORE_FN u32 select(u32 i) const
    {
        u32 word = words[first];
        EXPLORE_UNROLL
        for (u32 at = 1; at < count; ++at)
            if (i == at) word = words[first + at];
        return word;
    }

    template <u32 first, u32 count>
    EXPLORE_FN void replace(u32 i, u32 word)
    {
        EXPLORE_UNROLL
        for (u32 at = 0; at < count; ++at)
            if (i == at) words[first + at] = word;
    }
};

}  // namespace explore
