//! Bytes that a state of a model takes in each kind of table: for `--tables`, and for the comment of `--emit`.

use crate::first_table::{self, NODE, keys_fit, roots_of, slot_bytes};
use crate::options::{DisplayOptions, KEY_WORDS, TableOptions};
use anyhow::Result;
use serde::Serialize;
use warpset::Device;
use warpset_model::ir::{Layout, Model};
use warpset_search::table_kind::TableKind;
use warpset_support::numbers::counted;
use warpset_support::program;

/// Least and most binary logarithm of a number of slots at which the width of a key's slot is looked for.
const LOG2_SLOTS: std::ops::RangeInclusive<u32> = 10..=36;

/// Bytes of a slot, in tables of at least some size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct SlotBytes {
    bytes: u64,
    from_slots: u64,
}

/// Bytes of a state in one kind of table.
#[derive(Debug, Serialize)]
struct BytesOf {
    table: &'static str,
    /// The kind that a search takes in place of this one, which has none for such states.
    becomes: Option<&'static str>,
    /// Bytes of the slot or row of a state, the smallest first. A table of fewer slots than all of them ask for has the last.
    slots: Vec<SlotBytes>,
    /// Most nodes of a state beside its slot, and bytes of a node. Equal nodes of several states are stored once.
    nodes: u64,
    node_bytes: u64,
    #[serde(skip)]
    text: String,
}

/// All kinds of tables, in the order of the documentation.
fn kinds(layout: &Layout) -> [BytesOf; 5] {
    let words = layout.words as u64;
    let all = |bytes| vec![SlotBytes { bytes, from_slots: 0 }];
    let nodes = words.saturating_sub(2);
    let padded = slot_bytes(TableKind::Bucket, layout.words);
    let of = |kind: TableKind, slots, text| {
        let (table, becomes, nodes, node_bytes) = (kind.name(), None, 0, 0);
        BytesOf { table, becomes, slots, nodes, node_bytes, text }
    };
    // Narrow slots, and the number of slots from which on keys or roots fit them.
    let narrow = |key_bits: &dyn Fn(u64) -> u32| -> (Vec<SlotBytes>, String) {
        let fits = |bytes: u64, slots: &u64| keys_fit(key_bits(*slots), bytes, *slots);
        let from = |bytes: u64| LOG2_SLOTS.map(|log2| 1u64 << log2).find(|slots| fits(bytes, slots)).map(|slots| (bytes, slots));
        let mut found: Vec<(u64, u64)> = [2, 4].into_iter().filter_map(from).collect();
        found.dedup_by_key(|(_, slots)| *slots); // wider slots that no smaller table needs
        let text: String = found.iter().map(|(bytes, slots)| format!("{bytes} from 2^{} slots on, ", slots.ilog2())).collect();
        (found.into_iter().map(|(bytes, from_slots)| SlotBytes { bytes, from_slots }).chain(all(8)).collect(), text + "else 8")
    };
    let trees = |kind, slots: Vec<SlotBytes>, roots: &str| match nodes {
        0 => BytesOf {
            becomes: Some(TableKind::Bucket.name()),
            ..of(kind, all(padded), "as bucket: states of 1 or 2 words have no trees".into())
        },
        _ => {
            let text = format!("{roots} for a root, and up to {} of {NODE}, shared", counted(nodes, "node"));
            BytesOf { nodes, node_bytes: NODE, ..of(kind, slots, text) }
        }
    };
    let (roots, roots_text) = narrow(&|slots| if nodes == 0 { layout.end } else { roots_of(layout, slots) });
    let bucket = if padded > 4 * words { format!(", {padded} where slots are padded") } else { String::new() };
    let compact = if layout.words > KEY_WORDS {
        let text = "as tree-compact: states have more than 64 bits".to_string();
        BytesOf {
            becomes: Some(TableKind::TreeCompact.name()),
            nodes,
            node_bytes: NODE,
            ..of(TableKind::Compact, roots.clone(), text)
        }
    } else {
        let (slots, text) = narrow(&|_| layout.end);
        of(TableKind::Compact, slots, text)
    };
    let index = [(4 * words + 8, 1 << 24), (4 * words + 4, 0)].map(|(bytes, from_slots)| SlotBytes { bytes, from_slots });
    let indexed = format!("{} for a row, and 4 of the index, or 8 from 2^24 slots on", 4 * words);
    [
        of(TableKind::Bucket, all(padded), format!("{}{bucket}", 4 * words)),
        trees(TableKind::Tree, all(8), "8"),
        trees(TableKind::TreeCompact, roots, &roots_text),
        compact,
        of(TableKind::Indexed, index.to_vec(), indexed),
    ]
}

