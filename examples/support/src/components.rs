//! Strongly connected components of a graph in memory, by one thread: Tarjan 1972, without recursion.

/// Numbers the strongly connected components of a graph from 0 on: returns the component of each of `count` nodes. `successors`
/// lists the successors of a node. A component has a lower number than the components from which it can be reached.
pub fn components<'g>(count: usize, successors: impl Fn(usize) -> &'g [u32]) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    // `order` is the time when a node was found; `low` is the earliest node on the stack that it is known to reach.
    let (mut order, mut low, mut component) = (vec![NONE; count], vec![0; count], vec![NONE; count]);
    let (mut stack, mut path) = (Vec::new(), Vec::<(u32, u32)>::new());
    let (mut found, mut components) = (0, 0);
    for root in 0..count as u32 {
        if order[root as usize] != NONE {
            continue;
        }
        path.push((root, 0));
        while let Some((node, next)) = path.pop() {
            let at = node as usize;
            if next == 0 {
                order[at] = found;
                low[at] = found;
                found += 1;
                stack.push(node);
            } else {
                // Returns from the previous successor.
                let child = successors(at)[next as usize - 1] as usize;
                low[at] = low[at].min(low[child]);
            }
            let targets = successors(at);
            let mut number = next as usize;
            while number < targets.len() && order[targets[number] as usize] != NONE {
                let target = targets[number] as usize;
                if component[target] == NONE {
                    low[at] = low[at].min(order[target]);
                }
                number += 1;
            }
            if number < targets.len() {
                path.push((node, number as u32 + 1));
                path.push((targets[number], 0));
            } else if low[at] == order[at] {
                while let Some(member) = stack.pop() {
                    component[member as usize] = components;
                    if member == node {
                        break;
                    }
                }
                components += 1;
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn components_are_what_reaches_each_other(edges in proptest::collection::vec((0usize..12, 0u32..12), 0..40)) {
            let mut targets = vec![Vec::new(); 12];
            edges.iter().for_each(|(from, to)| targets[*from].push(*to));
            let mut reaches = [[false; 12]; 12];
            (0..12).for_each(|at| reaches[at][at] = true);
            edges.iter().for_each(|(from, to)| reaches[*from][*to as usize] = true);
            for k in 0..12 {
                for i in 0..12 {
                    for j in 0..12 {
                        reaches[i][j] |= reaches[i][k] && reaches[k][j];
                    }
                }
            }
            let component = components(12, |at| &targets[at]);
            for i in 0..12 {
                for j in 0..12 {
                    prop_assert_eq!(component[i] == component[j], reaches[i][j] && reaches[j][i]);
                    prop_assert!(!reaches[i][j] || component[j] <= component[i]);
                }
            }
        }
    }

    #[test]
    fn long_chains_take_no_recursion() {
        let targets: Vec<Vec<u32>> = (1..=1_000_000).map(|next| vec![next % 1_000_000]).collect();
        assert!(components(1_000_000, |at| &targets[at]).iter().all(|component| *component == 0));
    }
}
