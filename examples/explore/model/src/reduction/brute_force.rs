//! Compares dependencies and reduced searches with the whole state space of a small model.

use super::dependencies::{Dependencies, describe_test};
use super::stubborn::{Kept, Scratch, Stubborn, Value, evaluate, term_of};
use crate::checks::Checks;
use crate::interpreter::{Interpreter, Scratch as StepScratch, Step};
use crate::ir::expression::Binary;
use crate::ir::{Expression, Model, Span, Unary};
use crate::terms::Term;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use warpset_random::Random;

type State = Vec<u32>;
type Steps = Rc<Vec<(Step, State)>>;

/// The steps of the states that have been visited; `None` for a state with a fault.
struct Space<'m> {
    interpreter: Interpreter<'m>,
    steps: HashMap<State, Option<Steps>>,
}

impl<'m> Space<'m> {
    fn of(model: &'m Model) -> Self {
        Self { interpreter: Interpreter::new(model), steps: HashMap::new() }
    }

    fn steps(&mut self, state: &State) -> Option<Steps> {
        let interpreter = &self.interpreter;
        let find = || {
            let mut steps = Vec::new();
            let visit = |step, successor: &[u32]| steps.push((step, successor.to_vec()));
            interpreter.steps(state, &mut StepScratch::default(), visit).ok()?;
            Some(Rc::new(steps))
        };
        self.steps.entry(state.clone()).or_insert_with(find).clone()
    }
}

/// Checks the claims of the matrices in the first `most` states of a model. If two actions accord, both orders must be possible
/// and lead to the same states. Only an enabler of a test may make it true. An action must be enabled if and only if its tests
/// hold. Returns the number of states that were checked.
///
/// # Errors
///
/// The first wrong claim.
pub fn check(model: &Model, dependencies: &Dependencies, most: usize) -> Result<usize, String> {
    let mut space = Space::of(model);
    let terms: Vec<Option<Term>> = dependencies.tests.iter().map(|test| term_of(test, model)).collect();
    let value = |test: usize, state: &State| evaluate(model, &dependencies.tests[test], terms[test].as_ref(), state);
    let name = |action: usize| dependencies.actions.describe(model, action);
    let mut known = BTreeSet::from([model.initial_state()]);
    let mut waiting = vec![model.initial_state()];
    let mut count = 0;
    while let Some(state) = waiting.pop().filter(|_| count < most) {
        count += 1;
        let Some(steps) = space.steps(&state) else { continue };
        let steps: Vec<(usize, State)> =
            steps.iter().map(|(step, to)| (dependencies.actions.of_step(*step), to.clone())).collect();
        let values: Vec<Value> = (0..terms.len()).map(|test| value(test, &state)).collect();
        for (action, tests) in dependencies.actions.tests.iter().enumerate() {
            let is_enabled = steps.iter().any(|(of, _)| *of == action);
            let (all_hold, one_fails) =
                (tests.iter().all(|test| values[*test] == Value::Holds), tests.iter().any(|test| values[*test] == Value::Fails));
            if is_enabled != all_hold || (is_enabled && one_fails) {
                return Err(format!("{} is enabled: {is_enabled}; its tests hold: {all_hold}", name(action)));
            }
        }
        for (action, successor) in &steps {
            for test in (0..terms.len()).filter(|test| values[*test] == Value::Fails) {
                if !dependencies.enablers[test].contains(*action) && value(test, successor) == Value::Holds {
                    return Err(format!("{} makes true {}", name(*action), describe_test(model, &dependencies.tests[test])));
                }
            }
            for (other, _) in steps.iter().filter(|(other, _)| other != action) {
                if !dependencies.conflicts[*action].contains(*other) {
                    accord(&mut space, dependencies, &steps, (*action, successor), *other)
                        .map_err(|what| format!("{} and {}: {what}", name(*action), name(*other)))?;
                }
            }
            if known.insert(successor.clone()) {
                waiting.push(successor.clone());
            }
        }
    }
    Ok(count)
}

