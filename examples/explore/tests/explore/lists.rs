//! Lists of models that are not part of this repository, with the counts and verdicts of other tools.

use super::*;
use warpset_testing::sizes::sized;

/// The columns that are compared in a list of models: states, transitions, deadlocks, levels, the widest level.
const COLUMNS: [&str; 5] = ["states", "transitions", "deadlocks", "levels", "max_frontier"];

/// Most states of a BEEM model: larger ones take too long for a test.
pub const MOST_STATES: u64 = 300_000;

/// Compares models of the BEEM benchmark with the counts of other tools: `WARPSET_BEEM` names the folder with `open.csv` and
/// `open/`.
pub fn beem_models_have_their_counts(folder: &Path) {
    have_their_counts(folder, "open", MOST_STATES, |name| (with_extension(folder.join("open").join(name), "dve"), &[]));
}

/// Adds an extension. Names of models contain dots, so nothing is replaced.
pub fn with_extension(path: PathBuf, extension: &str) -> PathBuf {
    PathBuf::from(format!("{}.{extension}", path.display()))
}

/// Most states of a model in a run that is not full.
const MOST_IN_PLAIN_RUNS: u64 = 200_000;

/// Returns `most` in a full run, and otherwise at most 200,000: the most states of a model in a list that is compared.
pub fn most_states(most: u64) -> u64 {
    let plain = most.min(MOST_IN_PLAIN_RUNS);
    sized(most, plain, plain)
}

/// Checks all rows of a list that have a number of states, of at most `most` (see [`most_states`]), with every kind of table.
pub fn have_their_counts(folder: &Path, list: &str, most: u64, file: impl Fn(&str) -> (PathBuf, &'static [&'static str])) {
    let list = std::fs::read_to_string(with_extension(folder.join(list), "csv")).unwrap();
    let header: Vec<&str> = list.lines().next().unwrap().split(',').collect();
    let columns = COLUMNS.map(|name| header.iter().position(|column| *column == name).unwrap());
    let mut compared = 0;
    for row in list.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let expected = columns.map(|column| fields[column].parse::<u64>().ok());
        if expected[0].is_none_or(|states| states > most_states(most)) {
            continue;
        }
        let (path, arguments) = file(fields[0]);
        for table in TABLES {
            let (code, report) = json(&path, &[&["--table", table], arguments].concat());
            let found = counts(&report).map(Some);
            // Columns missing from the list are not compared.
            let agrees = found.iter().zip(&expected).all(|(found, expected)| expected.is_none() || found == expected);
            assert!(code == Some(0) && agrees, "{} in a {table} table: {found:?}, not {expected:?}", fields[0]);
            compared += 1;
        }
    }
    assert!(compared > 0, "no model of {} is small enough", folder.display());
}

/// Most states of a product: larger ones take too long for a test.
const MOST_PRODUCT_STATES: u64 = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };

/// Columns of a row whose second column contains a comma.
fn fields_of(row: &str) -> Vec<&str> {
    let (model, rest) = row.split_once(',').expect("a row has columns");
    let mut last: Vec<&str> = rest.rsplitn(8, ',').collect();
    last.push(model);
    last.reverse();
    last
}

/// Replaces the atoms of a formula by conditions.
fn with_conditions(formula: &str, conditions: &HashMap<&str, &str>) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut text = String::new();
    let mut rest = formula;
    while let Some(start) = rest.find(is_word) {
        let length = rest[start..].find(|c| !is_word(c)).unwrap_or(rest.len() - start);
        let word = &rest[start..start + length];
        text += &rest[..start];
        text += &conditions.get(word).map_or_else(|| word.into(), |condition| format!("({condition})"));
        rest = &rest[start + length..];
    }
    text + rest
}

/// Compares models with a property process with an oracle's counts, verdicts and classes, in the folder `ltl` of `WARPSET_BEEM`.
pub fn beem_properties_have_their_verdicts(folder: &Path) {
    let [list, conditions] = ["ltl.csv", "atoms.csv"].map(|name| std::fs::read_to_string(folder.join("ltl").join(name)).unwrap());
    let mut atoms: HashMap<&str, HashMap<&str, &str>> = HashMap::new();
    for row in conditions.lines().skip(1) {
        let mut fields = row.splitn(3, ',');
        let [model, atom, condition] = std::array::from_fn(|_| fields.next().expect("a row has three columns"));
        atoms.entry(model).or_default().insert(atom, condition);
    }
    let mut compared = 0;
    for row in list.lines().skip(1) {
        let fields = fields_of(row);
        let [states, transitions, accepting] = [2, 3, 4].map(|column| fields[column].parse::<u64>().unwrap());
        let (verdict, automaton) = (fields[5], fields[7]);
        if states > most_states(MOST_PRODUCT_STATES) {
            continue;
        }
        let path = folder.join("ltl").join(format!("{}.dve", fields[0]));
        for table in TABLES.into_iter().filter(|table| is_of(table, ABOUT_RUNS[1])) {
            let (code, report) = json(&path, &["--table", table, "--keep-going"]);
            let name = format!("{} in a {table} table", fields[0]);
            let counted = ["states", "transitions", "accepting"].map(|name| figure(&report, name));
            assert_eq!(counted, [states, transitions, accepting].map(Some), "{name}");
            assert_eq!((report["verdict"].as_str(), report["automaton"].as_str()), (Some(verdict), Some(automaton)), "{name}");
            assert_eq!(
                (code, report["lasso"].is_object()),
                (Some((verdict == "violated").into()), verdict == "violated"),
                "{name}"
            );
            compared += 1;
        }
        let formula = with_conditions(fields[1], &atoms[fields[0]]);
        for arguments in [&[][..], &["--ltl", &formula]] {
            let (code, report) = json(&path, arguments);
            let found = (report["verdict"].as_str(), code, report["lasso"].is_object());
            let violated = verdict == "violated";
            assert_eq!(found, (Some(verdict), Some(violated.into()), violated), "{} {arguments:?}", fields[0]);
        }
    }
    assert!(compared > 0, "no model of {} is small enough", folder.display());
}
