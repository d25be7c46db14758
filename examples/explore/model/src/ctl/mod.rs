//! Computation tree logic: formulas about the paths from each state, in a normal form with shared parts.
//!
//! Every formula is made of conditions, conjunction, negation, and three operators: `EX`, `E[. U .]` and `EG`. The others are
//! their duals. Negation is a mark of a use of a part, so a part and its negation are evaluated once; equal parts of all formulas
//! are one part.
//!
//! A path ends in a deadlock, or never: `EX p` is false in a deadlock, `AX p` is true, and `EG p` and `AF p` are `p`.

mod property;

pub use property::Asked;

use std::collections::HashMap;
use std::ops::Not;

/// A part of formulas, or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Literal(u32);

impl Literal {
    pub const TRUE: Self = Self(0);
    pub const FALSE: Self = Self(1);

    fn of(part: usize) -> Self {
        Self(2 * part as u32)
    }

    /// Number of the part.
    pub fn part(self) -> usize {
        self.0 as usize / 2
    }

    pub fn is_negated(self) -> bool {
        self.0 % 2 == 1
    }
}

impl Not for Literal {
    type Output = Self;

    fn not(self) -> Self {
        Self(self.0 ^ 1)
    }
}

/// A part of formulas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    True,
    /// A condition, by its number.
    Condition(usize),
    And([Literal; 2]),
    /// `EX`: some successor satisfies it.
    Next(Literal),
    /// `E[first U second]`: a path leads to a state that satisfies the second, through states that satisfy the first.
    Until([Literal; 2]),
    /// `EG`: a path that ends in a deadlock, or never, stays in states that satisfy it.
    Always(Literal),
}

impl Part {
    /// The parts that this one is made of.
    pub fn operands(&self) -> impl Iterator<Item = Literal> + use<> {
        let operands = match *self {
            Self::True | Self::Condition(_) => [None, None],
            Self::Next(of) | Self::Always(of) => [Some(of), None],
            Self::And([one, other]) | Self::Until([one, other]) => [Some(one), Some(other)],
        };
        operands.into_iter().flatten()
    }
}

/// Parts of formulas, each once and behind those that it is made of.
#[derive(Clone, Debug)]
pub struct Parts {
    all: Vec<Part>,
    numbers: HashMap<Part, usize>,
}

impl Default for Parts {
    fn default() -> Self {
        Self { all: vec![Part::True], numbers: HashMap::from([(Part::True, 0)]) }
    }
}

impl Parts {
    pub fn all(&self) -> &[Part] {
        &self.all
    }

    /// Whether a formula is about a state alone, without its paths.
    pub fn is_of_state(&self, of: Literal) -> bool {
        match self.all[of.part()] {
            Part::True | Part::Condition(_) => true,
            Part::And(operands) => operands.into_iter().all(|of| self.is_of_state(of)),
            Part::Next(_) | Part::Until(_) | Part::Always(_) => false,
        }
    }

    fn part(&mut self, part: Part) -> Literal {
        let next = self.all.len();
        let number = *self.numbers.entry(part).or_insert(next);
        if number == next {
            self.all.push(part);
        }
        Literal::of(number)
    }

    pub fn condition(&mut self, number: usize) -> Literal {
        self.part(Part::Condition(number))
    }

    pub fn and(&mut self, one: Literal, other: Literal) -> Literal {
        let [one, other] = if one <= other { [one, other] } else { [other, one] };
        match one {
            Literal::TRUE => other,
            Literal::FALSE => one,
            _ if one == other => one,
            _ if one == !other => Literal::FALSE,
            _ => self.part(Part::And([one, other])),
        }
    }

    pub fn or(&mut self, one: Literal, other: Literal) -> Literal {
        !self.and(!one, !other)
    }

    pub fn exists_next(&mut self, of: Literal) -> Literal {
        if of == Literal::FALSE { of } else { self.part(Part::Next(of)) }
    }

    pub fn all_next(&mut self, of: Literal) -> Literal {
        !self.exists_next(!of)
    }

    pub fn exists_until(&mut self, first: Literal, second: Literal) -> Literal {
        let is_until_itself = match self.all[second.part()] {
            Part::Until([before, _]) => !second.is_negated() && before == first,
            _ => false,
        };
        let is_decided = [Literal::TRUE, Literal::FALSE, first].contains(&second) || first == Literal::FALSE;
        if is_decided || is_until_itself { second } else { self.part(Part::Until([first, second])) }
    }

    pub fn exists_always(&mut self, of: Literal) -> Literal {
        let is_always = matches!(self.all[of.part()], Part::Always(_)) && !of.is_negated();
        if [Literal::TRUE, Literal::FALSE].contains(&of) || is_always { of } else { self.part(Part::Always(of)) }
    }

