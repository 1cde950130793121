//! One command of a chore: announced, run, timed.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A command that is to run.
pub struct Step {
    name: String,
    command: Command,
    shown: String,
}

/// How a step went.
pub struct Outcome {
    /// The step's name.
    pub name: String,
    /// How long it took.
    pub time: Duration,
    /// What there is to say about it: why it failed, totals.
    pub notes: Vec<String>,
    failed: bool,
}

impl Step {
    /// A cargo command, run in the root of the workspace.
    pub fn cargo(name: &str, arguments: &[&str]) -> Step {
        // Cargo tells the programs it runs which cargo it is; the same one is right for the steps.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(arguments).current_dir(crate::root()).stdin(Stdio::null());
        // What cargo told this program of its package: build scripts (ring's) that ask for it would run again for every change
        // between a step and the same command by hand, and all that depends on them would be compiled twice.
        let of_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_package)) {
            command.env_remove(name);
        }
        let shown = format!("cargo {}", arguments.join(" "));
        Step { name: name.to_owned(), command, shown }
    }

    /// The same with this in the environment.
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
    /// A step that did nothing yet.
    pub fn empty(name: &str) -> Outcome {
        Outcome { name: name.to_owned(), time: Duration::ZERO, notes: Vec::new(), failed: false }
    }

    /// Whether all of it went well.
    pub fn passed(&self) -> bool {
        !self.failed
    }

    /// It did not go well.
    pub fn fail(&mut self, why: String) {
        self.failed = true;
        self.notes.push(why);
    }

    /// Something to say in the table.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// Takes in a part of this step.
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
