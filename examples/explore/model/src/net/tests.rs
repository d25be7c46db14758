//! Nets: reading, encoding, steps, conditions, properties.
//!
//! Keeps these promises of `examples/explore/docs/nets.md`:
//!
//! - Petri nets have the counts that a plain search finds, whatever the encoding. A place gets more bits before its tokens would
//!   wrap, and a wrong NUPN section is found (also `examples/explore/tests/explore/nets/counts.rs`).
//! - A PNML file may have places, transitions, ordinary arcs, and references that lead somewhere. One with anything else is
//!   refused with line and column.

use super::encoding::Encoding;
use super::properties::{self, Question};
use super::{Nets, pnml};
use crate::interpreter::{Interpreter, Scratch, Step};
use crate::ir::Source;
use crate::ir::net::Holder;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use warpset_testing::sizes::sized;

fn source(text: &str) -> Source {
    Source { name: "net.pnml".into(), text: text.into() }
}

/// A PNML text with these elements on one page.
pub(crate) fn page(elements: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<pnml xmlns=\"http://www.pnml.org/version-2009/grammar/pnml\">\n<net id=\"n\" \
         type=\"http://www.pnml.org/version-2009/grammar/ptnet\"><page id=\"page\">\n{elements}\n</page></net></pnml>\n"
    )
}

pub(crate) fn place(id: &str, tokens: u64) -> String {
    format!("<place id=\"{id}\"><initialMarking><text>{tokens}</text></initialMarking></place>\n")
}

pub(crate) fn transition(id: &str) -> String {
    format!("<transition id=\"{id}\"/>\n")
}

pub(crate) fn arc(source: &str, target: &str, weight: u64) -> String {
    format!(
        "<arc id=\"{source}-{target}\" source=\"{source}\" target=\"{target}\"><inscription><text>{weight}</text></inscription></arc>\n"
    )
}

pub(crate) fn read(text: &str) -> Nets {
    Nets::read(source(text), Encoding::FIRST).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    match Nets::read(source(text), Encoding::FIRST) {
        Ok(_) => panic!("this was read: {text}"),
        Err(error) => error.to_string(),
    }
}

/// Counts from a breadth-first search by the interpreter.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counted {
    states: u64,
    firings: u64,
    deadlocks: u64,
    levels: u64,
    max_in_place: u64,
    max_tokens: u64,
    of_transition: Vec<u64>,
}

/// Searches all markings with the interpreter. `None` if a place has too few bits for its tokens, or if there are more states
/// than `most`.
fn counted(nets: &Nets, most: usize) -> Option<Counted> {
    let (model, net) = (&nets.model, nets.model.net.as_ref().unwrap());
    let interpreter = Interpreter::new(model);
    let mut counted = Counted { of_transition: vec![0; net.transitions.len()], ..Counted::default() };
    let mut known = HashSet::from([model.initial_state()]);
    let mut level: Vec<Vec<u32>> = known.iter().cloned().collect();
    let mut scratch = Scratch::default();
    while !level.is_empty() {
        counted.levels += 1;
        let mut next = Vec::new();
        for state in &level {
            let tokens: Vec<u64> = (0..net.places.len()).map(|at| net.tokens(&model.layout, state, at).into()).collect();
            counted.max_in_place = counted.max_in_place.max(tokens.iter().copied().max().unwrap_or(0));
            counted.max_tokens = counted.max_tokens.max(tokens.iter().sum());
            let before = counted.firings;
            let visit = |step, successor: &[u32]| {
                let Step::Firing(id) = step else { panic!("a net has only firings") };
                counted.of_transition[id] += 1;
                counted.firings += 1;
                if known.insert(successor.to_vec()) {
                    next.push(successor.to_vec());
                }
            };
            interpreter.steps(state, &mut scratch, visit).ok()?;
            counted.deadlocks += u64::from(counted.firings == before);
        }
        if known.len() > most {
            return None;
        }
        level = next;
    }
    counted.states = known.len() as u64;
    Some(counted)
}

