//! Runs `cargo xtask ci`: what CI runs, on any machine.

use anyhow::{Context, Result, bail};

use crate::step::{Outcome, Step, clock};
use crate::totals::{SkipLog, Totals};

/// The output of `cargo xtask ci --help` below the first line.
pub const HELP: &str = "\
Usage: cargo xtask ci [OPTIONS] [STEP...]

Runs the steps one after another and continues after a failure, so one run reports everything. At the end it prints the
last errors of the steps that failed, a table of all steps and the totals of the tests, and fails if any step failed.
With STEPs, only those run.

Steps, in order:
  fmt      formatting (`cargo fmt --all` repairs it)
  tidy     style: line width, file length, words, type names, commit subjects
  clippy   lints of every target, warnings denied
  features optional features compile (Parquet, `protos`)
  test     every test of the workspace; those that need root or a tool skip without it
  seeds    the simulators of resilient state, elastic tables and RDMA, with more seeds than the tests use
  doc      the documentation builds without a warning
  build    the release build
  demo     `triplane demo` exits with 0
  oracle   random programs on the reference evaluator, the interpreter and machine code
  fuzz     every fuzz target, for a few seconds each

Options:
  --fuzz-seconds N   How long each fuzz target runs [default: 8]
  --fuzz-seed N      The seed of the fuzzers [default: 1]

Environment:
  TRIPLANE_NO_SKIP=1   Fail tests that would otherwise be skipped. Set in CI.
";

/// The fuzz targets of the `fuzz` package.
const FUZZ_TARGETS: [&str; 10] =
    ["frontend", "ir", "packets", "entries", "pcap", "p4runtime", "rules", "rdma", "tpp", "executor"];

const STEPS: [&str; 11] =
    ["fmt", "tidy", "clippy", "features", "test", "seeds", "doc", "build", "demo", "oracle", "fuzz"];

struct CiOptions {
    steps: Vec<&'static str>,
    fuzz_seconds: u32,
    fuzz_seed: u64,
}

impl CiOptions {
    fn parse(arguments: &[String]) -> Result<CiOptions> {
        let mut options = CiOptions { steps: Vec::new(), fuzz_seconds: 8, fuzz_seed: 1 };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut number = || -> Result<u64> {
                let value = rest.next().with_context(|| format!("{argument} requires a number"))?;
                value.parse().with_context(|| format!("{argument} requires a number, not `{value}`"))
            };
            match argument.as_str() {
                "--fuzz-seconds" => options.fuzz_seconds = u32::try_from(number()?).context("too many seconds")?,
                "--fuzz-seed" => options.fuzz_seed = number()?,
                name => match STEPS.iter().find(|step| **step == name) {
                    Some(step) => options.steps.push(step),
                    None => bail!("there is no step `{name}`; the steps are {}", STEPS.join(", ")),
                },
            }
        }
        if options.steps.is_empty() {
            options.steps = STEPS.to_vec();
        }
        Ok(options)
    }
}

/// Runs the steps. False if any failed.
pub fn run(arguments: &[String]) -> Result<bool> {
    let options = CiOptions::parse(arguments)?;
    let skips = SkipLog::new()?;
    let mut totals = Totals::default();
    let mut outcomes: Vec<Outcome> = Vec::new();
    for name in STEPS.iter().filter(|step| options.steps.contains(step)) {
        let outcome = match *name {
            "fmt" => Step::cargo("fmt", &["fmt", "--all", "--check"]).run(),
            "tidy" => Step::chore("tidy", &["tidy"]).run(),
            "clippy" => {
                let arguments = ["clippy", "--workspace", "--all-targets", "--keep-going", "--", "-D", "warnings"];
                Step::cargo("clippy", &arguments).run()
            }
            "features" => features(),
            "test" => test(&skips, &mut totals)?,
            "seeds" => seeds(),
            "doc" => {
                let step = Step::cargo("doc", &["doc", "--workspace", "--no-deps", "--keep-going"]);
                step.env("RUSTDOCFLAGS", "-D warnings").run()
            }
            "build" => Step::cargo("build", &["build", "--release"]).run(),
            "demo" => Step::cargo("demo", &["run", "--release", "--", "demo"]).run(),
            "oracle" => Step::chore("oracle", &["oracle"]).run(),
            "fuzz" => fuzz(&options),
            other => unreachable!("step `{other}` is listed and not implemented"),
        };
        outcomes.push(outcome);
    }

    for outcome in outcomes.iter().filter(|outcome| !outcome.last_lines.is_empty()) {
        println!("\n=== {}: last lines of its errors\n{}", outcome.name, outcome.last_lines.join("\n"));
    }
    println!("\n{}", table(&outcomes));
    for line in skips.lines()? {
        println!("skipped: {line}");
    }
    // The last line is for machines.
    println!("{totals}");
    Ok(outcomes.iter().all(Outcome::passed))
}

