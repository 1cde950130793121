//! Runs `cargo xtask porcupine`: an independent checker of the histories of the simulator of resilient state.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use resilient::Mutant;
use resilient::history::{Verdict, check};
use resilient::simulation::{RowHistory, RowProgram, history_line, simulate_histories};

/// The output of `cargo xtask porcupine --help` below the first line.
pub const HELP: &str = "\
Usage: cargo xtask porcupine [--seeds N]
       cargo xtask porcupine --dump [--seeds N]

Simulates N seeds of switches and stores under faults, with and without errors in the protocol, and gives the history
of each row to porcupine, a checker of linearizability in Go. Its verdicts must be those of our own checker.
Histories of the shipped protocol must be linearizable, up to a tenth that may be undecided, and each error must break
some within 200 seeds. With --dump, prints the histories of the shipped protocol as lines of JSON instead;
crates/resilient/src/simulation/dump.rs describes them.

Needs Go 1.21 or newer, and the first time the network.

Options:
  --seeds N   Number of seeds [default: 100]

Environment:
  TRIPLANE_NO_SKIP=1   Fail instead of skipping if Go or the module is missing. Set in CI.
";

/// Number of seeds that are judged at a time for an error, until one breaks a history.
const ERROR_SEEDS: u64 = 10;

/// Maximum number of seeds for an error. The rarest, `TailSkipped`, breaks a history in less than 1 of 30 seeds.
const MAX_ERROR_SEEDS: u64 = 200;

/// Errors that show themselves in the order of outputs.
const ERRORS: [Mutant; 4] =
    [Mutant::ReadNotWaiting, Mutant::GrantedToAnybody, Mutant::AckedUnapplied, Mutant::TailSkipped];

/// Maximum number of states that our own search visits.
const MAX_STATES: usize = 200_000;

struct JudgeOptions {
    seeds: u64,
    dumps: bool,
}

impl JudgeOptions {
    fn parse(arguments: &[String]) -> Result<JudgeOptions> {
        let mut options = JudgeOptions { seeds: 100, dumps: false };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--dump" => options.dumps = true,
                "--seeds" => {
                    let value = rest.next().context("--seeds requires a number")?;
                    options.seeds =
                        value.parse().with_context(|| format!("--seeds requires a number, not `{value}`"))?;
                }
                _ => bail!("there is no option `{argument}`; see `cargo xtask porcupine --help`"),
            }
        }
        Ok(options)
    }
}

/// Checks the histories. Returns false if the checkers differ, or a history is wrong.
pub fn run(arguments: &[String]) -> Result<bool> {
    let options = JudgeOptions::parse(arguments)?;
    let shipped: Vec<String> = (0..options.seeds).flat_map(|seed| lines(seed, None)).collect();
    if options.dumps {
        // A reader that stops early closes the pipe.
        let _ = std::io::stdout().write_all((shipped.join("\n") + "\n").as_bytes());
        return Ok(true);
    }
    let judge = match build() {
        Ok(judge) => judge,
        Err(error) => return Ok(crate::skip(&format!("porcupine: {error:#}"))),
    };
    println!("shipped protocol, {} seeds:", options.seeds);
    let good = ask(&judge, &shipped)?;
    ensure!(good.linearizable > 0, "no history was judged");
    let mut is_good = good.violations == 0 && good.undecided * 10 <= good.linearizable && good.differ == 0;
    for error in ERRORS {
        let mut is_found = false;
        for first in (0..MAX_ERROR_SEEDS).step_by(ERROR_SEEDS as usize) {
            let end = first + ERROR_SEEDS;
            println!("protocol with the error {error:?}, seeds {first} to {}:", end - 1);
            let histories: Vec<String> = (first..end).flat_map(|seed| lines(seed, Some(error))).collect();
            let bad = ask(&judge, &histories)?;
            is_good &= bad.differ == 0;
            is_found = bad.violations > 0;
            if is_found {
                break;
            }
        }
        is_good &= is_found;
    }
    Ok(is_good)
}

/// Returns the histories of a seed as lines of JSON, with our own verdicts.
fn lines(seed: u64, mutant: Option<Mutant>) -> Vec<String> {
    let (_, histories) = simulate_histories(seed, mutant);
    let line = |(row, history): (u32, &RowHistory)| history_line(seed, row, our_verdict(history), history);
    (0..).zip(&histories).map(line).collect()
}

fn our_verdict(history: &RowHistory) -> &'static str {
    match check(&RowProgram { has_removals: true }, history, MAX_STATES) {
        Verdict::Linearizable => "linearizable",
        Verdict::Violation => "violation",
        Verdict::Undecided => "undecided",
    }
}

/// Numbers of verdicts.
#[derive(Debug, Default, PartialEq, Eq)]
struct JudgedHistories {
    linearizable: u64,
    violations: u64,
    undecided: u64,
    differ: u64,
}

impl JudgedHistories {
    /// Reads the last line of the checker.
    fn parse(line: &str) -> Option<JudgedHistories> {
        let numbers: Vec<u64> = line.split(", ").filter_map(|part| part.split_once(' ')?.0.parse().ok()).collect();
        let [linearizable, violations, undecided, differ] = numbers[..] else { return None };
        Some(JudgedHistories { linearizable, violations, undecided, differ })
    }
}

fn ask(judge: &Path, lines: &[String]) -> Result<JudgedHistories> {
    let mut judge = Command::new(judge).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("the judge")?;
    let mut input = judge.stdin.take().context("the judge has no input")?;
    let text = lines.join("\n");
    // It reads while it checks, and prints little.
    input.write_all(text.as_bytes()).context("the judge does not read")?;
    drop(input);
    let output = judge.wait_with_output().context("the judge")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    print!("{printed}");
    printed.lines().last().and_then(JudgedHistories::parse).context("the judge has ended without a result")
}

/// Builds the checker.
fn build() -> Result<PathBuf> {
    let target = crate::target();
    let binary = std::path::absolute(target.join("porcupine/judge")).context("no path for the judge")?;
    let mut go = Command::new("go");
    // It may fetch modules, but no other Go toolchain.
    go.current_dir(crate::root().join("crates/xtask/porcupine")).env("GOTOOLCHAIN", "local");
    let output = go.args(["build", "-buildvcs=false", "-o"]).arg(&binary).arg(".").output();
    let output = output.context("cannot run `go`; install Go 1.21 or newer")?;
    ensure!(output.status.success(), "`go` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(binary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_has_four_numbers() {
        let judged = JudgedHistories { linearizable: 3, violations: 2, undecided: 1, differ: 0 };
        assert_eq!(JudgedHistories::parse("3 linearizable, 2 violations, 1 undecided, 0 different"), Some(judged));
        assert_eq!(JudgedHistories::parse("error: no"), None);
    }

    #[test]
    fn histories_of_a_seed_are_lines_with_a_verdict() {
        let lines = lines(1, None);
        assert!(!lines.is_empty());
        assert!(
            lines.iter().all(|line| line.starts_with("{\"seed\":1,") && line.contains("\"verdict\":\"linearizable\""))
        );
    }
}
