//! Translates expressions to rules (Lang 2005): each operator computes the rules of the whole from the rules of its parts.
//!
//! A leaf has a rule for each of its labels. The whole has all rules of its parts whose labels do not synchronise. For labels
//! that do, each combination of rules of the parts with equal labels becomes a rule. Hiding and renaming change the labels of
//! rules, and cutting drops rules. The hidden label and the gates of `--interleave` are exempt from all of this.

use super::labels::{HIDDEN, Labels, Pattern, gate_and_offers};
use crate::ir::network::Rule;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Limits of a network at any time: the number of its rules, and the number of parts of all rules together.
pub const MOST_RULES: usize = 1 << 22;
pub const MOST_PARTS: usize = 1 << 25;

/// The network exceeds the limit of rules or the limit of their parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

pub type Result<T> = std::result::Result<T, TooMany>;

/// How the rules of several parts synchronise on a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// Each part moves alone.
    Alone,
    /// Any `count` of these parts move together, for each `count` in `counts`.
    Together { parts: Vec<usize>, counts: Vec<usize> },
}

/// A synchronisation vector over labels or gates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    /// The label or gate of each part; `None` for a part that does not move.
    pub elements: Vec<Option<String>>,
    pub result: String,
}

/// The labels and options that all operators share.
pub struct Composition<'a> {
    pub labels: &'a mut Labels,
    /// Gates that never synchronise, like the hidden label.
    pub interleaved: &'a [String],
    /// Whether labels that are in no vector happen alone, as in GPUexplore 1.0. In EXP such labels never happen.
    pub independent: bool,
}

impl Composition<'_> {
    /// Whether a label never synchronises.
    fn is_aloof(&self, label: usize) -> bool {
        let text = self.labels.text(label as u32);
        text == HIDDEN || (!self.interleaved.is_empty() && self.interleaved.iter().any(|gate| gate_and_offers(text).0 == gate))
    }

    /// Returns the rules of parallel parts. `meeting` says how each visible label synchronises.
    pub fn parallel(&self, parts: Vec<Vec<Rule>>, meeting: impl Fn(&str) -> Meeting) -> Result<Vec<Rule>> {
        let mut all = Vec::new();
        // By label: how it synchronises, and the rules with this label, by part.
        let mut meeting_rules: BTreeMap<usize, (Meeting, BTreeMap<usize, Vec<Rule>>)> = BTreeMap::new();
        let mut known: BTreeMap<usize, Meeting> = BTreeMap::new();
        for (part, rules) in parts.into_iter().enumerate() {
            for rule in rules {
                let label = rule.label;
                let of_label = known.entry(label).or_insert_with(|| match self.is_aloof(label) {
                    true => Meeting::Alone,
                    false => meeting(self.labels.text(label as u32)),
                });
                match of_label {
                    Meeting::Together { parts, .. } if parts.contains(&part) => {
                        let (_, rules) = meeting_rules.entry(label).or_insert_with(|| (of_label.clone(), BTreeMap::new()));
                        rules.entry(part).or_default().push(rule);
                    }
                    _ => all.push(rule),
                }
            }
        }
        let mut size = size(&all);
        for (label, (meeting, rules)) in meeting_rules {
            let Meeting::Together { counts, .. } = meeting else { continue };
            // Parts that have no rule with this label do not synchronise on it.
            let ready: Vec<usize> = rules.keys().copied().collect();
            for count in counts {
                if choices(ready.len(), count) > MOST_RULES {
                    return Err(TooMany);
                }
                subsets(&ready, count, &mut Vec::new(), &mut |subset| {
                    let of_subset: Vec<&[Rule]> = subset.iter().map(|part| &rules[part][..]).collect();
                    combine(&of_subset, label, &mut all, &mut size)
                })?;
            }
        }
        Ok(all)
    }

    /// Returns the rules of parts that move together as the vectors say.
    pub fn vectors(&mut self, parts: &[Vec<Rule>], vectors: &[Vector], by_gate: bool) -> Result<Vec<Rule>> {
        let mut all = Vec::new();
        for (part, rules) in parts.iter().enumerate() {
            // Keep the rules that never synchronise. If labels are independent, also keep the rules that no vector names.
            let of_vectors = vectors.iter().filter(|_| self.independent);
            let named: HashSet<&str> = of_vectors.filter_map(|vector| vector.elements[part].as_deref()).collect();
            let is_free = |rule: &Rule| {
                let text = self.labels.text(rule.label as u32);
                let named_by = if by_gate { gate_and_offers(text).0 } else { text };
                self.is_aloof(rule.label) || (self.independent && !named.contains(named_by))
            };
            all.extend(rules.iter().filter(|rule| is_free(rule)).cloned());
        }
        let mut size = size(&all);
        // By part, then by the name that vectors use: the offers and the numbers of the part's rules.
        let mut named: Vec<HashMap<&str, Vec<(&str, usize)>>> = Vec::with_capacity(parts.len());
        let labels = self.labels.clone();
        for rules in parts {
            let mut of_part: HashMap<&str, Vec<(&str, usize)>> = HashMap::new();
            for (number, rule) in rules.iter().enumerate().filter(|(_, rule)| !self.is_aloof(rule.label)) {
                let text = labels.text(rule.label as u32);
                let (name, offers) = if by_gate { gate_and_offers(text) } else { (text, "") };
                of_part.entry(name).or_default().push((offers.trim_start(), number));
            }
            named.push(of_part);
        }
        // Two vectors with equal parts and equal results count once.
        let mut seen: HashSet<(Vec<(usize, usize)>, usize)> = HashSet::new();
        for vector in vectors {
            // By offers: the rules of each part that has an element in the vector. The offers of these rules must be equal.
            let mut by_offers: BTreeMap<&str, Vec<Vec<usize>>> = BTreeMap::new();
            let places: Vec<(usize, &str)> =
                vector.elements.iter().enumerate().filter_map(|(part, name)| Some((part, name.as_deref()?))).collect();
            for (place, (part, name)) in places.iter().enumerate() {
                for (offers, number) in named[*part].get(name).into_iter().flatten() {
                    by_offers.entry(offers).or_insert_with(|| vec![Vec::new(); places.len()])[place].push(*number);
                }
            }
            for (offers, ready) in by_offers {
                let result = if offers.is_empty() { vector.result.clone() } else { format!("{} {offers}", vector.result) };
                let label = self.labels.number(&result) as usize;
                // Make one rule for each combination. There is none if a part has no such rule.
                let count = ready.iter().fold(1usize, |count, numbers| count.saturating_mul(numbers.len()));
                if count > MOST_RULES {
                    return Err(TooMany);
                }
                for combination in 0..count {
                    let mut left = combination;
                    let mut chosen = Vec::with_capacity(places.len());
                    for (numbers, (part, _)) in ready.iter().zip(&places).rev() {
                        chosen.push((*part, numbers[left % numbers.len()]));
                        left /= numbers.len();
                    }
                    if seen.insert((chosen.clone(), label)) {
                        let rule = joined(chosen.iter().map(|(part, number)| &parts[*part][*number]), label);
                        push(rule, &mut all, &mut size)?;
                    }
                }
            }
        }
        Ok(all)
    }

    /// Hides the labels that match one of the patterns or, with `all_but`, those that match none.
    pub fn hide(&mut self, rules: &mut [Rule], patterns: &[Pattern], all_but: bool) {
        let hidden = self.labels.number(HIDDEN) as usize;
        self.change(
            rules,
            |text| (patterns.iter().any(|pattern| pattern.matches(text)) != all_but).then(|| HIDDEN.into()),
            hidden,
        );
    }

    /// Drops the rules whose labels match one of the patterns or, with `all_but`, those that match none.
    pub fn cut(&self, rules: &mut Vec<Rule>, patterns: &[Pattern], all_but: bool) {
        let is_cut = |label: usize| {
            let text = self.labels.text(label as u32);
            !self.is_aloof(label) && patterns.iter().any(|pattern| pattern.matches(text)) != all_but
        };
        rules.retain(|rule| !is_cut(rule.label));
    }

    /// Renames each label by the first pair whose pattern matches it.
    pub fn rename(&mut self, rules: &mut [Rule], pairs: &[(Pattern, String)]) {
        let hidden = self.labels.number(HIDDEN) as usize;
        self.change(rules, |text| pairs.iter().find_map(|(pattern, by)| pattern.replaced(text, by)), hidden);
    }

    /// Changes the labels of rules. Rules that never synchronise keep their labels.
    fn change(&mut self, rules: &mut [Rule], new: impl Fn(&str) -> Option<String>, hidden: usize) {
        let mut known: BTreeMap<usize, usize> = BTreeMap::new();
        for rule in rules {
            let old = rule.label;
            if old == hidden {
                continue;
            }
            rule.label = match known.get(&old) {
                Some(label) => *label,
                None => {
                    let text = if self.is_aloof(old) { None } else { new(self.labels.text(old as u32)) };
                    let label = text.map_or(old, |text| self.labels.number(&text) as usize);
                    known.insert(old, label);
                    label
                }
            };
        }
    }
}

