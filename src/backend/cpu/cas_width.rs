//! Number of bytes of a slot that the processor claims at once.
//!
//! A locked claim of 16 bytes takes as long as two of 8, so slots of 3 to 16 words gain nothing from it (the bench `cpu`), and
//! those of 1 and 2 words lie in buckets of 32 bytes. Wider vectors gain by comparing and hashing several words at once. Measured
//! before and after (claims of 8 bytes and kernels of run-time width; claims of 16 bytes, AVX-512 in the hash and kernels for
//! slots of 32 words):
//!
//! - With the table in the cache, one core (of 2) of an AMD EPYC found a stored vector of 32 words in 60 to 68 ns, 20 of them for
//!   the hash; now in 34 to 44. 64 words: 97, now 44. 128 words: 159, now 83. Of 2 words: 17 as before; 4 and 8 words: about 4 ns
//!   more.
//! - Find-or-put on one thread, in tables that fit the cache: 32 words 76 to 79 ns (seen 59 to 62), now 60 (38); 64 words 126
//!   (95), now 68 (43).
//! - Before, `cargo bench --bench cpu` (`WARPSET_BENCH_LOG2=29`, fill 0.5) had 4.3 million find-or-puts a second of 32 words on
//!   one thread of an Intel Xeon and 71 million on 16, and 28 and 279 million of 2 words. So computing, not memory, took the
//!   time.
//! - Batches from slices had 0.04 G/s of 32 words (seen 0.05); now 0.11 (0.19).

use std::sync::OnceLock;

entries! {
    fn warpset_cpu_most_chunk_bytes() -> u32;
}

/// Smallest width, in words, of slots that are claimed by 16 bytes. Narrower slots are claimed by 8 bytes, except for slots of
/// one or two words. On 16 cores of a Xeon, claims of 16 bytes made find-or-puts of 8 and 16 words 5 to 12 % slower (a locked
/// claim of 16 bytes takes as long as two of 8), and padded slots of 3 to 7 words take up to 1.6 times the memory. With wider
/// vectors, claims of 16 bytes compare several words at once: vectors of 32 words took 60 ns instead of 77 ns. A vector of one or
/// two words is a single claim in any case. With this limit its buckets are lines of 32 bytes, which was up to 1.3 times as fast.
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

/// Intel (Software Developer's Manual, volume 3, 9.1.1) and AMD (Architecture Programmer's Manual, volume 2, 7.3.2) guarantee it
/// for their processors with AVX.
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
