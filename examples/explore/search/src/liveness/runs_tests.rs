//! Compares verdicts of formulas over states in memory with verdicts of explorations of the products.
//!
//! Keeps these promises of `examples/explore/docs/nets.md`:
//!
//! - Formulas of LTL that are answered over the markings of one exploration have the verdicts of explorations of their products.
//!   Of a part of the markings, a verdict is given only if no further marking can change it (also
//!   `examples/explore/tests/explore/nets/runs.rs`).

use super::check::{Question, Verdict};
use super::runs::{Runs, Violating};
use super::tests::check_with;
use crate::exploration::{End, Explorer, Limits};
use crate::successors::Interpreted;
use crate::threads::Threads;
use proptest::prelude::*;
use proptest::sample::select;
use warpset::{Bucket, Device, Tree, VectorTable};
use warpset_model::checks::Checks;
use warpset_model::interpreter::Interpreter;
use warpset_model::ir::{Expression, Source};
use warpset_model::ltl::formula::Formula;
use warpset_model::ltl::property::set_conditions;
use warpset_model::ltl::translate::translate;
use warpset_model::net::Nets;
use warpset_model::net::encoding::Encoding;
use warpset_model::net::marking::{Amount, Check, Condition};
use warpset_random_models::net::net;
use warpset_testing::sizes::sized;

/// Maximum number of states of a net, and of a product.
const MOST: u64 = 500;

fn formula() -> impl Strategy<Value = Formula> {
    let leaf = prop_oneof![8 => (0usize..4).prop_map(Formula::Proposition), 1 => any::<bool>().prop_map(Formula::Constant)];
    leaf.prop_recursive(4, 12, 2, |inner| {
        let two = || (inner.clone(), inner.clone());
        prop_oneof![
            1 => inner.clone().prop_map(Formula::negated),
            2 => inner.clone().prop_map(Formula::next),
            3 => inner.clone().prop_map(Formula::finally),
            3 => inner.clone().prop_map(Formula::globally),
            2 => two().prop_map(|(one, other)| one.until(other)),
            1 => two().prop_map(|(one, other)| one.and(other)),
            1 => two().prop_map(|(one, other)| one.or(other)),
        ]
    })
}

/// Conditions on a net of any size.
fn conditions(nets: &Nets, numbers: [usize; 4]) -> Vec<Condition> {
    let (places, transitions) = (nets.pnml.places.len(), nets.pnml.transitions.len());
    let [one, other, some, all] = numbers;
    let tokens = |at: usize| Amount::Tokens(vec![at % places]);
    vec![
        Condition::AtMost(Box::new([Amount::Constant(1), tokens(one)])),
        Condition::AtMost(Box::new([tokens(other), tokens(one + 1)])),
        Condition::Fireable(vec![some % transitions]),
        Condition::And(vec![
            Condition::Deadlock.negated(),
            Condition::Fireable(vec![all % transitions, some % transitions]).negated(),
        ]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: sized(1500, 250, 150), ..ProptestConfig::default() })]

    #[test]
    fn formulas_over_states_in_memory_have_the_verdicts_of_products(
        text in net(),
        formulas in proptest::collection::vec(formula(), 1..5),
        numbers in [0usize..9, 0usize..9, 0usize..9, 0usize..9],
        part in select(vec![1u64, 2, 4, 16]),
    ) {
        let mut nets = Nets::read(Source { name: "net".into(), text }, Encoding { bits: 8, believes_units: false }).unwrap();
        let conditions = conditions(&nets, numbers);
        let net = nets.model.net.clone().unwrap();
        let checks: Vec<Check> = conditions.iter().map(|condition| condition.check(&net, &nets.model.layout)).collect();
        let expressions: Vec<Expression> = conditions.iter().map(|condition| condition.expression(&net).unwrap()).collect();
        let none = Checks::default();
        let all = Limits { states: MOST, ..Limits::NONE };
        let load = |model: &warpset_model::ir::Model, limits: Limits| {
            let source = Interpreted::new(Interpreter::new(model), &none);
            let table = VectorTable::<Bucket>::builder(model.layout.words).capacity(64).build(&Device::cpu_with_threads(2)).unwrap();
            let exploration = Threads::new(&table, &source, model.initial_state()).explore(limits, &|_| true).unwrap();
            (exploration.end, Runs::load(&table, &source, &checks, Limits::NONE).unwrap())
        };
        let (end, whole) = load(&nets.model, all);
        let (_, some) = load(&nets.model, Limits { states: part, levels: part, ..all });
        for formula in &formulas {
            let Ok(automaton) = translate(&formula.clone().negated()) else { continue };
            let violating = Violating { automaton, conditions: vec![0, 1, 2, 3] };
            let [in_whole, in_part] = [&whole, &some].map(|runs| runs.is_violated(&violating, Limits::NONE));
            prop_assert!(end != End::Complete || in_whole.is_some());
            set_conditions(&mut nets.model, formula, &expressions).unwrap();
            let model = &nets.model;
            let question = Question::of(model, "test".into(), false);
            let checks = question.checks(model.property.as_ref().unwrap());
            let source = Interpreted::new(Interpreter::new(model), &checks);
            let (exploration, conclusion) = check_with::<Tree, _>(model, &question, &source, Limits { states: 20 * MOST, ..all }, 64);
            nets.model.remove_property();
            let expected = match conclusion.verdict {
                Verdict::Violated => true,
                Verdict::Holds => false,
                Verdict::Unknown => continue,
            };
            prop_assert!(in_whole.is_none_or(|found| found == expected), "{:?} {:?}", formula, exploration.end);
            prop_assert!(in_part.is_none_or(|found| found == expected), "{:?} of a part", formula);
        }
    }
}
