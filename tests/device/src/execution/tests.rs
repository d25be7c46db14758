use super::*;
use crate::nvrtc::tests::{TABLE, compile};
use std::collections::HashSet;
use std::ffi::CString;

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
    let count: usize = std::env::var("COUNT").map_or(20_000, |text| text.parse().unwrap());
    let mut random = block::Random(7);
    for seed in [0, 1, 2] {
        let ids: Vec<u64> = (0..count).map(|_| random.below(count as u64 / 2)).collect();
        let vectors: Vec<[u32; 8]> = ids.iter().map(|id| std::array::from_fn(|word| (*id as u32 ^ 5).wrapping_mul(word as u32 + 1))).collect();
        let buckets = if count < 100_000 { 10_007 } else { 1_000_003 };
        let mut slots = vec![[0u128; 4]; buckets];
        let mut seeds: Vec<u128> = (0..9).map(|_| u128::from(random.next()) << 64 | u128::from(random.next())).collect();
        let (mut stored, mut counts) = (0u64, [0u64; 5]);
        let view = TableView {
            slots: slots.as_mut_ptr().cast(),
            buckets: buckets as u64,
            seeds: seeds.as_mut_ptr(),
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
        let begun = std::time::Instant::now();
        run(&find_or_put, &Launch { seed, dynamic_shared_bytes: shared, ..launch(&arguments, 8, threads) }).unwrap();
        println!("{count} vectors, seed {seed}: {:?}", begun.elapsed());
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