/// Counts a net by an independent search over lists of tokens.
fn counted_plainly(nets: &Nets, most: usize) -> Option<Counted> {
    let pnml = &nets.pnml;
    let mut counted = Counted { of_transition: vec![0; pnml.transitions.len()], ..Counted::default() };
    let initial: Vec<u64> = pnml.places.iter().map(|place| place.initial.into()).collect();
    let mut levels: HashMap<Vec<u64>, u64> = HashMap::from([(initial.clone(), 1)]);
    let mut waiting = VecDeque::from([initial]);
    while let Some(marking) = waiting.pop_front() {
        let level = levels[&marking];
        counted.levels = counted.levels.max(level);
        counted.max_in_place = counted.max_in_place.max(marking.iter().copied().max().unwrap_or(0));
        counted.max_tokens = counted.max_tokens.max(marking.iter().sum());
        let mut is_dead = true;
        for (id, transition) in pnml.transitions.iter().enumerate() {
            if !transition.takes.iter().all(|(place, count)| marking[*place] >= u64::from(*count)) {
                continue;
            }
            is_dead = false;
            counted.of_transition[id] += 1;
            counted.firings += 1;
            let mut next = marking.clone();
            transition.takes.iter().for_each(|(place, count)| next[*place] -= u64::from(*count));
            transition.puts.iter().for_each(|(place, count)| next[*place] += u64::from(*count));
            if !levels.contains_key(&next) {
                levels.insert(next.clone(), level + 1);
                waiting.push_back(next);
            }
        }
        counted.deadlocks += u64::from(is_dead);
        if levels.len() > most {
            return None;
        }
    }
    counted.states = levels.len() as u64;
    Some(counted)
}

/// Returns the counts in the first encoding that has enough bits for all tokens.
fn counted_with_room(nets: &mut Nets, most: usize) -> Option<Counted> {
    for encoding in Encoding::all() {
        nets.encode(encoding).unwrap();
        let found = counted(nets, most);
        if found.is_some() {
            return found;
        }
    }
    None
}

#[test]
fn markings_are_counted() {
    // Two tokens go round through three places. The transition `back` takes both at once.
    let text = page(
        &[
            place("p", 2),
            place("q", 0),
            place("r", 0),
            transition("t"),
            transition("u"),
            transition("back"),
            arc("p", "t", 1),
            arc("t", "q", 1),
            arc("q", "u", 1),
            arc("u", "r", 1),
            arc("r", "back", 2),
            arc("back", "p", 2),
        ]
        .concat(),
    );
    let counted = counted(&read(&text), 100).unwrap();
    let expected =
        Counted { states: 6, firings: 7, deadlocks: 0, levels: 5, max_in_place: 2, max_tokens: 2, of_transition: vec![3, 3, 1] };
    assert_eq!(counted, expected);
}

#[test]
fn pages_and_references_are_resolved() {
    let inner = format!(
        "<page id=\"a\">{}<referencePlace id=\"r\" ref=\"s\"/></page><page id=\"b\"><page id=\"c\"><referencePlace id=\"s\" ref=\"p\"/>\
         <referenceTransition id=\"x\" ref=\"t\"/></page>{}</page>{}",
        place("p", 1),
        transition("t"),
        [arc("r", "x", 1), arc("t", "q", 1), place("q", 0)].concat()
    );
    let nets = read(&page(&inner));
    assert_eq!(counted(&nets, 10).unwrap().states, 2);
    for (elements, why) in [
        ("<referencePlace id=\"r\" ref=\"nowhere\"/>", "leads to `nowhere`"),
        ("<referencePlace id=\"r\" ref=\"s\"/><referencePlace id=\"s\" ref=\"r\"/>", "leads back to itself"),
        ("<referenceTransition id=\"r\" ref=\"s\"/><referenceTransition id=\"s\" ref=\"r\"/>", "leads back to itself"),
        ("<referencePlace id=\"r\"/>", "without `ref`"),
    ] {
        let error = refused(&page(elements));
        assert!(error.contains(why) && error.starts_with("net.pnml:4:"), "{error}");
    }
}

