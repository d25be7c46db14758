//! Sizes of messages, as in cuda/warpset/cluster/partition.cuh.

use super::record::Wants;
use crate::layout::rank::LINE_BYTES;

/// Equals `message_trailer_bytes` of partition.cuh.
pub(crate) const TRAILER_BYTES: u64 = 16;

/// Distance between the cursors of two ranks, in 8-byte numbers: `cursor_step`.
pub(crate) const CURSOR_STEP: u64 = LINE_BYTES / 8;

/// Rounds `bytes` up to whole lines.
pub(crate) fn whole_lines(bytes: u64) -> u64 {
    bytes.next_multiple_of(LINE_BYTES)
}

/// Bytes of a message with `content` bytes of content; 0 without content.
pub(crate) fn message_bytes(content: u64) -> u64 {
    if content == 0 { 0 } else { whole_lines(LINE_BYTES + content + TRAILER_BYTES) }
}

/// Bytes of the content of a reply to `rows` rows.
pub(crate) fn reply_content(rows: u64, wants: Wants) -> u64 {
    match wants {
        Wants { references: true, .. } => whole_lines(rows) + 8 * rows,
        Wants { outcomes: true, .. } => rows,
        _ => 0,
    }
}
