//! The front end for place/transition nets in PNML, as the Model Checking Contest provides them: pages, references, weights of
//! arcs, the initial marking, and the units of the NUPN tool section.
//!
//! Other kinds of nets are refused. So is every element that may change what a net does: inhibitor and reset arcs, capacities,
//! priorities, times.
//!
//! # How it is lowered
//!
//! - A net is a construct of the intermediate form ([`ir::net`](crate::ir::net)): places, transitions, and the part of a state
//!   that holds each place's tokens. Places that no transition changes are constants.
//! - Invariants bound the tokens of places ([`bounds`]). Invariants and the NUPN section determine how a state holds the places
//!   ([`encoding`]).
//! - Conditions are DVE's expressions with `tokens(place)`, the sum `tokens(p, q)`, and `fireable(transition)`, which is 1 if the
//!   transition, or one of several, is enabled. A name that consists of letters (of any alphabet), digits and `_` needs no
//!   quotes; any other name is in quotes.
//! - Elements are named by their identifiers, `id`. A condition may also use a `name` if only one element has it.

pub mod bounds;
pub mod encoding;
pub mod marking;
pub mod names;
pub mod pnml;
pub mod properties;
pub mod structure;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod told_tests;
pub mod xml;

use crate::assembly::{Parts, assembled};
use crate::constants::Constants;
use crate::diagnostic::{Diagnostic, Located};
use crate::dve;
use crate::dve::Names;
use crate::ir::model::range;
use crate::ir::net::{self, Holder, Invariant, Net, PlaceId};
use crate::ir::range::unbounded;
use crate::ir::{Expression, Model, Range, Source, Span, TransitionId, Type};
use crate::warnings::Warning;
use encoding::Encoding;
use names::NetNames;
use pnml::Pnml;
use std::sync::Arc;
use structure::Structure;

/// Number of markings that a random walk visits to find out which places are rarely marked.
const MOST_WALK: usize = 2_000;

/// Limit of the walk's work, in transitions that are tested.
const WALK_WORK: usize = 20_000_000;

/// A net, with the names for conditions about it.
#[derive(Clone, Debug)]
pub struct Nets {
    pub model: Model,
    pub encoding: Encoding,
    /// The weighted arcs, places and units of the text.
    pub pnml: Arc<Pnml>,
    pub warnings: Vec<Warning>,
    /// A transition that takes no tokens and puts some, if there is one: the net is then unbounded.
    pub source_transition: Option<TransitionId>,
    structure: Structure,
    invariants: Arc<Vec<Invariant>>,
    names: Names,
}

impl Nets {
    /// Reads a net. If states are too long with this encoding, places without a proved bound get narrower fields.
    ///
    /// # Errors
    ///
    /// The text has an error (the first one is returned, with its place), or states are too long even with the narrowest fields.
    pub fn read(source: Source, encoding: Encoding) -> Result<Self, Box<Located>> {
        Self::read_with(source, encoding, &Constants::default())
    }

    /// As [`read`](Self::read), but some places get other initial markings.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read). Also if `constants` names a place that the net does not have.
    pub fn read_with(source: Source, encoding: Encoding, constants: &Constants) -> Result<Self, Box<Located>> {
        let read = || {
            let mut pnml = pnml::read(&source)?;
            pnml.mark(constants)?;
            let initial: Vec<u32> = pnml.places.iter().map(|place| place.initial).collect();
            let structure = Structure::of(&initial, &pnml.transitions);
            let invariants = bounds::invariants(&initial, &structure);
            let source_transition =
                pnml.transitions.iter().position(|transition| transition.takes.is_empty() && !transition.puts.is_empty());
            let mut warnings = Vec::new();
            if let Some(id) = source_transition {
                let message = format!("the transition `{}` takes no tokens and puts some", pnml.transitions[id].name);
                let diagnostic = Diagnostic::new(pnml.transitions[id].span, message, "so the net has infinitely many markings");
                warnings.push(Warning { diagnostic, values: 0 });
            }
            let (pnml, invariants) = (Arc::new(pnml), Arc::new(invariants));
            let (model, names, encoding) = lowered_within(&source, &pnml, &structure, &invariants, encoding)?;
            Ok(Self { model, encoding, pnml, warnings, source_transition, structure, invariants, names })
        };
        read().map_err(|error: Diagnostic| Box::new(error.of(&source)))
    }

    /// Encodes the states in another way. This invalidates conditions that were read before.
    ///
    /// # Errors
    ///
    /// States are too long.
    pub fn encode(&mut self, encoding: Encoding) -> Result<(), Box<Located>> {
        let source = self.model.source.clone();
        let lowered = lowered(&source, &self.pnml, &self.structure, &self.invariants, encoding);
        let (model, names) = lowered.map_err(|error| Box::new(error.of(&source)))?;
        (self.model, self.names, self.encoding) = (model, names, encoding);
        Ok(())
    }

