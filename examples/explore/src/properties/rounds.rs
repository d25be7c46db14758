//! The explorations that answer the properties of a file, one after the other.

use super::{FIRST_LOOK, LOCKED, Properties, Round, TooLarge};
use crate::options::Options;
use crate::outputs::Outputs;
use crate::search::search;
use crate::spread::RankPlan;
use anyhow::{Context, Error, Result, ensure};
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;
use warpset_model::input;
use warpset_model::language::Text;
use warpset_model::net::properties::{Global, Property, Question, read};
use warpset_search::exploration::End;
use warpset_support::exit;
use warpset_support::program::Ended;
use warpset_support::stopping;

/// Markings after which the formulas about runs are looked at, if nothing else is asked. The first ones show most runs that
/// violate a formula; with more than the last, each formula has an exploration of its own.
const MARKINGS_OF_RUNS: [u64; 2] = [1 << 16, 1 << 24];

/// Answers all properties, and prints the answers.
pub fn answer(options: &Options, plan: &RankPlan, text: &mut Text, outputs: Outputs, file: &Path, start: Instant) -> Result<u8> {
    ensure!(*plan == RankPlan::Alone, "--properties is for one table on one device, not for ranks");
    let Text::Net(net) = &*text else { anyhow::bail!("--properties is about Petri nets (--format pnml)") };
    let is_picture = outputs.trace.as_ref().and_then(|file| file.path().extension()).is_some_and(|of| of == "svg" || of == "txt");
    ensure!(!is_picture, "--trace: with --properties, paths are written as JSON, not as a message chart");
    let all = match file.to_str().and_then(Global::named) {
        Some(global) => vec![Property { name: global.name().into(), question: Question::Global(global) }],
        None => read(&input::read_xml(file).context("--properties")?, &net.pnml.names)?,
    };
    let count = all.len();
    let paths = outputs.trace.as_ref().map(|_| Mutex::default());
    let verdicts = Mutex::new(vec![None; count]);
    let (counts, next_look, end) = (Mutex::default(), Mutex::new(FIRST_LOOK), Mutex::default());
    let mut properties = Properties {
        all,
        round: Round::Markings,
        is_first_round: true,
        show: options.display.shown(),
        verdicts,
        paths,
        counts,
        next_look,
        end,
    };
    let failure = explore_all(&mut properties, options, plan, text, start).err();
    properties.finish(&options.display, text.model(), outputs.trace, failure)
}

/// Explores for each question.
fn explore_all(properties: &mut Properties, options: &Options, plan: &RankPlan, text: &mut Text, start: Instant) -> Result<()> {
    if !properties.all.iter().all(Property::is_of_runs) {
        explore(properties, Round::Markings, options, plan, text, start)?;
    } else {
        for most in MARKINGS_OF_RUNS {
            let mut within = options.clone();
            within.limits.max_states = Some(options.limits.max_states.map_or(most, |given| given.min(most)));
            explore(properties, Round::Markings, &within, plan, text, start)?;
            let has_more = *properties.end.lock().expect(LOCKED) == Some(End::States)
                && within.limits.max_states != options.limits.max_states;
            if !has_more || (0..properties.all.len()).all(|number| properties.is_decided(number)) {
                break;
            }
        }
    }
    for number in 0..properties.all.len() {
        if properties.needs_exploration(number) {
            explore(properties, Round::Runs(number), options, plan, text, start)?;
        }
    }
    if properties.paths.is_some() {
        for number in properties.with_paths() {
            explore(properties, Round::Path(number), options, plan, text, start)?;
        }
    }
    Ok(())
}

/// Explores for a round. A limit, or a question that is too large, leaves the round's questions without an answer.
///
/// # Errors
///
/// Any other failure, such as a device that does not exist or an option that cannot be combined with the question.
fn explore(
    properties: &mut Properties,
    round: Round,
    options: &Options,
    plan: &RankPlan,
    text: &mut Text,
    start: Instant,
) -> Result<()> {
    properties.round = round;
    *properties.next_look.lock().expect(LOCKED) = FIRST_LOOK;
    text.model_mut().remove_property();
    let open = || match stopping::asked() {
        Some(stop) => Err(stop.error("before the search began").into()),
        None => Ok(Outputs::default()),
    };
    let result = search(options, plan, text, open, start, Some(properties));
    properties.is_first_round = false;
    match result {
        Ok(_) => Ok(()),
        Err(error) if is_limit(&error) => {
            properties.fail(&error);
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Whether the error is a limit of the search or of what can be asked.
fn is_limit(error: &Error) -> bool {
    error.is::<TooLarge>() || error.downcast_ref().is_some_and(|ended: &Ended| ended.code != exit::ERROR)
}
