use super::*;
use crate::nvrtc::tests::{TABLE, compile};
use std::collections::HashSet;
use std::time::{Duration, Instant};
use warpset_random::Random;

/// Arguments, packed as kernels take them.
#[derive(Clone, Default)]
struct Arguments(Vec<u8>);

impl Arguments {
    fn with<T: Copy>(mut self, value: T) -> Self {
        self.0.resize(self.0.len().next_multiple_of(align_of::<T>()), 0);
        let bytes = (&raw const value).cast::<u8>();
        // SAFETY: reads the bytes of a value without padding.
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

/// Runs a kernel whose argument is one array.
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
    slice_buckets: u32,
    slice_mask: u32,
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
}

/// Puts a batch of vectors, each about twice, into a bucket table of 8 words, and checks all results. Returns the time of the
/// launch.
fn put_batch(count: usize, buckets: usize, seed: u64) -> Duration {
    let module = compile("table_kernels.cu", include_str!("../../../../cuda/table_kernels.cu"), &TABLE).unwrap();
    let (geometry, bytes) = module.global(c"warpset_geometry").unwrap();
    assert_eq!(bytes, 36);
    // SAFETY: nine words, as kernels have them.
    let geometry = unsafe { *geometry.cast::<[u32; 9]>() };
    let [slots_per_bucket, _, _, chunks, threads, shared, view_bytes, batch_bytes, _] = geometry;
    assert_eq!((slots_per_bucket, chunks), (2, 2));
    assert_eq!((view_bytes as usize, batch_bytes as usize), (size_of::<TableView>(), size_of::<BatchView>()));
    let find_or_put = module.function(c"warpset_find_or_put").unwrap();
    assert_eq!((find_or_put.parameter_sizes.as_slice(), find_or_put.argument_bytes), ([72, 88].as_slice(), 160));
    let mut random = Random::new(7);
    let ids: Vec<u64> = (0..count).map(|_| random.number_below(count as u64 / 2)).collect();
    let vectors: Vec<[u32; 8]> =
        ids.iter().map(|id| std::array::from_fn(|word| (*id as u32 ^ 5).wrapping_mul(word as u32 + 1))).collect();
    let mut slots = vec![[0u128; 4]; buckets];
    let seeds: Vec<u128> = (0..9).map(|_| u128::from(random.number()) << 64 | u128::from(random.number())).collect();
    let (mut stored, mut counts) = (0u64, [0u64; 5]);
    let view = TableView {
        slots: slots.as_mut_ptr().cast(),
        buckets: buckets as u64,
        slice_buckets: buckets as u32,
        slice_mask: !0,
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
    };
    let clear = module.function(c"warpset_clear").unwrap();
    run(&clear, &Launch { seed, ..launch(&Arguments::default().with(view), 8, 256) }).unwrap();
    let arguments = Arguments::default().with(view).with(batch);
    let begun = Instant::now();
    run(&find_or_put, &Launch { seed, dynamic_shared_bytes: shared, ..launch(&arguments, 8, threads) }).unwrap();
    let elapsed = begun.elapsed();
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
    elapsed
}

#[test]
fn a_batch_is_put_into_a_bucket_table() {
    for seed in [0, 1, 2] {
        put_batch(20_000, 10_007, seed);
    }
}

#[test]
#[ignore = "a measurement: a batch of a million vectors"]
fn how_long_a_million_vectors_take() {
    for seed in [0, 0, 1] {
        println!("a million vectors, seed {seed}: {:?}", put_batch(1_000_000, 1_000_003, seed));
    }
}

const WORDS: &str = "using u32 = unsigned; using u64 = unsigned long long;";

/// Each collective, by its result in each lane; in order and in random orders.
#[test]
fn collectives_give_each_lane_its_result() {
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
        ("int same; out[at] = __match_all_sync(~0u, lane / 32, &same) == ~0u && same;", all(|_| 1)),
        ("int same; out[at] = __match_all_sync(~0u, lane / 31, &same) + same;", all(|_| 0)),
        ("out[at] = __reduce_or_sync(~0u, 1u << lane / 2);", all(|_| 0xFFFF)),
        ("out[at] = __reduce_and_sync(~0u, ~(1u << lane / 2));", all(|_| 0xFFFF_0000)),
        ("out[at] = __reduce_xor_sync(~0u, lane < 31 ? lane : 0);", all(|_| 31)),
        ("out[at] = __reduce_add_sync(~0u, lane);", all(|_| 496)),
        ("out[at] = __reduce_min_sync(~0u, lane + 7) * 100 + __reduce_max_sync(~0u, lane);", all(|_| 731)),
        ("out[at] = -__reduce_min_sync(~0u, int(lane) - 9) * 100 + __reduce_max_sync(~0u, int(lane) - 40) + 9;", all(|_| 900)),
        (
            "__syncwarp(); out[at] = __popc(lane) + __clz(lane) + __ffs(lane);",
            all(|lane| lane.count_ones() + lane.leading_zeros() + if lane == 0 { 0 } else { lane.trailing_zeros() + 1 }),
        ),
        // Parts of a warp that meet at different sites.
        (
            "out[at] = lane < 8 ? __reduce_add_sync(0xFFu, 1) : lane < 24 ? __ballot_sync(0xFFFF00u, 1) : __shfl_sync(0xFF000000u, at, 31) % 32;",
            all(|lane| {
                if lane < 8 {
                    8
                } else if lane < 24 {
                    0xFF_FF00
                } else {
                    31
                }
            }),
        ),
        ("out[at] = __ballot_sync(__activemask(), 1) == 1u << lane;", all(|_| 1)),
        (
            "out[at] = __syncthreads_count(at < 40) * 100 + __syncthreads_or(at == 63) * 10 + __syncthreads_and(at != 5);",
            all(|_| 4010),
        ),
        ("out[at] = __umul64hi(1ull << 40, u64{lane} << 30) + __umulhi(1u << 31, lane * 2);", all(|lane| lane * 64 + lane)),
        (
            "out[at] = __brev(lane) >> 24 | min(lane, 5u) | max(3, int(lane)) << 8;",
            all(|lane| (lane.reverse_bits() >> 24) | lane.min(5) | lane.max(3) << 8),
        ),
    ];
    for (body, expected) in cases {
        for seed in [0, 1, 99] {
            let mut words = vec![7u32; 64];
            let source = kernel(&format!("u32 lane = threadIdx.x % 32, at = threadIdx.x; {body}"));
            run_on(&source, 1, 64, &mut words, seed).unwrap();
            assert_eq!(words, expected, "{body} with seed {seed}");
        }
    }
}

