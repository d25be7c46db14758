//! Tests the languages of translated formulas, by the semantics of formulas on words and against other translators.
//!
//! `WARPSET_LTL_FORMULAS` sets the number of random formulas that are compared with `spin -f` and `lbt`, where these are
//! installed.

use super::buchi::{Buchi, Cube, Label};
use super::formula::{Formula, Names, parse};
use super::hoa::{self, Named};
use super::translate::translate;
use crate::ir::Source;
use crate::ir::property::{AutomatonClass, Move, Property};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::HashMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use warpset_support::components::components;

const PROPOSITIONS: usize = 3;

fn formulas(has_next: bool) -> impl Strategy<Value = Formula> {
    let leaf = prop_oneof![
        8 => (0..PROPOSITIONS).prop_map(Formula::Proposition),
        1 => any::<bool>().prop_map(Formula::Constant),
    ];
    leaf.prop_recursive(4, 10, 2, move |inner| {
        let pair = || (inner.clone(), inner.clone());
        prop_oneof![
            2 => inner.clone().prop_map(Formula::negated),
            2 => pair().prop_map(|(a, b)| a.and(b)),
            2 => pair().prop_map(|(a, b)| a.or(b)),
            2 => inner.clone().prop_map(move |a| if has_next { a.next() } else { a.finally().globally() }),
            3 => pair().prop_map(|(a, b)| a.until(b)),
            3 => pair().prop_map(|(a, b)| a.release(b)),
            2 => inner.clone().prop_map(Formula::finally),
            2 => inner.clone().prop_map(Formula::globally),
        ]
    })
}

/// An infinite word: after its last letter it continues at `back`. A letter has a bit for each proposition that is true.
#[derive(Clone, Debug)]
struct Word {
    letters: Vec<u64>,
    back: usize,
}

impl Word {
    fn after(&self, at: usize) -> usize {
        if at + 1 < self.letters.len() { at + 1 } else { self.back }
    }
}

fn words() -> impl Strategy<Value = Word> {
    let letters = proptest::collection::vec(0..1u64 << PROPOSITIONS, 1..8);
    (letters, any::<prop::sample::Index>()).prop_map(|(letters, back)| Word { back: back.index(letters.len()), letters })
}

/// The positions of the word where a formula holds, computed from the semantics of its operators as least and greatest fixpoints.
fn holds(formula: &Formula, word: &Word) -> Vec<bool> {
    let count = word.letters.len();
    let both = |of: &[Formula; 2]| (holds(&of[0], word), holds(&of[1], word));
    match formula {
        Formula::Constant(truth) => vec![*truth; count],
        Formula::Proposition(number) => word.letters.iter().map(|letter| letter >> number & 1 != 0).collect(),
        Formula::Not(of) => holds(of, word).iter().map(|truth| !truth).collect(),
        Formula::And(of) => std::iter::zip(both(of).0, both(of).1).map(|(a, b)| a && b).collect(),
        Formula::Or(of) => std::iter::zip(both(of).0, both(of).1).map(|(a, b)| a || b).collect(),
        Formula::Next(of) => {
            let of = holds(of, word);
            (0..count).map(|at| of[word.after(at)]).collect()
        }
        Formula::Until(of) | Formula::Release(of) => {
            let (left, right) = both(of);
            let is_until = matches!(formula, Formula::Until(_));
            let mut truths = vec![!is_until; count];
            for _ in 0..=count {
                for at in (0..count).rev() {
                    let next = truths[word.after(at)];
                    truths[at] = if is_until { right[at] || left[at] && next } else { right[at] && (left[at] || next) };
                }
            }
            truths
        }
    }
}

/// An automaton of another program: each of `sets` must be visited infinitely often.
struct Other {
    initial: Vec<usize>,
    edges: Vec<Vec<(Vec<Cube>, usize)>>,
    sets: Vec<Vec<bool>>,
}

impl Other {
    fn of(buchi: &Buchi) -> Self {
        let edges = buchi.edges.iter().map(|edges| edges.iter().map(|(label, to)| (label.0.clone(), *to)).collect());
        Self { initial: vec![buchi.initial], edges: edges.collect(), sets: vec![buchi.accepting.clone()] }
    }

