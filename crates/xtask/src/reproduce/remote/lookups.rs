//! Figure 3.9: time and rate of lookups with one server.

use anyhow::Result;

use super::super::Settings;
use super::super::app_lab::LabCommand;
use super::super::figure::{Cell, Chart, FigureClock, PaperFigure};
use super::super::percentiles::SortedValues;
use super::super::trace::TracePacket;
use super::function::NetworkFunction;
use super::lab::{FLOWS, LINK_BPS, LINK_DELAY_NS, RemoteLab, SERVICE_NS, TablePlace};
use super::{LIGHT_MPPS, millions, network, trace, us};

/// Sizes of packets in bytes, without Ethernet header.
const SIZES: [usize; 5] = [64, 256, 512, 1024, 1500];

/// More packets than a server answers.
const OVERLOAD_MPPS: f64 = 20.0;

/// Bytes of a READ: 8 cells of 72 bytes.
const READ_BYTES: u64 = 576;

/// Bytes of the frame that requests a READ, and of the headers of its answer.
const REQUEST_BYTES: u64 = 74;
const ANSWER_BYTES: u64 = 62;

/// Returns the time of a lookup without queues: both frames, both ways, and the server.
fn closed_form_ns() -> u64 {
    let frame_ns = |bytes: u64| (bytes as f64 * 8e9 / LINK_BPS).ceil() as u64;
    frame_ns(REQUEST_BYTES) + frame_ns(ANSWER_BYTES + READ_BYTES) + 2 * LINK_DELAY_NS + SERVICE_NS
}

/// Returns the packets with this size; in order, if so asked, each of the next flow.
fn sized(packets: &[TracePacket], size: usize, is_sequential: bool) -> Vec<TracePacket> {
    let flow = |packet: &TracePacket| if is_sequential { packet.number % FLOWS as u32 } else { packet.flow };
    packets.iter().map(|packet| TracePacket { size: size.max(64), flow: flow(packet), ..*packet }).collect()
}

/// Figure 3.9.
pub fn single_server(command: &LabCommand, settings: &Settings) -> Result<PaperFigure> {
    let (light, heavy) = (trace(settings, LIGHT_MPPS, 0.0), trace(settings, OVERLOAD_MPPS, 0.0));
    let place = TablePlace::Servers { servers: 1, cache: 0 };
    let lab = RemoteLab { name: "lookups", function: NetworkFunction::Nat, place, others: None, faults: "" };
    let (mut rows, mut line) = (Vec::new(), Vec::new());
    for size in SIZES {
        let times: SortedValues = lab.run(command, &sized(&light, size, false))?.times_ns().collect();
        let rate = |is_sequential| lab.run(command, &sized(&heavy, size, is_sequential))?.rate();
        let [random, sequential] = [rate(false)?, rate(true)?];
        line.push((size as f64, times.percentile(0.5).unwrap_or(0) as f64 / 1e3));
        rows.push(vec![
            Cell::whole(size as i64),
            us(&times, 0.1),
            us(&times, 0.5),
            us(&times, 0.9),
            us(&times, 1.0),
            Cell::Number(closed_form_ns() as f64 / 1e3, 3),
            millions(random),
            millions(sequential),
        ]);
    }
    Ok(PaperFigure {
        name: "3.9",
        title: "Lookups with one server",
        clock: FigureClock::Simulated,
        columns: vec![
            "packet, bytes",
            "p10, us",
            "p50, us",
            "p90, us",
            "max, us",
            "closed form, us",
            "random, M/s",
            "sequential, M/s",
        ],
        rows,
        notes: vec![
            network(),
            format!(
                "NAT without cache. Times at {LIGHT_MPPS} Mpps, rates with {OVERLOAD_MPPS:.0} Mpps offered. A READ has \
                 {READ_BYTES} bytes; the link has room for {:.2} M answers/s. Packets wait in the switch, so their size \
                 does not matter.",
                LINK_BPS / 8e6 / (ANSWER_BYTES + READ_BYTES) as f64
            ),
        ],
        chart: Chart::Lines { x: "packet, bytes", y: "time of a lookup, us", lines: vec![("p50".to_owned(), line)] },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_takes_the_papers_time() {
        assert_eq!(closed_form_ns(), 15 + 128 + 2 * 780 + 92);
    }

    #[test]
    fn sequential_packets_are_of_one_flow_each() {
        let packet = TracePacket { number: 7, time_ns: 0, flow: 3, before: 0, size: 64, random: 0 };
        assert_eq!([false, true].map(|is_sequential| sized(&[packet], 1500, is_sequential)[0].flow), [3, 7]);
    }
}
