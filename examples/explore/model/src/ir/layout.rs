//! The layout of a state: where each of its parts lies in its 32-bit words.
//!
//! Bit b of a state is bit b % 32 of word b / 32. A location takes as many bits as it needs (none if the process has only one
//! location). A scalar takes as many bits as the values that it can ever have ([`bounds`](super::bounds)). Each element of an
//! array takes the next power of two of bits, and the array begins at a multiple of that number. Therefore no value straddles two
//! words, and finding an element takes one multiplication.
//!
//! Variables that belong to no process come first. Then, for each process, come its location and its variables, wide ones before
//! narrow ones. Each item goes to the first free place among the last few words, so that related parts, which change together,
//! stay in adjacent words; trees share such words. The number of words searched for a place is the smallest with which the state
//! takes no more words than if all words were searched.
//!
//! [`Packing::Words`] leaves values apart instead: a word for each location, scalar and element, in the same order.

use super::{Process, Variable};

/// Words of the longest state: the width of the widest vectors of warpset's tables.
pub const MAX_WORDS: usize = 256;

/// Position of a location, a scalar or an array in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// First bit, counted from bit 0 of word 0. Element i begins at `bit + i * bits`.
    pub bit: u32,
    /// Bits of a value or of an element: 0 (always the value 0) to 32.
    pub bits: u32,
    /// Whether the top bit is the sign.
    pub signed: bool,
}

/// How the parts of a state share its words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packing {
    /// Parts take the bits that they need, and share words.
    #[default]
    Bits,
    /// Each location, scalar and element of an array has a word. Those that need no bit have none.
    Words,
}

/// The layout of the states of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Words of each state; at least 1.
    pub words: usize,
    /// Number of bits in use, so there are at most 2^bits states.
    pub bits: u32,
    /// Number of the highest bit in use, plus 1. All bits from this one on are 0.
    pub end: u32,
    pub packing: Packing,
    /// Fields of the processes' locations, by process.
    pub locations: Vec<Field>,
    /// Fields of the variables, by variable; `None` for a variable that nothing writes.
    pub variables: Vec<Option<Field>>,
}

impl Field {
    /// The word that holds a value, and the value's lowest bit there. `element` is 0 except for arrays.
    pub fn position(&self, element: usize) -> (usize, u32) {
        let bit = self.bit as usize + element * self.bits as usize;
        (bit / 32, (bit % 32) as u32)
    }

    pub fn get(&self, state: &[u32], element: usize) -> i32 {
        if self.bits == 0 {
            return 0;
        }
        let ((word, shift), unused) = (self.position(element), 32 - self.bits);
        let top = state[word] << (unused - shift);
        if self.signed { (top as i32) >> unused } else { (top >> unused) as i32 }
    }

    /// Stores the low bits of `value`, as many as the field has.
    pub fn set(&self, state: &mut [u32], element: usize, value: i32) {
        if self.bits == 0 {
            return;
        }
        let (word, shift) = self.position(element);
        let mask = (u32::MAX >> (32 - self.bits)) << shift;
        state[word] = (state[word] & !mask) | (((value as u32) << shift) & mask);
    }
}

impl Layout {
    /// Lays out the states of processes and variables, with as many parts in a word as fit.
    pub fn new(processes: &[Process], variables: &[Variable]) -> Self {
        Self::packed(Packing::Bits, processes, variables)
    }

    /// Lays out the states of processes and variables.
    pub fn packed(packing: Packing, processes: &[Process], variables: &[Variable]) -> Self {
        let mut items = items(processes, variables);
        if packing == Packing::Words {
            items.iter_mut().filter(|item| item.bits > 0).for_each(|item| item.bits = u32::BITS);
        }
        let fewest = place(&items, usize::MAX).1;
        let (bits, words) = (1..)
            .map(|look_back| place(&items, look_back))
            .find(|(_, words)| *words == fewest)
            .expect("a look-back of all words reaches the fewest");
        let used = items.iter().map(|item| item.bits * item.elements).sum();
        let end = items.iter().zip(&bits).filter(|(item, _)| item.bits > 0).map(|(item, bit)| bit + item.bits * item.elements);
        let mut layout = Self {
            words,
            bits: used,
            end: end.max().unwrap_or(0),
            packing,
            locations: vec![Field::NOTHING; processes.len()],
            variables: vec![None; variables.len()],
        };
        for (item, bit) in items.iter().zip(bits) {
            let field = Field { bit, bits: item.bits, signed: item.signed };
            match item.what {
                What::Location(process) => layout.locations[process] = field,
                What::Variable(variable) => layout.variables[variable] = Some(field),
            }
        }
        layout
    }

