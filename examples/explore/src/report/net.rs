//! The part of a report about a net: its encoding, its tokens, and the firings of each transition.

use super::rows::Rows;
use indicatif::HumanCount;
use serde::{Serialize, Serializer};
use warpset_model::ir::{Ignored, Model};
use warpset_search::exploration::End;
use warpset_search::survey::Surveyed;
use warpset_support::escaping;

/// Most transitions whose firings are listed in the text; of more, those that fire most often are.
const MOST_LISTED: usize = 40;

/// Whether the figures are of all reachable states.
fn is_whole(surveyed: &Surveyed, end: End) -> bool {
    end == End::Complete && surveyed.stopped.is_none()
}

/// Parts of a kind in the model's file that were not read.
#[derive(Serialize)]
pub struct IgnoredParts {
    what: String,
    count: u64,
}

/// The parts of the file that were not read.
pub fn ignored(model: &Model) -> Vec<IgnoredParts> {
    model.ignored.iter().map(|Ignored { what, count }| IgnoredParts { what: what.to_string(), count: *count }).collect()
}

/// The parts of the file that were not read, as a row.
pub fn ignored_row(ignored: &[IgnoredParts]) -> Option<(&'static str, String)> {
    let parts = ignored.iter().map(|IgnoredParts { what, count }| format!("{what} ({})", HumanCount(*count)));
    let text = parts.collect::<Vec<_>>().join(", ");
    (!text.is_empty()).then_some(("ignored", text))
}

/// Figures of a net. Those of its tokens are `None` unless they are of all states found, since figures of a part of them would be
/// read as figures of all.
#[derive(Serialize)]
pub struct NetFigures {
    places: usize,
    net_transitions: usize,
    encoding: String,
    ignored: Vec<IgnoredParts>,
    max_tokens_in_place: Option<u64>,
    max_tokens: Option<u64>,
    /// How often each transition fires in all reachable states.
    #[serde(serialize_with = "as_map")]
    firings: Option<Vec<(String, u64)>>,
}

fn as_map<S: Serializer>(firings: &Option<Vec<(String, u64)>>, serializer: S) -> Result<S::Ok, S::Error> {
    match firings {
        Some(firings) => serializer.collect_map(firings.iter().map(|(name, count)| (name, count))),
        None => serializer.serialize_none(),
    }
}

impl NetFigures {
    pub fn of(model: &Model, surveyed: Option<&Surveyed>, end: End) -> Option<Self> {
        let net = model.net.as_ref()?;
        let surveyed = surveyed.filter(|surveyed| surveyed.stopped.is_none());
        let names = net.transitions.iter().map(|transition| transition.name.clone());
        let whole = surveyed.filter(|surveyed| is_whole(surveyed, end));
        Some(Self {
            places: net.places.len(),
            net_transitions: net.transitions.len(),
            encoding: net.encoding.clone(),
            ignored: ignored(model),
            max_tokens_in_place: surveyed.map(|surveyed| surveyed.max_in_place),
            max_tokens: surveyed.map(|surveyed| surveyed.max_tokens),
            firings: whole.map(|surveyed| names.zip(surveyed.firings.iter().copied()).collect()),
        })
    }

    /// Rows of the report.
    pub fn rows(&self) -> Rows {
        let mut rows = vec![("encoding", self.encoding.clone())];
        rows.extend(ignored_row(&self.ignored));
        if let (Some(in_place), Some(all)) = (self.max_tokens_in_place, self.max_tokens) {
            let so_far = if self.firings.is_some() { "" } else { ", in the states found" };
            let (place, all) = (HumanCount(in_place), HumanCount(all));
            rows.push(("tokens", format!("at most {place} in a place and {all} in a marking{so_far}")));
        }
        let never = self.firings.iter().flatten().filter(|(_, count)| *count == 0).count();
        if never > 0 {
            rows.push(("never enabled", format!("{} of {} transitions", HumanCount(never as u64), self.net_transitions)));
        }
        rows
    }

    /// The firings of each transition, as text after the rows. `None` if they were not counted in all states.
    pub fn firings_text(&self) -> Option<String> {
        let firings = self.firings.as_ref().filter(|firings| !firings.is_empty())?;
        let mut all: Vec<(usize, &(String, u64))> = firings.iter().enumerate().collect();
        let is_cut = all.len() > MOST_LISTED;
        if is_cut {
            all.sort_by_key(|(id, (_, count))| (std::cmp::Reverse(*count), *id));
        }
        let line = |(_, (name, count)): &(usize, &(String, u64))| {
            format!("  {:<16} {}\n", HumanCount(*count).to_string(), escaping::line(name))
        };
        let lines: String = all.iter().take(MOST_LISTED).map(line).collect();
        let more = all.len().saturating_sub(MOST_LISTED);
        let more = format!("  ... and {} transitions more (--json has all)\n", HumanCount(more as u64));
        let more = if is_cut { &more } else { "" };
        Some(format!("\nFirings of each transition:\n{lines}{more}"))
    }
}
