//! Defines the meaning of operators independently of rules: by explicit graphs, composed two at a time. Tests compare the rules
//! with these graphs.

use super::labels;
use super::tests::{Files, aut};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

/// An explicit state space: by state, the labels and targets of its transitions. The initial state is 0.
#[derive(Clone)]
struct LabelledGraph(Vec<Vec<(String, usize)>>);

/// How two graphs move. `Alone`: whether one graph moves alone with a label. `Together`: the labels that result if both move
/// together with two labels.
type Alone<'f> = &'f dyn Fn(&str) -> bool;
type Together<'f> = &'f dyn Fn(&str, &str) -> Vec<String>;

impl LabelledGraph {
    /// Returns the product graph of all reachable pairs of states. This defines the operators independently of rules.
    fn beside(&self, other: &Self, alone: [Alone; 2], together: Together) -> Self {
        let mut pairs = vec![(0, 0)];
        let mut numbers = HashMap::from([((0, 0), 0)]);
        let mut rows = Vec::new();
        while let Some(&(a, b)) = pairs.get(rows.len()) {
            let mut row = Vec::new();
            let mut add = |label: String, pair: (usize, usize)| {
                let number = *numbers.entry(pair).or_insert_with(|| {
                    pairs.push(pair);
                    pairs.len() - 1
                });
                row.push((label, number));
            };
            self.0[a].iter().filter(|(label, _)| alone[0](label)).for_each(|(label, to)| add(label.clone(), (*to, b)));
            other.0[b].iter().filter(|(label, _)| alone[1](label)).for_each(|(label, to)| add(label.clone(), (a, *to)));
            for (one, to_a) in &self.0[a] {
                for (two, to_b) in &other.0[b] {
                    together(one, two).into_iter().for_each(|label| add(label, (*to_a, *to_b)));
                }
            }
            rows.push(row);
        }
        Self(rows)
    }

    fn mapped(&self, f: &dyn Fn(&str) -> Option<String>) -> Self {
        let rows = self.0.iter().map(|row| row.iter().filter_map(|(label, to)| Some((f(label)?, *to))).collect());
        Self(rows.collect())
    }

    /// Returns the number of reachable states, the number of their transitions, and the transitions as (state, label, count) in a
    /// form that does not depend on the numbers of states.
    fn counts(&self) -> (usize, usize, Vec<String>) {
        let mut states = vec![0];
        let mut seen = HashSet::from([0]);
        let (mut at, mut steps, mut labels) = (0, 0, Vec::new());
        while at < states.len() {
            for (label, to) in &self.0[states[at]] {
                steps += 1;
                labels.push(label.clone());
                if seen.insert(*to) {
                    states.push(*to);
                }
            }
            at += 1;
        }
        labels.sort();
        labels.dedup();
        (states.len(), steps, labels)
    }
}

/// Applies an operator to two networks. Returns the text and the graph of the result.
fn composed(
    operator: usize,
    gates: &[&str],
    (left, a): (String, LabelledGraph),
    (right, b): (String, LabelledGraph),
) -> (String, LabelledGraph) {
    let list = gates.join(", ");
    let is_gate = |label: &str| label != "i" && gates.contains(&labels::gate_and_offers(label).0);
    let equal = |one: &str, two: &str| if one == two { vec![one.to_string()] } else { Vec::new() };
    let free = |label: &str| !is_gate(label);
    let hidden = |label: &str| label == "i";
    let never = |_: &str, _: &str| Vec::new();
    let always = |_: &str| true;
    match operator {
        0 => (format!("({left} ||| {right})"), a.beside(&b, [&always, &always], &never)),
        1 => (
            format!("({left} |[{list}]| {right})"),
            a.beside(&b, [&free, &free], &|one, two| if is_gate(one) { equal(one, two) } else { Vec::new() }),
        ),
        2 => (
            format!("({left} || {right})"),
            a.beside(&b, [&hidden, &hidden], &|one, two| if hidden(one) { Vec::new() } else { equal(one, two) }),
        ),
        3 => (
            format!("par {list} -> {left} || {list}, D -> {right} end par"),
            a.beside(&b, [&free, &free], &|one, two| if is_gate(one) { equal(one, two) } else { Vec::new() }),
        ),
        4 => {
            // By gates: `A * B -> C`, `A * _ -> A`, and `D` of either side alone.
            let text = format!("gate par using A * B -> C, A * _ -> A, D * _ -> D, _ * D -> D in {left} || {right} end par");
            let split = labels::gate_and_offers;
            let together = |one: &str, two: &str| {
                let ((gate_a, offers_a), (gate_b, offers_b)) = (split(one), split(two));
                let meet = (gate_a, gate_b) == ("A", "B") && offers_a == offers_b;
                if meet { vec![format!("C{offers_a}")] } else { Vec::new() }
            };
            let of_left = |label: &str| label == "i" || ["A", "D"].contains(&split(label).0);
            let of_right = |label: &str| label == "i" || split(label).0 == "D";
            (text, a.beside(&b, [&of_left, &of_right], &together))
        }
        _ => {
            let text =
                format!("label par using \"A !1\" * \"B !1\" -> A, _ * A -> B, B * B -> \"A !1\" in {left} || {right} end par");
            let together = |one: &str, two: &str| match (one, two) {
                ("A !1", "B !1") => vec!["A".to_string()],
                ("B", "B") => vec!["A !1".to_string()],
                _ => Vec::new(),
            };
            // A label that the right side takes alone gets another name here, so that it differs from the vector's result.
            let b = b.mapped(&|label| Some(if label == "A" { "\u{1}".into() } else { label.into() }));
            let of_right = |label: &str| label == "i" || label == "\u{1}";
            let whole = a.beside(&b, [&hidden, &of_right], &together);
            (text, whole.mapped(&|label| Some(if label == "\u{1}" { "B".into() } else { label.into() })))
        }
    }
}

