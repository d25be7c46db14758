//! Searches of nets that begin again with wider fields, when a place gets more tokens than its field holds.

use crate::spread::RankPlan;
use anyhow::{Error, Result};
use std::fmt;
use std::path::Path;
use warpset_model::checks::Violation;
use warpset_model::interpreter::Wrong;
use warpset_model::ir::net::{Holder, PlaceId};
use warpset_model::ir::{MAX_WORDS, Model};
use warpset_model::language::Text;
use warpset_model::net::encoding::Encoding;
use warpset_search::checkpoint::Opened;
use warpset_support::escaping;
use warpset_support::exit;
use warpset_support::program::{self, Ended};

/// A search that ended because a place has no room for its tokens.
#[derive(Debug)]
pub struct NoRoom {
    place: PlaceId,
    /// Why no encoding has room, if that is known.
    unbounded: Option<String>,
    /// Whether a random walk needs the room. It visits finitely many markings even of an unbounded net.
    is_of_walk: bool,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "place number {} gets more tokens than the state has room for", self.place)
    }
}

impl std::error::Error for NoRoom {}

impl NoRoom {
    /// Whether a violation is one of the room for tokens.
    pub fn is_of(violation: &Violation) -> bool {
        Self::place(violation).is_some()
    }

    /// The error of such a violation. `path` gives the states up to the one in which it happens.
    ///
    /// # Panics
    ///
    /// If it is another violation.
    pub fn of(model: &Model, violation: &Violation, path: impl FnOnce() -> Result<Vec<Vec<u32>>>) -> Self {
        let place = Self::place(violation).expect("a violation of the room for tokens");
        Self { place, unbounded: path().ok().and_then(|states| growth(model, &states)), is_of_walk: false }
    }

    /// The error of a walk that ended with a violation, if it is one of the room for tokens.
    pub fn of_walk(violation: &Violation) -> Option<Self> {
        Some(Self { place: Self::place(violation)?, unbounded: None, is_of_walk: true })
    }

    fn place(violation: &Violation) -> Option<PlaceId> {
        let Violation::Fault(fault) = violation else { return None };
        let Wrong::Tokens { place } = fault.what else { return None };
        Some(place)
    }
}

/// Describes how markings grow along a path: if a marking has at least the tokens of an earlier one in each place, and more in
/// one, the steps between them can be repeated for ever.
fn growth(model: &Model, states: &[Vec<u32>]) -> Option<String> {
    /// Most comparisons of tokens.
    const MOST_WORK: usize = 200_000_000;
    let net = model.net.as_ref()?;
    let tokens =
        |state: &Vec<u32>| -> Vec<u32> { (0..net.places.len()).map(|place| net.tokens(&model.layout, state, place)).collect() };
    let markings: Vec<Vec<u32>> = states.iter().map(tokens).collect();
    let mut work = 0;
    for (later, after) in markings.iter().enumerate().rev() {
        for (earlier, before) in markings[..later].iter().enumerate() {
            work += net.places.len();
            if work > MOST_WORK {
                return None;
            }
            if before != after && before.iter().zip(after).all(|(before, after)| before <= after) {
                let grows = before.iter().zip(after).position(|(before, after)| before < after)?;
                let name = escaping::line(&net.places[grows].name);
                return Some(format!(
                    "the net is unbounded: the marking after {later} steps has all tokens of that after {earlier} steps, and \
                     more in the place {name}, so the steps between them can be repeated for ever"
                ));
            }
        }
    }
    None
}

/// Encodes the states of a net as those of a checkpoint are, if some encoding of the net does. A search that began again with
/// wider fields wrote its checkpoints with these.
pub fn of_checkpoint(text: &mut Text, path: &Path) -> Result<()> {
    let Text::Net(net) = text else { return Ok(()) };
    let (opened, asked) = (Opened::open(path)?, net.encoding);
    for encoding in std::iter::once(asked).chain(Encoding::all()) {
        // An encoding with more words than a state may have is none of a checkpoint's.
        if net.encode(encoding).is_ok() && opened.has_states_of(&net.model) {
            return Ok(());
        }
    }
    Ok(net.encode(asked)?)
}

/// Encodes the states of a net with more room after an attempt that ended with this error. Other errors are returned.
pub fn widen(text: &mut Text, plan: &RankPlan, error: Error) -> Result<()> {
    let Some(NoRoom { place, unbounded, is_of_walk }) = error.downcast_ref() else { return Err(error) };
    let Text::Net(net) = text else { return Err(error) };
    let of = net.model.net.as_ref().expect("a net has places");
    let (name, capacity) = (escaping::line(&of.places[*place].name).into_owned(), of.capacity(*place));
    let ended = |why: String| Error::from(Ended { code: exit::INCOMPLETE, why });
    let wider = net.encoding.wider();
    // Markings with more tokens are still found by a user who wants them.
    let unbounded_net = |why: &str| {
        let option = wider.as_ref().map(|wider| wider.bits);
        let option = option.map_or_else(String::new, |bits| {
            format!("; --token-bits {bits} searches on, up to {} tokens in a place", (1_u64 << bits) - 1)
        });
        ended(format!("{why}{option}"))
    };
    if let Some(why) = unbounded {
        return Err(unbounded_net(why));
    }
    if let Some(id) = net.source_transition.filter(|_| !is_of_walk) {
        let source = escaping::line(&of.transitions[id].name);
        return Err(unbounded_net(&format!("the net is unbounded: its transition {source} takes no tokens and puts some")));
    }
    let is_claimed = match of.places[*place].holder {
        Holder::Code { .. } => true,
        Holder::Number { capacity, .. } => capacity == 1,
        Holder::Constant | Holder::Less { .. } | Holder::Opposite { .. } => false,
    };
    let next = if is_claimed && net.encoding.believes_units {
        program::print_warning(&format!(
            "warning: the NUPN section says that the place {name} is safe, or alone in its unit, and it is not: the search \
             begins again without that section\n"
        ));
        Encoding { believes_units: false, ..net.encoding }
    } else {
        wider
            .ok_or_else(|| ended(format!("the place {name} gets more than {capacity} tokens, which is more than can be held")))?
    };
    if matches!(plan, RankPlan::Process(_)) {
        return Err(ended(format!(
            "the place {name} gets more than {capacity} tokens: processes begin again only with --token-bits {}",
            next.bits
        )));
    }
    // Without the section, more places may have no proved bound.
    let encoded = if is_claimed { net.encode_within(next) } else { net.encode(next) };
    encoded.map_err(|error| {
        let (bits, message) = (next.bits, &error.diagnostic.message);
        ended(format!(
            "the place {name} gets more than {capacity} tokens, and with {bits} bits for them {message}: at most {MAX_WORDS} are \
             possible"
        ))
    })
}
