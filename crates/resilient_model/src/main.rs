//! Runs models with larger bounds than the tests use, and prints the numbers of states.

use std::process::ExitCode;
use std::time::Instant;

use resilient_model::{ModelBounds, SearchReport, search};

const HELP: &str = "\
Usage: resilient_model [--steps N] [MODEL...]

Visits the states of models of the resilient machines, depth first, in one thread, until all were visited or N steps
were made. Prints the numbers of distinct states and steps. If a property is violated, prints a counterexample and
fails.

Models:
  leases   two switches and a store node: leases end, rows move
  repeats  rows move while three messages arrive twice; three inputs of all kinds, no time passes
  crashes  the same with switches that crash
  readers  the first with rows that switches share for reading
  chain    a chain of two nodes, one of which loses its memory and joins again; no time passes

Options:
  --steps N   Maximum number of steps of a model [default: unlimited]
";

fn bounds(name: &str) -> Option<ModelBounds> {
    Some(match name {
        "leases" => ModelBounds::leases(),
        "repeats" => ModelBounds::repeats(),
        "readers" => ModelBounds::readers(),
        "crashes" => ModelBounds::crashes(),
        "chain" => ModelBounds::chain(),
        _ => return None,
    })
}

fn print(name: &str, report: &SearchReport, seconds: f64) {
    let end = if report.is_complete { "all visited" } else { "stopped" };
    let (states, steps, depth) = (report.states, report.steps, report.depth);
    println!("{name}: {states} distinct states, {steps} steps, depth {depth}, {seconds:.0} s, {end}");
    let counts: Vec<String> = report.counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    println!("  {}", counts.join(", "));
    for violation in &report.violations {
        println!("  VIOLATION: {}\n    {}", violation.property, violation.steps.join("\n    "));
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (mut limit, mut models) = (usize::MAX, Vec::new());
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--help" | "-h" => {
                print!("{HELP}");
                return ExitCode::SUCCESS;
            }
            "--steps" => match arguments.next().and_then(|number| number.parse().ok()) {
                Some(number) => limit = number,
                None => {
                    eprintln!("error: --steps requires a number");
                    return ExitCode::from(2);
                }
            },
            name if bounds(name).is_some() => models.push(argument),
            _ => {
                eprintln!("error: there is no model `{argument}`\n\n{HELP}");
                return ExitCode::from(2);
            }
        }
    }
    if models.is_empty() {
        models = ["leases", "repeats", "readers", "crashes", "chain"].map(str::to_owned).to_vec();
    }
    let mut is_good = true;
    for name in &models {
        let Some(bounds) = bounds(name) else { continue };
        let started = Instant::now();
        let report = search(bounds, limit);
        print(name, &report, started.elapsed().as_secs_f64());
        is_good &= report.violations.is_empty();
    }
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
