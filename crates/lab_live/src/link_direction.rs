//! Shapes one direction of a link: a cable and the frames in flight.

use std::collections::BinaryHeap;

use lab::sim::Cable;

/// Maximum number of frames in flight. A frame that is sent beyond it is dropped, as by a full queue.
const MAX_FRAMES: usize = 65_536;

/// Maximum size of the frames in flight, in bytes.
const MAX_BYTES: usize = 64 << 20;

/// A frame in flight, with its arrival time in nanoseconds.
struct FrameInFlight {
    at: u64,
    number: u64,
    data: Vec<u8>,
}

impl PartialEq for FrameInFlight {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl Eq for FrameInFlight {}

impl PartialOrd for FrameInFlight {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for FrameInFlight {
    /// Orders the earliest frame last, since [`BinaryHeap`] returns the greatest.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

/// One direction of a link and the frames in flight on it.
pub struct LinkDirection {
    pub cable: Cable,
    in_flight: BinaryHeap<FrameInFlight>,
    /// Size of the frames in flight, in bytes.
    in_flight_bytes: usize,
    /// Frames that were in flight when the link went down or their sender crashed.
    lost_in_flight: u64,
    number: u64,
    /// Service time of the host at the receiving end per frame, and the end of its current frame, in nanoseconds.
    service_ns: u64,
    busy_until: u64,
}

impl LinkDirection {
    /// Returns a direction without frames.
    pub fn new(cable: Cable) -> LinkDirection {
        let in_flight = BinaryHeap::new();
        LinkDirection {
            cable,
            in_flight,
            in_flight_bytes: 0,
            lost_in_flight: 0,
            number: 0,
            service_ns: 0,
            busy_until: 0,
        }
    }

    /// Sends a frame at a time in nanoseconds.
    pub fn send(&mut self, now: u64, data: Vec<u8>) {
        let LinkDirection { cable, in_flight, in_flight_bytes, number, service_ns, busy_until, .. } = self;
        // A link without a rate and a slow host have no queue of their own.
        if in_flight.len() >= MAX_FRAMES || *in_flight_bytes + data.len() > MAX_BYTES {
            cable.stats.offered += 1;
            cable.stats.queue_full += 1;
            return;
        }
        cable.carry(now, data, |mut at, data| {
            *number += 1;
            if *service_ns > 0 {
                *busy_until = at.max(*busy_until).saturating_add(*service_ns);
                at = *busy_until;
            }
            *in_flight_bytes += data.len();
            in_flight.push(FrameInFlight { at, number: *number, data });
        });
    }

    /// Removes and returns the next frame that has arrived by a time.
    pub fn receive(&mut self, now: u64) -> Option<Vec<u8>> {
        let due = self.in_flight.peek().is_some_and(|frame| frame.at <= now);
        let data = due.then(|| self.in_flight.pop().expect("there is one").data)?;
        self.in_flight_bytes -= data.len();
        Some(data)
    }

    /// Returns the arrival time of the next frame.
    pub fn next_arrival(&self) -> Option<u64> {
        self.in_flight.peek().map(|frame| frame.at)
    }

    /// Takes the link up or down. Frames in flight are lost.
    pub fn set_up(&mut self, up: bool) {
        self.cable.set_up(up);
        self.clear_in_flight();
    }

    /// Drops the frames in flight, after a crash of their sender.
    pub fn clear_in_flight(&mut self) {
        self.lost_in_flight += self.in_flight.len() as u64;
        self.in_flight.clear();
        self.in_flight_bytes = 0;
    }

    /// Returns the number of frames that did not arrive.
    pub fn dropped(&self) -> u64 {
        self.cable.stats.dropped() + self.lost_in_flight
    }

    /// Whether the host at the receiving end has a service time.
    pub fn is_slow(&self) -> bool {
        self.service_ns > 0
    }

    /// Sets the service time of the host at the receiving end, in nanoseconds per frame.
    pub fn set_service(&mut self, service_ns: u64) {
        self.service_ns = service_ns;
    }
}

#[cfg(test)]
mod tests {
    use lab::{Delay, Shape};

    use super::*;

    fn direction() -> LinkDirection {
        let shape = Shape { rate: None, delay: Delay::from_us(10), ..Shape::default() };
        LinkDirection::new(Cable::new(shape, 1, 0))
    }

    #[test]
    fn frames_arrive_in_order_after_the_delay() {
        let mut direction = direction();
        direction.send(0, vec![1]);
        direction.send(5, vec![2]);
        assert_eq!(direction.next_arrival(), Some(10_000));
        assert_eq!(direction.receive(9_999), None);
        assert_eq!(direction.receive(20_000), Some(vec![1]));
        assert_eq!(direction.receive(20_000), Some(vec![2]));
        assert_eq!(direction.receive(20_000), None);
    }

    #[test]
    fn a_slow_host_receives_one_frame_per_service_time() {
        let mut direction = direction();
        direction.set_service(1_000);
        direction.send(0, vec![1]);
        direction.send(0, vec![2]);
        let mut arrivals = Vec::new();
        while let Some(at) = direction.next_arrival() {
            arrivals.push(at);
            direction.receive(at);
        }
        assert_eq!(arrivals, [11_000, 12_000]);
    }

    #[test]
    fn frames_in_flight_are_lost_when_the_link_goes_down() {
        let mut direction = direction();
        direction.send(0, vec![1]);
        direction.set_up(false);
        direction.send(1, vec![2]);
        direction.set_up(true);
        assert_eq!(direction.receive(u64::MAX), None);
        assert_eq!(direction.dropped(), 2, "one in flight, and one that was sent while the link was down");
    }

    #[test]
    fn frames_in_flight_are_limited() {
        let mut direction = direction();
        direction.set_service(1_000_000_000);
        (0..200_000).for_each(|_| direction.send(0, vec![1]));
        assert_eq!(direction.in_flight.len(), MAX_FRAMES);
        assert_eq!(direction.cable.stats.offered, 200_000);
        assert_eq!(direction.cable.stats.dropped(), 200_000 - MAX_FRAMES as u64);
        direction.clear_in_flight();
        (0..=MAX_BYTES / 1_500).for_each(|_| direction.send(0, vec![1; 1_500]));
        assert_eq!(direction.in_flight.len(), MAX_BYTES / 1_500);
        while direction.receive(u64::MAX).is_some() {}
        assert_eq!(direction.in_flight_bytes, 0);
    }

    #[test]
    fn a_host_may_be_slow_without_limit() {
        let mut direction = direction();
        direction.set_service(u64::MAX);
        direction.send(0, vec![1]);
        direction.send(0, vec![2]);
        assert_eq!(direction.next_arrival(), Some(u64::MAX));
    }
}
