//! Puts a shim between this host's stack and an interface.

mod outcome;
mod reporter;
mod rules;
mod sums;

use std::hash::{BuildHasher, RandomState};

use ::privileges::KeptAccess;
use ::tpp::map::MemoryMap;
use ::tpp::shim::{CollectedProgram, PacketFlow, WordSums};
use anyhow::Context;
use ports::{HiddenFrames, InterposedPorts, PortError, RouteCounts};
use serde_json::{Value, json};
use tpp_host::{ProgramQueue, RoutesThread, ShimRelay};

use super::args::ShimArgs;
use super::{memory_map, report};
use crate::output::{Failure, Output, counted};
use crate::{privileges, signals};
use outcome::ShimOutcome;
pub use reporter::ShimReporter;
pub use rules::{ShimRules, read_policy};

/// Maximum number of programs that wait to be printed: about 2 MiB. Further ones are counted.
const WAITING: usize = 4096;

/// Runs the shim until Ctrl-C.
pub fn run(args: &ShimArgs, output: &Output) -> Result<(), Failure> {
    let map = memory_map(&args.program, output)?;
    let rules = ShimRules::read(args, &map, output)?;
    let OpenRelay { mut relay, mtu, routes, hidden, thread } = open_relay(&args.wire, &args.device, &rules)?;
    privileges::restrict(&KeptAccess::default(), args.show_privileges, output)?;
    if args.show_privileges {
        output.note("the thread that follows the routes of the interface keeps cap_net_admin");
    }
    let stop = signals::stop_on_signals()?;
    let mut programs = ProgramSink { map: map.clone(), sums: WordSums::default(), lines: None };
    if args.lines {
        let printer = LinePrinter { map, output: *output, json: args.json };
        // The thread starts without privileges.
        let lines = ProgramQueue::start(WAITING, move |collected| printer.print(&collected));
        programs.lines = Some(lines.context("cannot start a thread")?);
    }
    if routes.left > 0 {
        let count = counted(routes.left, "route", "routes");
        output.note(&format!("{count} of {} cannot be copied: their packets get no program", args.wire));
    }
    output.note(&format!(
        "the IPv4 packets of {} pass through {} ({}, MTU {mtu}); press Ctrl-C to stop",
        args.wire,
        args.device,
        counted(routes.copied, "route", "routes"),
    ));
    let ended = relay.run(&stop, |program| programs.add(program));
    // The host's packets leave through the interface again, before anything waits for a reader of the output.
    drop(hidden);
    let (shim, counts) = relay.close();
    drop(thread);
    let lines = programs.lines.map(ProgramQueue::end);
    let unprinted = lines.map(|end| end.unconsumed);
    let outcome = ShimOutcome { rules: &rules, shim: &shim, counts, sums: &programs.sums, unprinted };
    let text = if args.json { outcome.json() } else { outcome.text() };
    if lines.is_some_and(|end| !end.is_finished) {
        // The thread holds standard output, and may do so forever.
        output.note(&format!("nobody has read the output for a while; the sums follow here\n{text}"));
        return Ok(ended?);
    }
    let printed = output.print(&text);
    // An interface that disappeared is reported even if nobody reads the sums.
    ended?;
    printed
}

/// A relay whose ports are open.
pub struct OpenRelay {
    pub relay: ShimRelay,
    /// MTU of the device, in bytes.
    mtu: usize,
    routes: RouteCounts,
    hidden: HiddenFrames,
    /// Keeps the routes of the device equal to those of the interface. It has CAP_NET_ADMIN.
    thread: RoutesThread,
}

/// Opens the ports of a shim. Fails if no packet could get a program.
pub fn open_relay(wire: &str, device: &str, rules: &ShimRules) -> Result<OpenRelay, Failure> {
    let InterposedPorts { host, wire, frames, mtu, routes, follower, hidden } = open(wire, device, rules.room)?;
    let shim = rules.shim(mtu + rules.room)?;
    let seed = RandomState::new().hash_one(std::process::id());
    let relay = ShimRelay::new(Box::new(host), Box::new(wire), frames, shim, seed);
    let thread = RoutesThread::start(follower, || Ok::<_, anyhow::Error>(::privileges::restrict_route_follower()?))?;
    Ok(OpenRelay { relay, mtu, routes, hidden, thread })
}