#[test]
fn identifiers_may_have_any_characters_and_be_of_a_place_and_a_transition() {
    let name = "a b&lt;&amp;&gt;\u{e9} \u{1f980}'";
    let text = page(&[place(name, 1), transition(name), place("q", 0), arc(name, "q", 1)].concat());
    // The arc must come from the transition: an arc between the two places with these names would be an error.
    let nets = read(&text);
    assert_eq!(nets.pnml.transitions[0].puts, [(1, 1)]);
    let condition = |text: &str| nets.condition(&Source { name: String::new(), text: text.into() });
    assert!(condition("tokens(\"a b<&>\u{e9} \u{1f980}'\") == 1 and fireable(\"a b<&>\u{e9} \u{1f980}'\")").is_ok());
    // Names of letters of any alphabet need no quotes; names with marks do.
    let nets = read(&page(&[place("gr\u{f6}\u{df}e_2", 1), transition("\u{435}\u{301}"), place("\u{6f22}", 0)].concat()));
    let condition = |text: &str| nets.condition(&Source { name: String::new(), text: text.into() }).map_err(|e| e.to_string());
    assert!(condition("tokens(gr\u{f6}\u{df}e_2, \u{6f22}) == 1 and not fireable(\u{435}\u{301})").is_ok());
    assert!(condition("tokens(\u{1f980})").unwrap_err().contains("`\u{1f980}` is not expected here"));
    let both = page(&[place("x", 1), transition("x"), place("y", 1), transition("y"), arc("x", "y", 1)].concat());
    assert!(refused(&both).contains("it is not clear which way"));
}

#[test]
fn names_that_several_elements_have_are_not_used() {
    let named = |id: &str, name: &str| format!("<place id=\"{id}\"><name><text>{name}</text></name></place>");
    let nets = read(&page(&[named("a", "one"), named("b", "two"), named("c", "two"), named("d", "a")].concat()));
    let condition = |text: &str| {
        nets.condition(&Source { name: String::new(), text: text.into() })
            .map(|(expression, _)| expression)
            .map_err(|e| e.to_string())
    };
    assert!(condition("tokens(one) == 0").is_ok());
    assert!(condition("tokens(two) == 0").unwrap_err().contains("several places have the name `two`"));
    assert!(condition("tokens(A) == 0").unwrap_err().contains("there is no place `A`"));
    assert!(condition("fireable(a)").unwrap_err().contains("there is no transition `a`"));
    let error = nets.condition(&Source { name: String::new(), text: "tokens(B) > 0".into() }).unwrap_err();
    assert_eq!(error.diagnostic.help.as_deref(), Some("there is `b`"));
}

#[test]
fn other_files_are_refused() {
    let arcs = |kind: &str| {
        page(&[place("p", 1), transition("t"), format!("<arc id=\"a\" source=\"p\" target=\"t\">{kind}</arc>")].concat())
    };
    let net = |kind: &str| format!("<pnml><net id=\"n\" type=\"http://www.pnml.org/version-2009/grammar/{kind}\"></net></pnml>");
    for (text, why) in [
        (String::new(), "no XML"),
        ("<pnml>".into(), "no XML"),
        ("<a/>".into(), "begins with `a`"),
        ("<pnml/>".into(), "no net"),
        (net("symmetricnet"), "only place/transition nets"),
        (net("pt-hlpng"), "only place/transition nets"),
        ("<!DOCTYPE pnml [<!ENTITY a \"b\">]><pnml/>".into(), "no XML"),
        (arcs("<type value=\"inhibitor\"/>"), "inhibitor"),
        (arcs("<type value=\"reset\"/>"), "reset"),
        (arcs("<inhibitor/>"), "`inhibitor` is no part"),
        (arcs("<inscription><text>0</text></inscription>"), "not the weight of an arc"),
        (arcs("<inscription><text>-1</text></inscription>"), "not the weight of an arc"),
        (arcs("<inscription><text>x</text></inscription>"), "not the weight of an arc"),
        (arcs("<inscription><text>2147483648</text></inscription>"), "too large"),
        (page("<place id=\"p\"><initialMarking><text>1.5</text></initialMarking></place>"), "not a number of tokens"),
        (page("<place id=\"p\"><capacity><text>1</text></capacity></place>"), "`capacity` is no part"),
        (page("<place/>"), "without `id`"),
        (page(&[place("p", 1), place("p", 1)].concat()), "a second place `p`"),
        (page(&[transition("t"), transition("t")].concat()), "a second transition `t`"),
        (page(&[place("p", 1), place("q", 1), arc("p", "q", 1)].concat()), "between two places"),
        (page(&[transition("t"), transition("u"), arc("t", "u", 1)].concat()), "between two transitions"),
        (page(&[place("p", 1), arc("p", "t", 1)].concat()), "no place and no transition `t`"),
    ] {
        let error = refused(&text);
        assert!(error.contains(why), "{why}: {error}");
        assert!(error.starts_with("net.pnml:"), "{error}");
    }
}

#[test]
fn arcs_between_the_same_two_nodes_add_up() {
    let text = page(&[place("p", 5), transition("t"), arc("p", "t", 1), arc("p", "t", 2), arc("t", "p", 1)].concat());
    let nets = read(&text);
    assert_eq!(nets.pnml.transitions[0].takes, [(0, 3)]);
    assert_eq!(counted(&nets, 10).unwrap().states, 3, "5, 3 and 1 tokens");
}

