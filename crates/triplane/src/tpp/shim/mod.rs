//! Puts a shim between this host's stack and an interface.

mod rules;
mod sums;

use std::hash::{BuildHasher, RandomState};

use ::privileges::KeptAccess;
use ::tpp::map::MemoryMap;
use ::tpp::shim::{CollectedProgram, PacketFlow, WordSums};
use anyhow::Context;
use ports::{InterposedPorts, is_interposed};
use serde_json::{Value, json};
use tpp_host::{ProgramQueue, ShimRelay};

use super::args::ShimArgs;
use super::{memory_map, report};
use crate::output::{Failure, Output, aligned, counted, grouped};
use crate::{privileges, signals};
use rules::ShimRules;

/// Maximum number of programs that wait to be printed: about 2 MiB. Further ones are counted.
const WAITING: usize = 4096;

/// Runs the shim until Ctrl-C.
pub fn run(args: &ShimArgs, output: &Output) -> Result<(), Failure> {
    let map = memory_map(&args.program, output)?;
    let rules = ShimRules::read(args, &map, output)?;
    let InterposedPorts { host, wire, mtu, routes, hidden } =
        InterposedPorts::open(&args.wire, &args.device, rules.room)?;
    let shim = rules.shim(mtu + rules.room)?;
    let seed = RandomState::new().hash_one(std::process::id());
    let mut relay = ShimRelay::new(Box::new(host), Box::new(wire), is_interposed, shim, seed);
    privileges::restrict(&KeptAccess::default(), args.show_privileges, output)?;
    let stop = signals::stop_on_signals()?;
    let mut programs = ProgramSink { map: map.clone(), sums: WordSums::default(), lines: None };
    if args.lines {
        let printer = LinePrinter { map, output: *output, json: args.json };
        // The thread starts without privileges.
        let lines = ProgramQueue::start(WAITING, move |collected| printer.print(&collected));
        programs.lines = Some(lines.context("cannot start a thread")?);
    }
    output.note(&format!(
        "the IPv4 packets of {} pass through {} ({}, MTU {mtu}); press Ctrl-C to stop",
        args.wire,
        args.device,
        counted(routes, "route", "routes"),
    ));
    let ended = relay.run(&stop, |program| programs.add(program));
    // The host's packets leave through the interface again, before anything waits for a reader of the output.
    drop(hidden);
    let (shim, counts) = relay.close();
    let ProgramSink { sums, lines, .. } = programs;
    let unprinted = lines.as_ref().map_or(0, ProgramQueue::refused);
    if lines.is_some_and(|lines| !lines.end()) {
        output.note("nobody reads the output any more: the sums are not printed");
        return Ok(ended?);
    }
    let text = if args.json {
        let report = json!({
            "rules": rules.json(&shim),
            "received": received_json(&shim),
            "to_wire": counts.to_wire,
            "to_host": counts.to_host,
            "lost": counts.lost,
            "unprinted": unprinted,
            "not_executed": sums.not_executed,
            "words": sums::json(&sums),
        });
        if args.lines { format!("{report}\n") } else { format!("{report:#}\n") }
    } else {
        let receipts = shim.receipt_counts();
        let mut rows = rules.rows(&shim);
        rows.extend([
            ["programs collected".to_owned(), grouped(receipts.collected)],
            ["of other hosts".to_owned(), grouped(receipts.foreign)],
            ["damaged or malformed".to_owned(), grouped(receipts.damaged + receipts.malformed)],
            ["frames to the wire".to_owned(), grouped(counts.to_wire)],
            ["frames to the host".to_owned(), grouped(counts.to_host)],
            ["frames lost at a port".to_owned(), grouped(counts.lost)],
        ]);
        if args.lines {
            rows.push(["programs not printed".to_owned(), grouped(unprinted)]);
        }
        sums::text(&sums) + &aligned(&rows, &[1])
    };
    output.print(&text)?;
    Ok(ended?)
}

fn received_json(shim: &::tpp::shim::Shim) -> Value {
    let counts = shim.receipt_counts();
    json!({
        "collected": counts.collected,
        "foreign": counts.foreign,
        "damaged": counts.damaged,
        "malformed": counts.malformed,
    })
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
        // One was consumed, and three may have waited.
        assert!((16..=19).contains(&lines.refused()), "{}", lines.refused());
        assert!(lines.end());
        let programs: Vec<_> = sums::json(&sink.sums).iter().map(|word| word["programs"].clone()).collect();
        assert_eq!(programs, [20, 20]);
    }
}