    /// On each path, the second holds at some point, and the first before it.
    pub fn all_until(&mut self, first: Literal, second: Literal) -> Literal {
        let neither = self.and(!first, !second);
        let fails = self.exists_until(!second, neither);
        let never = self.exists_always(!second);
        self.and(!fails, !never)
    }

    /// On some path, the second holds as long as the first has not held before.
    pub fn exists_release(&mut self, first: Literal, second: Literal) -> Literal {
        !self.all_until(!first, !second)
    }

    pub fn all_release(&mut self, first: Literal, second: Literal) -> Literal {
        !self.exists_until(!first, !second)
    }

    pub fn exists_finally(&mut self, of: Literal) -> Literal {
        self.exists_until(Literal::TRUE, of)
    }

    pub fn all_finally(&mut self, of: Literal) -> Literal {
        !self.exists_always(!of)
    }

    pub fn all_globally(&mut self, of: Literal) -> Literal {
        !self.exists_finally(!of)
    }

    /// Adds a formula over other parts, and returns it here. `condition`: its conditions, here.
    pub fn adopt(&mut self, other: &Self, formula: Literal, mut condition: impl FnMut(usize) -> Literal) -> Literal {
        let mut is_needed = vec![false; other.all.len()];
        is_needed[formula.part()] = true;
        for (number, part) in other.all.iter().enumerate().rev().filter(|(number, _)| *number <= formula.part()) {
            if is_needed[number] {
                part.operands().for_each(|of| is_needed[of.part()] = true);
            }
        }
        let mut here: Vec<Literal> = Vec::with_capacity(other.all.len());
        for (part, is_needed) in other.all.iter().zip(is_needed) {
            let at = |of: Literal| if of.is_negated() { !here[of.part()] } else { here[of.part()] };
            let literal = match *part {
                _ if !is_needed => Literal::TRUE,
                Part::True => Literal::TRUE,
                Part::Condition(number) => condition(number),
                Part::And([one, other]) => {
                    let (one, other) = (at(one), at(other));
                    self.and(one, other)
                }
                Part::Next(of) => {
                    let of = at(of);
                    self.exists_next(of)
                }
                Part::Until([first, second]) => {
                    let (first, second) = (at(first), at(second));
                    self.exists_until(first, second)
                }
                Part::Always(of) => {
                    let of = at(of);
                    self.exists_always(of)
                }
            };
            here.push(literal);
        }
        if formula.is_negated() { !here[formula.part()] } else { here[formula.part()] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_and_its_negation_are_one_part() {
        let mut parts = Parts::default();
        let (p, q) = (parts.condition(0), parts.condition(1));
        // AG p = !EF !p, AF p = !EG !p, AX p = !EX !p.
        let finally = parts.exists_finally(!p);
        assert_eq!(parts.all_globally(p), !finally);
        let always = parts.exists_always(!p);
        assert_eq!(parts.all_finally(p), !always);
        let next = parts.exists_next(!p);
        assert_eq!(parts.all_next(p), !next);
        // Conjunctions have no order, and constants vanish.
        assert_eq!(parts.and(p, q), parts.and(q, p));
        assert_eq!([parts.and(p, Literal::TRUE), parts.and(p, p), parts.and(p, !p)], [p, p, Literal::FALSE]);
        assert_eq!(parts.or(p, !p), Literal::TRUE);
        assert_eq!([parts.exists_next(Literal::FALSE), parts.exists_until(p, Literal::TRUE)], [Literal::FALSE, Literal::TRUE]);
        // EF EF p = EF p, EG EG p = EG p, and AG AG p = AG p.
        let (finally, always, globally) = (parts.exists_finally(p), parts.exists_always(p), parts.all_globally(p));
        let before = parts.all().len();
        let again = [parts.exists_finally(finally), parts.exists_always(always), parts.all_globally(globally)];
        assert_eq!((again, parts.all().len()), ([finally, always, globally], before));
    }

    #[test]
    fn adopted_formulas_share_their_parts() {
        let (mut one, mut other) = (Parts::default(), Parts::default());
        let of_other = [other.condition(7), other.condition(3)];
        let unused = other.all_until(of_other[0], of_other[1]);
        let formula = other.exists_finally(!of_other[1]);
        let p = one.condition(0);
        let finally = one.exists_finally(!p);
        let before = one.all().len();
        let adopted = one.adopt(&other, !formula, |number| {
            assert_eq!(number, 3, "the other one is not part of the formula");
            p
        });
        assert_eq!((adopted, one.all().len()), (!finally, before));
        let q = one.condition(1);
        let adopted = one.adopt(&other, unused, |number| if number == 7 { p } else { q });
        assert_eq!(adopted, one.all_until(p, q));
    }
}