#[test]
fn places_get_more_bits_where_they_are_needed() {
    for most in [1u64, 127, 254, 255, 256, 300] {
        // `u` would double the tokens of `p` if `c` ever had one token more than at first. So no invariant bounds `p`.
        let arcs = [arc("c", "t", 1), arc("t", "p", 1), arc("p", "back", 1), arc("back", "c", 1)].concat();
        let doubles = [arc("c", "u", most + 1), arc("u", "c", most + 1), arc("p", "u", 1), arc("u", "p", 2)].concat();
        let nodes = [place("c", most), place("p", 0), ["t", "back", "u"].map(transition).concat()].concat();
        let mut nets = read(&page(&[nodes, arcs, doubles].concat()));
        let (found, plain) = (counted_with_room(&mut nets, 10_000), counted_plainly(&nets, 10_000));
        assert!(plain.as_ref().is_some_and(|plain| plain.max_in_place == most), "{most}: {plain:?}");
        assert_eq!(found, plain, "{most}");
        assert_eq!(nets.encoding.bits, if most <= 255 { 8 } else { 16 }, "{most}");
    }
}

/// A place that gets a token from each of `count` others, by a transition that no invariant covers: another one doubles tokens.
fn doubling(count: u64) -> String {
    page(
        &[
            place("c", count),
            place("p", 0),
            place("stop", 1),
            transition("double"),
            transition("end"),
            arc("c", "double", 1),
            arc("double", "p", 2),
            arc("stop", "end", 1),
            arc("p", "end", 1),
            arc("end", "c", 1),
        ]
        .concat(),
    )
}

#[test]
fn numbers_without_a_bound_begin_with_eight_bits() {
    let nets = read(&doubling(3));
    let net = nets.model.net.as_ref().unwrap();
    // The sum 2 c + p + stop never grows, and is 7 at first.
    assert!(matches!(net.places[1].holder, Holder::Number { is_proved: true, capacity: 7, .. }), "{:?}", net.places[1]);
    // A transition that takes one token, puts it back and adds another. Its place has no bound.
    let text =
        page(&[place("s", 1), place("p", 0), transition("t"), arc("s", "t", 1), arc("t", "s", 1), arc("t", "p", 1)].concat());
    let nets = read(&text);
    let net = nets.model.net.as_ref().unwrap();
    assert!(matches!(net.places[1].holder, Holder::Number { is_proved: false, capacity: 255, .. }), "{:?}", net.places[1]);
    assert!(counted(&nets, 1000).is_none(), "it is unbounded, and never wraps");
}

#[test]
fn a_wrong_nupn_section_is_found() {
    let nupn = "<toolspecific tool=\"nupn\" version=\"1.1\"><structure units=\"1\" root=\"u\" safe=\"true\"><unit id=\"u\">\
                <places>q r s</places><subunits/></unit></structure></toolspecific>";
    let text = |section: &str| {
        let places = [place("p", 2), place("q", 0), place("r", 0), place("s", 0)].concat();
        let arcs = [arc("p", "t", 1), arc("t", "q", 1), arc("q", "u", 1), arc("u", "r", 1), arc("r", "v", 1), arc("v", "s", 1)];
        page(&[places, ["t", "u", "v"].map(transition).concat(), arcs.concat(), section.into()].concat())
    };
    let mut nets = read(&text(nupn));
    assert!(counted(&nets, 10).is_none(), "two places of the unit are marked");
    let plain = counted_plainly(&nets, 10);
    assert_eq!(counted_with_room(&mut nets, 10), plain);
    assert!(!nets.encoding.believes_units);
    assert!(refused(&text(&nupn.replace("q r", "x r"))).contains("has a place `x`"));
}

#[test]
fn sources_of_tokens_are_told() {
    let nets = read(&page(&[place("p", 0), transition("t"), arc("t", "p", 1)].concat()));
    assert_eq!(nets.source_transition, Some(0));
    assert_eq!(nets.warnings.len(), 1);
    let quiet = read(&page(&[place("p", 0), transition("t")].concat()));
    assert_eq!((quiet.source_transition, counted(&quiet, 10).unwrap().firings), (None, 1), "it fires and changes nothing");
    assert_eq!(counted(&read(&page("")), 10).unwrap().deadlocks, 1, "a net of nothing has one marking");
}

