//! Reports type names that stand for different things.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;

/// Most crates that may define a type of the same name.
const MAX_CRATES: usize = 3;

/// Names that every crate may define: conventions of Rust, not concepts of the project.
const CONVENTIONS: &[&str] = &["Error", "Result", "Iter", "Item", "Output", "Err", "IntoIter"];

/// The crates that define each type name.
#[derive(Debug, Default)]
pub struct Definitions {
    crates: BTreeMap<String, BTreeSet<String>>,
    first: BTreeMap<String, (String, usize)>,
    files: usize,
}

impl Definitions {
    /// Adds the types that a file defines at any level, except associated types.
    pub fn add(&mut self, crate_name: &str, file: &str, text: &str) {
        self.files += 1;
        for (index, line) in text.lines().enumerate() {
            if let Some(name) = defined_type(line) {
                self.crates.entry(name.to_owned()).or_default().insert(crate_name.to_owned());
                self.first.entry(name.to_owned()).or_insert_with(|| (file.to_owned(), index + 1));
            }
        }
    }

    /// Returns the number of files that were added.
    pub fn files(&self) -> usize {
        self.files
    }

    /// Returns a finding for each name that too many crates define.
    pub fn check(&self) -> Vec<Finding> {
        let ambiguous = self
            .crates
            .iter()
            .filter(|(name, crates)| crates.len() > MAX_CRATES && !CONVENTIONS.contains(&name.as_str()));
        let finding = |(name, crates): (&String, &BTreeSet<String>)| {
            let (file, line) = &self.first[name];
            let crates: Vec<&str> = crates.iter().map(String::as_str).collect();
            let message = format!(
                "the type name `{name}` is defined in {} crates ({}); at most {MAX_CRATES}",
                crates.len(),
                crates.join(", ")
            );
            Finding::new(file, *line, message)
        };
        ambiguous.map(finding).collect()
    }
}

/// Returns the name of the type that a line defines.
fn defined_type(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    if let Some(after) = rest.strip_prefix("pub") {
        rest = if after.starts_with('(') { after.split_once(')')?.1 } else { after };
        rest = rest.strip_prefix(' ')?;
    }
    let (keyword, rest) = rest.split_once(' ')?;
    if !matches!(keyword, "struct" | "enum" | "trait" | "union" | "type") {
        return None;
    }
    // An associated type is indented and belongs to its trait.
    if keyword == "type" && line.starts_with(' ') {
        return None;
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    Some(&rest[..end]).filter(|name| name.starts_with(char::is_uppercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_found_with_every_visibility() {
        for (line, name) in [
            ("pub struct Port {", Some("Port")),
            ("    pub(crate) enum Kind<T> {", Some("Kind")),
            ("trait Hook<S>: Send {", Some("Hook")),
            ("type Edges = Vec<u8>;", Some("Edges")),
            ("    type Item = u8;", None),
            ("let structure = 1;", None),
            ("/// struct Port", None),
            ("pub fn struct_of() {", None),
        ] {
            assert_eq!(defined_type(line), name, "{line}");
        }
    }

    #[test]
    fn a_name_in_four_crates_is_a_finding_and_in_three_is_none() {
        let mut definitions = Definitions::default();
        for name in ["a", "b", "c"] {
            definitions.add(name, &format!("crates/{name}/src/lib.rs"), "struct Place;\nstruct Error;\n");
        }
        assert_eq!(definitions.check(), []);
        definitions.add("d", "crates/d/src/lib.rs", "\npub struct Place;\npub struct Error;\n");
        let findings: Vec<String> = definitions.check().iter().map(ToString::to_string).collect();
        assert_eq!(
            findings,
            ["crates/a/src/lib.rs:1: the type name `Place` is defined in 4 crates (a, b, c, d); at most 3"]
        );
    }
}