/// All tests, with their totals. Those of live networks and of commands wait most of the time, so there are two threads
/// for each processor, unless the caller chose.
fn test(skips: &SkipLog, totals: &mut Totals) -> Result<Outcome> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = std::env::var("RUST_TEST_THREADS").unwrap_or_else(|_| (2 * processors).to_string());
    let step = Step::cargo("test", &["test", "--workspace", "--no-fail-fast"]).env("TRIPLANE_SKIP_LOG", skips.path());
    let step = step.env("RUST_TEST_THREADS", threads);
    let mut outcome = step.run_reading(|line| totals.read(line));
    totals.skip(skips.lines()?.len());
    if outcome.passed() && totals.passed() == 0 {
        outcome.fail("no test ran".to_owned());
    }
    outcome.note(totals.to_string());
    for name in totals.failures() {
        outcome.note(format!("failed: {name}"));
    }
    Ok(outcome)
}

/// More runs of the simulators. All packages of the workspace are named, so that nothing is recompiled with other
/// features.
fn seeds() -> Outcome {
    let tests = [
        "no_seed_shows_a_violation",
        "no_seed_with_snapshots_shows_a_violation",
        "answers_of_random_networks",
        "the_interpreter_explains_the_outputs",
    ];
    let arguments = [&["test", "--workspace", "--test", "it", "--"], &tests[..]].concat();
    let step = Step::cargo("seeds", &arguments).env("TRIPLANE_RESILIENT_SEEDS", "100000");
    let step = step.env("TRIPLANE_RESILIENT_SNAPSHOT_SEEDS", "20000");
    let step = step.env("TRIPLANE_RESILIENT_NETWORKS", "2000").env("TRIPLANE_RESILIENT_HISTORIES", "200");
    step.env("TRIPLANE_ELASTIC_SEEDS", "100000").env("TRIPLANE_RDMA_SEEDS", "100000").run()
}

/// Every feature that no other step enables.
fn features() -> Outcome {
    let mut whole = Outcome::empty("features");
    for (name, feature) in [("triplane", "parquet"), ("xtask", "protos")] {
        whole.join(Step::cargo(&format!("feature {feature}"), &["check", "-p", name, "--features", feature]).run());
    }
    whole
}

/// Every fuzz target in turn; the first failure is the step's. They run with the dependencies that the tests were
/// compiled with: those of the `fuzz` profile would take minutes, for at most twice as many rounds.
fn fuzz(options: &CiOptions) -> Outcome {
    let (seed, seconds) = (options.fuzz_seed.to_string(), options.fuzz_seconds.to_string());
    let mut whole = Outcome::empty("fuzz");
    whole.join(Step::cargo("fuzz build", &["build", "--workspace", "--bin", "fuzz"]).run());
    if !whole.passed() {
        return whole;
    }
    for target in FUZZ_TARGETS {
        let arguments = [target, "--seed", &seed, "--seconds", &seconds];
        whole.join(Step::binary(&format!("fuzz {target}"), "fuzz", &arguments).run());
    }
    whole
}

/// One line a step.
fn table(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        let verdict = if outcome.passed() { "ok" } else { "FAILED" };
        let line =
            format!("{:<8} {:<6} {:>8}  {}", outcome.name, verdict, clock(outcome.time), outcome.notes.join("; "));
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<CiOptions> {
        CiOptions::parse(&arguments.iter().map(|text| text.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn steps_and_options_are_read() {
        let options = parse(&["fuzz", "--fuzz-seconds", "3", "fmt", "--fuzz-seed", "7"]).expect("good arguments");
        assert_eq!((options.fuzz_seconds, options.fuzz_seed), (3, 7));
        assert_eq!(options.steps, ["fuzz", "fmt"]);
        assert_eq!(parse(&[]).expect("no arguments").steps, STEPS);
    }

    #[test]
    fn a_wrong_step_is_refused_with_the_list() {
        let error = parse(&["tests"]).err().expect("there is no such step").to_string();
        assert_eq!(
            error,
            "there is no step `tests`; the steps are fmt, tidy, clippy, features, test, seeds, doc, build, demo, oracle, fuzz"
        );
        assert!(parse(&["--fuzz-seconds"]).is_err());
    }

    #[test]
    fn the_help_names_every_step_and_every_fuzz_target_exists() {
        for step in STEPS {
            assert!(HELP.contains(&format!("\n  {step} ")), "`{step}` is not in the help");
        }
        for target in FUZZ_TARGETS {
            let path = crate::root().join(format!("fuzz/src/targets/{target}.rs"));
            assert!(path.exists(), "{} is missing", path.display());
        }
    }
}