#[test]
fn sums_that_may_be_too_large_are_refused() {
    // Both places change, so their tokens are not constants.
    let change = [transition("t"), arc("p", "t", 1), arc("t", "q", 1)].concat();
    let nets = read(&page(&[place("p", 1_000_000_000), place("q", 1_000_000_000), change].concat()));
    let condition =
        |text: &str| nets.condition(&Source { name: String::new(), text: text.into() }).map(drop).map_err(|e| e.to_string());
    assert!(condition("tokens(p) > 0").is_ok());
    assert!(condition("tokens(p) + tokens(q) > 0").unwrap_err().contains("may exceed 32 bits"));
    assert!(condition("tokens(p, q) > 0").unwrap_err().contains("together"));
}

/// A random net with few places. Transitions have up to three arcs in each direction, with weights up to three.
pub(crate) fn nets() -> impl Strategy<Value = String> {
    let arcs = || proptest::collection::vec((0usize..6, 1u64..4), 0..4);
    let places = proptest::collection::vec(0u64..4, 1..6);
    let transitions = proptest::collection::vec((arcs(), arcs()), 1..7);
    let units = proptest::option::of(proptest::collection::vec(0usize..6, 0..6));
    (places, transitions, units).prop_map(|(places, transitions, units)| {
        let name = |at: usize| format!("p{}", at % places.len());
        let mut text: String = places.iter().enumerate().map(|(at, tokens)| place(&format!("p{at}"), *tokens)).collect();
        for (id, (takes, puts)) in transitions.iter().enumerate() {
            let id = format!("t{id}");
            text += &transition(&id);
            takes.iter().for_each(|(at, weight)| text += &arc(&name(*at), &id, *weight));
            puts.iter().for_each(|(at, weight)| text += &arc(&id, &name(*at), *weight));
        }
        if let Some(units) = units {
            let names: BTreeMap<String, ()> = units.iter().map(|at| (name(*at), ())).collect();
            let names: Vec<String> = names.into_keys().collect();
            text += &format!(
                "<toolspecific tool=\"nupn\"><structure safe=\"true\"><unit id=\"u\"><places>{}</places></unit></structure></toolspecific>",
                names.join(" ")
            );
        }
        page(&text)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(sized(256, 64, 64)))]

    #[test]
    fn random_nets_have_the_counts_of_a_plain_search(text in nets()) {
        let mut nets = read(&text);
        let plain = counted_plainly(&nets, 3000);
        prop_assume!(plain.is_some());
        prop_assert_eq!(counted_with_room(&mut nets, 3000), plain);
    }

    #[test]
    fn no_text_is_a_panic(text in ".{0,200}") {
        let _ = Nets::read(source(&text), Encoding::FIRST);
        let _ = Nets::read(source(&page(&text)), Encoding::FIRST);
        let _ = properties::read(&source(&text), &pnml::Names::default());
    }
}

/// The folder with nets of the Model Checking Contest, if the environment variable names one.
fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("WARPSET_NETS").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: WARPSET_NETS names no folder of nets");
    }
    folder
}

#[test]
fn open_nets_have_their_counts() {
    let Some(folder) = folder() else { return };
    let most: u64 = std::env::var("WARPSET_NETS_STATES").ok().and_then(|most| most.parse().ok()).unwrap_or(3_000);
    let list = std::fs::read_to_string(folder.join("open.csv")).unwrap();
    let mut count = 0;
    for line in list.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let path = folder.join("open").join(cells[0]).join("model.pnml");
        let mut nets = read(&std::fs::read_to_string(path).unwrap());
        let number = |at: usize| cells[at].parse::<u64>().ok();
        assert_eq!(number(14), Some(nets.pnml.places.len() as u64), "{}: places", cells[0]);
        assert_eq!(number(15), Some(nets.pnml.transitions.len() as u64), "{}: transitions", cells[0]);
        assert_eq!(number(16), Some(nets.pnml.arcs as u64), "{}: arcs", cells[0]);
        eprintln!("{}: {} words, {}", cells[0], nets.model.layout.words, nets.model.net.as_ref().unwrap().encoding);
        let states = number(2).unwrap();
        if states > most {
            continue;
        }
        let found =
            counted_with_room(&mut nets, states as usize + 1).unwrap_or_else(|| panic!("{}: it has more states", cells[0]));
        let expected = [
            Some(states),
            number(3),
            number(4).or(Some(found.deadlocks)),
            number(5).or(Some(found.levels)),
            number(6),
            number(7),
        ];
        let Counted { states, firings, deadlocks, levels, max_in_place, max_tokens, .. } = found;
        assert_eq!([states, firings, deadlocks, levels, max_in_place, max_tokens].map(Some), expected, "{}", cells[0]);
        count += 1;
    }
    assert!(count > 10, "only {count} nets were counted");
}

