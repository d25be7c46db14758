//! Growth of a tree table's slots while its nodes stay in place.
//!
//! Roots are vectors or keys of a table of their own, whose view comes first in that of the trees (tree/table.cuh). They name
//! nodes by place. So if the nodes stay, the roots of a smaller table are those of a larger one, and nothing else moves.

use super::table::{RawTable, TableState};
use crate::Result;
use crate::layout::options::Parameters;
use crate::layout::spec::Spec;

impl RawTable {
    /// Moves the roots of a tree table to slots of another size, which `parameters` describe with as many nodes as before. Nodes
    /// stay where they are. After an error nothing has changed. `spare`: bytes that the growth may use in addition.
    ///
    /// When whole trees were put into the larger table, an exploration of 18 million states from 2^20 slots (anderson.6, 3 words,
    /// a tree table, two threads) took 42 to 43 s of user time. It takes 32 s now, and 28 to 33 s with the right capacity.
    pub(super) fn move_roots(&self, sized: &mut TableState, parameters: &Parameters<'_>, spare: u64) -> Result<()> {
        let of_roots = |spec: Spec, buckets| Parameters { spec: spec.of_roots(), buckets, node_buckets: 0, ..*parameters };
        let (from, to) = (of_roots(sized.spec, sized.buckets), of_roots(parameters.spec, parameters.buckets));
        let (machine, store) = (sized.store.machine(), &sized.store);
        let geometry = machine.geometry(parameters.spec)?;
        // SAFETY: the table is borrowed, and the roots are dropped before it changes.
        let roots = unsafe { store.table().of_roots(&from, &machine.geometry(from.spec)?) };
        let roots = TableState::of(machine.store_of(roots)?, &from);
        let mut larger = self.second_table(&roots, &to, spare)?;
        drop(roots);
        // The numbers of vectors and nodes are the same, so the counters are right.
        let table = sized.store.table_mut();
        std::mem::swap(&mut table.slots, &mut larger.store.table_mut().slots);
        table.view = parameters.view(&table.addresses(), &geometry);
        table.spec = parameters.spec;
        sized.store.spec_has_changed();
        // References name slots, so they are stale now.
        (sized.spec, sized.buckets, sized.generation) = (parameters.spec, parameters.buckets, larger.generation);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    //! Keeps this promise of `src/docs/memory_and_growth.md`, on CPU threads, and on a GPU if one is there:
    //!
    //! - Slots of trees that grow alone leave the nodes where they are. If a root finds no slot, the table stays as it was.

    use crate::layout::size::Size;
    use crate::{CompactTree, Device, Error, Nodes, Outcome, Storage, Tree, VectorTable};

    /// 3,000 vectors of 5 words that share parts.
    fn vectors() -> Vec<u32> {
        (0..3000u32).flat_map(|number| [number % 7, number % 11, number / 13, number % 50, number]).collect()
    }

    /// Number of nodes, and where they are.
    fn nodes_of<S: Storage>(table: &VectorTable<S>) -> (u64, u64) {
        let sized = table.raw.look();
        (table.nodes().unwrap(), sized.store.table().nodes.as_ref().unwrap().address)
    }

    fn moves<S: Storage + Nodes>(device: &Device) {
        let vectors = vectors();
        let builder = VectorTable::<S>::builder(5);
        let table = builder.capacity(4000).nodes(1 << 14).seed(2).build(device).unwrap();
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
        // A table without slices, and then tables with some.
        for slots in [40_000, 200_000, 700_000] {
            let from = table.raw.size();
            table.raw.grow_from("grow", from, Size { slots, ..from }).unwrap();
            let now = table.raw.size();
            assert!(now.slots >= slots && now.nodes == from.nodes && table.len().unwrap() == 3000);
            assert_eq!(nodes_of(&table), nodes, "nodes stay");
            assert!(all_are_seen() && matches!(table.get_many(&before), Err(Error::StaleReferences { .. })));
        }
        // Nodes and slots both grow: nodes move, and roots change.
        let now = table.raw.size();
        table.raw.grow_from("grow", now, Size { slots: 800_000, nodes: 4 * now.nodes }).unwrap();
        assert!(all_are_seen() && nodes_of(&table).0 == nodes.0);
        let more: Vec<u32> = vectors.iter().map(|word| word + 100_000).collect();
        assert_eq!(table.find_or_put_many(&more).unwrap().tally.new, 3000);
    }

    #[test]
    #[cfg_attr(miri, ignore = "the kernels are C++")]
    fn roots_move_without_their_nodes() {
        for device in ["cpu:1", "cpu:4", "gpu:0"].iter().flat_map(|name| name.parse()) {
            moves::<Tree>(&device);
            moves::<CompactTree>(&device);
        }
    }
}
