//! Benchmark of the compiler: time, entries, and the time of a change. Run `cargo bench -p subscribe`, optionally with
//! the parts to run: `paper`, `targets`, `change`, `keys`, `siena`, `ranges`. Compilation times are CPU times.

use std::time::{Duration, Instant};

use diagnostics::{Diagnostics, SourceMap};
use rng::SplitMix64;
use subscribe::workload::{self, Siena, Workload};
use subscribe::{
    ColumnLayout, CompileOptions, Limits, MessageFormat, NoIncludes, Rule, Subscriptions, TargetCapabilities, Wide,
    parse,
};

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let parts: [(&str, fn()); 6] = [
        ("paper", paper),
        ("targets", targets),
        ("change", change),
        ("keys", keys),
        ("siena", siena),
        ("ranges", ranges),
    ];
    for (name, part) in parts {
        if wanted.is_empty() || wanted.iter().any(|other| other == name) {
            part();
            println!();
        }
    }
}

fn rules(text: &str, format: &MessageFormat) -> Vec<Rule> {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let rules = parse(&mut map, "workload", text, format, &mut NoIncludes, &mut diagnostics);
    assert!(diagnostics.is_empty(), "{}", diagnostics.render(&map, false));
    rules
}

/// Returns the CPU time of this thread, if the system reports it; unlike wall-clock time, it is insensitive to other
/// load. The resolution is a few milliseconds.
fn core() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

