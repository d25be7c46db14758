//! Translates a formula to a Büchi automaton.
//!
//! The method is Couvreur's tableau (1999), with the simplification of transitions by Gastin and Oddoux (2001). A state is a set
//! of formulas that must hold from there on. Each formula is a disjunction of *terms*. A term says which propositions must be
//! true now, which formulas must hold from the next step on, and which `U` were put off:
//!
//! ```text
//! f U g  =  g  or  (f, next f U g, put off f U g)          f R g  =  g and (f or next f R g)
//! ```
//!
//! The terms of a set are the products of its formulas' terms; they are the transitions of the state. A term that demands at
//! least as much as another one in every respect is left out. A run is accepted if, for each `U`, infinitely many of its
//! transitions do not put it off: this is a generalised acceptance condition on transitions. It is degeneralised by levels: at
//! level i a run waits for a transition that does not put off the i-th `U`; a transition may pass several levels; a run that has
//! passed all levels is in an accepting state and starts again at the first level. Components in which every cycle is accepting,
//! or none is, need no levels, so weak automata stay weak.
//!
//! Existing crates do not fit: `omega-automata` 0.1 translates through alternating automata, needs a nightly compiler and does
//! not reduce the result; `mcltl-rs` is an experiment of 2020.

use super::buchi::{Buchi, Cube, Label};
use super::formula::Formula;
use anyhow::{Result, ensure};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use warpset_support::components::components;

/// Most states of the tableau.
const MOST_STATES: usize = 20_000;

/// Most terms of a set of terms.
const MOST_TERMS: usize = 20_000;

/// Most `U` operators in a formula: a term has one bit for each.
const MOST_UNTILS: usize = 64;

/// Number of a formula in negation normal form.
type Id = u32;

/// A formula in negation normal form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Node {
    Constant(bool),
    Literal(Cube),
    And(BTreeSet<Id>),
    Or(BTreeSet<Id>),
    Next(Id),
    Until(Id, Id),
    Release(Id, Id),
}

/// The distinct formulas, numbered.
#[derive(Default)]
struct Nodes {
    nodes: Vec<Node>,
    numbers: HashMap<Node, Id>,
    /// The terms of each formula for which they have been computed.
    terms: HashMap<Id, Vec<Term>>,
    /// The bit of each `U` that can be put off.
    untils: HashMap<Id, u32>,
}

/// One disjunct of a formula, and a transition of the tableau.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Term {
    now: Cube,
    next: BTreeSet<Id>,
    put_off: u64,
}

impl Term {
    const TRUE: Self = Self { now: Cube::TRUE, next: BTreeSet::new(), put_off: 0 };

    fn and(&self, other: &Self) -> Option<Self> {
        let now = self.now.and(other.now)?;
        Some(Self { now, next: self.next.union(&other.next).copied().collect(), put_off: self.put_off | other.put_off })
    }

    /// Whether `self` demands everything that `other` demands.
    fn is_no_better_than(&self, other: &Self) -> bool {
        self.now.implies(other.now) && other.next.is_subset(&self.next) && other.put_off & !self.put_off == 0
    }
}

/// Removes terms that are no better than another one.
fn best(mut terms: Vec<Term>) -> Vec<Term> {
    terms.sort_by_key(|term| {
        (term.next.len(), term.put_off.count_ones(), term.now.positive.count_ones() + term.now.negative.count_ones())
    });
    let mut kept: Vec<Term> = Vec::new();
    for term in terms {
        if !kept.iter().any(|other| term.is_no_better_than(other)) {
            kept.retain(|other| !other.is_no_better_than(&term));
            kept.push(term);
        }
    }
    kept.sort_unstable();
    kept
}

impl Nodes {
    fn add(&mut self, node: Node) -> Id {
        if let Some(number) = self.numbers.get(&node) {
            return *number;
        }
        let number = self.nodes.len() as Id;
        self.nodes.push(node.clone());
        self.numbers.insert(node, number);
        number
    }

    fn constant(&mut self, truth: bool) -> Id {
        self.add(Node::Constant(truth))
    }

