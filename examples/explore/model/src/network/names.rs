//! Names of components, as conditions use them.

use crate::parsing::is_name_character;
use std::collections::{HashMap, HashSet};

/// Turns the text into an identifier: replaces characters that names cannot contain.
pub fn identifier(text: &str) -> String {
    let name: String = text.chars().map(|c| if is_name_character(c) { c } else { '_' }).collect();
    if crate::dve::is_name(&name) { name } else { format!("_{name}") }
}

/// Returns the names, with numbers appended to names that occur more than once.
pub fn unique<'n>(names: impl Iterator<Item = &'n String> + Clone) -> Vec<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    names.clone().for_each(|name| *counts.entry(name).or_insert(0) += 1);
    let mut taken: HashSet<String> =
        counts.iter().filter(|(_, count)| **count == 1).map(|(name, _)| (*name).to_string()).collect();
    let mut next: HashMap<&str, usize> = HashMap::new();
    let all = names.map(|name| {
        if counts[name.as_str()] == 1 {
            return name.clone();
        }
        let number = next.entry(name).or_insert(0);
        loop {
            *number += 1;
            let numbered = format!("{name}_{number}");
            if taken.insert(numbered.clone()) {
                return numbered;
            }
        }
    });
    all.collect()
}
