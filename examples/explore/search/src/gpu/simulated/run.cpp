// The kernel of a rank for the simulated GPU (tests/simt). `MODEL` is its text, with the next-state functions of a model.

#include "module.h"

#include "explore.h"

#define __device__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))

#include MODEL

namespace {

// Mirrored by `Argument` in simulated.rs.
struct Argument {
    warpset::View view;
    const unsigned* tables;
    explore::States states;
    unsigned* offers;
    explore::SearchState* search;
    explore::Limits limits;
    unsigned* marks;  // of a reduced search
};

}  // namespace

extern "C" {

void simulated_describe(unsigned* threads, unsigned* shared_bytes, explore::u64* most_steps, unsigned* marks)
{
    describe(threads, shared_bytes);
#ifdef EXPLORE_REDUCES
    count_marks(marks);
#else
    *marks = 0;
#endif
    *shared_bytes = EXPLORE_SHARED_BYTES;
    count_steps(most_steps);
}

void simulated_expand(const void* of)
{
    const Argument& argument = *static_cast<const Argument*>(of);
#ifdef EXPLORE_REDUCES
#define MARKS , argument.marks
#else
#define MARKS
#endif
    expand_states(argument.view, argument.tables, argument.states, argument.offers, argument.search, argument.limits MARKS);
}
}
