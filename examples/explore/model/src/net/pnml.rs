//! Reads place/transition nets in PNML (ISO/IEC 15909-2): the XML text becomes places, transitions and units, with all references
//! resolved.

use super::xml::{attribute, elements, kind, only_of, shown, text_in};
use crate::constants::Constants;
use crate::diagnostic::Diagnostic;
use crate::ir::net::{PlaceId, Transition};
use crate::ir::{Constant, Ignored, Source, Span};
use roxmltree::{Document, Node, ParsingOptions};
use std::collections::HashMap;

/// Limit of the tokens of a place, and of the weight of an arc.
const MOST_TOKENS: u64 = i32::MAX as u64;

/// The net of a file.
#[derive(Debug, Default)]
pub struct Pnml {
    pub places: Vec<Place>,
    pub transitions: Vec<Transition>,
    pub arcs: usize,
    /// The units of the NUPN tool section, if the section says that the net is safe.
    pub units: Vec<Unit>,
    pub names: Names,
    /// Parts of the file that do not change what the net does, ordered by the first appearance of their kinds.
    pub ignored: Vec<Ignored>,
    /// The places whose initial marking the user has changed.
    pub constants: Vec<Constant>,
}

#[derive(Debug)]
pub struct Place {
    pub id: String,
    pub span: Span,
    pub initial: u32,
}

/// A unit of a nested-unit Petri net: at most one of its own places is marked.
#[derive(Debug)]
pub struct Unit {
    pub name: String,
    pub places: Vec<PlaceId>,
}

/// The identifiers of a net's elements, and the names that only one element has.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub places: Index,
    pub transitions: Index,
    /// Whether the initial marking enables no transition.
    pub begins_in_deadlock: bool,
}

/// Elements of one kind, by identifier and by name.
#[derive(Clone, Debug, Default)]
pub struct Index {
    of_ids: HashMap<String, usize>,
    /// Elements by the identifier of a reference to them.
    of_references: HashMap<String, usize>,
    /// Elements by name; `None` if several elements have the name.
    of_names: HashMap<String, Option<usize>>,
}

impl Index {
    /// Returns the element with this identifier, or the element to which a reference with this identifier leads, or else the only
    /// element with this name.
    pub fn get(&self, name: &str) -> Option<usize> {
        let by_id = self.of_ids.get(name).or_else(|| self.of_references.get(name)).copied();
        by_id.or_else(|| self.of_names.get(name).copied().flatten())
    }

    /// The element with this identifier.
    pub fn of_id(&self, id: &str) -> Option<usize> {
        self.of_ids.get(id).copied()
    }

    /// Whether several elements have this name, and no element has it as its identifier.
    pub fn is_ambiguous(&self, name: &str) -> bool {
        self.get(name).is_none() && matches!(self.of_names.get(name), Some(None))
    }

    /// All identifiers, in alphabetical order.
    pub fn ids(&self) -> Vec<&str> {
        let mut ids: Vec<&str> = self.of_ids.keys().map(String::as_str).collect();
        ids.sort_unstable();
        ids
    }

    fn name(&mut self, name: Option<String>, of: usize) {
        if let Some(name) = name {
            self.of_names.entry(name).and_modify(|known| *known = known.filter(|known| *known == of)).or_insert(Some(of));
        }
    }
}

/// Reads the net of a PNML file.
///
/// # Errors
///
/// The text has an error. The first error is returned, with its place.
pub fn read(source: &Source) -> Result<Pnml, Diagnostic> {
    let text = &*source.text;
    let lines = Lines::of(text);
    let options = ParsingOptions { allow_dtd: false, nodes_limit: u32::MAX, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let at = lines.at(error.pos().row, error.pos().col);
        Diagnostic::new(at, "this is no XML that can be read", error.to_string())
    })?;
    let root = document.root_element();
    let mut reader = Reader::new(&lines);
    if kind(root) != "pnml" {
        let message = format!("the file begins with `{}`", kind(root));
        return Err(Diagnostic::new(reader.span(root), message, "a PNML file begins with `pnml`"));
    }
    let mut net = None;
    for child in elements(root) {
        match kind(child) {
            "net" if net.is_some() => {
                return Err(Diagnostic::new(reader.span(child), "a second net", "only files with one net are read"));
            }
            "net" => net = Some(child),
            "name" => {}
            "toolspecific" => reader.ignore_tool(child),
            _ => return Err(reader.unknown(child)),
        }
    }
    let net = net.ok_or_else(|| Diagnostic::new(reader.span(root), "no net", "a `net` is needed in here"))?;
    reader.ensure_kind(net)?;
    reader.container(net, 0)?;
    reader.finish()
}

