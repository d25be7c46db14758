//! Views: what each lane knows about the accesses of others.

use std::rc::Rc;

/// Number of a write, in the order in which writes were carried out. 0 stands for the contents of memory before the launch.
pub type Event = u32;

/// Position of a write in the coherence order: a write with a later moment is newer. 0 means before the launch.
///
/// The order of moments is not the order in which writes were carried out: a write may be placed before writes that its lane does
/// not know.
pub type Moment = u64;

/// By cell, the moment of the newest write that was read. Cells that are not listed were read only as they were at the start.
#[derive(Clone, Debug, Default)]
pub struct View(Vec<(u32, Moment)>);

impl View {
    pub fn get(&self, cell: u32) -> Moment {
        self.0.binary_search_by_key(&cell, |entry| entry.0).map_or(0, |at| self.0[at].1)
    }

    pub fn raise(&mut self, cell: u32, moment: Moment) {
        match self.0.binary_search_by_key(&cell, |entry| entry.0) {
            Ok(at) => self.0[at].1 = self.0[at].1.max(moment),
            Err(at) => self.0.insert(at, (cell, moment)),
        }
    }

    /// Raises the moment of every cell in `other`. Takes one pass, because both lists are ordered by cell.
    pub fn join(&mut self, other: &View) {
        let (mut at, mut new) = (0, Vec::new());
        for &(cell, moment) in &other.0 {
            at += self.0[at..].partition_point(|entry| entry.0 < cell);
            match self.0.get_mut(at) {
                Some(entry) if entry.0 == cell => entry.1 = entry.1.max(moment),
                _ => new.push((cell, moment)),
            }
        }
        if !new.is_empty() {
            // Both parts are sorted, and the standard library's stable sort merges them in linear time.
            self.0.append(&mut new);
            self.0.sort_by_key(|entry| entry.0);
        }
    }
}

/// Knowledge that lanes pass to each other by release and acquire, and by barriers.
#[derive(Clone, Debug)]
pub struct Knowledge {
    /// A vector clock: by lane, the time up to which its accesses happened before.
    pub clock: Vec<u32>,
    /// By cell, the newest write that a strong access has read. A later strong access reads no older write, and a later write is
    /// placed after it.
    pub seen: View,
}

impl Knowledge {
    fn join(&mut self, other: &Knowledge) {
        self.clock.iter_mut().zip(&other.clock).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
        self.seen.join(&other.seen);
    }
}

/// State of one lane. `base` is the knowledge that it shares with other lanes since they last met; it is stored once for all of
/// them.
#[derive(Clone, Debug)]
pub struct Lane {
    index: usize,
    base: Rc<Knowledge>,
    /// The lane's own time. It advances whenever others may learn about earlier accesses.
    pub time: u32,
    own: View,
    /// Knowledge that was released to this lane's relaxed loads. An acquire fence adds it to the lane's own knowledge.
    unfenced: Vec<Rc<Knowledge>>,
    /// Knowledge at the last release fence. Later relaxed writes pass it on.
    pub fenced: Option<Rc<Knowledge>>,
}

impl Lane {
    /// Creates the initial states of the lanes of a launch. Each lane knows the memory before the launch, and nothing about the
    /// other lanes.
    pub fn all(count: usize) -> Vec<Lane> {
        let base = Rc::new(Knowledge { clock: vec![0; count], seen: View::default() });
        let lane = |index| Lane { index, base: base.clone(), time: 1, own: View::default(), unfenced: Vec::new(), fenced: None };
        (0..count).map(lane).collect()
    }

    /// Whether an access of `lane` at this time happened before now.
    pub fn knows(&self, lane: usize, time: u32) -> bool {
        if lane == self.index { time <= self.time } else { time <= self.base.clock[lane] }
    }

    /// Returns the moment of the newest write to a cell that was read by a strong access of this lane, or of a lane from which it
    /// acquired.
    pub fn seen(&self, cell: u32) -> Moment {
        self.base.seen.get(cell).max(self.own.get(cell))
    }

    pub fn see(&mut self, cell: u32, moment: Moment) {
        if self.seen(cell) < moment {
            self.own.raise(cell, moment);
        }
    }

    fn all_known(&self) -> Knowledge {
        let mut knowledge = Knowledge::clone(&self.base);
        knowledge.clock[self.index] = self.time;
        knowledge.seen.join(&self.own);
        knowledge
    }

    /// Releases: returns the knowledge that the lane passes on.
    pub fn release(&mut self) -> Rc<Knowledge> {
        let known = Rc::new(self.all_known());
        self.time += 1;
        known
    }

    pub fn acquire(&mut self, released: &Knowledge) {
        // A lane's clock contains a time of another lane only because of a release at that time or later. That release included
        // everything that the other lane had read. So comparing clocks is enough to find out whether anything is new.
        if !released.clock.iter().enumerate().all(|(lane, &time)| self.knows(lane, time)) {
            Rc::make_mut(&mut self.base).join(released);
        }
    }

    /// Keeps knowledge that was released to a relaxed load. It takes effect only after a fence.
    pub fn remember(&mut self, released: &Rc<Knowledge>) {
        // A lane that reads a wide row gets the same release at every word.
        if !self.unfenced.iter().any(|earlier| Rc::ptr_eq(earlier, released)) {
            self.unfenced.push(released.clone());
        }
    }

    pub fn acquire_fence(&mut self) {
        for released in std::mem::take(&mut self.unfenced) {
            self.acquire(&released);
        }
    }

    pub fn release_fence(&mut self) {
        self.fenced = Some(self.release());
    }
}

/// A barrier: afterwards each of these lanes has the knowledge of all of them.
pub fn meet(lanes: &mut [Lane], who: &[usize]) {
    let Some(first) = who.first() else { return };
    let shared = lanes[*first].base.clone();
    let mut all = Knowledge::clone(&shared);
    for &at in who {
        let lane = &lanes[at];
        if !Rc::ptr_eq(&lane.base, &shared) {
            all.join(&lane.base);
        }
        all.clock[at] = all.clock[at].max(lane.time);
        all.seen.join(&lane.own);
    }
    let all = Rc::new(all);
    for &at in who {
        let lane = &mut lanes[at];
        lane.base = all.clone();
        lane.own = View::default();
        lane.time += 1;
    }
}

/// Joins the knowledge that two writes pass on. A read-modify-write also passes on the knowledge of the write that it has read.
pub fn join(one: Option<Rc<Knowledge>>, other: Option<&Rc<Knowledge>>) -> Option<Rc<Knowledge>> {
    match (one, other) {
        (Some(mut one), Some(other)) => {
            Rc::make_mut(&mut one).join(other);
            Some(one)
        }
        (one, other) => one.or_else(|| other.cloned()),
    }
}
