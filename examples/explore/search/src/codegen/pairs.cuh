// Steps of a sender and a receiver on one channel: the same code for all pairs, which are data. The generated text before this
// one has:
//
// - `pairs`, the sender and the receiver of each pair; `moves`, a row for each transition; `message_values`, the number of values
//   of the longest message, at least 1;
// - `is_committed(transition)` and `any_committed(state)`: whether the transition starts in a committed location, and whether any
//   process is in one;
// - functions with a case for each transition: `guard_holds`; `send`, which computes the values of a message; `receive`, which
//   stores them; and `carry_out`, which has the effects.

namespace explore {

// Columns of a row of `moves`: word of the process's location in a packed state, lowest bit there and mask; where the transition
// leads from and to.
constexpr u32 move_word = 0, move_shift = 1, move_mask = 2, move_from = 3, move_to = 4;

// Whether the transition's process is in its source location and the guard holds.
template <class State>
EXPLORE_FN bool is_enabled(u32 transition, const State& from, Notes& notes)
{
    const u32* const move = moves[transition];
    const u32 word = from.template select<0, state_words>(move[move_word]);
    if ((word >> move[move_shift] & move[move_mask]) != move[move_from]) return false;
    return guard_holds(transition, from, notes);
}

// Moves the transition's process and carries out the effects.
template <class State>
EXPLORE_FN void act(u32 transition, State& to, Notes& notes)
{
    const u32* const move = moves[transition];
    const u32 word = to.template select<0, state_words>(move[move_word]);
    const u32 rest = word & ~(move[move_mask] << move[move_shift]);
    to.template replace<0, state_words>(move[move_word], rest | move[move_to] << move[move_shift]);
    carry_out(transition, to, notes);
}

// Makes `to`, which must equal `from`, the target of the pair's step. Returns false, and leaves `to` unchanged, if the pair
// cannot take a step.
template <class State>
EXPLORE_FN bool take_pair(u32 pair, const State& from, State& to, Notes& notes)
{
    const u32* const sides = pairs[pair];
    EXPLORE_NO_UNROLL
    for (u32 side = 0; side < 2; ++side)
        if (!is_enabled(sides[side], from, notes)) return false;
    if (!is_committed(sides[0]) && !is_committed(sides[1]) && any_committed(from)) return false;
    i32 values[message_values] = {};
    send(sides[0], from, values, notes);
    receive(sides[1], values, to, notes);
    // The receiver acts first.
    EXPLORE_NO_UNROLL
    for (u32 side = 2; side-- > 0;) act(sides[side], to, notes);
    return true;
}

}  // namespace explore