fn kernel(body: &str) -> String {
    format!("{WORDS} extern \"C\" __global__ void kernel(u32* out) {{ {body} }}")
}

#[test]
fn threads_know_who_they_are() {
    let source = kernel(
        "u32 block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
         u32 thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
         u32 lane; asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(lane));
         atomicAdd(out + block * 70 + thread, 1 + lane);",
    );
    let module = compile("kernel.cu", &source, &[]).unwrap();
    let function = module.function(c"kernel").unwrap();
    for seed in [0, 5] {
        let mut words = vec![0u32; 24 * 70];
        let arguments = Arguments::default().pointer(&mut words);
        run(&function, &Launch { grid: [2, 3, 4], block: [7, 5, 2], seed, ..launch(&arguments, 1, 1) }).unwrap();
        assert!(words.iter().enumerate().all(|(at, word)| *word == 1 + at as u32 % 70 % 32), "seed {seed}");
    }
}

/// Shared memory of both kinds belongs to the block, and is poisoned at first.
#[test]
fn blocks_have_shared_memory() {
    let source = kernel(
        "__shared__ u32 turned[128]; __shared__ u32 before; extern __shared__ __align__(16) u32 given[];
         out += blockIdx.x * 131;
         if (threadIdx.x == 0) out[128] = turned[64], out[129] = given[127], out[130] = u64(given) % 16;
         __syncthreads();
         turned[127 - threadIdx.x] = threadIdx.x + blockIdx.x;
         given[127 - threadIdx.x] = 1000 * threadIdx.x;
         if (threadIdx.x == 77) before = 5;
         __syncthreads();
         out[threadIdx.x] = turned[threadIdx.x] + given[threadIdx.x] + before;",
    );
    let module = compile("kernel.cu", &source, &[]).unwrap();
    let function = module.function(c"kernel").unwrap();
    assert_eq!(function.static_shared_bytes, 516);
    for seed in [0, 3] {
        let mut words = vec![0u32; 40 * 131];
        let arguments = Arguments::default().pointer(&mut words);
        run(&function, &Launch { dynamic_shared_bytes: 512, seed, ..launch(&arguments, 40, 128) }).unwrap();
        for (block, words) in words.chunks_exact(131).enumerate() {
            assert!((0..128).all(|at| words[at] as usize == (127 - at) * 1001 + block + 5), "block {block}");
            assert_eq!(words[128..], [0xCDCD_CDCD, 0xCDCD_CDCD, 0]);
        }
    }
}

