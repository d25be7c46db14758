//! The declarations of a model: classes, objects with their variables, channels, and state machines with their states.

use super::expressions::number;
use super::grammar::{Pair, Rule, parts, span};
use super::names::{MachineNames, Names, ObjectNames};
use crate::constants::Constants;
use crate::diagnostic::Diagnostic;
use crate::ir::{Buffer, BufferId, Location, LocationId, Process, Range, Span, Type, Variable, VariableId};
use crate::parsing::{Declared, twice, unknown};
use crate::warnings::{self, Warning};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Limit of the elements of an array.
const MAX_ELEMENTS: i32 = 65_536;

/// Limit of a channel's capacity. The number of assignments of a receive grows with the capacity.
const MAX_MESSAGES: i32 = 1024;

/// Limit of the number of state machines in all objects together. A state cannot hold this many.
const MAX_MACHINES: usize = 16_384;

/// A class as it was parsed.
#[derive(Default)]
struct Class<'t> {
    variables: Vec<Declaration<'t>>,
    ports: Declared<()>,
    machines: Vec<Pair<'t>>,
    /// By port, the names of the signals that are sent to it.
    sent: HashMap<&'t str, BTreeSet<&'t str>>,
}

/// A variable as it was parsed.
struct Declaration<'t> {
    name: Pair<'t>,
    ty: Type,
    size: Option<usize>,
    initial: Option<Pair<'t>>,
}

/// A channel between two objects.
pub struct Channel {
    pub name: String,
    /// Types of the values in a message.
    pub types: Vec<Type>,
    pub kind: ChannelKind,
}

pub enum ChannelKind {
    Synchronous,
    Buffered { buffer: BufferId, is_lossy: bool },
}

/// A state machine of an object, with its parsed transitions.
pub struct Machine<'t> {
    pub object: usize,
    pub transitions: Vec<Pair<'t>>,
}

/// All declarations of a model.
#[derive(Default)]
pub struct Declarations<'t> {
    classes: Declared<usize>,
    of_classes: Vec<Class<'t>>,
    /// By object, the number of its class.
    class_of: Vec<usize>,
    pub actions: HashSet<&'t str>,
    pub names: Names,
    pub variables: Vec<Variable>,
    pub processes: Vec<Process>,
    pub channels: Vec<Channel>,
    pub buffers: Vec<Buffer>,
    /// By object and port, the channel that the port is connected to, and the number of the channel's end. End 0 is the source of
    /// an asynchronous channel.
    pub connected: HashMap<(usize, String), (usize, usize)>,
    /// State machines, by process.
    pub machines: Vec<Machine<'t>>,
    pub warnings: Vec<Warning>,
    /// Initial values that replace those in the text.
    constants: Constants,
    /// Names of the variables whose initial values the user may change.
    known_constants: Vec<String>,
}

impl<'t> Declarations<'t> {
    pub fn of(model: Pair<'t>, constants: &Constants) -> Result<Self, Diagnostic> {
        let mut all = Self { constants: constants.clone(), ..Self::default() };
        let sections: Vec<Pair> = parts(model).collect();
        let of_rule = |rule: Rule| sections.iter().filter(move |part| part.as_rule() == rule).cloned().flat_map(parts);
        all.actions = of_rule(Rule::actions).map(|name| name.as_str()).collect();
        of_rule(Rule::classes).try_for_each(|class| all.class(class))?;
        let objects: Vec<Pair> = of_rule(Rule::objects).collect();
        all.names.has_one_object = objects.len() == 1;
        objects.into_iter().try_for_each(|object| all.object(object))?;
        let known: Vec<&str> = all.known_constants.iter().map(String::as_str).collect();
        all.constants.ensure_are_among("variable of an object", &known)?;
        of_rule(Rule::channels).try_for_each(|channel| all.channel(channel))?;
        (0..all.class_of.len()).try_for_each(|object| all.machines_of(object))?;
        Ok(all)
    }

    /// The ports of an object.
    pub fn ports(&self, object: usize) -> &Declared<()> {
        &self.of_classes[self.class_of[object]].ports
    }

