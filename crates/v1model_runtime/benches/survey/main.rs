//! A survey of speed: nanoseconds a packet in many programs, for the machine code of the program alone and for the
//! whole switch, the path that packets took through the switch, with the reason where it was not the fastest, and the
//! time to compile the program to machine code.
//!
//! ```text
//! cargo bench -p v1model_runtime --bench survey                     # all
//! cargo bench -p v1model_runtime --bench survey -- router clone     # programs whose names contain one of these words
//! cargo bench -p v1model_runtime --bench survey -- by-hand          # only the comparisons with hand-written Rust
//! ```
//!
//! The output is Markdown, as in docs/performance.md. `ROUNDS` in the environment sets the number of rounds.

mod by_hand;
mod cases;
mod compile_time;
mod load;
mod measure;

use std::collections::BTreeMap;

use load::Loaded;
use measure::{Figures, median};
use v1model::{Path, PathCount};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_chosen = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    println!("Load average: {}\n", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    let cases = cases::CASES.iter().filter(|case| is_chosen(case.name));
    table("program", cases.map(|case| (case.name.to_owned(), load::case(case))));
    let tests = load::packet_tests().into_iter().filter(|(name, _)| is_chosen(name));
    table("packet test", tests.map(|(name, path)| (name, load::packet_test(&path))));
    by_hand::compare(is_chosen);
}

/// Measures programs and prints a row for each, and the median over all.
fn table(heading: &str, programs: impl Iterator<Item = (String, Loaded)>) {
    let mut all: Vec<Figures> = Vec::new();
    for (name, loaded) in programs {
        if all.is_empty() {
            println!("| {heading} | unit, ns | switch, ns | 1.3 × unit + 15 | dropped | compile, ms | path |");
            println!("|---|---|---|---|---|---|---|");
        }
        let compile_ms = compile_time::ms(loaded.switch.program());
        let figures = Figures { compile_ms, ..measure::program(loaded) };
        println!("{}", row(&name, &figures));
        all.push(figures);
    }
    if all.len() < 2 {
        return;
    }
    let batched: Vec<&Figures> = all.iter().filter(|figures| figures.is_batched()).collect();
    let units: Vec<f64> = batched.iter().filter_map(|figures| figures.unit_ns).collect();
    let beyond = batched.iter().filter(|figures| figures.bound_ns().is_some_and(|bound| figures.switch_ns > bound));
    println!(
        "\n{} programs, {} with all packets in batches; of these, the median unit takes {:.1} ns, the median switch \
         adds {:.1} ns, and {} exceed 1.3 × unit + 15 ns. The longest compilation takes {:.1} ms.\n",
        all.len(),
        batched.len(),
        median(units),
        median(batched.iter().filter_map(|figures| Some(figures.switch_ns - figures.unit_ns?)).collect()),
        beyond.count(),
        all.iter().map(|figures| figures.compile_ms).fold(0.0, f64::max),
    );
}

fn row(name: &str, figures: &Figures) -> String {
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.1}"));
    format!(
        "| {name} | {} | {:.1} | {} | {:.0} % | {:.1} | {} |",
        number(figures.unit_ns),
        figures.switch_ns,
        number(figures.bound_ns()),
        100.0 * figures.dropped,
        figures.compile_ms,
        paths(&figures.paths)
    )
}

/// Renders paths with their shares and reasons: `batched`, or `batched 98 %, copied 2 %: multicast`.
fn paths(counts: &[PathCount]) -> String {
    let all: u64 = counts.iter().map(|count| count.packets).sum();
    if let [PathCount { path: Path::Batched, .. }] = counts {
        return Path::Batched.name().to_owned();
    }
    let mut shares: BTreeMap<(Path, String), u64> = BTreeMap::new();
    for count in counts {
        let reason = count.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        *shares.entry((count.path, reason)).or_default() += count.packets;
    }
    let share = |((path, reason), packets): (&(Path, String), &u64)| {
        format!("{} {:.0} %{reason}", path.name(), 100.0 * *packets as f64 / all.max(1) as f64)
    };
    shares.iter().map(share).collect::<Vec<_>>().join("; ")
}
