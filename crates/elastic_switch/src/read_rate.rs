//! Limits the rate of READ answers on each port, which leaves capacity of the link to other traffic.

use std::collections::BTreeMap;

use elastic::routes::{LinkMeter, ServerId};
use engine::{Colour, Meter, MeterConfig};
use ir::Unit;
use switch::{PortId, Time};
use wire::roce::Mtu;
use wire::{ethernet, ipv4, roce, udp};

/// Bytes of AETH.
const AETH_LEN: usize = 4;

/// Bytes of an answer's packet beside its cells: Ethernet, IPv4, UDP, BTH, AETH and the integrity check.
const HEADERS: u32 =
    (ethernet::HEADER_LEN + ipv4::HEADER_LEN + udp::HEADER_LEN + roce::BTH_LEN + AETH_LEN + roce::ICRC_LEN) as u32;

/// Minimum burst in bytes: some 50 answers.
const MIN_BURST: u64 = 1 << 14;

/// Meters of the ports to memory servers (RFC 2698). Two servers behind one port share its meter.
#[derive(Debug)]
pub(crate) struct ReadMeters {
    /// Rate in bytes per second. None if READs have no limit.
    rate: Option<u64>,
    mtu: Mtu,
    now: Time,
    ports: BTreeMap<ServerId, PortId>,
    meters: BTreeMap<PortId, Meter>,
    /// The meters as they were when they were saved.
    saved: Vec<(PortId, Meter)>,
}

impl ReadMeters {
    /// Creates the meters for a rate in bits per second.
    pub fn new(bits_per_second: Option<u64>, mtu: Mtu) -> ReadMeters {
        let rate = bits_per_second.map(|bits| bits.div_ceil(8));
        ReadMeters { rate, mtu, now: Time::ZERO, ports: BTreeMap::new(), meters: BTreeMap::new(), saved: Vec::new() }
    }

    /// Sets the time of the READs that follow.
    pub fn set_time(&mut self, now: Time) {
        self.now = now;
    }

    /// Records the port that leads to a server.
    pub fn add(&mut self, server: ServerId, port: PortId) {
        let Some(rate) = self.rate else { return };
        self.ports.insert(server, port);
        self.meters.entry(port).or_insert_with(|| {
            // A millisecond's worth.
            let burst = (rate / 1000).max(MIN_BURST);
            let mut meter = Meter::default();
            let config = MeterConfig { cir: rate, cbs: burst, pir: rate, pbs: burst };
            meter.configure(Some(config)).expect("the peak rate is the committed rate");
            meter
        });
    }

    /// Forgets a server. The meter of its port stays, as others may be there.
    pub fn remove(&mut self, server: ServerId) {
        self.ports.remove(&server);
    }
}

impl LinkMeter for ReadMeters {
    fn is_busy(&mut self, server: ServerId, bytes: u32) -> bool {
        let Some(meter) = self.ports.get(&server).and_then(|port| self.meters.get_mut(port)) else { return false };
        let bytes = u64::from(bytes + self.mtu.packets(bytes) * HEADERS);
        // An answer that is larger than the burst passes when the meter is full.
        let bytes = bytes.min(meter.config().map_or(bytes, |config| config.pbs));
        meter.execute(Unit::Bytes, bytes, self.now.as_ns()) == Colour::Red
    }

    fn save(&mut self) {
        self.saved.clear();
        self.saved.extend(self.meters.iter().map(|(port, meter)| (*port, meter.clone())));
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
    fn an_answer_beyond_the_burst_passes_a_full_meter() {
        let mut meters = meters();
        assert!(!meters.is_busy(SERVERS[0], 1 << 16) && meters.is_busy(SERVERS[0], 1));
        meters.set_time(Time::from_ms(17));
        assert!(!meters.is_busy(SERVERS[0], 1 << 16));
        meters.remove(SERVERS[0]);
        assert!((0..100).all(|_| !meters.is_busy(SERVERS[0], 1 << 16)), "unknown servers have no rate");
    }
}
