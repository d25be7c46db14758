// States in memory, and the random numbers of walks: after the generated text, for every machine.

namespace explore {

// A state whose arrays are accessed by index.
struct ArrayState {
    u32 words[state_words];

    template <u32 first, u32 count>
    EXPLORE_FN u32 select(u32 i) const
    {
        return words[first + i];
    }

    template <u32 first, u32 count>
    EXPLORE_FN void replace(u32 i, u32 word)
    {
        words[first + i] = word;
    }
};

// Mirrored by `Random` in simulation.rs.
struct Random {
    unsigned long long state;

    EXPLORE_FN unsigned long long next()
    {
        state += 0x9e3779b97f4a7c15ull;
        unsigned long long mixed = state;
        mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ull;
        mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebull;
        return mixed ^ mixed >> 31;
    }

    EXPLORE_FN u32 below(u32 count) { return static_cast<u32>((next() >> 32) * count >> 32); }
};

}  // namespace explore
