//! Chooses which part of a state holds the tokens of each place.
//!
//! Places share a field if at most one of them is marked at a time, and if the field takes fewer bits than one for each place.
//! Such places form a NUPN unit or belong to an invariant with one token. Any other place has a field of its own, as wide as its
//! bound requires. A place without a proved bound begins with 8 bits (see [`Encoding`]). Two kinds of places have no field:
//! places that never change, and places whose tokens follow from another place. Such a place either has the tokens of the other
//! place less a constant, or has one token exactly if the other place has none.

use super::bounds;
use super::pnml::Pnml;
use super::structure::Structure;
use crate::ir::net::{Holder, Invariant, Place, PlaceId};
use crate::ir::{Range, Type, Variable};
use std::collections::{BinaryHeap, HashMap};
use std::fmt::Write;

/// Widest field in bits. Values are 32-bit integers with a sign.
const MOST_BITS: u32 = 31;

/// Possible bits of places without a proved bound. A search begins with eight, or with fewer if states would be too long. One bit
/// is not possible, because a field of one bit counts as a claim of the NUPN section.
const BITS: [u32; 5] = [2, 4, 8, 16, MOST_BITS];

/// The claims and guesses that an encoding depends on. If a search finds one of them wrong, it begins again with the next
/// encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// Bits of a place without a proved bound.
    pub bits: u32,
    /// Whether the encoding uses the NUPN section. Every firing checks what the section claims, unless invariants prove the
    /// claim.
    pub believes_units: bool,
}

impl Encoding {
    pub const FIRST: Self = Self { bits: 8, believes_units: true };

    /// All encodings that a search without further options may use: [`FIRST`](Self::FIRST) and wider ones, then narrower ones;
    /// all of these again without the NUPN section.
    pub fn all() -> impl Iterator<Item = Self> {
        let bits = [8, 16, MOST_BITS, 4, 2];
        [true, false].into_iter().flat_map(move |believes_units| bits.map(|bits| Self { bits, believes_units }))
    }

    /// The next encoding with wider fields; `None` if there is none.
    pub fn wider(self) -> Option<Self> {
        BITS.into_iter().find(|bits| *bits > self.bits).map(|bits| Self { bits, ..self })
    }

    /// The next encoding with narrower fields, for states that would be too long; `None` if there is none.
    pub fn narrower(self) -> Option<Self> {
        BITS.into_iter().rev().find(|bits| *bits < self.bits).map(|bits| Self { bits, ..self })
    }
}

/// Places that share a field.
struct Unit {
    name: String,
    places: Vec<PlaceId>,
    /// Whether one of the places is marked in every reachable marking. The field then needs no value for an unmarked unit.
    has_always_one: bool,
    is_proved: bool,
    is_nupn: bool,
}

impl Unit {
    /// Number of values of the field.
    fn values(&self) -> usize {
        self.places.len() + usize::from(!self.has_always_one)
    }

    /// Width of the field in bits.
    fn bits(&self) -> usize {
        (usize::BITS - (self.values() - 1).leading_zeros()).max(1) as usize
    }

    /// Bits that the shared field saves, compared with one bit for each place.
    fn saves(&self) -> usize {
        self.places.len().saturating_sub(self.bits())
    }
}

/// Numbers of places by their encoding, for the report.
#[derive(Default)]
struct Told {
    constant: usize,
    /// Number of places that have the tokens of another place less a constant, and number of places that have a token if and only
    /// if another place has none.
    told: [usize; 2],
    /// Number of fields, bits and places of units: of NUPN units, then of units by invariants.
    units: [[usize; 3]; 2],
    /// Number of places of one bit: by NUPN, then by invariants.
    bits: [usize; 2],
    /// Number of places with wider fields by invariants, and the bits of all these fields.
    bounded: [usize; 2],
    /// Number of places without a bound, and the bits of all their fields.
    unbounded: [usize; 2],
}