/// Byte offsets of the starts of lines, for finding the line and column of an offset.
pub struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub fn of(text: &'t str) -> Self {
        let starts = std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
        Self { text, starts: starts.collect() }
    }

    fn span(&self, start: usize, end: usize) -> Span {
        let line = self.starts.partition_point(|first| *first <= start);
        let before = &self.text[self.starts[line - 1]..start];
        // Count bytes in a long line: the whole text may be one line, and counting characters from its start for each place would
        // take quadratic time.
        let column = if before.len() > 10_000 { before.len() } else { before.chars().count() };
        Span { start: start as u32, end: end as u32, line: line as u32, column: 1 + column as u32 }
    }

    /// The span of an element's start tag.
    pub fn tag(&self, node: Node) -> Span {
        let range = node.range();
        let text = &self.text[range.clone()];
        let first = text.find('>').map_or(text.len(), |at| at + 1);
        self.span(range.start, range.start + first)
    }

    /// Span of the character at a line and column, both counted from 1.
    pub fn at(&self, line: u32, column: u32) -> Span {
        let first = self.starts.get(line.saturating_sub(1) as usize).copied().unwrap_or(0);
        let rest = &self.text[first..];
        let before: usize = rest.chars().take(column.saturating_sub(1) as usize).map(char::len_utf8).sum();
        let start = first + before;
        let length = self.text[start..].chars().next().map_or(0, char::len_utf8);
        self.span(start, start + length)
    }
}

/// Limit of the nesting of pages.
const MAX_PAGES: usize = 100;

/// Last parts of the names of types of place/transition nets: of the standard; of its drafts (`ptNetb`); of tools that write the
/// core model's type although their nets have the markings and inscriptions of place/transition nets; of EPNML (Yasper).
const KINDS: [&str; 4] = ["ptnet", "ptnetb", "pnmlcoremodel", "epnml-1.1"];

struct Reader<'t, 'd> {
    lines: &'t Lines<'t>,
    pnml: Pnml,
    /// By the identifier of a reference, the reference and the identifier that it refers to.
    place_references: HashMap<&'d str, (Node<'d, 'd>, &'d str)>,
    transition_references: HashMap<&'d str, (Node<'d, 'd>, &'d str)>,
    arcs: Vec<Node<'d, 'd>>,
    tools: Vec<Node<'d, 'd>>,
    /// PIPE's urgency of the first transition. All other transitions must have the same urgency.
    urgency: Option<Urgency>,
}

/// PIPE's rule for choosing among enabled transitions.
#[derive(Clone, Copy)]
struct Urgency {
    is_timed: bool,
    priority: u32,
}

impl Default for Urgency {
    fn default() -> Self {
        Self { is_timed: false, priority: 1 }
    }
}

impl<'t, 'd> Reader<'t, 'd> {
    fn new(lines: &'t Lines<'t>) -> Self {
        let (place_references, transition_references) = (HashMap::new(), HashMap::new());
        Self {
            lines,
            pnml: Pnml::default(),
            place_references,
            transition_references,
            arcs: Vec::new(),
            tools: Vec::new(),
            urgency: None,
        }
    }

    fn span(&self, node: Node) -> Span {
        self.lines.tag(node)
    }

    fn unknown(&self, node: Node) -> Diagnostic {
        let message = format!("{} is no part of a place/transition net that is read", shown(node));
        Diagnostic::new(self.span(node), message, "nets with it are refused, because it may change what the net does")
    }

    fn ensure_kind(&self, net: Node) -> Result<(), Diagnostic> {
        let kind = attribute(net, "type").unwrap_or("");
        let last = kind.rsplit('/').next().unwrap_or("");
        if KINDS.iter().any(|kind| last.eq_ignore_ascii_case(kind)) || kind == "P/T net" {
            return Ok(());
        }
        let message = if kind.is_empty() { "a net without a type".into() } else { format!("a net of the type `{kind}`") };
        Err(Diagnostic::new(self.span(net), message, "only place/transition nets (`ptnet`) are read"))
    }

