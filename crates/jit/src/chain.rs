//! Small tables that nobody can change, which become comparisons in the code.

use std::cmp::Reverse;

use ir::{Entry, KeyValue, MatchKind, Table};

/// Tables of more entries are looked up.
const MOST: usize = 8;

/// The entries of a table in the order in which keys are to be compared with them, if the table becomes a chain of
/// comparisons: it has few entries, or none since it has no key, all of which are the program's and stay, and nobody
/// counts or times their hits. Its default action may change.
///
/// The first entry that matches is hit: of the largest priority, of these the longest prefixes, of these the first in the
/// program.
pub(crate) fn entries(table: &Table) -> Option<Vec<&Entry>> {
    let stays = table.const_entries || table.keys.is_empty() && table.entries.is_empty();
    let is_noted = table.counter.is_some() || table.meter.is_some() || table.idle_timeout;
    let selects = table.keys.iter().any(|key| key.kind == MatchKind::Selector);
    if !stays || is_noted || table.profile.is_some() || selects || table.entries.len() > MOST {
        return None;
    }
    let has_priority = |kind| matches!(kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional);
    let has_priorities = table.keys.iter().any(|key| has_priority(key.kind));
    let mut entries: Vec<&Entry> = table.entries.iter().collect();
    entries.sort_by_key(|entry| Reverse((if has_priorities { entry.priority } else { 0 }, prefixes(table, entry))));
    Some(entries)
}

/// The lengths of all prefixes of an entry.
fn prefixes(table: &Table, entry: &Entry) -> u64 {
    let length = |(key, value): (&ir::Key, &KeyValue)| match (key.kind, value) {
        (MatchKind::Lpm, KeyValue::Lpm(_, length)) => u64::from(*length),
        (MatchKind::Lpm, KeyValue::Exact(_)) => u64::from(key.width),
        _ => 0,
    };
    table.keys.iter().zip(&entry.keys).map(length).sum()
}
