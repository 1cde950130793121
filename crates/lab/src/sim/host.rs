//! Simulates hosts and the applications on them.

use std::any::Any;
use std::net::Ipv4Addr;

use switch::Time;
use tpp::shim::Shim;
use wire::ethernet::Address;

use crate::random::Random;
use crate::topology;

/// A program on a host. It sees frames, timers and a host to act through, and nothing else.
pub trait HostProgram: Send {
    /// Called when the host starts.
    fn on_start(&mut self, host: &mut Host);

    /// Called when a frame arrives.
    fn on_packet(&mut self, host: &mut Host, frame: Vec<u8>);

    /// Called when a timer expires.
    fn on_timer(&mut self, host: &mut Host, timer: u64);

    /// Returns the program itself, for callers that know its concrete type.
    fn as_any(&self) -> &dyn Any;
}

/// A host: the state that its program sees and the actions that it can take.
pub struct Host {
    /// Its name.
    pub name: String,
    /// Its Ethernet address.
    pub mac: Address,
    /// Its IP address and the prefix length of its network.
    pub address: Option<(Ipv4Addr, u8)>,
    /// Next hop for packets to other networks.
    pub gateway: Option<Ipv4Addr>,
    /// Addresses that it knows without ARP.
    pub neighbours: Vec<(Ipv4Addr, Address)>,
    /// Its own random number generator.
    pub random: Random,
    pub(super) program: Option<Box<dyn HostProgram>>,
    pub(super) now: u64,
    pub(super) out: Vec<Vec<u8>>,
    pub(super) timers: Vec<(u64, u64)>,
    pub(super) clock: HostClock,
    pub(super) busy_until: u64,
    /// Number of frames that wait until the host processes them.
    pub(super) backlog: usize,
    pub(super) service_ns: u64,
}

/// Offset and drift of a host's clock against the simulation's time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HostClock {
    pub since: u64,
    pub offset_ns: i64,
    pub drift_ppb: i64,
}

impl HostClock {
    /// Returns the time that the clock shows at a moment of the simulation.
    fn read(self, now: u64) -> u64 {
        let drift = i128::from(now - self.since) * i128::from(self.drift_ppb) / 1_000_000_000;
        let shown = i128::from(now) + i128::from(self.offset_ns) + drift;
        u64::try_from(shown.max(0)).unwrap_or(u64::MAX)
    }

    /// Returns the moment, not before `now`, at which the clock shows a time.
    fn moment(self, now: u64, shown: u64) -> u64 {
        let since = i128::from(shown) - i128::from(self.offset_ns) - i128::from(self.since);
        let rate = (1_000_000_000 + i128::from(self.drift_ppb)).max(1);
        // Rounded up: a timer that came before its time would be set again for the same moment, for ever.
        let moment = i128::from(self.since) - (-since * 1_000_000_000).div_euclid(rate);
        u64::try_from(moment.max(i128::from(now))).unwrap_or(u64::MAX)
    }
}

impl Host {
    pub(super) fn new(at: usize, host: &topology::Host, seed: u64) -> Host {
        Host {
            name: host.name.clone(),
            mac: host.mac,
            address: host.address,
            gateway: host.gateway,
            neighbours: host.neighbours.clone(),
            random: Random::new(seed, (at as u64) << 8 | 2),
            program: None,
            now: 0,
            out: Vec::new(),
            timers: Vec::new(),
            clock: HostClock::default(),
            busy_until: 0,
            backlog: 0,
            service_ns: 0,
        }
    }

    /// Returns the time that the host's clock shows.
    pub fn now(&self) -> Time {
        Time::from_ns(self.clock.read(self.now))
    }

    /// Returns the simulation's own time, which no real host could know; for measurements.
    pub fn true_now(&self) -> Time {
        Time::from_ns(self.now)
    }

    /// Sends a frame on the host's interface.
    pub fn send(&mut self, frame: Vec<u8>) {
        self.out.push(frame);
    }

    /// Passes the frames that were sent since the program was called through its shim.
    pub(super) fn send_through(&mut self, shim: &mut Shim) {
        let random = &mut self.random;
        self.out.iter_mut().for_each(|frame| shim.sent(frame, |end| random.below(end.into()) as u32));
    }

    /// Wakes the program when the host's clock shows `at`, or at once if it already does. Timers cannot be cancelled; a
    /// program that no longer needs one ignores it.
    pub fn set_timer(&mut self, at: Time, timer: u64) {
        let moment = self.clock.moment(self.now, at.as_ns());
        self.timers.push((moment, timer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_expires_when_its_time_has_come() {
        for drift_ppb in [-999_999_999, -500_000, -1, 0, 1, 50_000, 500_000_000, 1_000_000_000] {
            for offset_ns in [-7, 0, 1_000_003] {
                let clock = HostClock { since: 50_000_001, offset_ns, drift_ppb };
                for shown in (60_000_000_u64..60_000_500).step_by(7) {
                    let moment = clock.moment(50_000_001, shown);
                    assert!(clock.read(moment) >= shown, "{clock:?} shows {} of {shown}", clock.read(moment));
                }
            }
        }
    }
}