/// The lines on all kinds of tables, and their title.
fn lines(layout: &Layout) -> (String, Vec<String>) {
    let used = format!("{}, {} bits in use", counted(layout.words as u64, "word"), layout.bits);
    let title = format!("Bytes of a state ({used}) by --table; slots can be filled to 0.95:");
    (title, kinds(layout).iter().map(|of| format!("  {:<14}{}", of.table, of.text)).collect())
}

/// A comment on the bytes that a state of this layout takes in each kind of table, of a slot and what belongs to it.
#[cfg(feature = "cuda")]
pub fn comment(layout: &Layout) -> String {
    let (title, lines) = lines(layout);
    let lines: String = lines.iter().map(|line| format!("// {line}\n")).collect();
    format!("// {title}\n//\n{lines}\n")
}

/// Prints the bytes of a state of the model by table, which table a search with these options takes on this device, and which one
/// it takes when that has filled `--memory`.
///
/// # Errors
///
/// The options contradict each other, or the device fails.
pub fn print(options: &TableOptions, display: &DisplayOptions, model: &Model, device: &Device) -> Result<u8> {
    let layout = &model.layout;
    let kind = first_table::kind(options, layout, device, model.property.is_none())?;
    let smaller = first_table::smaller(options, false, layout, kind);
    if display.json {
        let done = serde_json::json!({
            "model": model.source.name,
            "words": layout.words,
            "bits": layout.bits,
            "device": device.to_string(),
            "tables": kinds(layout),
            "takes": kind.name(),
            "takes_when_memory_is_full": smaller.map(TableKind::name),
            "error": null,
            "exit_code": 0,
        });
        program::print(&format!("{done}\n"))?;
        return Ok(0);
    }
    let (title, lines) = lines(layout);
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let then = smaller.map_or_else(String::new, |kind| format!("; then {kind}, if that fills --memory"));
    program::print(&format!("{title}\n\n{lines}\nA search with these options takes {kind} on {device}{then}.\n"))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_every_table_are_known() {
        let of = |words, bits| lines(&Layout { words, bits, end: bits, ..Layout::default() }).1.join("\n") + "\n";
        assert!(of(2, 54).contains("  compact       4 from 2^28 slots on, else 8\n"), "{}", of(2, 54));
        assert!(of(1, 20).contains("  compact       2 from 2^11 slots on, 4 from 2^10 slots on, else 8\n"), "{}", of(1, 20));
        assert!(of(2, 64).contains("  tree          as bucket"), "{}", of(2, 64));
        assert!(of(2, 64).contains("  compact       else 8\n"), "{}", of(2, 64));
        assert!(of(6, 190).contains("  compact       as tree-compact"), "{}", of(6, 190));
        assert!(of(3, 72).contains("  bucket        12, 16 where slots are padded\n"), "{}", of(3, 72));
        assert!(
            of(3, 72).contains(
                "  tree-compact  2 from 2^22 slots on, 4 from 2^10 slots on, else 8 for a root, and up to 1 node of 8, shared\n"
            ),
            "{}",
            of(3, 72)
        );
        let bytes = |words, bits| kinds(&Layout { words, bits, end: bits, ..Layout::default() }).map(|of| of.slots);
        assert_eq!(bytes(2, 54)[3], [(4, 1 << 28), (8, 0)].map(|(bytes, from_slots)| SlotBytes { bytes, from_slots }));
        assert_eq!(bytes(5, 140)[0], [SlotBytes { bytes: 32, from_slots: 0 }]);
    }
}
