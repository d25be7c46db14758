// Flags of a product state during the search for accepting cycles (liveness/residue.rs): two bytes, and how steps change them.
//
// This text compiles with NVRTC and with a C++17 compiler, and includes nothing. liveness/residue.rs has equal constants and
// functions; a test compares them for all values.

#ifndef RESIDUE_FN
#define RESIDUE_FN __device__ __forceinline__
#endif

// Simulated memory (tests/simt) has cells of four bytes and needs another type.
#ifndef RESIDUE_FLAGS
#define RESIDUE_FLAGS unsigned short
#endif

namespace explore {

using Flags = RESIDUE_FLAGS;

constexpr unsigned in_residue = 1u << 15;
constexpr unsigned is_reached = 1u << 14;    // reached since the last reset
constexpr unsigned is_accepting = 1u << 13;
constexpr unsigned count_mask = is_accepting - 1;  // bits of the count of predecessors

// Adds a predecessor. A state outside the residue stays as it is, and so does a count of `most`.
RESIDUE_FN Flags counted(Flags before, unsigned most)
{
    if (!(before & in_residue)) return before;
    const unsigned count = before & count_mask;
    return static_cast<Flags>((before & ~count_mask) | is_reached | (count < most ? count + 1 : count));
}

// Removes a predecessor; removing the last one takes the state out of the residue.
RESIDUE_FN Flags uncounted(Flags before, unsigned most)
{
    const unsigned count = before & count_mask;
    if (!(before & in_residue) || count == 0 || count >= most) return before;
    return count == 1 ? 0 : static_cast<Flags>(before - 1);
}

}  // namespace explore
