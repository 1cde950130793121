//! Reads `@elastic`: tables whose entries lie in the memory of servers.
//!
//! ```p4
//! @elastic table connections { … }                                   // 8 cells a READ, 1,024 cached entries
//! @elastic[window = "16", cache = "0"] table connections { … }       // 16 cells a READ, no cache
//! @elastic[lengths = "16, 24, 32"] table routes { … }                // at most 3 READs a lookup of a prefix
//! ```
//!
//! A lookup reads the window of a key, which is a number of consecutive cells, by one READ. So the elements of the key
//! have to be exact. One of them may be `lpm`: then a lookup has a READ for each prefix length.

use crate::resilient::pairs;
use crate::{Annotation, Key, MatchKind, Op, Program, Table, TableId};

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

/// Maximum width of an `lpm` element in bits.
pub const MAX_ELASTIC_PREFIX_BITS: u32 = 128;

/// Maximum number of bits by which a prefix is expanded to the next length with cells, so it takes at most 256 cells.
/// Prefixes that need more stay in the switch.
pub const ELASTIC_EXPANSION_BITS: u32 = 8;

/// Windows that can be chosen, in cells, with the load up to which at most about one entry in 1,000 finds no cell, in
/// thousandths.
const WINDOWS: [(u32, u32); 4] = [(4, 370), (8, 670), (16, 850), (32, 930)];

/// A table in the memory of servers, as its annotation describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// The `lpm` element of the key, if it has one.
    pub prefix: Option<ElasticPrefix>,
}

/// The `lpm` element of a table in the memory of servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElasticPrefix {
    /// Index of the element in the key.
    pub element: usize,
    /// Width in bits.
    pub bits: u32,
    /// Prefix lengths that have cells, ascending; the last is the width.
    pub lengths: Vec<u32>,
}

impl ElasticPrefix {
    /// Whether all prefix lengths have cells, so no prefix is expanded.
    pub fn has_all_lengths(&self) -> bool {
        self.lengths.len() as u64 == u64::from(self.bits) + 1
    }

    /// Returns how much of the table's size a prefix of this length takes: its maximum number of cells, or one if it
    /// stays in the switch.
    pub fn cell_count(&self, length: u32) -> u64 {
        let served = self.lengths.iter().find(|served| **served >= length);
        let more = served.map(|served| served - length).filter(|more| *more <= ELASTIC_EXPANSION_BITS);
        1 << more.unwrap_or(0)
    }
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
            return Some((what("no key"), "give it a key whose elements are exact, or exact and one lpm"));
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

/// Reports the key elements that READs cannot match.
fn unsupported_keys(table: &Table, mistake: &mut dyn FnMut(Option<usize>, String, &'static str)) {
    let first_prefix = table.keys.iter().position(|key| key.kind == MatchKind::Lpm);
    for (at, key) in table.keys.iter().enumerate() {
        let (kind, help) = match key.kind {
            MatchKind::Exact => continue,
            MatchKind::Lpm if first_prefix == Some(at) => {
                if key.width > MAX_ELASTIC_PREFIX_BITS {
                    let most = MAX_ELASTIC_PREFIX_BITS;
                    let message = format!("an lpm element of an @elastic table has at most {most} bits");
                    mistake(Some(at), message, "match a shorter part of it");
                }
                continue;
            }
            MatchKind::Lpm => ("a second lpm", "match it exactly, or move it to a local table that is applied before"),
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
    let prefixes = |(element, key): (usize, &Key)| ElasticPrefix {
        element,
        bits: key.width,
        lengths: (0..=key.width.min(MAX_ELASTIC_PREFIX_BITS)).collect(),
    };
    let element = table.keys.iter().enumerate().find(|(_, key)| key.kind == MatchKind::Lpm);
    let mut prefix = element.map(prefixes);
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
            "lengths" => {
                let prefix = prefix.as_mut().ok_or("\"lengths\" is for tables with an lpm element")?;
                prefix.lengths = lengths(value, prefix.bits)?;
            }
            _ => return Err(format!("\"{key}\" is unknown: @elastic has \"window\", \"cache\" and \"lengths\"")),
        }
    }
    let entries = table.size.unwrap_or(crate::DEFAULT_TABLE_ROWS);
    let entries = u32::try_from(entries).ok().filter(|entries| u64::from(*entries) <= MAX_ELASTIC_ENTRIES);
    let entries = entries.ok_or_else(|| format!("an @elastic table has at most {MAX_ELASTIC_ENTRIES} entries"))?;
    let (window, load_per_mille) = size;
    Ok(ElasticSettings { table: id, entries: entries.max(1), window, load_per_mille, cache, prefix })
}

/// Reads prefix lengths such as `16, 24, 32`.
fn lengths(text: &str, bits: u32) -> Result<Vec<u32>, String> {
    let read: Option<Vec<u32>> = text.split(',').map(|length| length.trim().parse().ok()).collect();
    let read = read.filter(|lengths| lengths.is_sorted_by(|one, next| one < next) && lengths.last() == Some(&bits));
    read.ok_or_else(|| {
        format!("\"lengths\" are ascending prefix lengths that end with the width of the element, {bits}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Expr, Register};

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
        let read = |program: &Program| program.elastic_tables().unwrap().remove(0);
        let mut with_size = program("", exact());
        with_size.tables.values_mut().for_each(|table| table.size = Some(5000));
        let settings = read(&with_size);
        assert_eq!((settings.entries, settings.window, settings.load_per_mille, settings.cache), (5000, 8, 670, 1024));
        let settings = read(&program("window = \"16\", cache = \"0\"", exact()));
        assert_eq!((settings.entries, settings.window, settings.load_per_mille, settings.cache), (1 << 20, 16, 850, 0));
        assert!(with_size.has_rows() && !Program::default().has_rows());
    }

    #[test]
    fn a_prefix_counts_as_the_cells_that_it_takes() {
        let keys = || vec![key(16, MatchKind::Exact), key(32, MatchKind::Lpm)];
        let read = |text: &str| program(text, keys()).elastic_tables().unwrap().remove(0).prefix.unwrap();
        let all = read("");
        assert_eq!((all.element, all.bits, all.lengths.len(), all.has_all_lengths()), (1, 32, 33, true));
        assert!((0..=32).all(|length| all.cell_count(length) == 1));
        let few = read("lengths = \"16, 24,32\"");
        assert_eq!((&few.lengths[..], few.has_all_lengths()), (&[16, 24, 32][..], false));
        assert_eq!([0, 7, 8, 15, 16, 17, 25, 32].map(|length| few.cell_count(length)), [1, 1, 256, 2, 1, 128, 128, 1]);
        assert_eq!(read("lengths = \"32\"").cell_count(23), 1, "it would take 512 cells");
        for wrong in ["", "24", "24, 24, 32", "32, 24", "16 32", "16, 40", "-1, 32"] {
            refused(&program(&format!("lengths = \"{wrong}\""), keys()), "end with the width of the element, 32");
        }
        refused(&program("lengths = \"32\"", vec![key(32, MatchKind::Exact)]), "for tables with an lpm element");
        refused(&program("", vec![key(129, MatchKind::Lpm)]), "at most 128 bits");
        let two = program("", vec![key(32, MatchKind::Lpm), key(32, MatchKind::Lpm)]);
        refused(&two, "a second lpm");
        assert_eq!(two.elastic_tables().unwrap_err()[0].key, Some(1));
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
        for (kind, part) in
            [(MatchKind::Ternary, "a ternary"), (MatchKind::Range, "a range"), (MatchKind::Optional, "an optional")]
        {
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
