//! Names in XML. An element or attribute of a foreign namespace never counts as an element or attribute of PNML, or of the
//! property format, even if its local name is the same.

use crate::diagnostic::Diagnostic;
use crate::ir::Span;
use roxmltree::Node;

/// The kind of elements of foreign namespaces. No XML name contains these characters.
const FOREIGN: &str = "(other)";

/// Returns the name of an element in the namespace of the file's first element or in no namespace, as some tools write; returns
/// `FOREIGN` for any other element.
pub fn kind<'a>(node: Node<'a, '_>) -> &'a str {
    let namespace = node.tag_name().namespace().filter(|namespace| !namespace.is_empty());
    let own = node.document().root_element().tag_name().namespace();
    if namespace.is_none() || namespace == own { node.tag_name().name() } else { FOREIGN }
}

/// Returns the value of the attribute with this name and no namespace.
pub fn attribute<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.attributes().find(|attribute| attribute.namespace().is_none() && attribute.name() == name).map(|found| found.value())
}

/// Returns the name of an element for messages, with its namespace if that is a foreign one.
pub fn shown(node: Node) -> String {
    let name = node.tag_name().name();
    match node.tag_name().namespace() {
        Some(namespace) if kind(node) == FOREIGN => format!("`{name}` of the namespace `{namespace}`"),
        _ => format!("`{name}`"),
    }
}

/// The child elements of an element.
pub fn elements<'a, 'i>(node: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(Node::is_element)
}

/// All text that is directly in an element. Comments may divide the text.
pub fn text_in(node: Node) -> String {
    node.children().filter(Node::is_text).filter_map(|part| part.text()).collect()
}

/// Returns the only child element of a kind, if any.
///
/// # Errors
///
/// There are several such elements.
pub fn only_of<'a, 'i>(node: Node<'a, 'i>, name: &str, span: impl Fn(Node) -> Span) -> Result<Option<Node<'a, 'i>>, Diagnostic> {
    let mut all = elements(node).filter(|child| kind(*child) == name);
    let first = all.next();
    match all.next() {
        Some(second) => Err(Diagnostic::new(span(second), format!("a second {name}"), "it is not clear which one is meant")),
        None => Ok(first),
    }
}