/// Atomics of threads of many blocks at once.
#[test]
fn atomics_are_those_of_the_processor() {
    let source = format!(
        "{WORDS} extern \"C\" __global__ void kernel(u32* a, u64* b, float* c, unsigned short* d) {{
             u32 at = blockIdx.x * blockDim.x + threadIdx.x;
             atomicAdd(a, 1u); atomicSub(a + 1, 2u); atomicMax(a + 2, at); atomicMin(a + 3, at);
             atomicOr(a + 4, 1u << at % 32); atomicAnd(a + 5, ~(1u << at % 31)); atomicXor(a + 6, at);
             atomicInc(a + 7, 999); atomicDec(a + 8, 999); atomicAdd(reinterpret_cast<int*>(a + 9), -1);
             for (u32 old = a[10], seen; (seen = atomicCAS(a + 10, old, old + 3)) != old; old = seen) {{}}
             atomicAdd(b, 1ull << 33); atomicMax(b + 1, u64{{at}} << 32); atomicExch(b + 2, 7); atomicAdd(b + 3, __popc(at));
             atomicAdd(c, 0.5f);
             for (unsigned short old = *d, seen; (seen = atomicCAS(d, old, static_cast<unsigned short>(old + 1))) != old; old = seen) {{}}
         }}"
    );
    let module = compile("kernel.cu", &source, &[]).unwrap();
    let function = module.function(c"kernel").unwrap();
    let threads = 16 * 256u32;
    for seed in [0, 8] {
        let (mut a, mut b, mut c, mut d) = ([0u32; 11], [0u64; 4], [0f32], [0u16]);
        (a[3], a[5]) = (!0, !0);
        let arguments = Arguments::default().pointer(&mut a).pointer(&mut b).pointer(&mut c).pointer(&mut d);
        run(&function, &Launch { seed, ..launch(&arguments, 16, 256) }).unwrap();
        let (xor, ones) = (0..threads).fold((0, 0), |(xor, ones), at| (xor ^ at, ones + u64::from(at.count_ones())));
        let (inc, dec) = (threads % 1000, (1000 - threads % 1000) % 1000);
        let wanted = [
            threads,
            0u32.wrapping_sub(2 * threads),
            threads - 1,
            0,
            !0,
            1 << 31,
            xor,
            inc,
            dec,
            0u32.wrapping_sub(threads),
            3 * threads,
        ];
        assert_eq!(a, wanted, "seed {seed}");
        assert_eq!(b, [u64::from(threads) << 33, u64::from(threads - 1) << 32, 7, ones], "seed {seed}");
        assert_eq!((c[0], d[0]), (threads as f32 / 2.0, threads as u16), "seed {seed}");
    }
}

/// Blocks that wait for each other, and threads of one block that wait for each other, in loops without a call.
#[test]
fn threads_may_wait_for_others() {
    let source = kernel(
        "const u32 blocks = gridDim.x;
         for (u32 round = 0; round < 20; ++round) {
             __syncthreads();
             if (threadIdx.x == 0) {
                 __threadfence();
                 atomicAdd(out, 1u);
                 if (round % 2 == 0) while (*(volatile u32*)out < (round + 1) * blocks) {}
                 else while (*(volatile u32*)out < (round + 1) * blocks) __nanosleep(20);
                 __threadfence();
             }
             __syncthreads();
             if (threadIdx.x == 5 && blockIdx.x == round % blocks) atomicAdd(out + 1, *(volatile u32*)out / blocks);
         }
         if (threadIdx.x == 40) out[2] = 1;
         while (*(volatile u32*)(out + 2) == 0) { }",
    );
    let module = compile("kernel.cu", &source, &[]).unwrap();
    let function = module.function(c"kernel").unwrap();
    for seed in [0, 4] {
        let mut words = vec![0u32; 3];
        let arguments = Arguments::default().pointer(&mut words);
        run(&function, &Launch { cooperative: true, seed, ..launch(&arguments, 7, 64) }).unwrap();
        // A block may be a round ahead when another reads it, but no more.
        assert_eq!((words[0], words[2]), (140, 1), "seed {seed}");
        assert!((210..=231).contains(&words[1]), "{words:?}");
    }
}

