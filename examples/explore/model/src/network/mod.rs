//! The front end for networks of labelled transition systems: CADP's EXP with AUT files, and single AUT files.
//!
//! # What is read
//!
//! The supported part of EXP (EXP.OPEN 2.0, Lang 2005) is: `par` with gates, interfaces (`G -> B`), `G#2` and synchronisation
//! vectors (`par using`); the operators `|||`, `||` and `|[G]|`, which are right-associative and have the same precedence;
//! `hide`, `cut` and `rename`, each with the modes `gate` (the default), `total` and `partial`; files `f.aut` and `f.exp`, which
//! are searched in the folder of the file that names them, then in the working directory. Expressions of `total` and `partial`
//! are Unix basic regular expressions. Everything else is refused with its name and place.
//!
//! - The label `i` is hidden: it never synchronises, and is never renamed, cut or hidden. `exit` is an ordinary label.
//! - A gate is the part of a label before its first `!`, `?`, `(` or blank. Labels synchronise only if the rest of their texts is
//!   equal, too.
//! - If a gate is both in the list before `in` and in interfaces, the components with the gate in their interface synchronise: as
//!   many of them as the list says, or all if it gives no number.
//! - Vectors: visible labels that occur in no vector never happen, unless `--independent` is given (GPUexplore 1.0). Equal
//!   vectors count once.
//! - `--interleave GATE`: labels of this gate never synchronise, like `i` (for CADP, where `rate` and `prob` are special).
//!
//! # How it is lowered
//!
//! An expression becomes a list of components and a list of rules (rules.rs), which form a [`Network`]. A component is a variable
//! whose value is the component's state. Its name is the name of its file, followed by `_1`, `_2` and so on if several components
//! have that name. Components of one file share its table.

mod aut;
mod grammar;
#[cfg(test)]
mod graphs;
mod labels;
mod names;
mod place;
mod rules;
#[cfg(test)]
mod tests;

use crate::assembly::{Parts, assembled};
use crate::constants::Constants;
use crate::diagnostic::Located;
use crate::dve::{Meaning, Names, condition};
use crate::ir::network::{Component, Rule as Step, Table};
use crate::ir::{Expression, Model, Network, Source, Span, Texts, Type, Variable};
use crate::warnings::Warning;
use anyhow::{Context, Result, anyhow};
use grammar::{Pair, Rule, parts, span};
pub use labels::HIDDEN;
use labels::{Labels, Mode};
use names::{identifier, unique};
use place::{At, found, name_of};
use rules::{Composition, Meeting, Vector};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use warpset_support::output::Identity;

/// Limit of the nesting of files.
const MAX_FILES_IN_EACH_OTHER: usize = 20;

/// Limit of the number of components. A state cannot hold this many.
const MAX_COMPONENTS: usize = 8192;

/// Maximum number of gates that a warning lists.
const MOST_GATES_SHOWN: usize = 20;

/// Length limit of the text of a network, in bytes.
const MAX_BYTES: u64 = crate::input::MAX_BYTES;

/// Options that change how a model is read. All but the constants concern only networks.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Gates that never synchronise.
    pub interleaved: Vec<String>,
    /// Whether labels that are in no vector happen alone.
    pub independent: bool,
    /// Values that replace those of constants in the text.
    pub constants: Constants,
}

impl Reading {
    /// Returns messages about gates that `interleaved` names but no label of the network has. `label` gives the text of each of
    /// the `count` labels, including labels that occur in no rule.
    fn missing_gates<'l>(&self, count: usize, label: impl Fn(usize) -> &'l str) -> Vec<String> {
        let gates = || (0..count).map(|number| labels::gate_and_offers(label(number)).0);
        let is_missing = |gate: &&String| gates().all(|other| other != *gate);
        let described = |gate: &String| {
            let there: BTreeSet<&str> = gates().filter(|gate| *gate != HIDDEN).collect();
            let (count, shown) = (there.len(), there.into_iter().take(MOST_GATES_SHOWN).collect::<Vec<_>>().join(", "));
            let more = count.saturating_sub(MOST_GATES_SHOWN);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("there is no gate `{gate}`; there are {shown}{more}")
        };
        self.interleaved.iter().filter(is_missing).map(described).collect()
    }
}

