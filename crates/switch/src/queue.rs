//! Egress queues between ingress and egress.
//!
//! Each port has [`PRIORITIES`] queues; the highest priority number is served first. A port and each of its queues
//! can have a rate in packets per second, and a port a bandwidth in bits per second. Without a rate a packet leaves
//! at once. With a rate it leaves when its port and its queue may send again: of all queues that may send at the
//! earliest time, the one with the highest priority sends.
//!
//! The depth is limited in packets, 64 per queue by default (as in BMv2), so no rate can make a switch buffer
//! packets without end.

use std::collections::{BTreeMap, VecDeque};

use crate::utilization::{BusyTime, OfferedBytes};
use crate::{PortId, Time};

/// Number of queues per port: priorities 0 (served last) to 7 (served first).
pub const PRIORITIES: usize = 8;

/// Default depth of a queue, in packets.
const DEFAULT_DEPTH: usize = 64;

/// A time in picoseconds, so that a rate is exact even if its interval is not a whole number of nanoseconds.
pub(crate) type Picos = u128;

/// A rate as the interval between packets.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// Packets per second; `None` without a rate, or for a share of one.
    rate_pps: Option<u64>,
    interval: Picos,
    free_at: Picos,
}

impl Pace {
    fn set_rate(&mut self, rate_pps: Option<u64>) {
        self.rate_pps = rate_pps.map(|rate| rate.max(1));
        self.interval = rate_pps.map_or(0, |rate| 1_000_000_000_000 / Picos::from(rate.max(1)));
        if rate_pps.is_none() {
            self.free_at = 0;
        }
    }

    fn sent(&mut self, at: Picos) {
        if self.interval > 0 {
            self.free_at = at + self.interval;
        }
    }
}

/// A packet in a queue, and its length in bytes.
#[derive(Debug)]
struct Waiting<T> {
    since: Picos,
    bytes: usize,
    item: T,
}

#[derive(Debug)]
struct PriorityQueue<T> {
    waiting: VecDeque<Waiting<T>>,
    /// Bytes of the packets that wait.
    bytes: u64,
    depth: usize,
    pace: Pace,
}

#[derive(Debug)]
struct PortQueues<T> {
    queues: [PriorityQueue<T>; PRIORITIES],
    pace: Pace,
    /// Time for which a byte keeps the port busy; 0 without a bandwidth.
    byte: Picos,
    /// Bits per second; `None` without a bandwidth, or for a share of one.
    bps: Option<u64>,
    busy: BusyTime,
    offered: OfferedBytes,
}

impl<T> PortQueues<T> {
    fn new(depth: usize) -> Self {
        let queue = || PriorityQueue { waiting: VecDeque::new(), bytes: 0, depth, pace: Pace::default() };
        let (busy, offered) = (BusyTime::default(), OfferedBytes::default());
        let queues = std::array::from_fn(|_| queue());
        PortQueues { queues, pace: Pace::default(), byte: 0, bps: None, busy, offered }
    }

    /// Returns the time of the next departure and its priority.
    fn next(&self) -> Option<(Picos, usize)> {
        let mut best: Option<(Picos, usize)> = None;
        for (priority, queue) in self.queues.iter().enumerate().rev() {
            let Some(Waiting { since, .. }) = queue.waiting.front() else { continue };
            let at = (*since).max(queue.pace.free_at).max(self.pace.free_at);
            if best.is_none_or(|(earliest, _)| at < earliest) {
                best = Some((at, priority));
            }
        }
        best
    }
}

/// A packet that leaves its queue.
#[derive(Debug, PartialEq, Eq)]
pub struct Departure<T> {
    /// The port of the queue.
    pub port: PortId,
    /// The priority of the queue.
    pub priority: usize,
    /// Departure time, not later than the `now` of the call.
    pub at: Time,
    /// Number of packets left in the queue.
    pub depth: usize,
    /// The packet.
    pub item: T,
}

/// The packet that found its queue full.
#[derive(Debug, PartialEq, Eq)]
pub struct QueueFull<T>(pub T);

/// The interval and byte time of a port, and the interval and depth of each of its queues.
type PortSettings = (Picos, Picos, [(Picos, usize); PRIORITIES]);

/// Rates and depths of a switch's queues, without the packets in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    ports: BTreeMap<PortId, PortSettings>,
    default_depth: usize,
}