#[test]
fn kernels_that_would_hang_or_be_wrong_are_faults() {
    let cases = [
        ("if (threadIdx.x == 3) return; out[0] = __ballot_sync(~0u, 1);", Status::Stuck, "without threads 3, which have ended"),
        ("if (threadIdx.x < 40) __syncthreads();", Status::Stuck, "threads 0-31 are at __syncthreads"),
        (
            "if (threadIdx.x < 16) __syncwarp(); else __syncthreads();",
            Status::Stuck,
            "without threads 16-31, which are elsewhere",
        ),
        (
            "if (threadIdx.x < 9) out[0] = __ballot_sync(~0u, 1); else out[1] = __shfl_sync(~0u, 1, 1);",
            Status::Stuck,
            "are at a shuffle",
        ),
        ("if (threadIdx.x == 9) __syncwarp(0xFF);", Status::Collective, "is called by lane 9, which is none of them"),
        ("if (threadIdx.x < 8) out[0] = __shfl_sync(0xFFu, 1, 8);", Status::Collective, "reads from lane 8"),
        ("if (threadIdx.x == 33) __trap();", Status::Trap, "block [0, 0, 0], thread [33, 0, 0]: __trap()"),
        ("assert(threadIdx.x != 34);", Status::Assertion, "kernel.cu(1): threadIdx.x != 34"),
        ("atomicAdd(reinterpret_cast<u64*>(out + 1), 1ull);", Status::Misaligned, "not aligned"),
        ("extern __shared__ unsigned char given[]; given[40] = 1;", Status::SharedMemory, "behind its 40 bytes"),
    ];
    for (body, status, text) in cases {
        let module = compile("kernel.cu", &kernel(body), &[]).unwrap();
        let function = module.function(c"kernel").unwrap();
        for seed in [0, 6] {
            let mut words = [0u128; 2];
            let arguments = Arguments::default().pointer(&mut words);
            let launch = Launch { seed, dynamic_shared_bytes: 40, ..launch(&arguments, 1, 64) };
            let fault = run(&function, &launch).expect_err(body);
            assert_eq!(fault.status, status, "{body}: {fault}");
            assert!(fault.message.contains(text) && fault.message.starts_with("kernel, block [0, 0, 0]"), "{body}: {fault}");
            // The next launch works.
            let module = compile("kernel.cu", &kernel("out[threadIdx.x % 8] = __ballot_sync(~0u, 1);"), &[]).unwrap();
            run(&module.function(c"kernel").unwrap(), &launch).unwrap();
            assert_eq!(words, [u128::MAX; 2]);
        }
    }
    // The warp lacks a lane of the mask.
    let module = compile("kernel.cu", &kernel("__syncwarp();"), &[]).unwrap();
    let arguments = Arguments::default().pointer(&mut [0u32]);
    let fault = run(&module.function(c"kernel").unwrap(), &launch(&arguments, 1, 20)).unwrap_err();
    assert!(fault.message.contains("without lanes 0xfff00000, which the block does not have"), "{fault}");
}

/// When a block has failed, blocks that wait for it end, too.
#[test]
fn a_failure_ends_all_blocks() {
    let source = kernel(
        "if (blockIdx.x == 2) __trap();
         if (threadIdx.x == 0) while (atomicAdd(out, 0u) == 0) __nanosleep(20);
         __syncthreads();",
    );
    let module = compile("kernel.cu", &source, &[]).unwrap();
    let mut words = [0u32];
    let arguments = Arguments::default().pointer(&mut words);
    let launch = Launch { cooperative: true, ..launch(&arguments, 4, 64) };
    let fault = run(&module.function(c"kernel").unwrap(), &launch).unwrap_err();
    assert_eq!(fault, Fault { status: Status::Trap, message: "kernel, block [2, 0, 0], thread [0, 0, 0]: __trap()".into() });
}

