//! How large a set of rules is, for people.

use subscribe::Stats;

use crate::bench::report::grouped as digits;

/// `1 rule`, `2,000 rules`.
pub fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{} {}", digits(count as u64), if count == 1 { one } else { several })
}

/// A table of the stages' entries, and the diagram's size.
pub fn stats(stats: &Stats) -> String {
    let width = stats.stages.iter().map(|stage| stage.name.len()).max().unwrap_or(0).max(5);
    let number = |count: usize| digits(count as u64);
    let has_codes = stats.stages.iter().any(|stage| stage.codes > 0);
    let line = |name: &str, [exact, wide, rest, codes]: [String; 4]| {
        let codes = if has_codes { format!("  {codes:>11}") } else { String::new() };
        format!("{name:width$}  {exact:>11}  {wide:>11}  {rest:>11}{codes}")
    };
    let head = line("field", ["exact", "wide", "rest", "codes"].map(str::to_owned));
    let mut lines = vec![format!("\n{head}")];
    for stage in stats.stages.iter().filter(|stage| stage.all() > 0) {
        lines.push(line(&stage.name, [stage.exact, stage.wide, stage.rest, stage.codes].map(number)));
    }
    let [diagrams, operations, rules] = stats.bytes.map(|bytes| match bytes {
        ..1_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    });
    lines.push(String::new());
    lines.push(format!(
        "{} entries, {} leaves, {} groups, {} states",
        number(stats.entries()),
        number(stats.leaves),
        number(stats.groups),
        number(stats.states)
    ));
    lines.push(format!(
        "the diagram has {} nodes ({} as comparisons) and {} sets of actions",
        number(stats.nodes),
        number(stats.binary_nodes),
        number(stats.sets)
    ));
    lines.push(format!("memory: {diagrams} for diagrams, {operations} for operations, {rules} for rules"));
    lines.join("\n")
}