/// The queues of all ports of a switch. Ports are created on first use.
#[derive(Debug)]
pub struct EgressQueues<T> {
    ports: BTreeMap<PortId, PortQueues<T>>,
    waiting: usize,
    default_depth: usize,
}

impl<T> Default for EgressQueues<T> {
    fn default() -> Self {
        EgressQueues { ports: BTreeMap::new(), waiting: 0, default_depth: DEFAULT_DEPTH }
    }
}

impl<T> EgressQueues<T> {
    fn port(&mut self, port: PortId) -> &mut PortQueues<T> {
        let depth = self.default_depth;
        self.ports.entry(port).or_insert_with(|| PortQueues::new(depth))
    }

    /// Limits the packets per second that leave by a port, over all its queues. `None` removes the limit. A rate of 0
    /// counts as 1.
    pub fn set_port_rate(&mut self, port: PortId, rate_pps: Option<u64>) {
        self.port(port).pace.set_rate(rate_pps);
    }

    /// Limits the bits per second that leave by a port, over all its queues. `None` removes the limit. A bandwidth of
    /// 0 counts as 1. The caller must report transmitted packets to [`EgressQueues::sent`].
    pub fn set_port_bandwidth(&mut self, port: PortId, bps: Option<u64>) {
        let port = self.port(port);
        port.bps = bps.map(|bps| bps.max(1));
        port.byte = bps.map_or(0, |bps| 8 * 1_000_000_000_000 / Picos::from(bps.max(1)));
        if bps.is_none() && port.pace.interval == 0 {
            port.pace.free_at = 0;
        }
    }

    /// Records that a packet of `bytes` left by a port, which keeps the port busy according to its bandwidth. The
    /// length is known only after the queue: egress may have made the packet longer, or dropped it.
    pub fn sent(&mut self, port: PortId, at: Time, bytes: usize) {
        if let Some(port) = self.ports.get_mut(&port).filter(|port| port.byte > 0) {
            let begins = Picos::from(at.as_ns()) * 1000;
            // Fractions of a nanosecond, which `at` does not have, are kept while packets follow each other.
            let begins = if port.pace.free_at / 1000 == begins / 1000 { port.pace.free_at } else { begins };
            let ends = begins + port.byte * bytes as Picos;
            port.busy.record(begins, ends);
            port.pace.free_at = port.pace.free_at.max(ends);
        }
    }

    /// Limits the packets per second that leave one queue of a port, or (with `None` as the priority) each of its
    /// queues.
    pub fn set_rate(&mut self, port: PortId, priority: Option<usize>, rate_pps: Option<u64>) {
        for queue in chosen(&mut self.port(port).queues, priority) {
            queue.pace.set_rate(rate_pps);
        }
    }

    /// Sets the capacity of one queue of a port, or (with `None` as the priority) of each of its queues, in packets.
    /// Waiting packets stay.
    pub fn set_depth(&mut self, port: PortId, priority: Option<usize>, packets: usize) {
        for queue in chosen(&mut self.port(port).queues, priority) {
            queue.depth = packets;
        }
    }

    /// Sets the capacity of each queue of every port in packets, including ports not used yet.
    pub fn set_depth_everywhere(&mut self, packets: usize) {
        self.default_depth = packets;
        let ports: Vec<PortId> = self.ports.keys().copied().collect();
        for port in ports {
            self.set_depth(port, None, packets);
        }
    }

    /// Returns rates and depths.
    pub fn settings(&self) -> QueueSettings {
        let of_queue = |queue: &PriorityQueue<T>| (queue.pace.interval, queue.depth);
        let of_port = |port: &PortQueues<T>| (port.pace.interval, port.byte, port.queues.each_ref().map(of_queue));
        let ports = self.ports.iter().map(|(id, port)| (*id, of_port(port))).collect();
        QueueSettings { ports, default_depth: self.default_depth }
    }

    /// Takes an equal share of the rates, and of the depths rounded up, of `workers` switches together. A port's rate
    /// is thus never exceeded, whatever its distribution over the workers. Waiting packets stay.
    pub fn share(&mut self, settings: &QueueSettings, workers: u32) {
        let workers = workers.max(1);
        let depth_of = |depth: usize| depth.div_ceil(workers as usize);
        let slow = |pace: &mut Pace, interval: Picos| {
            pace.rate_pps = None;
            pace.interval = interval * Picos::from(workers);
            if interval == 0 {
                pace.free_at = 0;
            }
        };
        self.default_depth = depth_of(settings.default_depth);
        for (id, (interval, byte, queues)) in &settings.ports {
            let port = self.port(*id);
            slow(&mut port.pace, *interval);
            (port.byte, port.bps) = (byte * Picos::from(workers), None);
            for (queue, (interval, depth)) in port.queues.iter_mut().zip(queues) {
                slow(&mut queue.pace, *interval);
                queue.depth = depth_of(*depth);
            }
        }
    }

