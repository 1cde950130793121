//! Runs one command of a chore: announces and times it.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Number of lines that are kept of the errors of a step.
const KEPT_LINES: usize = 25;

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
    /// The last lines on the standard error of a step that failed, unless that is a terminal.
    pub last_lines: Vec<String>,
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

    /// Another chore of this program. Going through cargo would build this package alone, with fewer features of the
    /// dependencies, and so compile the code generator once more.
    ///
    /// # Panics
    /// If the path of this program is unknown.
    pub fn chore(name: &str, arguments: &[&str]) -> Step {
        let mut command = Command::new(std::env::current_exe().expect("the path of this program"));
        command.args(arguments).current_dir(crate::root()).stdin(Stdio::null());
        Step { name: name.to_owned(), command, shown: format!("cargo xtask {}", arguments.join(" ")) }
    }

    /// A program of the workspace that was built beside this one.
    ///
    /// # Panics
    /// If the path of this program is unknown.
    pub fn binary(name: &str, program: &str, arguments: &[&str]) -> Step {
        let path = std::env::current_exe().expect("the path of this program").with_file_name(program);
        let mut command = Command::new(&path);
        command.args(arguments).current_dir(crate::root()).stdin(Stdio::null());
        Step { name: name.to_owned(), command, shown: format!("{} {}", path.display(), arguments.join(" ")) }
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
        let is_piped = self.pipe_errors();
        let result = self.command.spawn().and_then(|mut child| {
            let last_lines = if is_piped { copy_errors(child.stderr.take()) } else { Vec::new() };
            Ok((child.wait()?, last_lines))
        });
        self.finish(started, result)
    }

    /// Runs it; its standard output goes where ours goes, and line by line to `reader`.
    pub fn run_reading(mut self, mut reader: impl FnMut(&str)) -> Outcome {
        let started = self.announce();
        self.pipe_errors();
        let result = self.command.stdout(Stdio::piped()).spawn().and_then(|mut child| {
            let stderr = child.stderr.take();
            let errors = std::thread::spawn(move || copy_errors(stderr));
            let mut stdout = BufReader::new(child.stdout.take().expect("standard output is piped"));
            let mut line = Vec::new();
            // Whole lines, whatever bytes they hold: tests may print anything.
            while stdout.read_until(b'\n', &mut line)? > 0 {
                std::io::stdout().write_all(&line)?;
                reader(&String::from_utf8_lossy(&line));
                line.clear();
            }
            let last_lines = errors.join().expect("copying lines does not panic");
            Ok((child.wait()?, last_lines))
        });
        self.finish(started, result)
    }

    /// Runs it without an announcement, and returns its standard output. It inherits standard error.
    ///
    /// # Errors
    /// If it cannot be run, or fails.
    pub fn output(mut self) -> anyhow::Result<String> {
        let output = self.command.stderr(Stdio::inherit()).output();
        match output.map_err(|error| anyhow::anyhow!("cannot run `{}`: {error}", self.shown))? {
            output if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            output => Err(anyhow::anyhow!("`{}`: {}", self.shown, output.status)),
        }
    }

    /// Reads the command's standard error, unless ours is a terminal, which shows progress and colours. True if read.
    fn pipe_errors(&mut self) -> bool {
        let is_piped = !std::io::stderr().is_terminal();
        if is_piped {
            self.command.stderr(Stdio::piped());
        }
        is_piped
    }

    fn announce(&self) -> Instant {
        println!("\n=== {}: {}", self.name, self.shown);
        let _ = std::io::stdout().flush();
        Instant::now()
    }

    fn finish(self, started: Instant, result: std::io::Result<(ExitStatus, Vec<String>)>) -> Outcome {
        let mut outcome = Outcome::empty(&self.name);
        outcome.time = started.elapsed();
        match result {
            Ok((status, _)) if status.success() => {}
            Ok((status, last_lines)) => {
                outcome.fail(format!("`{}`: {status}", self.shown));
                outcome.last_lines = last_lines;
            }
            Err(error) => outcome.fail(format!("cannot run `{}`: {error}", self.shown)),
        }
        let verdict = if outcome.failed { "FAILED after" } else { "ok," };
        println!("=== {}: {verdict} {}", self.name, clock(outcome.time));
        outcome
    }
}

/// Copies lines to our standard error until the end of the input. Returns the last [`KEPT_LINES`].
fn copy_errors(input: Option<impl Read>) -> Vec<String> {
    let Some(input) = input else { return Vec::new() };
    let mut input = BufReader::new(input);
    let (mut line, mut kept) = (Vec::new(), VecDeque::with_capacity(KEPT_LINES + 1));
    // A read error ends the copy; the status of the command says whether it succeeded.
    while input.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        let _ = std::io::stderr().write_all(&line);
        kept.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
        if kept.len() > KEPT_LINES {
            kept.pop_front();
        }
        line.clear();
    }
    kept.into()
}

impl Outcome {
    /// The outcome of a step that has done nothing yet.
    pub fn empty(name: &str) -> Outcome {
        Outcome {
            name: name.to_owned(),
            time: Duration::ZERO,
            notes: Vec::new(),
            last_lines: Vec::new(),
            failed: false,
        }
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
        self.last_lines.extend(part.last_lines);
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
    fn the_last_lines_of_errors_are_kept() {
        let text: String = (0..60).map(|number| format!("line {number}\n")).collect();
        let kept = copy_errors(Some(text.as_bytes()));
        assert_eq!(kept.len(), KEPT_LINES);
        assert_eq!((kept[0].as_str(), kept[KEPT_LINES - 1].as_str()), ("line 35", "line 59"));
        assert!(copy_errors(None::<&[u8]>).is_empty());
    }

    #[test]
    fn a_failing_part_fails_the_whole_and_says_why() {
        let mut whole = Outcome::empty("fuzz");
        whole.join(Outcome::empty("fuzz ir"));
        assert!(whole.passed());
        let mut part = Outcome::empty("fuzz p4");
        part.fail("a panic".to_owned());
        part.last_lines.push("thread panicked".to_owned());
        whole.join(part);
        whole.join(Outcome::empty("fuzz pcap"));
        assert!(!whole.passed());
        assert_eq!(whole.notes, ["a panic"]);
        assert_eq!(whole.last_lines, ["thread panicked"]);
    }
}
