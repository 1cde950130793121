//! Limits the rate of READs on each port, which leaves capacity of the link to other traffic, and keeps READs off links
//! that others use.

use std::collections::BTreeMap;

use elastic::routes::{LinkMeter, ServerId};
use engine::{Colour, Meter, MeterConfig};
use ir::Unit;
use switch::{PortId, Time};
use wire::roce::Mtu;
use wire::{ethernet, ipv4, roce, udp};

/// Bytes of AETH.
const AETH_LEN: usize = 4;

/// Bytes of RETH.
const RETH_LEN: usize = 16;

/// Bytes of an answer's packet beside its cells: Ethernet, IPv4, UDP, BTH, AETH and the integrity check.
const HEADERS: u32 =
    (ethernet::HEADER_LEN + ipv4::HEADER_LEN + udp::HEADER_LEN + roce::BTH_LEN + AETH_LEN + roce::ICRC_LEN) as u32;

/// Interval in nanoseconds at which traffic of others is metered at least: that of the burst.
const SAMPLE_NS: u64 = 1_000_000;

/// Minimum burst in bytes: some 50 answers.
const MIN_BURST: u64 = 1 << 14;

/// Bytes of a READ request, without options: Ethernet, IPv4, UDP, BTH, RETH and the integrity check.
const REQUEST: u64 =
    (ethernet::HEADER_LEN + ipv4::HEADER_LEN + udp::HEADER_LEN + roce::BTH_LEN + RETH_LEN + roce::ICRC_LEN) as u64;

/// Meters of the ports to memory servers (RFC 2698). Two servers behind one port share its meters.
#[derive(Debug)]
pub(crate) struct ReadMeters {
    /// Rate in bytes per second. None if READs have no limit.
    rate: Option<u64>,
    mtu: Mtu,
    now: Time,
    ports: BTreeMap<ServerId, PortId>,
    meters: BTreeMap<PortId, PortMeters>,
    /// The meters as they were when they were saved.
    saved: Vec<(PortId, PortMeters)>,
    /// Time at which traffic of others is metered next, if packets come; `None` if there are no meters.
    sample_at: Option<Time>,
}

/// The meters of a port, for frames that are received and sent by it. READs are metered in both when they are
/// requested, other traffic afterwards.
#[derive(Clone, Debug)]
struct PortMeters {
    meters: [Meter; 2],
    /// Bytes that had passed when traffic of others was last metered; `None` if it never was.
    seen: Option<[u64; 2]>,
    /// Bytes of frames of this switch and its servers since then.
    own: [u64; 2],
}

impl PortMeters {
    fn new(config: MeterConfig) -> PortMeters {
        let mut meter = Meter::default();
        meter.configure(Some(config)).expect("the peak rate is the committed rate");
        PortMeters { meters: [meter.clone(), meter], seen: None, own: [0; 2] }
    }

    /// Meters what has passed besides the frames of this switch and its servers since the last call.
    fn meter_others(&mut self, passed: [u64; 2], now: Time) {
        let seen = self.seen.replace(passed).unwrap_or(passed);
        let own = std::mem::take(&mut self.own);
        for (direction, meter) in self.meters.iter_mut().enumerate() {
            // Frames that a device refused are taken back, so the number may fall.
            let all = passed[direction].saturating_sub(seen[direction]);
            meter.drain(all.saturating_sub(own[direction]), now.as_ns());
        }
    }
}

impl ReadMeters {
    /// Creates the meters for a rate in bits per second.
    pub fn new(bits_per_second: Option<u64>, mtu: Mtu) -> ReadMeters {
        let rate = bits_per_second.map(|bits| bits.div_ceil(8));
        ReadMeters {
            rate,
            mtu,
            now: Time::ZERO,
            ports: BTreeMap::new(),
            meters: BTreeMap::new(),
            saved: Vec::new(),
            sample_at: None,
        }
    }

    /// Sets the time of the READs that follow, and meters the traffic of others until then. `passed` returns the bytes
    /// that a port has received and sent since it exists.
    pub fn advance(&mut self, now: Time, passed: impl Fn(PortId) -> [u64; 2]) {
        self.now = now;
        self.sample_at = (!self.meters.is_empty()).then(|| now.after_ns(SAMPLE_NS));
        self.meters.iter_mut().for_each(|(port, meters)| meters.meter_others(passed(*port), now));
    }

    /// Whether it is time to meter the traffic of others: over a longer time, a burst would disappear in its mean.
    #[inline]
    pub fn is_sample_due(&self, now: Time) -> bool {
        self.sample_at.is_some_and(|at| now >= at)
    }

    /// Counts a frame of a server that was received, which is no traffic of others.
    pub fn count_received(&mut self, port: PortId, bytes: usize) {
        self.count_own(port, 0, bytes);
    }

    /// Counts a frame that was sent to a server, which is no traffic of others.
    pub fn count_sent(&mut self, port: PortId, bytes: usize) {
        self.count_own(port, 1, bytes);
    }

    fn count_own(&mut self, port: PortId, direction: usize, bytes: usize) {
        if self.rate.is_some()
            && let Some(meters) = self.meters.get_mut(&port)
        {
            meters.own[direction] += bytes as u64;
        }
    }

