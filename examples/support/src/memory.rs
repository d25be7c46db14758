//! Available memory.

use crate::exit;
use crate::numbers::counted;
use crate::program::Ended;
use anyhow::{Error, Result};
use indicatif::HumanBytes;

/// Amount of available memory, and the source of the limit.
#[derive(Clone, Copy, Debug)]
pub struct MemoryBudget {
    pub bytes: u64,
    /// Whether `--memory` sets the limit; otherwise the free memory is the limit.
    is_asked: bool,
}

impl MemoryBudget {
    /// Limit set by `--memory`.
    pub const fn allowed(bytes: u64) -> Self {
        Self { bytes, is_asked: true }
    }

    /// Limit of free memory.
    pub const fn free(bytes: u64) -> Self {
        Self { bytes, is_asked: false }
    }

    /// Limit set by `--memory`, or else the free memory of this machine.
    pub fn of(memory: Option<u64>) -> Self {
        memory.map_or_else(|| Self::free(free_memory()), Self::allowed)
    }

    /// Lowers the limit to that of `--memory`, if that is less.
    pub fn within(self, memory: Option<u64>) -> Self {
        memory.filter(|bytes| *bytes < self.bytes).map_or(self, Self::allowed)
    }

    /// Subtracts bytes that are taken.
    pub fn without(self, taken: u64) -> Self {
        Self { bytes: self.bytes.saturating_sub(taken), ..self }
    }

    /// Returns an error with the numbers if `bytes` exceeds the budget: either the limit was reached, or the machine has no more.
    pub fn ensure(self, what: &str, bytes: u64) -> Result<()> {
        if bytes <= self.bytes {
            return Ok(());
        }
        let needed = amount(bytes);
        if self.is_asked {
            let why = format!("{what} need {needed}, but --memory leaves {}", exactly(self.bytes));
            return Err(Ended { code: exit::INCOMPLETE, why }.into());
        }
        Err(Error::msg(format!("{what} need {needed}, but only {} are free", exactly(self.bytes))))
    }
}

/// Bytes of memory that this process may still use; `i64::MAX` if unknown.
pub fn free_memory() -> u64 {
    if !sysinfo::IS_SUPPORTED_SYSTEM {
        return i64::MAX as u64;
    }
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    let of_machine = system.available_memory();
    // A container may have less than its machine, and a process less than both (`ulimit -v`).
    let of_group = system.cgroup_limits().map_or(u64::MAX, |limits| limits.total_memory.saturating_sub(limits.rss));
    of_machine.min(of_group).min(free_addresses().unwrap_or(u64::MAX))
}

/// Bytes that may still be mapped, if the system has a limit.
fn free_addresses() -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}")).ok();
    unused_addresses(&read("limits")?, &read("statm")?)
}

/// Computes the result of [`free_addresses`] from the texts of `/proc/self/limits` and `/proc/self/statm`, for pages of 4096
/// bytes or more.
fn unused_addresses(limits: &str, statm: &str) -> Option<u64> {
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: u64 = limit.split_whitespace().next()?.parse().ok()?;
    let pages: u64 = statm.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(pages * 4096))
}

/// Formats an amount of memory, with a unit and exactly.
pub fn amount(bytes: u64) -> String {
    let (rounded, exact) = (HumanBytes(bytes), counted(bytes, "byte"));
    if bytes < 1 << 10 { format!("{exact} of memory") } else { format!("{rounded} of memory ({exact})") }
}

/// Formats bytes, with a unit and exactly.
fn exactly(bytes: u64) -> String {
    let exact = counted(bytes, "byte");
    if bytes < 1 << 10 { exact } else { format!("{} ({exact})", HumanBytes(bytes)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_no_errors_of_the_machine() {
        let error = |room: MemoryBudget| room.ensure("2 rows", 2048).unwrap_err();
        let of_limit = error(MemoryBudget::free(5000).within(Some(100)));
        assert_eq!(of_limit.to_string(), "2 rows need 2.00 KiB of memory (2,048 bytes), but --memory leaves 100 bytes");
        assert_eq!(of_limit.context("a file").downcast_ref::<Ended>().map(|ended| ended.code), Some(exit::INCOMPLETE));
        let of_machine = error(MemoryBudget::free(100).within(Some(5000)));
        assert!(of_machine.to_string().ends_with("but only 100 bytes are free") && !of_machine.is::<Ended>());
        assert!(MemoryBudget::allowed(2048).ensure("2 rows", 2048).is_ok());
    }

    #[test]
    fn a_process_may_have_less_than_its_machine() {
        let limits = |limit: &str| {
            format!("Limit  Soft Limit  Hard Limit  Units\nMax address space         {limit}    unlimited  bytes\n")
        };
        assert_eq!(unused_addresses(&limits("1000000"), "100 20 3 4 0 5 0\n"), Some(1_000_000 - 409_600));
        assert_eq!(unused_addresses(&limits("1000"), "100 20"), Some(0));
        assert_eq!(unused_addresses(&limits("unlimited"), "100 20"), None);
        assert_eq!(unused_addresses("", ""), None);
    }
}
