//! Reads `@resilient`: the state of a program that survives the switch it runs on.
//!
//! ```p4
//! @resilient register<bit<32>>(65536) seen;                          // a group of its own
//! @resilient[group = "flow"] register<bit<32>>(1024) packets;        // two arrays with the same rows
//! @resilient[group = "flow"] register<bit<8>>(1024) state;
//! @resilient[group = "hh", every = "1ms", bound = "10ms"] register<bit<32>>(64) sketch;      // snapshots
//! ```
//!
//! A **row** is the cells of all arrays of a group at one index: the unit of ownership, and of replication.

use std::collections::BTreeMap;

use crate::{Annotation, Program, RegisterId};

/// Name of the annotation.
pub const RESILIENT: &str = "resilient";

/// Maximum length of a group's name in bytes.
const MAX_NAME: usize = 200;

/// Maximum length of a row's values in bytes, each array's value in whole bytes.
pub const MAX_ROW_BYTES: u64 = 1024;

/// Arrays that share their rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResilientGroup {
    /// The name in the annotation, or that of the only array.
    pub name: String,
    /// The arrays, in the order of the program.
    pub registers: Vec<RegisterId>,
    /// Number of rows: the number of elements of each array.
    pub rows: u64,
    /// When changes are replicated.
    pub mode: ReplicationMode,
}

/// When the changes of a group are replicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicationMode {
    /// Every write, before anything that depends on it leaves the switch: linearizable.
    EveryWrite,
    /// The whole group at an interval, in nanoseconds: after a failure, a state of the past is restored.
    Snapshots {
        /// Time from one snapshot to the next.
        every_ns: u64,
        /// Maximum age of the newest complete snapshot, if there is one.
        bound_ns: Option<u64>,
    },
}

/// What one annotation says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Settings {
    group: Option<String>,
    mode: ReplicationMode,
}

/// A mistake in an annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResilientMistake {
    /// The array.
    pub register: RegisterId,
    /// The mistake, as a sentence without a full stop.
    pub message: String,
}

impl Program {
    /// Returns the groups of arrays with `@resilient`, in the order of their first arrays.
    ///
    /// # Errors
    /// The mistakes in annotations, and arrays that do not fit their group.
    pub fn resilient_groups(&self) -> Result<Vec<ResilientGroup>, Vec<ResilientMistake>> {
        let mut groups: Vec<ResilientGroup> = Vec::new();
        let mut by_name = BTreeMap::new();
        let mut mistakes = Vec::new();
        for (id, register) in &self.registers {
            let Some(annotation) = register.annotations.iter().find(|annotation| annotation.name == RESILIENT) else {
                continue;
            };
            let mut mistake = |message: String| mistakes.push(ResilientMistake { register: id, message });
            let settings = match Settings::read(annotation) {
                Ok(settings) => settings,
                Err(message) => {
                    mistake(message);
                    continue;
                }
            };
            let Some(name) = settings.group else {
                groups.push(ResilientGroup {
                    name: register.name.clone(),
                    registers: vec![id],
                    rows: register.size,
                    mode: settings.mode,
                });
                continue;
            };
            let at = *by_name.entry(name.clone()).or_insert(groups.len());
            let Some(group) = groups.get_mut(at) else {
                groups.push(ResilientGroup { name, registers: vec![id], rows: register.size, mode: settings.mode });
                continue;
            };
            let first = &self.registers[group.registers[0]];
            if register.size != group.rows {
                mistake(format!(
                    "{} has {} elements, and {} of the same group \"{name}\" has {}: arrays of a group share their rows",
                    register.name, register.size, first.name, group.rows
                ));
            } else if settings.mode != group.mode {
                mistake(format!(
                    "{} and {} of the group \"{name}\" differ in \"every\" or \"bound\"",
                    register.name, first.name
                ));
            } else {
                group.registers.push(id);
            }
        }
        for group in &groups {
            let bytes: u64 = group.registers.iter().map(|id| u64::from(self.registers[*id].width.div_ceil(8))).sum();
            if bytes > MAX_ROW_BYTES {
                let message = format!("a row of \"{}\" has {bytes} bytes; the maximum is {MAX_ROW_BYTES}", group.name);
                mistakes.push(ResilientMistake { register: group.registers[0], message });
            }
        }
        if mistakes.is_empty() { Ok(groups) } else { Err(mistakes) }
    }
}

