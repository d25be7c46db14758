//! Stacks of fibres, and switching from one fibre to another.

use std::arch::naked_asm;
use std::ptr;

/// Size of a stack in bytes. Stacks are aligned to this size, because a fibre finds its lane from its stack pointer.
pub(crate) const STACK_BYTES: usize = 128 * 1024;

/// Size of the guard below each stack in bytes. It cannot be accessed.
pub(super) const GUARD_BYTES: usize = 4096;

/// Maximum number of threads of a block, and therefore of stacks.
pub(super) const MOST_STACKS: usize = 1024;

/// Reserved memory for stacks. A stack becomes accessible when a block first needs it.
pub(super) struct Stacks {
    mapping: *mut u8,
    first: *mut u8,
    ready: usize,
}

impl Stacks {
    pub(super) fn new() -> Self {
        let bytes = (MOST_STACKS + 1) * STACK_BYTES;
        // SAFETY: the call creates a mapping at an address that the system chooses.
        let mapping = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0)
        };
        assert!(mapping != libc::MAP_FAILED, "no {bytes} bytes of address space for stacks: {}", std::io::Error::last_os_error());
        let mapping = mapping.cast::<u8>();
        // SAFETY: the offset is less than one stack, and the mapping has space for one stack more than is used.
        let first = unsafe { mapping.add(mapping.align_offset(STACK_BYTES)) };
        Self { mapping, first, ready: 0 }
    }

    /// Returns the end of stack `number`, which is aligned to `STACK_BYTES`.
    pub(super) fn end(&mut self, number: usize) -> *mut u8 {
        assert!(number < MOST_STACKS, "{number} of {MOST_STACKS} stacks");
        while self.ready <= number {
            // SAFETY: the address is inside the mapping, because `ready` is less than `MOST_STACKS`.
            let result = unsafe {
                let stack = self.first.add(self.ready * STACK_BYTES + GUARD_BYTES);
                libc::mprotect(stack.cast(), STACK_BYTES - GUARD_BYTES, libc::PROT_READ | libc::PROT_WRITE)
            };
            assert!(result == 0, "stack {}: {}", self.ready, std::io::Error::last_os_error());
            self.ready += 1;
        }
        // SAFETY: the address is inside the mapping, because `number` is less than `MOST_STACKS`.
        unsafe { self.first.add((number + 1) * STACK_BYTES) }
    }

    /// Whether an address is in the guard below one of the stacks.
    pub(super) fn is_overflow(&self, address: usize) -> bool {
        let (first, end) = (self.first as usize, self.first as usize + MOST_STACKS * STACK_BYTES);
        (first..end).contains(&address) && (address - first) % STACK_BYTES < GUARD_BYTES
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        // SAFETY: `new` has mapped this memory with this length, and no fibre runs on it.
        unsafe { libc::munmap(self.mapping.cast(), (MOST_STACKS + 1) * STACK_BYTES) };
    }
}

/// Suspends the running fibre, writes its place to `from`, and resumes the fibre at `to`.
///
/// # Safety
///
/// This function or [`first_place`] must have written `to`, which must be used only once.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn switch(from: *mut *mut u8, to: *mut u8) {
    // Save the registers that a function must preserve in the System V calling convention.
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov [rdi], rsp",
        "mov rsp, rsi",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}

#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn enter() {
    naked_asm!("mov rdi, r12", "call r13", "ud2")
}

/// Returns the place of a new fibre that calls `begin(argument)`, which never returns. Its stack is below `top`, which must be
/// aligned to 16 bytes.
///
/// # Safety
///
/// At least 56 bytes must be below `top`.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn first_place(top: *mut u8, begin: unsafe extern "C" fn(*mut u8) -> !, argument: *mut u8) -> *mut u8 {
    let words = [0, 0, begin as usize, argument as usize, 0, 0, enter as *const () as usize];
    // SAFETY: the caller has checked the space. After the return the stack is empty, and aligned as before a call.
    unsafe {
        let place = top.sub(size_of_val(&words)).cast::<[usize; 7]>();
        place.write(words);
        place.cast()
    }
}

/// Suspends the running fibre, writes its place to `from`, and resumes the fibre at `to`.
///
/// # Safety
///
/// This function or [`first_place`] must have written `to`, which must be used only once.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn switch(from: *mut *mut u8, to: *mut u8) {
    naked_asm!(
        "sub sp, sp, #160",
        "stp x19, x20, [sp]",
        "stp x21, x22, [sp, #16]",
        "stp x23, x24, [sp, #32]",
        "stp x25, x26, [sp, #48]",
        "stp x27, x28, [sp, #64]",
        "stp x29, x30, [sp, #80]",
        "stp d8, d9, [sp, #96]",
        "stp d10, d11, [sp, #112]",
        "stp d12, d13, [sp, #128]",
        "stp d14, d15, [sp, #144]",
        "mov x9, sp",
        "str x9, [x0]",
        "mov sp, x1",
        "ldp x19, x20, [sp]",
        "ldp x21, x22, [sp, #16]",
        "ldp x23, x24, [sp, #32]",
        "ldp x25, x26, [sp, #48]",
        "ldp x27, x28, [sp, #64]",
        "ldp x29, x30, [sp, #80]",
        "ldp d8, d9, [sp, #96]",
        "ldp d10, d11, [sp, #112]",
        "ldp d12, d13, [sp, #128]",
        "ldp d14, d15, [sp, #144]",
        "add sp, sp, #160",
        "ret",
    )
}

#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn enter() {
    naked_asm!("mov x0, x19", "blr x20", "brk #1")
}

/// Returns the place of a new fibre that calls `begin(argument)`, which never returns. Its stack is below `top`, which must be
/// aligned to 16 bytes.
///
/// # Safety
///
/// At least 160 bytes must be below `top`.
#[cfg(target_arch = "aarch64")]
pub(super) unsafe fn first_place(top: *mut u8, begin: unsafe extern "C" fn(*mut u8) -> !, argument: *mut u8) -> *mut u8 {
    let mut words = [0; 20];
    (words[0], words[1], words[11]) = (argument as usize, begin as usize, enter as *const () as usize);
    // SAFETY: the caller keeps the conditions of this function.
    unsafe {
        let place = top.sub(160).cast::<[usize; 20]>();
        place.write(words);
        place.cast()
    }
}
