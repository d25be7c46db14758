//! Header of a file, which describes the table before its content: see src/docs/files.md.

use super::blocks::{CHECKSUM, Sink, Source, stored_bytes};
use super::slots::SlotLayout;
use crate::core::table::{RawTable, TableState};
use crate::layout::Kind;
use crate::layout::limits::{FEWEST_HALF_BITS, LAST_BITS, MAX_CAPACITY};
use crate::layout::options::{Options, Parameters, SeedPair, Seeds};
use crate::layout::size::{self, MAX_NODES, node_bytes};
use crate::layout::spec::Spec;
use crate::{Error, FileFault, Reference, Result, Strategy};
use bytemuck::{Pod, Zeroable};
use std::io::{Read, Write};

/// First bytes of a file. The first byte marks it as binary; a transfer in text mode would change the line ends.
const MAGIC: [u8; 8] = *b"\x93WPS\r\n\x1a\n";

/// Version of the format that is written, and newest version that is read.
pub(super) const VERSION: u32 = SLICED;

/// First version in which vectors lie in slices (cuda/warpset/core/probe.cuh). Before, they were probed in another order.
const SLICED: u32 = 2;

/// Largest size of a header, in bytes.
const MOST_BYTES: u64 = 8 << 10;

/// Bytes before the fields: magic, version, and the size of the header including its checksum.
const START: u64 = 16;

const GROWS: u32 = 1;
const DENSE: u32 = 2;
const CUCKOO: u32 = 4;

/// Fields of a header, without padding. The seeds of the hash follow them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Fields {
    /// Kind of table: its number in [`Kind::ALL`].
    kind: u32,
    pub width: u32,
    flags: u32,
    /// Bits of keys, or of compact roots.
    key_bits: u32,
    /// Bits of a slot of a compact table or an index.
    pub slot_bits: u32,
    /// Slot bits that the caller chose; 0: none.
    chosen_slot_bits: u32,
    pub slot_layout: SlotLayout,
    /// Pairs of seeds.
    seeds: u32,
    node_hash_mask: u32,
    empty: [u32; 4],
    strategy: [u8; 16],
    pub buckets: u64,
    pub node_buckets: u64,
    /// Vectors that are stored.
    pub stored: u64,
    pub nodes: u64,
    /// Indexed tables: rows given out; leading rows known to be stored; spare rows.
    pub given: u64,
    pub dense: u64,
    pub spares: u64,
    hash_mask: u64,
    family: u64,
    /// Generation of references to the table when it was saved.
    pub generation: u64,
    node_seeds: [u64; 3],
    /// Bytes of the parts.
    pub slot_bytes: u64,
    pub node_bytes: u64,
    pub row_bytes: u64,
    /// Factors of the hash family of compact slots, which the seed `family` determines.
    factors: [u64; 3],
    step: u64,
}

pub(super) struct Header {
    pub version: u32,
    pub fields: Fields,
    pub seeds: Seeds,
    /// Options with which the table was built.
    pub options: Options,
}

fn described(kind: Kind, width: Option<usize>) -> String {
    let name = kind.table();
    match width {
        Some(width) => format!("{name} of {width}-word vectors"),
        None => name.into(),
    }
}

impl Header {
    /// Header of a table that nothing else uses.
    pub(super) fn of(raw: &RawTable, sized: &TableState) -> Result<Self> {
        let (options, seeds) = (raw.options, &raw.seeds);
        let mut strategy = [0; 16];
        let name = sized.spec.strategy().to_string();
        strategy[..name.len()].copy_from_slice(name.as_bytes());
        let Spec { key_bits, slot_bits, .. } = sized.spec;
        let flag = |is: bool, flag: u32| if is { flag } else { 0 };
        let [stored, nodes] = sized.stored()?;
        let rows = sized.store.row_counts()?;
        let geometry = raw.geometry_of(sized);
        let fields = Fields {
            kind: options.kind as u32,
            width: options.width as u32,
            flags: flag(options.grows, GROWS) | flag(options.dense, DENSE) | flag(options.is_cuckoo(), CUCKOO),
            key_bits,
            slot_bits,
            chosen_slot_bits: options.slot_bits.unwrap_or(0),
            slot_layout: SlotLayout::of(sized.spec, &geometry),
            seeds: seeds.vectors.len() as u32,
            node_hash_mask: options.node_hash_mask,
            empty: seeds.empty,
            strategy,
            buckets: sized.buckets,
            node_buckets: sized.node_buckets,
            stored,
            nodes,
            given: rows.given,
            dense: sized.store.dense(),
            spares: rows.spares.len() as u64,
            hash_mask: options.hash_mask,
            family: seeds.family,
            generation: sized.generation.number(),
            node_seeds: seeds.nodes,
            slot_bytes: sized.spec.bytes(&geometry, sized.buckets),
            node_bytes: node_bytes(sized.node_buckets),
            row_bytes: sized.spec.row_bytes(rows.given),
            factors: [0; 3],
            step: 0,
        };
        let TableState { spec, buckets, node_buckets, .. } = *sized;
        let fields = fields.with_family(&Parameters { options: &options, seeds, spec, buckets, node_buckets });
        Ok(Self { version: VERSION, fields, seeds: seeds.clone(), options })
    }

