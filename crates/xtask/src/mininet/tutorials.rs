//! Runs the exercises of a checkout of the P4 tutorials, with their own Makefile and `run_exercise.py`.
//!
//! A copy of the checkout is changed, never the checkout: each exercise's solution replaces its starter code. The
//! commands of the exercise go to Mininet's command line by standard input. What its hosts printed is in files below
//! `logs/`, which are searched for what shows that the exercise works.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::environment::Environment;
use super::exercises::{EXERCISES, Exercise, Expectation};

/// Maximum duration of an exercise, in seconds.
const LIMIT_S: u64 = 240;

/// The result of an exercise.
struct Outcome {
    name: &'static str,
    seconds: f64,
    /// Each check with its outcome.
    checks: Vec<(&'static str, bool)>,
}

/// Runs exercises and prints a table. Returns false if a check failed.
pub fn run(environment: &Environment, checkout: &Path, names: &[String]) -> Result<bool> {
    if !checkout.join("utils/run_exercise.py").is_file() {
        bail!("{} is not a checkout of the P4 tutorials: it has no utils/run_exercise.py", checkout.display());
    }
    let unknown = names.iter().find(|name| !EXERCISES.iter().any(|exercise| exercise.name == **name));
    if let Some(name) = unknown {
        let all: Vec<_> = EXERCISES.iter().map(|exercise| exercise.name).collect();
        bail!("there is no exercise `{name}`; the exercises are {}", all.join(", "));
    }
    let copy = environment.work.join("tutorials");
    let _ = fs::remove_dir_all(&copy);
    for part in ["utils", "exercises"] {
        copy_directory(&checkout.join(part), &copy.join(part))?;
    }
    let mut outcomes = Vec::new();
    for exercise in EXERCISES.iter().filter(|it| names.is_empty() || names.iter().any(|name| it.name == name)) {
        println!("=== {}", exercise.name);
        outcomes.push(run_exercise(environment, &copy, exercise)?);
    }
    Ok(report(&outcomes))
}

fn run_exercise(environment: &Environment, copy: &Path, exercise: &'static Exercise) -> Result<Outcome> {
    let folder = copy.join("exercises").join(exercise.folder);
    for (from, to) in exercise.solution {
        let from = folder.join(from);
        fs::copy(&from, folder.join(to)).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    let log = folder.join("mininet.log");
    let output = fs::File::create(&log).with_context(|| format!("cannot create {}", log.display()))?;
    let begun = Instant::now();
    // Whatever an exercise leaves behind ends with its namespaces.
    let mut child = Command::new("timeout")
        .args(["--signal=KILL", &LIMIT_S.to_string()])
        .args(["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--"])
        .args(["sh", "-c", "ip link set lo up && exec make run"])
        .current_dir(&folder)
        .env("PATH", environment.path())
        .env("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")
        .stdin(Stdio::piped())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .context("make")?;
    if let Some(mut stdin) = child.stdin.take() {
        // The exercise may have ended already; its log says why.
        let _ = stdin.write_all((exercise.commands.join("\n") + "\nexit\n").as_bytes());
    }
    let status = child.wait()?;
    let mut checks = vec![("make run", status.success())];
    for (what, file, expectation) in exercise.checks {
        let path = if file.is_empty() { log.clone() } else { folder.join("logs").join(file) };
        let text = String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        checks.push((*what, expectation.holds(&text)));
    }
    for (what, holds) in &checks {
        println!("{} {what}", if *holds { "ok    " } else { "FAILED" });
    }
    if checks.iter().any(|(_, holds)| !holds) {
        println!("see {}", folder.display());
    }
    Ok(Outcome { name: exercise.name, seconds: begun.elapsed().as_secs_f64(), checks })
}

impl Expectation {
    /// Whether a text is as expected.
    fn holds(&self, text: &str) -> bool {
        match self {
            Expectation::Has(part) => text.contains(part),
            Expectation::HasAll(parts) => parts.iter().all(|part| text.contains(part)),
            Expectation::HasAny(parts) => parts.iter().any(|part| text.contains(part)),
            Expectation::Lacks(part) => !text.is_empty() && !text.contains(part),
            Expectation::NumberAbove { before, least } => text.split(before).skip(1).any(|rest| {
                let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
                rest[..end].parse::<f64>().is_ok_and(|number| number > *least)
            }),
        }
    }
}

fn report(outcomes: &[Outcome]) -> bool {
    println!("\n{:<16} {:>8} {:>8}", "exercise", "checks", "seconds");
    let (mut passed, mut failed) = (0, 0);
    for Outcome { name, seconds, checks } in outcomes {
        let good = checks.iter().filter(|(_, holds)| *holds).count();
        passed += good;
        failed += checks.len() - good;
        println!("{name:<16} {:>8} {seconds:>8.0}", format!("{good}/{}", checks.len()));
    }
    println!("\n{passed} passed, {failed} failed");
    failed == 0 && passed > 0
}

/// Copies a directory with its files and links.
fn copy_directory(from: &Path, to: &PathBuf) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_directory(&path, &target)?;
        } else if entry.file_type()?.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&path)?, &target)?;
        } else {
            fs::copy(&path, &target).with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_distinguish_texts() {
        let text = "Port 4: 0 Mbps\nPort 4: 3.5 Mbps\n";
        assert!(Expectation::Has("Port 4").holds(text) && !Expectation::Has("Port 5").holds(text));
        assert!(Expectation::HasAll(&["4", "3.5"]).holds(text) && !Expectation::HasAll(&["4", "5."]).holds(""));
        assert!(Expectation::HasAny(&["x", "3.5"]).holds(text) && !Expectation::HasAny(&["x", "y"]).holds(text));
        assert!(Expectation::Lacks("x").holds(text) && !Expectation::Lacks("Port").holds(text));
        assert!(!Expectation::Lacks("x").holds(""), "nothing was written at all");
        let above = |least| Expectation::NumberAbove { before: "Port 4: ", least };
        assert!(above(3.0).holds(text) && !above(3.5).holds(text));
    }
}
