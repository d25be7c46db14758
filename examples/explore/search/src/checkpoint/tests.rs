//! Resumed searches, with every kind of table, from every point at which a search may end.

use super::*;
use crate::engine::tests::{counters, read, with_goal};
use crate::engine::{Begin, HostEngine};
use crate::exploration::{End, Limits};
#[cfg(unix)]
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;
use warpset::{Bucket, CompactTree, Indexed, Tree};
use warpset_model::checks::Checks;
use warpset_model::interpreter::Interpreter;
use warpset_support::stopping::Stop;
use warpset_testing::sizes::sized;

/// Schedule of checkpoints that become due only when a search ends.
fn schedule(folder: &TempDir) -> Schedule {
    let path = folder.path().join("search.checkpoint");
    Schedule { path, every: Duration::from_secs(600), levels: None, warn: |warning| panic!("{warning}") }
}

/// Explores until a limit, resumes from the checkpoint until the next one, and so on to the end.
fn in_turns<S: Storage>(limits: impl Iterator<Item = Limits>, slots: u64, goal: Option<&str>) -> (Exploration, Vec<End>) {
    let dve = counters(6);
    let checks = goal.map_or_else(Checks::default, |goal| with_goal(&dve, goal, Checks::default()));
    let interpreted = Interpreted::new(Interpreter::new(&dve.model), &checks);
    let (folder, device) = (TempDir::new().unwrap(), Device::cpu_with_threads(2));
    let initial = dve.model.initial_state();
    let identity = || Identity::of(&dve.model, &checks, None);
    let checkpoints = Checkpoints::new(schedule(&folder), identity(), checks.conditions.len(), TableKind::Tree, 0);
    let mut ends = Vec::new();
    for limits in limits {
        let (table, begin) = match ends.len() {
            0 => {
                let table = VectorTable::<S>::builder(dve.model.layout.words).capacity(slots).build(&device).unwrap();
                (table, Begin::Initial(&initial))
            }
            _ => {
                let opened = Opened::open(&checkpoints.schedule.path).unwrap();
                assert_eq!(opened.table_of(&identity(), dve.model.layout.words, None).unwrap(), TableKind::Tree);
                let (table, resumed) = opened.load(&device, &interpreted, &limits).unwrap();
                (table, Begin::Resumed(resumed))
            }
        };
        let engine = HostEngine { table: &table, source: &interpreted, limits, recorder: None, observer: &|_| true };
        let exploration = engine.search(begin, None, Some(&checkpoints), None).unwrap();
        ends.push(exploration.end);
        if !can_go_on(&exploration) {
            assert_eq!(table.len().unwrap(), exploration.counts.states);
            return (exploration, ends);
        }
        assert!(checkpoints.last().error.is_none());
    }
    panic!("{ends:?}");
}

/// Counts of an uninterrupted search.
fn all() -> Counts {
    Counts { states: 46_656, transitions: 233_280, deadlocks: 1, levels: 31, widest_level: 4332, waiting: 0, overflows: 0 }
}

fn in_every_table(limits: impl Fn(u64) -> Limits + Copy, slots: u64) -> [Vec<End>; 4] {
    let limits = || (0..100).map(limits);
    let explorations = [
        in_turns::<Bucket>(limits(), slots, None),
        in_turns::<Tree>(limits(), slots, None),
        in_turns::<CompactTree>(limits(), slots, None),
        in_turns::<Indexed>(limits(), slots, None),
    ];
    explorations.map(|(exploration, ends)| {
        assert_eq!((exploration.counts, exploration.end), (all(), End::Complete), "{ends:?}");
        ends
    })
}

#[test]
fn searches_go_on_from_every_level() {
    // No round begins above the limit of states, so each turn ends some levels later.
    for ends in in_every_table(|turn| Limits { states: 1 << turn.min(40), ..Limits::NONE }, 64) {
        assert!(ends.len() > 10 && ends[0] == End::States, "{ends:?}");
    }
}

#[test]
fn searches_go_on_when_the_table_was_full() {
    // In the first turns there is no memory for a larger table: states are rejected, and kept.
    for ends in in_every_table(|turn| Limits { bytes: 150_000 << turn, ..Limits::NONE }, 2000) {
        assert!(ends.len() > 1 && ends[0] == End::Memory, "{ends:?}");
    }
}

