//! Compares a table's results and contents with a set of the standard library.

use super::exit;
use super::memory::amount;
use super::program::Ended;
use super::progress::WorkProgress;
use super::report::Pass;
use super::vectors::Vectors;
use anyhow::{Context, Result, bail, ensure};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Debug;
use warpset::{Batch, Error, Outcome, Reference, Storage, VectorTable};

/// Number of references read back at a time.
const PIECE: usize = 1 << 16;

/// Results of the calls that offered one vector.
pub struct Offered<R = Reference> {
    first: usize,
    /// Reference of the vector, equal for all calls; `None` if the table was full.
    pub reference: Option<R>,
    pub new: bool,
}

/// Bytes of a set of `distinct` vectors in the standard library. The number of places is a power of two, at most 7 of 8 places
/// are used, and each place takes one more byte.
pub fn bytes_for(distinct: u64) -> u64 {
    let places = distinct.saturating_mul(8).div_ceil(7).checked_next_power_of_two().unwrap_or(u64::MAX);
    places.saturating_mul(size_of::<(&[u32], Offered)>() as u64 + 1)
}

/// Returns the result of a verification. The outer error means that the machine prevented its end, and says nothing about the
/// table.
pub fn difference(verify: impl FnOnce() -> Result<()>) -> Result<Result<()>> {
    let Err(error) = verify() else { return Ok(Ok(())) };
    let is_of_machine =
        matches!(error.downcast_ref(), Some(Error::OutOfMemory { .. } | Error::Cuda { .. })) || error.is::<Ended>();
    if is_of_machine {
        Err(error.context("verifying"))
    } else {
        Ok(Err(error.context("the table differs from the reference set")))
    }
}

/// Checks the batch that was put into the empty `table`, and the table's contents after it. The error is the first difference.
pub fn verify<S: Storage>(vectors: &Vectors, batch: &Batch, table: &VectorTable<S>) -> Result<()> {
    ensure!(batch.outcomes.len() == vectors.count(), "{} outcomes for {} vectors", batch.outcomes.len(), vectors.count());
    ensure!(batch.references.len() == vectors.count(), "{} references for {} vectors", batch.references.len(), vectors.count());
    let set = reference_set(vectors, &batch.outcomes, &batch.references, batch.tally.new)?;
    let stored = set.values().filter(|offered| offered.new).count() as u64;
    ensure!(batch.tally.new == stored, "the tally counts {} new vectors, but {stored} are", batch.tally.new);
    ensure!(table.len()? == stored, "the table reports {} vectors, but {stored} were put", table.len()?);
    check_content(&set, stored, table)?;
    check_references(vectors, batch, table)
}

/// Returns the set of all distinct vectors offered. Checks that one of the calls for equal vectors got New and the others Seen,
/// or all got Full; and that equal vectors have the same reference.
pub fn reference_set<'a, R: Copy + PartialEq + Debug>(
    vectors: &'a Vectors,
    outcomes: &[Outcome],
    references: &[Option<R>],
    new: u64,
) -> Result<HashMap<&'a [u32], Offered<R>>> {
    let progress = WorkProgress::new("verifying outcomes", vectors.count() as u64);
    let mut set: HashMap<&[u32], Offered<R>> = HashMap::new();
    reserve(&mut set, new)?;
    for (at, vector) in vectors.iter().enumerate() {
        let (outcome, reference) = (outcomes[at], references[at]);
        ensure!(reference.is_some() == (outcome != Outcome::Full), "vector {at} is {outcome:?} with reference {reference:?}");
        let new = outcome == Outcome::New;
        // If the tally is wrong, the set may need more room.
        reserve(&mut set, 1)?;
        match set.entry(vector) {
            Entry::Vacant(entry) => drop(entry.insert(Offered { first: at, reference, new })),
            Entry::Occupied(mut entry) => {
                let offered = entry.get_mut();
                let first = offered.first;
                ensure!(
                    offered.reference == reference,
                    "the equal vectors {first} and {at} have the references {:?} and {reference:?}",
                    offered.reference
                );
                ensure!(
                    !(offered.new && new),
                    "vector {at} is New, but an equal vector was New before (the first is vector {first})"
                );
                offered.new |= new;
            }
        }
        progress.set(at as u64);
    }
    match set.values().find(|offered| offered.reference.is_some() && !offered.new) {
        Some(offered) => bail!("vector {} was always Seen and never New", offered.first),
        None => Ok(set),
    }
}

/// Reserves room for `more` vectors; the error has the number of bytes.
fn reserve<R>(set: &mut HashMap<&[u32], Offered<R>>, more: u64) -> Result<()> {
    let all = set.len() as u64 + more;
    let reserved = usize::try_from(more).ok().and_then(|more| set.try_reserve(more).ok());
    reserved.ok_or_else(|| {
        let why = format!("the reference set of {all} vectors needs {}, which could not be allocated", amount(bytes_for(all)));
        Ended { code: exit::ERROR, why }.into()
    })
}

/// Checks that the table holds exactly the set, each vector at its reported reference.
fn check_content<S: Storage>(set: &HashMap<&[u32], Offered>, stored: u64, table: &VectorTable<S>) -> Result<()> {
    let progress = WorkProgress::new("verifying content", stored);
    let mut count = 0;
    for row in table {
        let (reference, vector) = row?;
        let offered = set.get(&vector[..]).with_context(|| format!("{reference:?} holds {vector:?}, which was not offered"))?;
        let (expected, first) = (offered.reference, offered.first);
        ensure!(expected == Some(reference), "{reference:?} holds vector {first}, which should be at {expected:?}");
        count += 1;
        progress.set(count);
    }
    // Each reference is a separate slot, so no vector was counted twice.
    ensure!(count == stored, "the table holds {count} of {stored} vectors");
    Ok(())
}

