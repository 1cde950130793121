//! Runs the chores of the project as `cargo xtask CHORE`: plain Rust instead of shell scripts, so that they work the
//! same on every machine that can build the project.
//!
//! Each chore is a module with a `HELP` text and a `run` function, and a line in [`CHORES`].

mod ci;
mod clients;
mod conformance;
mod interop_roce;
mod mininet;
mod oracle;
mod porcupine;
mod protos;
mod python;
mod reproduce;
mod step;
mod tidy;
mod tlc;
mod totals;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

/// A chore: its name, its purpose, its help, and its function, which gets the arguments after the name. `Ok(false)`
/// means that the chore ran and found something wrong; it has printed the reason.
struct Chore {
    name: &'static str,
    about: &'static str,
    help: &'static str,
    run: fn(&[String]) -> Result<bool>,
}

const CHORES: &[Chore] = &[
    Chore { name: "ci", about: "Run everything that CI runs.", help: ci::HELP, run: ci::run },
    Chore {
        name: "clients",
        about: "Run third-party P4Runtime clients against a switch.",
        help: clients::HELP,
        run: clients::run,
    },
    Chore {
        name: "conformance",
        about: "Check the project against the test data of p4lang/p4c.",
        help: conformance::HELP,
        run: conformance::run,
    },
    Chore {
        name: "interop-roce",
        about: "Check RoCEv2 against scapy and the soft RoCE of Linux.",
        help: interop_roce::HELP,
        run: interop_roce::run,
    },
    Chore {
        name: "mininet",
        about: "Run Triplane in place of BMv2 in networks of Mininet.",
        help: mininet::HELP,
        run: mininet::run,
    },
    Chore {
        name: "oracle",
        about: "Compare random programs on the reference evaluator and both executors.",
        help: oracle::HELP,
        run: oracle::run,
    },
    Chore {
        name: "porcupine",
        about: "Check histories of resilient state for linearizability with porcupine.",
        help: porcupine::HELP,
        run: porcupine::run,
    },
    Chore {
        name: "protos",
        about: "Generate code from the protobuf interface files.",
        help: protos::HELP,
        run: protos::run,
    },
    Chore {
        name: "reproduce",
        about: "Repeat the experiments of published papers.",
        help: reproduce::HELP,
        run: reproduce::run,
    },
    Chore { name: "tidy", about: "Check style rules.", help: tidy::HELP, run: tidy::run },
    Chore {
        name: "tlc",
        about: "Check the specification of the resilient protocol with TLC.",
        help: tlc::HELP,
        run: tlc::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (first, rest) = match arguments.split_first() {
        Some((first, rest)) => (first.as_str(), rest),
        None => ("--help", &[][..]),
    };
    if matches!(first, "--help" | "-h" | "help") {
        print!("{}", overview());
        return ExitCode::SUCCESS;
    }
    let Some(chore) = CHORES.iter().find(|chore| chore.name == first) else {
        eprintln!("error: unknown chore `{first}`\n\n{}", overview());
        return ExitCode::from(2);
    };
    if rest.iter().any(|argument| matches!(argument.as_str(), "--help" | "-h")) {
        print!("{}\n\n{}", chore.about, chore.help);
        return ExitCode::SUCCESS;
    }
    match (chore.run)(rest) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Returns the output of `cargo xtask --help`.
fn overview() -> String {
    let mut text = String::from("Chores of the Triplane project.\n\nUsage: cargo xtask CHORE [OPTIONS]\n\nChores:\n");
    for chore in CHORES {
        text += &format!("  {:<12} {}\n", chore.name, chore.about);
    }
    text + "\n`cargo xtask CHORE --help` describes one.\n"
}

/// The root of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/xtask is two levels deep")
}

/// Returns the directory of build outputs.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Reports a step that cannot be run. This is a failure only if `TRIPLANE_NO_SKIP` is `1`.
fn skip(why: &str) -> bool {
    let is_strict = std::env::var_os("TRIPLANE_NO_SKIP").is_some_and(|value| value == "1");
    println!("{}: {why}", if is_strict { "FAILED" } else { "skipped" });
    !is_strict
}
