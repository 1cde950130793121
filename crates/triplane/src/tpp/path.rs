//! Shows the path to a host: its switches, ports, queues and latencies.

use std::ops::ControlFlow;

use ::tpp::map::MemoryMap;
use ::tpp::probe::RefusedEchoes;
use ::tpp::{TinyProgram, assemble_large};
use diagnostics::{Diagnostics, SourceMap};
use serde_json::{Value, json};
use tpp_host::ProbeOutcome;
use wire::tpp::Status;

use super::args::{PingArgs, TraceArgs};
use super::execute::{PATHS_DIFFER, execute_once};
use super::probe::{NOT_EXECUTED, no_echo_failure, open};
use super::report::shown;
use crate::output::{Failure, Output, aligned, counted, duration};
use crate::signals;

/// A word that no switch wrote. Memory begins with it, as a statistic that a switch lacks leaves the word unchanged.
const ABSENT: u32 = u32::MAX;

/// What a switch on the path wrote; `None` if it does not have the statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hop {
    switch: Option<u32>,
    input: Option<u32>,
    output: Option<u32>,
    /// Packets in the queue.
    queue: Option<u32>,
    latency_ns: Option<u32>,
}

/// The switches on a path, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ObservedPath {
    hops: Vec<Hop>,
    /// Whether there are more switches than the program had memory for.
    is_cut: bool,
}

/// Returns the program that asks each switch of a path.
fn program(hops: u8) -> TinyProgram {
    let text = format!(
        ".hops {hops}
PUSH [Switch:ID]
PUSH [PacketMetadata:InputPort]
PUSH [PacketMetadata:OutputPort]
PUSH [Queue:QueueOccupancy]
PUSH [PacketMetadata:HopLatency]
"
    );
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let program = assemble_large(&mut sources, "path", &text, &MemoryMap::new(), &mut diagnostics);
    let mut program = program.expect("the program has no mistakes");
    program.memory.fill(ABSENT as u8);
    program
}

impl ObservedPath {
    fn of(program: &TinyProgram) -> ObservedPath {
        let hops = if program.repr.hop > 0 { program.words_by_hop(&MemoryMap::new()) } else { Vec::new() };
        let hop = |words: &Vec<(String, u32)>| {
            let word = |index: usize| words.get(index).map(|(_, value)| *value).filter(|value| *value != ABSENT);
            Hop { switch: word(0), input: word(1), output: word(2), queue: word(3), latency_ns: word(4) }
        };
        ObservedPath { hops: hops.iter().map(hop).collect(), is_cut: program.repr.status.contains(Status::FULL) }
    }

    fn table(&self) -> String {
        let header = ["hop", "switch", "in", "out", "queue", "latency"].map(str::to_owned);
        let rows = self.hops.iter().enumerate().map(|(at, hop)| {
            let latency = hop.latency_ns.map_or_else(|| "-".to_owned(), |ns| duration(ns.into()));
            [at.to_string(), shown(hop.switch), shown(hop.input), shown(hop.output), shown(hop.queue), latency]
        });
        aligned(&std::iter::once(header).chain(rows).collect::<Vec<_>>(), &[0, 1, 2, 3, 4, 5])
    }

    fn json(&self) -> Value {
        let hop = |hop: &Hop| {
            json!({ "switch": hop.switch, "input_port": hop.input, "output_port": hop.output, "queue": hop.queue,
                    "latency_ns": hop.latency_ns })
        };
        self.hops.iter().map(hop).collect()
    }

    /// Notes why a path may lack switches.
    fn note_gaps(&self, output: &Output) {
        if self.hops.is_empty() {
            output.note(NOT_EXECUTED);
        }
        if self.is_cut {
            output.note("the path has more switches than the program has memory for: --hops gives it more");
        }
    }
}

/// Prints the switches on the path to a host.
pub fn trace(args: &TraceArgs, output: &Output) -> Result<(), Failure> {
    let executed = execute_once(&args.target, &program(args.hops))?;
    let path = ObservedPath::of(&executed.program);
    if args.target.json {
        let found =
            json!({ "host": args.target.host, "rtt_ns": executed.rtt_ns, "is_cut": path.is_cut, "hops": path.json() });
        return output.print(&format!("{found:#}\n"));
    }
    path.note_gaps(output);
    if executed.paths_differ {
        output.note(PATHS_DIFFER);
    }
    let switches = counted(path.hops.len(), "switch", "switches");
    let mut text = format!("{}: {switches}, round trip {}\n", args.target.host, duration(executed.rtt_ns));
    if !path.hops.is_empty() {
        text += &path.table();
    }
    output.print(&text)
}

