//! Atomic accesses: the values that loads return, and the values that writes leave.

use super::view::{self, Event, Moment};
use super::{Access, Accessed, Cell, Fault, Memory, Order, Request, RequestKind, Use, Value, Write};
use std::ops::Range;

/// How a machine treats the accesses of a kernel. Any value except the default describes a broken machine, for negative controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loads {
    /// Whether loads may return older values, and writes may be placed before newer ones, as far as their memory orders allow.
    /// Otherwise memory is sequentially consistent.
    pub stale: bool,
    /// Whether relaxed loads are treated as plain ones, which a stale line of an L1 cache may serve.
    pub weak: bool,
    /// Whether a 16-byte load is done as two loads of 8 bytes, like a vector load.
    pub torn: bool,
}

impl Default for Loads {
    fn default() -> Self {
        Self { stale: true, weak: false, torn: false }
    }
}

/// A position in the coherence order that a write may take.
#[derive(Clone, Copy, Debug)]
struct CoherencePosition {
    /// Moment of the newest write before this position.
    after: Moment,
    at: Moment,
}

/// Returns the moment of a write that is newer than all writes carried out before it. The gap to the previous moment leaves room
/// for other writes.
fn moment_of(event: Event) -> Moment {
    Moment::from(event) << 32
}

/// Picks one of `options` choices. Asks the scheduler only if there is more than one.
fn pick(options: usize, choose: &mut dyn FnMut(u32) -> u32) -> u32 {
    if options == 1 { 0 } else { choose(options as u32) }
}

impl Memory {
    /// Carries out one atomic load of `size` bytes or, with `Order::Weak`, one explicit plain load. `choose` picks one of the
    /// values that the load may return; 0 is the newest.
    pub fn load(
        &mut self,
        lane: usize,
        request: &Request,
        address: *mut u8,
        size: usize,
        order: Order,
        choose: &mut dyn FnMut(u32) -> u32,
    ) -> Result<Accessed, Box<Fault>> {
        let strong = order != Order::Weak;
        let first = self.check_atomic(lane, request, address, size, false, strong)?;
        let cells = first..first + size / 4;
        let moments = self.visible(lane, cells.clone());
        let age = pick(moments.len(), choose);
        let moment = moments[age as usize];
        let mut loaded = Accessed { age, ..Accessed::default() };
        for (value, cell) in loaded.cells.iter_mut().zip(cells) {
            let seen = self.value_as_of(cell, moment);
            *value = seen.map_or_else(|| self.newest(cell), |seen| seen.value);
            if let Some(seen) = seen.filter(|_| strong) {
                self.lanes[lane].see(cell as u32, seen.at);
                self.learn(lane, seen.event, order);
            }
        }
        Ok(loaded)
    }

    /// Carries out one atomic store or, with `Order::Weak`, one explicit plain store. `choose` picks one of the positions that
    /// the store may take in the coherence order; 0 is the newest.
    pub fn store(
        &mut self,
        lane: usize,
        request: &Request,
        address: *mut u8,
        size: usize,
        choose: &mut dyn FnMut(u32) -> u32,
    ) -> Result<Accessed, Box<Fault>> {
        let strong = request.order != Order::Weak;
        let first = self.check_atomic(lane, request, address, size, true, strong)?;
        let places = self.places(lane, first..first + size / 4);
        let age = pick(places.len(), choose);
        self.write(lane, first, &request.value[..size / 4], request.order, places[age as usize], None);
        Ok(Accessed { cells: request.value, age })
    }

    /// Carries out a read-modify-write and returns the previous value. `choose` works as for a store.
    pub fn read_modify_write(
        &mut self,
        lane: usize,
        request: &Request,
        choose: &mut dyn FnMut(u32) -> u32,
    ) -> Result<Accessed, Box<Fault>> {
        let size = request.size as usize;
        let first = self.check_atomic(lane, request, request.address, size, false, true)?;
        let cells = first..first + size / 4;
        let places = self.places(lane, cells.clone());
        let age = pick(places.len(), choose);
        let place = places[age as usize];
        let mut old = Accessed { age, ..Accessed::default() };
        let mut last = (0, 0);
        for (value, cell) in old.cells.iter_mut().zip(cells) {
            let seen = self.value_as_of(cell, place.after);
            *value = seen.map_or_else(|| self.newest(cell), |seen| seen.value);
            if let Some(seen) = seen {
                self.lanes[lane].see(cell as u32, seen.at);
                last = last.max((seen.at, seen.event));
            }
        }
        let (_, last) = last;
        self.learn(lane, last, request.order);
        if let Some(new) = modified(request, &old.cells[..size / 4]) {
            self.check_atomic(lane, request, request.address, size, true, true)?;
            self.write(lane, first, &new[..size / 4], request.order, place, Some(last));
        }
        Ok(old)
    }

    pub fn fence(&mut self, lane: usize, order: Order) {
        let lane = &mut self.lanes[lane];
        if order.acquires() {
            lane.acquire_fence();
        }
        if order.releases() {
            lane.release_fence();
        }
    }

    /// A barrier of these lanes: all their accesses before it happen before all their accesses after it.
    pub fn barrier(&mut self, lanes: &[usize]) {
        view::meet(&mut self.lanes, lanes);
    }