    fn class(&mut self, pair: Pair<'t>) -> Result<(), Diagnostic> {
        let mut sections = parts(pair.clone());
        let name = sections.next().expect("a class has a name");
        let declared = self.classes.declare(name.as_str(), self.of_classes.len(), span(&name));
        declared.map_err(|earlier| twice("class", name.as_str(), span(&name), earlier))?;
        let mut class = Class::default();
        for section in sections {
            match section.as_rule() {
                Rule::variables => class.variables = declarations(section)?,
                Rule::ports => {
                    for port in parts(section) {
                        let declared = class.ports.declare(port.as_str(), (), span(&port));
                        declared.map_err(|earlier| twice("port", port.as_str(), span(&port), earlier))?;
                    }
                }
                _ => class.machines = parts(section).collect(),
            }
        }
        for send in class.machines.iter().flat_map(|machine| machine.clone().into_inner().flatten()) {
            if send.as_rule() == Rule::send {
                let names: Vec<Pair> = parts(send).filter(|part| part.as_rule() == Rule::name).collect();
                if let [signal, port] = &names[..] {
                    class.sent.entry(port.as_str()).or_default().insert(signal.as_str());
                }
            }
        }
        self.of_classes.push(class);
        Ok(())
    }

    fn object(&mut self, pair: Pair<'t>) -> Result<(), Diagnostic> {
        let mut parts = parts(pair);
        let (name, class) = (parts.next().expect("an object has a name"), parts.next().expect("an object has a class"));
        let Some(&class_id) = self.classes.get(class.as_str()) else {
            return Err(unknown("class", class.as_str(), span(&class), &self.classes.names()));
        };
        let object = self.names.objects.len();
        let declared = self.names.by_name.declare(name.as_str(), object, span(&name));
        declared.map_err(|earlier| twice("object", name.as_str(), span(&name), earlier))?;
        let mut given: HashMap<&str, (Pair, Pair)> = HashMap::new();
        for value in parts {
            let mut sides = value.into_inner();
            let (variable, value) = (sides.next().expect("a value has a name"), sides.next().expect("a value is not empty"));
            let names: Vec<&str> = self.of_classes[class_id].variables.iter().map(|variable| variable.name.as_str()).collect();
            if !names.contains(&variable.as_str()) {
                return Err(unknown("variable of the class", variable.as_str(), span(&variable), &names));
            }
            if let Some((earlier, _)) = given.get(variable.as_str()) {
                return Err(Diagnostic::new(span(&variable), format!("a second value of `{}`", variable.as_str()), "again here")
                    .with_related(span(earlier), "first here"));
            }
            given.insert(variable.as_str(), (variable, value));
        }
        let mut declared = Declared::default();
        let prefix = self.names.prefix(name.as_str());
        let class = std::mem::take(&mut self.of_classes[class_id].variables);
        for declaration in &class {
            let value = given.remove(declaration.name.as_str()).map(|(_, value)| value);
            self.variable(declaration, value, &mut declared, &prefix, None)?;
        }
        self.of_classes[class_id].variables = class;
        self.names.objects.push(ObjectNames { name: name.as_str().into(), variables: declared, machines: Declared::default() });
        self.class_of.push(class_id);
        Ok(())
    }

