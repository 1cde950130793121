//! Reads `@elastic`: tables whose entries lie in the memory of servers.
//!
//! ```p4
//! @elastic table connections { … }                                   // 8 cells a READ, 1,024 cached entries
//! @elastic[window = "16", cache = "0"] table connections { … }       // 16 cells a READ, no cache
//! ```
//!
//! A lookup reads the window of a key, which is a number of consecutive cells, by one READ. So every element of the
//! key has to be exact.

use crate::resilient::pairs;
use crate::{Annotation, MatchKind, Op, Program, Table, TableId};

/// Name of the annotation.
pub const ELASTIC: &str = "elastic";

/// Maximum length of a key in bytes, each element in whole bytes.
pub const MAX_ELASTIC_KEY_BYTES: u64 = 64;

/// Maximum length of the data of an action in bytes, each parameter in whole bytes.
pub const MAX_ELASTIC_DATA_BYTES: u64 = 128;

/// Maximum number of entries: 268 million.
pub const MAX_ELASTIC_ENTRIES: u64 = 1 << 28;

/// Maximum number of cached entries.
pub const MAX_ELASTIC_CACHE: u32 = 1 << 20;

/// Windows that can be chosen, in cells, with the load up to which at most about one entry in 1,000 finds no cell, in
/// thousandths.
const WINDOWS: [(u32, u32); 4] = [(4, 370), (8, 670), (16, 850), (32, 930)];

/// A table in the memory of servers, as its annotation describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElasticSettings {
    /// The table.
    pub table: TableId,
    /// Maximum number of entries.
    pub entries: u32,
    /// Number of cells that a READ covers.
    pub window: u32,
    /// Share of cells that hold an entry if the table is full, in thousandths.
    pub load_per_mille: u32,
    /// Maximum number of popular entries that the switch keeps.
    pub cache: u32,
}

/// A mistake in an annotation, or a table that cannot have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElasticMistake {
    /// The table.
    pub table: TableId,
    /// The index of the key element that is not supported, if it is one.
    pub key: Option<usize>,
    /// The mistake, as a sentence without a full stop.
    pub message: String,
    /// Advice on what to do.
    pub help: &'static str,
}

impl Program {
    /// Returns the tables with `@elastic`, in the order of the program.
    ///
    /// # Errors
    /// The mistakes in annotations, and tables that cannot have them.
    pub fn elastic_tables(&self) -> Result<Vec<ElasticSettings>, Vec<ElasticMistake>> {
        let (mut read, mut mistakes) = (Vec::new(), Vec::new());
        for (id, table) in &self.tables {
            let Some(annotation) = table.annotations.iter().find(|annotation| annotation.name == ELASTIC) else {
                continue;
            };
            let before = mistakes.len();
            let mut mistake = |key, message, help| mistakes.push(ElasticMistake { table: id, key, message, help });
            unsupported_keys(table, &mut mistake);
            if let Some((message, help)) = self.unsupported(table) {
                mistake(None, message, help);
            }
            match settings(id, table, annotation) {
                Ok(settings) if mistakes.len() == before => read.push(settings),
                Ok(_) => {}
                Err(message) => {
                    mistakes.push(ElasticMistake {
                        table: id,
                        key: None,
                        message,
                        help: "for example @elastic[window = \"16\", cache = \"4096\"]",
                    });
                }
            }
        }
        if mistakes.is_empty() { Ok(read) } else { Err(mistakes) }
    }

    /// Whether packets may have to wait for state that is not in the switch: `@resilient` rows or `@elastic` entries.
    pub fn has_rows(&self) -> bool {
        self.has_resilient_state() || self.tables.values().any(Table::is_elastic)
    }

    /// Whether packets may have to wait at an operation for state that is not in the switch.
    pub fn uses_row(&self, op: &Op) -> bool {
        match op {
            Op::RegisterRead(_, register, _) | Op::RegisterWrite(register, ..) => {
                self.registers[*register].is_resilient()
            }
            Op::Apply { table, .. } => self.tables[*table].waits_for_entries(),
            _ => false,
        }
    }