fn wrapped_in(operator: usize, gate: &str, (text, graph): (String, LabelledGraph)) -> (String, LabelledGraph) {
    let is = |label: &str| label != "i" && labels::gate_and_offers(label).0 == gate;
    let renamed = |label: &str| match labels::gate_and_offers(label) {
        (own, offers) if label != "i" && own == gate => format!("B{offers}"),
        (own, offers) if label != "i" && own == "B" => format!("{gate}{offers}"),
        _ => label.to_string(),
    };
    let hide = |label: &str| Some(if is(label) { "i".to_string() } else { label.to_string() });
    match operator {
        0 => (format!("(hide {gate} in {text} end hide)"), graph.mapped(&hide)),
        1 => (format!("cut {gate} in {text} end cut"), graph.mapped(&|label| (!is(label)).then(|| label.to_string()))),
        2 if gate != "B" => {
            (format!("gate rename {gate} -> B, B -> {gate} in {text} end rename"), graph.mapped(&|label| Some(renamed(label))))
        }
        3 => (
            format!("(hide all but {gate} in {text} end hide)"),
            graph.mapped(&|label| Some(if is(label) { label.to_string() } else { "i".to_string() })),
        ),
        _ => (text, graph),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Networks that are composed by rules and by graphs have equal states, transitions and labels.
    #[test]
    fn rules_are_what_operators_do_to_graphs(
        systems in proptest::collection::vec(proptest::collection::vec((0u32..4, 0usize..8, 0u32..4), 1..9), 2..6),
        operators in proptest::collection::vec((0usize..6, 0usize..4, 0usize..6, 0usize..4), 5),
    ) {
        let names = ["A", "A !1", "B", "B !1", "C", "D", "D !1", "i"];
        let gates = [&["A"][..], &["B", "A"], &["D", "C"], &["A", "B", "C", "D"]];
        let files = Files::new(&[]);
        let mut parts: Vec<(String, LabelledGraph)> = Vec::new();
        for (number, transitions) in systems.iter().enumerate() {
            let transitions: Vec<(u32, &str, u32)> =
                transitions.iter().map(|(from, label, to)| (*from, names[*label], *to)).collect();
            files.write(&format!("s{number}.aut"), &aut(&transitions));
            let mut rows = vec![Vec::new(); 4];
            transitions.iter().for_each(|(from, label, to)| rows[*from as usize].push((label.to_string(), *to as usize)));
            parts.push((format!("s{number}"), LabelledGraph(rows)));
        }
        for (operator, which, unary, gate) in operators {
            if parts.len() > 1 {
                let (one, other) = (parts.remove(0), parts.remove(0));
                let whole = composed(operator, gates[which], one, other);
                parts.push(wrapped_in(unary, ["A", "B", "C", "D"][gate], whole));
            }
        }
        let (text, graph) = parts.remove(0);
        let expected = graph.counts();
        prop_assert_eq!(files.explored(&text), expected, "{}", text);
    }
}
