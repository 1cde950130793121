//! Figure 5.17: bytes that wait in the switch for the stores.

use std::collections::BTreeMap;

use anyhow::Result;

use super::Settings;
use super::app_lab::{AppLab, LabCommand, PassedFrame};
use super::application::Application;
use super::figure::{Cell, Chart, FigureClock, PaperFigure};
use super::latency::{DELAY_NS, FLOWS, paper_lab};
use super::trace::{FrameSizes, TracePacket, TraceShape};

/// Bytes of a counter that is not acknowledged. Only the newest value of a row is kept.
const VALUE_BYTES: i64 = 4;

/// Time after which a request is sent again. A trace with losses must be several times longer.
const RETRANSMISSION_NS: u64 = 10_000_000;

/// Occupancy of the buffer, maximum and mean.
#[derive(Debug, Default, PartialEq)]
struct Occupancy {
    most_bytes: i64,
    mean_bytes: f64,
    most_frames: i64,
    most_value_bytes: i64,
    /// Maximum time of a frame in the switch.
    longest_ns: u64,
}

/// Returns the bytes that wait in the switch over time: a frame from its arrival until it leaves, and the value of its
/// flow.
fn occupancy(packets: &[TracePacket], frames: &[Option<PassedFrame>]) -> Occupancy {
    let mut changes: Vec<(u64, i64, i64, u32)> = Vec::new();
    let mut result = Occupancy::default();
    for (packet, frame) in packets.iter().zip(frames) {
        let Some(frame) = frame.filter(|frame| frame.left_ns > frame.came_ns) else { continue };
        // The first packet of a flow waits for its row; that is no buffer of a request.
        if packet.before == 0 {
            continue;
        }
        changes.push((frame.came_ns, frame.size as i64, 1, packet.flow));
        changes.push((frame.left_ns, -(frame.size as i64), -1, packet.flow));
        result.longest_ns = result.longest_ns.max(frame.left_ns - frame.came_ns);
    }
    changes.sort_unstable();
    let (mut bytes, mut waiting, mut before, mut area) = (0, 0, 0, 0.0);
    let mut flows: BTreeMap<u32, i64> = BTreeMap::new();
    for (at, size, count, flow) in &changes {
        area += bytes as f64 * (at - before) as f64;
        (bytes, waiting, before) = (bytes + size, waiting + count, *at);
        let of_flow = flows.entry(*flow).or_default();
        *of_flow += count;
        if *of_flow == 0 {
            flows.remove(flow);
        }
        result.most_bytes = result.most_bytes.max(bytes);
        result.most_frames = result.most_frames.max(waiting);
        result.most_value_bytes = result.most_value_bytes.max(flows.len() as i64 * VALUE_BYTES);
    }
    if let (Some(first), Some(last)) = (changes.first(), changes.last()) {
        result.mean_bytes = area / (last.0 - first.0).max(1) as f64;
    }
    result
}

/// Figure 5.17.
pub fn figure(command: &LabCommand, settings: &Settings) -> Result<PaperFigure> {
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for loss in [0.0, 0.005, 0.01, 0.02] {
        let mut points = Vec::new();
        for gbps in [1.0, 5.0, 10.0, 50.0, 100.0] {
            let shape = TraceShape {
                packets: settings.packets,
                flows: FLOWS,
                zipf: 0.0,
                sizes: FrameSizes::Mixed,
                rate_bps: gbps * 1e9,
                seed: 517,
            };
            let packets = shape.packets();
            let lasts_ns = packets.last().map_or(0, |packet| packet.time_ns);
            if loss > 0.0 && lasts_ns < 5 * RETRANSMISSION_NS {
                continue;
            }
            let lab = AppLab { loss, ..paper_lab("held", Application::FlowCounter, 3) };
            let results = lab.run(command, &packets)?;
            let waits = occupancy(&packets, &results.frames);
            rows.push(vec![
                Cell::Number(gbps, 0),
                Cell::Number(loss * 100.0, 1),
                papers(gbps, loss),
                Cell::Number(waits.most_bytes as f64 / 1e3, 1),
                Cell::Number(waits.mean_bytes / 1e3, 1),
                Cell::whole(waits.most_frames),
                Cell::Number(waits.most_value_bytes as f64 / 1e3, 1),
                Cell::Number(waits.longest_ns as f64 / 1e3, 0),
                Cell::whole(results.frames.iter().filter(|frame| frame.is_none()).count()),
            ]);
            points.push((gbps, waits.most_bytes as f64 / 1e3));
        }
        lines.push((format!("{} % lost", loss * 100.0), points));
    }
    Ok(PaperFigure {
        name: "5.17",
        title: "Bytes that wait in the switch",
        clock: FigureClock::Simulated,
        columns: vec![
            "offered, Gbit/s",
            "lost, %",
            "paper, KB",
            "waiting frames, most, KB",
            "mean, KB",
            "most frames",
            "unacknowledged values, KB",
            "longest wait, us",
            "frames not passed",
        ],
        rows,
        notes: vec![format!(
            "Sync-Counter, {} packets of {FLOWS} equal flows, frames of 64 to 1,514 bytes; every packet writes, to a chain \
             of 3 behind links of 100 Gbit/s and {DELAY_NS} ns. Frames are lost at random on the link to the stores, each \
             way. First packets of flows, which wait for their rows, are left out. A lost request is sent again after {} ms; \
             rates at which the trace ends before five times that are left out (use more --packets).",
            settings.packets,
            RETRANSMISSION_NS / 1_000_000
        )],
        chart: Chart::Lines { x: "offered rate, Gbit/s", y: "most bytes that wait, KB", lines },
    })
}

/// Returns the paper's occupancy in KB.
fn papers(gbps: f64, loss: f64) -> Cell {
    match (gbps as u32, (loss * 1000.0) as u32) {
        (100, 0) => "< 1.5".into(),
        (100, 20) => "18".into(),
        _ => "".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_wait_from_arrival_to_departure() {
        let packet = |flow, before| TracePacket { number: 0, time_ns: 0, flow, before, size: 100, random: 0 };
        let passed = |came_ns, left_ns| Some(PassedFrame { came_ns, left_ns, size: 100 });
        let packets = [packet(1, 0), packet(1, 1), packet(1, 2), packet(2, 1), packet(2, 2)];
        let frames = [passed(0, 900), passed(100, 200), passed(150, 200), passed(150, 300), None];
        let expected = Occupancy {
            most_bytes: 300,
            mean_bytes: (50.0 * 100.0 + 50.0 * 300.0 + 100.0 * 100.0) / 200.0,
            most_frames: 3,
            most_value_bytes: 8,
            longest_ns: 150,
        };
        assert_eq!(occupancy(&packets, &frames), expected);
    }
}