    /// Returns the number of packets in a queue.
    pub fn depth(&self, port: PortId, priority: usize) -> usize {
        let queue = self.ports.get(&port).and_then(|port| port.queues.get(priority));
        queue.map_or(0, |queue| queue.waiting.len())
    }

    /// Returns the bytes of the packets in a queue.
    pub fn bytes(&self, port: PortId, priority: usize) -> u64 {
        let queue = self.ports.get(&port).and_then(|port| port.queues.get(priority));
        queue.map_or(0, |queue| queue.bytes)
    }

    /// Returns the number of packets that fit into a queue.
    pub fn capacity(&self, port: PortId, priority: usize) -> usize {
        let queue = self.ports.get(&port).and_then(|port| port.queues.get(priority));
        queue.map_or(self.default_depth, |queue| queue.depth)
    }

    /// Returns the rate of a queue in packets per second, if one is set here.
    pub fn rate(&self, port: PortId, priority: usize) -> Option<u64> {
        self.ports.get(&port)?.queues.get(priority)?.pace.rate_pps
    }

    /// Returns the bandwidth of a port in bits per second, if one is set here.
    pub fn bandwidth(&self, port: PortId) -> Option<u64> {
        self.ports.get(&port)?.bps
    }

    /// Returns the share of the last complete millisecond before `at` for which a port with a bandwidth was busy, in
    /// 1/10,000, rounded down. `at` is not earlier than the latest packet of [`EgressQueues::sent`].
    pub fn sent_share(&self, port: PortId, at: Time) -> Option<u32> {
        let port = self.ports.get(&port).filter(|port| port.bps.is_some())?;
        Some(port.busy.share(Picos::from(at.as_ns()) * 1000))
    }

    /// Returns the share of a port's bandwidth that was offered to its queues in the last complete millisecond before
    /// `at`, in 1/10,000, rounded down. It exceeds 10,000 in overload.
    pub fn offered_share(&self, port: PortId, at: Time) -> Option<u32> {
        let port = self.ports.get(&port)?;
        Some(port.offered.share(Picos::from(at.as_ns()) * 1000, port.bps?))
    }

    /// Returns the number of packets in all queues.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether a packet for this queue would leave at once: nothing waits at the port and no rate delays it. The
    /// caller may then skip [`EgressQueues::push`] and [`EgressQueues::pop`].
    pub fn is_open(&self, port: PortId, priority: usize) -> bool {
        let Some(port) = self.ports.get(&port) else { return self.default_depth > 0 };
        let queue = &port.queues[priority.min(PRIORITIES - 1)];
        let unpaced = port.pace.interval == 0 && port.byte == 0 && queue.pace.interval == 0;
        unpaced && queue.depth > 0 && port.queues.iter().all(|queue| queue.waiting.is_empty())
    }

    /// Whether a rate of the queue, or a rate or bandwidth of its port, is set.
    pub fn has_rate(&self, port: PortId, priority: usize) -> bool {
        let Some(port) = self.ports.get(&port) else { return false };
        let queue = &port.queues[priority.min(PRIORITIES - 1)];
        port.pace.interval > 0 || port.byte > 0 || queue.pace.interval > 0
    }

    /// Whether [`EgressQueues::is_open`] holds for every queue of every port.
    pub fn are_all_open(&self) -> bool {
        let is_open = |queue: &PriorityQueue<T>| queue.pace.interval == 0 && queue.depth > 0;
        let unpaced = |port: &PortQueues<T>| port.pace.interval == 0 && port.byte == 0;
        let ports = || self.ports.values().all(|port| unpaced(port) && port.queues.iter().all(is_open));
        self.waiting == 0 && self.default_depth > 0 && ports()
    }