    fn id(&self, node: Node<'d, 'd>) -> Result<&'d str, Diagnostic> {
        let name = kind(node);
        attribute(node, "id").ok_or_else(|| Diagnostic::new(self.span(node), format!("`{name}` without `id`"), "it is needed"))
    }

    /// Reads the elements of a net or of a page.
    fn container(&mut self, node: Node<'d, 'd>, depth: usize) -> Result<(), Diagnostic> {
        if depth > MAX_PAGES {
            let message = format!("more than {MAX_PAGES} pages in each other");
            return Err(Diagnostic::new(self.span(node), message, "the net is too deep"));
        }
        for child in elements(node) {
            match kind(child) {
                "page" => self.container(child, depth + 1)?,
                "place" => self.place(child)?,
                "transition" => self.transition(child)?,
                "arc" => self.arcs.push(child),
                "referencePlace" | "referenceTransition" => self.reference(child)?,
                "toolspecific" => self.tools.push(child),
                // Final markings, from process mining, say what should be reached. PIPE writes notes, and the only kind of tokens
                // that it has.
                "name" | "graphics" => {}
                "finalmarkings" => self.ignore("final markings"),
                "labels" => self.ignore("notes"),
                "token" if attribute(child, "id") == Some("Default") => {}
                _ => return Err(self.unknown(child)),
            }
        }
        Ok(())
    }

    fn place(&mut self, node: Node<'d, 'd>) -> Result<(), Diagnostic> {
        let (id, span) = (self.id(node)?, self.span(node));
        let mut initial = None;
        let mut name = None;
        for child in elements(node) {
            match kind(child) {
                "initialMarking" if initial.is_some() => {
                    return Err(Diagnostic::new(self.span(child), "a second initial marking", "a place has one"));
                }
                "initialMarking" => initial = Some(self.number(child, "a number of tokens", 0, 0)?),
                "name" => name = text_of(child),
                "graphics" => {}
                "toolspecific" => self.ignore_tool(child),
                // PIPE writes 0 for a place without a limit.
                "capacity" if elements(child).all(|value| kind(value) == "value") => {
                    let capacity = self.number(child, "a capacity", 0, 0)?;
                    if capacity > 0 {
                        let message = format!("a capacity of {capacity}");
                        return Err(Diagnostic::new(self.span(child), message, "only places without capacities are read"));
                    }
                }
                _ => return Err(self.unknown(child)),
            }
        }
        let number = self.pnml.places.len();
        let places = &mut self.pnml.names.places;
        places.name(name, number);
        if let Some(before) = places.of_ids.insert(id.into(), number) {
            let before = self.pnml.places.get(before).map_or(span, |place| place.span);
            return Err(twice(span, before, "place", id));
        }
        self.pnml.places.push(Place { id: id.into(), span, initial: initial.unwrap_or(0) });
        Ok(())
    }

    fn transition(&mut self, node: Node<'d, 'd>) -> Result<(), Diagnostic> {
        let (id, span) = (self.id(node)?, self.span(node));
        let mut name = None;
        let mut urgency = Urgency::default();
        for child in elements(node) {
            match kind(child) {
                "name" => name = text_of(child),
                // Rates, servers and pictures do not change which transitions can fire.
                "graphics" | "orientation" => {}
                "toolspecific" => self.ignore_tool(child),
                "rate" => self.ignore("rates of transitions"),
                "infiniteServer" => self.ignore("servers of transitions"),
                "timed" if elements(child).any(|value| kind(value) == "value" && text_in(value).trim() == "true") => {
                    urgency.is_timed = true;
                    self.ignore("timing of transitions");
                }
                "timed" => {}
                "priority" if elements(child).all(|value| kind(value) == "value") => {
                    urgency.priority = self.number(child, "a priority", 0, 1)?;
                }
                _ => return Err(self.unknown(child)),
            }
        }
        match self.urgency {
            Some(first) if first.is_timed != urgency.is_timed => {
                let message = "timed transitions and immediate transitions, which fire first";
                return Err(Diagnostic::new(span, message, "only nets whose transitions are all of one kind are read"));
            }
            Some(first) if first.priority != urgency.priority => {
                let message = format!("transitions with the priorities {} and {}", first.priority, urgency.priority);
                return Err(Diagnostic::new(span, message, "only nets without priorities are read"));
            }
            _ => self.urgency = Some(urgency),
        }
        let number = self.pnml.transitions.len();
        let transitions = &mut self.pnml.names.transitions;
        transitions.name(name, number);
        if let Some(before) = transitions.of_ids.insert(id.into(), number) {
            let before = self.pnml.transitions.get(before).map_or(span, |transition| transition.span);
            return Err(twice(span, before, "transition", id));
        }
        self.pnml.transitions.push(Transition { name: id.into(), span, takes: Vec::new(), puts: Vec::new() });
        Ok(())
    }

    /// Counts a part that is ignored.
    fn ignore(&mut self, what: impl Into<String>) {
        let what = what.into();
        match self.pnml.ignored.iter_mut().find(|known| known.what == what) {
            Some(known) => known.count += 1,
            None => self.pnml.ignored.push(Ignored { what, count: 1 }),
        }
    }

    /// Counts a part that only a tool understands.
    fn ignore_tool(&mut self, node: Node) {
        match attribute(node, "tool") {
            Some(tool) => self.ignore(format!("parts of the tool {tool}")),
            None => self.ignore("parts of an unnamed tool"),
        }
    }

    fn reference(&mut self, node: Node<'d, 'd>) -> Result<(), Diagnostic> {
        let id = self.id(node)?;
        let name = kind(node);
        let Some(to) = attribute(node, "ref") else {
            return Err(Diagnostic::new(self.span(node), format!("`{name}` without `ref`"), "it is needed"));
        };
        let all = if name == "referencePlace" { &mut self.place_references } else { &mut self.transition_references };
        match all.insert(id, (node, to)) {
            Some((before, _)) => Err(twice(self.span(node), self.span(before), "reference", id)),
            None => Ok(()),
        }
    }

    /// Returns the number in the text of an annotation, which must be at least `least`. Returns `default` if the annotation has
    /// no text.
    fn number(&mut self, node: Node<'d, 'd>, what: &str, least: u64, default: u32) -> Result<u32, Diagnostic> {
        elements(node).filter(|child| kind(*child) == "toolspecific").for_each(|tool| self.ignore_tool(tool));
        let only = |name: &str| only_of(node, name, |node| self.span(node));
        // PIPE writes `value` instead of `text`, and puts the name of its only kind of tokens before the number.
        let (text, value) = (only("text")?.map(text_in), only("value")?.map(text_in));
        let text = match (&text, &value) {
            (Some(text), None) => text.trim(),
            (None, Some(value)) => value.trim().strip_prefix("Default,").unwrap_or(value).trim(),
            (None, None) => "",
            (Some(_), Some(_)) => {
                return Err(Diagnostic::new(self.span(node), "a `text` and a `value`", "it is not clear which one is meant"));
            }
        };
        if text.is_empty() {
            self.ignore(format!("annotations `{}` without a number, which are {default}", kind(node)));
            return Ok(default);
        }
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let number: Option<u64> = if is_number { Some(text.parse().unwrap_or(u64::MAX)) } else { None };
        match number {
            Some(number) if number >= least && number <= MOST_TOKENS => Ok(number as u32),
            Some(number) if number >= least => {
                let message = format!("{text} is {what} that is too large");
                Err(Diagnostic::new(self.span(node), message, format!("numbers go up to {MOST_TOKENS}")))
            }
            _ => Err(Diagnostic::new(self.span(node), format!("`{text}` is not {what}"), format!("numbers begin with {least}"))),
        }
    }

    /// Returns the element that an identifier names, directly or by references.
    fn resolved(
        &self,
        id: &'d str,
        of: &Index,
        references: &HashMap<&'d str, (Node<'d, 'd>, &'d str)>,
    ) -> Result<Option<usize>, Diagnostic> {
        let mut at = id;
        for _ in 0..=references.len() {
            match (of.of_id(at), references.get(at)) {
                (Some(number), _) => return Ok(Some(number)),
                (None, Some((_, to))) => at = to,
                (None, None) if at == id => return Ok(None),
                (None, None) => {
                    let node = references[id].0;
                    let message = format!("the reference `{id}` leads to `{at}`, which does not exist");
                    return Err(Diagnostic::new(self.span(node), message, "a broken reference"));
                }
            }
        }
        let node = references[id].0;
        Err(Diagnostic::new(self.span(node), format!("the reference `{id}` leads back to itself"), "a circle of references"))
    }

    fn arc(&mut self, node: Node<'d, 'd>) -> Result<(), Diagnostic> {
        let mut weight = None;
        for child in elements(node) {
            match kind(child) {
                "inscription" if weight.is_some() => {
                    return Err(Diagnostic::new(self.span(child), "a second inscription", "an arc has one weight"));
                }
                "inscription" => weight = Some(self.number(child, "the weight of an arc", 1, 1)?),
                "name" | "graphics" | "arcpath" => {}
                "toolspecific" => self.ignore_tool(child),
                "type" | "arctype" => {
                    let kind = attribute(child, "value").map(String::from).or_else(|| text_of(child)).unwrap_or_default();
                    if kind.trim() != "normal" {
                        let message = format!("an arc of the kind `{}`", kind.trim());
                        return Err(Diagnostic::new(self.span(child), message, "only ordinary arcs are read"));
                    }
                }
                _ => return Err(self.unknown(child)),
            }
        }
        if let Some(kind) = attribute(node, "type").filter(|kind| *kind != "normal") {
            return Err(Diagnostic::new(self.span(node), format!("an arc of the kind `{kind}`"), "only ordinary arcs are read"));
        }
        let weight = weight.unwrap_or(1);
        let end = |name: &str| {
            attribute(node, name)
                .ok_or_else(|| Diagnostic::new(self.span(node), format!("an arc without `{name}`"), "it is needed"))
        };
        let (source, target) = (end("source")?, end("target")?);
        let names = &self.pnml.names;
        let place = |id| self.resolved(id, &names.places, &self.place_references);
        let transition = |id| self.resolved(id, &names.transitions, &self.transition_references);
        let (from_place, from_transition) = (place(source)?, transition(source)?);
        let (to_place, to_transition) = (place(target)?, transition(target)?);
        for (id, is_known) in
            [(source, from_place.is_some() || from_transition.is_some()), (target, to_place.is_some() || to_transition.is_some())]
        {
            if !is_known {
                let message = format!("there is no place and no transition `{id}`");
                return Err(Diagnostic::new(self.span(node), message, "this arc needs it"));
            }
        }
        let (takes, puts) = (from_place.zip(to_transition), from_transition.zip(to_place));
        let (transition, place, is_taken) = match (takes, puts) {
            (Some(_), Some(_)) => {
                let message = format!("`{source}` and `{target}` are both a place and a transition");
                return Err(Diagnostic::new(self.span(node), message, "it is not clear which way this arc goes"));
            }
            (Some((place, transition)), None) => (transition, place, true),
            (None, Some((transition, place))) => (transition, place, false),
            (None, None) => {
                let kind = if from_place.is_some() { "two places" } else { "two transitions" };
                let message = format!("the arc from `{source}` to `{target}` is between {kind}");
                return Err(Diagnostic::new(self.span(node), message, "an arc joins a place and a transition"));
            }
        };
        let transition = &mut self.pnml.transitions[transition];
        let list = if is_taken { &mut transition.takes } else { &mut transition.puts };
        list.push((place, weight));
        self.pnml.arcs += 1;
        Ok(())
    }

    /// Reads the units of a NUPN section.
    fn units(&mut self, tool: Node<'d, 'd>) -> Result<(), Diagnostic> {
        for structure in elements(tool).filter(|node| kind(*node) == "structure") {
            if attribute(structure, "safe") != Some("true") {
                continue;
            }
            for unit in elements(structure).filter(|node| kind(*node) == "unit") {
                let mut places = Vec::new();
                for list in elements(unit).filter(|node| kind(*node) == "places") {
                    for id in text_in(list).split_ascii_whitespace() {
                        let place = self.pnml.names.places.of_id(id);
                        places.push(place.ok_or_else(|| {
                            Diagnostic::new(self.span(unit), format!("the unit has a place `{id}`"), "there is no such place")
                        })?);
                    }
                }
                let name = attribute(unit, "id").unwrap_or("unit").into();
                self.pnml.units.push(Unit { name, places });
            }
        }
        Ok(())
    }

    /// Lets the identifiers and names of references also name the elements that the references lead to.
    fn name_references(&mut self) -> Result<(), Diagnostic> {
        let mut names = std::mem::take(&mut self.pnml.names);
        let lists = [(&self.place_references, &mut names.places), (&self.transition_references, &mut names.transitions)];
        for (references, index) in lists {
            for (id, (node, _)) in references {
                if let Some(number) = self.resolved(id, index, references)? {
                    index.of_references.insert((*id).into(), number);
                    let name = elements(*node).find(|child| kind(*child) == "name").and_then(text_of);
                    index.name(name, number);
                }
            }
        }
        self.pnml.names = names;
        Ok(())
    }

    fn finish(mut self) -> Result<Pnml, Diagnostic> {
        for id in self.place_references.keys() {
            if self.resolved(id, &self.pnml.names.places, &self.place_references)?.is_none() {
                let span = self.span(self.place_references[id].0);
                return Err(Diagnostic::new(span, format!("the reference `{id}` leads nowhere"), "a broken reference"));
            }
        }
        for id in self.transition_references.keys() {
            self.resolved(id, &self.pnml.names.transitions, &self.transition_references)?;
        }
        self.name_references()?;
        for arc in std::mem::take(&mut self.arcs) {
            self.arc(arc)?;
        }
        for tool in std::mem::take(&mut self.tools) {
            if attribute(tool, "tool") == Some("nupn") {
                self.units(tool)?;
            } else {
                self.ignore_tool(tool);
            }
        }
        for Transition { takes, puts, name, span } in &mut self.pnml.transitions {
            for list in [takes, puts] {
                *list = summed(std::mem::take(list)).ok_or_else(|| {
                    let message = format!("arcs of `{name}` to one place weigh too much together");
                    Diagnostic::new(*span, message, format!("{MOST_TOKENS} are possible"))
                })?;
            }
        }
        self.pnml.look_at_first_marking();
        Ok(self.pnml)
    }
}