impl Settings {
    /// Reads the text of an annotation: pairs `key = "value"`.
    fn read(annotation: &Annotation) -> Result<Settings, String> {
        let mut settings = Settings { group: None, mode: ReplicationMode::EveryWrite };
        let (mut every, mut bound) = (None, None);
        for (key, value) in pairs(&annotation.text)? {
            match key {
                "group" if value.is_empty() || value.len() > MAX_NAME => {
                    return Err(format!("\"group\" is a name of 1 to {MAX_NAME} bytes"));
                }
                "group" => settings.group = Some(value.to_owned()),
                "every" => every = Some(duration(key, value)?),
                "bound" => bound = Some(duration(key, value)?),
                _ => return Err(format!("\"{key}\" is unknown: @resilient has \"group\", \"every\" and \"bound\"")),
            }
        }
        settings.mode = match (every, bound) {
            (None, None) => ReplicationMode::EveryWrite,
            (None, Some(_)) => return Err("\"bound\" needs \"every\": it is the age of a snapshot".to_owned()),
            (Some(every), Some(bound)) if bound < every => {
                return Err("\"bound\" is shorter than \"every\", so it would always be exceeded".to_owned());
            }
            (Some(every_ns), bound_ns) => ReplicationMode::Snapshots { every_ns, bound_ns },
        };
        Ok(settings)
    }
}

/// Splits `key = "value", …` into pairs.
fn pairs(text: &str) -> Result<Vec<(&str, &str)>, String> {
    let mut rest = text.trim();
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    while !rest.is_empty() {
        let malformed = || format!("\"{rest}\" is not of the form key = \"value\"");
        let (key, after) = rest.split_once('=').ok_or_else(malformed)?;
        let after = after.trim_start().strip_prefix('"').ok_or_else(malformed)?;
        let (value, after) = after.split_once('"').ok_or_else(malformed)?;
        let key = key.trim();
        if pairs.iter().any(|(other, _)| *other == key) {
            return Err(format!("\"{key}\" is given twice"));
        }
        pairs.push((key, value));
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(after) => after.trim_start(),
            None if after.is_empty() => after,
            None => return Err(malformed()),
        };
    }
    Ok(pairs)
}

/// Reads a time such as `10ms`: a whole number of `us`, `ms` or `s`, from 1 us to 1000 s.
fn duration(key: &str, text: &str) -> Result<u64, String> {
    let units = [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let read = units.into_iter().find_map(|(unit, ns)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(ns)
    });
    read.filter(|ns| (1_000..=1_000_000_000_000).contains(ns))
        .ok_or_else(|| format!("\"{key}\" is a whole number of us, ms or s, such as \"10ms\", and at most 1000 s"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Register;

    /// Returns the groups of arrays with these texts and sizes.
    fn groups(arrays: &[(&str, u64)]) -> Result<Vec<ResilientGroup>, Vec<String>> {
        let mut program = Program::default();
        for (number, (text, size)) in arrays.iter().enumerate() {
            let annotations = vec![Annotation { name: RESILIENT.to_owned(), text: (*text).to_owned() }];
            program.registers.push(Register { name: format!("r{number}"), width: 32, size: *size, annotations });
        }
        program.resilient_groups().map_err(|all| all.into_iter().map(|mistake| mistake.message).collect())
    }

    #[test]
    fn arrays_with_a_name_share_a_group_and_others_have_their_own() {
        let found = groups(&[("", 4), ("group = \"flow\"", 8), (" group=\"flow\" ", 8)]).unwrap();
        let names: Vec<_> =
            found.iter().map(|group| (group.name.as_str(), group.registers.len(), group.rows)).collect();
        assert_eq!(names, [("r0", 1, 4), ("flow", 2, 8)]);
        assert!(found.iter().all(|group| group.mode == ReplicationMode::EveryWrite));
    }

    #[test]
    fn an_interval_means_snapshots() {
        let found = groups(&[("group = \"hh\", every = \"1ms\", bound = \"10ms\"", 64)]).unwrap();
        let mode = ReplicationMode::Snapshots { every_ns: 1_000_000, bound_ns: Some(10_000_000) };
        assert_eq!(found[0].mode, mode);
    }

    #[test]
    fn mistakes_are_named() {
        let refused = |arrays: &[(&str, u64)], part: &str| {
            let mistakes = groups(arrays).unwrap_err();
            assert!(mistakes.iter().any(|mistake| mistake.contains(part)), "{mistakes:?} lacks {part:?}");
        };
        refused(&[("group = flow", 4)], "is not of the form");
        refused(&[("group = \"a\" every = \"1ms\"", 4)], "is not of the form");
        refused(&[("group = \"a\", group = \"b\"", 4)], "given twice");
        refused(&[("groups = \"a\"", 4)], "\"groups\" is unknown");
        refused(&[("group = \"\"", 4)], "1 to 200 bytes");
        refused(&[("every = \"fast\"", 4)], "whole number");
        refused(&[("every = \"99999999999999999999s\"", 4)], "whole number");
        refused(&[("bound = \"1ms\"", 4)], "needs \"every\"");
        refused(&[("every = \"2ms\", bound = \"1ms\"", 4)], "always be exceeded");
        refused(&[("group = \"a\"", 4), ("group = \"a\"", 5)], "share their rows");
        refused(&[("group = \"a\"", 4), ("group = \"a\", every = \"1ms\"", 4)], "differ in");
    }
}