#[test]
fn properties_are_read() {
    let nets = read(&page(&[place("p", 1), transition("t"), arc("p", "t", 1)].concat()));
    let property =
        |formula: &str| format!("<property-set><property><id>a-00</id><formula>{formula}</formula></property></property-set>");
    let question = |formula: &str| {
        let read = properties::read(&source(&property(formula)), &nets.pnml.names);
        read.map(|mut all| all.remove(0).question).map_err(|error| error.to_string())
    };
    let fireable = "<is-fireable><transition>t</transition></is-fireable>";
    let reach = question(&format!("<exists-path><finally>{fireable}</finally></exists-path>"));
    assert!(matches!(reach, Ok(Question::Reach { if_reached: true, .. })), "{reach:?}");
    let everywhere = question(&format!("<all-paths><globally>{fireable}</globally></all-paths>"));
    assert!(matches!(everywhere, Ok(Question::Reach { if_reached: false, .. })), "{everywhere:?}");
    let runs = question(&format!("<all-paths><finally>{fireable}</finally></all-paths>"));
    assert!(matches!(runs, Ok(Question::Runs { is_negated: false, .. })), "{runs:?}");
    let nested = question(&format!(
        "<all-paths><globally><exists-path><finally>{fireable}</finally></exists-path></globally></all-paths>"
    ));
    assert!(matches!(nested, Ok(Question::Branching { .. })), "{nested:?}");
    for (formula, why) in [
        (
            "<exists-path><finally><is-fireable><transition>T</transition></is-fireable></finally></exists-path>",
            "no transition `T`",
        ),
        ("<place-bound><place>x</place></place-bound>", "there is no place `x`"),
        ("<maximum/>", "`maximum` is not expected here"),
    ] {
        let question = question(formula).unwrap();
        assert!(matches!(&question, Question::Declined(said) if said.contains(why)), "{formula}: {question:?}");
    }
}

/// Counts of a net with a place `p` that has a token, a transition `t` and a place `q`.
fn small(kind: &str, arcs: &str, more: &str) -> Result<Counted, String> {
    let text = format!(
        "<pnml xmlns:x=\"urn:x\"><net id=\"n\" {kind}>{}<place id=\"q\"/><place id=\"r\"/><transition id=\"t\"/>{arcs}{more}</net></pnml>",
        place("p", 1)
    );
    counted_of(&text)
}

fn counted_of(text: &str) -> Result<Counted, String> {
    let nets = Nets::read(source(text), Encoding::FIRST).map_err(|error| error.to_string())?;
    Ok(counted(&nets, 100).unwrap())
}

const ARCS: &str = "<arc id=\"a\" source=\"p\" target=\"t\"/><arc id=\"b\" source=\"t\" target=\"q\"/>";

#[test]
fn names_of_other_namespaces_are_not_those_of_pnml() {
    let plain = small("type=\"ptnet\"", ARCS, "").unwrap();
    assert_eq!((plain.states, plain.firings, plain.deadlocks), (2, 1, 1));
    // If the foreign attribute counted, the arc would take from `q`, which has no token, or put back into `p`.
    for arcs in [
        ARCS.replace("source=\"p\"", "x:source=\"q\" source=\"p\""),
        ARCS.replace("source=\"p\"", "source=\"p\" x:source=\"q\""),
        ARCS.replace("target=\"q\"", "x:target=\"p\" target=\"q\""),
        ARCS.replace("id=\"a\"", "x:type=\"inhibitor\" id=\"a\""),
    ] {
        assert_eq!(small("type=\"ptnet\"", &arcs, ""), Ok(small("type=\"ptnet\"", ARCS, "").unwrap()), "{arcs}");
    }
    assert_eq!(small("x:type=\"PetriNet\" type=\"ptnet\"", ARCS, "").as_ref(), Ok(&plain));
    let inhibitor = ARCS.replace("id=\"a\"", "x:type=\"normal\" type=\"inhibitor\" id=\"a\"");
    assert!(small("type=\"ptnet\"", &inhibitor, "").unwrap_err().contains("an arc of the kind `inhibitor`"));
    assert!(small("x:type=\"ptnet\"", ARCS, "").unwrap_err().contains("a net without a type"));
    // Elements of other namespaces may mean anything.
    for more in
        ["<x:place id=\"s\"/>", "<x:name/>", "<place id=\"s\"><x:initialMarking><text>1</text></x:initialMarking></place>"]
    {
        assert!(small("type=\"ptnet\"", ARCS, more).unwrap_err().contains("of the namespace `urn:x`"), "{more}");
    }
    let marking = "<place id=\"s\"><initialMarking><x:text>7</x:text><text>1</text></initialMarking></place>";
    assert_eq!(small("type=\"ptnet\"", ARCS, marking).unwrap().max_tokens, 2);
    let marking = "<place id=\"s\"><initialMarking><text>7</text><text>1</text></initialMarking></place>";
    assert!(small("type=\"ptnet\"", ARCS, marking).unwrap_err().contains("a second text"));
}

