//! Strategies by which kernels build trees: those of Bergsma's thesis (2019), and the default.

use std::fmt;

/// Strategy by which the kernels of a [`TreeTable`](crate::TreeTable) build trees: see
/// [`build_strategies`](crate::build_strategies).
///
/// A strategy is a choice of lanes, of a pairing and of a workspace. The existing combinations have names, by which they are
/// displayed and parsed. A combination that Bergsma's thesis (2019) has is named as there.
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{Device, Strategy, TreeTable};
///
/// let strategy: Strategy = "ld_np_s_sm".parse()?;
/// assert_eq!((strategy, strategy.to_string().as_str()), (Strategy::LD_NP_S_SM, "ld_np_s_sm"));
/// let table = TreeTable::builder(8).strategy(strategy).build(&Device::cpu())?;
/// assert_eq!(table.find_or_put_many(&[1, 2, 3, 4, 5, 6, 7, 8])?.tally.new, 1);
/// assert!("ld_np_lm".parse::<Strategy>().is_err()); // registers are for groups of constant size
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Strategy {
    pub(crate) lanes: Lanes,
    pairing: Pairing,
    pub(crate) workspace: Workspace,
}

/// Pairing of the halves of a tree. It determines the trees, and so how many nodes vectors share. The set of vectors is the same
/// with each pairing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pairing {
    /// Neighbours are paired, row by row from the words up.
    Neighboured,
    /// Neighbouring words are paired, and in the rows above, halves at a distance of half a row.
    Interleaved,
    /// The first half of the words is paired with the rest, from the root down.
    Halved,
}

/// Lanes of a warp that build the tree of a vector: `warpset::Lanes` of tree/strategy.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Lanes {
    /// All lanes, for 32 vectors at once: a lane continues with the next pair as soon as it has done one.
    Stream,
    /// One lane.
    One,
    /// Two lanes, each for 32 bits of a node.
    Two,
    /// A group of lanes of constant size.
    Group,
    /// A group of lanes that shrinks with the rows.
    ShrinkingGroup,
}

/// Location of the halves of a tree while it is built: `warpset::Workspace` of tree/strategy.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Workspace {
    /// Shared memory.
    Shared,
    /// Shared memory, in a layout without bank conflicts.
    ShuffledShared,
    /// Device memory.
    Global,
    /// Registers.
    Registers,
    /// The stack of a recursion with a call for each word.
    Stack,
    /// The stack of a recursion with a call for each pair of words.
    StackOfLeaves,
}

impl Strategy {
    /// `default`: a warp builds the trees of 32 vectors at once, row by row. A lane continues with the next pair as soon as it
    /// has done one.
    pub const DEFAULT: Self = Self::of(Lanes::Stream, Pairing::Neighboured, Workspace::Shared);
    /// `C`: recursive; two lanes per vector, each for 32 bits of a node; a call for each word.
    pub const C: Self = Self::of(Lanes::Two, Pairing::Halved, Workspace::Stack);
    /// `C64`: recursive; one lane per vector; a call for each word.
    pub const C64: Self = Self::of(Lanes::One, Pairing::Halved, Workspace::Stack);
    /// `Clr` (*less recursion*): recursive; two lanes per vector; a call for each pair of words.
    pub const CLR: Self = Self::of(Lanes::Two, Pairing::Halved, Workspace::StackOfLeaves);
    /// `Clr64`: recursive; one lane per vector; a call for each pair of words. The best of the recursive ones in the thesis.
    pub const CLR64: Self = Self::of(Lanes::One, Pairing::Halved, Workspace::StackOfLeaves);
    /// `1_np_gm`: one lane per vector, neighboured pairs, in global memory.
    pub const ONE_NP_GM: Self = Self::of(Lanes::One, Pairing::Neighboured, Workspace::Global);
    /// `1_np_sm`: one lane per vector, neighboured pairs, in shared memory. The thesis compares this one with other tables.
    pub const ONE_NP_SM: Self = Self::of(Lanes::One, Pairing::Neighboured, Workspace::Shared);
    /// `1_np_s_sm`: one lane per vector, neighboured pairs, in shared memory in an order without bank conflicts.
    pub const ONE_NP_S_SM: Self = Self::of(Lanes::One, Pairing::Neighboured, Workspace::ShuffledShared);
    /// `1_ip_gm`: one lane per vector, interleaved pairs, in global memory.
    pub const ONE_IP_GM: Self = Self::of(Lanes::One, Pairing::Interleaved, Workspace::Global);
    /// `1_ip_sm`: one lane per vector, interleaved pairs, in shared memory.
    pub const ONE_IP_SM: Self = Self::of(Lanes::One, Pairing::Interleaved, Workspace::Shared);
    /// `l_np_gm`: a group of lanes per vector, neighboured pairs, in global memory.
    pub const L_NP_GM: Self = Self::of(Lanes::Group, Pairing::Neighboured, Workspace::Global);
    /// `l_np_sm`: a group of lanes per vector, neighboured pairs, in shared memory.
    pub const L_NP_SM: Self = Self::of(Lanes::Group, Pairing::Neighboured, Workspace::Shared);
    /// `l_np_lm`: a group of lanes per vector, neighboured pairs, in registers.
    pub const L_NP_LM: Self = Self::of(Lanes::Group, Pairing::Neighboured, Workspace::Registers);
    /// `l_ip_gm`: a group of lanes per vector, interleaved pairs, in global memory.
    pub const L_IP_GM: Self = Self::of(Lanes::Group, Pairing::Interleaved, Workspace::Global);
    /// `l_ip_sm`: a group of lanes per vector, interleaved pairs, in shared memory.
    pub const L_IP_SM: Self = Self::of(Lanes::Group, Pairing::Interleaved, Workspace::Shared);
    /// `ld_np_gm`: a shrinking group of lanes per vector, neighboured pairs, in global memory.
    pub const LD_NP_GM: Self = Self::of(Lanes::ShrinkingGroup, Pairing::Neighboured, Workspace::Global);
    /// `ld_np_sm`: a shrinking group of lanes per vector, neighboured pairs, in shared memory.
    pub const LD_NP_SM: Self = Self::of(Lanes::ShrinkingGroup, Pairing::Neighboured, Workspace::Shared);
    /// `ld_np_s_sm`: a shrinking group of lanes per vector, neighboured pairs, in shuffled shared memory.
    pub const LD_NP_S_SM: Self = Self::of(Lanes::ShrinkingGroup, Pairing::Neighboured, Workspace::ShuffledShared);
    /// `ld_ip_gm`: a shrinking group of lanes per vector, interleaved pairs, in global memory.
    pub const LD_IP_GM: Self = Self::of(Lanes::ShrinkingGroup, Pairing::Interleaved, Workspace::Global);
    /// `ld_ip_sm`: a shrinking group of lanes per vector, interleaved pairs, in shared memory.
    pub const LD_IP_SM: Self = Self::of(Lanes::ShrinkingGroup, Pairing::Interleaved, Workspace::Shared);

