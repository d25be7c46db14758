use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// How the kernels of a [`TreeTable`](crate::TreeTable) make trees: see [`build_strategies`](crate::build_strategies).
///
/// Each has a name, by which it is shown and parsed: those of Bergsma's thesis (2019), as far as he names them.
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{Device, Strategy, TreeTable};
///
/// let strategy: Strategy = "ld_np_s_sm".parse()?;
/// assert_eq!((strategy, strategy.to_string().as_str()), (Strategy::LdNpSSm, "ld_np_s_sm"));
/// let table = TreeTable::builder(8).strategy(strategy).build(&Device::cpu())?;
/// assert_eq!(table.find_or_put_many(&[1, 2, 3, 4, 5, 6, 7, 8])?.tally.new, 1);
/// assert!("ld_np_lm".parse::<Strategy>().is_err()); // registers are for groups of constant size
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub enum Strategy {
    /// `default`: a warp makes the trees of 32 vectors at once, row by row; a lane goes on to the next pair as soon as it is done with one.
    #[default]
    Default,
    /// `C`: recursive; two lanes a vector look at 32 bits of a node each; a call for each word.
    C,
    /// `C64`: recursive; a lane a vector; a call for each word.
    C64,
    /// `Clr` (*less recursion*): recursive; two lanes a vector; a call for each pair of words.
    Clr,
    /// `Clr64`: recursive; a lane a vector; a call for each pair of words. The best of the recursive ones in the thesis.
    Clr64,
    /// `1_np_gm`: a lane a vector, neighboured pairs, in global memory.
    OneNpGm,
    /// `1_np_sm`: a lane a vector, neighboured pairs, in shared memory. The one that the thesis compares with others.
    OneNpSm,
    /// `1_np_s_sm`: a lane a vector, neighboured pairs, in shuffled shared memory.
    OneNpSSm,
    /// `1_ip_gm`: a lane a vector, interleaved pairs, in global memory.
    OneIpGm,
    /// `1_ip_sm`: a lane a vector, interleaved pairs, in shared memory.
    OneIpSm,
    /// `l_np_gm`: a group of lanes a vector, neighboured pairs, in global memory.
    LNpGm,
    /// `l_np_sm`: a group of lanes a vector, neighboured pairs, in shared memory.
    LNpSm,
    /// `l_np_lm`: a group of lanes a vector, neighboured pairs, in registers.
    LNpLm,
    /// `l_ip_gm`: a group of lanes a vector, interleaved pairs, in global memory.
    LIpGm,
    /// `l_ip_sm`: a group of lanes a vector, interleaved pairs, in shared memory.
    LIpSm,
    /// `ld_np_gm`: a shrinking group of lanes a vector, neighboured pairs, in global memory.
    LdNpGm,
    /// `ld_np_sm`: a shrinking group of lanes a vector, neighboured pairs, in shared memory.
    LdNpSm,
    /// `ld_np_s_sm`: a shrinking group of lanes a vector, neighboured pairs, in shuffled shared memory.
    LdNpSSm,
    /// `ld_ip_gm`: a shrinking group of lanes a vector, interleaved pairs, in global memory.
    LdIpGm,
    /// `ld_ip_sm`: a shrinking group of lanes a vector, interleaved pairs, in shared memory.
    LdIpSm,
}

/// Which halves of a tree are paired: what trees there are, and so how many nodes vectors share. Of no effect on what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pairing {
    /// Neighbours, row by row from the words up.
    Neighboured,
    /// Neighbouring words; above, halves at a distance of half a row.
    Interleaved,
    /// The first half of the words and the rest, from the root down.
    Halved,
}

/// `warpset::Lanes` of tree/strategies/strategy.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lanes {
    Stream,
    One,
    Two,
    Group,
    ShrinkingGroup,
}

/// `warpset::Workspace` of tree/strategies/strategy.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workspace {
    Shared,
    ShuffledShared,
    Global,
    Registers,
    Stack,
    StackOfLeaves,
}

impl Strategy {
    /// All of them, the default first.
    pub const ALL: [Self; 20] = [
        Self::Default,
        Self::C,
        Self::C64,
        Self::Clr,
        Self::Clr64,
        Self::OneNpGm,
        Self::OneNpSm,
        Self::OneNpSSm,
        Self::OneIpGm,
        Self::OneIpSm,
        Self::LNpGm,
        Self::LNpSm,
        Self::LNpLm,
        Self::LIpGm,
        Self::LIpSm,
        Self::LdNpGm,
        Self::LdNpSm,
        Self::LdNpSSm,
        Self::LdIpGm,
        Self::LdIpSm,
    ];

    /// Which halves it pairs.
    pub const fn pairing(self) -> Pairing {
        self.policies().2
    }

    /// Its name, and what the kernels are compiled with.
    pub(crate) const fn policies(self) -> (&'static str, Lanes, Pairing, Workspace) {
        use {Lanes::*, Pairing::*, Workspace::*};
        match self {
            Self::Default => ("default", Stream, Neighboured, Shared),
            Self::C => ("C", Two, Halved, Stack),
            Self::C64 => ("C64", One, Halved, Stack),
            Self::Clr => ("Clr", Two, Halved, StackOfLeaves),
            Self::Clr64 => ("Clr64", One, Halved, StackOfLeaves),
            Self::OneNpGm => ("1_np_gm", One, Neighboured, Global),
            Self::OneNpSm => ("1_np_sm", One, Neighboured, Shared),
            Self::OneNpSSm => ("1_np_s_sm", One, Neighboured, ShuffledShared),
            Self::OneIpGm => ("1_ip_gm", One, Interleaved, Global),
            Self::OneIpSm => ("1_ip_sm", One, Interleaved, Shared),
            Self::LNpGm => ("l_np_gm", Group, Neighboured, Global),
            Self::LNpSm => ("l_np_sm", Group, Neighboured, Shared),
            Self::LNpLm => ("l_np_lm", Group, Neighboured, Registers),
            Self::LIpGm => ("l_ip_gm", Group, Interleaved, Global),
            Self::LIpSm => ("l_ip_sm", Group, Interleaved, Shared),
            Self::LdNpGm => ("ld_np_gm", ShrinkingGroup, Neighboured, Global),
            Self::LdNpSm => ("ld_np_sm", ShrinkingGroup, Neighboured, Shared),
            Self::LdNpSSm => ("ld_np_s_sm", ShrinkingGroup, Neighboured, ShuffledShared),
            Self::LdIpGm => ("ld_ip_gm", ShrinkingGroup, Interleaved, Global),
            Self::LdIpSm => ("ld_ip_sm", ShrinkingGroup, Interleaved, Shared),
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.policies().0)
    }
}

impl FromStr for Strategy {
    type Err = Error;

    /// The strategy of this name, in letters of either case.
    ///
    /// # Errors
    ///
    /// [`UnknownStrategy`](Error::UnknownStrategy).
    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|strategy| strategy.policies().0.eq_ignore_ascii_case(name));
        found.ok_or_else(|| Error::UnknownStrategy { name: name.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_and_policies_are_distinct() {
        let names: HashSet<String> = Strategy::ALL.iter().map(Strategy::to_string).collect();
        assert_eq!(names.len(), Strategy::ALL.len());
        let policies: HashSet<String> = Strategy::ALL.iter().map(|of| format!("{:?}", &of.policies())).collect();
        assert_eq!(policies.len(), Strategy::ALL.len());
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
