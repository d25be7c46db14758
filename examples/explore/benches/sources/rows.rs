//! The rows of the papers' tables, and where the models of these rows come from.

use anyhow::{Context, Result, ensure};

const GPUEXPLORE_3: &str = include_str!("../../../../benches/sources/gpuexplore3.csv");
const GPUEXPLORE_1: &str = include_str!("../../../../benches/sources/gpuexplore1.csv");
const COUNTEREXAMPLES: &str = include_str!("../../../../benches/sources/counterexamples.csv");

/// Where the model of a row comes from.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// The file of this name in the folder that `WARPSET_BEEM` names.
    Beem,
    /// A text of `benches/sources/models`, with these constants.
    Text(&'static str, &'static [&'static str]),
    /// The network `broadcast` with this number of components.
    Broadcast(usize),
    /// There is no model, for this reason.
    Unknown(&'static str),
}

/// A row of a paper's table.
pub struct Row {
    /// Name in the paper, with a + if its authors have scaled the model.
    pub name: String,
    /// Name of the model's file.
    pub model: String,
    pub states: u64,
    pub origin: Origin,
    columns: Vec<&'static str>,
    cells: Vec<&'static str>,
}

impl Row {
    /// The paper's figure in a column: a number, `O.M.`, `T.`, or nothing.
    pub fn cell(&self, column: &str) -> &'static str {
        let at = self.columns.iter().position(|name| *name == column).unwrap_or_else(|| panic!("no column {column}"));
        self.cells[at]
    }
}

fn rows(text: &'static str, origin: impl Fn(&str) -> Origin) -> Result<Vec<Row>> {
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().context("the file has a head")?.split(',').collect();
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            ensure!(cells.len() == columns.len(), "{line}: {} cells of {}", cells.len(), columns.len());
            let model = cells[0].trim_end_matches('+').to_string();
            let states = if cells[1].is_empty() { 0 } else { cells[1].parse().with_context(|| line.to_string())? };
            Ok(Row { name: cells[0].into(), states, origin: origin(&model), model, columns: columns.clone(), cells })
        })
        .collect()
}

/// Tables 1, 2 and 3 of GPUexplore 3.0.
pub fn of_gpuexplore_3() -> Result<Vec<Row>> {
    rows(GPUEXPLORE_3, |model| match model {
        "adding.20" => Origin::Text("adding", &["LIMIT=2000"]),
        "adding.50" => Origin::Text("adding", &["LIMIT=5000"]),
        "anderson.6" => Origin::Text("anderson", &["N=6"]),
        "anderson.7" => Origin::Text("anderson", &["N=7"]),
        // The paper does not say how these were scaled. With these numbers they have its counts.
        "anderson.8" => Origin::Text("anderson", &["N=7", "SLOTS=8"]),
        "anderson.10" => Origin::Text("anderson", &["N=7", "SLOTS=10"]),
        "anderson.11" => Origin::Text("anderson", &["N=7", "SLOTS=11"]),
        "at.5" => Origin::Text("at", &["N=5", "STEP=2", "WAIT=5"]),
        "at.6" => Origin::Text("at", &["N=5", "STEP=3", "WAIT=5"]),
        "at.7" => Origin::Text("at", &["N=6", "STEP=2", "WAIT=5"]),
        "at.8" => Origin::Unknown("scaled, and the paper does not say how"),
        "bakery.5" => Origin::Text("bakery", &["N=4", "NUMBERS=7"]),
        "bakery.7" => Origin::Text("bakery", &["N=4", "NUMBERS=12"]),
        "bakery.8" => Origin::Text("bakery", &["N=4", "NUMBERS=50"]),
        // In table 4 it has 1,918,830,470 states: those of NUMBERS=70.
        "bakery.9" => Origin::Text("bakery", &["N=4", "NUMBERS=80"]),
        "elevator2.3" => Origin::Text("elevator", &["FLOORS=13"]),
        "elevator2.4" => Origin::Text("elevator", &["FLOORS=16"]),
        "elevator2.5" => Origin::Text("elevator", &["FLOORS=19"]),
        "lamport.6" => Origin::Text("lamport", &["N=4", "CLEARS=1"]),
        "lamport.7" => Origin::Text("lamport", &["N=5"]),
        "lamport.8" => Origin::Text("lamport", &["N=5", "COMPARES=1"]),
        "lamport.9" => Origin::Text("lamport", &["N=6"]),
        "phils.6" => Origin::Text("phils", &["N=15"]),
        "phils.8" => Origin::Text("phils", &["N=16"]),
        _ => Origin::Beem,
    })
}

/// Table 1 of GPUexplore 1.0.
pub fn of_gpuexplore_1() -> Result<Vec<Row>> {
    rows(GPUEXPLORE_1, |model| match model {
        "broadcast" => Origin::Broadcast(10),
        "lamport.8" => Origin::Text("lamport", &["N=5", "COMPARES=1"]),
        "lann.6" | "lann.7" | "peterson.7" | "szymanski.5" => Origin::Beem,
        _ => Origin::Unknown("a model of CADP, mCRL2 or the authors, whose network was not found"),
    })
}

/// Table 2 of Wu et al.; philosophers from 9 on are not in the paper.
pub fn of_counterexamples() -> Result<Vec<Row>> {
    rows(COUNTEREXAMPLES, |_| Origin::Text("dining", &[]))
}
