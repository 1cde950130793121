//! Figure 5.15: the key-value store by its share of updates, and by the length of its chain.

use anyhow::{Context, Result};

use super::Settings;
use super::app_lab::{AppLab, LabCommand};
use super::application::Application;
use super::figure::{Cell, Chart, FigureClock, PaperFigure};
use super::latency::variant;
use super::trace::{FrameSizes, TracePacket, TraceShape};

/// All links. Requests are offered at the full rate of one.
const RATE: &str = "10Gbps";
const RATE_BPS: f64 = 10e9;
const DELAY_NS: u64 = 1750;

const KEYS: usize = 10_000;

/// Time between the first read of all keys, for which the switch asks the stores, and the measured requests.
const PAUSE_NS: u64 = 5_000_000;

/// Returns reads of all keys at a tenth of the rate, and after a pause requests of random keys at the full rate.
fn requests(count: usize) -> Vec<TracePacket> {
    let shape = TraceShape {
        packets: count,
        flows: KEYS,
        zipf: 0.0,
        sizes: FrameSizes::Smallest,
        rate_bps: RATE_BPS,
        seed: 515,
    };
    let slow_ns = FrameSizes::Smallest.mean() * 8e10 / RATE_BPS;
    // A random number of 99 is a read, unless all are updates.
    let first = (0..KEYS as u32).map(|key| TracePacket {
        number: key,
        time_ns: (f64::from(key) * slow_ns) as u64,
        flow: key,
        before: 0,
        size: 64,
        random: 99,
    });
    let begin = (KEYS as f64 * slow_ns) as u64 + PAUSE_NS;
    let later = shape.packets().into_iter().map(|packet| TracePacket {
        number: packet.number + KEYS as u32,
        time_ns: packet.time_ns + begin,
        ..packet
    });
    first.chain(later).collect()
}

/// Figure 5.15.
pub fn curve(command: &LabCommand, settings: &Settings) -> Result<PaperFigure> {
    let packets = requests(settings.packets);
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for stores in [0, 1, 2, 3] {
        let mut points = Vec::new();
        for updates in [0, 10, 25, 50, 75, 100] {
            let lab = AppLab {
                name: "updates",
                application: Application::KeyValue(updates),
                stores,
                flows: KEYS,
                rate: RATE,
                delay_ns: DELAY_NS,
                loss: 0.0,
            };
            let results = lab.run(command, &packets)?;
            let answered = results.frames[KEYS..].iter().flatten();
            let count = answered.clone().count();
            let begin = answered.clone().map(|frame| frame.came_ns).min().context("no request was answered")?;
            let end = answered.map(|frame| frame.left_ns).max().context("no request was answered")?;
            let rate = count as f64 * 1e3 / (end - begin) as f64;
            rows.push(vec![
                variant(stores).into(),
                Cell::whole(updates),
                Cell::Number(rate, 2),
                Cell::whole(packets.len() - KEYS - count),
                Cell::Number(results.store_bytes as f64 / packets.len() as f64, 1),
            ]);
            points.push((f64::from(updates), rate));
        }
        lines.push((variant(stores), points));
    }
    Ok(PaperFigure {
        name: "5.15",
        title: "Key-value store by its share of updates",
        clock: FigureClock::Simulated,
        columns: vec!["stores", "updates, %", "answers, million/s", "not answered", "bytes of replication a packet"],
        rows,
        notes: vec![format!(
            "{} requests of 64 bytes for {KEYS} keys, all of which the switch owns, offered at the rate of a link \
             (10 Gbit/s, {DELAY_NS} ns; queues hold everything): answers until the last one. Links are the only limit: \
             simulated switches and stores take no time. All stores form one chain, so more of them replicate more, \
             and do not share the load.",
            settings.packets
        )],
        chart: Chart::Lines { x: "updates, %", y: "answers, million/s", lines },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_read_once_before_the_measured_requests() {
        let packets = requests(1000);
        assert_eq!(packets.len(), KEYS + 1000);
        assert!(packets.is_sorted_by_key(|packet| (packet.time_ns, packet.number)));
        assert!(packets[KEYS].time_ns - packets[KEYS - 1].time_ns > PAUSE_NS);
        assert!(packets[..KEYS].iter().all(|packet| Application::KeyValue(75).frame(packet)[14] == 0));
    }
}
