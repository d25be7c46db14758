//! Figures of a net over all states in a table: how often each transition fires, the most tokens, and where conditions hold.
//!
//! All figures depend only on the set of states, whether threads, a GPU or several ranks found it. So one pass over the table
//! computes them after the search has ended, and no engine has to count them. On a GPU a kernel makes the pass (gpu/survey.cu)
//! unless there are conditions to evaluate. Otherwise one thread fetches states, and all threads evaluate them.

#[cfg(feature = "cuda")]
use crate::gpu::{SurveyPlan, unless_memory_ends};
use anyhow::Result;
use rayon::prelude::*;
use warpset::{Storage, VectorTable};
use warpset_model::ir::Model;
use warpset_model::ir::net::{Firings, Holder, Net, PlaceId};
use warpset_model::net::marking::{Check, Sum};
use warpset_support::stopping::Stop;

/// Number of states that a thread evaluates at a time.
const PIECE: usize = 1 << 10;

/// Figures and conditions that are computed over the states of a net.
pub struct Survey<'m> {
    net: &'m Net,
    firings: Firings,
    /// The sum of the tokens of all places.
    tokens: Sum,
    /// Words, lowest bits and masks of the fields that hold numbers of tokens, with their places.
    numbers: Vec<(u32, u32, u32, PlaceId)>,
    /// Words, lowest bits and masks of the fields that places share, with the index of each field's first entry in `code_places`.
    codes: Vec<(u32, u32, u32, usize)>,
    /// By value of a shared field, the place that is marked; `None` if no place has the value.
    code_places: Vec<Option<PlaceId>>,
    /// Sums whose largest values are computed.
    pub sums: Vec<Sum>,
    /// Conditions. The survey finds a state in which each of them holds.
    pub conditions: Vec<Check>,
    /// Whether to compute only states for conditions. The survey then ends as soon as each condition has a state.
    pub only_conditions: bool,
}

/// Results of a survey.
#[derive(Clone, Debug, Default)]
pub struct Surveyed {
    pub states: u64,
    /// By transition, the number of states in which it can fire.
    pub firings: Vec<u64>,
    /// Largest number of tokens of one place in one state.
    pub max_in_place: u64,
    /// Largest total number of tokens in one state.
    pub max_tokens: u64,
    /// By place, whether its number of tokens differs between states.
    pub changes: Vec<bool>,
    /// The largest value of each sum.
    pub sums: Vec<u64>,
    /// By condition, a state in which it holds, if there is one.
    pub holds: Vec<Option<Vec<u32>>>,
    /// Why the pass ended before all states were evaluated.
    pub stopped: Option<Stop>,
}

/// Figures of some states.
#[derive(Clone)]
struct Part {
    states: u64,
    firings: Vec<u64>,
    max_tokens: u64,
    /// By number field, the smallest and the largest number of tokens.
    numbers: Vec<[u32; 2]>,
    /// By value of shared fields, whether it occurred.
    codes: Vec<bool>,
    sums: Vec<u64>,
    holds: Vec<Option<Vec<u32>>>,
}

impl<'m> Survey<'m> {
    /// Creates a survey of firings and tokens. `None` if the model is not a net, or has a property.
    pub fn of(model: &'m Model) -> Option<Self> {
        let net = model.net.as_ref().filter(|_| model.property.is_none())?;
        let layout = &model.layout;
        let all: Vec<PlaceId> = (0..net.places.len()).collect();
        let (mut numbers, mut codes, mut code_places): (Vec<_>, Vec<_>, Vec<Option<PlaceId>>) = Default::default();
        let mut first_of: Vec<Option<usize>> = vec![None; model.variables.len()];
        for (place, of) in net.places.iter().enumerate() {
            match of.holder {
                Holder::Constant | Holder::Less { .. } | Holder::Opposite { .. } => {}
                Holder::Number { variable, .. } => {
                    let field = layout.variables[variable].expect("a place that changes has a field");
                    numbers.push((field.bit / 32, field.bit % 32, u32::MAX >> (32 - field.bits), place));
                }
                Holder::Code { variable, code, .. } => {
                    let field = layout.variables[variable].expect("a place that changes has a field");
                    let first = *first_of[variable].get_or_insert_with(|| {
                        let first = code_places.len();
                        codes.push((field.bit / 32, field.bit % 32, u32::MAX >> (32 - field.bits), first));
                        code_places.resize(first + (1 << field.bits), None);
                        first
                    });
                    code_places[first + code as usize] = Some(place);
                }
            }
        }
        let (firings, tokens) = (Firings::of(net, layout), Sum::of(net, layout, &all));
        let (sums, conditions) = (Vec::new(), Vec::new());
        Some(Self { net, firings, tokens, numbers, codes, code_places, sums, conditions, only_conditions: false })
    }

