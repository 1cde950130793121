//! Reports the size of a set of rules.

use std::collections::BTreeMap;

use subscribe::{StageSize, Stats, Subscriptions, Wide};
use subscribe_p4::entries::{Entity, Update};

use super::args::{Ranges, ShapeArgs, flags, target};
pub use crate::output::{counted, grouped as digits};

fn number(count: usize) -> String {
    digits(count as u64)
}

/// The match kind of a table that matches the state alone.
const STATE: &str = "exact (state)";

/// Formats the number of entries of each table. The tables of `stages` come first, in their order. Tables without
/// entries are left out.
pub fn tables(stages: &[(String, Option<&'static str>)], updates: &[Update]) -> String {
    let mut entries: BTreeMap<&str, usize> = BTreeMap::new();
    for update in updates {
        if let Update::Insert(Entity::Table(entry)) = update {
            *entries.entry(&entry.table).or_default() += 1;
        }
    }
    let mut rows: Vec<(&str, &str, usize)> = Vec::new();
    for (name, kind) in stages {
        rows.extend(entries.remove(name.as_str()).map(|count| (name.as_str(), kind.unwrap_or(STATE), count)));
    }
    // The remaining tables map states, and keys of aggregates, to actions.
    rows.extend(entries.into_iter().map(|(name, count)| (name, "exact", count)));
    let short = |name: &str| name.rsplit_once('.').map_or(name, |(_, name)| name).to_owned();
    let width = rows.iter().map(|(name, ..)| short(name).len()).max().unwrap_or(0).max(5);
    let mut lines = vec![format!("\n{:width$}  {:13}  {:>11}", "table", "match", "entries")];
    lines.extend(
        rows.iter().map(|(name, kind, count)| format!("{:width$}  {kind:13}  {:>11}", short(name), number(*count))),
    );
    lines.join("\n")
}

/// Counts entries by match kind: exact (without those for states alone), range, ternary, lpm, and those for states
/// alone.
fn by_kind(sizes: &[StageSize], codes: Wide) -> [usize; 5] {
    let column = |kind: Option<Wide>| match kind {
        Some(Wide::Range) => 1,
        Some(Wide::Lpm) => 3,
        // `None` is a test of validity.
        Some(Wide::Ternary) | None => 2,
    };
    let mut kinds = [0; 5];
    for size in sizes {
        kinds[0] += size.exact;
        kinds[column(size.kind)] += size.wide;
        kinds[column(Some(codes))] += size.codes;
        kinds[4] += size.rest;
    }
    kinds
}

/// Formats the number of entries that the rules take with each kind of table.
pub fn kinds(rules: &Subscriptions, chosen: &ShapeArgs) -> String {
    let line = |name: &str, numbers: [String; 6]| {
        let numbers: String = numbers.iter().map(|number| format!("{number:>12}")).collect();
        format!("{name:33}{numbers}")
    };
    let head = ["exact", "range", "ternary", "lpm", "state only", "all"].map(str::to_owned);
    let mut lines = vec![format!("\n{}", line("the same rules with", head))];
    for ranges in [Ranges::Range, Ranges::Ternary, Ranges::Lpm] {
        for exact in [false, true] {
            let target = target(ranges, exact);
            let codes = if target.has_ranges { Wide::Range } else { target.wide };
            let kinds = by_kind(&rules.sizes(&target), codes);
            let [a, b, c, d, e] = kinds;
            let numbers = [a, b, c, d, e, kinds.iter().sum()].map(number);
            let is_chosen = (ranges, exact) == (chosen.ranges, chosen.exact_tables);
            lines.push(line(&format!("{} {}", if is_chosen { '*' } else { ' ' }, flags(ranges, exact)), numbers));
        }
    }
    lines.join("\n")
}

/// Formats the size of the diagram and of the data structures that keep it.
pub fn stats(stats: &Stats) -> String {
    let [diagrams, operations, rules] = stats.bytes.map(|bytes| match bytes {
        ..1_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    });
    let lines = [
        String::new(),
        format!(
            "{} entries, {} leaves, {} groups, {} states",
            number(stats.entries()),
            number(stats.leaves),
            number(stats.groups),
            number(stats.states)
        ),
        format!(
            "the diagram has {} nodes ({} as comparisons) and {} action sets",
            number(stats.nodes),
            number(stats.binary_nodes),
            number(stats.sets)
        ),
        format!("memory: {diagrams} for diagrams, {operations} for operations, {rules} for rules"),
    ];
    lines.join("\n")
}