    /// Adds a variable. Its initial value comes from the object's initialiser, or else from the declaration, or else from the
    /// type.
    fn variable(
        &mut self,
        declaration: &Declaration<'t>,
        value: Option<Pair<'t>>,
        names: &mut Declared<VariableId>,
        prefix: &str,
        process: Option<usize>,
    ) -> Result<(), Diagnostic> {
        let Declaration { name, ty, size, initial } = declaration;
        let declared = names.declare(name.as_str(), self.variables.len(), span(name));
        declared.map_err(|earlier| twice("variable", name.as_str(), span(name), earlier))?;
        let mut given = match (value.as_ref().or(initial.as_ref()), size) {
            (None, _) => Vec::new(),
            (Some(list), Some(size)) if list.as_rule() == Rule::list => {
                let given: Vec<(i32, Span)> =
                    list.clone().into_inner().map(|value| constant(&value)).collect::<Result<_, Diagnostic>>()?;
                let default = if *ty == Type::BOOLEAN { "true" } else { "0" };
                self.warnings.extend(warnings::of_list(name.as_str(), &given, *size, default));
                given
            }
            (Some(value), None) if value.as_rule() == Rule::constant => vec![constant(value)?],
            (Some(value), Some(_)) => {
                let message = "a single value for an array";
                return Err(Diagnostic::new(span(value), message, "a list [...] is needed"));
            }
            (Some(value), None) => {
                return Err(Diagnostic::new(
                    span(value),
                    "a list of values for a variable that is not an array",
                    "one value is needed",
                ));
            }
        };
        let full_name = format!("{prefix}{}", name.as_str());
        if process.is_none() {
            if let Some(value) = self.constants.fitting(&full_name, *ty, type_name(*ty), span(name))? {
                if size.is_some() {
                    let message = format!("--const {full_name}={value}: it is an array");
                    return Err(Diagnostic::new(span(name), message, "--const gives one value"));
                }
                given = vec![(value, span(name))];
            }
            if size.is_none() {
                self.known_constants.push(full_name.clone());
            }
        }
        let elements = size.unwrap_or(1);
        let mut values = Vec::with_capacity(elements);
        for (value, at) in given.into_iter().take(elements) {
            let kept = if *ty == Type::BOOLEAN { i32::from(value != 0) } else { ty.wrap(value) };
            self.warnings.extend(warnings::of_store(value, kept, type_name(*ty), Range::of_type(*ty), at, 1));
            values.push(kept);
        }
        values.resize(elements, i32::from(*ty == Type::BOOLEAN));
        self.variables.push(Variable::new(full_name, process, *ty, size.is_some(), values));
        Ok(())
    }

    fn channel(&mut self, pair: Pair<'t>) -> Result<(), Diagnostic> {
        let mut parts = parts(pair);
        let name = parts.next().expect("a channel has a name");
        let number = self.channels.len();
        let declared = self.names.channels.declare(name.as_str(), number, span(&name));
        declared.map_err(|earlier| twice("channel", name.as_str(), span(&name), earlier))?;
        let (mut types, mut kind, mut ends) = (Vec::new(), ChannelKind::Synchronous, Vec::new());
        for part in parts {
            match part.as_rule() {
                Rule::type_name => {
                    let (ty, size) = type_of(&part)?;
                    if size.is_some() {
                        let label = "a message cannot carry an array";
                        return Err(Diagnostic::new(span(&part), "an array in a message", label));
                    }
                    types.push(ty);
                }
                rule => {
                    let (mut capacity, mut is_lossy) = (1, false);
                    for part in self::parts(part) {
                        match part.as_rule() {
                            Rule::size => capacity = size(&part, MAX_MESSAGES)?,
                            Rule::lossy => is_lossy = true,
                            Rule::end => ends.push(self.end(part, number, ends.len())?),
                            _ => {}
                        }
                    }
                    if rule == Rule::asynchronous {
                        kind = self.buffered(name.as_str(), &types, capacity, is_lossy, &ends[0]);
                    }
                }
            }
        }
        self.channels.push(Channel { name: name.as_str().into(), types, kind });
        Ok(())
    }

    /// Resolves an end of a channel to an object and its port.
    fn end(&mut self, pair: Pair<'t>, channel: usize, end: usize) -> Result<(usize, &'t str), Diagnostic> {
        let at = span(&pair);
        let mut names = pair.into_inner();
        let (object, port) = (names.next().expect("an end has an object"), names.next().expect("an end has a port"));
        let Some(&id) = self.names.by_name.get(object.as_str()) else {
            return Err(unknown("object", object.as_str(), span(&object), &self.names.by_name.names()));
        };
        if self.ports(id).get(port.as_str()).is_none() {
            let what = format!("port of {}", object.as_str());
            return Err(unknown(&what, port.as_str(), span(&port), &self.ports(id).names()));
        }
        if self.connected.insert((id, port.as_str().into()), (channel, end)).is_some() {
            let message = format!("the port {}.{} is connected twice", object.as_str(), port.as_str());
            return Err(Diagnostic::new(at, message, "a port belongs to one channel"));
        }
        Ok((id, port.as_str()))
    }

    fn buffered(&mut self, name: &str, types: &[Type], capacity: usize, is_lossy: bool, from: &(usize, &str)) -> ChannelKind {
        let sent = self.of_classes[self.class_of[from.0]].sent.get(from.1);
        let signals = sent.into_iter().flatten().map(|signal| (*signal).to_string()).collect();
        self.buffers.push(Buffer::declare(name, types, signals, capacity, &mut self.variables));
        ChannelKind::Buffered { buffer: self.buffers.len() - 1, is_lossy }
    }

