//! Figure 5.13: bandwidth of snapshots by their interval.

use anyhow::Result;

use super::Settings;
use super::app_lab::LabCommand;
use super::application::Application;
use super::figure::{Cell, Chart, FigureClock, PaperFigure};
use super::latency::{FLOWS, paper_lab};
use super::trace::{FrameSizes, TraceShape};

const INTERVALS_US: [u32; 4] = [500, 1_000, 2_000, 10_000];

/// Figure 5.13: bytes between a switch and its stores by the interval of snapshots.
pub fn bandwidth(command: &LabCommand, settings: &Settings) -> Result<PaperFigure> {
    let shape = TraceShape {
        packets: settings.packets,
        flows: FLOWS,
        zipf: 1.0,
        sizes: FrameSizes::Smallest,
        // All packets in one second.
        rate_bps: settings.packets as f64 * FrameSizes::Smallest.mean() * 8.0,
        seed: 513,
    };
    let packets = shape.packets();
    let seconds = packets.last().map_or(1.0, |packet| packet.time_ns as f64 / 1e9);
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for vlans in [1, 4, 16] {
        let mut points = Vec::new();
        for interval_us in INTERVALS_US {
            let lab = paper_lab("snapshots", Application::HeavyHitters { vlans, interval_us }, 3);
            let results = lab.run(command, &packets)?;
            let mbps = results.store_bytes as f64 * 8.0 / seconds / 1e6;
            let interval_ms = f64::from(interval_us) / 1e3;
            let paper = if (vlans, interval_us) == (1, 1_000) { Cell::Number(34.16, 2) } else { Cell::Empty };
            rows.push(vec![Cell::whole(vlans), Cell::Number(interval_ms, 1), paper, Cell::Number(mbps, 2)]);
            points.push((interval_ms, mbps));
        }
        lines.push((format!("{vlans} VLANs"), points));
    }
    Ok(PaperFigure {
        name: "5.13",
        title: "Bandwidth of snapshots",
        clock: FigureClock::Simulated,
        columns: vec!["VLANs, of 3 x 64 x 32 bit", "interval, ms", "paper, Mbit/s", "here, Mbit/s"],
        rows,
        notes: vec![format!(
            "`examples/heavy-hitters`, {} packets of {FLOWS} flows (Zipf 1) in {seconds:.2} s, chain of 3; bytes that the \
             switch exchanges with its stores, both ways.",
            settings.packets
        )],
        chart: Chart::Lines { x: "interval, ms", y: "Mbit/s", lines },
    })
}
