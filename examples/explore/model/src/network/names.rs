//! What components are called: as conditions name them.

use std::collections::{HashMap, HashSet};

/// The text with what names do not have replaced.
pub fn identifier(text: &str) -> String {
    let name: String = text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && !crate::dve::is_keyword(&name);
    if is_name { name } else { format!("_{name}") }
}

/// Names with numbers behind those that there are several of.
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
