//! Arrays of values that belong to a table's rows, and changes of the rows' numbers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// For each array of a table, the changes of row numbers since the array was last used.
#[derive(Default)]
pub(crate) struct Arrays(Mutex<Vec<Weak<Mutex<Renumbering>>>>);

/// Changes of row numbers since an array was last used. First, the values of row `kept` and all later rows become initial values.
/// Then, if there is `from`, row i gets the value of the row that had the number `from[i]`, or an initial value if that is
/// `NO_NUMBER`. All rows beyond `from` get initial values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Renumbering {
    pub kept: u64,
    pub from: Option<Vec<u64>>,
}

impl Renumbering {
    /// Marks a row that had no number before.
    pub(super) const NO_NUMBER: u64 = u64::MAX;

    /// No change.
    pub(super) fn none() -> Self {
        Self { kept: u64::MAX, from: None }
    }

    /// Drops row `rows` and all later rows.
    fn keep(&mut self, rows: u64) {
        match &mut self.from {
            None => self.kept = self.kept.min(rows),
            Some(from) => from.truncate(rows as usize),
        }
    }

    /// Gives the rows in `rows`, in increasing order, the numbers 0, 1, 2 and so on. No other rows remain.
    fn renumber(&mut self, rows: &[u64]) {
        self.from = Some(match &self.from {
            None => rows.to_vec(),
            Some(before) => rows.iter().map(|row| before.get(*row as usize).copied().unwrap_or(Self::NO_NUMBER)).collect(),
        });
    }
}

/// Locks a mutex. Poisoning is ignored, because no panic leaves the value half changed.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Arrays {
    pub(super) fn add(&self) -> Arc<Mutex<Renumbering>> {
        let added = Arc::new(Mutex::new(Renumbering::none()));
        let mut arrays = locked(&self.0);
        arrays.retain(|array| array.strong_count() > 0);
        arrays.push(Arc::downgrade(&added));
        added
    }

    /// Drops row `rows` and all later rows. The caller has exclusive access to the table.
    pub(super) fn keep(&self, rows: u64) {
        self.change(|numbers| numbers.keep(rows));
    }

    /// Gives the rows in `rows`, in increasing order, the numbers 0, 1, 2 and so on. No other rows remain. The caller has
    /// exclusive access to the table.
    pub(super) fn renumber(&self, rows: &[u64]) {
        self.change(|numbers| numbers.renumber(rows));
    }

    /// Adds a change to all arrays. An array reads its changes under the table's lock, which the caller holds exclusively.
    fn change(&self, change: impl Fn(&mut Renumbering)) {
        locked(&self.0).iter().filter_map(Weak::upgrade).for_each(|array| change(&mut locked(&array)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes that are applied to an array one by one give the same result as all together.
    #[test]
    fn changes_add_up() {
        type Change = fn(&mut Renumbering);
        let changes: [Change; 6] = [
            |numbers| numbers.keep(7),
            |numbers| numbers.renumber(&[0, 2, 5, 6, 8]),
            |numbers| numbers.keep(4),
            |numbers| numbers.renumber(&[1, 3, 4]),
            |numbers| numbers.keep(9),
            |numbers| numbers.renumber(&[0, 2]),
        ];
        fn apply(values: &mut [u32], numbers: &Renumbering) {
            let before: Vec<u32> = values.iter().zip(0..).map(|(value, at)| if at < numbers.kept { *value } else { 0 }).collect();
            for (at, value) in values.iter_mut().enumerate() {
                let from = numbers.from.as_ref().map_or(at as u64, |from| from.get(at).copied().unwrap_or(u64::MAX));
                *value = before.get(from as usize).copied().unwrap_or(0);
            }
        }
        for first in 0..changes.len() {
            for last in first..changes.len() {
                let start: Vec<u32> = (1..=12).collect();
                let (mut one_by_one, mut together) = (start.clone(), start);
                let mut all = Renumbering::none();
                for change in &changes[first..=last] {
                    let mut one = Renumbering::none();
                    change(&mut one);
                    apply(&mut one_by_one, &one);
                    change(&mut all);
                }
                apply(&mut together, &all);
                assert_eq!(one_by_one, together, "{first} to {last}");
            }
        }
    }
}