    fn machines_of(&mut self, object: usize) -> Result<(), Diagnostic> {
        let object_name = self.names.objects[object].name.clone();
        for machine in self.of_classes[self.class_of[object]].machines.clone() {
            let mut sections = parts(machine);
            let name = sections.next().expect("a state machine has a name");
            let process = self.processes.len();
            if process == MAX_MACHINES {
                let message = format!("all objects together have more than {MAX_MACHINES} state machines");
                return Err(Diagnostic::new(span(&name), message, "one too many"));
            }
            let full_name = format!("{}{}", self.names.prefix(&object_name), name.as_str());
            let mut names = MachineNames::default();
            let (mut locations, mut transitions) = (Vec::new(), Vec::new());
            for section in sections {
                match section.as_rule() {
                    Rule::variables => {
                        for declaration in &declarations(section)? {
                            self.variable(declaration, None, &mut names.variables, "", Some(process))?;
                        }
                    }
                    Rule::transitions => transitions = parts(section).collect(),
                    _ => {
                        for state in parts(section) {
                            let declared = names.states.declare(state.as_str(), locations.len(), span(&state));
                            declared.map_err(|earlier| twice("state", state.as_str(), span(&state), earlier))?;
                            locations.push(Location { name: state.as_str().into(), committed: false });
                        }
                    }
                }
            }
            names.process = process;
            names.rests = vec![Vec::new(); locations.len()];
            let initial: LocationId = 0;
            self.processes.push(Process { name: full_name, locations, initial, transitions: 0..0 });
            let declared = self.names.objects[object].machines.declare(name.as_str(), process, span(&name));
            declared.map_err(|earlier| twice("state machine", name.as_str(), span(&name), earlier))?;
            self.names.machines.push(names);
            self.machines.push(Machine { object, transitions });
        }
        Ok(())
    }
}

/// Reads declarations. A type applies to the names after it, up to the next type.
fn declarations<'t>(section: Pair<'t>) -> Result<Vec<Declaration<'t>>, Diagnostic> {
    let mut ty: Option<(Type, Option<usize>)> = None;
    let mut all = Vec::new();
    for variable in parts(section) {
        let (mut name, mut initial, at) = (None, None, span(&variable));
        for part in variable.into_inner() {
            match part.as_rule() {
                Rule::type_name => ty = Some(type_of(&part)?),
                Rule::name => name = Some(part),
                _ => initial = Some(part),
            }
        }
        let Some((ty, size)) = ty else {
            return Err(Diagnostic::new(at, "a variable without a type", "a type is needed before the first variable"));
        };
        all.push(Declaration { name: name.expect("a variable has a name"), ty, size, initial });
    }
    Ok(all)
}

fn type_of(pair: &Pair) -> Result<(Type, Option<usize>), Diagnostic> {
    let mut parts = pair.clone().into_inner();
    let ty = match parts.next().map(|name| name.as_rule()) {
        Some(Rule::integer) => Type::WORD,
        Some(Rule::boolean) => Type::BOOLEAN,
        _ => Type::BYTE,
    };
    Ok((ty, parts.next().map(|part| size(&part, MAX_ELEMENTS)).transpose()?))
}

/// Reads a size `[n]`.
fn size(pair: &Pair, most: i32) -> Result<usize, Diagnostic> {
    let value = number(&pair.clone().into_inner().next().expect("a size is a number"), false)?;
    if (1..=most).contains(&value) {
        return Ok(value as usize);
    }
    Err(Diagnostic::new(span(pair), format!("a size of {value}"), format!("the size must be 1 to {most}")))
}

fn constant(pair: &Pair) -> Result<(i32, Span), Diagnostic> {
    let mut is_negative = false;
    for part in pair.clone().into_inner() {
        match part.as_rule() {
            Rule::minus => is_negative = true,
            Rule::number => return Ok((number(&part, is_negative)?, span(pair))),
            Rule::true_value => return Ok((1, span(pair))),
            _ => {}
        }
    }
    Ok((0, span(pair)))
}

pub fn type_name(ty: Type) -> &'static str {
    match ty {
        Type::BYTE => "a Byte",
        Type::BOOLEAN => "a Boolean",
        _ => "an Integer",
    }
}