/// Checks that each reference reads back its vector.
fn check_references<S: Storage>(vectors: &Vectors, batch: &Batch, table: &VectorTable<S>) -> Result<()> {
    let progress = WorkProgress::new("verifying references", vectors.count() as u64);
    for (piece, references) in batch.references.chunks(PIECE).enumerate() {
        let stored: Vec<Reference> = references.iter().flatten().copied().collect();
        let words = table.get_many(&stored)?;
        let mut read_back = words.chunks_exact(vectors.width);
        for (at, reference) in (piece * PIECE..).zip(references).filter(|(_, reference)| reference.is_some()) {
            let (expected, found) = (vectors.get(at), read_back.next());
            ensure!(found == Some(expected), "vector {at} is {expected:?}, but its reference {reference:?} gives {found:?}");
        }
        progress.advance(references.len() as u64);
    }
    Ok(())
}

/// Checks that later passes over the same vectors changed nothing. `stored`: number of vectors stored after all passes.
pub fn verify_later(passes: &[Pass], stored: u64) -> Result<()> {
    let first = passes[0].tally;
    let mut expected = first;
    (expected.new, expected.seen) = (0, first.new + first.seen);
    if let Some(at) = passes[1..].iter().position(|pass| pass.tally != expected) {
        bail!("pass {} has {:?} instead of {expected:?}", at + 2, passes[at + 1].tally);
    }
    ensure!(stored == first.new, "after all passes the table has {stored} vectors, but {} were put", first.new);
    Ok(())
}

#[cfg(all(test, feature = "cpu"))]
mod tests {
    //! A verification that has never found a fault proves nothing: the tests here make faults, and the verification must name
    //! each.

    use super::*;
    use std::ops::Range;
    use warpset::Tally;
    use warpset::{Bucket, Device, Request, Tree};

    /// Vector i is i, i, i.
    fn words(vectors: Range<u32>) -> Vec<u32> {
        vectors.flat_map(|vector| [vector; 3]).collect()
    }

    /// A batch of 0, 1, ... 99, and 0 again.
    fn replayed<S: Storage>() -> (Vectors, VectorTable<S>, Batch) {
        let vectors = Vectors { words: [words(0..100), words(0..1)].concat(), width: 3, distinct: None, origin: String::new() };
        let table = VectorTable::new(&Device::cpu_with_threads(1), 3, 200).unwrap();
        let batch = table.find_or_put_many_with(&vectors.words, Request::new().outcomes(true).references(true)).unwrap();
        (vectors, table, batch)
    }

    #[track_caller]
    fn finds<S: Storage>(expected: &str, spoil: impl FnOnce(&VectorTable<S>, &mut Batch)) {
        let (vectors, table, mut batch) = replayed::<S>();
        spoil(&table, &mut batch);
        let error = verify(&vectors, &batch, &table).expect_err("the fault must be found").to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn a_correct_table_passes() {
        fn passes<S: Storage>() {
            let (vectors, table, batch) = replayed::<S>();
            verify(&vectors, &batch, &table).unwrap();
        }
        passes::<Bucket>();
        passes::<Tree>();
    }

    fn finds_wrong_outcomes<S: Storage>() {
        finds::<S>("vector 7 was always Seen and never New", |_, batch| batch.outcomes[7] = Outcome::Seen);
        finds::<S>("vector 100 is New, but an equal vector was New before (the first is vector 0)", |_, batch| {
            batch.outcomes[100] = Outcome::New
        });
        finds::<S>("vector 7 is Full with reference", |_, batch| batch.outcomes[7] = Outcome::Full);
        finds::<S>("101 new vectors, but 100 are", |_, batch| batch.tally.new = 101);
    }

    fn finds_wrong_references<S: Storage>() {
        finds::<S>("the equal vectors 0 and 100 have the references", |_, batch| batch.references[100] = batch.references[1]);
        finds::<S>("which should be at", |_, batch| batch.references.swap(7, 8));
    }

    fn finds_wrong_content<S: Storage>() {
        finds::<S>("reports 101 vectors, but 100 were put", |table, _| drop(table.find_or_put_many(&words(100..101))));
        finds::<S>("which was not offered", |table, _| {
            table.clear().unwrap();
            let _ = table.find_or_put_many(&words(200..300)).unwrap();
        });
    }

    #[test]
    fn wrong_outcomes_are_found() {
        finds_wrong_outcomes::<Bucket>();
        finds_wrong_outcomes::<Tree>();
    }

    #[test]
    fn wrong_references_are_found() {
        finds_wrong_references::<Bucket>();
        finds_wrong_references::<Tree>();
    }

    #[test]
    fn wrong_content_is_found() {
        finds_wrong_content::<Bucket>();
        finds_wrong_content::<Tree>();
    }

    #[test]
    fn later_passes_may_change_nothing() {
        let pass = |new, seen| {
            let mut tally = Tally::default();
            (tally.new, tally.seen, tally.full) = (new, seen, 1);
            Pass { seconds: 1.0, tally }
        };
        verify_later(&[pass(3, 2), pass(0, 5), pass(0, 5)], 3).unwrap();
        let error = verify_later(&[pass(3, 2), pass(0, 5), pass(1, 4)], 3).unwrap_err().to_string();
        assert!(error.starts_with("pass 3 has"), "{error}");
    }
}
