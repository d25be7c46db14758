//! Growth of the tables of all ranks within their limits. All tables grow by the same factor, so that shares stay equal.

use super::{Growth, WORTH_WHILE};
use crate::core::schedule::Bytes;
use crate::core::table::RawTable;
use crate::layout::size::Size;
use crate::{Error, Result};
use std::num::NonZeroU64;

/// Growth that the limit of one rank's table permits, when the tables of all ranks have to grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Proposal {
    /// Whether the table's own schedule would double it. Otherwise the table would take all the rest of its memory.
    doubles: bool,
    /// Largest factor by which its slots may grow.
    factor: f64,
}

impl Proposal {
    /// Returns the proposal as two numbers of a record.
    pub(crate) fn values(self) -> [u64; 2] {
        [u64::from(self.doubles), self.factor.to_bits()]
    }

    /// `None` if no proposal has these values.
    pub(crate) fn of_values(values: [u64; 2]) -> Option<Self> {
        let (doubles, factor) = (values[0], f64::from_bits(values[1]));
        (doubles <= 1 && factor.is_finite() && factor >= 1.0).then_some(Self { doubles: doubles == 1, factor })
    }
}

impl RawTable {
    /// Returns the growth that the limit of this table permits when the tables of all ranks have to grow. They grow to `doubled`
    /// if all of them can.
    ///
    /// # Errors
    ///
    /// [`Error::MemoryLimit`] if the table may not grow by enough.
    pub(crate) fn propose(&self, doubled: Size) -> Result<Proposal> {
        let (size, budget) = (self.size(), self.budget(self.memory())?);
        let by_doubling = Proposal { doubles: true, factor: doubled.slots as f64 / size.slots as f64 };
        // Ranks may share a device, and each of them would take all of its memory. So here the table only doubles.
        if budget.is_of_device {
            return self.may_grow_with_others(doubled).map(|()| by_doubling);
        }
        let growth = Growth::of(size, doubled.slots > size.slots, doubled.nodes > size.nodes).expect("it lacks slots or nodes");
        let growth = Growth { doubled, ..growth }.at_least(WORTH_WHILE);
        let may = self.with_schedule(&budget, size, None, |schedule| {
            let rest = schedule.largest(budget.held).map(|to| Size { slots: to.slots.max(size.slots), ..to });
            let rest = rest.filter(|to| schedule.fits(*to) && growth.helps(*to));
            let factor = rest.map(|to| to.slots as f64 / size.slots as f64);
            match schedule.doubles(doubled) {
                true => Some(Proposal {
                    factor: factor.map_or(by_doubling.factor, |rest| rest.max(by_doubling.factor)),
                    ..by_doubling
                }),
                false => factor.map(|factor| Proposal { doubles: false, factor }),
            }
        })?;
        let needed = || self.bytes_for(size, growth.smallest()).map_or(u64::MAX, |bytes| bytes.new);
        may.ok_or_else(|| Error::MemoryLimit { taken: budget.held, needed: needed(), limit: budget.limit })
    }

    /// Checks whether the table may grow to this size together with the tables of all other ranks.
    ///
    /// # Errors
    ///
    /// [`Error::MemoryLimit`] if the growth takes more than the table's limit.
    fn may_grow_with_others(&self, to: Size) -> Result<()> {
        let (taken, limit) = (self.bytes(), self.memory().bytes());
        let is_beyond = |bytes: &Bytes| taken.saturating_add(bytes.new) > limit || bytes.full > limit;
        match self.bytes_for(self.size(), to).filter(is_beyond) {
            Some(Bytes { new: needed, .. }) => Err(Error::MemoryLimit { taken, needed, limit }),
            None => Ok(()),
        }
    }

    /// Grows as the [proposals](Self::propose) of all ranks permit: to `doubled` if all double, otherwise by the smallest of the
    /// factors, so that the rank with the least memory fills it. If a table of that size rejects stored vectors, the table grows
    /// to more if its limit permits.
    pub(crate) fn grow_with_others(&self, call: &'static str, from: Size, doubled: Size, proposals: &[Proposal]) -> Result<()> {
        let mut to = doubled;
        if !proposals.iter().all(|proposal| proposal.doubles) {
            let factor = proposals.iter().map(|proposal| proposal.factor).fold(f64::INFINITY, f64::min);
            let slots = NonZeroU64::new((from.slots as f64 * factor) as u64).unwrap_or(NonZeroU64::MIN);
            let budget = self.budget(self.memory())?;
            let Size { slots, nodes } = self.with_schedule(&budget, from, None, |schedule| (schedule.of_slots)(slots))?;
            to = Size { slots: slots.max(from.slots), nodes };
        }
        self.grow_by_itself_within(call, from, to, &|to| self.may_grow_with_others(to).ok().map(|()| 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_no_proposal_are_none() {
        let proposal = Proposal { doubles: true, factor: 2.0 };
        assert_eq!(Proposal::of_values(proposal.values()), Some(proposal));
        for factor in [0.0, 0.99, -2.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Proposal::of_values([0, factor.to_bits()]), None, "{factor}");
        }
        for doubles in [2, u64::MAX] {
            assert_eq!(Proposal::of_values([doubles, 2f64.to_bits()]), None, "{doubles}");
        }
    }
}