    fn has_resilient_state(&self) -> bool {
        self.registers.values().any(|register| register.is_resilient()) || self.tables.values().any(Table::is_resilient)
    }

    /// Returns the reason why a table cannot have the annotation, apart from its key, and what to do.
    fn unsupported(&self, table: &Table) -> Option<(String, &'static str)> {
        let what = |what: &str| format!("an @elastic table cannot have {what}");
        if table.keys.is_empty() {
            return Some((what("no key"), "give it a key whose elements are all exact"));
        }
        if self.has_resilient_state() {
            let message = "a program cannot have @elastic tables and @resilient state together yet".to_owned();
            return Some((message, "remove one of the annotations"));
        }
        if !table.entries.is_empty() || table.const_entries {
            return Some((what("entries of the program"), "let the controller write them"));
        }
        if table.profile.is_some() {
            return Some((what("an action profile"), "give the actions of entries directly"));
        }
        if table.counter.is_some() || table.meter.is_some() {
            let help = "count or meter in an array with an index that the entries' action gives";
            return Some((what("a direct counter or meter"), help));
        }
        if table.idle_timeout {
            return Some((what("an idle timeout"), "let the controller remove entries"));
        }
        let bytes = |widths: &mut dyn Iterator<Item = u32>| widths.map(|bits| u64::from(bits.div_ceil(8))).sum::<u64>();
        let key = bytes(&mut table.keys.iter().map(|key| key.width));
        if key > MAX_ELASTIC_KEY_BYTES {
            let message =
                format!("the key has {key} bytes; that of an @elastic table has at most {MAX_ELASTIC_KEY_BYTES}");
            return Some((message, "match a hash or a shorter part of it"));
        }
        let data = table.actions.iter().map(|action| {
            let params = self.actions[action.action].params.iter();
            bytes(&mut params.map(|param| self.slots[param.slot].width))
        });
        let data = data.max().unwrap_or(0);
        if data > MAX_ELASTIC_DATA_BYTES {
            let message = format!(
                "an action has {data} bytes of data; those of an @elastic table have at most {MAX_ELASTIC_DATA_BYTES}"
            );
            return Some((message, "let the entry name a number, and a local table give the data of the number"));
        }
        None
    }
}

