//! One command of a chore: announced, run, timed.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A command to run.
pub struct Step {
    name: String,
    command: Command,
    shown: String,
}

/// The outcome of a step.
pub struct Outcome {
    /// The step's name.
    pub name: String,
    /// The time that the step took.
    pub time: Duration,
    /// Notes for the table: the reason of a failure, totals.
    pub notes: Vec<String>,
    failed: bool,
}

impl Step {
    /// A cargo command, run in the root of the workspace.
    pub fn cargo(name: &str, arguments: &[&str]) -> Step {
        // Cargo sets `CARGO` to its own path for the programs that it runs; the steps use the same cargo.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(arguments).current_dir(crate::root()).stdin(Stdio::null());
        // Cargo sets variables about this program's package. Build scripts (ring's) that depend on them would run again
        // for every change between a step and the same command by hand, and all that depends on those scripts would be
        // compiled twice.
        let of_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_package)) {
            command.env_remove(name);
        }
        let shown = format!("cargo {}", arguments.join(" "));
        Step { name: name.to_owned(), command, shown }
    }

    /// Adds a variable to the step's environment.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Step {
        self.shown = format!("{name}={:?} {}", value.as_ref(), self.shown);
        self.command.env(name, value);
        self
    }

    /// Runs it; its output goes where ours goes.
    pub fn run(mut self) -> Outcome {
        let started = self.announce();
        let result = self.command.status();
        self.finish(started, result)
    }

    /// Runs it; its standard output goes where ours goes, and line by line to `reader`.
    pub fn run_reading(mut self, mut reader: impl FnMut(&str)) -> Outcome {
        let started = self.announce();
        let result = self.command.stdout(Stdio::piped()).spawn().and_then(|mut child| {
            let mut stdout = BufReader::new(child.stdout.take().expect("standard output is piped"));
            let mut line = Vec::new();
            // Whole lines, whatever bytes they hold: tests may print anything.
            while stdout.read_until(b'\n', &mut line)? > 0 {
                std::io::stdout().write_all(&line)?;
                reader(&String::from_utf8_lossy(&line));
                line.clear();
            }
            child.wait()
        });
        self.finish(started, result)
    }

    fn announce(&self) -> Instant {
        println!("\n=== {}: {}", self.name, self.shown);
        let _ = std::io::stdout().flush();
        Instant::now()
    }

    fn finish(self, started: Instant, result: std::io::Result<ExitStatus>) -> Outcome {
        let mut outcome = Outcome::empty(&self.name);
        outcome.time = started.elapsed();
        match result {
            Ok(status) if status.success() => {}
            Ok(status) => outcome.fail(format!("`{}`: {status}", self.shown)),
            Err(error) => outcome.fail(format!("`{}` did not run: {error}", self.shown)),
        }
        let verdict = if outcome.failed { "FAILED after" } else { "ok," };
        println!("=== {}: {verdict} {}", self.name, clock(outcome.time));
        outcome
    }
}

impl Outcome {
    /// The outcome of a step that has done nothing yet.
    pub fn empty(name: &str) -> Outcome {
        Outcome { name: name.to_owned(), time: Duration::ZERO, notes: Vec::new(), failed: false }
    }

    /// Whether all parts succeeded.
    pub fn passed(&self) -> bool {
        !self.failed
    }

    /// Marks the step as failed.
    pub fn fail(&mut self, why: String) {
        self.failed = true;
        self.notes.push(why);
    }

    /// Adds a note to the table.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// Adds the outcome of a part of this step.
    pub fn join(&mut self, part: Outcome) {
        self.time += part.time;
        self.notes.extend(part.notes);
        self.failed |= part.failed;
    }
}

/// `1:05.3` for minutes, seconds and tenths.
pub fn clock(time: Duration) -> String {
    let tenths = time.as_millis() / 100;
    format!("{}:{:02}.{}", tenths / 600, tenths / 10 % 60, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_minutes_seconds_and_tenths() {
        assert_eq!(clock(Duration::from_millis(65_399)), "1:05.3");
        assert_eq!(clock(Duration::from_millis(99)), "0:00.0");
    }

    #[test]
    fn a_failing_part_fails_the_whole_and_says_why() {
        let mut whole = Outcome::empty("fuzz");
        whole.join(Outcome::empty("fuzz ir"));
        assert!(whole.passed());
        let mut part = Outcome::empty("fuzz p4");
        part.fail("a panic".to_owned());
        whole.join(part);
        whole.join(Outcome::empty("fuzz pcap"));
        assert!(!whole.passed());
        assert_eq!(whole.notes, ["a panic"]);
    }
}
