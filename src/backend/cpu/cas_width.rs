//! Number of bytes of a slot that the processor claims at once: 8 or 16.
//!
//! A locked claim of 16 bytes takes as long as two claims of 8 bytes (bench `cpu`), so slots of 3 to 16 words gain nothing from
//! claims of 16 bytes. Slots of 1 and 2 words gain because their buckets are then lines of 32 bytes. Wider vectors gain because
//! several words are compared and hashed at once. "Before" below: claims of 8 bytes and kernels of run-time width. "Now": claims
//! of 16 bytes, AVX-512 in the hash, and kernels for slots of 32 words.
//!
//! - Finding a stored vector, with the table in the cache, on one core (of 2) of an AMD EPYC: 32 words before 60 to 68 ns (20 of
//!   them for the hash), now 34 to 44; 64 words before 97, now 44; 128 words before 159, now 83; 2 words 17 both times; 4 and 8
//!   words now about 4 ns more.
//! - Find-or-put of a new (of a seen) vector on one thread, with the table in the cache: 32 words before 76 to 79 ns (59 to 62),
//!   now 60 (38); 64 words before 126 (95), now 68 (43).
//! - Before, `cargo bench --bench cpu` (`WARPSET_BENCH_LOG2=29`, fill 0.5) on an Intel Xeon had 4.3 million find-or-puts a second
//!   of 32 words on one thread and 71 million on 16 threads; of 2 words 28 and 279 million. So computing, not memory, took the
//!   time.
//! - Batches of new (of seen) vectors of 32 words from slices: before 0.04 G/s (0.05), now 0.11 (0.19).

use std::sync::OnceLock;

entries! {
    fn warpset_cpu_most_chunk_bytes() -> u32;
}

/// Smallest width, in words, of slots that are claimed 16 bytes at a time. Slots of 3 words up to this width are claimed 8 bytes
/// at a time. On 16 cores of a Xeon, claims of 16 bytes made find-or-puts of 8 and 16 words 5 to 12 % slower (a locked claim of
/// 16 bytes takes as long as two of 8), and padded slots of 3 to 7 words take up to 1.6 times the memory. With wider vectors,
/// claims of 16 bytes compare several words at once: vectors of 32 words took 60 ns instead of 77 ns. A vector of one or two
/// words is a single claim in any case. With claims of 16 bytes the buckets of such vectors are lines of 32 bytes, which was up
/// to 1.3 times as fast.
const WIDE: usize = 17;

/// Largest chunk for slots of `words` words. 16 bytes if that pays, the processor has a 16-byte compare-and-swap, and its
/// manufacturer guarantees that an aligned 16-byte load is atomic; otherwise 8. `WARPSET_CPU_CHUNK_BYTES=8` requests chunks of 8
/// bytes.
pub(crate) fn chunk_bytes(words: usize) -> u32 {
    if (3..WIDE).contains(&words) { 8 } else { most_chunk_bytes() }
}

fn most_chunk_bytes() -> u32 {
    static CHUNK_BYTES: OnceLock<u32> = OnceLock::new();
    *CHUNK_BYTES.get_or_init(|| {
        let is_asked = std::env::var("WARPSET_CPU_CHUNK_BYTES").is_ok_and(|bytes| bytes.trim() == "8");
        // SAFETY: the function returns a constant.
        let compiled = unsafe { warpset_cpu_most_chunk_bytes() };
        if !is_asked && compiled == 16 && has_claims_of_16() { 16 } else { 8 }
    })
}

/// Intel (Software Developer's Manual, volume 3, 9.1.1) and AMD (Architecture Programmer's Manual, volume 2, 7.3.2) guarantee
/// that an aligned 16-byte load is atomic on their processors with AVX.
#[cfg(target_arch = "x86_64")]
fn has_claims_of_16() -> bool {
    use std::arch::x86_64::__cpuid;
    #[allow(unused_unsafe)] // newer compilers know that
    // SAFETY: every x86-64 processor has this instruction.
    let leaf = unsafe { __cpuid(0) };
    let mut maker = [0; 12];
    for (part, register) in maker.chunks_exact_mut(4).zip([leaf.ebx, leaf.edx, leaf.ecx]) {
        part.copy_from_slice(&register.to_le_bytes());
    }
    [*b"GenuineIntel", *b"AuthenticAMD"].contains(&maker)
        && std::is_x86_feature_detected!("cmpxchg16b")
        && std::is_x86_feature_detected!("avx")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_claims_of_16() -> bool {
    false
}
