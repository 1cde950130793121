//! Opens series of programs to hosts, and echoes those of others.

use std::time::Duration;

use ::privileges::KeptAccess;
use ::tpp::TinyProgram;
use anyhow::anyhow;
use tpp_host::{EchoCounts, EchoSocket, HostError, ProbeSeries, ProbeSocket};

use super::args::{EchoArgs, TargetArgs};
use crate::output::{Failure, Output, counted};
use crate::{privileges, signals};

/// Note on a program that came back as it was sent.
pub const NOT_EXECUTED: &str = "no switch executed the program: is it enabled (`triplane run --tpp N`, or tpp = \"read\" in a \
                                lab), and within its limit (count `tpp.limited`)?";

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
pub fn no_echo_failure(host: &str, is_refused: bool) -> Failure {
    let reason = if is_refused { "has no receiver of programs" } else { "did not echo a program" };
    Failure::Environment(anyhow!("{host} {reason}: run `triplane tpp echo` there"))
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
