//! Puts a shim between this host's stack and an interface.

mod rules;
mod sums;

use std::hash::{BuildHasher, RandomState};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use ::privileges::KeptAccess;
use ::tpp::map::MemoryMap;
use ::tpp::shim::{CollectedProgram, PacketFlow};
use anyhow::Context;
use ports::{InterposedPorts, is_interposed};
use serde_json::{Value, json};
use tpp_host::ShimRelay;

use super::args::ShimArgs;
use super::{memory_map, report};
use crate::output::{Failure, Output, aligned, counted, grouped};
use crate::{privileges, signals};
use rules::ShimRules;
use sums::WordSums;

/// Maximum number of programs that wait to be added up and printed: about 2 MiB. Further ones are counted.
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
    let (sender, receiver) = sync_channel(WAITING);
    let printer = ProgramPrinter { map, output: *output, is_each_printed: args.lines, json: args.json };
    // The thread starts without privileges.
    let collector = thread::Builder::new().name("collector".to_owned());
    let collector = collector.spawn(move || printer.collect(&receiver)).context("cannot start a thread")?;
    output.note(&format!(
        "the IPv4 packets of {} pass through {} ({}, MTU {mtu}); press Ctrl-C to stop",
        args.wire,
        args.device,
        counted(routes, "route", "routes"),
    ));
    let ended = relay.run(&stop, &sender);
    // The host's packets leave through the interface again, before anything waits for a reader of the output.
    drop(hidden);
    let (shim, counts) = relay.close();
    drop(sender);
    let sums = collector.join().unwrap_or_default();
    let text = if args.json {
        let report = json!({
            "rules": rules.json(&shim),
            "received": received_json(&shim),
            "to_wire": counts.to_wire,
            "to_host": counts.to_host,
            "lost": counts.lost,
            "unread": counts.unread,
            "words": sums.json(),
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
            ["programs not added up".to_owned(), grouped(counts.unread)],
        ]);
        sums.text() + &aligned(&rows, &[1])
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

/// Adds up and prints the programs that the relay collects, in a thread of its own.
struct ProgramPrinter {
    map: MemoryMap,
    output: Output,
    is_each_printed: bool,
    json: bool,
}

impl ProgramPrinter {
    /// Returns the sums when the relay has ended.
    fn collect(self, programs: &Receiver<CollectedProgram>) -> WordSums {
        let mut sums = WordSums::default();
        let mut is_read = true;
        for collected in programs {
            sums.add(&collected, &self.map);
            // If nobody reads the lines any more, the sums are still right.
            if self.is_each_printed && is_read {
                is_read = self.output.print(&self.line(&collected)).is_ok();
            }
        }
        sums
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
