//! Names in XML: an element or attribute of another namespace is never one of PNML, or of properties, with the same local name.

use crate::diagnostic::Diagnostic;
use crate::ir::Span;
use roxmltree::Node;

/// The kind of elements of other namespaces: no name of XML has such characters.
const FOREIGN: &str = "(other)";

/// The name of an element in the namespace of the file's first element, or in none, as some tools write; otherwise `FOREIGN`.
pub fn kind<'a>(node: Node<'a, '_>) -> &'a str {
    let namespace = node.tag_name().namespace().filter(|namespace| !namespace.is_empty());
    let own = node.document().root_element().tag_name().namespace();
    if namespace.is_none() || namespace == own { node.tag_name().name() } else { FOREIGN }
}

/// The attribute with this name in no namespace.
pub fn attribute<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.attributes().find(|attribute| attribute.namespace().is_none() && attribute.name() == name).map(|found| found.value())
}

/// The name of an element for messages, with its namespace if that is another one.
pub fn shown(node: Node) -> String {
    let name = node.tag_name().name();
    match node.tag_name().namespace() {
        Some(namespace) if kind(node) == FOREIGN => format!("`{name}` of the namespace `{namespace}`"),
        _ => format!("`{name}`"),
    }
}

/// The elements in an element.
pub fn elements<'a, 'i>(node: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(Node::is_element)
}

/// All text directly in an element; comments may divide it.
pub fn text_in(node: Node) -> String {
    node.children().filter(Node::is_text).filter_map(|part| part.text()).collect()
}

/// The only element of a kind in an element.
///
/// # Errors
///
/// There are several.
pub fn only_of<'a, 'i>(node: Node<'a, 'i>, name: &str, span: impl Fn(Node) -> Span) -> Result<Option<Node<'a, 'i>>, Diagnostic> {
    let mut all = elements(node).filter(|child| kind(*child) == name);
    let first = all.next();
    match all.next() {
        Some(second) => Err(Diagnostic::new(span(second), format!("a second {name}"), "it is not clear which one is meant")),
        None => Ok(first),
    }
}
