//! Figures 5.10 and 5.11: round-trip times through the switch.

use anyhow::Result;

use super::Settings;
use super::app_lab::{AppLab, LabCommand};
use super::application::{Application, of_paper};
use super::figure::{Cell, Chart, FigureClock, PaperFigure};
use super::percentiles::SortedValues;
use super::trace::{FrameSizes, TracePacket, TraceShape};

pub const RATE: &str = "100Gbps";
pub const RATE_BPS: f64 = 100e9;

/// Four links take the 7 us that the paper's packets take without replication.
pub const DELAY_NS: u64 = 1750;

pub const FLOWS: usize = 2000;

/// Returns a lab with the links of the paper's testbed, without loss.
pub fn paper_lab(name: &str, application: Application, stores: usize) -> AppLab<'_> {
    AppLab { name, application, stores, flows: FLOWS, rate: RATE, delay_ns: DELAY_NS, loss: 0.0 }
}

/// Returns the trace of the latency experiments: 10 % of a link's rate.
pub fn shape(settings: &Settings, sizes: FrameSizes) -> TraceShape {
    TraceShape { packets: settings.packets, flows: FLOWS, zipf: 1.0, sizes, rate_bps: RATE_BPS / 10.0, seed: 510 }
}

/// Returns the name of a variant by its number of stores.
pub fn variant(stores: usize) -> String {
    match stores {
        0 => "plain".to_owned(),
        1 => "1 store".to_owned(),
        stores => format!("chain of {stores}"),
    }
}

/// Describes the network and the trace in a sentence.
pub fn description(settings: &Settings) -> String {
    format!(
        "{} packets of {FLOWS} flows (Zipf 1), frames of 64 to 1,514 bytes (703 on average) at 10 Gbit/s, Poisson; links \
         of 100 Gbit/s and {DELAY_NS} ns: 4 from the sender back to it, 2 (k + 1) to k stores and back.",
        settings.packets
    )
}

/// Round-trip times of one variant in nanoseconds, by the packets of the trace; `None` for a packet that was lost.
type RoundTrips = Vec<Option<u64>>;

fn round_trips(
    command: &LabCommand,
    (application, stores): (Application, usize),
    packets: &[TracePacket],
) -> Result<RoundTrips> {
    let lab = paper_lab("latency", application, stores);
    let results = lab.run(command, packets)?;
    Ok(results.frames.iter().map(|frame| frame.as_ref().map(|frame| lab.round_trip_ns(frame, RATE_BPS))).collect())
}

fn sorted(trips: &[Option<u64>]) -> SortedValues {
    trips.iter().flatten().copied().collect()
}

/// Returns the additional times of packets compared with the plain program.
fn added(trips: &RoundTrips, plain: &RoundTrips) -> SortedValues {
    trips.iter().zip(plain).filter_map(|(one, plain)| Some((*one)?.saturating_sub((*plain)?))).collect()
}

/// Returns the share of packets that take exactly the time of the plain program, in percent.
fn unchanged(trips: &RoundTrips, plain: &RoundTrips) -> Cell {
    let same = trips.iter().zip(plain).filter(|(one, plain)| one.is_some() && one == plain).count();
    Cell::Number(100.0 * same as f64 / trips.len() as f64, 2)
}

fn lost(trips: &RoundTrips) -> Cell {
    Cell::whole(trips.iter().filter(|trip| trip.is_none()).count())
}

/// Returns a cell with a percentile in microseconds.
fn us(values: &SortedValues, share: f64) -> Cell {
    values.percentile(share).map_or(Cell::Empty, |ns| Cell::Number(ns as f64 / 1e3, 2))
}

/// Figure 5.10: the NAT.
pub fn nat(command: &LabCommand, settings: &Settings) -> Result<PaperFigure> {
    let packets = shape(settings, FrameSizes::Mixed).packets();
    let plain = round_trips(command, (Application::Nat, 0), &packets)?;
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for stores in [0, 1, 3] {
        let trips = match stores {
            0 => plain.clone(),
            stores => round_trips(command, (Application::Nat, stores), &packets)?,
        };
        let all = sorted(&trips);
        let is_first = |packet: &&TracePacket| packet.before == 0;
        let first = packets.iter().filter(is_first).filter_map(|packet| trips[packet.number as usize]).collect();
        rows.push(vec![
            variant(stores).into(),
            us(&all, 0.5),
            us(&all, 0.9),
            us(&all, 0.99),
            us(&all, 1.0),
            us(&first, 0.5),
            unchanged(&trips, &plain),
            lost(&trips),
        ]);
        let points = all.cumulative().into_iter().map(|(ns, share)| (ns as f64 / 1e3, share));
        lines.push((variant(stores), points.collect()));
    }
    Ok(PaperFigure {
        name: "5.10",
        title: "Round-trip times through the NAT",
        clock: FigureClock::Simulated,
        columns: vec![
            "NAT",
            "p50, us",
            "p90, us",
            "p99, us",
            "max, us",
            "first of a flow, p50, us",
            "+0 ns, %",
            "lost",
        ],
        rows,
        notes: vec![
            description(settings),
            "Plain: without annotations, with the mappings of all flows made in advance. \"+0 ns\": packets that take \
             the time of the plain program. Packets that come while the first one of their flow waits for the stores \
             wait with it."
                .to_owned(),
        ],
        chart: Chart::Lines { x: "round-trip time, us", y: "share of packets", lines },
    })
}

/// Figure 5.11: all applications.
pub fn applications(command: &LabCommand, settings: &Settings) -> Result<PaperFigure> {
    let packets = shape(settings, FrameSizes::Mixed).packets();
    let (mut rows, mut bars) = (Vec::new(), Vec::new());
    for application in of_paper() {
        let plain = round_trips(command, (application, 0), &packets)?;
        for stores in [0, 1, 3] {
            let trips = match stores {
                0 => plain.clone(),
                stores => round_trips(command, (application, stores), &packets)?,
            };
            let (all, added) = (sorted(&trips), added(&trips, &plain));
            rows.push(vec![
                application.title().into(),
                variant(stores).into(),
                us(&all, 0.5),
                us(&all, 0.9),
                us(&all, 0.99),
                us(&all, 1.0),
                us(&added, 0.5),
                us(&added, 0.99),
                unchanged(&trips, &plain),
                lost(&trips),
            ]);
            if stores != 1 || application == Application::FlowCounter {
                let median_us = all.percentile(0.5).unwrap_or(0) as f64 / 1e3;
                bars.push((format!("{}, {}", application.title(), variant(stores)), median_us));
            }
        }
    }
    Ok(PaperFigure {
        name: "5.11",
        title: "Round-trip times by application",
        clock: FigureClock::Simulated,
        columns: vec![
            "application",
            "stores",
            "p50, us",
            "p90, us",
            "p99, us",
            "max, us",
            "added, p50, us",
            "added, p99, us",
            "+0 ns, %",
            "lost",
        ],
        rows,
        notes: vec![
            description(settings),
            "Heavy hitters: snapshots each millisecond, of one VLAN's sketch.".to_owned(),
        ],
        chart: Chart::Bars { y: "median round-trip time, us", bars },
    })
}
