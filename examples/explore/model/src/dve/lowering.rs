//! Translates a parsed model to the intermediate form.
//!
//! Takes three passes over the text, because names may be used before they are declared: global declarations and the shapes of
//! messages; the declarations of each process; assertions and transitions.

use super::expressions::{Scope, unknown};
use super::grammar::{self, Pair, Rule, parts, span};
use super::names::{self, Meaning, Names};
use crate::assembly::{Parts, assembled};
use crate::constants::Constants;
use crate::diagnostic::Diagnostic;
use crate::ir::expression::Binary;
use crate::ir::property::{Move, Property};
use crate::ir::{
    Action, Assertion, Assignment, Buffer, Channel, Constant, Expression, Location, LocationId, Model, Operation, Process,
    ProcessId, Range, Source, Span, StoreTarget, Transition, Type, Variable,
};
use crate::parsing;
use crate::warnings::{self, Warning};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use warpset_support::numbers::counted;

/// Limit of the elements of an array.
const MAX_ELEMENTS: i32 = 65_536;

/// Limit of the instances of a process.
const MAX_INSTANCES: i32 = 256;

/// Limit of a channel's capacity. For each message of capacity, a receive needs assignments.
const MAX_MESSAGES: i32 = 1024;

/// Returns the model, its names, and warnings about parts of the text that are not computed as they are written.
pub fn lower(source: &Source, constants: &Constants) -> Result<(Model, Names, Vec<Warning>), Diagnostic> {
    let text = grammar::parse(Rule::model, &source.text)?;
    let mut lowering = Lowering { constants: constants.clone(), ..Lowering::default() };
    let mut processes = Vec::new();
    let items: Vec<Pair> = parts(text.clone()).collect();
    let messages = messages(&text);
    let property = property_name(&items);
    let is_property = |item: &Pair| {
        let name = item.clone().into_inner().find(|part| part.as_rule() == Rule::name);
        item.as_rule() == Rule::process
            && property.is_some()
            && name.map(|name| name.as_str()) == property.as_ref().map(Pair::as_str)
    };
    // The property process is handled last, wherever it is in the text.
    let (last, items): (Vec<Pair>, Vec<Pair>) = items.into_iter().partition(&is_property);
    for item in items.into_iter().chain(last) {
        match item.as_rule() {
            Rule::declaration => lowering.declare(item, None)?,
            Rule::channels => lowering.channels(item, &messages)?,
            Rule::process => {
                for number in lowering.instances(&item, is_property(&item))? {
                    processes.push(lowering.process(item.clone(), number)?);
                }
            }
            Rule::system => system(item)?,
            _ => {}
        }
    }
    if let Some(name) = &property {
        lowering.begin_property(name)?;
    }
    for (process, sections) in processes.iter().enumerate() {
        lowering.process_declarations(process, sections)?;
    }
    for (process, sections) in processes.iter().enumerate() {
        lowering.process_behaviour(process, sections)?;
    }
    lowering.finish(source)
}

/// The parts of the model that have been read so far.
#[derive(Default)]
struct Lowering {
    names: Names,
    variables: Vec<Variable>,
    processes: Vec<Process>,
    channels: Vec<Channel>,
    buffers: Vec<Buffer>,
    transitions: Vec<Transition>,
    assertions: Vec<Assertion>,
    /// The property process.
    property_process: Option<ProcessId>,
    property: Option<Property>,
    /// Values in place of those of the text.
    constants: Constants,
    /// The constants that may have other values.
    known_constants: Vec<Constant>,
    warnings: RefCell<Vec<Warning>>,
}

/// The sections of a process, as they were parsed.
type Sections<'a> = Vec<Pair<'a>>;

/// Number of values in a message on each channel, taken from the channel's first use.
type Messages<'a> = HashMap<&'a str, usize>;

/// A transition's part in a communication, lowered.
struct Communication {
    action: Action,
    /// Condition in addition to the guard.
    condition: Option<Expression>,
    /// Assignments before the effects.
    stores: Vec<Assignment>,
}