    /// Appends a packet of `bytes` to a queue; priorities beyond the last count as the last.
    ///
    /// # Errors
    /// The packet, if the queue is full.
    pub fn push(
        &mut self,
        now: Time,
        port: PortId,
        priority: usize,
        bytes: usize,
        item: T,
    ) -> Result<(), QueueFull<T>> {
        let since = Picos::from(now.as_ns()) * 1000;
        let port = self.port(port);
        port.offered.add(since, bytes);
        let queue = &mut port.queues[priority.min(PRIORITIES - 1)];
        if queue.waiting.len() >= queue.depth {
            return Err(QueueFull(item));
        }
        queue.bytes += bytes as u64;
        queue.waiting.push_back(Waiting { since, bytes, item });
        self.waiting += 1;
        Ok(())
    }

    /// Removes and returns the next packet that may leave by `now`, over all ports: earliest first, then by port
    /// number, then highest priority first.
    pub fn pop(&mut self, now: Time) -> Option<Departure<T>> {
        if self.waiting == 0 {
            return None;
        }
        let next = self.ports.iter().filter_map(|(id, port)| port.next().map(|(at, priority)| (at, *id, priority)));
        let (at, id, priority) = next.min_by_key(|(at, id, _)| (*at, *id))?;
        if at > Picos::from(now.as_ns()) * 1000 {
            return None;
        }
        let port = self.ports.get_mut(&id)?;
        port.pace.sent(at);
        let queue = &mut port.queues[priority];
        queue.pace.sent(at);
        let Waiting { bytes, item, .. } = queue.waiting.pop_front()?;
        queue.bytes -= bytes as u64;
        self.waiting -= 1;
        let at = Time::from_ns((at / 1000) as u64);
        Some(Departure { port: id, priority, at, depth: queue.waiting.len(), item })
    }

    /// Returns the time at which the next packet may leave, if one waits. It is rounded up, so that a `pop` at this
    /// time returns the packet.
    pub fn next_event(&self) -> Option<Time> {
        if self.waiting == 0 {
            return None;
        }
        let at = self.ports.values().filter_map(|port| port.next().map(|(at, _)| at)).min()?;
        Some(Time::from_ns(u64::try_from(at.div_ceil(1000)).unwrap_or(u64::MAX)))
    }
}