#[test]
fn sizes_that_no_launch_has_are_refused() {
    let source = format!(
        "{WORDS} extern \"C\" __global__ void __launch_bounds__(128) kernel(u32* out) {{ __shared__ volatile u32 mine[8]; mine[0] = 1; atomicAdd(out, 1u); }}"
    );
    let module = compile("kernel.cu", &source, &[]).unwrap();
    let function = module.function(c"kernel").unwrap();
    let mut words = [0u32];
    let arguments = Arguments::default().pointer(&mut words);
    let right = launch(&arguments, 1, 128);
    let most = 227 * 1024 - 32;
    let cases = [
        (Launch { grid: [0, 1, 1], ..right }, Status::InvalidValue),
        (Launch { grid: [1, 65536, 1], ..right }, Status::InvalidValue),
        (Launch { grid: [1 << 31, 1, 1], ..right }, Status::InvalidValue),
        (Launch { block: [8, 8, 0], ..right }, Status::InvalidValue),
        (Launch { block: [1, 1, 65], ..right }, Status::InvalidValue),
        (Launch { block: [32, 33, 1], ..right }, Status::InvalidValue),
        (Launch { block: [129, 1, 1], ..right }, Status::OutOfResources),
        (Launch { dynamic_shared_bytes: most + 1, ..right }, Status::InvalidValue),
        (Launch { arguments: &arguments.0[..7], ..right }, Status::InvalidValue),
    ];
    for (wrong, status) in cases {
        assert_eq!(run(&function, &wrong).map_err(|fault| fault.status), Err(status), "{wrong:?}");
        assert_eq!(function.check(&wrong).map_err(|fault| fault.status), Err(status), "{wrong:?}");
    }
    run(&function, &Launch { dynamic_shared_bytes: most, ..right }).unwrap();
    assert_eq!(words, [128]);
}

/// Lanes and blocks take turns in order without a seed; with a seed, in an order that it determines.
#[test]
fn a_seed_decides_the_order() {
    let source = kernel("out[atomicAdd(out, 1u) + 1] = threadIdx.x; __syncwarp(); out[atomicAdd(out, 1u) + 1] = threadIdx.x;");
    let order = |seed| {
        let mut words = vec![0u32; 129];
        run_on(&source, 1, 64, &mut words, seed).unwrap();
        assert_eq!(words[0], 128);
        words.split_off(1)
    };
    let in_turn = order(0);
    assert_eq!(in_turn[..32], (0..32).collect::<Vec<_>>());
    let drawn: HashSet<Vec<u32>> = (0..4).map(order).collect();
    assert_eq!(drawn.len(), 4);
    assert_eq!(order(3), order(3));
    // Other lanes run between a load and a store.
    let source = "#include \"warpset/platform.cuh\"
        extern \"C\" __global__ void kernel(unsigned* out) {
            for (int i = 0; i < 50; ++i) warpset::platform::store_relaxed(out, warpset::platform::load_relaxed(out) + 1);
        }";
    let sum = |seed| {
        let mut words = [0];
        run_on(source, 1, 32, &mut words, seed).unwrap();
        words[0]
    };
    assert_eq!(sum(0), 1600);
    assert!((1..10).any(|seed| sum(seed) < 1600), "some additions are lost");
    // Blocks begin in another order, each once.
    let module = compile("kernel.cu", &kernel("out[blockIdx.x + 1] = 1 + atomicAdd(out, 1u);"), &[]).unwrap();
    let orders: HashSet<Vec<u32>> = (0..6)
        .map(|seed| {
            let mut words = vec![0u32; 101];
            let arguments = Arguments::default().pointer(&mut words);
            run(&module.function(c"kernel").unwrap(), &Launch { seed, ..launch(&arguments, 100, 1) }).unwrap();
            let mut sorted = words[1..].to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, (1..=100).collect::<Vec<_>>());
            words
        })
        .collect();
    assert!(orders.len() > 1);
}

/// Runs several grids of several programs at the same time.
#[test]
fn grids_run_at_the_same_time() {
    let source = kernel(
        "__shared__ u32 sum; if (threadIdx.x == 0) sum = 0; __syncthreads(); atomicAdd(&sum, out[threadIdx.x]); __syncthreads(); if (threadIdx.x == 0) atomicAdd(out + 64, sum);",
    );
    let module = compile("kernel.cu", &source, &[]).unwrap();
    std::thread::scope(|scope| {
        for number in 0..8u32 {
            let function = module.function(c"kernel").unwrap();
            scope.spawn(move || {
                for seed in 0..10 {
                    let mut words: Vec<u32> = vec![number; 65];
                    words[64] = 0;
                    let arguments = Arguments::default().pointer(&mut words);
                    run(&function, &Launch { seed, cooperative: number % 2 == 0, ..launch(&arguments, 3, 64) }).unwrap();
                    assert_eq!(words[64], number * 64 * 3);
                }
            });
        }
    });
}

