// Hashes long vectors by several pairs of words at once. This code is not in platform.cuh, because the header of the instructions
// takes the compiler half a second in each file that includes it.
#include "warpset/platform.cuh"

#if defined(__x86_64__)
// GCC 12 warns about values that its own header leaves undefined on purpose.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

namespace warpset {
namespace platform {

// Adds what `words` words (a multiple of 8) contribute to the two sums of a hash (core/hash.cuh). Computes four pairs at once,
// each for both instances.
//
//   seeds of four words, as they lie:  a    | b    | a'   | b'
//   the words that are added:          odd  | even | odd' | even'
//
// a and b are the seeds of an even and of the next, odd word. Each is two u64, one for each instance. The words are added
// crosswise, and the products of neighbours are summed.
__attribute__((target("avx512f,avx512dq"))) void add_pairs_at_once(const u128* seeds, const u32* vector, u32 words, u64& sum0,
                                                                   u64& sum1)
{
    const __m512i places = _mm512_set_epi32(0, 2, 0, 2, 0, 3, 0, 3, 0, 0, 0, 0, 0, 1, 0, 1);
    const __m512i four = _mm512_set1_epi32(4);
    const __mmask16 low_halves = 0x5555;
    __m512i sum = _mm512_setzero_si512();
    for (u32 word = 0; word < words; word += 8) {
        const __m512i eight = _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(vector + word)));
        const __m512i first = _mm512_add_epi64(_mm512_maskz_permutexvar_epi32(low_halves, places, eight),
                                               _mm512_loadu_si512(seeds + word));
        const __m512i second = _mm512_add_epi64(_mm512_maskz_permutexvar_epi32(low_halves, _mm512_add_epi32(places, four), eight),
                                                _mm512_loadu_si512(seeds + word + 4));
        const __m512i odd = _mm512_shuffle_i64x2(first, second, 0x88), even = _mm512_shuffle_i64x2(first, second, 0xDD);
        sum = _mm512_add_epi64(sum, _mm512_mullo_epi64(odd, even));
    }
    const __m256i half = _mm256_add_epi64(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
    const __m128i both = _mm_add_epi64(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    sum0 += static_cast<u64>(_mm_cvtsi128_si64(both));
    sum1 += static_cast<u64>(_mm_extract_epi64(both, 1));
}

}  // namespace platform
}  // namespace warpset
#endif
