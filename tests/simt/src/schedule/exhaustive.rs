//! Every schedule of a tiny case, except schedules that only swap independent steps.
//!
//! The search is a depth-first search over runs. Each run repeats the choices of the previous run up to a point, makes another
//! choice there, and continues freely. Dynamic partial-order reduction (Flanagan and Godefroid 2005) finds the choices that must
//! be tried: if two steps of different lanes touch the same 16 bytes, at least one of them writes, and nothing orders them, then
//! the later lane must also be tried before the earlier step. Sleep sets (Godefroid 1996) leave out runs that only swap
//! independent steps of earlier runs. Each value that a load may return, and each position that a write may take, is tried too.
//!
//! Two steps are independent if they touch different 16 bytes, if both read, or if both are additions whose results are
//! discarded. If independent steps are done in the other order, memory is the same afterwards, later loads may return the same
//! values, and later writes may take the same positions.

use super::{LaneName, Ready, Scheduler};
use crate::request::RequestKind;

/// The memory that a step touches.
#[derive(Clone, Copy, Debug)]
struct Footprint {
    /// The aligned 16 bytes that the step touches; `None` for a fence.
    cell: Option<usize>,
    writes: bool,
    commutes: bool,
}

impl Footprint {
    fn of(ready: &Ready, lane: usize) -> Self {
        let (request, address, _) = (ready.machine)(lane);
        let cell = (request.kind != RequestKind::Fence).then_some(address as usize / 16);
        Self { cell, writes: request.kind != RequestKind::Load, commutes: request.kind.is_commutative() }
    }

    fn depends_on(self, other: Self) -> bool {
        self.cell.is_some() && self.cell == other.cell && (self.writes || other.writes) && !(self.commutes && other.commutes)
    }
}

/// A point of the run at which a lane was chosen.
#[derive(Debug)]
struct Frame {
    /// Lanes that could make the step, each with the footprint of its step.
    ready: Vec<(usize, Footprint)>,
    lane: usize,
    /// Index of the value that the step's load returns, or of the position that its write takes, and the number of options.
    value: Option<(u32, u32)>,
    /// Lanes that must be tried here.
    wanted: Vec<usize>,
    /// Lanes that have been tried here.
    done: Vec<usize>,
    /// Lanes whose step here would only repeat earlier runs.
    asleep: Vec<usize>,
    /// By lane, how many of its steps (counted from 1) come before this step by dependence.
    clock: Vec<usize>,
}

impl Frame {
    fn footprint(&self) -> Footprint {
        self.footprint_of(self.lane).expect("the lane was ready")
    }

    fn footprint_of(&self, lane: usize) -> Option<Footprint> {
        self.ready.iter().find(|ready| ready.0 == lane).map(|ready| ready.1)
    }
}

#[derive(Debug, Default)]
pub struct Exhaustive {
    /// Disables reduction: the search tries every order of all steps, for comparison.
    naive: bool,
    frames: Vec<Frame>,
    /// Number of steps made in this run.
    depth: usize,
    /// As `Frame::clock`, for the steps that each lane has made so far.
    clocks: Vec<Vec<usize>>,
}

impl Exhaustive {
    /// Creates a search without reduction.
    pub fn naive() -> Self {
        Self { naive: true, ..Self::default() }
    }

    /// Prepares the next run. Returns false if no run would show anything new.
    pub fn advance(&mut self) -> bool {
        while let Some(frame) = self.frames.last_mut() {
            match &mut frame.value {
                Some((value, options)) if *value + 1 < *options => {
                    *value += 1;
                    return true;
                }
                _ => {}
            }
            frame.done.push(frame.lane);
            let next = frame.wanted.iter().copied().find(|lane| !frame.done.contains(lane) && !frame.asleep.contains(lane));
            if let Some(lane) = next {
                (frame.lane, frame.value) = (lane, None);
                return true;
            }
            self.frames.pop();
        }
        false
    }

