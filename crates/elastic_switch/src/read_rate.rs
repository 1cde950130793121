//! Limits the rate of the answers to READs on each port, so that a link that is full of other traffic is avoided.

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
}

impl ReadMeters {
    /// Creates the meters for a rate in bits per second.
    pub fn new(bits_per_second: Option<u64>, mtu: Mtu) -> ReadMeters {
        let rate = bits_per_second.map(|bits| bits.div_ceil(8));
        ReadMeters { rate, mtu, now: Time::ZERO, ports: BTreeMap::new(), meters: BTreeMap::new() }
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
        let bytes = bytes + self.mtu.packets(bytes) * HEADERS;
        meter.execute(Unit::Bytes, bytes.into(), self.now.as_ns()) == Colour::Red
    }
}