#[test]
fn names_of_other_namespaces_are_not_those_of_properties() {
    let nets = read(&page(&[place("p", 1), transition("t"), arc("p", "t", 1)].concat()));
    let property = |id: &str, formula: &str| {
        let text = format!(
            "<property-set xmlns=\"urn:a\" xmlns:x=\"urn:x\"><property>{id}<formula>{formula}</formula></property></property-set>"
        );
        properties::read(&source(&text), &nets.pnml.names)
    };
    let bound = "<place-bound><place>p</place></place-bound>";
    for id in ["<x:id>other</x:id><id>own</id>", "<id>own</id><x:id>other</x:id>"] {
        let read = property(id, bound);
        assert_eq!(read.map(|all| all[0].name.clone()).map_err(|error| error.to_string()), Ok("own".into()), "{id}");
    }
}

#[test]
fn nets_of_other_tools_are_read() {
    for kind in [
        "ptnet",
        "P/T net",
        "http://www.informatik.hu-berlin.de/top/pntd/ptNetb",
        "http://www.yasper.org/specs/epnml-1.1",
        "http://www.pnml.org/version-2009/grammar/pnmlcoremodel",
    ] {
        let counted = small(&format!("type=\"{kind}\""), ARCS, "").unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!((counted.states, counted.firings, counted.deadlocks), (2, 1, 1), "{kind}");
    }
    for more in [
        "<finalmarkings><marking><place idref=\"q\"><text>1</text></place></marking></finalmarkings>",
        "<place id=\"s\"><initialMarking><text></text></initialMarking></place>",
        "<place id=\"s\"><initialMarking/></place>",
        "<place id=\"s\"><initialMarking><value>Default,0</value></initialMarking><capacity><value>0</value></capacity></place>",
        "<token id=\"Default\" enabled=\"true\"/><labels x=\"1\" text=\"note\"/>",
    ] {
        let counted = small("type=\"ptnet\"", ARCS, more).unwrap_or_else(|error| panic!("{more}: {error}"));
        assert_eq!((counted.states, counted.firings, counted.deadlocks, counted.max_tokens), (2, 1, 1, 1), "{more}");
    }
    let empty = ARCS.replace("target=\"q\"/>", "target=\"q\"><inscription><text> </text></inscription></arc>");
    assert_eq!(small("type=\"ptnet\"", &empty, "").unwrap().max_in_place, 1);
    let pipe = ARCS.replace(
        "target=\"q\"/>",
        "target=\"q\"><inscription><value>Default,3</value></inscription><type value=\"normal\"/></arc>",
    );
    assert_eq!(small("type=\"P/T net\"", &pipe, "").unwrap().max_in_place, 3);
    for (more, why) in [
        ("<place id=\"s\"><capacity><value>2</value></capacity></place>", "a capacity"),
        ("<place id=\"s\"><initialMarking><value>Red,2</value></initialMarking></place>", "is not a number of tokens"),
        ("<transition id=\"u\"><timed><value>true</value></timed></transition>", "immediate transitions"),
        ("<transition id=\"u\"><priority><value>2</value></priority></transition>", "priorities"),
    ] {
        let error = small("type=\"P/T net\"", ARCS, more).unwrap_err();
        assert!(error.contains(why), "{more}: {error}");
    }
}

