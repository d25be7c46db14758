//! The structs that cross to cuda/warpset/cluster/partition.cuh.

use super::record::Wants;
use bytemuck::{Pod, Zeroable};

/// `warpset::PartitionView`. Addresses are of the rank's device; 0 where there is none.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct PartitionView {
    pub vectors: u64,
    pub count: u64,
    pub seeds: u64,
    pub hash_mask: u64,
    pub bounds: u64,
    pub slots: u64,
    pub representatives: u64,
    pub cursors: u64,
    pub capacities: u64,
    pub runs: u64,
    pub answers: u64,
    pub places: u64,
    pub replies: u64,
    pub outcomes: u64,
    pub references: u64,
    pub owners: u64,
    pub totals: u64,
    pub width: u32,
    pub ranks: u32,
    pub slot_mask: u32,
    pub with_references: u32,
}

/// `warpset::Stamp`: what a message begins with, up to `at`, which says where it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Stamp {
    pub magic: u64,
    pub sequence: u64,
    pub kind: u32,
    pub from: u32,
    pub to: u32,
    pub width: u32,
    pub rows: u64,
    pub bytes: u64,
    pub at: u64,
}

/// `warpset::StampView`.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct StampView {
    pub stamps: u64,
    pub count: u64,
    pub wrong: u64,
    pub cursors: u64,
}

/// `message_line_bytes` and `message_trailer_bytes` of partition.cuh.
pub(crate) const LINE_BYTES: u64 = 128;
pub(crate) const TRAILER_BYTES: u64 = 16;

/// From one rank's cursor to the next one's, in numbers: `cursor_step`.
pub(crate) const CURSOR_STEP: u64 = LINE_BYTES / 8;

/// Whole lines for so many bytes.
pub(crate) fn whole_lines(bytes: u64) -> u64 {
    bytes.next_multiple_of(LINE_BYTES)
}

/// Bytes of a message with so many of content; none without.
pub(crate) fn message_bytes(content: u64) -> u64 {
    if content == 0 { 0 } else { whole_lines(LINE_BYTES + content + TRAILER_BYTES) }
}

/// Bytes of the content of a reply to so many rows.
pub(crate) fn reply_content(rows: u64, wants: Wants) -> u64 {
    match wants {
        Wants { references: true, .. } => whole_lines(rows) + 8 * rows,
        Wants { outcomes: true, .. } => rows,
        _ => 0,
    }
}