    fn is(&self, id: Id, truth: bool) -> bool {
        self.nodes[id as usize] == Node::Constant(truth)
    }

    /// The number of a formula or, if `truth` is false, of its negation.
    fn of(&mut self, formula: &Formula, truth: bool) -> Id {
        match formula {
            Formula::Constant(value) => self.constant(*value == truth),
            Formula::Proposition(number) => self.add(Node::Literal(Cube::of(*number, truth))),
            Formula::Not(of) => self.of(of, !truth),
            Formula::And(of) | Formula::Or(of) => {
                let both = [self.of(&of[0], truth), self.of(&of[1], truth)];
                self.junction(both, matches!(formula, Formula::And(_)) == truth)
            }
            Formula::Next(of) => {
                let of = self.of(of, truth);
                if matches!(self.nodes[of as usize], Node::Constant(_)) { of } else { self.add(Node::Next(of)) }
            }
            Formula::Until(of) | Formula::Release(of) => {
                let (left, right) = (self.of(&of[0], truth), self.of(&of[1], truth));
                self.temporal(left, right, matches!(formula, Formula::Until(_)) == truth)
            }
        }
    }

    /// The number of a conjunction, or of a disjunction.
    fn junction(&mut self, parts: impl IntoIterator<Item = Id>, is_and: bool) -> Id {
        let mut all = BTreeSet::new();
        for part in parts {
            match &self.nodes[part as usize] {
                Node::Constant(truth) if *truth == is_and => {}
                Node::Constant(_) => return part,
                Node::And(of) if is_and => all.extend(of),
                Node::Or(of) if !is_and => all.extend(of),
                _ => {
                    all.insert(part);
                }
            }
        }
        let literals: Vec<Cube> = all.iter().filter_map(|part| self.literal(*part)).collect();
        if literals.iter().any(|a| literals.iter().any(|b| a.and(*b).is_none())) {
            return self.constant(!is_and);
        }
        match all.len() {
            0 => self.constant(is_and),
            1 => all.pop_first().expect("there is one"),
            _ => self.add(if is_and { Node::And(all) } else { Node::Or(all) }),
        }
    }

    fn literal(&self, id: Id) -> Option<Cube> {
        match self.nodes[id as usize] {
            Node::Literal(cube) => Some(cube),
            _ => None,
        }
    }

    /// The number of `left U right`, or of `left R right`.
    fn temporal(&mut self, left: Id, right: Id, is_until: bool) -> Id {
        // 1 U x and 0 R x are written F x and G x. This covers a constant on the right, equal sides, and 0 U x and 1 R x.
        if matches!(self.nodes[right as usize], Node::Constant(_)) || left == right || self.is(left, !is_until) {
            return right;
        }
        let is_plain = |nodes: &Self, id: Id, is_until: bool| match nodes.nodes[id as usize] {
            Node::Until(left, right) if is_until => nodes.is(left, true).then_some(right),
            Node::Release(left, right) if !is_until => nodes.is(left, false).then_some(right),
            _ => None,
        };
        // F F x is F x, and a U F x is F x; F G F x is G F x, and so is a U G F x. The dual rules hold, too.
        if is_plain(self, right, is_until).is_some() {
            return right;
        }
        if let Some(inner) = is_plain(self, right, !is_until)
            && is_plain(self, inner, is_until).is_some()
        {
            return right;
        }
        self.add(if is_until { Node::Until(left, right) } else { Node::Release(left, right) })
    }

