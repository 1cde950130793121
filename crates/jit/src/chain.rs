//! Selects small constant tables, which become chains of comparisons in the code.

use std::cmp::Reverse;

use ir::{Entry, KeyValue, Table};

/// Maximum number of entries of a chain; larger tables are looked up.
const MOST: usize = 8;

/// Returns the entries of a table in the order in which the key is compared with them, if the table becomes a chain of
/// comparisons. That requires few entries, all of them constant entries of the program (or a table without a key), and
/// no counting or timing of hits. The default action may change.
///
/// The first entry that matches is hit: the one of highest priority, then of longest prefix, then the first in the
/// program.
pub(crate) fn entries(table: &Table) -> Option<Vec<&Entry>> {
    let stays = table.const_entries || table.keys.is_empty() && table.entries.is_empty();
    // Only tables with a profile have selectors, and only tables with keys that need priorities have any but 0.
    if !stays || table.records_hits() || table.profile.is_some() || table.entries.len() > MOST {
        return None;
    }
    let mut entries: Vec<&Entry> = table.entries.iter().collect();
    entries.sort_by_key(|entry| Reverse((entry.priority, prefix(entry))));
    Some(entries)
}

/// Returns the prefix length of an entry whose table has an LPM key, and a table has at most one such key.
fn prefix(entry: &Entry) -> Option<u32> {
    entry.keys.iter().find_map(|value| if let KeyValue::Lpm(_, length) = value { Some(*length) } else { None })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use ir::Program;

    use super::*;
    use crate::text;

    /// Parses a program with one table of constant entries (unless `parts` says otherwise) with the key `keys`.
    fn program(parts: &str, keys: &str, entries: &[String]) -> Program {
        let mut rows = String::new();
        for entry in entries {
            writeln!(rows, "  entry {entry} -> nothing()").unwrap();
        }
        text::program(&format!(
            "program test
errors {{ NoError }}
header_type t {{ a: 16 }}
header h: t
counter seen: packets direct
action nothing() body nothing
table t {{
{keys}  action nothing
  default nothing()
{parts}{rows}}}
action_body nothing {{
  block start:
    return
}}
"
        ))
    }

    /// Returns the source positions of the table's entries, in the order of the chain.
    fn chain(program: &Program) -> Option<Vec<usize>> {
        let table = program.tables.values().next().unwrap();
        let place = |entry: &Entry| table.entries.iter().position(|one| std::ptr::eq(one, entry)).unwrap();
        Some(entries(table)?.into_iter().map(place).collect())
    }

    fn exact(count: usize) -> Vec<String> {
        (0..count).map(|value| format!("0x{value:x}:16")).collect()
    }

    const EXACT: &str = "  key k: exact 16 = h.a\n";

    #[test]
    fn small_constant_tables_are_chains() {
        assert_eq!(chain(&program("  const_entries\n", EXACT, &exact(8))), Some((0..8).collect()));
        assert_eq!(chain(&program("  const_entries\n", EXACT, &exact(9))), None);
    }

    #[test]
    fn tables_that_can_change_are_no_chains() {
        assert_eq!(chain(&program("", EXACT, &exact(1))), None);
        assert_eq!(chain(&program("", EXACT, &[])), None);
        assert_eq!(chain(&program("", "", &[])), Some(Vec::new()), "entries cannot be added to a table without a key");
    }

    #[test]
    fn tables_whose_hits_are_noted_are_no_chains() {
        assert_eq!(chain(&program("  const_entries\n  counter seen\n", EXACT, &exact(1))), None);
        assert_eq!(chain(&program("  const_entries\n  idle_timeout\n", EXACT, &exact(1))), None);
    }

    #[test]
    fn longer_prefixes_come_first() {
        let entries = ["0x0:16/0", "0x1200:16/8", "0x1234:16/16", "0x1230:16/12", "0x5600:16/8"].map(str::to_owned);
        let program = program("  const_entries\n", "  key k: lpm 16 = h.a\n", &entries);
        assert_eq!(chain(&program), Some(vec![2, 3, 1, 4, 0]));
    }

    #[test]
    fn priorities_come_before_prefixes() {
        let keys = "  key k: ternary 16 = h.a\n  key l: lpm 16 = h.a\n";
        let entries = ["0x0:16/0 priority 1", "0x1200:16/8 priority 1", "0x0:16/0 priority 2"];
        let entries = entries.map(|entry| format!("0x0:16 &&& 0x0:16, {entry}"));
        let program = program("  const_entries\n", keys, &entries);
        assert_eq!(chain(&program), Some(vec![2, 1, 0]));
    }
}
