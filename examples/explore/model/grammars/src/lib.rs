//! Grammars of DVE, networks and SLCO, and the parsers that pest generates from them.

/// Models in DVE, and conditions.
pub mod dve {
    #[derive(pest_derive::Parser)]
    #[grammar = "src/dve.pest"]
    pub struct Grammar;
}

/// Networks of automata.
pub mod network {
    #[derive(pest_derive::Parser)]
    #[grammar = "src/network.pest"]
    pub struct Grammar;
}

/// Models in SLCO.
pub mod slco {
    #[derive(pest_derive::Parser)]
    #[grammar = "src/slco.pest"]
    pub struct Grammar;
}