    /// Evaluates all states of a table. No other thread may change the table meanwhile.
    pub fn run<S: Storage>(&self, table: &VectorTable<S>, stop: fn() -> Option<Stop>) -> Result<Surveyed> {
        #[cfg(feature = "cuda")]
        if table.device().is_gpu() && self.conditions.is_empty() && !self.only_conditions {
            // If there is no memory for the kernel, the host computes the figures.
            if let Some((figures, stopped)) = unless_memory_ends(self.plan().run(table, stop))? {
                return Ok(self.surveyed(self.part_of(&figures), stopped));
            }
        }
        let width = table.width();
        let mut all = self.nothing();
        let mut stopped = None;
        let mut parts = table.iter();
        while let Some(part) = parts.next_part() {
            let (_, states) = part?;
            stopped = stop();
            if stopped.is_some() {
                break;
            }
            let known = &all.holds;
            let parts = states.par_chunks(PIECE * width).map(|states| self.evaluate(states, width, known));
            let part = parts.reduce(|| self.nothing(), |one, other| self.joined(one, other));
            all = self.joined(all, part);
            if self.only_conditions && all.holds.iter().all(Option::is_some) {
                break;
            }
        }
        Ok(self.surveyed(all, stopped))
    }

    /// The survey without its conditions, in the form for a GPU.
    #[cfg(feature = "cuda")]
    fn plan(&self) -> SurveyPlan {
        let sums = std::iter::once(&self.tokens).chain(&self.sums);
        let numbers = self.numbers.iter().map(|(word, shift, mask, _)| [*word, *shift, *mask]);
        let codes = self.codes.iter().map(|(word, shift, mask, first)| [*word, *shift, *mask, *first as u32]);
        SurveyPlan::new(&self.firings.groups, &self.firings.all, sums, numbers, codes, self.code_places.len())
    }

    /// Converts the figures that a [`plan`](Self::plan) returns.
    #[cfg(feature = "cuda")]
    fn part_of(&self, figures: &[u64]) -> Part {
        let (firings, rest) = figures[1..].split_at(self.firings.all.len());
        let (sums, rest) = rest.split_at(1 + self.sums.len());
        let (numbers, codes) = rest.split_at(2 * self.numbers.len());
        Part {
            states: figures[0],
            firings: firings.to_vec(),
            max_tokens: sums[0],
            // The kernel returns the complement of the smallest number. If there was no state, the complement is 0 and the
            // smallest number becomes the largest 32-bit number.
            numbers: numbers.chunks_exact(2).map(|seen| [!(seen[0] as u32), seen[1] as u32]).collect(),
            codes: codes.iter().map(|seen| *seen != 0).collect(),
            sums: sums[1..].to_vec(),
            holds: Vec::new(),
        }
    }

    fn nothing(&self) -> Part {
        Part {
            states: 0,
            firings: vec![0; if self.only_conditions { 0 } else { self.firings.all.len() }],
            max_tokens: 0,
            numbers: vec![[u32::MAX, 0]; self.numbers.len()],
            codes: vec![false; self.code_places.len()],
            sums: vec![0; self.sums.len()],
            holds: vec![None; self.conditions.len()],
        }
    }

