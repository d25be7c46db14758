//! A replay into a table that is spread over several ranks of this process: each rank offers a part of the vectors.

use super::in_process::{devices_of, first_error, on_all};
use super::options::Options;
use super::report::{Measured, Pass, Ranks, Report};
use super::table::{self, ReplayKind};
use super::vectors::Vectors;
use super::verify::{difference, reference_set, verify_later};
use super::{WARM_UP, ensure_memory, failure, tell};
use anyhow::{Context, Result, ensure};
use std::ops::Range;
use std::time::{Duration, Instant};
use warpset::cluster::{Builder, Local, Reference, Request, Table};
use warpset::{Device, Outcome, Stats, Storage, Words};

/// Ranks of one process notice at once when another rank is gone, so the time-out may be long.
const PATIENCE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Results of one rank.
struct OfRank<S> {
    table: Table<Words, S>,
    /// Passes, with this rank's times and the tallies of all ranks together, which are equal on all ranks.
    passes: Vec<Pass>,
    /// Outcomes of the rank's part of the vectors, in the first pass.
    outcomes: Vec<Outcome>,
    references: Vec<Option<Reference>>,
    full: Option<warpset::Error>,
    /// Vectors read back through the rank's references, if vectors are verified.
    read_back: Vec<u32>,
}

/// Replays into `count` ranks, prints the report, and returns the exit code.
pub fn replay<S: ReplayKind>(devices: &[Device], count: usize, options: &Options, vectors: &Vectors) -> Result<u8> {
    let of_ranks = devices_of(devices, count)?;
    let (builder, slots) = table::builder::<S>(options, vectors, &devices[0])?;
    ensure_memory(options, slots, vectors)?;
    let builder = builder.capacity(slots.div_ceil(count as u64));
    let seats = of_ranks.into_iter().zip(Local::with_timeout(count, PATIENCE)).enumerate();
    let done = on_all(seats, |(rank, (device, local))| -> Result<OfRank<S>> {
        let table = Builder::new(builder.clone()).build(&device, local)?;
        offer(table, &vectors.words[words_of(vectors, rank, count)], options)
    });
    let ranks = first_error(done)?;
    let slowest = |pass: usize| ranks.iter().map(|rank| rank.passes[pass].seconds).fold(0.0, f64::max);
    let passes: Vec<Pass> =
        (0..).zip(&ranks[0].passes).map(|(at, pass)| Pass { seconds: slowest(at), tally: pass.tally }).collect();
    let (stats, numbers) = numbers(&ranks)?;
    let verification = options.verify.then(|| difference(|| check(vectors, &ranks, &passes))).transpose()?;
    let verified = verification.as_ref().map(Result::is_ok);
    let failure = failure(verification, ranks[0].full.clone());
    let local = ranks[0].table.local();
    let report = Report {
        vectors,
        kind: options.table,
        device: local.device(),
        spec: local.spec(),
        stats,
        passes,
        measured: Measured::default(),
        ranks: Some(numbers),
        verified,
        failure: failure.as_ref().map(|ended| (ended.why.as_str(), ended.code)),
    };
    tell(options, &report, failure.as_ref())
}

/// The words of a rank's part of the vectors.
fn words_of(vectors: &Vectors, rank: usize, ranks: usize) -> Range<usize> {
    let first = |rank: usize| vectors.count() * rank / ranks * vectors.width;
    first(rank)..first(rank + 1)
}