/// Checks that `other` is possible after a step of `action`, and that each of its results is also a result of the opposite order.
fn accord(
    space: &mut Space,
    dependencies: &Dependencies,
    steps: &[(usize, State)],
    (action, between): (usize, &State),
    other: usize,
) -> Result<(), String> {
    let by = |steps: &[(Step, State)], action: usize| -> Vec<State> {
        steps.iter().filter(|(step, _)| dependencies.actions.of_step(*step) == action).map(|(_, to)| to.clone()).collect()
    };
    let Some(then) = space.steps(between) else { return Ok(()) };
    let ends = by(&then, other);
    if ends.is_empty() {
        return Err("the first disables the second".into());
    }
    let mut others = Vec::new();
    for (_, between) in steps.iter().filter(|(of, _)| *of == other) {
        let Some(then) = space.steps(between) else { return Ok(()) };
        others.extend(by(&then, action));
    }
    match ends.iter().all(|end| others.contains(end)) {
        true => Ok(()),
        false => Err("the order matters".into()),
    }
}

/// Results of a search.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub deadlocks: BTreeSet<State>,
    /// Level of the first deadlock, and level of the first state that violates a condition.
    pub first_deadlock: Option<usize>,
    pub first_violation: Option<usize>,
    /// States, level by level.
    pub states: Vec<State>,
}

/// Searches breadth-first with the steps that `stubborn` chooses, or with all steps. `None` if the search finds a fault or more
/// than `most` states.
pub fn search(model: &Model, checks: &Checks, stubborn: Option<&Stubborn>, most: usize) -> Option<Answer> {
    let interpreter = Interpreter::new(model);
    let conditions: Vec<Term> = checks.conditions.iter().map(|condition| Term::of(&condition.must_hold, model)).collect();
    let (mut of_steps, mut scratch, mut answer) = (StepScratch::default(), Scratch::default(), Answer::default());
    let mut known = BTreeSet::from([model.initial_state()]);
    let mut level = vec![model.initial_state()];
    for depth in 0.. {
        let mut next = Vec::new();
        for state in &level {
            let mut violates = false;
            for condition in &conditions {
                violates |= condition.value(model, state).ok()? == 0;
            }
            if violates {
                answer.first_violation.get_or_insert(depth);
            }
            let (mut steps, mut successors) = (Vec::new(), Vec::new());
            let visit = |step, successor: &[u32]| {
                steps.push(step);
                successors.push(successor.to_vec());
            };
            interpreter.steps(state, &mut of_steps, visit).ok()?;
            if steps.is_empty() {
                answer.deadlocks.insert(state.clone());
                answer.first_deadlock.get_or_insert(depth);
            }
            let chosen = stubborn.map(|stubborn| stubborn.choose(state, &steps, &mut scratch));
            for (step, successor) in steps.iter().zip(successors) {
                let is_taken = match (stubborn, chosen) {
                    (Some(stubborn), Some(chosen)) => chosen.contains(stubborn.dependencies.actions.of_step(*step)),
                    _ => true,
                };
                if is_taken && known.insert(successor.clone()) {
                    next.push(successor);
                }
            }
        }
        if known.len() > most {
            return None;
        }
        answer.states.append(&mut level);
        if next.is_empty() {
            break;
        }
        level = next;
    }
    Some(answer)
}