    /// The terms of a formula.
    fn terms(&mut self, id: Id) -> Result<Vec<Term>> {
        if let Some(terms) = self.terms.get(&id) {
            return Ok(terms.clone());
        }
        let next = |id: Id, put_off: u64| Term { now: Cube::TRUE, next: BTreeSet::from([id]), put_off };
        let terms = match self.nodes[id as usize].clone() {
            Node::Constant(true) => vec![Term::TRUE],
            Node::Constant(false) => Vec::new(),
            Node::Literal(now) => vec![Term { now, ..Term::TRUE }],
            Node::And(parts) => self.product(&parts)?,
            Node::Or(parts) => {
                let mut all = Vec::new();
                for part in parts {
                    all.extend(self.terms(part)?);
                }
                best(all)
            }
            Node::Next(of) => match self.nodes[of as usize].clone() {
                Node::And(parts) => vec![Term { next: parts, ..Term::TRUE }],
                Node::Or(parts) => parts.into_iter().map(|part| next(part, 0)).collect(),
                _ => vec![next(of, 0)],
            },
            Node::Until(left, right) => {
                let bit = self.untils.len() as u32;
                let bit = *self.untils.entry(id).or_insert(bit);
                ensure!(
                    (bit as usize) < MOST_UNTILS,
                    "the formula has more than {MOST_UNTILS} until operators, including F and negated G"
                );
                let mut all = self.terms(right)?;
                all.extend(self.terms(left)?.iter().filter_map(|term| term.and(&next(id, 1 << bit))));
                best(all)
            }
            Node::Release(left, right) => {
                let mut either = self.terms(left)?;
                either.push(next(id, 0));
                both(&self.terms(right)?, &either)?
            }
        };
        self.terms.insert(id, terms.clone());
        Ok(terms)
    }

    /// The terms of a set.
    fn product(&mut self, parts: &BTreeSet<Id>) -> Result<Vec<Term>> {
        let mut all = vec![Term::TRUE];
        for part in parts {
            all = both(&all, &self.terms(*part)?)?;
        }
        Ok(all)
    }
}

/// The products of each term of one with each term of the other.
fn both(one: &[Term], other: &[Term]) -> Result<Vec<Term>> {
    let (count, most) = (one.len() * other.len(), MOST_TERMS);
    ensure!(
        count <= most,
        "the formula is too large: a state of its automaton would have {count} transitions, but at most {most} are possible"
    );
    let pairs = one.iter().flat_map(|a| other.iter().filter_map(|b| a.and(b)));
    Ok(best(pairs.collect()))
}

/// An automaton with a generalised acceptance condition on its transitions.
struct Tableau {
    initial: usize,
    /// The transitions of each state: condition, target, mask of the `U` that are put off.
    transitions: Vec<Vec<(Cube, usize, u64)>>,
    untils: u32,
}

/// The automaton of all runs that satisfy the formula.
///
/// # Errors
///
/// The formula is too large; the message has the numbers.
pub fn translate(formula: &Formula) -> Result<Buchi> {
    let mut tableau = tableau(formula)?;
    tableau.merge_equal();
    Ok(tableau.degeneralised().simplified())
}

fn tableau(formula: &Formula) -> Result<Tableau> {
    let mut nodes = Nodes::default();
    let initial = nodes.of(formula, true);
    let initial = match &nodes.nodes[initial as usize] {
        Node::And(parts) => parts.clone(),
        Node::Constant(true) => BTreeSet::new(),
        _ => BTreeSet::from([initial]),
    };
    let mut states = vec![initial.clone()];
    let mut numbers = HashMap::from([(initial, 0)]);
    let mut transitions = Vec::new();
    while transitions.len() < states.len() {
        ensure!(states.len() <= MOST_STATES, "the formula is too large: its automaton has more than {MOST_STATES} states");
        let terms = nodes.product(&states[transitions.len()].clone())?;
        let mut outgoing = Vec::with_capacity(terms.len());
        for Term { now, next, put_off } in terms {
            let number = *numbers.entry(next.clone()).or_insert(states.len());
            if number == states.len() {
                states.push(next);
            }
            outgoing.push((now, number, put_off));
        }
        transitions.push(outgoing);
    }
    Ok(Tableau { initial: 0, transitions, untils: nodes.untils.len() as u32 })
}