    /// Records the port that leads to a server.
    pub fn add(&mut self, server: ServerId, port: PortId) {
        let Some(rate) = self.rate else { return };
        self.ports.insert(server, port);
        self.meters.entry(port).or_insert_with(|| {
            // A millisecond's worth.
            let burst = (rate / 1000).max(MIN_BURST);
            PortMeters::new(MeterConfig { cir: rate, cbs: burst, pir: rate, pbs: burst })
        });
    }

    /// Forgets a server. The meters of its port stay, as others may be there.
    pub fn remove(&mut self, server: ServerId) {
        self.ports.remove(&server);
    }
}

impl LinkMeter for ReadMeters {
    fn is_busy(&mut self, server: ServerId, bytes: u32) -> bool {
        let port = self.ports.get(&server).and_then(|port| self.meters.get_mut(port));
        let Some(PortMeters { meters: [received, sent], .. }) = port else { return false };
        let bytes = u64::from(bytes + self.mtu.packets(bytes) * HEADERS);
        // An answer that is larger than the burst passes when the meter is full.
        let bytes = bytes.min(received.config().map_or(bytes, |config| config.pbs));
        let now_ns = self.now.as_ns();
        let before = sent.clone();
        if sent.execute(Unit::Bytes, REQUEST, now_ns) == Colour::Red {
            return true;
        }
        let is_busy = received.execute(Unit::Bytes, bytes, now_ns) == Colour::Red;
        if is_busy {
            *sent = before;
        }
        is_busy
    }

    fn save(&mut self) {
        self.saved.clear();
        self.saved.extend(self.meters.iter().map(|(port, meters)| (*port, meters.clone())));
    }

    fn restore(&mut self) {
        self.meters.extend(self.saved.drain(..));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVERS: [ServerId; 2] = [ServerId(1), ServerId(2)];

    /// Returns meters of two ports at 8 Mbit/s, with bursts of 16 KiB: 16 answers of 1,000 bytes each.
    fn meters() -> ReadMeters {
        let mut meters = ReadMeters::new(Some(8_000_000), Mtu::Mtu1024);
        SERVERS.into_iter().zip([PortId(1), PortId(2)]).for_each(|(server, port)| meters.add(server, port));
        meters
    }

    fn passing(meters: &mut ReadMeters, server: ServerId) -> usize {
        (0..100).filter(|_| !meters.is_busy(server, 1000 - HEADERS)).count()
    }

    #[test]
    fn restored_meters_have_the_tokens_of_before() {
        let mut meters = meters();
        meters.save();
        assert_eq!(SERVERS.map(|server| passing(&mut meters, server)), [16, 16]);
        meters.restore();
        assert_eq!(SERVERS.map(|server| passing(&mut meters, server)), [16, 16]);
        // Without another save, nothing returns.
        meters.restore();
        assert_eq!(SERVERS.map(|server| passing(&mut meters, server)), [0, 0]);
    }

    #[test]
    fn traffic_of_others_makes_a_link_busy_in_either_direction() {
        for direction in [0, 1] {
            let mut meters = meters();
            let passed = |bytes: u64| {
                let mut all = [0; 2];
                all[direction] = bytes;
                move |port| if port == PortId(1) { all } else { [0; 2] }
            };
            meters.advance(Time::from_ms(1), passed(0));
            // The rate is 1,000 bytes per millisecond.
            meters.advance(Time::from_ms(11), passed(10_000 + 16_384 - 500));
            assert!(meters.is_busy(SERVERS[0], 1000 - HEADERS) == (direction == 0), "the answer needs 1,000 bytes");
            meters.advance(Time::from_ms(12), passed(10_000 + 16_384 - 500 + 2000));
            assert!(meters.is_busy(SERVERS[0], 1) && !meters.is_busy(SERVERS[1], 1), "only this link is busy");
            meters.advance(Time::from_ms(14), passed(10_000 + 16_384 - 500 + 2000));
            assert!(!meters.is_busy(SERVERS[0], 1000 - HEADERS), "it is free again");
        }
    }

    #[test]
    fn frames_of_servers_are_no_traffic_of_others() {
        let mut meters = meters();
        meters.advance(Time::ZERO, |_| [0; 2]);
        meters.count_received(PortId(1), 40_000);
        meters.count_sent(PortId(1), 40_000);
        meters.advance(Time::ZERO, |_| [40_000; 2]);
        assert_eq!(passing(&mut meters, SERVERS[0]), 16);
        // They were counted once.
        meters.advance(Time::ZERO, |_| [80_000; 2]);
        assert_eq!(passing(&mut meters, SERVERS[0]), 0);
    }

    #[test]
    fn an_answer_beyond_the_burst_passes_a_full_meter() {
        let mut meters = meters();
        assert!(!meters.is_busy(SERVERS[0], 1 << 16) && meters.is_busy(SERVERS[0], 1));
        meters.advance(Time::from_ms(17), |_| [0; 2]);
        assert!(!meters.is_busy(SERVERS[0], 1 << 16));
        meters.remove(SERVERS[0]);
        assert!((0..100).all(|_| !meters.is_busy(SERVERS[0], 1 << 16)), "unknown servers have no rate");
    }
}