    /// Number of bits in the last word, up to the highest bit in use; at least 1.
    pub fn last_bits(&self) -> u32 {
        self.end.saturating_sub(32 * (self.words as u32 - 1)).max(1)
    }

    /// Number of words up to the highest bit in use; at least 1.
    pub fn words_in_use(&self) -> usize {
        self.end.div_ceil(32).max(1) as usize
    }
}

impl Field {
    const NOTHING: Self = Self { bit: 0, bits: 0, signed: false };
}

#[derive(Clone, Copy)]
enum What {
    Location(usize),
    Variable(usize),
}

/// A location or variable that needs a place.
struct Item {
    what: What,
    /// Bits of each element.
    bits: u32,
    signed: bool,
    elements: u32,
    /// The first bit must be a multiple of this number. 1 if the item only must not straddle words.
    alignment: u32,
}

/// All items, in the order in which they are placed.
fn items(processes: &[Process], variables: &[Variable]) -> Vec<Item> {
    let variables_of = |process: Option<usize>| {
        let of_process = move |(_, variable): &(usize, &Variable)| variable.process == process && variable.is_written;
        variables.iter().enumerate().filter(of_process).map(|(id, variable)| {
            let bits = variable.values.bits();
            let bits = if variable.is_array { bits.next_power_of_two() } else { bits };
            let alignment = if variable.is_array { bits } else { 1 };
            let elements = variable.initial.len() as u32;
            Item { what: What::Variable(id), bits, signed: variable.values.low < 0, elements, alignment }
        })
    };
    let mut all: Vec<Item> = Vec::new();
    for process in std::iter::once(None).chain((0..processes.len()).map(Some)) {
        let location = process.map(|process| {
            let bits = usize::BITS - (processes[process].locations.len() - 1).leading_zeros();
            Item { what: What::Location(process), bits, signed: false, elements: 1, alignment: 1 }
        });
        let mut group: Vec<Item> = variables_of(process).chain(location).collect();
        group.sort_by_key(|item| std::cmp::Reverse(item.bits * item.elements));
        all.extend(group);
    }
    all
}

/// Returns the first bit of each item, and the total number of words, if only the last `look_back` words are searched for a
/// place.
fn place(items: &[Item], look_back: usize) -> (Vec<u32>, usize) {
    let mut taken: Vec<u32> = vec![0]; // bits in use, by word
    let bits = items.iter().map(|item| {
        let first = taken.len().saturating_sub(look_back) as u32 * 32;
        let bit = (first..).step_by(item.alignment as usize).find(|bit| is_free(&taken, *bit, item)).expect("new words are free");
        for value in 0..item.elements {
            let (word, mask) = mask(bit + value * item.bits, item.bits);
            taken.resize(taken.len().max(word + 1), 0);
            taken[word] |= mask;
        }
        bit
    });
    (bits.collect(), taken.len())
}

/// Whether the item fits at `bit`: its bits are free, and no value straddles words. Bits beyond the last word are free.
fn is_free(taken: &[u32], bit: u32, item: &Item) -> bool {
    (0..item.elements).all(|element| {
        let bit = bit + element * item.bits;
        let (word, mask) = mask(bit, item.bits);
        bit % 32 + item.bits <= 32 && taken.get(word).is_none_or(|taken| taken & mask == 0)
    })
}