    fn evaluate(&self, states: &[u32], width: usize, known: &[Option<Vec<u32>>]) -> Part {
        let mut part = self.nothing();
        for state in states.chunks_exact(width) {
            part.states += 1;
            for (at, condition) in self.conditions.iter().enumerate() {
                if known[at].is_none() && part.holds[at].is_none() && condition.holds(&self.firings, state) {
                    part.holds[at] = Some(state.to_vec());
                }
            }
            if self.only_conditions {
                continue;
            }
            self.count_firings(state, &mut part.firings);
            part.max_tokens = part.max_tokens.max(self.tokens.value(state));
            for ((word, shift, mask, _), seen) in self.numbers.iter().zip(&mut part.numbers) {
                let tokens = state[*word as usize] >> shift & mask;
                *seen = [seen[0].min(tokens), seen[1].max(tokens)];
            }
            for (word, shift, mask, first) in &self.codes {
                part.codes[first + (state[*word as usize] >> shift & mask) as usize] = true;
            }
            for (sum, most) in self.sums.iter().zip(&mut part.sums) {
                *most = (*most).max(sum.value(state));
            }
        }
        part
    }

    fn count_firings(&self, state: &[u32], counts: &mut [u64]) {
        for group in &self.firings.groups {
            let part = group.test.part(state);
            if if group.is_equal { part == group.test.value } else { part >= group.test.value } {
                let firings = &self.firings.all[group.firings.clone()];
                for (firing, count) in firings.iter().zip(&mut counts[group.firings.clone()]) {
                    *count += u64::from(firing.is_enabled(state));
                }
            }
        }
    }

    fn joined(&self, mut one: Part, other: Part) -> Part {
        one.states += other.states;
        one.firings.iter_mut().zip(other.firings).for_each(|(sum, more)| *sum += more);
        one.max_tokens = one.max_tokens.max(other.max_tokens);
        one.numbers.iter_mut().zip(other.numbers).for_each(|(seen, more)| *seen = [seen[0].min(more[0]), seen[1].max(more[1])]);
        one.codes.iter_mut().zip(other.codes).for_each(|(seen, more)| *seen |= more);
        one.sums.iter_mut().zip(other.sums).for_each(|(most, more)| *most = (*most).max(more));
        one.holds.iter_mut().zip(other.holds).for_each(|(state, other)| *state = state.take().or(other));
        one
    }

    fn surveyed(&self, part: Part, stopped: Option<Stop>) -> Surveyed {
        let Part { states, firings: of_firings, max_tokens, numbers, codes, sums, holds } = part;
        let mut firings = vec![0; self.net.transitions.len()];
        self.firings.all.iter().zip(of_firings).for_each(|(firing, count)| firings[firing.transition] = count);
        let constants = self.net.places.iter().filter(|place| place.holder == Holder::Constant);
        let mut max_in_place = constants.map(|place| u64::from(place.initial)).max().unwrap_or(0);
        let mut changes = vec![false; self.net.places.len()];
        let mut is_empty_somewhere = vec![false; self.net.places.len()];
        for ((.., place), [least, most]) in self.numbers.iter().zip(numbers) {
            changes[*place] = least < most;
            is_empty_somewhere[*place] = least == 0;
            max_in_place = max_in_place.max(most.into());
        }
        for (_, _, mask, first) in &self.codes {
            let values = *first..first + *mask as usize + 1;
            let seen = codes[values.clone()].iter().filter(|seen| **seen).count();
            for value in values.filter(|value| codes[*value]) {
                if let Some(place) = self.code_places[value] {
                    changes[place] = seen > 1;
                    max_in_place = max_in_place.max(1);
                }
            }
        }
        for (place, of) in self.net.places.iter().enumerate() {
            match of.holder {
                // A place never has more tokens than the one that it follows.
                Holder::Less { of, .. } => changes[place] = changes[of],
                Holder::Opposite { of } => {
                    changes[place] = changes[of];
                    max_in_place = max_in_place.max(is_empty_somewhere[of].into());
                }
                Holder::Constant | Holder::Number { .. } | Holder::Code { .. } => {}
            }
        }
        Surveyed { states, firings, max_in_place, max_tokens, changes, sums, holds, stopped }
    }
}