#[test]
fn searches_go_on_when_they_were_stopped_in_a_level() {
    /// Number of calls of `stop` since the search was resumed.
    static ASKED: AtomicU64 = AtomicU64::new(0);
    fn stop() -> Option<Stop> {
        // Relaxed: only the number matters.
        (ASKED.fetch_add(1, Ordering::Relaxed) >= 40).then_some(Stop::Interrupted)
    }
    let limits = |turn| {
        ASKED.store(0, Ordering::Relaxed);
        Limits { stop: if turn < 90 { stop } else { || None }, ..Limits::NONE }
    };
    for ends in in_every_table(limits, 64) {
        assert!(ends.len() > 3 && ends[0] == End::Stopped(Stop::Interrupted), "{ends:?}");
    }
}

#[test]
fn what_was_found_stays_found() {
    let limits = |turn: u64| Limits { states: 1 << turn.min(40), ..Limits::NONE };
    let (exploration, ends) = in_turns::<Tree>((0..100).map(limits), 64, Some("P_0.x == 2 and P_1.x == 2"));
    assert_eq!((exploration.counts, exploration.end), (all(), End::Complete), "{ends:?}");
    let found = exploration.found.unwrap();
    assert_eq!((found.level, found.violation), (4, Violation::Condition(0)));
}

/// A violation that ends a search remains the ending even if the search is stopped before the round is over. Such a search cannot
/// be resumed.
#[test]
fn what_ends_a_search_does_so_when_it_is_stopped() {
    /// Number of calls that are left before `stop` gives a reason.
    static LEFT: AtomicU64 = AtomicU64::new(0);
    fn stop() -> Option<Stop> {
        // Relaxed: only the number matters.
        let is_over = LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err();
        is_over.then_some(Stop::Interrupted)
    }
    let dve = counters(6);
    let checks = with_goal(&dve, "P_0.x == 5 and P_1.x == 5 and P_2.x == 5", Checks::default());
    let interpreted = Interpreted::new(Interpreter::new(&dve.model), &checks);
    let mut ends = Vec::new();
    // The last search is never stopped.
    for asked in (0..1200).step_by(sized(20, 60, 60)).chain([u64::MAX]) {
        LEFT.store(asked, Ordering::Relaxed);
        let builder = VectorTable::<Bucket>::builder(dve.model.layout.words).capacity(50_000);
        let table = builder.build(&Device::cpu_with_threads(1)).unwrap();
        let limits = Limits { stop, keep_going: false, ..Limits::NONE };
        let engine = HostEngine { table: &table, source: &interpreted, limits, recorder: None, observer: &|_| true };
        let exploration = engine.search(Begin::Initial(&dve.model.initial_state()), None, None, None).unwrap();
        assert_eq!(exploration.found.is_some(), exploration.end == End::Violation, "{asked}");
        assert_eq!(can_go_on(&exploration), exploration.found.is_none(), "{asked}");
        ends.push(exploration.end);
    }
    assert!([End::Violation, End::Stopped(Stop::Interrupted)].iter().all(|end| ends.contains(end)), "{ends:?}");
}

#[test]
fn constants_that_conditions_name_are_part_of_an_identity() {
    let identity = |most: u32| {
        let text = format!(
            "const byte most = {most}; process P {{ byte x; state s; init s; trans s -> s {{ guard x < 5; effect x = x + 1; }}; }} \
             system async;"
        );
        let dve = read(&text);
        Identity::of(&dve.model, &with_goal(&dve, "P.x > most", Checks::default()), None)
    };
    let saved = identity(3).json();
    identity(3).ensure_is(&saved).unwrap();
    assert!(identity(4).ensure_is(&saved).unwrap_err().to_string().contains("constant"));
}

#[test]
fn what_killed_processes_left_is_removed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.checkpoint");
    // No process has the number in the first name; process 1 always runs.
    let names = [".a.checkpoint.4000000000.0.part", ".a.checkpoint.1.0.part", ".a.checkpoint.x.0.part"];
    let parts = names.map(|name| folder.path().join(name));
    parts.iter().for_each(|part| std::fs::write(part, "part").unwrap());
    file::ensure_can_be_written(&path).unwrap();
    let is_there = parts.map(|part| part.exists());
    assert_eq!((is_there[0], is_there[2], path.exists()), (false, true, false));
    assert!(is_there[1] || cfg!(not(unix)));
    // A file that cannot be filled does not appear, and the earlier file is unchanged.
    file::write(&path, |to| file::put(to, &json!({}), &[&&[1, 2][..]])).unwrap();
    let before = std::fs::read(&path).unwrap();
    file::write(&path, |_| anyhow::bail!("no")).unwrap_err();
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let left: Vec<_> = folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains(&format!(".{}.", std::process::id()))), "{left:?}");
}

