//! Runs `cargo xtask mininet`: networks of Mininet whose switches and compiler are Triplane, under the names of BMv2's
//! tools.

mod environment;
mod exercises;
mod network;
mod tutorials;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use environment::Environment;

/// The output of `cargo xtask mininet --help` below the first line.
pub const HELP: &str = "\
Usage: cargo xtask mininet [OPTIONS]
       cargo xtask mininet --tutorials DIR [EXERCISE...]

Makes links to `triplane` with `triplane shims`, puts them in front of PATH, and runs a network of Mininet in a network
namespace of its own. The switches are started with the command line that the public P4 tutorials use for BMv2, programs
are compiled with p4c-bm2-ss and p4c, and entries are written over P4Runtime. Prints one line per check, then totals.

With --tutorials, runs the solutions of the exercises in a checkout of the P4 tutorials instead, each with its own
Makefile and run_exercise.py on a copy of the checkout, and prints a table. Without EXERCISEs, all run.

Needs root, Python 3 with `venv`, the Debian package `mininet` (and for the tutorials `make`, `sudo`, `iperf`, `ethtool`
and `net-tools`), and PyPI the first time; without them it is skipped, and says so.

Options:
  --tutorials DIR   The checkout of the P4 tutorials
  --triplane FILE   The command to test [default: target/release/triplane]

Environment:
  TRIPLANE_NO_SKIP=1   Fail instead of skipping. Set in CI.
";

/// Internal flag: this process has been re-executed inside the namespace.
const INSIDE: &str = "--inside";
/// Exit code of the process inside if the namespace is of no use.
const NO_NAMESPACE: i32 = 3;

/// Runs a network, or the tutorials. Returns false if any check failed.
pub fn run(arguments: &[String]) -> Result<bool> {
    let target = crate::target();
    let mut triplane = target.join("release/triplane");
    let (mut inside, mut tutorials, mut exercises) = (false, None, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            INSIDE => inside = true,
            "--triplane" => triplane = rest.next().context("--triplane requires a file")?.into(),
            "--tutorials" => tutorials = Some(PathBuf::from(rest.next().context("--tutorials requires a directory")?)),
            name if name.starts_with('-') => bail!("unknown option `{name}`"),
            name => exercises.push(name.to_owned()),
        }
    }
    if !exercises.is_empty() && tutorials.is_none() {
        bail!("exercises are run with --tutorials DIR");
    }
    let triplane = triplane.canonicalize().with_context(|| {
        format!("{} is missing: run `cargo build --release` first, or use --triplane", triplane.display())
    })?;
    let work = target.join("mininet");
    std::fs::create_dir_all(&work).with_context(|| format!("cannot create {}", work.display()))?;
    let work = work.canonicalize()?;
    if inside {
        let environment = Environment::existing(&work)?;
        // Mininet's switches stay in this namespace, and their servers listen here.
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
        if !up.is_ok_and(|status| status.success()) {
            std::process::exit(NO_NAMESPACE);
        }
        return match tutorials {
            Some(checkout) => tutorials::run(&environment, &checkout, &exercises),
            None => network::run(&environment),
        };
    }
    if let Err(error) = Environment::create(&work, &triplane) {
        return skip(&format!("{error:#}"));
    }
    let mut command = Command::new("unshare");
    command.args(["--net", "--"]).arg(std::env::current_exe().context("cannot find the path of this executable")?);
    command.args(["mininet", INSIDE, "--triplane"]).arg(&triplane);
    if let Some(checkout) = &tutorials {
        command.arg("--tutorials").arg(checkout);
    }
    match command.args(&exercises).status() {
        Ok(status) => match status.code() {
            Some(0) => Ok(true),
            Some(NO_NAMESPACE) => skip("cannot create a network namespace; run as root"),
            _ => Ok(false),
        },
        Err(error) => skip(&format!("cannot run `unshare`: {error}")),
    }
}

/// Reports that nothing can be run. This is a failure only if `TRIPLANE_NO_SKIP` is `1`.
fn skip(why: &str) -> Result<bool> {
    let is_good = crate::skip(why);
    println!("0 passed, {} failed", usize::from(!is_good));
    Ok(is_good)
}