/// Sends programs to a host and prints the queues on the path.
pub fn ping(args: &PingArgs, output: &Output) -> Result<(), Failure> {
    let stop = signals::stop_on_signals()?;
    let count = if args.count == 0 { u64::MAX } else { args.count };
    let mut probes = open(&args.target, program(args.hops), count, args.interval)?;
    let (mut echoes, mut has_noted) = (Vec::new(), false);
    probes.run::<Failure>(&stop, |outcome| {
        match outcome {
            ProbeOutcome::Lost(sequence) if args.target.json => {
                output.print(&format!("{}\n", json!({ "sequence": sequence, "is_lost": true })))?;
            }
            ProbeOutcome::Lost(sequence) => output.print(&format!("{sequence}: no echo\n"))?,
            ProbeOutcome::Echoed(echo) => {
                let path = ObservedPath::of(&echo.program);
                if !std::mem::replace(&mut has_noted, true) {
                    path.note_gaps(output);
                }
                echoes.push(echo.rtt_ns);
                output.print(&line(args, echo.sequence, echo.rtt_ns, &path))?;
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if echoes.is_empty() {
        // Without a program sent, Ctrl-C came first.
        return if probes.sent() > 0 { Err(no_echo_failure(&args.target.host, probes.is_refused())) } else { Ok(()) };
    }
    if args.target.json {
        return Ok(());
    }
    echoes.sort_unstable();
    let at = |share: usize| duration(echoes[(echoes.len() - 1) * share / 2]);
    let (sent, came) = (probes.sent(), echoes.len());
    let RefusedEchoes { damaged, unmatched, altered } = probes.refused();
    let others = match damaged + unmatched + altered {
        0 => String::new(),
        _ => format!("; not echoes: {damaged} damaged, {unmatched} unmatched, {altered} altered"),
    };
    output.print(&format!(
        "\n{came} of {sent} came back; round trips {} to {}, median {}{others}\n",
        at(0),
        at(2),
        at(1)
    ))
}

/// Formats a program that came back: the queues in the order of the switches.
fn line(args: &PingArgs, sequence: u64, rtt_ns: u64, path: &ObservedPath) -> String {
    if args.target.json {
        return format!("{}\n", json!({ "sequence": sequence, "rtt_ns": rtt_ns, "hops": path.json() }));
    }
    let queues: Vec<String> =
        path.hops.iter().map(|hop| format!("s{} {}", shown(hop.switch), shown(hop.queue))).collect();
    let queues = if queues.is_empty() { "no switch".to_owned() } else { format!("queues: {}", queues.join(", ")) };
    format!("{sequence}: {}, {queues}\n", duration(rtt_ns))
}

#[cfg(test)]
mod tests {
    use ::tpp::{AccessRights, SparseMemory, Tcpu};

    use super::*;

    fn observed(hops: u8, switches: u64) -> ObservedPath {
        let mut bytes = program(hops).packet(&[]);
        for switch in 1..=switches {
            let mut memory = SparseMemory::new();
            let words = [("Switch:ID", switch), ("PacketMetadata:InputPort", 1), ("PacketMetadata:OutputPort", 2)];
            for (name, value) in words {
                memory.fixed(MemoryMap::new().find(name).expect("it exists").address, value);
            }
            Tcpu::execute(&mut bytes, &mut memory, &AccessRights::read_only());
        }
        ObservedPath::of(&TinyProgram::decode(&wire::tpp::Packet::new_checked(&bytes).expect("a program")))
    }

    #[test]
    fn what_a_switch_lacks_is_absent() {
        let path = observed(10, 2);
        let expected = "\
hop  switch  in  out  queue  latency
  0       1   1    2      -        -
  1       2   1    2      -        -
";
        assert_eq!((path.table().as_str(), path.is_cut), (expected, false));
        assert_eq!(path.json()[1]["switch"], 2);
        assert_eq!(path.json()[1]["queue"], Value::Null);
    }

    #[test]
    fn a_path_without_switches_and_one_that_is_too_long_are_seen() {
        assert_eq!(observed(3, 0), ObservedPath { hops: Vec::new(), is_cut: false });
        let path = observed(3, 4);
        assert_eq!((path.hops.len(), path.is_cut), (3, true));
    }

    #[test]
    fn the_longest_path_fits_into_a_program() {
        assert_eq!(observed(super::super::args::MAX_HOPS as u8, 23).hops.len(), 23);
    }
}
