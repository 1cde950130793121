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

/// Returns the failure of a host that did not answer.
pub fn no_echo_failure(probes: &ProbeSocket, host: &str) -> Failure {
    let reason = if probes.is_refused() { "has no receiver of programs" } else { "did not echo a program" };
    Failure::Environment(anyhow!("{host} {reason}: run `triplane tpp echo` there"))
}

/// Sends a program until it comes back, at most [`TRIES`] times. Returns its echo.
pub fn first_echo(target: &TargetArgs, program: TinyProgram) -> Result<Echo, Failure> {
    let stop = signals::stop_on_signals()?;
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
    found.ok_or_else(|| no_echo_failure(&probes, &target.host))
}

/// Sends a program and prints what the switches wrote.
pub fn run_program(args: &ProbeArgs, output: &Output) -> Result<(), Failure> {
    let map = memory_map(&args.program, output)?;
    let source = read_program(&args.file, &map, output)?;
    output.diagnostics(&source.sources, &source.diagnostics);
    let echo = first_echo(&args.target, source.program)?;
    if args.target.json {
        let mut found = report::program_json(&echo.program, &map);
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
    let mut text = format!("{hops}, round trip {}{status}\n", duration(echo.rtt_ns));
    text += &report::words(&echo.program, &map, "");
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
