//! Growth of the slots of a table of trees beside its nodes.
//!
//! Roots are words or keys of a table of their own, whose view comes first in that of the trees (tree/table.cuh). They name nodes
//! by place. So if the nodes stay, the roots of a smaller table are those of a larger one, and nothing else moves.

use super::growth::{Growing, fill, is_filled_in_order};
use super::kernels::{CpuView, export, geometry};
use super::rehash::{put_all, rehash};
use super::store::CpuStore;
use super::system_memory::new_memory;
use crate::backend::Machine as _;
use crate::layout::options::{Addresses, Parameters};
use crate::layout::view::Counts;
use crate::{Result, Spec};
use std::ops::Range;
use std::sync::atomic::AtomicU64;

impl CpuStore {
    /// [`Store::move_roots`](crate::backend::Store::move_roots).
    pub(super) fn move_roots_alone(&mut self, parameters: &Parameters<'_>, slots_now: u64) -> Result<Option<Counts>> {
        let (spec, others) = (self.spec, parameters.spec);
        if !spec.is_tree() || spec.kind != others.kind || spec.key_bits != others.key_bits {
            return Ok(None);
        }
        let layout = geometry(parameters.spec);
        let bytes = parameters.slot_bytes(&layout);
        self.machine.check_memory(bytes)?;
        let slots = new_memory(bytes)?;
        let at = Addresses { slots: slots.address, ..self.addresses() };
        // The counters of the table stay as they are if roots find no slot.
        let counters: Box<[AtomicU64; 2]> = Box::default();
        let view = parameters.view(&Addresses { stored: counters.as_ptr() as u64, ..at }, &layout);
        let export = |slots: Range<u64>, roots: &mut [u32]| {
            assert!(roots.len() >= (slots.end - slots.start) as usize * Spec::ROOT_WORDS);
            // SAFETY: these are slots of the table (the caller knows their number), and the buffer has space for all of them.
            unsafe { export(CpuView::of_roots(self.spec, &self.view), slots, roots.as_mut_ptr()) }
        };
        let put = |roots: &[u32], counts: &mut Counts| {
            // SAFETY: a table of roots. Its slots are changed atomically.
            unsafe { put_all(&CpuView::of_roots(parameters.spec, &view), Spec::ROOT_WORDS, roots, counts) };
        };
        let counts = if !is_filled_in_order(parameters.spec) {
            // The system's zeros are EMPTY compact roots.
            rehash(self.machine.threads, 0..slots_now, Spec::ROOT_WORDS, export, put)?
        } else {
            debug_assert_eq!(geometry(self.spec), layout, "the layout of roots is the machine's");
            let growing = Growing { spec: parameters.spec, from: &self.view, slots: slots_now, to: &view };
            // SAFETY: roots that are not compact lie in a bucket table, whose layout depends on the machine only, so both tables
            // have the same spec as far as `fill` looks. The new slots have the bytes that the geometry of their spec says, and
            // nothing else uses them yet.
            unsafe { fill(self.machine.threads, growing)? }
        };
        if counts.full == 0 {
            // The numbers of vectors and nodes are the same, so the counters are right.
            (self.table.view, self.table.slots, self.table.spec) = (parameters.view(&at, &layout), slots, parameters.spec);
        }
        Ok(Some(counts))
    }
}

#[cfg(test)]
mod tests {
    //! Keeps this promise of `src/docs/memory_and_growth.md`:
    //!
    //! - Slots of trees that grow alone on a CPU leave the nodes where they are. If a root finds no slot, the table stays as it
    //!   was.

    use super::*;
    use crate::layout::size::Size;
    use crate::{CompactTree, Outcome};
    use crate::{Device, Error, Storage, TableBuilder, Tree, VectorTable, Words};

    /// 3,000 vectors of 5 words that share parts.
    fn vectors() -> Vec<u32> {
        (0..3000u32).flat_map(|number| [number % 7, number % 11, number / 13, number % 50, number]).collect()
    }

    fn nodes_of<S: Storage>(table: &VectorTable<S>) -> (u64, u64) {
        let sized = table.raw.look();
        let at = CpuStore::of(&*sized.store).unwrap().nodes.as_ref().unwrap().address;
        (table.nodes().unwrap(), at)
    }

    fn moves<S: Storage>(threads: usize, with_nodes: impl Fn(TableBuilder<Words, S>) -> TableBuilder<Words, S>) {
        let (device, vectors) = (Device::cpu_with_threads(threads), vectors());
        let table = with_nodes(VectorTable::<S>::builder(5).capacity(4000).seed(2)).build(&device).unwrap();
        let all_are_seen = || table.find_or_put_many(&vectors).unwrap().positions(Outcome::Seen).count() == 3000;
        table.find_or_put_many(&vectors).unwrap().complete(&table).unwrap();
        let (from, nodes, references) = (table.raw.size(), nodes_of(&table), table.locate_many(&vectors).unwrap());
        let before = references.iter().copied().flatten().collect::<Vec<_>>();
        // Too few slots: the table stays as it was, and so do references.
        let error = table.raw.grow_from("grow", from, Size { slots: 1000, ..from });
        if let Err(error) = error {
            let Error::TableFull { rejected, for_nodes: 0, offered: 3000, stored, .. } = error else { panic!("{error:?}") };
            assert_eq!((rejected + stored, table.raw.size(), table.len().unwrap()), (3000, from, 3000));
            assert!(table.get_many(&before).unwrap() == vectors && all_are_seen());
        } else {
            assert!(S::KIND != Tree::KIND, "1,000 slots hold 3,000 roots");
        }
        let from = table.raw.size();
        table.raw.grow_from("grow", from, Size { slots: 40_000, ..from }).unwrap();
        let now = table.raw.size();
        assert!(now.slots >= 40_000 && now.nodes == from.nodes && table.len().unwrap() == 3000);
        assert_eq!(nodes_of(&table), nodes, "nodes stay");
        assert!(all_are_seen() && matches!(table.get_many(&before), Err(Error::StaleReferences { .. })));
        // Nodes and slots both grow: nodes move, and roots change.
        table.raw.grow_from("grow", now, Size { slots: 50_000, nodes: 4 * from.nodes }).unwrap();
        assert!(all_are_seen() && nodes_of(&table).0 == nodes.0);
        let more: Vec<u32> = vectors.iter().map(|word| word + 100_000).collect();
        assert_eq!(table.find_or_put_many(&more).unwrap().tally.new, 3000);
    }

    #[test]
    fn roots_move_without_their_nodes() {
        for threads in [1, 4] {
            moves::<Tree>(threads, |builder| builder.nodes(1 << 14));
            moves::<CompactTree>(threads, |builder| builder.nodes(1 << 14));
        }
    }
}