    fn check_atomic(
        &mut self,
        lane: usize,
        request: &Request,
        address: *mut u8,
        size: usize,
        write: bool,
        strong: bool,
    ) -> Result<usize, Box<Fault>> {
        let access = |memory: &Self| Access {
            lane: memory.names[lane],
            location: memory.location(address),
            size,
            write,
            strong,
            site: Some(request.site.to_string()),
        };
        let Some(offset) = self.offset(address) else { return Err(Box::new(Fault::OutOfBounds(access(self)))) };
        let unit = request.size as usize;
        if !offset.is_multiple_of(unit.min(size)) || !size.is_multiple_of(4) {
            return Err(Box::new(Fault::Misaligned(access(self))));
        }
        self.check_bounds(offset, size, write || request.kind.is_read_modify_write(), || access(self))?;
        if self.usage(offset) == Use::Block && !request.may_be_shared() {
            return Err(Box::new(Fault::NotGlobal(access(self))));
        }
        for cell in self.pieces(offset, size) {
            self.check_race(lane, cell, size, write, strong, access)?;
        }
        Ok(offset / 4)
    }

    fn newest(&self, cell: usize) -> u32 {
        (self.storage[cell / 4] >> (cell % 4 * 32)) as u32
    }

    /// Returns the newest value of a cell at a moment. `None` if the cell was never written atomically, so that it has only one
    /// value.
    fn value_as_of(&self, cell: usize, moment: Moment) -> Option<Value> {
        self.cells[cell].values.iter().rev().find(|value| value.at <= moment).copied()
    }

    /// Returns the moment of the oldest write to a cell that a lane may still read. The lane may place a write after that moment.
    fn oldest_visible(&self, lane: usize, cell: usize) -> Moment {
        let me = &self.lanes[lane];
        let seen = me.seen(cell as u32);
        let happened_before = |value: &&Value| {
            let write = &self.writes[value.event as usize];
            value.at <= seen || me.knows(write.lane, write.time)
        };
        let values = &self.cells[cell].values;
        values.iter().rev().find(happened_before).or(values.first()).map_or(0, |value| value.at)
    }

    /// Returns the moments at which a lane may read these cells, newest first.
    fn visible(&self, lane: usize, cells: Range<usize>) -> Vec<Moment> {
        let oldest = cells.clone().map(|cell| self.oldest_visible(lane, cell)).max().unwrap_or(0);
        let mut moments = vec![oldest];
        for cell in cells {
            moments.extend(self.cells[cell].values.iter().rev().map(|value| value.at).take_while(|at| *at > oldest));
        }
        moments.sort_unstable_by(|one, other| other.cmp(one));
        moments.dedup();
        moments
    }

    /// Returns the positions that a write of a lane to these cells may take, newest first. Each is after the oldest write that
    /// the lane may still read. None is between a read-modify-write and the write that it has read. The newest position is always
    /// free.
    fn places(&self, lane: usize, cells: Range<usize>) -> Vec<CoherencePosition> {
        let moments = self.visible(lane, cells.clone());
        let newest = moment_of(self.writes.len() as Event);
        let later = [newest].into_iter().chain(moments.iter().copied());
        let is_free = |moment| cells.clone().all(|cell| self.value_as_of(cell, moment).is_none_or(|value| !value.followed));
        let place = |(&after, later): (&Moment, Moment)| {
            let at = if later == newest { newest } else { after + (later - after) / 2 };
            // A gap between two moments has no free position if it has been halved too often.
            (at > after && is_free(after)).then_some(CoherencePosition { after, at })
        };
        moments.iter().zip(later).filter_map(place).collect()
    }

    /// Adds to a lane's knowledge what was released by the write from which its load or read-modify-write reads.
    fn learn(&mut self, lane: usize, event: Event, order: Order) {
        let Some(released) = self.writes[event as usize].released.clone() else { return };
        if order.acquires() {
            self.lanes[lane].acquire(&released);
        } else {
            self.lanes[lane].remember(&released);
        }
    }

    /// Writes values at a position. For a read-modify-write, `read` is the write that it has read.
    fn write(&mut self, lane: usize, first: usize, values: &[u32], order: Order, place: CoherencePosition, read: Option<Event>) {
        let event = self.writes.len() as Event;
        for (cell, &value) in (first..).zip(values) {
            let old = self.newest(cell);
            let Cell { values: history, first, .. } = &mut self.cells[cell];
            if history.is_empty() {
                history.push(Value { at: moment_of(*first), event: *first, value: old, followed: false });
            }
            let index = history.partition_point(|other| other.at < place.at);
            if read.is_some() {
                history[index - 1].followed = true;
            }
            history.insert(index, Value { at: place.at, event, value, followed: false });
            if index + 1 == history.len() {
                let (word, shift) = (cell / 4, cell % 4 * 32);
                self.storage[word] = self.storage[word] & !(0xFFFF_FFFF << shift) | u128::from(value) << shift;
            }
            self.lanes[lane].see(cell as u32, place.at);
        }
        let me = &mut self.lanes[lane];
        let time = me.time;
        let released = if order.releases() { Some(me.release()) } else { me.fenced.clone() };
        // A read-modify-write also passes on what the write that it has read passed on.
        let passed_on = read.and_then(|read| self.writes[read as usize].released.as_ref());
        let released = if order == Order::Weak { None } else { view::join(released, passed_on) };
        self.writes.push(Write { lane, time, released });
    }
}

/// Returns the value that a read-modify-write leaves; `None` if it writes nothing.
fn modified(request: &Request, old: &[u32]) -> Option<[u32; 4]> {
    let wide = |cells: &[u32]| u64::from(cells[0]) | cells.get(1).map_or(0, |high| u64::from(*high) << 32);
    let narrow = |value: u64| [value as u32, (value >> 32) as u32, 0, 0];
    match request.kind {
        RequestKind::CompareAndSwap => (old == &request.expected[..old.len()]).then_some(request.value),
        RequestKind::FetchAdd | RequestKind::Add => Some(narrow(wide(old).wrapping_add(wide(&request.value)))),
        RequestKind::Max => (wide(old) < wide(&request.value)).then_some(request.value),
        _ => None,
    }
}