    /// As [`encode`](Self::encode). If states are too long, uses narrower fields.
    ///
    /// # Errors
    ///
    /// States are too long even with the narrowest fields.
    pub fn encode_within(&mut self, encoding: Encoding) -> Result<(), Box<Located>> {
        let source = self.model.source.clone();
        let lowered = lowered_within(&source, &self.pnml, &self.structure, &self.invariants, encoding);
        (self.model, self.names, self.encoding) = lowered.map_err(|error| Box::new(error.of(&source)))?;
        Ok(())
    }

    /// Reads a condition on markings.
    ///
    /// # Errors
    ///
    /// The first error in the condition, with its place.
    pub fn condition(&self, source: &Source) -> Result<(Expression, Vec<Warning>), Box<Located>> {
        let (condition, warnings) = dve::condition(&self.names, &self.model.variables, source)?;
        match inexact(&self.model, &condition) {
            None => Ok((condition, warnings)),
            Some(span) => {
                let message = "this may exceed 32 bits, because places may have that many tokens";
                Err(Box::new(Diagnostic::new(span, message, "larger numbers are not computed").of(source)))
            }
        }
    }
}

/// Returns the place of the first operation whose result may wrap around.
fn inexact(model: &Model, expression: &Expression) -> Option<Span> {
    let inner = expression.parts().iter().find_map(|part| inexact(model, part));
    match expression {
        Expression::Binary { operator, operands, span } => {
            let [left, right] = [range(model, &operands[0]), range(model, &operands[1])];
            let wraps = !unbounded(*operator, left, right).is_in(Range::of_type(Type::WORD));
            inner.or(Some(*span).filter(|_| wraps))
        }
        _ => inner,
    }
}

/// As [`lowered`], but tries narrower encodings until states are short enough. Also returns the encoding that was used.
fn lowered_within(
    source: &Source,
    pnml: &Pnml,
    structure: &Structure,
    invariants: &Arc<Vec<Invariant>>,
    encoding: Encoding,
) -> Result<(Model, Names, Encoding), Diagnostic> {
    match (lowered(source, pnml, structure, invariants, encoding), encoding.narrower()) {
        (Ok((model, names)), _) => Ok((model, names, encoding)),
        (Err(_), Some(narrower)) => lowered_within(source, pnml, structure, invariants, narrower),
        (Err(error), None) => Err(error),
    }
}

/// Lowers a net to a model, with the names for conditions.
fn lowered(
    source: &Source,
    pnml: &Pnml,
    structure: &Structure,
    invariants: &Arc<Vec<Invariant>>,
    encoding: Encoding,
) -> Result<(Model, Names), Diagnostic> {
    let (places, variables, text) = encoding::encoded(pnml, structure, invariants, encoding);
    let transitions = pnml.transitions.clone();
    let mut net = Net { places, transitions, invariants: invariants.clone(), groups: Vec::new(), encoding: text };
    net.groups = net::groups(net.places.len(), &net.transitions, &structure.may_fire, &shares(&net));
    let tokens = (0..net.places.len()).map(|place| net.tokens_of(place)).collect();
    let capacity = |place: PlaceId| match net.stored(place).map(|(of, less)| (net.places[of].holder, less)) {
        Some((Holder::Number { variable, .. }, less)) => (variables[variable].values.high as u32).saturating_sub(less),
        _ => net.capacity(place),
    };
    let capacities = (0..net.places.len()).map(capacity).collect();
    let of_net = NetNames { names: pnml.names.clone(), tokens, capacities };
    let names = Names { net: Some(Arc::new(of_net)), ..Names::default() };
    let how = net.encoding.clone();
    let mut model = assembled(Parts { variables, net: Some(net), ..Parts::default() }, source)
        .map_err(|error| Diagnostic { label: format!("{}, and its tokens are stored so: {how}", error.label), ..error })?;
    model.ignored = pnml.ignored.clone();
    model.constants = pnml.constants.clone();
    Ok((model, names))
}

/// By place, the share of markings in which it has tokens, estimated by a random walk.
fn shares(net: &Net) -> Vec<f64> {
    let initial: Vec<u32> = net.places.iter().map(|place| place.initial).collect();
    let steps = (WALK_WORK / net.transitions.len().max(1)).min(MOST_WALK);
    let mut marked = vec![0u32; net.places.len()];
    let mut marking = initial.clone();
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..steps {
        marking.iter().zip(&mut marked).for_each(|(tokens, marked)| *marked += u32::from(*tokens > 0));
        let is_enabled = |transition: &&net::Transition| transition.takes.iter().all(|(place, count)| marking[*place] >= *count);
        let enabled: Vec<&net::Transition> = net.transitions.iter().filter(is_enabled).collect();
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let Some(transition) = enabled.get((random >> 33) as usize % enabled.len().max(1)) else {
            marking.clone_from(&initial);
            continue;
        };
        transition.takes.iter().for_each(|(place, count)| marking[*place] -= count);
        transition.puts.iter().for_each(|(place, count)| marking[*place] = marking[*place].saturating_add(*count));
    }
    marked.into_iter().map(|marked| f64::from(marked) / steps.max(1) as f64).collect()
}