impl Lowering {
    fn scope(&self, process: Option<ProcessId>) -> Scope<'_> {
        Scope { names: &self.names, variables: &self.variables, process, warnings: &self.warnings }
    }

    /// Declares variables or constants of the model or of a process.
    fn declare(&mut self, pair: Pair, process: Option<ProcessId>) -> Result<(), Diagnostic> {
        let mut is_constant = false;
        let mut ty = Type::BYTE;
        for part in parts(pair) {
            match part.as_rule() {
                Rule::constant => is_constant = true,
                Rule::type_name => ty = type_of(&part),
                _ => self.declare_one(part, process, ty, is_constant)?,
            }
        }
        Ok(())
    }

    fn declare_one(&mut self, pair: Pair, process: Option<ProcessId>, ty: Type, is_constant: bool) -> Result<(), Diagnostic> {
        let at = span(&pair);
        let mut parts = pair.into_inner();
        let name = parts.next().expect("a declaration has a name");
        let (mut sizes, mut initial) = (Vec::new(), None);
        for part in parts {
            match part.as_rule() {
                Rule::size if sizes.len() == 2 => {
                    return Err(Diagnostic::new(span(&part), "a third dimension", "an array has one or two"));
                }
                Rule::size => sizes.push((self.size(part.clone(), process, 1..=MAX_ELEMENTS)?, span(&part))),
                _ => initial = Some(part),
            }
        }
        let size = sizes.iter().map(|(size, _)| *size).reduce(|rows, columns| rows * columns);
        let columns = sizes.get(1).map(|(columns, _)| *columns);
        if let (Some(size), Some((_, at))) = (size.filter(|size| *size > MAX_ELEMENTS as usize), sizes.last()) {
            return Err(Diagnostic::new(*at, format!("an array of {size} elements"), format!("{MAX_ELEMENTS} are possible")));
        }
        let mut given = match (initial, columns) {
            (Some(rows), Some(columns)) => self.initial_rows(rows, process, &name, sizes[0].0, columns)?,
            (initial, _) => self.initial_values(initial, process, size.is_some(), at)?,
        };
        let full_name = process.map_or_else(String::new, |process| format!("{}.", self.processes[process].name)) + name.as_str();
        if let Some(value) = self.constants.fitting(&full_name, ty, type_name(ty), span(&name))? {
            let refused = match (is_constant, size) {
                (true, None) => None,
                (true, Some(_)) => Some("an array: --const gives one value"),
                (false, _) => Some("a variable: --const changes constants"),
            };
            if let Some(why) = refused {
                return Err(Diagnostic::new(span(&name), format!("--const {full_name}={value}: it is not a constant"), why));
            }
            given = vec![(value, at)];
        }
        if let Some(size) = size.filter(|_| columns.is_none()) {
            self.look_at_length(name.as_str(), &given, size);
        }
        let given = given.into_iter().take(size.unwrap_or(1)).map(|(value, at)| self.fitting(value, ty, at, 1));
        let mut values: Vec<i32> = given.collect();
        values.resize(size.unwrap_or(1), 0);
        if is_constant && size.is_none() {
            self.known_constants.push(Constant { name: full_name, value: values[0] });
        }
        let meaning = match (is_constant, size) {
            (true, None) => Meaning::Constant(values[0]),
            (true, Some(_)) => Meaning::ConstantArray(self.variables.len()),
            (false, _) => Meaning::Variable(self.variables.len()),
        };
        if !matches!(meaning, Meaning::Constant(_)) {
            let name = name.as_str().into();
            self.variables.push(Variable { columns, ..Variable::new(name, process, ty, size.is_some(), values) });
        }
        let names = match process {
            Some(process) => &mut self.names.locals[process],
            None => &mut self.names.globals,
        };
        names.declare(name.as_str(), meaning, span(&name)).map_err(|earlier| twice("variable or constant", &name, earlier))
    }

    /// Wraps a constant to the type of the variable that stores it, and warns if this changes its value. `values` is how many
    /// values written in the source the warning accounts for: 0 for a store, because stores are counted at run time.
    fn fitting(&self, value: i32, ty: Type, at: Span, values: u64) -> i32 {
        let kept = ty.wrap(value);
        self.warnings.borrow_mut().extend(warnings::of_store(value, kept, type_name(ty), Range::of_type(ty), at, values));
        kept
    }

    /// Warns of a list whose length differs from the size of its array.
    fn look_at_length(&self, name: &str, given: &[(i32, Span)], size: usize) {
        self.warnings.borrow_mut().extend(warnings::of_list(name, given, size, "0"));
    }

    /// Warns of stores of constants that do not fit their type.
    fn look_at_stores<'v>(&self, stores: impl IntoIterator<Item = (&'v Expression, Type, Span)>) {
        for (value, ty, at) in stores {
            if let Expression::Constant(value) = value {
                self.fitting(*value, ty, at, 0);
            }
        }
    }

    /// Evaluates a size `[n]`.
    fn size(&self, pair: Pair, process: Option<ProcessId>, legal: RangeInclusive<i32>) -> Result<usize, Diagnostic> {
        let at = span(&pair);
        let value = self.scope(process).constant(pair.into_inner().next().expect("a size is an expression"))?;
        match legal.contains(&value) {
            true => Ok(value as usize),
            false => {
                let label = format!("the size must be {} to {}", legal.start(), legal.end());
                Err(Diagnostic::new(at, format!("a size of {value}"), label))
            }
        }
    }

    fn initial_values(
        &self,
        pair: Option<Pair>,
        process: Option<ProcessId>,
        is_array: bool,
        at: Span,
    ) -> Result<Vec<(i32, Span)>, Diagnostic> {
        let scope = self.scope(process);
        let constant = |value: Pair| {
            let at = span(&value);
            scope.constant(value).map(|value| (value, at))
        };
        match (pair, is_array) {
            (None, _) => Ok(Vec::new()),
            (Some(pair), true) if pair.as_rule() == Rule::list => pair.into_inner().map(constant).collect(),
            (Some(pair), false) if pair.as_rule() == Rule::expression => Ok(vec![constant(pair)?]),
            (Some(pair), true) if pair.as_rule() == Rule::rows => Err(Diagnostic::new(
                span(&pair),
                "a list of lists for an array of one dimension",
                "a list { ... } of values is needed",
            )),
            (Some(_), true) => Err(Diagnostic::new(at, "a single value for an array", "a list { ... } is needed")),
            (Some(_), false) => {
                Err(Diagnostic::new(at, "a list of values for a variable that is not an array", "one value is needed"))
            }
        }
    }

    /// The initial values of an array of two dimensions: those of each row, and zeros for what is missing.
    fn initial_rows(
        &self,
        pair: Pair,
        process: Option<ProcessId>,
        name: &Pair,
        rows: usize,
        columns: usize,
    ) -> Result<Vec<(i32, Span)>, Diagnostic> {
        let at = span(&pair);
        if pair.as_rule() != Rule::rows {
            return Err(Diagnostic::new(at, "no list of lists for an array of two dimensions", "{ { ... }, { ... } } is needed"));
        }
        let lists: Vec<Pair> = pair.into_inner().collect();
        let firsts: Vec<(i32, Span)> = lists.iter().map(|list| (0, span(list))).collect();
        self.look_at_length(name.as_str(), &firsts, rows);
        let mut values = Vec::new();
        for (row, list) in lists.into_iter().take(rows).enumerate() {
            let at = span(&list);
            let mut given = self.initial_values(Some(list), process, true, at)?;
            self.look_at_length(&format!("{}[{row}]", name.as_str()), &given, columns);
            given.resize(columns, (0, at));
            values.append(&mut given);
        }
        Ok(values)
    }

    fn channels(&mut self, pair: Pair, messages: &Messages) -> Result<(), Diagnostic> {
        let mut types: Option<Vec<Type>> = None;
        for part in parts(pair) {
            if part.as_rule() == Rule::types {
                types = Some(part.into_inner().map(|name| type_of(&name)).collect());
                continue;
            }
            let mut of_channel = part.into_inner();
            let name = of_channel.next().expect("a channel has a name");
            let capacity = of_channel.next().map_or(Ok(0), |size| self.size(size, None, 0..=MAX_MESSAGES))?;
            let arity = types.as_ref().map_or_else(|| messages.get(name.as_str()).copied().unwrap_or(0), Vec::len);
            let channel = if capacity == 0 {
                let (senders, receivers) = (Vec::new(), Vec::new());
                let untyped = || vec![None.into(); arity];
                let fields = types.as_ref().map_or_else(untyped, |types| types.iter().map(|ty| Some(*ty).into()).collect());
                self.channels.push(Channel { name: name.as_str().into(), fields, senders, receivers });
                names::Channel::Rendezvous(self.channels.len() - 1)
            } else {
                let types = types.clone().unwrap_or_else(|| vec![Type::INT; arity]);
                self.buffers.push(Buffer::declare(name.as_str(), &types, Vec::new(), capacity, &mut self.variables));
                names::Channel::Buffered(self.buffers.len() - 1)
            };
            let declared = self.names.channels.declare(name.as_str(), channel, span(&name));
            declared.map_err(|earlier| twice("channel", &name, earlier))?;
        }
        Ok(())
    }

    /// The numbers of the processes that a text stands for; `None` for a process without instances.
    fn instances(&self, pair: &Pair, is_property: bool) -> Result<Vec<Option<usize>>, Diagnostic> {
        let Some(instances) = parts(pair.clone()).find(|part| part.as_rule() == Rule::instances) else { return Ok(vec![None]) };
        let at = span(&instances);
        if is_property {
            return Err(Diagnostic::new(at, "instances of a property process", "a model has one property"));
        }
        let count = self.scope(None).constant(instances.into_inner().nth(1).expect("instances have a number"))?;
        if !(1..=MAX_INSTANCES).contains(&count) {
            return Err(Diagnostic::new(at, format!("{count} instances"), format!("1 to {MAX_INSTANCES} are possible")));
        }
        Ok((0..count as usize).map(Some).collect())
    }

    /// Declares a process with its states, so that all processes can refer to them. `number`: which of its instances it is.
    fn process<'a>(&mut self, pair: Pair<'a>, number: Option<usize>) -> Result<Sections<'a>, Diagnostic> {
        let mut sections = parts(pair).peekable();
        let name = sections.next().expect("a process has a name");
        let process = self.processes.len();
        let full_name = number.map_or_else(|| name.as_str().into(), |number| format!("{}_{number}", name.as_str()));
        let declared = self.names.processes.declare(&full_name, process, span(&name));
        declared.map_err(|earlier| parsing::twice("process", &full_name, span(&name), earlier))?;
        let mut locals = names::Declared::default();
        if let (Some(number), Some(instances)) = (number, sections.next_if(|part| part.as_rule() == Rule::instances)) {
            let id = instances.into_inner().next().expect("instances have a name");
            locals.declare(id.as_str(), Meaning::Constant(number as i32), span(&id)).expect("it is the first name");
        }
        self.names.locals.push(locals);
        self.names.states.push(names::Declared::default());
        let sections: Vec<Pair> = sections.collect();
        let mut locations = Vec::new();
        for state in of_rule(&sections, Rule::states) {
            let declared = self.names.states[process].declare(state.as_str(), locations.len(), span(&state));
            declared.map_err(|earlier| twice("state", &state, earlier))?;
            locations.push(Location { name: state.as_str().into(), committed: false });
        }
        for state in of_rule(&sections, Rule::committed) {
            locations[self.state(process, &state)?].committed = true;
        }
        let mut initial = of_rule(&sections, Rule::initial);
        let first = initial.next().ok_or_else(|| {
            Diagnostic::new(span(&name), format!("process {full_name} has no initial state"), "`init` is missing")
        })?;
        if let Some(second) = initial.next() {
            return Err(Diagnostic::new(span(&second), "a second initial state", "a process has exactly one")
                .with_related(span(&first), "the first one"));
        }
        drop(initial);
        let initial = self.state(process, &first)?;
        self.processes.push(Process { name: full_name, locations, initial, transitions: 0..0 });
        Ok(sections)
    }

    fn state(&self, process: ProcessId, name: &Pair) -> Result<LocationId, Diagnostic> {
        let states = &self.names.states[process];
        states.get(name.as_str()).copied().ok_or_else(|| unknown("state", name, &states.names()))
    }

    fn process_declarations(&mut self, process: ProcessId, sections: &[Pair]) -> Result<(), Diagnostic> {
        for section in sections {
            match section.as_rule() {
                Rule::declaration => self.declare(section.clone(), Some(process))?,
                Rule::accepting if self.property_process != Some(process) => {
                    let label = "only a property process has accepting states (`system async property NAME;`)";
                    return Err(Diagnostic::new(span(section), "accepting states", label));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn process_behaviour(&mut self, process: ProcessId, sections: &[Pair]) -> Result<(), Diagnostic> {
        if self.property_process == Some(process) {
            return self.property_behaviour(process, sections);
        }
        for assertion in of_rule(sections, Rule::assertions) {
            let at = span(&assertion);
            let mut parts = assertion.into_inner();
            let location = self.state(process, &parts.next().expect("an assertion is about a state"))?;
            let condition = self.scope(Some(process)).condition(parts.next().expect("an assertion has a condition"))?;
            self.assertions.push(Assertion { process, location, condition, span: at });
        }
        let first = self.transitions.len();
        let mut from = None;
        for transition in of_rule(sections, Rule::transitions) {
            let transition = self.transition(process, transition, from)?;
            from = Some(transition.from);
            self.transitions.push(transition);
        }
        self.processes[process].transitions = first..self.transitions.len();
        Ok(())
    }

    /// Removes the name of the property process, so that neither processes nor conditions can read its state.
    fn begin_property(&mut self, name: &Pair) -> Result<(), Diagnostic> {
        let known = &mut self.names.processes;
        let Some(process) = known.get(name.as_str()).copied() else {
            return Err(unknown("process", name, &known.names()));
        };
        known.remove(name.as_str());
        self.property_process = Some(process);
        Ok(())
    }

    /// Reads the automaton of a property process, which may only have moves with guards.
    fn property_behaviour(&mut self, process: ProcessId, sections: &[Pair]) -> Result<(), Diagnostic> {
        let mut accepting = vec![false; self.processes[process].locations.len()];
        let (mut moves, mut from) = (Vec::new(), None);
        let refuse = |pair: &Pair, what: &str| {
            Err(Diagnostic::new(
                span(pair),
                format!("{what} in a property process"),
                "it may have only guards and accepting states",
            ))
        };
        for section in sections {
            match section.as_rule() {
                Rule::committed => return refuse(section, "committed states"),
                Rule::assertions => return refuse(section, "an assertion"),
                Rule::accepting => {
                    if section.as_str().contains('(') {
                        let label = "only Büchi acceptance is supported: `accept` and names of states";
                        return Err(Diagnostic::new(span(section), "an acceptance condition other than Büchi's", label));
                    }
                    for state in parts(section.clone()) {
                        accepting[self.state(process, &state)?] = true;
                    }
                }
                _ => {}
            }
        }
        for pair in of_rule(sections, Rule::transitions) {
            for part in pair.clone().into_inner() {
                match part.as_rule() {
                    Rule::sync => return refuse(&part, "a communication"),
                    Rule::effect => return refuse(&part, "an effect"),
                    _ => {}
                }
            }
            let written = pair.clone().into_inner().find(|part| part.as_rule() == Rule::guard);
            let span = written.and_then(|guard| grammar::parts(guard).next()).map_or(Span::default(), |guard| span(&guard));
            let Transition { from: source, to, guard, .. } = self.transition(process, pair, from)?;
            from = Some(source);
            moves.push(Move { from: source, to, guard, span });
        }
        self.processes[process].transitions = self.transitions.len()..self.transitions.len();
        self.property = Some(Property::new(process, accepting, moves));
        Ok(())
    }

    fn transition(&self, process: ProcessId, pair: Pair, before: Option<LocationId>) -> Result<Transition, Diagnostic> {
        let at = span(&pair);
        let mut parts = pair.into_inner();
        let ends = parts.next().expect("a transition has ends");
        if ends.as_rule() == Rule::probabilistic {
            return Err(Diagnostic::new(at, "a probabilistic transition", "probabilities are not supported"));
        }
        let ends: Vec<Pair> = ends.into_inner().collect();
        let (from, to) = match (&ends[..], before) {
            ([from, to], _) => (self.state(process, from)?, self.state(process, to)?),
            ([to], Some(from)) => (from, self.state(process, to)?),
            _ => return Err(Diagnostic::new(at, "a transition without a source", "no earlier transition has one")),
        };
        let scope = self.scope(Some(process));
        let mut guard = None;
        let mut communication = Communication { action: Action::Alone, condition: None, stores: Vec::new() };
        let mut effects = Vec::new();
        for part in parts {
            match part.as_rule() {
                Rule::guard => guard = Some(scope.condition(grammar::parts(part).next().expect("a guard is an expression"))?),
                Rule::sync => communication = self.communication(scope, part)?,
                _ => effects = grammar::parts(part).map(|pair| self.assignment(scope, pair)).collect::<Result<_, _>>()?,
            }
        }
        let Communication { action, condition, stores } = communication;
        // Values sent to a buffer or taken from it are evaluated before the process moves, but the stores are effects and come
        // after that. In them, conditions on this process's location are therefore replaced by their value in `from`.
        let mut stores: Vec<Assignment> = stores
            .into_iter()
            .map(|Assignment { target, value }| {
                let index = target.index.map(|index| index.where_at(process, from));
                Assignment { target: StoreTarget { index, ..target }, value: value.where_at(process, from) }
            })
            .collect();
        stores.append(&mut effects);
        let guard = match (guard, condition) {
            (Some(guard), Some(condition)) => Some(Expression::binary(Binary::And, guard, condition, at)),
            (guard, condition) => guard.or(condition),
        };
        Ok(Transition { process, from, to, guard, action, effects: stores, span: at })
    }

    fn communication(&self, scope: Scope, pair: Pair) -> Result<Communication, Diagnostic> {
        let at = span(&pair);
        let mut parts = parts(pair);
        let name = parts.next().expect("a communication is on a channel");
        let direction = parts.next().expect("a communication has a direction");
        let is_sent = direction.as_rule() == Rule::send;
        let known = &self.names.channels;
        let channel = *known.get(name.as_str()).ok_or_else(|| unknown("channel", &name, &known.names()))?;
        let types = channel.types(&self.channels, &self.buffers, &self.variables);
        let (needed, given) = (types.len(), message(&direction).count());
        if needed != given {
            let values = |count: usize| counted(count as u64, "value");
            let text =
                format!("messages on `{}` have {}, according to its declaration or first use", name.as_str(), values(needed));
            return Err(Diagnostic::new(at, text, format!("this one has {}", values(given))));
        }
        let sent = || -> Result<Vec<Expression>, Diagnostic> {
            let places: Vec<Span> = message(&direction).map(|value| span(&value)).collect();
            let values: Vec<Expression> = message(&direction).map(|value| scope.expression(value)).collect::<Result<_, _>>()?;
            let typed = values.iter().zip(&types).zip(places).filter_map(|((value, ty), at)| Some((value, (*ty)?, at)));
            self.look_at_stores(typed);
            Ok(values)
        };
        match (channel, is_sent) {
            (names::Channel::Rendezvous(channel), true) => Ok(Communication::with(Action::Send { channel, values: sent()? })),
            (names::Channel::Rendezvous(channel), false) => {
                let targets = message(&direction).map(|target| scope.target(target)).collect::<Result<_, _>>()?;
                Ok(Communication::with(Action::Receive { channel, targets }))
            }
            (names::Channel::Buffered(buffer), true) => Ok(Communication {
                action: Action::Buffered { buffer, operation: Operation::Send },
                condition: Some(self.buffers[buffer].has_room(at)),
                stores: self.buffers[buffer].append(sent()?, at),
            }),
            (names::Channel::Buffered(buffer), false) => {
                let targets: Result<_, _> = message(&direction).map(|target| scope.target(target)).collect();
                Ok(Communication {
                    action: Action::Buffered { buffer, operation: Operation::Receive },
                    condition: Some(self.buffers[buffer].has_message(at)),
                    stores: self.buffers[buffer].take(targets?, at),
                })
            }
        }
    }

    fn assignment(&self, scope: Scope, pair: Pair) -> Result<Assignment, Diagnostic> {
        let mut parts = pair.into_inner();
        let target = scope.target(parts.next().expect("an assignment has a target"))?;
        let value = parts.next().expect("an assignment has a value");
        let at = span(&value);
        let value = scope.expression(value)?;
        self.look_at_stores([(&value, self.variables[target.variable].ty, at)]);
        Ok(Assignment { target, value })
    }

    fn finish(self, source: &Source) -> Result<(Model, Names, Vec<Warning>), Diagnostic> {
        let known: Vec<&str> = self.known_constants.iter().map(|constant| &*constant.name).collect();
        self.constants.ensure_are_among("constant", &known)?;
        let Self {
            names,
            variables,
            processes,
            channels,
            buffers,
            transitions,
            assertions,
            property,
            warnings,
            constants,
            known_constants,
            ..
        } = self;
        let mut warnings = warnings.into_inner();
        warnings.sort_by_key(|warning| warning.diagnostic.span.start);
        // A process is read once for each of its instances and gives equal warnings each time.
        warnings.dedup();
        let parts = Parts { variables, processes, channels, buffers, transitions, assertions, property, ..Parts::default() };
        let mut model = assembled(parts, source)?;
        (model.constants, model.all_constants) = (constants.list().to_vec(), known_constants);
        Ok((model, names, warnings))
    }
}

impl Communication {
    fn with(action: Action) -> Self {
        Self { action, condition: None, stores: Vec::new() }
    }
}

/// The names, assertions or transitions in all sections that match the rule.
fn of_rule<'s, 'a>(sections: &'s [Pair<'a>], rule: Rule) -> impl Iterator<Item = Pair<'a>> + use<'s, 'a> {
    sections.iter().filter(move |section| section.as_rule() == rule).cloned().flat_map(parts)
}

/// The values or targets after `!` or `?`.
fn message<'a>(direction: &Pair<'a>) -> impl Iterator<Item = Pair<'a>> {
    direction.clone().into_inner().flat_map(|part| match part.as_rule() {
        Rule::list | Rule::targets => part.into_inner().collect(),
        _ => vec![part],
    })
}

