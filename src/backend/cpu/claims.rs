//! How many bytes of a slot the processor claims at once.

use std::sync::OnceLock;

unsafe extern "C" {
    fn warpset_cpu_most_chunk_bytes() -> u32;
}

/// Slots of fewer words than this, and more than 2, are claimed by 8 bytes all the same. On 16 cores of a Xeon claims of 16 bytes
/// made find-or-puts of 8 and 16 words 5 to 12 % slower (a locked one takes as long as two of 8), and padded slots of 3 to 7
/// words take up to 1.6 times the memory. Of wider vectors several words are compared at once: those of 32 words took 77 ns, and
/// 60 so. One or two words are one claim anyway; their buckets are lines of 32 bytes with this, which was up to 1.3 times as
/// fast.
const WIDE: usize = 17;

/// The largest chunk of slots of so many words: 16 bytes where that pays, the processor has a compare-and-swap of so many, and
/// its maker promises that an aligned load of them is atomic; else 8. `WARPSET_CPU_CHUNK_BYTES=8` asks for these.
pub(crate) fn chunk_bytes(words: usize) -> u32 {
    if (3..WIDE).contains(&words) { 8 } else { most_chunk_bytes() }
}

fn most_chunk_bytes() -> u32 {
    static CHUNK_BYTES: OnceLock<u32> = OnceLock::new();
    *CHUNK_BYTES.get_or_init(|| {
        let is_asked = std::env::var("WARPSET_CPU_CHUNK_BYTES").is_ok_and(|bytes| bytes.trim() == "8");
        // SAFETY: gives a constant.
        let compiled = unsafe { warpset_cpu_most_chunk_bytes() };
        if !is_asked && compiled == 16 && has_claims_of_16() { 16 } else { 8 }
    })
}

/// Intel (Software Developer's Manual, volume 3, 9.1.1) and AMD (Architecture Programmer's Manual, volume 2, 7.3.2) promise it of
/// their processors with AVX.
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