/// Returns the word that holds bit `bit`, and a mask of the `bits` bits from there on. Ignores bits beyond that word.
fn mask(bit: u32, bits: u32) -> (usize, u32) {
    let ones = if bits == 0 { 0 } else { u32::MAX >> (32 - bits) };
    ((bit / 32) as usize, ones << (bit % 32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Location, Type};
    use proptest::prelude::*;

    fn process(locations: usize) -> Process {
        let locations = vec![Location { name: String::new(), committed: false }; locations];
        Process { name: String::new(), locations, initial: 0, transitions: 0..0 }
    }

    fn variable(process: Option<usize>, ty: Type, elements: Option<usize>) -> Variable {
        let initial = vec![0; elements.unwrap_or(1)];
        Variable { is_written: true, ..Variable::new(String::new(), process, ty, elements.is_some(), initial) }
    }

    #[test]
    fn fields_fill_words() {
        // Seven processes, each with a byte and eight locations: 77 bits.
        let processes = vec![process(8); 7];
        let variables: Vec<_> = (0..7).map(|at| variable(Some(at), Type::BYTE, None)).collect();
        assert_eq!(Layout::new(&processes, &variables).words, 3);
        assert_eq!(Layout::new(&[process(1)], &[]).words, 1, "a state has a word, if there is nothing to tell");
    }

    #[test]
    fn unpacked_parts_have_words_of_their_own() {
        // A process of one location has no bits. The others, a byte and three elements of a bit take a word each.
        let processes = [process(1), process(8)];
        let variables = [variable(None, Type::BYTE, None), variable(Some(1), Type::BOOLEAN, Some(3))];
        let layout = Layout::packed(Packing::Words, &processes, &variables);
        assert_eq!((layout.words, layout.bits, layout.end), (5, 160, 160));
        assert_eq!(layout.locations, [Field { bit: 0, bits: 0, signed: false }, Field { bit: 128, bits: 32, signed: false }]);
        assert_eq!(layout.variables[1].unwrap().position(2), (3, 0));
    }

    fn variables() -> impl Strategy<Value = Vec<Variable>> {
        let ty = (1u8..=32, any::<bool>()).prop_map(|(bits, signed)| Type { bits, signed });
        let one =
            (proptest::option::of(0usize..4), ty, proptest::option::of(1usize..70)).prop_map(|(p, ty, n)| variable(p, ty, n));
        proptest::collection::vec(one, 0..12)
    }

    proptest! {
        #[test]
        fn what_is_stored_is_read(
            sizes in proptest::collection::vec(1usize..70, 4),
            variables in variables(),
            packing in prop_oneof![Just(Packing::Bits), Just(Packing::Words)],
            seed in any::<u32>(),
        ) {
            let processes: Vec<_> = sizes.iter().map(|size| process(*size)).collect();
            let layout = Layout::packed(packing, &processes, &variables);
            let mut state = vec![0; layout.words];
            let mut ones = vec![0; layout.words];
            let value = |at: usize| (at as u32).wrapping_mul(0x9e37_79b1).wrapping_add(seed) as i32;
            for (at, field) in layout.variables.iter().enumerate() {
                for element in 0..variables[at].initial.len() {
                    field.unwrap().set(&mut state, element, variables[at].ty.wrap(value(at + element)));
                    field.unwrap().set(&mut ones, element, -1);
                }
            }
            for (at, field) in layout.locations.iter().enumerate() {
                field.set(&mut state, 0, (seed as usize % sizes[at]) as i32);
                field.set(&mut ones, 0, -1);
            }
            let used: Vec<u32> = (0..32 * layout.words as u32).filter(|bit| ones[*bit as usize / 32] >> (bit % 32) & 1 == 1).collect();
            prop_assert_eq!((used.len() as u32, used.last().map_or(0, |last| last + 1)), (layout.bits, layout.end));
            prop_assert_eq!(layout.words_in_use(), layout.words);
            for (at, field) in layout.variables.iter().enumerate() {
                for element in 0..variables[at].initial.len() {
                    prop_assert_eq!(field.unwrap().get(&state, element), variables[at].ty.wrap(value(at + element)));
                }
            }
            for (at, field) in layout.locations.iter().enumerate() {
                prop_assert_eq!(field.get(&state, 0) as usize, seed as usize % sizes[at]);
            }
        }
    }
}
