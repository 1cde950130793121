//! Growth of tables with the number of rules, and their shrinking with the number of tests per rule: random rules as
//! from Siena's benchmark generator, as in figure 5 of the packet subscriptions paper.
//!
//! `cargo bench -p subscribe --bench shapes` writes `docs/subscriptions-shapes.csv` and `.svg`. The output is the same
//! on every machine, because all inputs are seeded. A point is the median of five sets of rules.

mod chart;

use std::fmt::Write;
use std::path::Path;

use chart::{DataSeries, Panel};
use diagnostics::{Diagnostics, SourceMap};
use subscribe::workload::{self, Siena};
use subscribe::{ColumnLayout, CompileOptions, Limits, NoIncludes, Subscriptions, TargetCapabilities, parse};

const SEEDS: std::ops::RangeInclusive<u64> = 1..=5;

/// Returns the number of entries of a set of rules; `None` if it is too large.
fn entries(seed: u64, of: &Siena) -> Option<usize> {
    let of = workload::siena(seed, of);
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let rules = parse(&mut map, "workload", of.text, &of.format, &mut NoIncludes, &mut diagnostics);
    assert!(diagnostics.is_empty(), "{}", diagnostics.render(&map, false));
    let layout = ColumnLayout::sensible(&of.format, &rules);
    // The number of groups does not matter here.
    let target = TargetCapabilities { max_group: u32::MAX >> 1, ..TargetCapabilities::default() };
    let limits = Limits { bytes: 2 << 30, steps: 200_000_000, entries: usize::MAX, ..Limits::default() };
    let mut all = Subscriptions::new(of.format, layout, CompileOptions { target, limits, ..CompileOptions::default() });
    all.change(&[], rules).ok()?;
    Some(all.stats().entries())
}

/// Returns the median over all seeds; `None` if one of the sets is too large.
fn median(of: &Siena) -> Option<usize> {
    let mut all: Vec<usize> = SEEDS.map(|seed| entries(seed, of)).collect::<Option<_>>()?;
    all.sort_unstable();
    Some(all[all.len() / 2])
}

fn main() {
    let mut csv = "subscriptions,predicates,entries\n".to_owned();
    let mut point = |subscriptions: usize, predicates: usize| {
        let median = median(&Siena { subscriptions, predicates, ..Siena::default() });
        let shown = median.map_or("too large".to_owned(), |entries| entries.to_string());
        println!("{subscriptions:>6} rules of {predicates} tests: {shown:>10} entries");
        let shown = median.map_or(String::new(), |entries| entries.to_string());
        writeln!(csv, "{subscriptions},{predicates},{shown}").expect("a string takes everything");
        median.map(|entries| entries as f64)
    };
    let growth = [3, 4, 5].map(|predicates| {
        let counts = [10, 20, 50, 100, 200, 500, 1000, 2000];
        let points = counts.into_iter().filter_map(|count| Some((count as f64, point(count, predicates)?)));
        DataSeries { name: format!("{predicates} tests"), points: points.collect() }
    });
    let selective = [20, 50, 100].map(|count| {
        let points = (1..=5).filter_map(|predicates| Some((predicates as f64, point(count, predicates)?)));
        DataSeries { name: format!("{count} rules"), points: points.collect() }
    });
    let panels = [
        Panel { title: "Entries by rules", across: "rules", is_log: true, lines: growth.into() },
        Panel {
            title: "Entries by tests in a rule",
            across: "tests in a rule",
            is_log: false,
            lines: selective.into(),
        },
    ];
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for (name, text) in [("subscriptions-shapes.csv", csv), ("subscriptions-shapes.svg", chart::draw(&panels))] {
        std::fs::write(docs.join(name), text).expect("docs can be written");
        println!("docs/{name}");
    }
}
