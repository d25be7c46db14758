//! Random vectors in host memory, drawn by all threads.

use crate::mix;

/// Fills `words` with vectors drawn from a pool of half as many. Pools of different `salt`, less than 256, are disjoint. For
/// widths of two words or more, distinct vectors of a pool differ in their first two words.
pub fn draw(words: &mut [u32], width: usize, salt: u64) {
    let count = words.len() / width;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = count.div_ceil(threads);
    std::thread::scope(|scope| {
        for (number, part) in words.chunks_mut(share * width).enumerate() {
            scope.spawn(move || {
                for (at, vector) in part.chunks_exact_mut(width).enumerate() {
                    let id = (mix((number * share + at) as u64) % (count as u64 / 2)) ^ (salt << 32);
                    let first = mix(id ^ (0xABCD << 40));
                    vector.iter_mut().zip(0..).for_each(|(word, at)| {
                        *word = match at {
                            0 => first as u32,
                            1 => (first >> 32) as u32,
                            _ => mix((id << 8) ^ at) as u32,
                        }
                    });
                }
            });
        }
    });
}
