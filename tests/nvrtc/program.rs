//! The programs to compile, and their compute capabilities.

use libtest_mimic::Failed;
use warpset::{BucketTable, CompactTreeTable, IndexedTable, RootTable, Strategy, TreeTable, gpu};

/// Compute capability of the GPU that the suite has run on. All programs are compiled for it.
pub const ALL: (u32, u32) = (9, 0);

/// The headers differ only in whether chunks may have 16 bytes, which begins with 9.0. Two of these capabilities are below that,
/// the oldest and one in wide use, and one is above. The code is otherwise equal, so a few programs of every kind show whether it
/// compiles.
const OTHERS: [(u32, u32); 3] = [OLDEST, (8, 0), (12, 0)];

/// Oldest compute capability that is supported.
pub const OLDEST: (u32, u32) = (7, 5);

/// Kernels that are compiled together.
#[derive(Clone, Copy)]
pub enum Program {
    Bucket {
        words: usize,
    },
    /// A bucket table whose slots are not padded.
    Dense {
        words: usize,
    },
    Tree {
        words: usize,
    },
    TreeBy {
        words: usize,
        strategy: Strategy,
    },
    Compact {
        key_bits: u32,
        slot_bits: u32,
    },
    CompactTree {
        words: usize,
        key_bits: u32,
        slot_bits: u32,
    },
    Indexed {
        words: usize,
        slot_bits: u32,
    },
    /// Kernels of a user that put by blocks.
    BlocksOfBucket {
        words: usize,
    },
    BlocksOfTree {
        words: usize,
    },
    /// Kernels of a rank of a cluster.
    Cluster,
}

/// Widths at which slots are padded by default: with tails of 4 bytes, of 8 and of both.
const DENSE: [usize; 13] = [3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 19, 34, 255];

/// Compact tables: key bits and slot bits.
const COMPACT: [(u32, u32); 9] = [(20, 16), (33, 16), (20, 32), (45, 32), (54, 32), (20, 64), (58, 64), (64, 64), (55, 32)];

/// Tree tables with compact roots: words, root bits and slot bits. Some roots end in a word, others in a reference.
const COMPACT_TREES: [(usize, u32, u32); 10] = [
    (3, 54, 32),
    (4, 20, 16),
    (6, 58, 32),
    (8, 46, 32),
    (16, 46, 32),
    (17, 64, 64),
    (32, 58, 64),
    (256, 64, 64),
    (4, 46, 32),
    (32, 46, 32),
];

/// Indexed tables: words, slot bits of the index.
const INDEXED: [(usize, u32); 17] = [
    (8, 64),
    (1, 32),
    (2, 64),
    (3, 32),
    (4, 64),
    (16, 32),
    (16, 64),
    (33, 64),
    (64, 32),
    (256, 64),
    (2, 32),
    (4, 32),
    (8, 32),
    (12, 32),
    (24, 32),
    (32, 32),
    (32, 64),
];

/// Widths of bucket tables and of trees. Vectors of these widths have one chunk, several and very many, each with and without a
/// shorter last chunk. A compilation takes seconds, so not all of the 256 widths are compiled.
fn widths(capability: (u32, u32)) -> [Vec<usize>; 2] {
    let wide = [24, 31, 32, 33, 64, 65, 100, 129, 255, 256];
    match capability {
        ALL => {
            [(1..=17).chain(wide).collect(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17].into_iter().chain(wide).collect()]
        }
        (8, 0) => [vec![1, 2, 4, 7, 10, 32], vec![2, 3, 8, 19, 37, 129]],
        _ => [vec![1, 3, 8, 37, 130], vec![1, 3, 8, 37]],
    }
}

/// Widths for a strategy, by its number: the one that is measured, and one of others for one of the other capabilities.
fn strategy_widths(capability: (u32, u32), number: usize) -> Vec<usize> {
    match capability {
        ALL => vec![16],
        _ if chosen(number, capability) => vec![[5, 33, 19, 130][number % 4]],
        _ => Vec::new(),
    }
}

/// Whether the program with this number in a list is compiled: every program for `ALL`, and for one of the others.
fn chosen(number: usize, capability: (u32, u32)) -> bool {
    capability == ALL || capability == OTHERS[number % OTHERS.len()]
}

/// Number of nodes of a tree table of `words` words whose roots have `key_bits` bits: two references to nodes, or one and a word.
fn nodes_for(words: usize, key_bits: u32) -> u64 {
    let reference = if (words - 1).is_power_of_two() { key_bits - 32 } else { key_bits / 2 };
    // In the middle of the numbers of nodes whose references have these bits.
    3 << (reference - 2)
}

/// Every program, with its compute capability.
pub fn all() -> Vec<(Program, (u32, u32))> {
    [ALL].into_iter().chain(OTHERS).flat_map(|capability| of(capability).into_iter().map(move |one| (one, capability))).collect()
}