    /// The automaton that accepts only this word.
    fn of_word(word: &Word) -> Self {
        let all = (1 << PROPOSITIONS) - 1;
        let edges = word.letters.iter().enumerate();
        let edges = edges.map(|(at, letter)| vec![(vec![Cube { positive: *letter, negative: all & !letter }], word.after(at))]);
        Self { initial: vec![0], edges: edges.collect(), sets: Vec::new() }
    }

    /// Whether both automata accept a common word.
    fn meets(&self, other: &Self) -> bool {
        let mut states: Vec<(usize, usize)> =
            self.initial.iter().flat_map(|a| other.initial.iter().map(move |b| (*a, *b))).collect();
        let mut numbers: HashMap<(usize, usize), u32> =
            states.iter().enumerate().map(|(at, state)| (*state, at as u32)).collect();
        let mut targets: Vec<Vec<u32>> = Vec::new();
        while targets.len() < states.len() {
            let (a, b) = states[targets.len()];
            let mut successors = Vec::new();
            for (label, to) in &self.edges[a] {
                for (other_label, other_to) in &other.edges[b] {
                    if label.iter().any(|one| other_label.iter().any(|two| one.and(*two).is_some())) {
                        let next = states.len() as u32;
                        let number = *numbers.entry((*to, *other_to)).or_insert(next);
                        if number == next {
                            states.push((*to, *other_to));
                        }
                        successors.push(number);
                    }
                }
            }
            targets.push(successors);
        }
        let component = components(targets.len(), |at| &targets[at]);
        let mut met = vec![(false, vec![false; self.sets.len() + other.sets.len()]); targets.len()];
        for (state, successors) in targets.iter().enumerate() {
            let (has_cycle, sets) = &mut met[component[state] as usize];
            *has_cycle |= successors.iter().any(|next| component[*next as usize] == component[state]);
            let of_self = self.sets.iter().map(|set| set[states[state].0]);
            let of_both = of_self.chain(other.sets.iter().map(|set| set[states[state].1]));
            of_both.enumerate().for_each(|(at, is_in)| sets[at] |= is_in);
        }
        met.iter().any(|(has_cycle, sets)| *has_cycle && sets.iter().all(|met| *met))
    }
}

fn read(text: &str) -> Formula {
    let names = Names { is_variable: &|_| false, is_process: &|_| false };
    let (formula, propositions) = parse(&Source { name: "test".into(), text: text.into() }, &names).unwrap();
    formula.with(&|at| match &*propositions[at].words {
        "true" => Formula::Constant(true),
        "false" => Formula::Constant(false),
        _ => Formula::Proposition(at),
    })
}

/// The class of the property in a model with this automaton.
fn kind(buchi: &Buchi) -> AutomatonClass {
    let moves = buchi.edges.iter().enumerate().flat_map(|(from, edges)| edges.iter().map(move |(label, to)| (from, label, *to)));
    let guard = |label: &Label| (!label.is_true()).then_some(crate::ir::Expression::Variable(0));
    let moves = moves.map(|(from, label, to)| Move { from, to, guard: guard(label), span: Default::default() });
    Property::new(0, buchi.accepting.clone(), moves.collect()).kind(buchi.initial)
}