/// Returns the places with their holders, the variables, and a description of the encoding in words.
pub fn encoded(
    pnml: &Pnml,
    structure: &Structure,
    invariants: &[Invariant],
    encoding: Encoding,
) -> (Vec<Place>, Vec<Variable>, String) {
    let count = pnml.places.len();
    let bounds = bounds::bounds(count, invariants);
    let mut heaviest = vec![0; count];
    for transition in &pnml.transitions {
        transition.puts.iter().for_each(|(place, weight)| heaviest[*place] = (*weight).max(heaviest[*place]));
    }
    let is_constant = |place: PlaceId| structure.is_constant(place) || bounds[place] == Some(0);
    let follows = |place: PlaceId| structure.followed[place] != place;
    let mut is_claimed = vec![false; count];
    if encoding.believes_units {
        // The section claims one token at most for each of its places, and for each unit.
        pnml.units.iter().flat_map(|unit| &unit.places).for_each(|place| is_claimed[*place] = true);
    }
    let mut told = Told::default();
    let mut holders = vec![Holder::Constant; count];
    let mut variables: Vec<Variable> = Vec::new();
    let mut new = |name: &str, bits: u32, initial: u32, most: u32| {
        let ty = Type { bits: bits as u8, signed: false };
        let mut variable = Variable::new(name.into(), None, ty, false, vec![initial as i32]);
        variable.is_written = true;
        variable.values = Range { low: 0, high: most.into() };
        variables.push(variable);
        variables.len() - 1
    };
    let mut is_placed: Vec<bool> = (0..count).map(is_constant).collect();
    (0..count).filter(|place| follows(*place)).for_each(|place| is_placed[place] = true);
    for unit in units(pnml, invariants, encoding, &is_placed) {
        let first = u32::from(!unit.has_always_one);
        let marked = unit.places.iter().position(|place| pnml.places[*place].initial > 0);
        let initial = marked.map_or(0, |at| at as u32 + first);
        let variable = new(&unit.name, unit.bits() as u32, initial, unit.values() as u32 - 1);
        for (at, place) in unit.places.iter().enumerate() {
            is_placed[*place] = true;
            holders[*place] = Holder::Code { variable, code: at as u32 + first, is_proved: unit.is_proved };
        }
        let sums = &mut told.units[usize::from(!unit.is_nupn)];
        [1, unit.bits(), unit.places.len()].into_iter().zip(sums).for_each(|(more, sum)| *sum += more);
    }
    let opposites = opposites(pnml, structure, &is_placed);
    for (place, of) in pnml.places.iter().enumerate().filter(|(place, _)| !is_placed[*place]) {
        if let Some(of) = opposites[place].filter(|of| *of < place) {
            holders[place] = Holder::Opposite { of };
            continue;
        }
        let fits = |bound: &u64| Range { low: 0, high: *bound as i64 }.bits() <= MOST_BITS;
        let bound = opposites[place].map(|_| 1).or(bounds[place]).filter(fits);
        let needed = |tokens: u32| Range { low: 0, high: tokens.into() }.bits();
        let (bits, is_proved) = match bound {
            Some(1) => (1, true),
            _ if is_claimed[place] && of.initial <= 1 => (1, false),
            Some(bound) => (needed(bound as u32), true),
            None => (encoding.bits.max(needed(of.initial.max(heaviest[place]))), false),
        };
        let capacity = u32::MAX >> (32 - bits);
        let variable = new(&of.id, bits, of.initial, bound.filter(|_| is_proved).map_or(capacity, |bound| bound as u32));
        holders[place] = Holder::Number { variable, capacity, is_proved };
        match (bits, is_proved) {
            (1, _) => told.bits[usize::from(is_proved)] += 1,
            (_, true) => told.bounded = [told.bounded[0] + 1, told.bounded[1] + bits as usize],
            (_, false) => told.unbounded = [told.unbounded[0] + 1, told.unbounded[1] + bits as usize],
        }
    }
    for place in (0..count).filter(|place| follows(*place)) {
        let of = structure.followed[place];
        let by = pnml.places[of].initial - pnml.places[place].initial;
        holders[place] = match holders[of] {
            Holder::Number { .. } | Holder::Code { .. } => Holder::Less { of, by },
            Holder::Opposite { of } if by == 0 => Holder::Opposite { of },
            // The place `of` has at most one token. This place has fewer tokens, so it never has any.
            _ => Holder::Constant,
        };
    }
    for holder in &holders {
        match holder {
            Holder::Constant => told.constant += 1,
            Holder::Less { .. } => told.told[0] += 1,
            Holder::Opposite { .. } => told.told[1] += 1,
            Holder::Number { .. } | Holder::Code { .. } => {}
        }
    }
    let places = pnml.places.iter().zip(holders);
    let places = places.map(|(place, holder)| Place { name: place.id.clone(), initial: place.initial, holder }).collect();
    (places, variables, told.text())
}