#[test]
fn a_property_that_cannot_be_read_has_no_answer_and_the_others_have() {
    let nets = read(&page(&[place("p", 1), transition("t"), arc("p", "t", 1)].concat()));
    let tokens = "<tokens-count><place>p</place></tokens-count><integer-constant>1</integer-constant>";
    let all = |formulas: &[&str]| {
        let properties = formulas.iter().enumerate();
        let properties: String =
            properties.map(|(at, formula)| format!("<property><id>a-{at}</id><formula>{formula}</formula></property>")).collect();
        properties::read(&source(&format!("<property-set>{properties}</property-set>")), &nets.pnml.names)
    };
    let good = format!("<exists-path><finally><integer-le>{tokens}</integer-le></finally></exists-path>");
    let bad = "<exists-path><finally><integer-max/></finally></exists-path>";
    let read = all(&[bad, &good]).map_err(|error| error.to_string()).unwrap();
    assert!(matches!(&read[0].question, Question::Declined(why) if why.contains("integer-max")), "{:?}", read[0]);
    assert!(matches!(read[1].question, Question::Reach { if_reached: true, .. }), "{:?}", read[1]);
    // Compare `p`, which has one token, with 0, 1 and 2 by each operator.
    for (operator, holds) in [
        ("integer-le", [false, true, true]),
        ("integer-lt", [false, false, true]),
        ("integer-ge", [true, true, false]),
        ("integer-gt", [true, false, false]),
        ("integer-eq", [false, true, false]),
        ("integer-ne", [true, false, true]),
    ] {
        for (number, holds) in holds.into_iter().enumerate() {
            let formula = format!("<{operator}>{}</{operator}>", tokens.replace(">1<", &format!(">{number}<")));
            let read = all(&[&formula]).map_err(|error| error.to_string()).unwrap();
            let Question::Initial(condition) = &read[0].question else { panic!("{operator}: {:?}", read[0]) };
            assert_eq!(truth(condition), holds, "1 {operator} {number}: {condition:?}");
        }
    }
    // CTL paths end in a deadlock; LTL runs stay there for ever.
    let dead = self::read(&page(&[place("p", 0), transition("t"), arc("p", "t", 1)].concat()));
    for (quantifier, operator, differs) in [
        ("exists-path", "next", true),
        ("all-paths", "next", true),
        ("exists-path", "globally", false),
        ("all-paths", "finally", false),
    ] {
        let fireable = "<is-fireable><transition>t</transition></is-fireable>";
        let formula = format!("<{quantifier}><{operator}>{fireable}</{operator}></{quantifier}>");
        let text = format!("<property-set><property><id>a</id><formula>{formula}</formula></property></property-set>");
        for (nets, is_declined) in [(&nets, false), (&dead, differs)] {
            let read = properties::read(&source(&text), &nets.pnml.names).map_err(|error| error.to_string()).unwrap();
            // An id that names an examination of CTL says which of the two it is.
            let of_ctl = properties::read(&source(&text.replace("<id>a<", "<id>a-CTLFireability-0<")), &nets.pnml.names);
            assert!(
                matches!(of_ctl.map_err(|error| error.to_string()).unwrap()[0].question, Question::Branching { .. }),
                "{formula}"
            );
            let declined = matches!(&read[0].question, Question::Declined(why) if why.contains("deadlock"));
            assert_eq!(declined, is_declined, "{:?}", read[0]);
        }
    }
    for id in ["a\nFORMULA b TRUE", "a b", "a\u{85}b"] {
        let text = format!(
            "<property-set><property><id>{id}</id><formula><place-bound><place>p</place></place-bound></formula></property></property-set>"
        );
        let name = properties::read(&source(&text), &nets.pnml.names).map_err(|error| error.to_string()).unwrap().remove(0).name;
        assert!(!name.contains(|character: char| character.is_control() || character.is_whitespace()), "{name:?}");
    }
}

/// Whether a condition holds for one token in each place.
fn truth(condition: &super::marking::Condition) -> bool {
    use super::marking::{Amount, Condition};
    let amount = |amount: &Amount| match amount {
        Amount::Constant(number) => *number,
        Amount::Tokens(places) => places.len() as u64,
    };
    match condition {
        Condition::Constant(truth) => *truth,
        Condition::Not(inner) => !truth(inner),
        Condition::And(all) => all.iter().all(truth),
        Condition::Or(all) => all.iter().any(truth),
        Condition::AtMost(amounts) => amount(&amounts[0]) <= amount(&amounts[1]),
        other => panic!("{other:?}"),
    }
}