/// A block cache's kernel, which has barriers, static and dynamic shared memory, and a table.
#[test]
fn blocks_put_what_they_gather() {
    let module = compile("blocks.cu", include_str!("../../../suite/blocks.cu"), &TABLE).unwrap();
    let function = module.function(c"put_by_blocks").unwrap();
    let mut random = Random::new(11);
    for seed in [0, 21] {
        let ids: Vec<u32> = (0..3000).map(|_| random.number_below(700) as u32).collect();
        let vectors: Vec<[u32; 8]> = ids.iter().map(|id| [*id; 8]).collect();
        let mut slots = vec![[0u128; 4]; 1009];
        let seeds: Vec<u128> = (0..9).map(|_| u128::from(random.number()) << 64 | u128::from(random.number())).collect();
        let (mut stored, mut counts, mut news) = (0u64, [0u64; 5], vec![!0u64; 3000]);
        let (slots, seeds, stored_at) = (slots.as_mut_ptr().cast(), seeds.as_ptr(), &raw mut stored);
        let view = TableView {
            slots,
            buckets: 1009,
            slice_buckets: 1009,
            slice_mask: !0,
            seeds,
            stored: stored_at,
            hash_mask: !0,
            empty: [1, 2, 3, 4],
            probe_limit: 1000,
            width: 8,
        };
        let table = compile("table_kernels.cu", include_str!("../../../../cuda/table_kernels.cu"), &TABLE).unwrap();
        run(&table.function(c"warpset_clear").unwrap(), &launch(&Arguments::default().with(view), 2, 64)).unwrap();
        let arguments = Arguments::default().with(view).with(vectors.as_ptr()).with([0usize; 2]).with(3000u64);
        let arguments = arguments.pointer(&mut news).pointer(&mut counts);
        run(&function, &Launch { dynamic_shared_bytes: 40960, seed, ..launch(&arguments, 5, 64) }).unwrap();
        let distinct = ids.iter().collect::<HashSet<_>>().len() as u64;
        assert_eq!((stored, counts), (distinct, [3000, distinct, 0, distinct, 0]), "seed {seed}");
        let places: HashSet<u64> = news[..distinct as usize].iter().copied().collect();
        assert!(places.len() as u64 == distinct && places.iter().all(|slot| *slot < 2018));
    }
}

/// A signal handler finds out which thread of a kernel caused the signal.
#[test]
fn a_handler_knows_where_a_kernel_is() {
    const NAME: &str = "execution::tests::a_handler_knows_where_a_kernel_is";
    let bodies = [
        ("if (blockIdx.x == 1 && threadIdx.x == 37) out[1ull << 44] = 1;", "kernel [1, 0, 0] [37, 0, 0] false false"),
        (
            "extern __shared__ u32 given[]; if (blockIdx.x == 1 && threadIdx.x == 2) given[4096] = 1;",
            "kernel [1, 0, 0] [2, 0, 0] false true",
        ),
        (
            "volatile u32 room[50000]; if (blockIdx.x == 1) for (u32 i = 50000; i-- > 0;) room[i] = i;",
            "kernel [1, 0, 0] [0, 0, 0] true false",
        ),
    ];
    if let Ok(number) = std::env::var(NAME) {
        extern "C" fn handler(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
            // SAFETY: the system's information on the signal; the kernel's name stays while it runs.
            unsafe {
                let Whereabouts { kernel, block, thread, is_stack_overflow, is_beside_shared_memory } =
                    whereabouts((*info).si_addr() as usize).expect("a kernel runs");
                eprintln!("{} {block:?} {thread:?} {is_stack_overflow} {is_beside_shared_memory}", &*kernel);
                libc::_exit(7);
            }
        }
        // SAFETY: all zeros are a valid value of this struct, whose fields are then set; the handler has this type.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            assert_eq!(libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut()), 0);
        }
        let _ = run_on(&kernel(bodies[number.parse::<usize>().unwrap()].0), 2, 64, &mut [0; 4], 0);
        unreachable!("the kernel returns");
    }
    assert!(whereabouts(0).is_none());
    for (number, (body, wanted)) in bodies.iter().enumerate() {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let output = command.args(["--exact", NAME, "--nocapture"]).env(NAME, number.to_string()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(7) && text.contains(wanted), "{body}: {} {text}", output.status);
    }
}