fn messages<'a>(model: &Pair<'a>) -> Messages<'a> {
    let mut messages = Messages::new();
    let processes = parts(model.clone()).filter(|item| item.as_rule() == Rule::process);
    let sections: Vec<Pair> = processes.flat_map(parts).collect();
    for transition in of_rule(&sections, Rule::transitions) {
        for sync in transition.into_inner().filter(|part| part.as_rule() == Rule::sync) {
            let mut parts = parts(sync);
            let (Some(name), Some(direction)) = (parts.next(), parts.next()) else { continue };
            messages.entry(name.as_str()).or_insert_with(|| message(&direction).count());
        }
    }
    messages
}

/// The name of the property process, if the model has one.
fn property_name<'a>(items: &[Pair<'a>]) -> Option<Pair<'a>> {
    let system = items.iter().find(|item| item.as_rule() == Rule::system)?.clone();
    let property = system.into_inner().find(|part| part.as_rule() == Rule::property)?;
    property.into_inner().find(|part| part.as_rule() == Rule::name)
}

/// Refuses every system other than `system async`.
fn system(pair: Pair) -> Result<(), Diagnostic> {
    for part in parts(pair) {
        let (message, label) = match part.as_rule() {
            Rule::synchronous => ("a synchronous system", "only `system async` is supported"),
            _ => continue,
        };
        return Err(Diagnostic::new(span(&part), message, label));
    }
    Ok(())
}

fn type_of(pair: &Pair) -> Type {
    match pair.clone().into_inner().next().map(|name| name.as_rule()) {
        Some(Rule::int) => Type::INT,
        _ => Type::BYTE,
    }
}

fn type_name(ty: Type) -> &'static str {
    if ty == Type::INT { "an int" } else { "a byte" }
}

fn twice(what: &str, name: &Pair, earlier: Span) -> Diagnostic {
    parsing::twice(what, name.as_str(), span(name), earlier)
}
