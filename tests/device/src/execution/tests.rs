use super::*;
use crate::nvrtc::tests::{TABLE, compile};
use std::collections::HashSet;

/// Arguments, packed as kernels take them.
#[derive(Clone, Default)]
struct Arguments(Vec<u8>);

impl Arguments {
    fn with<T: Copy>(mut self, value: T) -> Self {
        self.0.resize(self.0.len().next_multiple_of(align_of::<T>()), 0);
        let bytes = (&raw const value).cast::<u8>();
        // SAFETY: the bytes of a value without padding that is read.
        self.0.extend_from_slice(unsafe { std::slice::from_raw_parts(bytes, size_of::<T>()) });
        self
    }

    fn pointer<T>(self, memory: &mut [T]) -> Self {
        self.with(memory.as_mut_ptr())
    }
}

fn launch(arguments: &Arguments, blocks: u32, threads: u32) -> Launch<'_> {
    let (grid, block) = ([blocks, 1, 1], [threads, 1, 1]);
    let arguments = arguments.0.as_slice();
    Launch { grid, block, dynamic_shared_bytes: 0, cooperative: false, arguments, seed: 0, device: 0, multiprocessors: 2 }
}

/// What a kernel does that is given one array.
fn run_on(source: &str, blocks: u32, threads: u32, words: &mut [u32], seed: u64) -> Result<(), Fault> {
    let module = compile("kernel.cu", source, &[]).unwrap();
    let function = module.function(c"kernel").expect("a kernel of this name");
    let arguments = Arguments::default().pointer(words);
    run(&function, &Launch { seed, ..launch(&arguments, blocks, threads) })
}