/// Adds each combination of one rule from each part.
fn combine(parts: &[&[Rule]], label: usize, to: &mut Vec<Rule>, size: &mut usize) -> Result<()> {
    let count = parts.iter().fold(1usize, |count, rules| count.saturating_mul(rules.len()));
    if count > MOST_RULES {
        return Err(TooMany);
    }
    for combination in 0..count {
        let mut left = combination;
        let mut chosen = Vec::with_capacity(parts.len());
        for rules in parts.iter().rev() {
            chosen.push(&rules[left % rules.len()]);
            left /= rules.len();
        }
        push(joined(chosen.into_iter(), label), to, size)?;
    }
    Ok(())
}

/// Joins several rules into one.
fn joined<'r>(rules: impl Iterator<Item = &'r Rule>, label: usize) -> Rule {
    let mut parts: Vec<(u32, u32)> = rules.flat_map(|rule| rule.parts.iter().copied()).collect();
    parts.sort_unstable();
    Rule { label, parts: parts.into() }
}

fn push(rule: Rule, to: &mut Vec<Rule>, size: &mut usize) -> Result<()> {
    *size += rule.parts.len();
    if to.len() >= MOST_RULES || *size > MOST_PARTS {
        return Err(TooMany);
    }
    to.push(rule);
    Ok(())
}

fn size(rules: &[Rule]) -> usize {
    rules.iter().map(|rule| rule.parts.len()).sum()
}

/// Number of ways to choose `count` out of `all`; a large number if the result overflows.
fn choices(all: usize, count: usize) -> usize {
    let count = count.min(all.saturating_sub(count));
    (0..count).fold(1usize, |choices, at| choices.saturating_mul(all - at) / (at + 1))
}

/// Calls `f` with each subset of `count` elements, in lexicographic order.
fn subsets(all: &[usize], count: usize, chosen: &mut Vec<usize>, f: &mut impl FnMut(&[usize]) -> Result<()>) -> Result<()> {
    if count == 0 {
        return f(chosen);
    }
    for (at, one) in all.iter().enumerate() {
        if all.len() - at < count {
            return Ok(());
        }
        chosen.push(*one);
        subsets(&all[at + 1..], count - 1, chosen, f)?;
        chosen.pop();
    }
    Ok(())
}