/// Parses and compiles a workload. Returns the time of each step.
fn compile(of: &Workload, limits: Limits) -> (Duration, Duration, Result<Subscriptions, String>) {
    let start = core();
    let rules = rules(&of.text, &of.format);
    let read = core() - start;
    let layout = ColumnLayout::sensible(&of.format, &rules);
    let mut all = Subscriptions::new(of.format.clone(), layout, CompileOptions { limits, ..CompileOptions::default() });
    let outcome = all.change(&[], rules);
    let outcome = outcome.map_err(|refusal| refusal.diagnostic(&SourceMap::new()).render(&SourceMap::new(), false));
    (read, core() - start - read, outcome.map(|_| all))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn paper() {
    println!("the paper's workload: 100 symbols, thresholds 1..1000, 200 hosts; at 100 K rules 21,401 entries there");
    println!(
        "{:>9} {:>9} {:>11} {:>8} {:>8} {:>7} {:>7} {:>9} {:>8} {:>9}",
        "rules", "read ms", "compile ms", "entries", "leaves", "groups", "nodes", "binary", "kept", "MB"
    );
    for count in [1_000, 10_000, 100_000, 1_000_000] {
        let (read, compiled, all) = compile(&workload::paper(1, count), Limits::default());
        let stats = all.expect("it fits").stats();
        println!(
            "{count:>9} {:>9.1} {:>11.1} {:>8} {:>8} {:>7} {:>7} {:>9} {:>8} {:>9.1}",
            ms(read),
            ms(compiled),
            stats.entries(),
            stats.leaves,
            stats.groups,
            stats.nodes,
            stats.binary_nodes,
            stats.kept,
            stats.bytes.iter().sum::<usize>() as f64 / 1e6
        );
        for stage in stats.stages.iter().filter(|stage| stage.all() > 0) {
            println!("{:>21}: {} exact, {} wide, {} rest", stage.name, stage.exact, stage.wide, stage.rest);
        }
    }
}

/// Prints the entries of the paper's rules for targets with other match kinds.
fn targets() {
    println!("entries for 100 K rules of the paper's workload, by what the target's tables take");
    println!(
        "{:>24} {:>14} {:>13} {:>12} {:>11} {:>8}",
        "tables", "stock: exact", "price: exact", "price: wide", "state alone", "all"
    );
    let all = compile(&workload::paper(1, 100_000), Limits::default()).2.expect("it fits");
    for (name, wide) in [("range", Wide::Range), ("ternary", Wide::Ternary), ("lpm", Wide::Lpm)] {
        for exact_beside in [false, true] {
            let has_ranges = wide == Wide::Range;
            let sizes =
                all.sizes(&TargetCapabilities { wide, has_ranges, exact_beside, ..TargetCapabilities::default() });
            let of = |field: &str| sizes.iter().find(|size| size.name.ends_with(field)).expect("a field");
            let (stock, price) = (of("stock"), of("price"));
            println!(
                "{:>24} {:>14} {:>13} {:>12} {:>11} {:>8}",
                format!("{name}{}", if exact_beside { ", exact beside" } else { "" }),
                stock.exact,
                price.exact,
                price.wide,
                sizes.iter().map(|size| size.rest).sum::<usize>(),
                sizes.iter().map(|size| size.all()).sum::<usize>()
            );
        }
    }
}

fn change() {
    println!("one rule more, one rule less, among 100 K of the paper's workload: to the last difference");
    let of = workload::paper(1, 100_000);
    let mut all = compile(&of, Limits::default()).2.expect("it fits");
    let mut rng = SplitMix64::new(2);
    let (mut times, mut writes, mut most) = (Vec::new(), Vec::new(), 0);
    let mut ids: Vec<_> = all.rules().map(|(id, _)| id).collect();
    for round in 0..4000 {
        let rule = rules(&workload::rule(&mut rng, workload::SYMBOLS), &of.format);
        let start = Instant::now();
        let applied = match round % 2 {
            0 => all.change(&[], rule),
            _ => all.change(&[ids.swap_remove(rng.below(ids.len() as u64) as usize)], Vec::new()),
        };
        times.push(start.elapsed());
        let applied = applied.expect("it fits");
        ids.extend(&applied.added);
        writes.push(applied.change.len());
        most = most.max(all.kept());
    }
    let mut sorted = times.clone();
    sorted.sort();
    writes.sort();
    let at = |part: usize| sorted[(sorted.len() - 1) * part / 1000];
    println!(
        "ms: p50 {:.3}  p90 {:.3}  p99 {:.3}  p99.9 {:.3}  max {:.3}",
        ms(at(500)),
        ms(at(900)),
        ms(at(990)),
        ms(at(999)),
        ms(at(1000))
    );
    println!(
        "table writes: p50 {}  p90 {}  p99 {}  max {};  nodes and sets kept: {most} at most",
        writes[writes.len() / 2],
        writes[writes.len() * 9 / 10],
        writes[writes.len() * 99 / 100],
        writes[writes.len() - 1]
    );
}

/// Prints how long rules take that name the keys of an aggregate: all at once, and one more with a new key.
fn keys() {
    println!("`stock == S and avg(price) by stock > P`, every rule with a key of its own");
    println!(
        "{:>9} {:>10} {:>11} {:>9} {:>22} {:>22}",
        "rules", "aggregate", "compile ms", "cells", "new key ms: p50, p99", "known key: p50, p99"
    );
    for (count, is_linked) in [(1_000, false), (10_000, false), (100_000, false), (100_000, true)] {
        let mut format = workload::itch();
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let declared = subscribe::aggregate(&mut map, "avg(price) by stock", &format, &mut diagnostics);
        let aggregate = declared.filter(|_| !is_linked);
        format.compute(subscribe::ComputedAggregate { aggregate, slots: 1, keys: 1 << 20 });
        let rule = |stock: usize, price: usize, port: usize| {
            format!("stock == \"S{stock}\" and avg(price) by stock > {price} : fwd({port})")
        };
        let text: Vec<String> = (0..count).map(|stock| rule(stock, stock % 1_000, 1 + stock % 200)).collect();
        let of = Workload { text: text.join("\n"), format };
        let (_, compiled, all) = compile(&of, Limits::default());
        let mut all = all.expect("it fits");
        let cells = all.tables().key_cells.len();
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..1_000 {
            for (new, times) in times.iter_mut().enumerate() {
                let stock = if new == 0 { count + round } else { round };
                let more = rules(&rule(stock, 1_001 + round, 250), &of.format);
                let start = Instant::now();
                all.change(&[], more).expect("it fits");
                times.push(start.elapsed());
            }
        }
        let shown = times.map(|mut times| {
            times.sort();
            format!("{:.3}, {:.3}", ms(times[500]), ms(times[990]))
        });
        let name = if is_linked { "linked" } else { "declared" };
        println!("{count:>9} {name:>10} {:>11.1} {cells:>9} {:>22} {:>22}", ms(compiled), shown[0], shown[1]);
    }
}

fn siena() {
    println!(
        "conjunctions over 5 attributes, 100 values each (Zipf 1.0 both), 100 hosts: entries against subscriptions"
    );
    let limits = Limits { bytes: 1 << 30, steps: 100_000_000, entries: usize::MAX, ..Limits::default() };
    let show = |of: &Siena| {
        let (_, compiled, all) = compile(&workload::siena(1, of), limits);
        let shown = match all {
            Ok(all) => {
                let stats = all.stats();
                let (entries, leaves, nodes) = (stats.entries(), stats.leaves, stats.nodes);
                format!("{entries:>9} entries {leaves:>8} leaves {nodes:>8} nodes")
            }
            Err(why) => why.lines().next().unwrap_or_default().to_owned(),
        };
        println!("{:>7} of {} predicates: {shown} {:>9.1} ms", of.subscriptions, of.predicates, ms(compiled));
    };
    for subscriptions in [10, 20, 50, 100, 200, 500, 1000] {
        show(&Siena { subscriptions, ..Siena::default() });
    }
    println!("and against predicates in each");
    for predicates in 1..=5 {
        show(&Siena { predicates, subscriptions: 100, ..Siena::default() });
    }
    println!("the same of 10,000 values without skew");
    let even = Siena { values: 10_000, skew: 0.0, ..Siena::default() };
    for subscriptions in [10, 20, 50, 100, 200, 500, 1000] {
        show(&Siena { subscriptions, ..even.clone() });
    }
    for predicates in 1..=5 {
        show(&Siena { predicates, subscriptions: 100, ..even.clone() });
    }
}

fn ranges() {
    println!("ranges in three fields, no value to tell rules apart by");
    for selectivity in [10, 100, 1000] {
        println!("each range a {selectivity}th of the values");
        for count in [100, 300, 1_000, 3_000, 10_000] {
            let limits = Limits { bytes: 2 << 30, steps: 200_000_000, entries: usize::MAX, ..Limits::default() };
            let (_, compiled, all) = compile(&workload::ranges(1, count, selectivity), limits);
            match all {
                Ok(all) => {
                    let stats = all.stats();
                    println!(
                        "{count:>7} rules: {:>9} entries {:>8} leaves {:>8} nodes {:>9.1} ms {:>8.1} MB",
                        stats.entries(),
                        stats.leaves,
                        stats.nodes,
                        ms(compiled),
                        stats.bytes.iter().sum::<usize>() as f64 / 1e6
                    );
                }
                Err(why) => {
                    println!("{count:>7} rules: refused after {:.1} ms\n{why}", ms(compiled));
                    break;
                }
            }
        }
    }
}