/// A network with the names of its components and labels, for conditions on it.
#[derive(Clone, Debug)]
pub struct Networks {
    pub model: Model,
    /// Names of components and labels.
    names: Names,
    /// All files that were read in addition to the first file.
    pub files: Vec<Arc<Identity>>,
    /// Messages about gates in `interleaved` that do not exist, one sentence each.
    pub missing_gates: Vec<String>,
}

impl Networks {
    /// Reads a network as EXP. Files that the text names are searched in the folder of `path` first.
    ///
    /// # Errors
    ///
    /// The text has an error (the first one is returned, with its place), or a file cannot be read.
    pub fn read_exp(source: Source, path: &Path, reading: &Reading) -> Result<Self> {
        let mut reader = Reader::new(reading);
        let mut rules = reader.text(&source, path)?;
        let labels = std::mem::take(&mut reader.labels);
        let missing_gates = reading.missing_gates(labels.len(), |number| labels.text(number as u32));
        let used = only_used(&mut rules, labels);
        let network = reader.finish(source, |components| Network::new(components, rules, used))?;
        Ok(Self { missing_gates, ..network })
    }

    /// Reads a state space as AUT. `bytes` is the length of the text, if known.
    ///
    /// # Errors
    ///
    /// The first error in the text, with its line.
    pub fn read_aut(name: String, path: &Path, reader: impl Read, bytes: Option<u64>, reading: &Reading) -> Result<Self> {
        let aut = aut::read(&name, reader, bytes)?;
        let missing_gates = reading.missing_gates(aut.labels.len(), |number| aut.labels.get(number));
        let mut reader = Reader::new(reading);
        reader.component(path, Arc::new(aut.table));
        let network = |components: Vec<Component>| {
            let [component] = components.try_into().expect("a file is one component");
            Some(Network::alone(component, aut.labels))
        };
        let network = reader.finish(Source { name, text: String::new() }, network)?;
        Ok(Self { missing_gates, ..network })
    }

    pub fn has_component(&self, name: &str) -> bool {
        self.names.globals.get(name).is_some()
    }

    /// Reads a condition on the states of the network. The condition is a DVE expression. It may use the names of components for
    /// their states, `enabled(gate)` for all labels of a gate, and `enabled("label")` for one label.
    ///
    /// # Errors
    ///
    /// The first error in the condition, with its place.
    pub fn condition(&self, source: &Source) -> Result<(Expression, Vec<Warning>), Box<Located>> {
        condition(&self.names, &self.model.variables, source)
    }
}

/// A transition system read from a file: its table, and the global number of each of its labels.
struct System {
    table: Arc<Table>,
    labels: Vec<u32>,
}

/// State of the reader of a network.
struct Reader<'a> {
    reading: &'a Reading,
    labels: Labels,
    components: Vec<(String, Arc<Table>)>,
    /// Transition systems, by file.
    tables: HashMap<PathBuf, Arc<System>>,
    /// The files that are being read. Each is included by the one before it.
    inside: Vec<PathBuf>,
    files: Vec<Arc<Identity>>,
}

