//! Figure 3.12: times of packets in the NAT, and the rate of a trace with packets of all sizes.

use anyhow::Result;

use super::super::Settings;
use super::super::app_lab::LabCommand;
use super::super::figure::{Cell, Chart, FigureClock, PaperFigure};
use super::super::percentiles::SortedValues;
use super::super::trace::{FrameSizes, TraceShape};
use super::balance::CACHE;
use super::function::NetworkFunction;
use super::lab::{FLOWS, RemoteLab, RemoteResults, TablePlace};
use super::{network, trace, us};

/// Packets a second of the times.
const MPPS: f64 = 1.0;

/// Popularity with which the first 95 flows have half of the packets, like those of the paper's traces.
const TRACE_ZIPF: f64 = 1.1;

/// Rates at which the generators of the paper play its trace, in Gbit/s.
const GBPS: [f64; 4] = [14.48, 28.96, 43.44, 57.92];

fn row(name: &str, gbps: f64, results: &RemoteResults, times: &SortedValues) -> Vec<Cell> {
    vec![
        name.into(),
        Cell::Number(gbps, 2),
        Cell::Number(results.local_share() * 100.0, 1),
        Cell::Number(results.mean_ns() / 1e3, 3),
        us(times, 0.5),
        us(times, 0.9),
        us(times, 0.99),
        us(times, 1.0),
        Cell::Number(results.left_share() * 100.0, 2),
    ]
}

/// Figure 3.12.
pub fn times(command: &LabCommand, settings: &Settings) -> Result<PaperFigure> {
    let remote = TablePlace::Servers { servers: 1, cache: CACHE };
    let lab = |place| RemoteLab { name: "times", function: NetworkFunction::Nat, place, others: None, faults: "" };
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for (name, place, zipf) in [
        ("local table", TablePlace::Local, 0.99),
        ("like the traces (Zipf 1.1)", remote, TRACE_ZIPF),
        ("Zipf 0.99", remote, 0.99),
        ("Zipf 0.95", remote, 0.95),
        ("Zipf 0.9", remote, 0.9),
        ("uniform", remote, 0.0),
    ] {
        let results = lab(place).run(command, &trace(settings, MPPS, zipf))?;
        let times: SortedValues = results.times_ns().collect();
        rows.push(row(name, MPPS * 64.0 * 8.0 / 1e3, &results, &times));
        let mut points = vec![(0.0, 0.0)];
        points.extend(times.cumulative().into_iter().map(|(ns, share)| (ns as f64 / 1e3, share)));
        lines.push((name.to_owned(), points));
    }
    for gbps in GBPS {
        let (packets, sizes, rate_bps) = (settings.packets, FrameSizes::Mixed, gbps * 1e9);
        let shape = TraceShape { packets, flows: FLOWS, zipf: TRACE_ZIPF, sizes, rate_bps, seed: 312 };
        let results = lab(remote).run(command, &shape.packets())?;
        rows.push(row("like the traces, mixed sizes", gbps, &results, &results.times_ns().collect()));
    }
    Ok(PaperFigure {
        name: "3.12",
        title: "Times of packets in the NAT",
        clock: FigureClock::Simulated,
        columns: vec![
            "flows",
            "offered, Gbit/s",
            "answered by the cache, %",
            "mean, us",
            "p50, us",
            "p90, us",
            "p99, us",
            "max, us",
            "forwarded, %",
        ],
        rows,
        notes: vec![
            network(),
            format!(
                "One server, {CACHE} cached entries, packets of 64 bytes at {MPPS:.0} Mpps; mixed sizes have 703 bytes on \
                 average. A time is that from the arrival at the switch to the departure, without links and without \
                 the switch's own work, so a local entry takes 0."
            ),
        ],
        chart: Chart::Lines { x: "time in the switch, us", y: "share of packets", lines },
    })
}