fn open(wire: &str, device: &str, room: usize) -> Result<InterposedPorts, Failure> {
    let opened = match InterposedPorts::open(wire, device, room) {
        Err(error @ PortError::NameTaken { .. }) => {
            return Err(Failure::Environment(anyhow::anyhow!("{error} with `--device NAME`")));
        }
        opened => opened?,
    };
    if room > 0 && opened.routes.copied == 0 {
        return Err(Failure::Environment(anyhow::anyhow!(
            "no packet would get a program: the main table has no IPv4 route of {wire} that can be copied (`ip route show \
             dev {wire}`); add one, or use only --collect"
        )));
    }
    Ok(opened)
}

/// Receives the programs that the relay collects. Nothing in it waits.
struct ProgramSink {
    map: MemoryMap,
    sums: WordSums,
    lines: Option<ProgramQueue>,
}

impl ProgramSink {
    fn add(&mut self, program: CollectedProgram) {
        self.sums.add(&program, &self.map);
        if let Some(lines) = &mut self.lines {
            lines.push(program);
        }
    }
}

/// Prints programs.
struct LinePrinter {
    map: MemoryMap,
    output: Output,
    json: bool,
}

impl LinePrinter {
    /// Prints a program. Returns false if nobody reads the output any more.
    fn print(&self, collected: &CollectedProgram) -> bool {
        self.output.print(&self.line(collected)).is_ok()
    }

    fn line(&self, collected: &CollectedProgram) -> String {
        let program = collected.program();
        let words = report::ProgramWords::of_marked(&program, &self.map);
        let flow = collected.flow.map_or_else(String::new, |flow| flow_text(&flow));
        if self.json {
            let mut object = report::program_json(&program, &self.map, words);
            object["flow"] = collected.flow.map_or(Value::Null, |flow| flow_json(&flow));
            return format!("{object}\n");
        }
        format!("{flow}, application {}\n{}", program.repr.application, report::words(&words, "  "))
    }
}

fn flow_text(flow: &PacketFlow) -> String {
    match flow.ports {
        Some((source, destination)) => format!(
            "{} port {source} to {} port {destination}, protocol {}",
            flow.source, flow.destination, flow.protocol
        ),
        None => format!("{} to {}, protocol {}", flow.source, flow.destination, flow.protocol),
    }
}

fn flow_json(flow: &PacketFlow) -> Value {
    json!({
        "source": flow.source,
        "destination": flow.destination,
        "protocol": flow.protocol,
        "source_port": flow.ports.map(|ports| ports.0),
        "destination_port": flow.ports.map(|ports| ports.1),
    })
}

#[cfg(test)]
mod tests {
    use ::tpp::{AccessRights, SparseMemory, Tcpu, assemble};
    use diagnostics::{Diagnostics, SourceMap};
    use tpp_host::QueueEnd;

    use super::*;

    /// Returns the bytes of a program after switches with these numbers executed it.
    pub fn executed(text: &str, switches: &[u64]) -> Vec<u8> {
        let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let map = MemoryMap::new();
        let program = assemble(&mut sources, "test", text, &map, &mut diagnostics).expect("it has no mistakes");
        let mut bytes = program.packet(&[]);
        for switch in switches {
            let mut memory = SparseMemory::new();
            memory.fixed(map.find("Switch:ID").expect("it exists").address, *switch);
            Tcpu::execute(&mut bytes, &mut memory, &AccessRights::all());
        }
        bytes
    }

    #[test]
    fn an_ended_reader_costs_lines_and_not_sums() {
        let lines = ProgramQueue::start(3, |_| false).expect("there is a thread");
        let mut sink = ProgramSink { map: MemoryMap::new(), sums: WordSums::default(), lines: Some(lines) };
        (0..20).for_each(|_| {
            sink.add(CollectedProgram { flow: None, bytes: executed("PUSH [Switch:ID]", &[5, 6]) });
        });
        let lines = sink.lines.expect("it prints lines");
        assert_eq!(lines.end(), QueueEnd { is_finished: true, unconsumed: 20 });
        let programs: Vec<_> = sums::json(&sink.sums).iter().map(|word| word["programs"].clone()).collect();
        assert_eq!(programs, [20, 20]);
    }
}
