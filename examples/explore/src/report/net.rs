//! The part of a report about a net: its encoding, its tokens, and the firings of each transition.

use crate::escaping;
use crate::exploration::End;
use crate::ir::{Ignored, Model};
use crate::survey::Surveyed;
use indicatif::HumanCount;
use serde_json::{Map, Value, json};

/// Most transitions whose firings are listed in the text; of more, those that fire most often are.
const MOST_LISTED: usize = 40;

/// Whether the figures are of all reachable states.
fn is_whole(surveyed: &Surveyed, end: End) -> bool {
    end == End::Complete && surveyed.stopped.is_none()
}

/// The parts of the file that were not read, as a row.
pub fn ignored_row(model: &Model) -> Option<(&'static str, String)> {
    let parts = model.ignored.iter().map(|Ignored { what, count }| format!("{what} ({})", HumanCount(*count)));
    let text = parts.collect::<Vec<_>>().join(", ");
    (!text.is_empty()).then_some(("ignored", text))
}

/// The parts of the file that were not read, and how many there are of each kind.
pub fn ignored_json(model: &Model) -> Value {
    model.ignored.iter().map(|Ignored { what, count }| json!({ "what": what, "count": count })).collect()
}

/// Rows of the report.
pub fn rows(model: &Model, surveyed: Option<&Surveyed>, end: End) -> Vec<(&'static str, String)> {
    let Some(net) = &model.net else { return Vec::new() };
    let mut rows = vec![("encoding", net.encoding.clone())];
    rows.extend(ignored_row(model));
    if let Some(surveyed) = surveyed.filter(|surveyed| surveyed.stopped.is_none()) {
        let so_far = if is_whole(surveyed, end) { "" } else { ", in the states found" };
        let (place, all) = (HumanCount(surveyed.max_in_place), HumanCount(surveyed.max_tokens));
        rows.push(("tokens", format!("at most {place} in a place and {all} in a marking{so_far}")));
        let never = surveyed.firings.iter().filter(|count| **count == 0).count();
        if is_whole(surveyed, end) && never > 0 {
            rows.push(("never enabled", format!("{} of {} transitions", HumanCount(never as u64), net.transitions.len())));
        }
    }
    rows
}

/// The firings of each transition, as text after the rows. `None` if they were not counted in all states.
pub fn firings(model: &Model, surveyed: &Surveyed, end: End) -> Option<String> {
    let net = model.net.as_ref().filter(|net| is_whole(surveyed, end) && !net.transitions.is_empty())?;
    let mut all: Vec<(usize, u64)> = surveyed.firings.iter().copied().enumerate().collect();
    let is_cut = all.len() > MOST_LISTED;
    if is_cut {
        all.sort_by_key(|(id, count)| (std::cmp::Reverse(*count), *id));
    }
    let line = |(id, count): &(usize, u64)| {
        format!("  {:<16} {}\n", HumanCount(*count).to_string(), escaping::line(&net.transitions[*id].name))
    };
    let lines: String = all.iter().take(MOST_LISTED).map(line).collect();
    let more = all.len().saturating_sub(MOST_LISTED);
    let more =
        if is_cut { format!("  ... and {} transitions more (--json has all)\n", HumanCount(more as u64)) } else { String::new() };
    Some(format!("\nFirings of each transition:\n{lines}{more}"))
}

/// Adds the figures to the report's object.
pub fn add(report: &mut Value, model: &Model, surveyed: Option<&Surveyed>, end: End) {
    let Some(net) = &model.net else { return };
    report["places"] = net.places.len().into();
    report["net_transitions"] = net.transitions.len().into();
    report["encoding"] = net.encoding.clone().into();
    report["ignored"] = ignored_json(model);
    // Figures of a part of the states that were found would be read as figures of all of them.
    let surveyed = surveyed.filter(|surveyed| surveyed.stopped.is_none());
    report["max_tokens_in_place"] = json!(surveyed.map(|surveyed| surveyed.max_in_place));
    report["max_tokens"] = json!(surveyed.map(|surveyed| surveyed.max_tokens));
    report["firings"] = Value::Null;
    if let Some(surveyed) = surveyed.filter(|surveyed| is_whole(surveyed, end)) {
        let firings = net.transitions.iter().zip(&surveyed.firings);
        let firings: Map<String, Value> = firings.map(|(transition, count)| (transition.name.clone(), json!(count))).collect();
        report["firings"] = firings.into();
    }
}
