//! Cost of machine code compared with hand-written code and with the interpreter: the measures of docs/performance.md.
//!
//! Run `cargo bench -p jit --bench measures`, with names of measures after `--` to select some. Every program is P4
//! source in `benches/programs`, and runs as in the switch, from parser to deparser. The hand-written side uses the
//! same tables and the same batch size, makes the same checks and produces the same bytes, which is asserted first. All
//! sides run on one core and in turns; figures are medians. Packets have 64 bytes; copying one into its buffer is part
//! of every figure.

mod growth;
mod headers;
mod l2;
mod l3;
mod lab;
mod nat;
mod packets;

use lab::{ByHand, Case};
use nat::Popularity;

/// Required speedup over the interpreter.
const FASTER: f64 = 20.0;

/// Returns whether a bound holds, as a word.
pub fn verdict(holds: bool) -> &'static str {
    if holds { "holds" } else { "MISSED" }
}

fn row(name: &str, bound: f64, (mut case, by_hand): (Case, impl ByHand)) {
    let renewing = case.renewing_ns();
    let figures = case.measure(by_hand);
    println!(
        "{name:<24} {:>8.1} {:>8.1} {:>6.2} {bound:>5.1} {:<6}  {:>8.0} {:>6.1} {FASTER:>4.0} {:<6}  {renewing:>6.1}",
        figures.compiled,
        figures.by_hand,
        figures.ratio,
        verdict(figures.ratio <= bound),
        figures.interpreted,
        figures.faster,
        verdict(figures.faster >= FASTER),
    );
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| asked.is_empty() || asked.iter().any(|asked| asked == name);
    println!(
        "ns a packet, medians of {} rounds; `into` is the part of putting a packet into its buffer",
        lab::rounds()
    );
    println!(
        "{:<24} {:>8} {:>8} {:>6} {:>5} {:<6}  {:>8} {:>6} {:>4} {:<6}  {:>6}",
        "work", "compiled", "by hand", "ratio", "must", "", "interpr.", "faster", "must", "", "into"
    );
    if wanted("l2") {
        row("l2, 10 K MACs", 1.5, l2::switch(10_000));
    }
    if wanted("l3") {
        row("l3, 100 K prefixes", 1.5, l3::router(100_000));
    }
    if wanted("acl") {
        row("acl, 10 K rules, then l3", 1.6, l3::guarded_router(10_000));
    }
    if wanted("nat") {
        row("nat, 1 M flows, uniform", 1.5, nat::nat(1_000_000, Popularity::Uniform));
        row("nat, 1 M flows, Zipf", 1.5, nat::nat(1_000_000, Popularity::Zipf));
    }
    if wanted("int") {
        row("int push, 12 bytes", 2.0, headers::telemetry());
    }
    if wanted("tunnel") {
        row("encapsulate, 50 bytes", 2.0, headers::encapsulation());
        row("decapsulate, 50 bytes", 2.0, headers::decapsulation());
    }
    if wanted("headers") {
        growth::unused_headers();
    }
    if wanted("fixed") {
        growth::fixed_tables();
    }
    if wanted("entries") {
        growth::entries();
    }
    if wanted("rules") {
        growth::rules();
    }
    if wanted("compile") {
        growth::compile_time();
    }
}