/// Compares reduced searches with the whole search. Returns the number of states of the whole search, and of the search that is
/// reduced for deadlocks. `Ok(None)` if the whole search finds more than `most` states or a fault.
///
/// # Errors
///
/// A reduced search has another answer than the whole one.
pub fn compare(model: &Model, checks: &Checks, most: usize) -> Result<Option<(usize, usize)>, String> {
    let Some(whole) = search(model, checks, None, most) else { return Ok(None) };
    let mut left = whole.states.len();
    for (deadlocks, goals) in [(true, false), (false, true), (true, true)] {
        if goals && checks.conditions.is_empty() {
            continue;
        }
        let kept = Kept { deadlocks, goals };
        let stubborn = Stubborn::of(model, checks, kept).map_err(|error| error.to_string())?;
        let Some(reduced) = search(model, checks, Some(&stubborn), most) else {
            return Err(format!("{kept:?}: the reduced search has a fault or more states"));
        };
        if deadlocks && !goals {
            left = reduced.states.len();
        }
        // A search for goals ends at the first goal, so deadlocks beyond it need not be found.
        let kept_deadlocks = deadlocks && (!goals || whole.first_violation.is_none());
        if kept_deadlocks && (&whole.deadlocks, whole.first_deadlock) != (&reduced.deadlocks, reduced.first_deadlock) {
            let numbers = (whole.deadlocks.len(), whole.first_deadlock, reduced.deadlocks.len(), reduced.first_deadlock);
            return Err(format!("{kept:?}: deadlocks and depth of the first, whole and reduced: {numbers:?}"));
        }
        if goals && whole.first_violation != reduced.first_violation {
            let depths = (whole.first_violation, reduced.first_violation);
            return Err(format!("{kept:?}: depths of the first violation, whole and reduced: {depths:?}"));
        }
    }
    Ok(Some((whole.states.len(), left)))
}

/// Returns conditions that hold in a state: the location of each process, the value of each variable and element, and the tokens
/// of each place.
fn facts(model: &Model, state: &State) -> Vec<Expression> {
    let is = |of, value| Expression::binary(Binary::Equal, of, Expression::Constant(value), Span::default());
    let at = (0..model.processes.len()).map(|process| Expression::At { process, location: model.location(state, process) });
    if let Some(net) = &model.net {
        let tokens = |place| is(net.tokens_of(place), net.tokens(&model.layout, state, place) as i32);
        return at.chain((0..net.places.len()).map(tokens)).collect();
    }
    let values = model.variables.iter().enumerate().flat_map(|(number, variable)| {
        let of = move |element: usize| match variable.is_array {
            false => Expression::Variable(number),
            true => Expression::Element {
                array: number,
                index: Box::new(Expression::Constant(element as i32)),
                span: Span::default(),
            },
        };
        (0..variable.initial.len()).map(move |element| is(of(element), model.value(state, number, element)))
    });
    at.chain(values).collect()
}

/// Draws goals from the states of a model. Empty if the model has a fault or more than `most` states. One goal is a whole state.
/// Two goals are up to three facts of a state. Two goals join facts of two states (which may exclude each other). One goal joins
/// the opposites of facts.
pub fn drawn_goals(model: &Model, random: &mut Random, most: usize) -> Vec<Expression> {
    let Some(Answer { states, .. }) = search(model, &Checks::default(), None, most) else { return Vec::new() };
    let mut draw = |from: &[Expression], count: usize| -> Vec<Expression> {
        let count = count.min(from.len());
        (0..count).map(|_| from[random.below(from.len())].clone()).collect()
    };
    // States are ordered by depth.
    let [middle, last] = [&states[states.len() / 2], &states[states.len() - 1]].map(|state| facts(model, state));
    let [of_middle, of_last, others] = [draw(&middle, 3), draw(&last, 3), draw(&last, 2)];
    let mixed = [draw(&middle, 1), draw(&last, 1)].concat();
    let opposites = others.into_iter().map(|fact| Expression::unary(Unary::Not, fact)).collect();
    [
        (last, Binary::And),
        (of_middle, Binary::And),
        (of_last, Binary::And),
        (mixed.clone(), Binary::And),
        (mixed, Binary::Or),
        (opposites, Binary::And),
    ]
    .into_iter()
    .filter_map(|(facts, operator)| Expression::joined(facts, operator, Span::default()))
    .collect()
}