    /// Bytes of the header, its checksum included.
    fn bytes(seeds: usize) -> u64 {
        START + size_of::<Fields>() as u64 + seeds as u64 * size_of::<SeedPair>() as u64 + CHECKSUM
    }

    /// Bytes of the whole file.
    pub(super) fn file_bytes(&self) -> u64 {
        let Fields { slot_bytes, node_bytes, row_bytes, spares, .. } = self.fields;
        let parts = [slot_bytes, node_bytes, row_bytes, spares * 8].map(stored_bytes);
        Self::bytes(self.seeds.vectors.len()) + parts.into_iter().sum::<u64>()
    }

    pub(super) fn write<W: Write>(&self, to: &mut Sink<W>) -> Result<()> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.version.to_le_bytes());
        bytes.extend((Self::bytes(self.seeds.vectors.len()) as u32).to_le_bytes());
        bytes.extend(bytemuck::bytes_of(&self.fields));
        bytes.extend(bytemuck::cast_slice::<SeedPair, u8>(&self.seeds.vectors));
        to.header(&bytes)
    }

    /// Reads a header and checks that a table with these properties can exist.
    pub(super) fn read<R: Read>(from: &mut Source<R>) -> Result<Self> {
        let mut bytes = vec![0; START as usize];
        let magic = from.read_up_to(&mut bytes[..MAGIC.len()])?;
        if bytes[..magic] != MAGIC[..magic] {
            let found = std::array::from_fn(|at| bytes[at]);
            return Err(FileFault::Foreign { found }.into());
        }
        if magic < MAGIC.len() {
            return Err(from.truncated());
        }
        from.read(&mut bytes[MAGIC.len()..])?;
        let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let (version, header_bytes) = (number(8), u64::from(number(12)));
        if version > VERSION {
            return Err(FileFault::Newer { version, newest: VERSION }.into());
        }
        if version == 0 || !(Self::bytes(0)..=MOST_BYTES).contains(&header_bytes) {
            return Err(from.damaged(format!("version {version} has no header of {header_bytes} bytes"), START));
        }
        bytes.resize((header_bytes - CHECKSUM) as usize, 0);
        from.needs(header_bytes);
        from.read(&mut bytes[START as usize..])?;
        from.check_header(&bytes)?;
        let (fields, seeds) = bytes[START as usize..].split_at(size_of::<Fields>());
        let fields: Fields = bytemuck::pod_read_unaligned(fields);
        if seeds.len() != fields.seeds as usize * size_of::<SeedPair>() {
            let what = format!("{} bytes of seeds, but {} pairs of them", seeds.len(), fields.seeds);
            return Err(from.damaged(what, header_bytes));
        }
        let wrong = |what: String| from.damaged(format!("no table has {what}"), header_bytes);
        let options = fields.options().map_err(wrong)?;
        let Fields { empty, node_seeds: nodes, family, .. } = fields;
        let seeds = Seeds { vectors: bytemuck::allocation::pod_collect_to_vec(seeds), empty, nodes, family };
        fields.check_counts().map_err(wrong)?;
        let header = Self { version, fields, seeds, options };
        from.needs(header.file_bytes());
        Ok(header)
    }

    /// Returns an error unless the table has this kind and, if `width` is given, this width.
    pub(super) fn check_is(&self, kind: Kind, width: Option<usize>) -> Result<()> {
        let own = self.options.width;
        if self.options.kind == kind && width.is_none_or(|width| width == own) {
            return Ok(());
        }
        let found = described(self.options.kind, Some(own));
        Err(FileFault::OtherTable { found, wanted: described(kind, width) }.into())
    }

    /// Whether searches of a table of this spec come to other slots than when it was saved.
    pub(super) fn is_probed_otherwise(&self, spec: Spec) -> bool {
        self.version < SLICED && (spec.kind.of_roots() == Kind::Bucket || spec.is_indexed())
    }

    /// Spec of the table on a device with compare-and-swaps of `chunk_bytes` bytes; none if no table has these properties.
    pub(super) fn spec(&self, chunk_bytes: u32) -> Option<Spec> {
        let Fields { key_bits, slot_bits, node_buckets, .. } = self.fields;
        let width = self.options.width;
        let bucket = Spec::bucket(width, chunk_bytes);
        match self.options.kind {
            Kind::Bucket if self.options.dense => bucket.map(Spec::dense),
            Kind::Bucket => bucket,
            Kind::Tree => Spec::tree(width, self.options.strategy, chunk_bytes),
            Kind::Root => Spec::compact(key_bits, slot_bits, self.options.cuckoo, chunk_bytes),
            Kind::CompactTree if width <= 2 => bucket,
            Kind::CompactTree if key_bits != Spec::root_bits(width, 2 * node_buckets, self.options.last_bits) => return None,
            Kind::CompactTree => Spec::compact_tree(width, key_bits, slot_bits, chunk_bytes),
            Kind::Indexed if ![32, 64].contains(&slot_bits) => return None,
            Kind::Indexed => Spec::indexed(width, slot_bits, chunk_bytes),
        }
        .ok()
    }
}

