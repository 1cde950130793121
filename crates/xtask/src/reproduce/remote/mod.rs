//! Figures 3.9 to 3.12 and tables 3.2 to 3.4: tables in the memory of servers.
//!
//! [`function`] has the network functions, and [`lab`] simulates one of them on a switch with memory servers.

mod balance;
mod distribution;
mod failure;
mod function;
mod functions;
mod lab;
mod lookups;
mod sizes;

pub use balance::{loads, rates, shares};
pub use distribution::times;
pub use failure::over_time;
pub use functions::functions;
pub use lookups::single_server;
pub use sizes::memory;

use super::Settings;
use super::figure::Cell;
use super::percentiles::SortedValues;
use super::trace::{FrameSizes, TracePacket, TraceShape};

/// Packets a second at which servers have nearly no queues.
const LIGHT_MPPS: f64 = 0.1;

/// Packets a second that the generators of the paper send at most.
const FLOOD_MPPS: f64 = 138.0;

/// Rate of the first half of a flood.
const WARM_UP_MPPS: f64 = 5.0;

/// Returns a trace of packets of 64 bytes at this rate.
fn trace(settings: &Settings, mpps: f64, zipf: f64) -> Vec<TracePacket> {
    let rate_bps = mpps * 1e6 * 8.0 * FrameSizes::Smallest.mean();
    let sizes = FrameSizes::Smallest;
    TraceShape { packets: settings.packets, flows: lab::FLOWS, zipf, sizes, rate_bps, seed: 309 }.packets()
}

/// Returns a trace whose second half is a flood. The first half comes at a rate that one server can serve, so that
/// popular entries are cached.
fn flood(settings: &Settings, zipf: f64) -> Vec<TracePacket> {
    let mut packets = trace(settings, FLOOD_MPPS, zipf);
    let half = packets.len() / 2;
    let Some(start_ns) = packets.get(half).map(|packet| packet.time_ns) else { return packets };
    let later = |ns: u64| (ns as f64 * FLOOD_MPPS / WARM_UP_MPPS) as u64;
    let (first, second) = packets.split_at_mut(half);
    first.iter_mut().for_each(|packet| packet.time_ns = later(packet.time_ns));
    second.iter_mut().for_each(|packet| packet.time_ns += later(start_ns) - start_ns);
    packets
}

/// Returns a cell with a percentile in microseconds.
fn us(values: &SortedValues, share: f64) -> Cell {
    values.percentile(share).map_or(Cell::Empty, |ns| Cell::Number(ns as f64 / 1e3, 3))
}

/// Returns a cell with a rate in millions a second.
fn millions(rate: f64) -> Cell {
    Cell::Number(rate / 1e6, 2)
}

/// Describes the network in a sentence.
fn network() -> String {
    format!(
        "Links of {:.0} Gbit/s and {} ns to the servers, which take {} ns for a frame (the paper's network cards serve \
         at most 10.9 M lookups/s); {} flows in IPv6. Times and shares are those of the second half of the packets, READs and losses those \
         of all.",
        lab::LINK_BPS / 1e9,
        lab::LINK_DELAY_NS,
        lab::SERVICE_NS,
        lab::FLOWS
    )
}

/// Returns the share of packets that the most popular flows have, of all flows of a trace.
fn ideal_share(cached: usize, zipf: f64) -> f64 {
    let sum = |flows: usize| (1..=flows).map(|flow| (flow as f64).powf(-zipf)).sum::<f64>();
    sum(cached) / sum(lab::FLOWS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_begins_slowly() {
        let settings = Settings {
            out: Default::default(),
            work: Default::default(),
            is_json: false,
            packets: 20_000,
            triplane: None,
            profile: String::new(),
        };
        let packets = flood(&settings, 0.99);
        assert!(packets.is_sorted_by_key(|packet| packet.time_ns));
        let ns = |from: usize, to: usize| (packets[to].time_ns - packets[from].time_ns) as f64 / (to - from) as f64;
        let (slow, fast) = (ns(0, 9_999), ns(10_000, 19_999));
        assert!((190.0..210.0).contains(&slow) && (7.0..7.5).contains(&fast), "{slow} and {fast} ns");
    }

    #[test]
    fn the_most_popular_flows_have_half_of_the_packets() {
        let shares = [0.99, 0.95, 0.9].map(|zipf| (1000.0 * ideal_share(1024, zipf)).round());
        assert_eq!(shares, [504.0, 433.0, 348.0]);
    }
}
