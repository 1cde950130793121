//! Fuzzers for every parser of untrusted input: programs, IR, entries files, captures, packets, controllers' calls,
//! rules of packet subscriptions, RDMA, and tiny packet programs.
//!
//! They run on a stable compiler, from a seed: the same seed and number of rounds give the same inputs. A supervisor
//! ([`supervise`]) runs rounds in a child process, so that a stack overflow, an endless loop or an exhausted memory is
//! a finding, as a panic is. The child ([`worker`]) makes inputs from a corpus by mutation, keeps those that reached
//! something new, and leaves the input of the current round in a file for the supervisor. A failing input is minimized
//! ([`shrink`]) and written to `fuzz/artifacts`, with the command that runs it again.
//!
//! An input that once failed belongs in `fuzz/regressions/TARGET`: every run begins with those.

mod corpus;
mod mutate;
mod program;
mod random;
mod round_clock;
mod shrink;
mod supervise;
mod targets;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};

const HELP: &str = "\
Fuzzes what reads programs, IR, entries files, captures, packets, controllers' calls, rules of subscriptions and
tiny packet programs.

Usage: cargo run --profile fuzz -p fuzz -- TARGET [OPTIONS]

Targets:
  frontend   P4 text, mutated and generated, through the parser, the checker, the compiler and the IR's validator
  ir         IR text, mutated, through its reader, validator and printer
  packets    random entries and packets through the switch, with every program there is and with generated ones
  entries    mutated entries files against the router
  pcap       mutated capture files
  p4runtime  calls of controllers, made up and mutated, against the server with a switch behind it
  rules      rule files of packet subscriptions, mutated: tables hold against what the rules say
  rdma       frames of RoCEv2, mutated, against a requester and a responder
  tpp        tiny packet programs, as bytes and as text: two processors agree, text round-trips; the shim; nodes of INT
  executor   requests that execute programs, over networks that lose and damage packets: each ends once, in time

Options:
  --seed N        Where the random numbers begin [default: from the clock; printed at the end]
  --seconds S     Stop after so long [default: 30]
  --rounds N      Stop after so many inputs instead
  --replay FILE   Run this one input, and show what it does
  --shrink FILE   Make this failing input smaller
  --print         Print one generated input, from --seed

A failure is made small, written to fuzz/artifacts/, and shown with the command that replays it; the exit code is 1.
";

/// The parsed command line.
pub struct FuzzOptions {
    /// One of [`targets::NAMES`].
    pub target: String,
    /// Seed of the random number generator.
    pub seed: u64,
    /// Condition on which the run stops.
    pub until: Until,
    /// Mode of operation.
    pub mode: Mode,
}

/// A condition on which a run stops.
#[derive(Clone, Copy)]
pub enum Until {
    /// After this time.
    Elapsed(Duration),
    /// After this number of inputs.
    Rounds(u64),
}

/// A mode of operation.
pub enum Mode {
    /// Run rounds in a child process, and supervise it.
    Supervise,
    /// Act as the child: the input of each round is written to this file first.
    Work(PathBuf),
    /// Run one input.
    Replay(PathBuf),
    /// Make one failing input smaller.
    Shrink(PathBuf),
    /// Print one input.
    Print,
}

impl FuzzOptions {
    fn parse(arguments: impl Iterator<Item = String>) -> Result<FuzzOptions> {
        let seed = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
        let until = Until::Elapsed(Duration::from_secs(30));
        let mut options = FuzzOptions { target: String::new(), seed, until, mode: Mode::Supervise };
        let mut rest = arguments;
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{argument} needs a value"));
            let number = |text: String| text.parse::<u64>().with_context(|| format!("`{text}` is not a number"));
            match argument.as_str() {
                "--seed" => options.seed = number(value()?)?,
                "--seconds" => options.until = Until::Elapsed(Duration::from_secs(number(value()?)?)),
                "--rounds" => options.until = Until::Rounds(number(value()?)?),
                "--replay" => options.mode = Mode::Replay(value()?.into()),
                "--shrink" => options.mode = Mode::Shrink(value()?.into()),
                "--work" => options.mode = Mode::Work(value()?.into()),
                "--print" => options.mode = Mode::Print,
                name if options.target.is_empty() && !name.starts_with('-') => options.target = name.to_owned(),
                other => bail!("`{other}` is not understood; --help tells what is"),
            }
        }
        if !targets::NAMES.contains(&options.target.as_str()) {
            bail!("`{}` is not a target; the targets are {}", options.target, targets::NAMES.join(", "));
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    jit::verify_code();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.is_empty() || arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let options = match FuzzOptions::parse(arguments.into_iter()) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::from(2);
        }
    };
    let result = match &options.mode {
        Mode::Supervise => supervise::run(&options),
        Mode::Work(current) => worker::run(&options, current),
        Mode::Replay(file) => worker::replay(&options, file),
        Mode::Shrink(file) => shrink::run(&options, file),
        Mode::Print => worker::print(&options),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(3)
        }
    }
}