/// The work of one rank, concurrent with the others.
fn offer<S: Storage>(mut table: Table<Words, S>, words: &[u32], options: &Options) -> Result<OfRank<S>> {
    let width = table.local().width();
    let _ = table.find_or_put_many(&words[..words.len().min(WARM_UP * width)])?; // a full table is no error: it is cleared next
    table.clear()?;
    let pass = |table: &mut Table<Words, S>, references| -> Result<_> {
        table.sum([0])?; // all begin together
        let start = Instant::now();
        let batch = table.find_or_put_many_with(words, Request::new().references(references))?;
        Ok((Pass { seconds: start.elapsed().as_secs_f64(), tally: batch.total }, batch))
    };
    let (first, batch) = pass(&mut table, options.verify)?;
    let full = batch.complete(&table.stats()?).err();
    // Bytes of slots and of nodes.
    let [bytes] = table.sum([table.local().bytes()])?;
    let mut passes = vec![first];
    for _ in 1..options.repeat {
        passes.push(pass(&mut table, false)?.0);
    }
    let mut references = batch.references;
    if options.verify && [bytes] != table.sum([table.local().bytes()])? {
        // A later pass has made the tables grow, so references are looked up again. Tables may grow because before a batch they
        // do not know which of its vectors are stored, and need room for all.
        references = table.locate_many(words)?;
    }
    let stored: Vec<Reference> = references.iter().flatten().copied().collect();
    let read_back = if options.verify { table.get_many(&stored)? } else { Vec::new() };
    Ok(OfRank { table, passes, outcomes: batch.outcomes, references, full, read_back })
}

/// The statistics of all tables together, and how the vectors are spread.
fn numbers<S: Storage>(ranks: &[OfRank<S>]) -> Result<(Stats, Ranks)> {
    let mut all = Stats::default();
    let mut numbers = Ranks { stored: Vec::new(), balance: 1.0, bytes_exchanged: 0, waited: 0.0 };
    let mut fullest = 0.0f64;
    for rank in ranks {
        let (of_rank, traffic) = (rank.table.local().stats()?, rank.table.traffic());
        all.probe_lengths.resize(all.probe_lengths.len().max(of_rank.probe_lengths.len()), 0);
        all.probe_lengths.iter_mut().zip(&of_rank.probe_lengths).for_each(|(sum, count)| *sum += count);
        (all.slots, all.stored, all.bytes) = (all.slots + of_rank.slots, all.stored + of_rank.stored, all.bytes + of_rank.bytes);
        (all.nodes, all.node_slots) = (all.nodes + of_rank.nodes, all.node_slots + of_rank.node_slots);
        all.node_probes += of_rank.node_probes;
        (all.longest_probe, all.width) = (all.longest_probe.max(of_rank.longest_probe), of_rank.width);
        fullest = fullest.max(of_rank.fill());
        numbers.stored.push(of_rank.stored);
        numbers.bytes_exchanged += traffic.bytes_sent;
        numbers.waited += traffic.waited.as_secs_f64() / ranks.len() as f64;
    }
    if all.stored > 0 {
        numbers.balance = fullest / all.fill();
    }
    Ok((all, numbers))
}

/// Checks that all outcomes and references are those of a set, that each reference reads back its vector, and that the tables
/// hold exactly the vectors reported to the ranks.
fn check<S: Storage>(vectors: &Vectors, ranks: &[OfRank<S>], passes: &[Pass]) -> Result<()> {
    let outcomes: Vec<Outcome> = ranks.iter().flat_map(|rank| &rank.outcomes).copied().collect();
    let references: Vec<Option<Reference>> = ranks.iter().flat_map(|rank| &rank.references).copied().collect();
    let set = reference_set(vectors, &outcomes, &references, passes[0].tally.new)?;
    let stored = set.values().filter(|offered| offered.new).count() as u64;
    ensure!(passes[0].tally.new == stored, "the tally counts {} new vectors, but {stored} are", passes[0].tally.new);
    let mut read_back = ranks.iter().flat_map(|rank| rank.read_back.chunks_exact(vectors.width));
    for (at, reference) in references.iter().enumerate().filter(|(_, reference)| reference.is_some()) {
        let (expected, found) = (vectors.get(at), read_back.next());
        ensure!(found == Some(expected), "vector {at} is {expected:?}, but its reference {reference:?} gives {found:?}");
    }
    let mut held = 0;
    for (rank, of_rank) in (0..).zip(ranks) {
        for row in of_rank.table.local() {
            let (reference, vector) = row?;
            let place = Reference { rank, reference };
            let offered = set.get(&vector[..]).with_context(|| format!("{place:?} holds {vector:?}, which was not offered"))?;
            let expected = offered.reference;
            ensure!(expected == Some(place), "{place:?} holds {vector:?}, which should be at {expected:?}");
            held += 1;
        }
    }
    ensure!(held == stored, "the tables hold {held} of {stored} vectors");
    verify_later(passes, held)
}