    /// Appends a new point to the run. Returns false if every lane sleeps there.
    fn extend(&mut self, ready: &Ready) -> bool {
        let lanes: Vec<_> = ready.lanes.iter().map(|lane| (*lane, Footprint::of(ready, *lane))).collect();
        if self.naive {
            let wanted: Vec<usize> = ready.lanes.to_vec();
            let frame = Frame { ready: lanes, lane: wanted[0], value: None, wanted, done: vec![], asleep: vec![], clock: vec![] };
            self.frames.push(frame);
            return true;
        }
        lanes.iter().for_each(|(lane, footprint)| self.want_before(*lane, *footprint));
        let asleep: Vec<usize> = self.frames.last().map_or_else(Vec::new, |last| {
            let sleeps = |lane: &usize| {
                *lane != last.lane && last.footprint_of(*lane).is_some_and(|footprint| !footprint.depends_on(last.footprint()))
            };
            last.asleep.iter().chain(&last.done).copied().filter(sleeps).collect()
        });
        let mut awake = lanes.iter().map(|lane| lane.0).filter(|lane| !asleep.contains(lane));
        let last = self.frames.last().map(|frame| frame.lane);
        let Some(lane) = awake.clone().find(|lane| Some(*lane) == last).or_else(|| awake.next()) else { return false };
        self.frames.push(Frame {
            ready: lanes,
            lane,
            value: None,
            wanted: vec![lane],
            done: Vec::new(),
            asleep,
            clock: Vec::new(),
        });
        true
    }

    /// Finds the last step before which `lane` could have made its next step, and marks that order to be tried.
    fn want_before(&mut self, lane: usize, footprint: Footprint) {
        let clock = &self.clocks[lane];
        let unordered = |at: &usize| {
            let step = &self.frames[*at];
            step.lane != lane && footprint.depends_on(step.footprint()) && clock[step.lane] <= *at
        };
        let Some(at) = (0..self.frames.len()).rev().find(unordered) else { return };
        // If the lane was not ready at that point, the search tries the lanes whose steps since then led up to it.
        let ready: Vec<usize> = self.frames[at].ready.iter().map(|ready| ready.0).collect();
        let wanted = if ready.contains(&lane) {
            vec![lane]
        } else {
            let leads = ready.iter().copied().find(|other| clock[*other] > at + 1);
            leads.map_or(ready, |other| vec![other])
        };
        let frame = &mut self.frames[at];
        let new = wanted.into_iter().filter(|lane| !frame.wanted.contains(lane)).collect::<Vec<_>>();
        frame.wanted.extend(new);
    }
}

impl Scheduler for Exhaustive {
    fn begin(&mut self, lanes: &[LaneName]) {
        self.depth = 0;
        self.clocks = vec![vec![0; lanes.len()]; lanes.len()];
    }

    fn next(&mut self, ready: &Ready) -> Option<usize> {
        if self.depth == self.frames.len() && !self.extend(ready) {
            return None;
        }
        let (before, frame) = self.frames.split_at_mut(self.depth);
        let frame = &mut frame[0];
        let (lane, footprint) = (frame.lane, frame.footprint());
        let mut clock = std::mem::take(&mut self.clocks[lane]);
        for step in before.iter().filter(|step| footprint.depends_on(step.footprint())) {
            join(&mut clock, &step.clock);
        }
        self.depth += 1;
        clock[lane] = self.depth;
        frame.clock.clone_from(&clock);
        self.clocks[lane] = clock;
        Some(ready.lanes.iter().position(|other| *other == lane).expect("a run can be repeated"))
    }

    fn value(&mut self, options: u32) -> u32 {
        let frame = &mut self.frames[self.depth - 1];
        let (value, again) = *frame.value.get_or_insert((0, options));
        assert_eq!(again, options, "a run can be repeated");
        value
    }

    fn met(&mut self, lanes: &[usize]) {
        let mut all = self.clocks[lanes[0]].clone();
        lanes.iter().for_each(|lane| join(&mut all, &self.clocks[*lane]));
        lanes.iter().for_each(|lane| self.clocks[*lane].clone_from(&all));
    }
}

fn join(clock: &mut [usize], other: &[usize]) {
    clock.iter_mut().zip(other).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
}