/// Sizes equal those of good translators, and classes are as special as possible.
#[test]
fn usual_formulas_have_small_automata() {
    for (text, states, expected) in [
        ("G !a", 1, AutomatonClass::Weak),
        ("F a", 2, AutomatonClass::Terminal),
        ("a U b", 2, AutomatonClass::Terminal),
        ("F G !a", 2, AutomatonClass::Weak),
        ("G F a", 2, AutomatonClass::General),
        ("F (a && G !b)", 2, AutomatonClass::Weak),
        ("!(G (a -> F b))", 2, AutomatonClass::Weak),
        ("G (a -> F b)", 2, AutomatonClass::General),
        ("G F a && G F b", 3, AutomatonClass::General),
        ("!(G F a -> G F b)", 3, AutomatonClass::General),
        ("F a && F b", 4, AutomatonClass::Terminal),
        ("a R b", 2, AutomatonClass::Weak),
        ("a W b", 2, AutomatonClass::Weak),
        ("X X a", 4, AutomatonClass::Terminal),
        ("true", 1, AutomatonClass::Terminal),
        ("false", 1, AutomatonClass::Terminal),
        ("a && !a U b", 2, AutomatonClass::Terminal),
        ("!((a U b) -> ((c U d) || G c))", 6, AutomatonClass::Terminal),
    ] {
        let buchi = translate(&read(text)).unwrap();
        assert!(buchi.accepting.len() <= states, "{text} has {} states: {buchi:?}", buchi.accepting.len());
        assert_eq!(kind(&buchi), expected, "{text}: {buchi:?}");
    }
}

#[test]
fn what_is_too_large_is_refused() {
    let many = (0..70).map(|number| format!("F p{number}")).collect::<Vec<_>>();
    let error = translate(&read(&many[..20].join(" && "))).unwrap_err().to_string();
    assert!(error.contains("20000"), "{error}");
    // Nested one in the other, so that the automaton has few states.
    let chain = many.iter().rev().skip(3).fold("p0".to_string(), |inner, _| format!("F (p1 && {inner})"));
    assert!(translate(&read(&chain)).is_err_and(|error| error.to_string().contains("64 until")));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn automata_accept_the_words_that_satisfy(formula in formulas(true), words in proptest::collection::vec(words(), 30)) {
        let buchi = translate(&formula).unwrap();
        let other = Other::of(&buchi);
        for word in words {
            prop_assert_eq!(other.meets(&Other::of_word(&word)), holds(&formula, &word)[0], "{:?}\n{:?}", word, buchi);
        }
        // Every word satisfies either the formula or its negation.
        let negated = translate(&formula.clone().negated()).unwrap();
        prop_assert!(!other.meets(&Other::of(&negated)));
        // Reading the written automaton gives it back.
        let states = (0..buchi.accepting.len()).map(|at| format!("a \"{at}\\")).collect();
        let propositions = (0..PROPOSITIONS).map(|at| format!("x[{at}] == \"\\")).collect();
        let named = Named { buchi, propositions, spans: Vec::new(), states };
        let text = named.hoa("test");
        let again = hoa::read(&Source { name: "test".into(), text: text.clone() });
        let again = again.unwrap_or_else(|error| panic!("{error:?}\n{text}"));
        prop_assert_eq!((again.buchi, again.propositions, again.states), (named.buchi, named.propositions, named.states));
    }
}

/// Standard output of a program with this input; `None` if it takes too long, fails or is not installed.
fn output(program: &str, arguments: &[&str], input: &str) -> Option<String> {
    let mut command = Command::new(program);
    // Output goes to a file, because a full pipe would block the program.
    let file = tempfile::tempfile().unwrap();
    let to = file.try_clone().unwrap();
    let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(to).stderr(Stdio::null()).spawn().ok()?;
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let end = Instant::now() + Duration::from_secs(2);
    loop {
        match child.try_wait().unwrap() {
            Some(status) if status.success() => {
                use std::io::{Read, Seek};
                let (mut file, mut text) = (file, String::new());
                file.rewind().unwrap();
                file.read_to_string(&mut text).unwrap();
                return Some(text);
            }
            Some(_) => return None,
            None if Instant::now() > end => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
            None => std::thread::sleep(Duration::from_micros(200)),
        }
    }
}

/// The formula in the syntax of `spin -f`.
fn of_spin(formula: &Formula) -> String {
    let both = |of: &[Formula; 2], sign: &str| format!("({} {sign} {})", of_spin(&of[0]), of_spin(&of[1]));
    match formula {
        Formula::Constant(truth) => truth.to_string(),
        Formula::Proposition(number) => format!("p{number}"),
        Formula::Not(of) => format!("(! {})", of_spin(of)),
        Formula::And(of) => both(of, "&&"),
        Formula::Or(of) => both(of, "||"),
        Formula::Next(_) => unreachable!("spin is asked without X"),
        Formula::Until(of) => both(of, "U"),
        Formula::Release(of) => both(of, "V"),
    }
}