/// The view of a bucket table, as kernels have it.
#[derive(Clone, Copy)]
#[repr(C)]
struct TableView {
    slots: *mut u8,
    buckets: u64,
    seeds: *const u128,
    stored: *mut u64,
    hash_mask: u64,
    empty: [u32; 4],
    probe_limit: u32,
    width: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct BatchView {
    vectors: *const u32,
    count: u64,
    outcomes: *mut u8,
    references: *mut u64,
    new_references: *mut u64,
    new_capacity: u64,
    counts: *mut u64,
    parents: *const u64,
    changed: *const u32,
    workspace: *mut u8,
    tag: u64,
    refused: *const u64,
}

#[test]
fn a_batch_is_put_into_a_bucket_table() {
    let module = compile("table_kernels.cu", include_str!("../../../../cuda/table_kernels.cu"), &TABLE).unwrap();
    let (geometry, bytes) = module.global(c"warpset_geometry").unwrap();
    assert_eq!(bytes, 36);
    // SAFETY: nine words, as kernels have them.
    let geometry = unsafe { *geometry.cast::<[u32; 9]>() };
    let [slots_per_bucket, _, _, chunks, threads, shared, view_bytes, batch_bytes, _] = geometry;
    assert_eq!((slots_per_bucket, chunks), (2, 2));
    assert_eq!((view_bytes as usize, batch_bytes as usize), (size_of::<TableView>(), size_of::<BatchView>()));
    let find_or_put = module.function(c"warpset_find_or_put").unwrap();
    assert_eq!((find_or_put.parameter_sizes.as_slice(), find_or_put.argument_bytes), ([64, 96].as_slice(), 160));
    let count = 20_000;
    let mut random = block::Random(7);
    for seed in [0, 1, 2] {
        let ids: Vec<u64> = (0..count).map(|_| random.below(count as u64 / 2)).collect();
        let vectors: Vec<[u32; 8]> = ids.iter().map(|id| std::array::from_fn(|word| (*id as u32 ^ 5).wrapping_mul(word as u32 + 1))).collect();
        let buckets = 10_007;
        let mut slots = vec![[0u128; 4]; buckets];
        let seeds: Vec<u128> = (0..9).map(|_| u128::from(random.next()) << 64 | u128::from(random.next())).collect();
        let (mut stored, mut counts) = (0u64, [0u64; 5]);
        let view = TableView {
            slots: slots.as_mut_ptr().cast(),
            buckets: buckets as u64,
            seeds: seeds.as_ptr(),
            stored: &mut stored,
            hash_mask: !0,
            empty: [11, 22, 33, 44],
            probe_limit: 1000,
            width: 8,
        };
        let (mut outcomes, mut references) = (vec![9u8; count], vec![0u64; count]);
        let batch = BatchView {
            vectors: vectors.as_ptr().cast(),
            count: count as u64,
            outcomes: outcomes.as_mut_ptr(),
            references: references.as_mut_ptr(),
            new_references: std::ptr::null_mut(),
            new_capacity: 0,
            counts: counts.as_mut_ptr(),
            parents: std::ptr::null(),
            changed: std::ptr::null(),
            workspace: std::ptr::null_mut(),
            tag: 0,
            refused: std::ptr::null(),
        };
        let clear = module.function(c"warpset_clear").unwrap();
        run(&clear, &Launch { seed, ..launch(&Arguments::default().with(view), 8, 256) }).unwrap();
        let arguments = Arguments::default().with(view).with(batch);
        run(&find_or_put, &Launch { seed, dynamic_shared_bytes: shared, ..launch(&arguments, 8, threads) }).unwrap();
        let distinct = ids.iter().collect::<HashSet<_>>().len();
        assert_eq!(stored as usize, distinct);
        assert_eq!(counts, [count as u64, distinct as u64, 0, 0, 0]);
        let mut places = std::collections::HashMap::new();
        for (id, (outcome, reference)) in ids.iter().zip(outcomes.iter().zip(&references)) {
            let (place, news) = places.entry(id).or_insert((*reference, 0));
            assert_eq!(place, reference, "equal vectors are in one place");
            *news += u32::from(*outcome == 1);
        }
        assert!(places.values().all(|(_, news)| *news == 1), "each is new once");
        assert_eq!(places.values().map(|(place, _)| *place).collect::<HashSet<_>>().len(), distinct);
    }
}

const WORDS: &str = "using u32 = unsigned; using u64 = unsigned long long;";

/// Each collective, by what it gives lane by lane; in order and in random orders.
#[test]
fn collectives_give_each_lane_its_result() {
    let kernel = |body: &str| format!("{WORDS} extern \"C\" __global__ void kernel(u32* out) {{ u32 lane = threadIdx.x % 32, at = threadIdx.x; {body} }}");
    let all = |lane: fn(u32) -> u32| -> Vec<u32> { (0..64).map(|at| lane(at % 32)).collect() };
    type Case = (&'static str, Vec<u32>);
    let cases: Vec<Case> = vec![
        ("out[at] = __ballot_sync(~0u, lane % 3 == 0);", all(|_| 0x4924_9249)),
        ("out[at] = __any_sync(~0u, lane == 31) * 2 + __all_sync(~0u, lane < 31);", all(|_| 2)),
        ("out[at] = __shfl_sync(~0u, lane * 10, 5);", all(|_| 50)),
        ("out[at] = __shfl_sync(~0u, lane * 10, lane + 1);", all(|lane| (lane + 1) % 32 * 10)),
        ("out[at] = __shfl_sync(~0u, lane, 1, 8);", all(|lane| lane / 8 * 8 + 1)),
        ("out[at] = __shfl_up_sync(~0u, lane, 3);", all(|lane| if lane < 3 { lane } else { lane - 3 })),
        ("out[at] = __shfl_up_sync(~0u, lane, 3, 16);", all(|lane| if lane % 16 < 3 { lane } else { lane - 3 })),
        ("out[at] = __shfl_down_sync(~0u, lane, 3);", all(|lane| if lane < 29 { lane + 3 } else { lane })),
        ("out[at] = __shfl_xor_sync(~0u, lane, 6);", all(|lane| lane ^ 6)),
        ("u64 v = u64{lane} << 40; out[at] = __shfl_sync(~0u, v, 9) >> 40;", all(|_| 9)),
        ("float v = lane * 0.5f; out[at] = __shfl_sync(~0u, v, 9) * 2;", all(|_| 9)),
        ("out[at] = __match_any_sync(~0u, lane / 16);", all(|lane| if lane < 16 { 0xFFFF } else { 0xFFFF_0000 })),
        ("int same; out[at] = __match_all_sync(~0u, lane / 32, &same) + same;", all(|_| 0)),
        ("int same; out[at] = __match_all_sync(~0u, lane / 31, &same) + same;", all(|_| 0)),
        ("out[at] = __reduce_or_sync(~0u, 1u << lane / 2);", all(|_| 0xFFFF)),
        ("out[at] = __reduce_and_sync(~0u, ~(1u << lane / 2));", all(|_| 0xFFFF_0000)),
        ("out[at] = __reduce_xor_sync(~0u, lane < 31 ? lane : 0);", all(|_| 31)),
        ("out[at] = __reduce_add_sync(~0u, lane);", all(|_| 496)),
        ("out[at] = __reduce_min_sync(~0u, lane + 7) * 100 + __reduce_max_sync(~0u, lane);", all(|_| 731)),
        ("out[at] = -__reduce_min_sync(~0u, int(lane) - 9) * 100 + __reduce_max_sync(~0u, int(lane) - 40) + 9;", all(|_| 900)),
        ("__syncwarp(); out[at] = __popc(lane) + __clz(lane) + __ffs(lane);", all(|lane| lane.count_ones() + lane.leading_zeros() + if lane == 0 { 0 } else { lane.trailing_zeros() + 1 })),
        // Parts of a warp that come together in other places.
        ("out[at] = lane < 8 ? __reduce_add_sync(0xFFu, 1) : lane < 24 ? __ballot_sync(0xFFFF00u, 1) : __shfl_sync(0xFF000000u, at, 31) % 32;",
         all(|lane| if lane < 8 { 8 } else if lane < 24 { 0xFF_FF00 } else { 31 })),
        ("out[at] = __ballot_sync(__activemask(), 1) == 1u << lane;", all(|_| 1)),
        ("out[at] = __syncthreads_count(at < 40) * 100 + __syncthreads_or(at == 63) * 10 + __syncthreads_and(at != 5);", all(|_| 4010)),
        ("out[at] = __umul64hi(1ull << 40, u64{lane} << 30) + __umulhi(1u << 31, lane * 2);", all(|lane| lane * 64 + lane)),
        ("out[at] = __brev(lane) >> 24 | min(lane, 5u) | max(3, int(lane)) << 8;", all(|lane| (lane.reverse_bits() >> 24) | lane.min(5) | lane.max(3) << 8)),
    ];
    // The sixth of these is of lanes that are all equal.
    let all_equal = "int same; u32 m = __match_all_sync(~0u, 7, &same); out[at] = m == ~0u && same;";
    for (body, mut expected) in cases.into_iter().chain([(all_equal, all(|_| 1))]) {
        if body.contains("lane / 32") {
            // Equal in all lanes: the mask of all, and 1.
            expected = all(|_| 0);
        }
        for seed in [0, 1, 99] {
            let mut words = vec![7u32; 64];
            run_on(&kernel(body), 1, 64, &mut words, seed).unwrap();
            assert_eq!(words, expected, "{body} with seed {seed}");
        }
    }
}