impl<'a> Reader<'a> {
    fn new(reading: &'a Reading) -> Self {
        Self {
            reading,
            labels: Labels::default(),
            components: Vec::new(),
            tables: HashMap::new(),
            inside: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Reads the rules of a text; `path` is its file.
    fn text(&mut self, source: &Source, path: &Path) -> Result<Vec<Step>> {
        let text = grammar::parse(&source.text).map_err(|error| Box::new(error.of(source)))?;
        let whole = parts(text).next().expect("a network is an expression");
        self.expression(whole, At::new(source, path))
    }

    fn composition(&mut self) -> Composition<'_> {
        Composition { labels: &mut self.labels, interleaved: &self.reading.interleaved, independent: self.reading.independent }
    }

    /// Reads an expression. All operators are right-associative.
    fn expression(&mut self, pair: Pair, at: At) -> Result<Vec<Step>> {
        let at = at.inside(&pair)?;
        let (mut units, mut operators) = (Vec::new(), Vec::new());
        for part in parts(pair) {
            match part.as_rule() {
                Rule::unit => units.push(self.unit(part, at)?),
                _ => operators.push(part),
            }
        }
        let mut right = units.pop().expect("an expression has a unit");
        while let (Some(left), Some(operator)) = (units.pop(), operators.pop()) {
            let gates: HashSet<String> = parts(operator.clone()).map(|label| label_text(&label)).collect();
            let together = || Meeting::Together { parts: vec![0, 1], counts: vec![2] };
            let meeting = |label: &str| match operator.as_rule() {
                Rule::interleaving => Meeting::Alone,
                Rule::parallel => together(),
                _ if gates.contains(labels::gate_and_offers(label).0) => together(),
                _ => Meeting::Alone,
            };
            right = if operator.as_rule() == Rule::interleaving {
                let mut all = left;
                all.extend(right);
                all
            } else {
                self.composition().parallel(vec![left, right], meeting).map_err(|_| at.too_many(&operator))?
            };
        }
        Ok(right)
    }

    fn unit(&mut self, pair: Pair, at: At) -> Result<Vec<Step>> {
        let inner = parts(pair).next().expect("a unit is not empty");
        match inner.as_rule() {
            Rule::expression => self.expression(inner, at),
            Rule::hide | Rule::cut => self.hide_or_cut(inner, at),
            Rule::rename => self.rename(inner, at),
            Rule::par => self.par(inner, at),
            _ => self.file(&inner, at),
        }
    }

    fn hide_or_cut(&mut self, pair: Pair, at: At) -> Result<Vec<Step>> {
        let at = at.inside(&pair)?;
        let hides = pair.as_rule() == Rule::hide;
        let (mut mode, mut all_but, mut patterns, mut rules) = (Mode::Gate, false, Vec::new(), Vec::new());
        for part in parts(pair) {
            match part.as_rule() {
                Rule::mode => mode = mode_of(part),
                Rule::set => {
                    for label in parts(part) {
                        match label.as_rule() {
                            Rule::all_but => all_but = true,
                            _ => patterns.push(at.pattern(&label, mode)?),
                        }
                    }
                }
                _ => rules = self.expression(part, at)?,
            }
        }
        if hides {
            self.composition().hide(&mut rules, &patterns, all_but);
        } else {
            self.composition().cut(&mut rules, &patterns, all_but);
        }
        Ok(rules)
    }

    fn rename(&mut self, pair: Pair, at: At) -> Result<Vec<Step>> {
        let at = at.inside(&pair)?;
        let (mut mode, mut pairs, mut rules) = (Mode::Gate, Vec::new(), Vec::new());
        for part in parts(pair) {
            match part.as_rule() {
                Rule::mode => mode = mode_of(part),
                Rule::pair => {
                    let labels: Vec<Pair> = parts(part).collect();
                    pairs.push((at.pattern(&labels[0], mode)?, label_text(&labels[1])));
                }
                _ => rules = self.expression(part, at)?,
            }
        }
        self.composition().rename(&mut rules, &pairs);
        Ok(rules)
    }

    fn par(&mut self, pair: Pair, at: At) -> Result<Vec<Step>> {
        let at = at.inside(&pair)?;
        let mut by_gate = true;
        let mut inner = parts(pair);
        let mut next = inner.next().expect("par has parts");
        if next.as_rule() == Rule::par_mode {
            by_gate = parts(next).next().is_some_and(|mode| mode.as_rule() == Rule::gate_mode);
            next = inner.next().expect("par has parts");
        }
        match next.as_rule() {
            Rule::using => self.using(next, by_gate, at),
            _ => self.gates(next, by_gate, at),
        }
    }

    /// Reads `par G, H#2 in ...`, with interfaces.
    fn gates(&mut self, pair: Pair, by_gate: bool, at: At) -> Result<Vec<Step>> {
        let whole = pair.clone();
        let (mut all, mut global) = (false, Vec::new());
        let (mut interfaces, mut units) = (Vec::new(), Vec::new());
        for part in parts(pair) {
            match part.as_rule() {
                Rule::global => {
                    for sync in part.into_inner() {
                        match sync.as_rule() {
                            Rule::kw_all => all = true,
                            _ => global.push(sync),
                        }
                    }
                }
                _ => {
                    let mut interface: HashSet<String> = HashSet::new();
                    for part in parts(part) {
                        match part.as_rule() {
                            Rule::interface => interface = parts(part).map(|label| label_text(&label)).collect(),
                            _ => units.push(self.unit(part, at)?),
                        }
                    }
                    interfaces.push(interface);
                }
            }
        }
        // By gate, how many components synchronise; `None` if all do.
        let mut counts: HashMap<String, BTreeSet<Option<usize>>> = HashMap::new();
        for sync in global {
            let mut parts = sync.clone().into_inner();
            let label = label_text(&parts.next().expect("a gate has a name"));
            let count = parts.next().map(|number| number.as_str().parse::<usize>().unwrap_or(usize::MAX));
            if count.is_some_and(|count| count < 2 || count > units.len()) {
                let message = format!("{label}#{} among {} components", count.unwrap_or(0), units.len());
                return Err(at.error(span(&sync), message, "between 2 and all of the components can synchronize"));
            }
            counts.entry(label).or_default().insert(count);
        }
        let meeting = |label: &str| {
            let name = if by_gate { labels::gate_and_offers(label).0 } else { label };
            let has = |unit: &usize| interfaces[*unit].contains(name);
            let everybody = 0..interfaces.len();
            let with: Vec<usize> = everybody.clone().filter(has).collect();
            let is_in_interfaces = !with.is_empty();
            let parts = if is_in_interfaces { with } else { everybody.collect() };
            match counts.get(name) {
                Some(counts) => {
                    let counts: BTreeSet<usize> = counts.iter().map(|count| count.unwrap_or(parts.len())).collect();
                    Meeting::Together { counts: counts.into_iter().collect(), parts }
                }
                None if all || is_in_interfaces => Meeting::Together { counts: vec![parts.len()], parts },
                None => Meeting::Alone,
            }
        };
        self.composition().parallel(units, meeting).map_err(|_| at.too_many(&whole))
    }

    /// Reads `par using A * _ -> B, ... in ...`.
    fn using(&mut self, pair: Pair, by_gate: bool, at: At) -> Result<Vec<Step>> {
        let whole = pair.clone();
        let (mut vectors, mut units) = (Vec::new(), Vec::new());
        for part in parts(pair) {
            match part.as_rule() {
                Rule::vector => vectors.push(part),
                _ => units.push(self.unit(part, at)?),
            }
        }
        let vectors = vectors.into_iter().map(|vector| {
            let at_vector = span(&vector);
            let mut elements: Vec<Option<String>> = Vec::new();
            let mut result = String::new();
            for part in parts(vector) {
                match part.as_rule() {
                    Rule::element => elements.push(match parts(part).next() {
                        Some(label) if label.as_rule() != Rule::nobody => Some(unquoted(label.as_str())),
                        _ => None,
                    }),
                    _ => result = label_text(&part),
                }
            }
            if elements.len() != units.len() {
                let message = format!("a vector with {} places for {} components", elements.len(), units.len());
                return Err(at.error(at_vector, message, "each component has a place; `_` if it does not move"));
            }
            if elements.iter().all(Option::is_none) {
                return Err(at.error(at_vector, "a vector in which no component moves", "at least one component must move"));
            }
            Ok(Vector { elements, result })
        });
        let vectors: Vec<Vector> = vectors.collect::<Result<_>>()?;
        self.composition().vectors(&units, &vectors, by_gate).map_err(|_| at.too_many(&whole))
    }

    /// Reads the file with a name: a transition system, or a network, which is included at that place.
    fn file(&mut self, pair: &Pair, at: At) -> Result<Vec<Step>> {
        let name = unquoted(pair.as_str().trim_end());
        let place = |error: anyhow::Error| at.error(span(pair), format!("{error:#}"), "needed here");
        let extension = Path::new(&name).extension().and_then(|extension| extension.to_str()).unwrap_or("");
        let name = match extension {
            "aut" | "exp" => name,
            "" => format!("{name}.aut"),
            other => {
                let message = format!("files with the extension `.{other}` are not supported");
                return Err(at.error(span(pair), message, "supported are .aut and .exp"));
            }
        };
        let path = found(at.path, &name).map_err(place)?;
        let path = path.canonicalize().with_context(|| format!("{} cannot be read", path.display())).map_err(place)?;
        if path.extension().is_some_and(|extension| extension == "exp") || name.ends_with(".exp") {
            if self.inside.contains(&path) || self.inside.len() >= MAX_FILES_IN_EACH_OTHER {
                let message = format!("`{name}` includes itself, or more than {MAX_FILES_IN_EACH_OTHER} files are nested");
                return Err(at.error(span(pair), message, "included again here"));
            }
            let open = || {
                let file = File::open(&path)?;
                self.files.push(Arc::new(Identity::from_file(file.try_clone()?)?));
                let mut file = file.take(MAX_BYTES + 1);
                Ok::<_, anyhow::Error>((Source::read(name_of(at.path, &name), &mut file)?, file.limit()))
            };
            let (source, left) = { open }().with_context(|| format!("{} cannot be read", path.display())).map_err(place)?;
            if left == 0 {
                return Err(at.error(span(pair), format!("`{name}` has more than {MAX_BYTES} bytes"), "needed here"));
            }
            self.inside.push(path.clone());
            let rules = self.text(&source, &path)?;
            self.inside.pop();
            return Ok(rules);
        }
        if self.components.len() >= MAX_COMPONENTS {
            return Err(at.error(span(pair), format!("more than {MAX_COMPONENTS} components"), "one too many"));
        }
        let system = match self.tables.get(&path) {
            Some(system) => system.clone(),
            None => {
                let file = File::open(&path).with_context(|| format!("{} cannot be read", path.display())).map_err(place)?;
                let bytes = file.metadata().ok().filter(|metadata| metadata.is_file()).map(|metadata| metadata.len());
                self.files.push(Arc::new(Identity::from_file(file.try_clone()?)?));
                let system = aut::read(&name_of(at.path, &name), file, bytes).and_then(|aut| self.system(aut));
                let system = Arc::new(system?);
                self.tables.insert(path.clone(), system.clone());
                system
            }
        };
        Ok(self.leaf(&path, &system))
    }

    fn system(&mut self, aut: aut::Aut) -> Result<System> {
        let labels = aut.labels.iter().map(|label| self.labels.try_number(label)).collect::<Result<_>>()?;
        Ok(System { table: Arc::new(aut.table), labels })
    }

    /// Adds a component, and returns a rule for each of its labels.
    fn leaf(&mut self, path: &Path, System { table, labels }: &System) -> Vec<Step> {
        let component = self.component(path, table.clone());
        let rule = |(own, label): (usize, &u32)| Step { label: *label as usize, parts: [(component, own as u32)].into() };
        labels.iter().enumerate().map(rule).collect()
    }

    /// Adds a component named after its file. Returns its number.
    fn component(&mut self, path: &Path, table: Arc<Table>) -> u32 {
        // Standard input has no file name.
        let stem = path.file_stem().map_or_else(|| "lts".into(), |stem| stem.to_string_lossy().into_owned());
        self.components.push((identifier(&stem), table));
        self.components.len() as u32 - 1
    }

    /// Builds the model of the network from all components.
    fn finish(self, source: Source, network: impl FnOnce(Vec<Component>) -> Option<Network>) -> Result<Networks> {
        let Self { components, files, .. } = self;
        let mut names = Names::default();
        let mut variables = Vec::new();
        for (name, (_, table)) in unique(components.iter().map(|(name, _)| name)).into_iter().zip(&components) {
            let _ = names.globals.declare(&name, Meaning::Variable(variables.len()), Span::default());
            variables.push(Variable::new(name, None, Type { bits: 31, signed: false }, false, vec![table.initial as i32]));
        }
        let components = components.into_iter().enumerate();
        let components = components.map(|(variable, (_, table))| Component { variable, table }).collect();
        let network = network(components);
        let network =
            network.ok_or_else(|| anyhow!("{}: a state may have more than 2^32 steps, which is not supported", source.name))?;
        names.labels = network.labels.clone();
        let model = assembled(Parts { variables, network: Some(network), ..Parts::default() }, &source);
        let model = model.map_err(|error| anyhow!("{}: {}: {}", source.name, error.message, error.label))?;
        Ok(Networks { model, names, files, missing_gates: Vec::new() })
    }
}

/// Renumbers the labels so that only labels of rules remain. Returns the texts of these labels.
fn only_used(rules: &mut [Step], labels: Labels) -> Texts {
    const NONE: u32 = u32::MAX;
    let (mut used, mut numbers) = (Vec::new(), vec![NONE; labels.len()]);
    for rule in rules {
        let number = &mut numbers[rule.label];
        if *number == NONE {
            *number = used.len() as u32;
            used.push(rule.label as u32);
        }
        rule.label = *number as usize;
    }
    used.into_iter().map(|label| labels.text(label)).collect()
}

fn mode_of(pair: Pair) -> Mode {
    match parts(pair).next().map(|mode| mode.as_rule()) {
        Some(Rule::total_mode) => Mode::Total,
        Some(Rule::partial_mode) => Mode::Partial,
        _ => Mode::Gate,
    }
}

fn label_text(pair: &Pair) -> String {
    unquoted(pair.as_str().trim_end())
}

fn unquoted(text: &str) -> String {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).to_string()
}