/// For each place without a holder, another such place with the opposite tokens: in every reachable marking, one of both has one
/// token and the other has none.
fn opposites(pnml: &Pnml, structure: &Structure, is_placed: &[bool]) -> Vec<Option<PlaceId>> {
    let mut opposites = vec![None; is_placed.len()];
    let mut known: HashMap<&[(u32, i64)], PlaceId> = HashMap::new();
    for place in (0..is_placed.len()).filter(|place| !is_placed[*place] && pnml.places[*place].initial <= 1) {
        let changes = &structure.changes[place];
        let negated: Vec<(u32, i64)> = changes.iter().map(|(effect, change)| (*effect, -change)).collect();
        match known.get(&negated[..]) {
            Some(other) if pnml.places[*other].initial + pnml.places[place].initial == 1 => {
                (opposites[place], opposites[*other]) = (Some(*other), Some(place));
            }
            _ => drop(known.insert(changes, place)),
        }
    }
    opposites
}

/// The units that share fields, the most useful units first. No place is in two of them.
fn units(pnml: &Pnml, invariants: &[Invariant], encoding: Encoding, is_placed: &[bool]) -> Vec<Unit> {
    let mut all: Vec<Unit> = Vec::new();
    for (number, invariant) in invariants.iter().enumerate() {
        let is_one = invariant.tokens == 1 && invariant.weights.iter().all(|(_, weight)| *weight == 1);
        if is_one && invariant.weights.len() > 2 {
            let places = invariant.weights.iter().map(|(place, _)| *place).collect();
            let name = format!("invariant_{number}");
            all.push(Unit { name, places, has_always_one: invariant.is_constant, is_proved: true, is_nupn: false });
        }
    }
    if encoding.believes_units {
        for unit in &pnml.units {
            let tokens: u64 = unit.places.iter().map(|place| u64::from(pnml.places[*place].initial)).sum();
            let (name, places) = (unit.name.clone(), unit.places.clone());
            if tokens <= 1 {
                all.push(Unit { name, places, has_always_one: false, is_proved: false, is_nupn: true });
            }
        }
    }
    let mut is_placed = is_placed.to_vec();
    let mut waiting: BinaryHeap<(usize, bool, usize)> =
        all.iter().enumerate().map(|(number, unit)| (unit.saves(), unit.is_proved, number)).collect();
    let mut chosen = Vec::new();
    while let Some((saves, is_proved, number)) = waiting.pop() {
        let unit = &mut all[number];
        let before = unit.places.len();
        unit.places.retain(|place| !is_placed[*place]);
        unit.places.dedup();
        unit.has_always_one &= unit.places.len() == before;
        let now = unit.saves();
        if now == 0 {
            continue;
        }
        if now < saves {
            waiting.push((now, is_proved, number));
            continue;
        }
        unit.places.iter().for_each(|place| is_placed[*place] = true);
        chosen.push(number);
    }
    let mut all: Vec<Option<Unit>> = all.into_iter().map(Some).collect();
    let mut chosen: Vec<Unit> = chosen.into_iter().filter_map(|number| all[number].take()).collect();
    chosen.sort_by_key(|unit| unit.places[0]);
    chosen
}

impl Told {
    fn text(&self) -> String {
        let places = |count: usize| if count == 1 { "1 place".into() } else { format!("{count} places") };
        let fields = |count: usize| if count == 1 { "1 number".into() } else { format!("{count} numbers") };
        let mut parts: Vec<String> = Vec::new();
        for ([units, bits, of], why) in self.units.into_iter().zip(["units of the NUPN section", "invariants of one token"]) {
            if units > 0 {
                parts.push(format!("{} in {} of {bits} bits together ({why})", places(of), fields(units)));
            }
        }
        for (of, why) in self.bits.into_iter().zip(["safe by the NUPN section", "safe by invariants"]) {
            if of > 0 {
                parts.push(format!("{} in a bit each ({why})", places(of)));
            }
        }
        for ([of, bits], why) in
            [(self.bounded, "bounded by invariants"), (self.unbounded, "no bound is proved: each firing is checked")]
        {
            if of > 0 {
                parts.push(format!("{} in {bits} bits together ({why})", places(of)));
            }
        }
        for (of, how) in
            self.told.into_iter().zip(["as many tokens as others, or a constant number less", "a token if others have none"])
        {
            if of > 0 {
                parts.push(format!("{} with {how}", places(of)));
            }
        }
        if self.constant > 0 {
            parts.push(format!("{} that never change", places(self.constant)));
        }
        let mut text = String::new();
        write!(text, "{}", if parts.is_empty() { "no places".into() } else { parts.join("; ") }).expect("text can be written");
        text
    }
}
