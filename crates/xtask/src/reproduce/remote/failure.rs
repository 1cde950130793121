//! Figure 3.11: the rate of lookups while a server fails and returns, or others use the link to it.

use anyhow::Result;

use super::super::Settings;
use super::super::app_lab::{LabCommand, PassedFrame};
use super::super::figure::{Cell, Chart, FigureClock, PaperFigure};
use super::balance::CACHE;
use super::function::NetworkFunction;
use super::lab::{OtherTraffic, RemoteLab, START_NS, TablePlace};
use super::{network, trace};

/// Interval of the rates.
const STEP_NS: u64 = 1_000_000;

/// The failure and the return, as shares of the trace.
const FAILS: f64 = 0.3;
const RETURNS: f64 = 0.6;

/// A failure.
struct Variant {
    name: &'static str,
    mpps: f64,
    zipf: f64,
    cache: usize,
    cause: Cause,
}

/// What happens to a server or its link.
#[derive(Clone, Copy)]
enum Cause {
    /// The words of a scenario with which a server fails and returns.
    Fault([&'static str; 2]),
    /// Traffic of others, at this rate in bits per second, on the link to a server. READs avoid links above the second
    /// rate, if there is one.
    Others(f64, Option<f64>),
}

const CRASH: Cause = Cause::Fault(["crash = \"m1\"", "restart = \"m1\""]);
const UNPLUG: Cause = Cause::Fault(["down = [\"m1\", \"s1\"]", "up = [\"m1\", \"s1\"]"]);
/// More than the link carries.
const OTHERS_BPS: f64 = 44e9;

const VARIANTS: [Variant; 7] = [
    Variant { name: "crash, 0.5 Mpps", mpps: 0.5, zipf: 0.0, cache: 0, cause: CRASH },
    Variant { name: "unplugged, 0.5 Mpps", mpps: 0.5, zipf: 0.0, cache: 0, cause: UNPLUG },
    Variant { name: "crash, 2 Mpps", mpps: 2.0, zipf: 0.0, cache: 0, cause: CRASH },
    Variant { name: "unplugged, 2 Mpps", mpps: 2.0, zipf: 0.0, cache: 0, cause: UNPLUG },
    Variant { name: "unplugged, 2 Mpps, Zipf 0.99, cache", mpps: 2.0, zipf: 0.99, cache: CACHE, cause: UNPLUG },
    Variant {
        name: "busy link, 2 Mpps, no limit",
        mpps: 2.0,
        zipf: 0.0,
        cache: 0,
        cause: Cause::Others(OTHERS_BPS, None),
    },
    Variant {
        name: "busy link, 2 Mpps, limit 30 Gbit/s",
        mpps: 2.0,
        zipf: 0.0,
        cache: 0,
        cause: Cause::Others(OTHERS_BPS, Some(30e9)),
    },
];

/// Returns the packets that left in each interval since the first one arrived.
fn departures(frames: &[Option<PassedFrame>]) -> Vec<u64> {
    let first = frames.iter().flatten().map(|frame| frame.came_ns).min().unwrap_or(0);
    let mut counts = Vec::new();
    for frame in frames.iter().flatten() {
        let at = ((frame.left_ns - first) / STEP_NS) as usize;
        counts.resize(counts.len().max(at + 1), 0);
        counts[at] += 1;
    }
    counts
}

/// Returns the first interval from `from` on that has 90 % of the rate, as do the ten after it on average.
fn recovered(counts: &[u64], from: usize, steady: f64) -> Option<usize> {
    let is_well = |at: usize| {
        let next = &counts[at..(at + 10).min(counts.len())];
        counts[at] as f64 >= 0.9 * steady && next.iter().sum::<u64>() as f64 >= 0.9 * steady * next.len() as f64
    };
    (from..counts.len()).find(|at| is_well(*at))
}

/// Figure 3.11.
pub fn over_time(command: &LabCommand, settings: &Settings) -> Result<PaperFigure> {
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for Variant { name, mpps, zipf, cache, cause } in VARIANTS {
        let packets = trace(settings, mpps, zipf);
        let length_ns = packets.last().map_or(0, |packet| packet.time_ns);
        let moments = [FAILS, RETURNS].map(|part| (length_ns as f64 * part) as u64 / STEP_NS * STEP_NS);
        let fault = |(at, words): (u64, &str)| format!("\n[[faults]]\nat = \"{}ns\"\n{words}\n", START_NS + at);
        let (faults, others): (String, _) = match cause {
            Cause::Fault(words) => (moments.into_iter().zip(words).map(fault).collect(), None),
            Cause::Others(bps, memory_bps) => {
                (String::new(), Some(OtherTraffic { bps, times_ns: moments, memory_bps }))
            }
        };
        let place = TablePlace::Servers { servers: 2, cache };
        let lab = RemoteLab { name: "failure", function: NetworkFunction::Nat, place, others, faults: &faults };
        let results = lab.run(command, &packets)?;
        let counts = departures(&results.frames);
        let [fails, returns] = moments.map(|at| (at / STEP_NS) as usize);
        let before = &counts[fails / 2..fails];
        let steady = before.iter().sum::<u64>() as f64 / before.len().max(1) as f64;
        let ms =
            |from: usize| recovered(&counts, from, steady).map_or("never".into(), |at| Cell::whole((at - from) as i64));
        let least = |from: usize| {
            let next = &counts[from.min(counts.len())..(from + 10).min(counts.len())];
            next.iter().min().map_or(Cell::Empty, |least| Cell::Number(*least as f64 * 100.0 / steady, 0))
        };
        rows.push(vec![
            name.into(),
            least(fails),
            ms(fails),
            least(returns),
            ms(returns),
            Cell::whole(results.frames.iter().filter(|frame| frame.is_none()).count()),
            Cell::whole(packets.len()),
        ]);
        if mpps > 1.0 {
            let points = counts.iter().enumerate().map(|(at, count)| (at as f64, *count as f64 / steady));
            lines.push((name.to_owned(), points.collect()));
        }
    }
    Ok(PaperFigure {
        name: "3.11",
        title: "Packets forwarded while a server fails and returns",
        clock: FigureClock::Simulated,
        columns: vec![
            "failure",
            "least rate after it, %",
            "90 % again, ms",
            "least rate after the return, %",
            "90 % again, ms",
            "lost",
            "packets",
        ],
        rows,
        notes: vec![
            network(),
            format!(
                "Two servers have the same entries. One fails after {:.0} % of the trace and returns after {:.0} %. Rates \
                 are those of 1 ms, relative to the rate before the failure. A crash loses the memory. A busy link gets \
                 {:.0} Gbit/s of others meanwhile.",
                FAILS * 100.0,
                RETURNS * 100.0,
                OTHERS_BPS / 1e9
            ),
        ],
        chart: Chart::Lines { x: "time, ms", y: "packets forwarded, of the rate before", lines },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn departures_are_counted_by_the_millisecond() {
        let frame = |came_ns, left_ns| Some(PassedFrame { came_ns, left_ns, size: 66 });
        let frames = [frame(5, 5), None, frame(10, 999_999), frame(20, 3_000_004), frame(30, 3_000_005)];
        assert_eq!(departures(&frames), [2, 0, 1, 1]);
    }

    #[test]
    fn a_rate_is_back_when_it_stays() {
        let mut counts = vec![100; 40];
        counts[10..18].fill(0);
        counts[13] = 300;
        assert_eq!(recovered(&counts, 10, 100.0), Some(18));
        counts[10..].fill(50);
        assert_eq!(recovered(&counts, 10, 100.0), None);
    }
}
