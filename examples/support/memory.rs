//! How much memory there is.

use anyhow::{Result, ensure};
use indicatif::{HumanBytes, HumanCount};

/// Bytes of memory that this process may still use; more than there can be where the system does not say.
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

/// Bytes that may still be mapped, where the system says so and there is a limit.
fn free_addresses() -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}")).ok();
    unused_addresses(&read("limits")?, &read("statm")?)
}

/// From the texts of `/proc/self/limits` and `/proc/self/statm`, of pages of 4096 bytes or more.
fn unused_addresses(limits: &str, statm: &str) -> Option<u64> {
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: u64 = limit.split_whitespace().next()?.parse().ok()?;
    let pages: u64 = statm.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(pages * 4096))
}

/// An error with the numbers if `bytes` are more than `limit`.
#[allow(dead_code, reason = "`explore` ends in another way where memory is short")]
pub fn ensure_room(what: &str, bytes: u64, limit: u64) -> Result<()> {
    ensure!(bytes <= limit, "{what} need {}, but {} are free", amount(bytes), amount(limit));
    Ok(())
}

/// Bytes for people, and as they are.
#[allow(dead_code, reason = "of no use to `explore`")]
pub fn amount(bytes: u64) -> String {
    format!("{} of memory ({} bytes)", HumanBytes(bytes), HumanCount(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

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
