//! A readable record of a run, step by step.

use crate::fault::{LaneName, Location};
use crate::memory::Memory;
use crate::request::{Order, Request, RequestKind};
use std::fmt;

/// One access to memory.
#[derive(Clone, Debug)]
pub struct Step {
    pub lane: LaneName,
    pub location: Location,
    pub size: usize,
    kind: RequestKind,
    order: Order,
    expected: [u32; 4],
    value: [u32; 4],
    site: String,
    /// Value that the access read, or that was there before the access.
    pub answer: [u32; 4],
    /// Number of newer values that a load did not return, or before which a write was placed.
    pub age: u32,
}

impl Step {
    pub fn new(memory: &Memory, lane: usize, request: &Request, address: *mut u8, size: u32) -> Self {
        Self {
            lane: memory.names()[lane],
            location: memory.location(address),
            size: size as usize,
            kind: request.kind,
            order: request.order,
            expected: request.expected,
            value: request.value,
            site: request.site.to_string(),
            answer: [0; 4],
            age: 0,
        }
    }
}

/// Displays cells as one number. The first cell is in its low bits.
struct Number<'a>(&'a [u32]);

impl fmt::Display for Number<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.0.iter().rev().try_for_each(|cell| write!(f, "{cell:08x}"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells = self.size / 4;
        let number = |cells_of: &'_ [u32; 4]| Number(&cells_of[..cells]).to_string();
        write!(f, "{:<32} {:<24} ", self.lane.to_string(), self.location.to_string())?;
        match self.kind {
            RequestKind::Load => write!(f, "load gives {}", number(&self.answer))?,
            RequestKind::Store => write!(f, "store {}", number(&self.value))?,
            RequestKind::CompareAndSwap => {
                let (expected, value, was) = (number(&self.expected), number(&self.value), number(&self.answer));
                if was == expected {
                    write!(f, "compare-and-swap {expected} -> {value}")?;
                } else {
                    write!(f, "compare-and-swap {expected} -> {value} fails: {was}")?;
                }
            }
            RequestKind::Fence => f.write_str("fence")?,
            kind => write!(f, "{kind:?} {}, was {}", number(&self.value), number(&self.answer))?,
        }
        if self.age > 0 {
            write!(
                f,
                ", {} older than the newest",
                if self.age == 1 { "one write".into() } else { format!("{} writes", self.age) }
            )?;
        }
        if self.order != Order::Relaxed {
            write!(f, " ({:?})", self.order)?;
        }
        write!(f, "  [{}]", self.site)
    }
}

/// The steps of a run.
#[derive(Clone, Debug, Default)]
pub struct Trace(Vec<Step>);

impl Trace {
    pub fn push(&mut self, step: Step) {
        self.0.push(step);
    }

    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Formats the last `most` steps for which `about` returns true.
    pub fn show(&self, most: usize, about: impl Fn(&Step) -> bool) -> String {
        let steps: Vec<_> = self.0.iter().enumerate().filter(|(_, step)| about(step)).collect();
        let left_out = steps.len().saturating_sub(most);
        let mut text = if left_out > 0 { format!("  ({left_out} steps before)\n") } else { String::new() };
        for (number, step) in &steps[left_out..] {
            text += &format!("  {number:>6}  {step}\n");
        }
        text
    }
}
