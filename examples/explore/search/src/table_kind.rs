//! The kinds of tables that searches use.

use std::fmt;

/// How a table stores states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// Whole states in slots.
    Bucket,
    /// Trees of pairs, with equal parts shared.
    Tree,
    /// As `Tree`, but roots are compact.
    TreeCompact,
    /// States of up to 64 bits as keys. A slot holds the bits of a key that its bucket does not determine.
    Compact,
    /// Whole states in discovery order, found through an index.
    Indexed,
}

impl TableKind {
    const ALL: [Self; 5] = [Self::Bucket, Self::Tree, Self::TreeCompact, Self::Compact, Self::Indexed];

    /// The name in checkpoints and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bucket => "bucket",
            Self::Tree => "tree",
            Self::TreeCompact => "tree-compact",
            Self::Compact => "compact",
            Self::Indexed => "indexed",
        }
    }

    /// The kind with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for TableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