impl Fields {
    /// Options with which the table was built; an error if no table can be built with them.
    fn options(&self) -> Result<Options, String> {
        let Self { kind, width, flags, key_bits, chosen_slot_bits, .. } = *self;
        if flags & !(GROWS | DENSE | CUCKOO) != 0 {
            return Err(format!("flags {flags:#x}"));
        }
        let chosen = (chosen_slot_bits != 0).then_some(chosen_slot_bits);
        if chosen.is_some_and(|bits| ![16, 32, 64].contains(&bits)) {
            return Err(format!("slots of {chosen_slot_bits} bits"));
        }
        let kind = *Kind::ALL.get(kind as usize).ok_or_else(|| format!("the kind {kind}"))?;
        if kind == Kind::Root && width != 2 {
            return Err(format!("keys of {width} words"));
        }
        let Self { hash_mask, node_hash_mask, .. } = *self;
        let defaults = Options::new(kind, width as usize);
        Ok(Options {
            grows: flags & GROWS != 0,
            dense: kind == Kind::Bucket && flags & DENSE != 0,
            strategy: if kind == Kind::Tree { self.strategy()? } else { defaults.strategy },
            key_bits: if kind == Kind::Root { key_bits } else { defaults.key_bits },
            last_bits: if kind == Kind::CompactTree { self.last_bits() } else { defaults.last_bits },
            slot_bits: chosen.filter(|_| kind.is_compact()),
            cuckoo: kind == Kind::Root && flags & CUCKOO != 0,
            hash_mask,
            node_hash_mask,
            ..defaults
        })
    }

    /// Bits of the last word of vectors that roots have room for; all, if they are none of a root.
    fn last_bits(&self) -> u32 {
        let of_roots = Spec::ends_in_word(self.width as usize).then(|| {
            let references = Spec::reference_bits(2u64.saturating_mul(self.node_buckets));
            self.key_bits.checked_sub(references).filter(|bits| (FEWEST_HALF_BITS..=LAST_BITS).contains(bits))
        });
        of_roots.flatten().unwrap_or(LAST_BITS)
    }

    /// Adds the constants of the hash family of compact slots.
    fn with_family(self, parameters: &Parameters<'_>) -> Self {
        let Some((key_bits, _)) = parameters.spec.key_and_slot_bits() else { return Self { factors: [0; 3], step: 0, ..self } };
        let family = parameters.family(key_bits);
        Self { factors: family.multipliers, step: family.step, ..self }
    }

    /// Checks that the seed still produces the hash family with which the slots were filled. (A later version of the random
    /// number generator may derive another family from it.)
    pub(super) fn check_family(&self, parameters: &Parameters<'_>) -> Result<(), String> {
        let made = self.with_family(parameters);
        if made == *self {
            return Ok(());
        }
        let (said, made) = ((self.factors, self.step), (made.factors, made.step));
        Err(format!("the hash family {said:x?}, where its seed makes {made:x?}"))
    }