impl Tableau {
    /// Merges states that have the same transitions, until no two states have.
    fn merge_equal(&mut self) {
        loop {
            let mut numbers = BTreeMap::new();
            let mut kept = Vec::new();
            let class: Vec<usize> = self
                .transitions
                .iter()
                .map(|transitions| {
                    let mut transitions = transitions.clone();
                    transitions.sort_unstable();
                    transitions.dedup();
                    *numbers.entry(transitions.clone()).or_insert_with(|| {
                        kept.push(transitions);
                        kept.len() - 1
                    })
                })
                .collect();
            let is_done = kept.len() == self.transitions.len();
            kept.iter_mut().flatten().for_each(|transition| transition.1 = class[transition.1]);
            (self.initial, self.transitions) = (class[self.initial], kept);
            if is_done {
                return;
            }
        }
    }

    fn components(&self, keeps: impl Fn(usize, &(Cube, usize, u64)) -> bool) -> Vec<u32> {
        let kept = |state: usize| self.transitions[state].iter().filter(|of| keeps(state, of)).map(|of| of.1 as u32).collect();
        let targets: Vec<Vec<u32>> = (0..self.transitions.len()).map(kept).collect();
        components(targets.len(), |at| &targets[at])
    }

    fn degeneralised(&self) -> Buchi {
        let count = self.transitions.len();
        let component = self.components(|_, _| true);
        // By component: the `U` that some transition does not put off, and the `U` that can be put off for ever.
        let (mut fulfilled, mut avoidable, mut has_cycle) = (vec![0u64; count], vec![0u64; count], vec![false; count]);
        let inner = |from: usize, to: usize| component[from] == component[to];
        for (from, transitions) in self.transitions.iter().enumerate() {
            for (_, to, put_off) in transitions.iter().filter(|of| inner(from, of.1)) {
                let of = component[*to] as usize;
                has_cycle[of] = true;
                fulfilled[of] |= !put_off;
            }
        }
        for until in 0..self.untils {
            let bit = 1u64 << until;
            let keeps = |from: usize, of: &(Cube, usize, u64)| inner(from, of.1) && of.2 & bit != 0;
            let rest = self.components(keeps);
            for (from, transitions) in self.transitions.iter().enumerate() {
                if transitions.iter().any(|of| keeps(from, of) && rest[of.1] == rest[from]) {
                    avoidable[component[from] as usize] |= bit;
                }
            }
        }
        let all = if self.untils == 64 { u64::MAX } else { (1 << self.untils) - 1 };
        // The levels of a component belong to the `U` that matter in it; the last level is the accepting one.
        let levels = |of: usize| -> Vec<u32> { (0..self.untils).filter(|until| avoidable[of] >> until & 1 != 0).collect() };
        let levels: Vec<Vec<u32>> = (0..count).map(levels).collect();
        let is_accepting = |of: usize| has_cycle[of] && fulfilled[of] & all == all;
        // A run enters a component at its last level: the level at which it begins makes no difference.
        let entry = |state: usize| {
            let of = component[state] as usize;
            (state, if is_accepting(of) { levels[of].len() } else { 0 })
        };
        let mut buchi = Buchi::default();
        let mut states = vec![entry(self.initial)];
        let mut numbers = HashMap::from([(states[0], 0)]);
        while buchi.edges.len() < states.len() {
            let (state, level) = states[buchi.edges.len()];
            let of = component[state] as usize;
            let last = levels[of].len();
            buchi.accepting.push(is_accepting(of) && level == last);
            let mut edges: BTreeMap<usize, Vec<Cube>> = BTreeMap::new();
            for (now, to, put_off) in &self.transitions[state] {
                let next = if inner(state, *to) && is_accepting(of) {
                    let begin = if level == last { 0 } else { level };
                    let passed = levels[of][begin..].iter().take_while(|until| put_off >> **until & 1 == 0).count();
                    (*to, begin + passed)
                } else {
                    entry(*to)
                };
                let number = *numbers.entry(next).or_insert(states.len());
                if number == states.len() {
                    states.push(next);
                }
                edges.entry(number).or_default().push(*now);
            }
            buchi.edges.push(edges.into_iter().map(|(to, cubes)| (Label::of(cubes), to)).collect());
        }
        buchi
    }
}
