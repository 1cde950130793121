//! Figure 3.10: share of the cache, loads of servers, and rates with several servers.

use anyhow::Result;

use super::super::Settings;
use super::super::app_lab::{LabCommand, PassedFrame};
use super::super::figure::{Cell, Chart, FigureClock, PaperFigure};
use super::function::NetworkFunction;
use super::lab::{RemoteLab, TablePlace};
use super::{FLOOD_MPPS, WARM_UP_MPPS, flood, ideal_share, millions, network, trace};

/// Exponents of the popularity of flows.
const EXPONENTS: [f64; 3] = [0.99, 0.95, 0.9];

/// Entries that the switch caches, as in the paper.
pub const CACHE: usize = 1024;

/// Largest number of servers.
const SERVERS: usize = 8;

/// Packets a second of the trace that shows shares and loads.
const MPPS: f64 = 10.0;

/// Intervals of the picture of shares.
const INTERVALS: usize = 50;

/// Returns a lab of the NAT.
fn lab<'a>(servers: usize, cache: usize) -> RemoteLab<'a> {
    let place = TablePlace::Servers { servers, cache };
    RemoteLab { name: "balance", function: NetworkFunction::Nat, place, others: None, faults: "" }
}

/// Returns the name of a distribution of flows.
fn flows(zipf: f64) -> String {
    if zipf == 0.0 { "uniform".to_owned() } else { format!("Zipf {zipf}") }
}

/// Returns the reads of the busiest server as a multiple of the mean.
fn busiest(reads: &[u64]) -> f64 {
    let (most, sum) = (reads.iter().max().copied().unwrap_or(0), reads.iter().sum::<u64>());
    most as f64 * reads.len() as f64 / sum.max(1) as f64
}

/// Figure 3.10a: loads of the servers with and without a cache.
pub fn loads(command: &LabCommand, settings: &Settings) -> Result<PaperFigure> {
    let (mut rows, mut bars) = (Vec::new(), Vec::new());
    for zipf in EXPONENTS {
        let packets = trace(settings, MPPS, zipf);
        for cache in [0, CACHE] {
            let results = lab(SERVERS, cache).run(command, &packets)?;
            let of_all = |reads: u64| reads as f64 / results.reads.max(1) as f64 * 100.0;
            let reads = results.server_reads.iter();
            rows.push(vec![
                flows(zipf).into(),
                Cell::whole(cache as i64),
                Cell::Number(results.local_share() * 100.0, 1),
                Cell::Number(if cache == 0 { 0.0 } else { ideal_share(cache, zipf) * 100.0 }, 1),
                Cell::whole(results.reads as i64),
                Cell::Number(reads.clone().min().map_or(0.0, |least| of_all(*least)), 2),
                Cell::Number(reads.max().map_or(0.0, |most| of_all(*most)), 2),
                Cell::Number(busiest(&results.server_reads), 3),
                Cell::whole(results.frames.iter().filter(|frame| frame.is_none()).count()),
            ]);
            if zipf == EXPONENTS[0] {
                let name = |at: usize| format!("m{}, {}", at + 1, if cache == 0 { "no cache" } else { "cache" });
                bars.extend(results.server_reads.iter().enumerate().map(|(at, reads)| (name(at), *reads as f64)));
            }
        }
    }
    Ok(PaperFigure {
        name: "3.10a",
        title: "Loads of eight servers",
        clock: FigureClock::Simulated,
        columns: vec![
            "flows",
            "cached entries",
            "answered by the cache, %",
            "possible, %",
            "READs",
            "least of a server, %",
            "most, %",
            "busiest / mean",
            "lost",
        ],
        rows,
        notes: vec![
            network(),
            format!(
                "{} packets of the NAT at {MPPS:.0} Mpps. \"Possible\": the share of the {CACHE} most popular flows. \
                 Packets of a flow that wait at the same time share a READ.",
                settings.packets
            ),
        ],
        chart: Chart::Bars { y: "READs (Zipf 0.99)", bars },
    })
}