impl Pnml {
    fn look_at_first_marking(&mut self) {
        let places = &self.places;
        let is_enabled =
            |transition: &Transition| transition.takes.iter().all(|(place, weight)| places[*place].initial >= *weight);
        self.names.begins_in_deadlock = !self.transitions.iter().any(is_enabled);
    }

    /// Changes the initial marking of some places.
    ///
    /// # Errors
    ///
    /// A name belongs to no place, a place is named twice, or a number of tokens is not possible.
    pub fn mark(&mut self, constants: &Constants) -> Result<(), Diagnostic> {
        let mut marked = HashMap::new();
        for Constant { name, value } in constants.list() {
            let Some(id) = self.names.places.get(name) else {
                let known: Vec<&str> = self.places.iter().map(|place| &*place.id).collect();
                return constants.ensure_are_among("place", &known);
            };
            let place = &mut self.places[id];
            if let Some(before) = marked.insert(id, name) {
                let message = format!("--const: `{before}` and `{name}` are one place");
                return Err(Diagnostic::new(place.span, message, "it has one initial marking"));
            }
            place.initial = u32::try_from(*value).map_err(|_| {
                let label = format!("0 to {MOST_TOKENS} tokens are possible");
                Diagnostic::new(place.span, format!("--const {name}={value} does not fit"), label)
            })?;
        }
        self.constants = constants.list().to_vec();
        self.look_at_first_marking();
        Ok(())
    }
}

/// Joins the arcs of each place into one whose weight is the sum of their weights; ascending by place. `None` if a sum is too
/// large.
fn summed(mut arcs: Vec<(PlaceId, u32)>) -> Option<Vec<(PlaceId, u32)>> {
    arcs.sort_unstable();
    let of_place = arcs.chunk_by(|one, other| one.0 == other.0).map(|arcs| {
        let sum: u64 = arcs.iter().map(|(_, weight)| u64::from(*weight)).sum();
        (sum <= MOST_TOKENS).then_some((arcs[0].0, sum as u32))
    });
    of_place.collect()
}

/// The text of a name: the content of its first element `text`.
fn text_of(node: Node) -> Option<String> {
    elements(node).find(|child| kind(*child) == "text").map(text_in)
}

fn twice(span: Span, before: Span, what: &str, id: &str) -> Diagnostic {
    Diagnostic::new(span, format!("a second {what} `{id}`"), "identifiers are unique").with_related(before, "this is the first")
}
