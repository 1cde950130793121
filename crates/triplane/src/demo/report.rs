//! Renders the results of the demo as text and as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use ports::namespace::StreamTransfer;
use runtime::RunReport;
use serde_json::{Value, json};
use switch::{Frame, PortId, Time};
use v1model::Switch;
use wire::icmpv4;

use super::pings::Pings;
use super::recording::RecordedFrame;
use super::{ENTRIES_NAME, PROGRAM_NAME};
use crate::output::{Failure, Output};

/// The source of the packets that reach the router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Hosts in network namespaces.
    Live,
    /// Capture files, and the reason why they are used.
    Offline(String),
}

/// Maximum number of frames shown.
const SHOWN: usize = 8;

/// The results of a demo.
pub struct DemoReport {
    mode: Mode,
    pings: Pings,
    transfer: Option<StreamTransfer>,
    unrouted: u32,
    unrouted_dropped: u64,
    frames: Vec<String>,
    trace: Option<switch::trace::Trace>,
    summary: String,
    packets: u64,
    elapsed: Duration,
    /// Whether the router ran as machine code.
    compiled: bool,
}

impl DemoReport {
    /// Builds the report. `frames` are the frames that the ports recorded; the first ping among them is traced.
    pub fn new(
        mode: Mode,
        pings: Pings,
        transfer: Option<StreamTransfer>,
        unrouted: u32,
        frames: &[RecordedFrame],
        report: &RunReport<Switch>,
        output: &Output,
    ) -> Result<DemoReport, Failure> {
        let registry = report.switch.registry();
        let trace = match frames.iter().find(|frame| frame.inward && is_ping(&frame.data)) {
            Some(ping) => {
                let frame = Frame { port: PortId(ping.port), data: ping.data.clone() };
                Some(super::switch(output)?.trace(Time::ZERO, frame, &mut Vec::new()))
            }
            None => None,
        };
        Ok(DemoReport {
            mode,
            pings,
            transfer,
            unrouted,
            unrouted_dropped: registry.get("drop.ingress.program").unwrap_or(0),
            frames: frames.iter().take(SHOWN).map(line).collect(),
            trace,
            summary: crate::summary::text(report, &BTreeMap::new(), None),
            packets: [1, 2].iter().filter_map(|port| registry.get(&format!("port.{port}.rx.packets"))).sum(),
            elapsed: report.elapsed,
            compiled: report.switch.is_compiled(),
        })
    }

    /// Returns the first check that failed, as a sentence, or `None` if all passed.
    pub fn shortcoming(&self) -> Option<String> {
        let Pings { sent, received, .. } = self.pings;
        if received < sent {
            return Some(format!("{} of {sent} pings were not answered", sent - received));
        }
        if let Some(transfer) = &self.transfer
            && (!transfer.is_intact || transfer.bytes == 0)
        {
            return Some("the received TCP stream differs from the one sent".to_owned());
        }
        if self.unrouted_dropped < u64::from(self.unrouted) {
            return Some("packets without a route were not dropped by the router".to_owned());
        }
        None
    }