/// If any call but the last one fails, the file is unchanged. If the last call fails, the file is replaced, and the result says
/// that it might be lost.
#[test]
fn errors_leave_the_file_before_or_say_that_it_is_replaced() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.checkpoint");
    let write = |number: u32| file::write(&path, |to| file::put(to, &json!({ "number": number }), &[]));
    let (first, calls) = warpset::faults::count(|| write(0).unwrap());
    assert!(first.folder_error.is_none() && calls > 3);
    for call in 0..calls {
        let (written, _) = warpset::faults::fail(call..u64::MAX, || write(call as u32 + 1));
        let is_last = call == calls - 1;
        match written {
            Ok(written) => assert!(is_last && written.folder_error.is_some(), "call {call} of {calls}"),
            Err(_) => assert!(!is_last, "call {call} of {calls}"),
        }
        let reading = Reading::open(&path).unwrap();
        assert_eq!(reading.header["number"], json!(if is_last { calls } else { 0 }), "call {call} of {calls}");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1, "call {call} of {calls}");
    }
}

/// Tests links in the folder of a checkpoint that have the names of files about to be written.
#[cfg(unix)]
#[test]
fn links_beside_a_checkpoint_are_not_followed() {
    let folder = TempDir::new().unwrap();
    let (path, target) = (folder.path().join("a.checkpoint"), folder.path().join("target"));
    std::fs::write(&target, "precious").unwrap();
    let process = std::process::id();
    let numbered = (0..500).map(|number| format!(".a.checkpoint.{process}.{number}.part"));
    let links: Vec<PathBuf> =
        numbered.chain([format!(".a.checkpoint.{process}.part")]).map(|name| folder.path().join(name)).collect();
    let link_all =
        || links.iter().filter(|link| link.symlink_metadata().is_err()).for_each(|link| symlink(&target, link).unwrap());
    let is_right = |what: &str| {
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious", "{what}");
        Reading::open(&path).and_then(Reading::end).unwrap();
    };
    link_all();
    file::write(&path, |to| file::put(to, &json!({}), &[])).unwrap();
    is_right("written");
    link_all();
    file::ensure_can_be_written(&path).unwrap();
    is_right("tried");
    // Links that appear while a file is written are not followed either.
    file::write(&path, |to| {
        link_all();
        file::put(to, &json!({}), &[])
    })
    .unwrap();
    is_right("written again");
    // A link at the checkpoint's own path is replaced.
    std::fs::remove_file(&path).unwrap();
    symlink(&target, &path).unwrap();
    file::write(&path, |to| file::put(to, &json!({}), &[])).unwrap();
    is_right("in place of a link");
    assert!(!path.is_symlink());
}

#[test]
fn every_changed_byte_and_every_end_is_found() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.checkpoint");
    let words: Vec<u32> = (0..300_000).collect();
    file::write(&path, |to| file::put(to, &json!({ "a": 1 }), &[&&words[..5], &&words[5..]])).unwrap();
    let read = || {
        let mut reading = Reading::open(&path)?;
        let read = reading.words(300_000)?;
        reading.end().map(|()| read)
    };
    assert_eq!(read().unwrap(), words);
    let bytes = std::fs::read(&path).unwrap();
    let places = (0..40).chain((40..bytes.len()).step_by(sized(9973, 99_730, 99_730))).chain([bytes.len() - 1]);
    for place in places {
        let mut changed = bytes.clone();
        changed[place] ^= 0x10;
        std::fs::write(&path, &changed).unwrap();
        let error = format!("{:#}", read().unwrap_err());
        assert!(
            ["damaged", "not a checkpoint", "version", "truncated"].iter().any(|word| error.contains(word)),
            "{place}: {error}"
        );
        std::fs::write(&path, &bytes[..place]).unwrap();
        let error = format!("{:#}", read().unwrap_err());
        assert!(["truncated", "fewer than 8"].iter().any(|word| error.contains(word)), "{place}: {error}");
    }
    std::fs::write(&path, [&bytes[..], b"x"].concat()).unwrap();
    assert!(read().unwrap_err().to_string().contains("after its end"));
}
