//! Records the choices of a run and replays them.

use super::{LaneName, Ready, Scheduler};
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Lane that makes a step.
    Lane(u32),
    /// Value that the load of the step returns, or position that its write takes, if not the newest (0).
    Value(u32),
}

/// All choices of a run. As text, a schedule lists the lanes that made steps, each with the number of its consecutive steps (`3`
/// or `3*5`). `v1` follows a step whose load returned the second newest of the allowed values, or whose write took the second
/// newest position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule(pub Vec<Decision>);

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut at = 0;
        let mut space = "";
        while at < self.0.len() {
            let run = self.0[at..].iter().take_while(|decision| **decision == self.0[at]).count();
            match (self.0[at], run) {
                (Decision::Lane(lane), 1) => write!(f, "{space}{lane}")?,
                (Decision::Lane(lane), run) => write!(f, "{space}{lane}*{run}")?,
                (Decision::Value(age), _) => write!(f, "{space}v{age}")?,
            }
            at += if matches!(self.0[at], Decision::Lane(_)) { run } else { 1 };
            space = " ";
        }
        Ok(())
    }
}

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut decisions = Vec::new();
        let number = |text: &str| text.parse().map_err(|_| format!("{text:?} is no number of a lane or a value"));
        for word in text.split_whitespace() {
            if let Some(age) = word.strip_prefix('v') {
                decisions.push(Decision::Value(number(age)?));
            } else {
                let (lane, count) = word.split_once('*').unwrap_or((word, "1"));
                decisions
                    .extend((0..number(count)?).map(|_| Ok(Decision::Lane(number(lane)?))).collect::<Result<Vec<_>, String>>()?);
            }
        }
        Ok(Self(decisions))
    }
}

/// Records the choices of another scheduler.
pub struct Recorder<'a> {
    inner: &'a mut dyn Scheduler,
    pub schedule: Schedule,
}

impl<'a> Recorder<'a> {
    pub fn new(inner: &'a mut dyn Scheduler) -> Self {
        Self { inner, schedule: Schedule::default() }
    }
}

impl Scheduler for Recorder<'_> {
    fn begin(&mut self, lanes: &[LaneName]) {
        self.inner.begin(lanes);
    }

    fn next(&mut self, ready: &Ready) -> Option<usize> {
        let at = self.inner.next(ready)?;
        self.schedule.0.push(Decision::Lane(ready.lanes[at] as u32));
        Some(at)
    }

    fn value(&mut self, options: u32) -> u32 {
        let age = self.inner.value(options);
        if age != 0 {
            self.schedule.0.push(Decision::Value(age));
        }
        age
    }

    fn met(&mut self, lanes: &[usize]) {
        self.inner.met(lanes);
    }
}

/// Replays the choices of a schedule. After its end, the first ready lane makes each step.
pub struct Replay {
    schedule: Schedule,
    at: usize,
}

impl Replay {
    pub fn new(schedule: Schedule) -> Self {
        Self { schedule, at: 0 }
    }
}

impl Scheduler for Replay {
    fn begin(&mut self, _: &[LaneName]) {}

    fn next(&mut self, ready: &Ready) -> Option<usize> {
        let Some(Decision::Lane(lane)) = self.schedule.0.get(self.at) else { return Some(0) };
        self.at += 1;
        Some(ready.lanes.iter().position(|other| *other == *lane as usize).unwrap_or(0))
    }

    fn value(&mut self, options: u32) -> u32 {
        let Some(Decision::Value(age)) = self.schedule.0.get(self.at) else { return 0 };
        self.at += 1;
        (*age).min(options - 1)
    }
}
