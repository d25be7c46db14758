//! Formulas about runs, answered over the markings of one exploration.
//!
//! Keeps these promises of `examples/explore/docs/nets.md`:
//!
//! - Formulas of LTL of one file share an exploration. One that the markings found do not decide has an exploration of its own.

use super::*;

pub fn formulas_are_answered_over_the_markings_of_one_exploration() {
    let place = TableOnDevice { device: "cpu:2", table: "tree" };
    let chain = chain_of_tokens(300);
    let reach = |tokens: u32| all("finally", &at_least(&["to"], tokens));
    let leave = |tokens: u32| all("globally", &at_most(&["to"], tokens));
    let formulas = [reach(250), leave(10), reach(301), all("next", &at_least(&["to"], 1)), leave(10)];
    let formulas = formulas.each_ref().map(String::as_str);
    let formula = property_set(&formulas);
    // An indexed table is searched for no product: there the markings alone answer.
    for table in ["tree", "indexed"] {
        let (code, found, text) = verdicts(TableOnDevice { table, ..place }, &chain, &formula, &[]);
        assert_eq!((code, text.as_str()), (Some(0), ""));
        assert_eq!(found, ["TRUE", "FALSE", "FALSE", "TRUE", "FALSE"]);
    }
    // A part of the markings decides a formula that a run through them violates, and one that no further marking can change.
    let (code, found, text) = verdicts(place, &chain, &formula, &["--max-states", "20"]);
    assert_eq!(found, ["CANNOT_COMPUTE", "FALSE", "CANNOT_COMPUTE", "TRUE", "FALSE"], "{text}");
    assert!(code == Some(3) && text.contains("P-00: stopped at --max-states"), "{code:?} {text}");
    // An unbounded net has such formulas, too.
    let source = net(&[("p", 0)], &["make"], &[("make", "p", 1)]);
    let stays = around("globally", &[&at_most(&["p"], 9)]);
    let formulas = [all("finally", &at_least(&["p"], 1000)), all("finally", &stays), all("next", &at_most(&["p"], 0))];
    let formulas = formulas.each_ref().map(String::as_str);
    let (code, found, text) = verdicts(place, &source, &property_set(&formulas), &[]);
    assert_eq!((code, found), (Some(3), vec!["CANNOT_COMPUTE".into(), "CANNOT_COMPUTE".into(), "FALSE".into()]), "{text}");
}
