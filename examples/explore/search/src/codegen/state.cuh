// Building blocks of generated next-state functions: fields of packed states, wrapping arithmetic, faults and overflows.
//
// This text compiles with NVRTC and with a C++17 compiler, and includes nothing. The including text defines EXPLORE_FN (prefix of
// a function), EXPLORE_OUT_OF_LINE (prefix of a large function that is called from several places), EXPLORE_DATA (prefix of a
// constant array) and EXPLORE_NO_UNROLL (before loops). It also provides the type of states: `words[i]`, and for arrays of
// several words `select<first, count>(i)` and `replace<first, count>(i, word)` of `words[first + i]`.

namespace explore {

using i32 = int;
using u32 = unsigned int;

// Faults and overflows of a step.
struct Notes {
    u32 fault = 0;        // first fault: 1 an index outside its array, 2 a division by zero, 3 no room for tokens
    u32 transition = 0;   // the transition with that fault
    u32 overflows = 0;    // stores that changed the value
};

// Set of numbers below `end`: the moves that a property's automaton has in a state, or the conditions that a state violates.
template <u32 end>
struct Numbers {
    static constexpr u32 count = end / 32 + 1;
    u32 bits[count] = {};

    EXPLORE_FN void add(u32 number) { bits[number / 32] |= 1u << number % 32; }
    EXPLORE_FN void add_if(bool is_in, u32 number) { bits[number / 32] |= static_cast<u32>(is_in) << number % 32; }
    EXPLORE_FN bool has(u32 number) const { return bits[number / 32] >> number % 32 & 1; }
    EXPLORE_FN bool is_empty() const
    {
        u32 all = 0;
        for (u32 word = 0; word < count; ++word) all |= bits[word];
        return all == 0;
    }
};

constexpr u32 fault_index = 1, fault_division = 2, fault_tokens = 3;

// Result of a choice: no step, a step that was taken, or the number of a pair of processes that is still to try.
constexpr u32 no_step = 0, a_step = 1, first_pair = 2;

EXPLORE_FN void note_fault(Notes& notes, u32 fault, u32 transition)
{
    if (notes.fault != 0) return;
    notes.fault = fault;
    notes.transition = transition;
}

// After a fault any defined value will do: the step is not taken.
EXPLORE_FN i32 index_in(i32 index, u32 elements, u32 transition, Notes& notes)
{
    if (static_cast<u32>(index) < elements) return index;
    note_fault(notes, fault_index, transition);
    return 0;
}

EXPLORE_FN i32 wrapping_add(i32 a, i32 b) { return static_cast<i32>(static_cast<u32>(a) + static_cast<u32>(b)); }
EXPLORE_FN i32 wrapping_subtract(i32 a, i32 b) { return static_cast<i32>(static_cast<u32>(a) - static_cast<u32>(b)); }
EXPLORE_FN i32 wrapping_multiply(i32 a, i32 b) { return static_cast<i32>(static_cast<u32>(a) * static_cast<u32>(b)); }
EXPLORE_FN i32 wrapping_negate(i32 a) { return wrapping_subtract(0, a); }
EXPLORE_FN i32 shift_left(i32 a, i32 b) { return static_cast<i32>(static_cast<u32>(a) << (b & 31)); }
EXPLORE_FN i32 shift_right(i32 a, i32 b) { return a >> (b & 31); }

EXPLORE_FN i32 divide(i32 a, i32 b, u32 transition, Notes& notes)
{
    if (b == 0) note_fault(notes, fault_division, transition);
    return b == 0 ? 0 : b == -1 ? wrapping_negate(a) : a / b;
}

EXPLORE_FN i32 remainder(i32 a, i32 b, u32 transition, Notes& notes)
{
    if (b == 0) note_fault(notes, fault_division, transition);
    return b == 0 || b == -1 ? 0 : a % b;
}

// a to the power of b; for a negative b, 1 / (a to the power of -b), truncated.
EXPLORE_FN i32 power(i32 a, i32 b, u32 transition, Notes& notes)
{
    if (b < 0) {
        if (a == 0) note_fault(notes, fault_division, transition);
        return a == 1 || (a == -1 && b % 2 == 0) ? 1 : a == -1 ? -1 : 0;
    }
    u32 result = 1, factor = static_cast<u32>(a);
    EXPLORE_NO_UNROLL
    for (u32 left = static_cast<u32>(b); left != 0; left >>= 1) {
        if (left & 1) result *= factor;
        factor *= factor;
    }
    return static_cast<i32>(result);
}

// The value of `bits` bits of a word from `shift` on.
template <u32 bits, bool is_signed>
EXPLORE_FN i32 extract(u32 word, u32 shift)
{
    const u32 top = word << (32 - bits - shift);
    return is_signed ? static_cast<i32>(top) >> (32 - bits) : static_cast<i32>(top >> (32 - bits));
}

// Replaces `bits` bits of a word from `shift` on by the low bits of a value.
template <u32 bits>
EXPLORE_FN u32 insert(u32 word, u32 shift, i32 value)
{
    const u32 mask = ~0u >> (32 - bits) << shift;
    return (word & ~mask) | (static_cast<u32>(value) << shift & mask);
}

// The value that a variable of `bits` bits has after a store.
template <u32 bits, bool is_signed>
EXPLORE_FN i32 wrap(i32 value)
{
    return extract<bits, is_signed>(static_cast<u32>(value), 0);
}

// As `wrap`, and counts an overflow if the value changes.
template <u32 bits, bool is_signed>
EXPLORE_FN i32 wrap_noted(i32 value, Notes& notes)
{
    const i32 kept = wrap<bits, is_signed>(value);
    notes.overflows += kept != value;
    return kept;
}

// A scalar that begins at bit `bit` of the state.
template <u32 bit, u32 bits, bool is_signed, class State>
EXPLORE_FN i32 get(const State& state)
{
    return extract<bits, is_signed>(state.words[bit / 32], bit % 32);
}

template <u32 bit, u32 bits, class State>
EXPLORE_FN void set(State& state, i32 value)
{
    state.words[bit / 32] = insert<bits>(state.words[bit / 32], bit % 32, value);
}

// Position of an element of an array: `bits` bits each, a power of two; the array starts at a multiple of `bits`.
template <u32 bit, u32 bits, u32 elements>
struct Elements {
    static constexpr u32 first = bit / 32, words = (bit + bits * elements - 1) / 32 - first + 1;
    u32 word, shift;

    EXPLORE_FN explicit Elements(i32 index)
    {
        const u32 at = bit % 32 + static_cast<u32>(index) * bits;
        word = words == 1 ? 0 : at / 32;
        shift = at % 32;
    }
};

template <u32 bit, u32 bits, bool is_signed, u32 elements, class State>
EXPLORE_FN i32 get_element(const State& state, i32 index)
{
    using Array = Elements<bit, bits, elements>;
    const Array at(index);
    return extract<bits, is_signed>(state.template select<Array::first, Array::words>(at.word), at.shift);
}

template <u32 bit, u32 bits, u32 elements, class State>
EXPLORE_FN void set_element(State& state, i32 index, i32 value)
{
    using Array = Elements<bit, bits, elements>;
    const Array at(index);
    const u32 word = state.template select<Array::first, Array::words>(at.word);
    state.template replace<Array::first, Array::words>(at.word, insert<bits>(word, at.shift, value));
}

}  // namespace explore