    /// All strategies with their names, the default first.
    pub(super) const NAMED: [(&'static str, Self); 20] = [
        ("default", Self::DEFAULT),
        ("C", Self::C),
        ("C64", Self::C64),
        ("Clr", Self::CLR),
        ("Clr64", Self::CLR64),
        ("1_np_gm", Self::ONE_NP_GM),
        ("1_np_sm", Self::ONE_NP_SM),
        ("1_np_s_sm", Self::ONE_NP_S_SM),
        ("1_ip_gm", Self::ONE_IP_GM),
        ("1_ip_sm", Self::ONE_IP_SM),
        ("l_np_gm", Self::L_NP_GM),
        ("l_np_sm", Self::L_NP_SM),
        ("l_np_lm", Self::L_NP_LM),
        ("l_ip_gm", Self::L_IP_GM),
        ("l_ip_sm", Self::L_IP_SM),
        ("ld_np_gm", Self::LD_NP_GM),
        ("ld_np_sm", Self::LD_NP_SM),
        ("ld_np_s_sm", Self::LD_NP_S_SM),
        ("ld_ip_gm", Self::LD_IP_GM),
        ("ld_ip_sm", Self::LD_IP_SM),
    ];

    /// All strategies, the default first.
    pub const ALL: [Self; 20] = {
        let mut all = [Self::DEFAULT; 20];
        let mut at = 0;
        while at < all.len() {
            all[at] = Self::NAMED[at].1;
            at += 1;
        }
        all
    };

    const fn of(lanes: Lanes, pairing: Pairing, workspace: Workspace) -> Self {
        Self { lanes, pairing, workspace }
    }

    /// Pairing of the halves.
    pub const fn pairing(self) -> Pairing {
        self.pairing
    }

    fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, named)| *named == self).map_or("", |(name, _)| name)
    }
}

impl Default for Strategy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Serialised as its name.
#[cfg(feature = "serde")]
impl serde::Serialize for Strategy {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_and_choices_are_distinct() {
        let names: HashSet<String> = Strategy::ALL.iter().map(Strategy::to_string).collect();
        assert_eq!(names.len(), Strategy::ALL.len());
        assert_eq!(Strategy::ALL.iter().collect::<HashSet<_>>().len(), Strategy::ALL.len());
        assert_eq!(Strategy::ALL[0], Strategy::default());
    }

    #[test]
    fn names_are_parsed() {
        for strategy in Strategy::ALL {
            assert_eq!(strategy.to_string().parse::<Strategy>().unwrap(), strategy);
            assert_eq!(strategy.to_string().to_uppercase().parse::<Strategy>().unwrap(), strategy);
        }
        let error = "2_np_sm".parse::<Strategy>().unwrap_err().to_string();
        assert!(error.contains("`2_np_sm`") && Strategy::ALL.iter().all(|of| error.contains(&of.to_string())), "{error}");
    }
}