/// Returns the queue with this priority, or all.
fn chosen<T>(queues: &mut [PriorityQueue<T>; PRIORITIES], priority: Option<usize>) -> &mut [PriorityQueue<T>] {
    match priority {
        Some(priority) => {
            let at = priority.min(PRIORITIES - 1);
            &mut queues[at..=at]
        }
        None => queues,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all packets that leave by `now`: `time port.priority item`.
    fn drain(queues: &mut EgressQueues<&'static str>, now: Time) -> Vec<String> {
        let mut out = Vec::new();
        while let Some(left) = queues.pop(now) {
            out.push(format!("{}us {}.{} {}", left.at.as_us(), left.port, left.priority, left.item));
        }
        out
    }

    #[test]
    fn a_queue_without_a_rate_has_none_while_another_one_delays_it() {
        let (port, mut queues) = (PortId(1), EgressQueues::default());
        queues.set_rate(port, Some(7), Some(1_000));
        for item in ["first", "second"] {
            queues.push(Time::ZERO, port, 7, 100, item).expect("there is room");
        }
        assert_eq!(drain(&mut queues, Time::ZERO).len(), 1);
        assert!(!queues.is_open(port, 0), "it is behind the other queue");
        assert!(queues.has_rate(port, 7) && !queues.has_rate(port, 0));
        queues.set_port_bandwidth(port, Some(8_000_000));
        assert!(queues.has_rate(port, 0) && !queues.has_rate(PortId(2), 0));
    }

    #[test]
    fn a_bandwidth_counts_bytes() {
        let port = PortId(1);
        let mut queues = EgressQueues::default();
        queues.set_port_bandwidth(port, Some(8_000_000));
        assert!(!queues.is_open(port, 0) && !queues.are_all_open());
        for bytes in [1000, 500, 100] {
            queues.push(Time::ZERO, port, 0, bytes, bytes).unwrap();
        }
        let mut left = Vec::new();
        while let Some(next) = queues.next_event() {
            let departure = queues.pop(next).expect("it leaves when it says");
            queues.sent(port, departure.at, departure.item);
            left.push((departure.at.as_us(), departure.item));
        }
        assert_eq!(left, [(0, 1000), (1000, 500), (1500, 100)]);
        queues.push(Time::from_us(1550), port, 0, 100, 7).unwrap();
        assert_eq!(queues.next_event(), Some(Time::from_us(1600)));
        queues.set_port_bandwidth(port, None);
        assert_eq!(queues.next_event(), Some(Time::from_us(1550)));
    }

    #[test]
    fn workers_share_a_rate_and_a_depth() {
        let (port, ms) = (PortId(1), |ms: u64| Time::from_ns(ms * 1_000_000));
        let mut owner = EgressQueues::<u32>::default();
        owner.set_port_rate(port, Some(1000));
        owner.set_depth(port, Some(0), 5);
        let mut left = 0;
        for _ in 0..2 {
            let mut worker = EgressQueues::default();
            worker.share(&owner.settings(), 2);
            assert_eq!((0..9).filter(|item| worker.push(Time::ZERO, port, 0, 100, *item).is_ok()).count(), 3);
            left += std::iter::from_fn(|| worker.pop(ms(3))).count();
            owner.set_port_rate(port, None);
            worker.share(&owner.settings(), 2);
            assert!(worker.pop(ms(3)).is_some() && worker.waiting() == 0);
            owner.set_port_rate(port, Some(1000));
        }
        // At 0 and 2 ms each; one port alone would have sent at 0, 1, 2 and 3.
        assert_eq!(left, 4);
    }

    #[test]
    fn without_a_rate_packets_leave_at_once_in_the_order_they_came() {
        let mut queues = EgressQueues::default();
        for item in ["a", "b"] {
            queues.push(Time::from_us(5), PortId(1), 0, 100, item).unwrap();
        }
        assert_eq!(queues.next_event(), Some(Time::from_us(5)));
        assert_eq!(drain(&mut queues, Time::from_us(5)), ["5us 1.0 a", "5us 1.0 b"]);
        assert_eq!(queues.next_event(), None);
    }

    #[test]
    fn a_rate_spaces_departures_and_the_highest_priority_goes_first() {
        let mut queues = EgressQueues::default();
        queues.set_port_rate(PortId(1), Some(100_000));
        for (priority, item) in [(0, "low1"), (0, "low2"), (7, "high")] {
            queues.push(Time::ZERO, PortId(1), priority, 100, item).unwrap();
        }
        assert_eq!(drain(&mut queues, Time::ZERO), ["0us 1.7 high"]);
        assert_eq!(queues.next_event(), Some(Time::from_us(10)));
        queues.push(Time::from_us(4), PortId(1), 3, 100, "late").unwrap();
        assert_eq!(drain(&mut queues, Time::from_us(9)), [""; 0]);
        assert_eq!(drain(&mut queues, Time::from_us(10)), ["10us 1.3 late"]);
        // A late step finds each packet at the time at which it should have left.
        assert_eq!(drain(&mut queues, Time::from_us(99)), ["20us 1.0 low1", "30us 1.0 low2"]);
    }

    #[test]
    fn a_rate_limited_queue_does_not_block_lower_priorities() {
        let mut queues = EgressQueues::default();
        queues.set_rate(PortId(1), Some(7), Some(1_000));
        for (priority, item) in [(7, "h1"), (7, "h2"), (0, "low")] {
            queues.push(Time::ZERO, PortId(1), priority, 100, item).unwrap();
        }
        assert_eq!(drain(&mut queues, Time::ZERO), ["0us 1.7 h1", "0us 1.0 low"]);
        assert_eq!(drain(&mut queues, Time::from_ms(1)), ["1000us 1.7 h2"]);
    }

    #[test]
    fn a_rate_without_whole_nanoseconds_does_not_drift() {
        let mut queues = EgressQueues::default();
        queues.set_rate(PortId(1), None, Some(3));
        queues.set_depth(PortId(1), None, 100);
        for _ in 0..31 {
            queues.push(Time::ZERO, PortId(1), 0, 100, "x").unwrap();
        }
        assert_eq!(drain(&mut queues, Time::from_ms(10_000)).len(), 31);
    }

    #[test]
    fn a_full_queue_gives_the_packet_back() {
        let mut queues = EgressQueues::default();
        queues.set_depth(PortId(1), Some(0), 1);
        queues.push(Time::ZERO, PortId(1), 0, 100, "a").unwrap();
        assert_eq!(queues.push(Time::ZERO, PortId(1), 0, 100, "b"), Err(QueueFull("b")));
        assert_eq!(queues.push(Time::ZERO, PortId(1), 1, 100, "c"), Ok(()));
        assert_eq!((queues.depth(PortId(1), 0), queues.waiting()), (1, 2));
    }
}