/// The share of packets that the cache answers, over time.
pub fn shares(command: &LabCommand, settings: &Settings) -> Result<PaperFigure> {
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for zipf in EXPONENTS {
        let packets = trace(settings, MPPS, zipf);
        let results = lab(SERVERS, CACHE).run(command, &packets)?;
        let chunk = results.frames.len().div_ceil(INTERVALS);
        let share = |frames: &[Option<PassedFrame>]| {
            let local = frames.iter().flatten().filter(|frame| frame.time_ns() == 0).count();
            local as f64 * 100.0 / frames.len() as f64
        };
        let points: Vec<(f64, f64)> = results
            .frames
            .chunks(chunk)
            .enumerate()
            .map(|(at, frames)| (packets[at * chunk].time_ns as f64 / 1e6, share(frames)))
            .collect();
        let at = |part: f64| Cell::Number(points[((points.len() - 1) as f64 * part) as usize].1, 1);
        let ideal = Cell::Number(ideal_share(CACHE, zipf) * 100.0, 1);
        rows.push(vec![flows(zipf).into(), at(0.1), at(0.25), at(0.5), at(1.0), ideal]);
        lines.push((flows(zipf), points));
    }
    Ok(PaperFigure {
        name: "tea-share",
        title: "Packets that the cache answers, over time",
        clock: FigureClock::Simulated,
        columns: vec!["flows", "after 10 %, %", "after 25 %, %", "after 50 %, %", "at the end, %", "possible, %"],
        rows,
        notes: vec![
            network(),
            format!(
                "{} packets of the NAT at {MPPS:.0} Mpps, with {CACHE} cached entries and an empty cache at the \
                 beginning. An entry is cached when its key has been read eight times.",
                settings.packets
            ),
        ],
        chart: Chart::Lines { x: "time, ms", y: "answered by the cache, %", lines },
    })
}

/// Figure 3.10b: rates with several servers.
pub fn rates(command: &LabCommand, settings: &Settings) -> Result<PaperFigure> {
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    let variants = EXPONENTS.into_iter().map(|zipf| (zipf, CACHE)).chain([(0.99, 0), (0.0, CACHE)]);
    for (zipf, cache) in variants {
        let packets = flood(settings, zipf);
        let name = format!("{}, {}", flows(zipf), if cache > 0 { "cache" } else { "no cache" });
        let (mut row, mut line) = (vec![name.clone().into()], Vec::new());
        let mut last = None;
        for servers in [1, 2, 4, SERVERS] {
            let results = lab(servers, cache).run(command, &packets)?;
            let rate = results.rate()?;
            row.push(millions(rate));
            line.push((servers as f64, rate / 1e6));
            last = Some(results);
        }
        let last = last.expect("there is a number of servers");
        row.push(Cell::Number(busiest(&last.server_reads), 3));
        row.push(Cell::Number(last.local_share() * 100.0, 1));
        rows.push(row);
        lines.push((name, line));
    }
    Ok(PaperFigure {
        name: "3.10b",
        title: "Rates with several servers",
        clock: FigureClock::Simulated,
        columns: vec![
            "flows",
            "1 server, Mpps",
            "2, Mpps",
            "4, Mpps",
            "8, Mpps",
            "busiest of 8 / mean",
            "answered by the cache, %",
        ],
        rows,
        notes: vec![
            network(),
            format!(
                "{} packets of the NAT, the first half at {WARM_UP_MPPS} Mpps so that popular entries are cached, the \
                 second half at {FLOOD_MPPS:.0} Mpps. A packet that finds 4,096 others waiting is dropped; packets of a flow \
                 that wait at the same time share a READ.",
                settings.packets
            ),
        ],
        chart: Chart::Lines { x: "servers", y: "packets forwarded, Mpps", lines },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_server_is_compared_with_the_mean() {
        assert_eq!(busiest(&[10, 20, 30]), 1.5);
        assert_eq!(busiest(&[]), 0.0);
    }
}
