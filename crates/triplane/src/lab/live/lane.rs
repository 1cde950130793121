//! One direction of a link: a cable, and the frames that are on it until they arrive.

use std::collections::BinaryHeap;

use lab::sim::Cable;

/// A frame that is on its way over a link.
struct OnTheWay {
    at: u64,
    number: u64,
    data: Vec<u8>,
}

impl PartialEq for OnTheWay {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl Eq for OnTheWay {}

impl PartialOrd for OnTheWay {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OnTheWay {
    /// The earliest is the greatest.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

/// One direction of a link and what is on it.
pub struct Lane {
    pub cable: Cable,
    on_the_way: BinaryHeap<OnTheWay>,
    number: u64,
    /// How long the host at the other end needs for each frame, and until when it is busy.
    service_ns: u64,
    busy_until: u64,
}

impl Lane {
    /// A lane on which there is nothing.
    pub fn new(cable: Cable) -> Lane {
        Lane { cable, on_the_way: BinaryHeap::new(), number: 0, service_ns: 0, busy_until: 0 }
    }

    /// Takes a frame at a time in nanoseconds.
    pub fn put(&mut self, now: u64, data: Vec<u8>) {
        let Lane { cable, on_the_way, number, service_ns, busy_until } = self;
        cable.carry(now, data, |mut at, data| {
            *number += 1;
            if *service_ns > 0 {
                *busy_until = at.max(*busy_until) + *service_ns;
                at = *busy_until;
            }
            on_the_way.push(OnTheWay { at, number: *number, data });
        });
    }

    /// A frame that has arrived by a time.
    pub fn take(&mut self, now: u64) -> Option<Vec<u8>> {
        let due = self.on_the_way.peek().is_some_and(|frame| frame.at <= now);
        due.then(|| self.on_the_way.pop().expect("there is one").data)
    }

    /// When the next frame arrives.
    pub fn next(&self) -> Option<u64> {
        self.on_the_way.peek().map(|frame| frame.at)
    }

    /// Takes the link up or down; what is on it is lost.
    pub fn set_up(&mut self, up: bool) {
        self.cable.set_up(up);
        self.on_the_way.clear();
    }

    /// Forgets what is on it: whoever sent it is gone.
    pub fn forget(&mut self) {
        self.on_the_way.clear();
    }

    /// From now on the host at the other end needs so many nanoseconds for each frame.
    pub fn set_service(&mut self, service_ns: u64) {
        self.service_ns = service_ns;
    }
}