    fn strategy(&self) -> Result<Strategy, String> {
        let name = String::from_utf8_lossy(&self.strategy);
        let name = name.trim_end_matches('\0');
        name.parse().map_err(|_| format!("the strategy `{name}`"))
    }

    /// Checks that no sum or product in later checks can overflow. (`check_parts` compares the numbers with each other, which
    /// depends on the layout.)
    fn check_counts(&self) -> Result<(), String> {
        let Self { buckets, node_buckets, stored, nodes, given, dense, spares, generation, .. } = *self;
        let most = 1 << Reference::SLOT_BITS;
        let limits = [
            ("buckets", buckets, most),
            ("node buckets", node_buckets, MAX_NODES / 2),
            ("vectors", stored, most),
            ("nodes", nodes, node_buckets.saturating_mul(2)),
            ("rows", given, most),
            ("rows in order", dense, given),
            ("spare rows", spares, given),
            ("as generation", generation, u64::MAX >> Reference::SLOT_BITS),
            ("bytes of slots", self.slot_bytes, 1 << 56),
            ("bytes of nodes", self.node_bytes, 1 << 56),
            ("bytes of rows", self.row_bytes, 1 << 56),
        ];
        match limits.into_iter().find(|(_, number, most)| number > most) {
            Some((what, number, most)) => Err(format!("{number} {what}, but {most} at most")),
            None if buckets == 0 || generation == 0 => Err(format!("{buckets} buckets and generation {generation}")),
            None => Ok(()),
        }
    }

    /// Checks that a table of this spec has parts of these sizes.
    pub(super) fn check_parts(&self, spec: Spec, geometry: &crate::layout::view::Geometry, version: u32) -> Result<(), String> {
        let Self { buckets, node_buckets, given, stored, slot_bits, .. } = *self;
        let slots_per_bucket = if spec.is_indexed() { 256 / slot_bits } else { self.slot_layout.slots_per_bucket };
        let is_right = match spec.layout(buckets.clamp(2, u64::from(u32::MAX))) {
            // Levels of compact tables.
            Some(_) => (2..=u64::from(u32::MAX)).contains(&buckets),
            None if spec.is_compact() => false,
            None if buckets * u64::from(slots_per_bucket) > MAX_CAPACITY + (1 << 16) => false,
            None if version < SLICED => size::is_prime(buckets),
            None => size::is_hashed_buckets(buckets, slots_per_bucket),
        };
        if !is_right {
            return Err(format!("{buckets} buckets"));
        }
        let nodes_are_right = if spec.is_tree() { size::is_prime(node_buckets) } else { node_buckets == 0 };
        if !nodes_are_right || 2 * node_buckets > MAX_NODES {
            return Err(format!("{node_buckets} buckets of nodes"));
        }
        let slots = spec.layout(buckets).map_or(buckets * u64::from(slots_per_bucket), |layout| layout.slots());
        if !spec.is_indexed() && (stored > slots || given > 0) {
            return Err(format!("{stored} vectors stored in {slots} slots, and {given} rows"));
        }
        if spec.is_indexed() && (given > spec.rows(geometry, buckets) || stored > given || (slot_bits == 32 && slots > 1 << 25)) {
            return Err(format!("{given} rows, {stored} of them stored, and {slots} slots of {slot_bits} bits"));
        }
        let slot_bytes = match spec.is_compact() || spec.is_indexed() {
            true => spec.bytes(geometry, buckets),
            false => self.slot_layout.bytes(buckets),
        };
        let bytes = [slot_bytes, node_bytes(node_buckets), if spec.is_indexed() { spec.row_bytes(given) } else { 0 }];
        let said = [self.slot_bytes, self.node_bytes, self.row_bytes];
        if bytes != said || self.seeds != spec.hashed_words() + 1 {
            return Err(format!("parts of {said:?} bytes and {} pairs of seeds, but {bytes:?}", self.seeds));
        }
        Ok(())
    }
}

const _: () = {
    assert!(cfg!(target_endian = "little"), "numbers in files have their low bytes first");
    assert!(size_of::<Fields>() == 240);
};

impl From<FileFault> for Error {
    fn from(fault: FileFault) -> Self {
        Self::File { fault }
    }
}