/// Reports the key elements that one READ cannot match.
fn unsupported_keys(table: &Table, mistake: &mut dyn FnMut(Option<usize>, String, &'static str)) {
    for (at, key) in table.keys.iter().enumerate() {
        let (kind, help) = match key.kind {
            MatchKind::Exact => continue,
            MatchKind::Lpm => ("an lpm", "match it exactly, or move it to a local table that is applied before"),
            MatchKind::Ternary => ("a ternary", "match it exactly, or move it to a local table that is applied before"),
            MatchKind::Optional => ("an optional", "match it exactly, or use two tables, one without it"),
            MatchKind::Range => ("a range", "map it to a number in a local table, and match that number exactly"),
            MatchKind::Selector => ("a selector", "choose the member in a local table"),
        };
        mistake(Some(at), format!("an @elastic table cannot match {kind} element such as `{}`", key.name), help);
    }
}

/// Reads the text of an annotation.
fn settings(id: TableId, table: &Table, annotation: &Annotation) -> Result<ElasticSettings, String> {
    let (mut size, mut cache) = (WINDOWS[1], 1024);
    for (key, value) in pairs(&annotation.text)? {
        let number = value.parse::<u32>().ok();
        match key {
            "window" => {
                size = number
                    .and_then(|number| WINDOWS.into_iter().find(|(cells, _)| *cells == number))
                    .ok_or("\"window\" is the number of cells of a READ: \"4\", \"8\", \"16\" or \"32\"")?;
            }
            "cache" => {
                cache = number
                    .filter(|number| *number <= MAX_ELASTIC_CACHE)
                    .ok_or_else(|| format!("\"cache\" is a number of entries from \"0\" to \"{MAX_ELASTIC_CACHE}\""))?;
            }
            _ => return Err(format!("\"{key}\" is unknown: @elastic has \"window\" and \"cache\"")),
        }
    }
    let entries = table.size.unwrap_or(crate::DEFAULT_TABLE_ROWS);
    let entries = u32::try_from(entries).ok().filter(|entries| u64::from(*entries) <= MAX_ELASTIC_ENTRIES);
    let entries = entries.ok_or_else(|| format!("an @elastic table has at most {MAX_ELASTIC_ENTRIES} entries"))?;
    let (window, load_per_mille) = size;
    Ok(ElasticSettings { table: id, entries: entries.max(1), window, load_per_mille, cache })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Expr, Key, Register};

    fn key(width: u32, kind: MatchKind) -> Key {
        let expr = Expr::Const(bits::Bits::zero(width));
        Key { name: "k".to_owned(), expr, width, kind, signed: false, annotations: Vec::new() }
    }

    fn program(text: &str, keys: Vec<Key>) -> Program {
        let annotations = vec![Annotation { name: ELASTIC.to_owned(), text: text.to_owned() }];
        let mut program = Program::default();
        program.tables.push(Table { keys, annotations, ..Table::new("t") });
        program
    }

    #[track_caller]
    fn refused(program: &Program, part: &str) {
        let mistakes = program.elastic_tables().unwrap_err();
        assert!(mistakes.iter().any(|mistake| mistake.message.contains(part)), "{mistakes:?} lacks {part:?}");
        assert!(mistakes.iter().all(|mistake| !mistake.help.is_empty()));
    }

    #[test]
    fn a_table_has_the_settings_of_its_annotation() {
        let exact = || vec![key(32, MatchKind::Exact)];
        let read = |program: &Program| program.elastic_tables().unwrap()[0];
        let mut with_size = program("", exact());
        with_size.tables.values_mut().for_each(|table| table.size = Some(5000));
        let settings = read(&with_size);
        assert_eq!((settings.entries, settings.window, settings.load_per_mille, settings.cache), (5000, 8, 670, 1024));
        let settings = read(&program("window = \"16\", cache = \"0\"", exact()));
        assert_eq!((settings.entries, settings.window, settings.load_per_mille, settings.cache), (1 << 20, 16, 850, 0));
        assert!(with_size.has_rows() && !Program::default().has_rows());
    }

    #[test]
    fn mistakes_are_named() {
        let exact = || vec![key(32, MatchKind::Exact)];
        refused(&program("window = \"5\"", exact()), "cells of a READ");
        refused(&program("cache = \"many\"", exact()), "from \"0\"");
        refused(&program("size = \"1\"", exact()), "\"size\" is unknown");
        refused(&program("", Vec::new()), "no key");
        refused(&program("", vec![key(520, MatchKind::Exact)]), "65 bytes");
        assert!(program("", vec![key(512, MatchKind::Exact)]).elastic_tables().is_ok());
        for (kind, part) in [
            (MatchKind::Ternary, "a ternary"),
            (MatchKind::Range, "a range"),
            (MatchKind::Lpm, "an lpm"),
            (MatchKind::Optional, "an optional"),
        ] {
            let program = program("", vec![key(32, MatchKind::Exact), key(16, kind)]);
            refused(&program, part);
            assert_eq!(program.elastic_tables().unwrap_err()[0].key, Some(1));
        }
        let change = |change: fn(&mut Table)| {
            let mut program = program("", exact());
            program.tables.values_mut().for_each(change);
            program
        };
        refused(&change(|table| table.const_entries = true), "entries of the program");
        refused(&change(|table| table.idle_timeout = true), "idle timeout");
        refused(&change(|table| table.counter = Some(crate::CounterId::from_u32(0))), "direct counter");
        refused(&change(|table| table.profile = Some(crate::ProfileId::from_u32(0))), "action profile");
        refused(&change(|table| table.size = Some(1 << 40)), "at most 268435456 entries");
        let mut both = program("", exact());
        let annotations = vec![Annotation { name: crate::RESILIENT.to_owned(), text: String::new() }];
        both.registers.push(Register { name: "r".to_owned(), width: 8, size: 1, annotations });
        refused(&both, "together yet");
    }
}
