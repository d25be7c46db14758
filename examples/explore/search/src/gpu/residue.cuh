// What is known of a product state while accepting cycles are searched (liveness/residue.rs): two bytes, and how steps change
// them.
//
// It compiles with NVRTC and with a C++17 compiler and includes nothing; the constants and functions have their equals in
// liveness/residue.rs, which a test compares with these for all values.

#ifndef RESIDUE_FN
#define RESIDUE_FN __device__ __forceinline__
#endif

// Of simulated memory (tests/simt), whose cells have four bytes, another type.
#ifndef RESIDUE_FLAGS
#define RESIDUE_FLAGS unsigned short
#endif

namespace explore {

using Flags = RESIDUE_FLAGS;

constexpr unsigned in_residue = 1u << 15;
constexpr unsigned is_reached = 1u << 14;    // since the last reset
constexpr unsigned is_accepting = 1u << 13;
constexpr unsigned count_mask = is_accepting - 1;  // of predecessors

// With one predecessor more; one outside the residue stays as it is. A count of `most` stays for ever.
RESIDUE_FN Flags counted(Flags before, unsigned most)
{
    if (!(before & in_residue)) return before;
    const unsigned count = before & count_mask;
    return static_cast<Flags>((before & ~count_mask) | is_reached | (count < most ? count + 1 : count));
}

// With one predecessor less: the last one takes the state out of the residue.
RESIDUE_FN Flags uncounted(Flags before, unsigned most)
{
    const unsigned count = before & count_mask;
    if (!(before & in_residue) || count == 0 || count >= most) return before;
    return count == 1 ? 0 : static_cast<Flags>(before - 1);
}

}  // namespace explore
