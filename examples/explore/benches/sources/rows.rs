//! The rows of the papers' tables, and where the models of these rows come from.

use anyhow::{Context, Result, ensure};

const GPUEXPLORE_3: &str = include_str!("../../../../benches/sources/gpuexplore3.csv");
const GPUEXPLORE_1: &str = include_str!("../../../../benches/sources/gpuexplore1.csv");
const COUNTEREXAMPLES: &str = include_str!("../../../../benches/sources/counterexamples.csv");

/// Where the model of a row comes from, if `WARPSET_BEEM` has no file of its name.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// A model of the BEEM benchmark that is not written here.
    Beem,
    /// A text of models.rs, with these parameters.
    Text(&'static str, &'static [u32]),
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
    const SCALED: Origin = Origin::Unknown("scaled; the paper does not say how");
    rows(GPUEXPLORE_3, |model| match model {
        "adding.20" => Origin::Text("adding", &[2000]),
        "adding.50" => Origin::Text("adding", &[5000]),
        "anderson.6" => Origin::Text("anderson", &[6, 0]),
        "anderson.7" => Origin::Text("anderson", &[6, 1]),
        "anderson.8" => Origin::Text("anderson", &[7, 0]),
        "anderson.10" | "anderson.11" => SCALED,
        "at.5" => Origin::Text("at", &[5, 2, 5]),
        "at.6" => Origin::Text("at", &[5, 3, 5]),
        "at.7" => Origin::Text("at", &[6, 2, 5]),
        "at.8" => Origin::Text("at", &[6, 3, 5]),
        "bakery.5" => Origin::Text("bakery", &[4, 7]),
        "bakery.8" => Origin::Text("bakery", &[5, 5]),
        "bakery.9" => SCALED,
        "elevator2.3" => Origin::Text("elevator", &[13]),
        "elevator2.4" => Origin::Text("elevator", &[16]),
        "elevator2.5" => Origin::Text("elevator", &[19]),
        "lamport.6" => Origin::Text("lamport", &[4, 1, 0]),
        "lamport.7" => Origin::Text("lamport", &[5, 0, 0]),
        "lamport.8" => Origin::Text("lamport", &[5, 0, 1]),
        "lamport.9" => Origin::Text("lamport", &[6, 0, 0]),
        "phils.6" => Origin::Text("phils", &[15]),
        "phils.8" => Origin::Text("phils", &[16]),
        _ => Origin::Beem,
    })
}

/// Table 1 of GPUexplore 1.0.
pub fn of_gpuexplore_1() -> Result<Vec<Row>> {
    rows(GPUEXPLORE_1, |model| match model {
        "broadcast" => Origin::Broadcast(10),
        "lamport.8" => Origin::Text("lamport", &[5, 0, 1]),
        "lann.6" | "lann.7" | "peterson.7" | "szymanski.5" => Origin::Beem,
        _ => Origin::Unknown("a model of CADP, mCRL2 or the authors, whose network is not published"),
    })
}

/// Table 2 of Wu et al.; philosophers from 9 on are not in the paper.
pub fn of_counterexamples() -> Result<Vec<Row>> {
    rows(COUNTEREXAMPLES, |_| Origin::Unknown("models/dining.dve"))
}