/// The formula in the syntax of `lbt`.
fn of_lbt(formula: &Formula) -> String {
    let both = |of: &[Formula; 2], sign: &str| format!("{sign} {} {}", of_lbt(&of[0]), of_lbt(&of[1]));
    match formula {
        Formula::Constant(truth) => if *truth { "t" } else { "f" }.into(),
        Formula::Proposition(number) => format!("p{number}"),
        Formula::Not(of) => format!("! {}", of_lbt(of)),
        Formula::And(of) => both(of, "&"),
        Formula::Or(of) => both(of, "|"),
        Formula::Next(of) => format!("X {}", of_lbt(of)),
        Formula::Until(of) => both(of, "U"),
        Formula::Release(of) => both(of, "V"),
    }
}

/// The cubes of a condition without temporal operators, or of its negation.
fn cubes(formula: &Formula, truth: bool) -> Vec<Cube> {
    match formula {
        Formula::Constant(value) if *value == truth => vec![Cube::TRUE],
        Formula::Constant(_) => Vec::new(),
        Formula::Proposition(number) => vec![Cube::of(*number, truth)],
        Formula::Not(of) => cubes(of, !truth),
        Formula::And(of) | Formula::Or(of) => {
            let (a, b) = (cubes(&of[0], truth), cubes(&of[1], truth));
            if matches!(formula, Formula::And(_)) == truth {
                a.iter().flat_map(|a| b.iter().filter_map(|b| a.and(*b))).collect()
            } else {
                [a, b].concat()
            }
        }
        _ => unreachable!("a condition"),
    }
}

/// The cubes of a condition on p0, p1, ...
fn condition(text: &str) -> Vec<Cube> {
    let names = Names { is_variable: &|_| false, is_process: &|_| false };
    let (formula, propositions) = parse(&Source { name: "test".into(), text: text.into() }, &names).unwrap();
    let number = |name: &str| match name.strip_prefix('p') {
        Some(number) => Formula::Proposition(number.parse().unwrap()),
        None => Formula::Constant(name == "1" || name == "true"),
    };
    cubes(&formula.with(&|at| number(&propositions[at].words)), true)
}

/// Reads a never claim. Its states have one or two labels `NAME:`, then lines such as `:: condition -> goto NAME`, or `skip`. A
/// state is accepting if one of its labels begins with `accept`. An assertion that fails if the condition holds leads to
/// `accept_all`.
fn read_claim(text: &str) -> Option<Other> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut accepting: Vec<bool> = Vec::new();
    for (at, name) in lines.iter().enumerate().filter_map(|(at, line)| Some((at, line.strip_suffix(':')?))) {
        if !lines[at - 1].ends_with(':') {
            accepting.push(false);
        }
        let state = accepting.len() - 1;
        accepting[state] |= name.starts_with("accept");
        numbers.insert(name, state);
    }
    let mut edges: Vec<Vec<(Vec<Cube>, usize)>> = vec![Vec::new(); accepting.len()];
    let mut state = 0;
    for line in lines {
        if let Some(name) = line.strip_suffix(':') {
            state = numbers[name];
        } else if line == "skip" {
            edges[state].push((vec![Cube::TRUE], state));
        } else if let Some(edge) = line.strip_prefix("::") {
            let edge = edge.trim().trim_start_matches("atomic {");
            let (label, to) = match edge.split_once("-> assert") {
                Some((label, _)) => (label, "accept_all"),
                None => edge.split_once("-> goto ")?,
            };
            edges[state].push((condition(label), *numbers.get(to.trim().trim_end_matches(';'))?));
        }
    }
    let initial = vec![*numbers.get("T0_init").or_else(|| numbers.get("accept_init"))?];
    Some(Other { initial, edges, sets: vec![accepting] })
}

