//! Sends programs to hosts and prints their echoes, and echoes those of others.

use std::ops::ControlFlow;
use std::time::Duration;

use ::privileges::KeptAccess;
use ::tpp::TinyProgram;
use ::tpp::probe::Echo;
use anyhow::anyhow;
use tpp_host::{EchoCounts, EchoSocket, HostError, ProbeOutcome, ProbeSeries, ProbeSocket};
use wire::tpp::Status;

use super::args::{EchoArgs, ProbeArgs, TargetArgs};
use super::{memory_map, read_program, report};
use crate::output::{Failure, Output, counted, duration};
use crate::{privileges, signals};

/// Note on a program that came back as it was sent.
pub const NOT_EXECUTED: &str = "no switch executed the program: is it enabled (`triplane run --tpp N`, or tpp = \"read\" in a \
                                lab), and within its limit (count `tpp.limited`)?";

/// Number of times that a single program is sent until an echo comes.
const TRIES: u64 = 3;

impl From<HostError> for Failure {
    fn from(error: HostError) -> Failure {
        Failure::Environment(error.into())
    }
}

/// Opens a socket that sends a program to a host.
pub fn open(target: &TargetArgs, program: TinyProgram, count: u64, interval: f64) -> Result<ProbeSocket, Failure> {
    let [interval, timeout] = [interval, target.timeout].map(Duration::from_secs_f64);
    Ok(ProbeSocket::open(&target.host, ProbeSeries { program, count, interval, timeout })?)
}

/// Returns the failure of a host, or of all switches before it if the program is to be reflected, that did not answer.
pub fn no_echo_failure(probes: &ProbeSocket, host: &str, is_reflective: bool) -> Failure {
    if is_reflective {
        return Failure::Environment(anyhow!("no switch on the way to {host} reflected the program, or it was lost"));
    }
    let reason = if probes.is_refused() { "has no receiver of programs" } else { "did not echo a program" };
    Failure::Environment(anyhow!("{host} {reason}: run `triplane tpp echo` there"))
}

/// Sends a program until it comes back, at most [`TRIES`] times. Returns its echo.
pub fn first_echo(target: &TargetArgs, program: TinyProgram) -> Result<Echo, Failure> {
    let stop = signals::stop_on_signals()?;
    let is_reflective = program.repr.is_reflective;
    let mut probes = open(target, program, TRIES, target.timeout)?;
    let mut found = None;
    probes.run::<Failure>(&stop, |outcome| {
        Ok(match outcome {
            ProbeOutcome::Echoed(echo) => {
                found = Some(echo);
                ControlFlow::Break(())
            }
            ProbeOutcome::Lost(_) => ControlFlow::Continue(()),
        })
    })?;
    found.ok_or_else(|| no_echo_failure(&probes, &target.host, is_reflective))
}

/// Sends a program and prints what the switches wrote.
pub fn run_program(args: &ProbeArgs, output: &Output) -> Result<(), Failure> {
    let map = memory_map(&args.program, output)?;
    let source = read_program(&args.file, &map, output)?;
    output.diagnostics(&source.sources, &source.diagnostics);
    let mut program = source.program;
    program.mark_absent();
    let echo = first_echo(&args.target, program)?;
    let words = report::ProgramWords::of_marked(&echo.program, &map);
    if args.target.json {
        let mut found = report::program_json(&echo.program, &map, words);
        found["rtt_ns"] = echo.rtt_ns.into();
        return output.print(&format!("{found:#}\n"));
    }
    let repr = &echo.program.repr;
    let hops = counted(usize::try_from(repr.hop).unwrap_or(0), "switch", "switches");
    // Every echo is done.
    let status = match Status(repr.status.0 & !Status::DONE.0).to_string() {
        none if none.is_empty() => none,
        status => format!(", status {status}"),
    };
    if repr.hop < 0 {
        let left = counted(usize::from(repr.hop.unsigned_abs()), "more switch", "more switches");
        output.note(&format!("the program waits for {left}"));
    } else if repr.hop == 0 {
        output.note(NOT_EXECUTED);
    }
    let mut text = format!("{hops}, round trip {}{status}\n", duration(echo.rtt_ns));
    if repr.hop <= 0 {
        return output.print(&text);
    }
    text += &report::words(&words, "");
    output.print(&text)
}

/// Echoes programs until Ctrl-C.
pub fn echo(args: &EchoArgs, output: &Output) -> Result<(), Failure> {
    let socket = EchoSocket::open(args.address)?;
    privileges::restrict(&KeptAccess::default(), false, output)?;
    let stop = signals::stop_on_signals()?;
    output.note(&format!("echoing programs that arrive at {}; press Ctrl-C to stop", socket.address()));
    let EchoCounts { echoed, ignored } = socket.serve(&stop)?;
    output.print(&format!(
        "{} echoed, {} ignored\n",
        counted(echoed as usize, "program", "programs"),
        counted(ignored as usize, "datagram", "datagrams")
    ))
}
