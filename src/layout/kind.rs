//! The kinds of tables. This is the only list in Rust. Its counterpart in C++ is `TableKind` of cpu_kernels/kernels.hpp.

/// Calls a macro with the list: for each kind its name, the type of its view for kernels, and the name of the type of tables.
macro_rules! kinds {
    ($then:ident) => {
        $then! {
            Bucket: TableView, "BucketTable";
            Tree: TreeView, "TreeTable";
            Root: CompactView, "RootTable";
            CompactTree: CompactTreeView, "CompactTreeTable";
            Indexed: IndexedView, "IndexedTable";
        }
    };
}
pub(crate) use kinds;

macro_rules! names {
    ($($kind:ident: $view:ident, $table:literal;)*) => {
        /// Kind of a table. `warpset::TableKind` and saved files use the same numbers.
        #[doc(hidden)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[repr(u32)]
        pub enum Kind {
            $($kind,)*
        }

        impl Kind {
            /// All kinds, in the order of their numbers.
            pub(crate) const ALL: &[Self] = &[$(Self::$kind),*];

            /// Name of the type of tables of words, or keys, of this kind.
            pub(crate) const fn table(self) -> &'static str {
                match self {
                    $(Self::$kind => $table,)*
                }
            }
        }
    };
}
kinds!(names);

impl Kind {
    /// Whether vectors are stored as trees, beside a node table. (Vectors of one or two words are their own roots.)
    pub(crate) const fn has_nodes(self) -> bool {
        matches!(self, Self::Tree | Self::CompactTree)
    }

    /// Whether slots hold only the part of keys, or of roots, that their buckets do not imply.
    pub(crate) const fn is_compact(self) -> bool {
        matches!(self, Self::Root | Self::CompactTree)
    }

    /// Words of a key, if all keys have the same number of words.
    pub(crate) const fn key_words(self) -> Option<usize> {
        if matches!(self, Self::Root) { Some(2) } else { None }
    }

    /// Kind of the table of roots with which a tree table begins. For any other kind, the kind itself.
    pub(crate) const fn of_roots(self) -> Self {
        match self {
            Self::Tree => Self::Bucket,
            Self::CompactTree => Self::Root,
            Self::Bucket | Self::Root | Self::Indexed => self,
        }
    }
}