/// Reads a formula in prefix notation.
fn read_prefix<'a>(words: &mut impl Iterator<Item = &'a str>) -> Formula {
    match words.next().unwrap() {
        "t" => Formula::Constant(true),
        "f" => Formula::Constant(false),
        "!" => read_prefix(words).negated(),
        "&" => {
            let left = read_prefix(words);
            left.and(read_prefix(words))
        }
        "|" => {
            let left = read_prefix(words);
            left.or(read_prefix(words))
        }
        name => Formula::Proposition(name[1..].parse().unwrap()),
    }
}

/// Reads the format of `lbt`: `states sets`, then for each state its number, whether it is initial, its sets and -1; then its
/// transitions, and -1.
fn read_lbt(text: &str) -> Option<Other> {
    let mut lines = text.lines();
    let first: Vec<usize> = lines.next()?.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let (states, sets) = (first[0], first[1]);
    let mut other = Other { initial: Vec::new(), edges: vec![Vec::new(); states], sets: vec![vec![false; states]; sets] };
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut number = |name: &str| {
        let next = numbers.len();
        *numbers.entry(name.into()).or_insert(next)
    };
    while let Some(line) = lines.next().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let state = number(words[0]);
        if words[1] == "1" {
            other.initial.push(state);
        }
        for set in words[2..].iter().take_while(|word| **word != "-1") {
            other.sets[set.parse::<usize>().unwrap()][state] = true;
        }
        for line in lines.by_ref().take_while(|line| line.trim() != "-1") {
            let (to, label) = line.split_once(' ')?;
            let to = number(to);
            other.edges[state].push((cubes(&read_prefix(&mut label.split_whitespace()), true), to));
        }
    }
    Some(other)
}

/// Checks that neither translator accepts a word that the other's automaton of the negation accepts, and that both agree on
/// `words`.
fn compare(formula: &Formula, translator: &dyn Fn(&Formula) -> Option<Other>, words: &[Word]) -> bool {
    let negated = formula.clone().negated();
    let (Some(theirs), Some(their_negation)) = (translator(formula), translator(&negated)) else { return false };
    let ours = translate(formula).unwrap();
    let (ours, our_negation) = (Other::of(&ours), Other::of(&translate(&negated).unwrap()));
    assert!(!ours.meets(&their_negation) && !theirs.meets(&our_negation), "{formula:?}");
    for word in words {
        let word = Other::of_word(word);
        assert_eq!(ours.meets(&word), theirs.meets(&word), "{formula:?}");
    }
    true
}

#[test]
fn languages_are_those_of_other_translators() {
    let wanted = std::env::var("WARPSET_LTL_FORMULAS").ok().map_or(150, |count| count.parse().expect("a number"));
    let spin = |formula: &Formula| read_claim(&output("spin", &["-f", &of_spin(formula)], "")?);
    let lbt = |formula: &Formula| read_lbt(&output("lbt", &[], &format!("{}\n", of_lbt(formula)))?);
    type Translator<'a> = (&'a str, bool, &'a (dyn Fn(&Formula) -> Option<Other> + Sync));
    let translators: [Translator; 2] = [("spin", false, &spin), ("lbt", true, &lbt)];
    for (name, has_next, translator) in translators {
        if translator(&Formula::Proposition(0)).is_none() {
            println!("skipped: {name} is not installed");
            continue;
        }
        let mut runner = TestRunner::deterministic();
        let mut draw = || {
            let formula = formulas(has_next).new_tree(&mut runner).unwrap().current();
            let words: Vec<Word> = (0..10).map(|_| words().new_tree(&mut runner).unwrap().current()).collect();
            (formula, words)
        };
        let (mut compared, mut drawn) = (0, 0);
        while compared < wanted {
            let (formula, words) = draw();
            drawn += 1;
            compared += usize::from(compare(&formula, translator, &words));
            assert!(drawn < 100 + 2 * wanted, "{name} gives no automaton for most of {drawn} formulas");
        }
        println!("{name}: {compared} of {drawn} formulas were compared");
    }
}
