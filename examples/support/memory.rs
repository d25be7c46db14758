//! How much memory there is.

/// Bytes of memory that this process may still use; more than there can be where the system does not say.
pub fn free_memory() -> u64 {
    if !sysinfo::IS_SUPPORTED_SYSTEM {
        return i64::MAX as u64;
    }
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    let of_machine = system.available_memory();
    // A container may have less than its machine.
    system.cgroup_limits().map_or(of_machine, |limits| of_machine.min(limits.total_memory.saturating_sub(limits.rss)))
}