fn of(capability: (u32, u32)) -> Vec<Program> {
    fn chosen_of<T: Copy>(list: &[T], capability: (u32, u32), program: impl Fn(T) -> Program) -> Vec<Program> {
        let chosen = list.iter().enumerate().filter(|(number, _)| chosen(*number, capability));
        chosen.map(|(_, one)| program(*one)).collect()
    }
    let mut programs = Vec::new();
    let [of_buckets, of_trees] = widths(capability);
    programs.extend(of_buckets.into_iter().map(|words| Program::Bucket { words }));
    programs.extend(of_trees.into_iter().map(|words| Program::Tree { words }));
    programs.extend(chosen_of(&COMPACT, capability, |(key_bits, slot_bits)| Program::Compact { key_bits, slot_bits }));
    programs.extend(chosen_of(&INDEXED, capability, |(words, slot_bits)| Program::Indexed { words, slot_bits }));
    programs.extend(chosen_of(&COMPACT_TREES, capability, |(words, key_bits, slot_bits)| Program::CompactTree {
        words,
        key_bits,
        slot_bits,
    }));
    programs.extend(Strategy::ALL.into_iter().enumerate().flat_map(|(number, strategy)| {
        strategy_widths(capability, number).into_iter().map(move |words| Program::TreeBy { words, strategy })
    }));
    let by_blocks = if capability == ALL { &[1, 10][..] } else { &[3] };
    programs.extend(
        by_blocks.iter().flat_map(|words| [Program::BlocksOfBucket { words: *words }, Program::BlocksOfTree { words: *words }]),
    );
    if capability == ALL {
        programs.extend(DENSE.map(|words| Program::Dense { words }));
    }
    programs.push(Program::Cluster);
    programs
}

impl Program {
    pub fn name(self) -> String {
        match self {
            Self::Bucket { words } => format!("bucket_of_{words}_words"),
            Self::Dense { words } => format!("dense_bucket_of_{words}_words"),
            Self::Tree { words } => format!("tree_of_{words}_words"),
            Self::TreeBy { words, strategy } => format!("{strategy}_of_{words}_words"),
            Self::Compact { key_bits, slot_bits } => format!("{key_bits}_bit_keys_in_{slot_bits}_bit_slots"),
            Self::CompactTree { words, key_bits, slot_bits } => {
                format!("tree_of_{words}_words_{key_bits}_bit_roots_in_{slot_bits}_bit_slots")
            }
            Self::Indexed { words, slot_bits } => format!("{words}_words_indexed_by_{slot_bits}_bits"),
            Self::BlocksOfBucket { words } => format!("puts_by_blocks_into_bucket_of_{words}_words"),
            Self::BlocksOfTree { words } => format!("puts_by_blocks_into_tree_of_{words}_words"),
            Self::Cluster => "ranks_of_a_cluster".into(),
        }
    }

    pub fn compile(self, capability: (u32, u32)) -> warpset::Result<Vec<u8>> {
        const BLOCKS: gpu::Program = gpu::Program::Own { name: "blocks.cu", source: include_str!("../suite/blocks.cu") };
        const TABLE: gpu::Program = gpu::Program::Table;
        match self {
            Self::Bucket { words } => gpu::compile(&BucketTable::builder(words), TABLE, capability),
            Self::Dense { words } => gpu::compile(&BucketTable::builder(words).dense(true), TABLE, capability),
            Self::Tree { words } => gpu::compile(&TreeTable::builder(words), TABLE, capability),
            Self::TreeBy { words, strategy } => gpu::compile(&TreeTable::builder(words).strategy(strategy), TABLE, capability),
            Self::Compact { key_bits, slot_bits } => {
                gpu::compile(&RootTable::builder().key_bits(key_bits).slot_bits(slot_bits), TABLE, capability)
            }
            Self::CompactTree { words, key_bits, slot_bits } => {
                let nodes = nodes_for(words, key_bits);
                gpu::compile(&CompactTreeTable::builder(words).nodes(nodes).slot_bits(slot_bits), TABLE, capability)
            }
            Self::Indexed { words, slot_bits } => {
                // Indexes of more slots than these have slots of 64 bits.
                let capacity = (1 << 24) + u64::from(slot_bits == 64);
                gpu::compile(&IndexedTable::builder(words).capacity(capacity), TABLE, capability)
            }
            Self::BlocksOfBucket { words } => gpu::compile(&BucketTable::builder(words), BLOCKS, capability),
            Self::BlocksOfTree { words } => gpu::compile(&TreeTable::builder(words), BLOCKS, capability),
            Self::Cluster => gpu::compile(&BucketTable::builder(1), gpu::Program::Rank, capability),
        }
    }

    /// An error unless the image has the kernels of the program, as far as these have known names.
    pub fn check(self, image: &[u8]) -> Result<(), Failed> {
        let kernels: &[&str] = match self {
            Self::BlocksOfBucket { .. } | Self::BlocksOfTree { .. } => &[],
            Self::Cluster => &[
                "cluster_claim",
                "cluster_scatter",
                "cluster_gather_put",
                "cluster_gather_found",
                "cluster_write_stamps",
                "cluster_check_stamps",
                "cluster_abi",
            ],
            _ => &[
                "clear",
                "find_or_put",
                "find",
                "find_or_put_received",
                "find_received",
                "get",
                "export",
                "measure",
                "gather_columns",
                "geometry",
            ],
        };
        // An image for an architecture that this NVRTC does not know is PTX, in which names do not end in a zero.
        let has = |name: &str| image.windows(name.len()).any(|bytes| bytes == name.as_bytes());
        let missing: Vec<_> = kernels.iter().filter(|kernel| !has(&format!("warpset_{kernel}"))).collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("{missing:?} are missing").into()) }
    }

    /// Whether benches measure the table's search kernels.
    pub fn is_measured(self) -> bool {
        match self {
            Self::Bucket { words } => words <= 16 || [24, 32, 64].contains(&words),
            Self::Dense { words } => words < 16,
            Self::Tree { words } => [4, 6, 8, 12, 16, 32].contains(&words),
            Self::TreeBy { words, .. } => words == 16,
            Self::Compact { key_bits, slot_bits } => slot_bits == 32 && [45, 54, 55].contains(&key_bits),
            Self::CompactTree { words, .. } => [4, 8, 16, 32].contains(&words),
            Self::Indexed { words, .. } => words <= 16 || [24, 32, 64].contains(&words),
            Self::BlocksOfBucket { .. } | Self::BlocksOfTree { .. } | Self::Cluster => false,
        }
    }
}
