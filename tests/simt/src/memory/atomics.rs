//! Atomic accesses: what they see and leave.

use super::view::{self, Event, Knowledge};
use super::{Access, Fault, Kind, Loaded, Memory, Order, Rc, Request, Write};

/// What a machine does with the loads of a kernel. All but the default are broken machines, for negative controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loads {
    /// Loads may see older values, as far as their order allows. Without, memory is sequentially consistent.
    pub stale: bool,
    /// Relaxed loads are done as plain ones, which a stale line of an L1 may serve.
    pub weak: bool,
    /// A 16-byte load is two of 8 bytes, as if it were a vector load.
    pub torn: bool,
}

impl Default for Loads {
    fn default() -> Self {
        Self { stale: true, weak: false, torn: false }
    }
}

impl Memory {
    /// One atomic (or, with `Order::Weak`, one explicit plain) load of `size` bytes. `choose` picks one of the values that may be
    /// seen; 0 is the newest.
    pub fn load(
        &mut self,
        lane: usize,
        request: &Request,
        address: *mut u8,
        size: usize,
        order: Order,
        choose: &mut dyn FnMut(u32) -> u32,
    ) -> Result<Loaded, Box<Fault>> {
        let strong = order != Order::Weak;
        let first = self.check_atomic(lane, request, address, size, false, strong)?;
        let cells = first..first + size / 4;
        let oldest = cells.clone().map(|cell| self.oldest_visible(lane, cell)).max().unwrap_or(0);
        let mut moments = vec![oldest];
        for cell in cells.clone() {
            moments.extend(self.cells[cell].values.iter().map(|value| value.0).filter(|event| *event > oldest));
        }
        moments.sort_unstable_by(|one, other| other.cmp(one));
        moments.dedup();
        let age = if moments.len() == 1 { 0 } else { choose(moments.len() as u32) };
        let moment = moments[age as usize];
        let mut loaded = Loaded { age, ..Loaded::default() };
        for (value, cell) in loaded.cells.iter_mut().zip(cells) {
            let seen = self.cells[cell].values.iter().rev().find(|value| value.0 <= moment).copied();
            *value = seen.map_or_else(|| self.newest(cell), |seen| seen.1);
            if let Some((event, _)) = seen.filter(|_| strong) {
                self.lanes[lane].see(cell as u32, event);
                self.learn(lane, event, order);
            }
        }
        Ok(loaded)
    }

    pub fn store(&mut self, lane: usize, request: &Request, address: *mut u8, size: usize) -> Result<(), Box<Fault>> {
        let strong = request.order != Order::Weak;
        let first = self.check_atomic(lane, request, address, size, true, strong)?;
        self.write(lane, first, &request.value[..size / 4], request.order, None);
        Ok(())
    }

    /// A read-modify-write; gives what was there before.
    pub fn read_modify_write(&mut self, lane: usize, request: &Request) -> Result<[u32; 4], Box<Fault>> {
        let size = request.size as usize;
        let first = self.check_atomic(lane, request, request.address, size, false, true)?;
        let mut old = [0; 4];
        let mut last = 0;
        for (value, cell) in old.iter_mut().zip(first..first + size / 4) {
            *value = self.newest(cell);
            let event = self.cells[cell].values.last().map_or(0, |value| value.0);
            self.lanes[lane].see(cell as u32, event);
            last = last.max(event);
        }
        self.learn(lane, last, request.order);
        if let Some(new) = modified(request, &old[..size / 4]) {
            self.check_atomic(lane, request, request.address, size, true, true)?;
            let passed_on = self.writes[last as usize].released.clone();
            self.write(lane, first, &new[..size / 4], request.order, passed_on.as_ref());
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

    /// These lanes are at a barrier: what each did before happens before what any does after.
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
        for cell in self.pieces(offset, size) {
            self.check_race(lane, cell, size, write, strong, access)?;
        }
        Ok(offset / 4)
    }

    fn newest(&self, cell: usize) -> u32 {
        (self.storage[cell / 4] >> (cell % 4 * 32)) as u32
    }

    /// The oldest write to a cell whose value a load may see.
    fn oldest_visible(&self, lane: usize, cell: usize) -> Event {
        let me = &self.lanes[lane];
        let seen = me.seen(cell as u32);
        let happened_before = |event: Event| {
            let write = &self.writes[event as usize];
            event <= seen || me.knows(write.lane, write.time)
        };
        self.cells[cell].values.iter().rev().map(|value| value.0).find(|event| happened_before(*event)).unwrap_or(0)
    }

    /// What a load or read-modify-write learns from the write that it reads from.
    fn learn(&mut self, lane: usize, event: Event, order: Order) {
        let Some(released) = self.writes[event as usize].released.clone() else { return };
        if order.acquires() {
            self.lanes[lane].acquire(&released);
        } else {
            self.lanes[lane].remember(&released);
        }
    }

    fn write(&mut self, lane: usize, first: usize, values: &[u32], order: Order, passed_on: Option<&Rc<Knowledge>>) {
        let event = self.writes.len() as Event;
        for (cell, value) in (first..).zip(values) {
            let old = self.newest(cell);
            let history = &mut self.cells[cell].values;
            if history.is_empty() {
                history.push((0, old));
            }
            history.push((event, *value));
            let (word, shift) = (cell / 4, cell % 4 * 32);
            self.storage[word] = self.storage[word] & !(0xFFFF_FFFF << shift) | u128::from(*value) << shift;
            self.lanes[lane].see(cell as u32, event);
        }
        let me = &mut self.lanes[lane];
        let time = me.time;
        let released = if order.releases() { Some(me.release()) } else { me.fenced.clone() };
        let released = if order == Order::Weak { None } else { view::join(released, passed_on) };
        self.writes.push(Write { lane, time, released });
    }
}

/// What a read-modify-write leaves, if it writes.
fn modified(request: &Request, old: &[u32]) -> Option<[u32; 4]> {
    let wide = |cells: &[u32]| u64::from(cells[0]) | cells.get(1).map_or(0, |high| u64::from(*high) << 32);
    let narrow = |value: u64| [value as u32, (value >> 32) as u32, 0, 0];
    match request.kind {
        Kind::CompareAndSwap => (old == &request.expected[..old.len()]).then_some(request.value),
        Kind::FetchAdd | Kind::Add => Some(narrow(wide(old).wrapping_add(wide(&request.value)))),
        Kind::Max => (wide(old) < wide(&request.value)).then_some(request.value),
        _ => None,
    }
}