    /// Renders the report as text.
    pub fn render(&self, output: &Output) -> String {
        let heading = |text: &str| format!("\n{}\n\n", output.bold(text));
        let mut text = heading("A P4 router between two hosts").trim_start().to_owned();
        text += "  h1 10.0.1.1 ──── [1] router [2] ──── h2 10.0.2.2\n\n";
        text += &match &self.mode {
            Mode::Live => format!(
                "  The hosts are Linux namespaces with their own TCP/IP stacks, linked by veth pairs; no root was needed.\n  \
                 The router is {PROGRAM_NAME} with {ENTRIES_NAME}.\n"
            ),
            Mode::Offline(reason) => format!(
                "  The packets come from capture files: {reason}.\n  \
                 The router is {PROGRAM_NAME} with {ENTRIES_NAME}.\n"
            ),
        };
        text += &heading("Seen by the hosts");
        let Pings { sent, received, median, ttl } = &self.pings;
        text += &format!("  ping h1 -> h2      {received} of {sent} answered, TTL {ttl} on arrival");
        if !median.is_zero() {
            text += &format!(", median round trip {:.0} us", median.as_secs_f64() * 1e6);
        }
        text.push('\n');
        if let Some(transfer) = &self.transfer {
            let mib = transfer.bytes as f64 / f64::from(1 << 20);
            let rate = transfer.bytes as f64 * 8.0 / transfer.seconds.max(1e-9) / 1e6;
            let intact = if transfer.is_intact { "data intact" } else { "DATA CORRUPTED" };
            text += &format!(
                "  TCP  h1 -> h2      {mib:.1} MiB in {:.1} s, {rate:.0} Mbit/s, {intact}\n",
                transfer.seconds
            );
        }
        let (unrouted, dropped) = (self.unrouted, self.unrouted_dropped);
        text += &format!("  h1 -> 10.9.9.9     {unrouted} sent, no route: {dropped} dropped by the router\n");

        text += &heading("First packets at the router");
        for frame in &self.frames {
            text += &format!("  {frame}\n");
        }
        if let Some(trace) = &self.trace {
            text += &heading("Trace of the first ping (triplane trace)");
            for line in trace.render().lines() {
                text += &format!("  {line}\n");
            }
        }
        text += &heading("Counters of the router");
        for line in self.summary.lines() {
            text += &format!("  {line}\n");
        }
        let rate = self.packets as f64 / self.elapsed.as_secs_f64().max(1e-9);
        text += &format!("\n  {} packets in {:.1} s: {rate:.0} packets/s", self.packets, self.elapsed.as_secs_f64());
        let executor = if self.compiled { "machine code" } else { "the interpreter" };
        text += &match self.mode {
            Mode::Live => format!(" ({executor}, AF_PACKET ports, sharing the cores with the hosts)\n"),
            Mode::Offline(_) => format!(" ({executor}, from capture file to capture file)\n"),
        };
        text
    }

    /// Returns commands to try next, one per line.
    pub fn next() -> String {
        format!(
            "  triplane check {PROGRAM_NAME}\n  \
             triplane trace {PROGRAM_NAME} --entries {ENTRIES_NAME} --port 1 --packet HEX\n  \
             triplane run   {PROGRAM_NAME} --entries {ENTRIES_NAME} --port 1=eth1 --port 2=eth2\n"
        )
    }

    /// Returns the report as JSON.
    pub fn to_json(&self) -> Value {
        let (mode, reason) = match &self.mode {
            Mode::Live => ("live", None),
            Mode::Offline(reason) => ("offline", Some(reason)),
        };
        json!({
            "mode": mode,
            "reason": reason,
            "ping": {
                "sent": self.pings.sent, "received": self.pings.received, "ttl": self.pings.ttl,
                "median_us": self.pings.median.as_secs_f64() * 1e6,
            },
            "tcp": self.transfer.as_ref().map(|transfer| json!({
                "bytes": transfer.bytes, "seconds": transfer.seconds, "intact": transfer.is_intact,
            })),
            "unrouted": { "sent": self.unrouted, "dropped": self.unrouted_dropped },
            "frames": self.frames,
            "trace": self.trace.as_ref().map(switch::trace::Trace::to_json),
            "packets": self.packets,
            "seconds": self.elapsed.as_secs_f64(),
        })
    }
}

fn line(seen: &RecordedFrame) -> String {
    let direction = if seen.inward { "in " } else { "out" };
    format!("port {} {direction}  {}", seen.port, wire::describe(&seen.data))
}

/// Whether a frame is an ICMP echo request over IPv4.
fn is_ping(frame: &[u8]) -> bool {
    matches!(super::echo(frame), Some((icmpv4::Repr::EchoRequest { .. }, _)))
}
