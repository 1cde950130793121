//! Simulates one direction of a link. Frames are serialised one after the other, wait while another frame is
//! serialised, propagate, and may be lost.

use std::collections::VecDeque;

use super::event::{Event, Message, What};
use crate::random::Random;
use crate::topology::{End, Shape};

/// Bytes of the Ethernet header, which do not count towards the MTU.
const ETHERNET: usize = 14;

/// Counters of one direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Frames that were handed to the link.
    pub offered: u64,
    /// Frames whose serialisation began.
    pub carried: u64,
    /// Bytes of the carried frames.
    pub carried_bytes: u64,
    /// Frames dropped because the queue was full.
    pub queue_full: u64,
    /// Frames lost at random.
    pub lost: u64,
    /// Frames dropped because they were larger than the MTU.
    pub too_large: u64,
    /// Frames handed to the link while it was down.
    pub link_down: u64,
    /// Frames in which a bit was flipped.
    pub corrupted: u64,
    /// Frames that arrived twice.
    pub duplicated: u64,
    /// Frames that were delayed so that later ones could overtake them.
    pub reordered: u64,
    /// Maximum number of frames that waited at the same time.
    pub longest_queue: u64,
}

impl LinkStats {
    /// Returns the number of frames that did not arrive.
    pub fn dropped(&self) -> u64 {
        self.queue_full + self.lost + self.too_large + self.link_down
    }
}

/// Model of one direction of a link: decides whether each frame arrives, and when. It has no clock and stores no
/// frames, so a simulation and real ports use it alike.
#[derive(Debug)]
pub struct Cable {
    /// Counters so far.
    pub stats: LinkStats,
    shape: Shape,
    up: bool,
    /// Time at which the last frame is completely serialised.
    busy_until: u64,
    /// For each waiting frame, its arrival time and the time at which its serialisation begins.
    waiting: VecDeque<(u64, u64)>,
    random: Random,
}

impl Cable {
    /// Creates a cable of this shape. `stream` selects its random numbers among cables with the same seed.
    pub fn new(shape: Shape, seed: u64, stream: u64) -> Cable {
        Cable {
            stats: LinkStats::default(),
            shape,
            up: true,
            busy_until: 0,
            waiting: VecDeque::new(),
            random: Random::new(seed, stream << 8 | 1),
        }
    }

    /// Accepts a frame at a time in nanoseconds, and calls `arrives` with the time of each arrival at the other end:
    /// never if the frame is lost, and at most twice. Times must not decrease.
    pub fn carry(&mut self, now: u64, mut data: Vec<u8>, mut arrives: impl FnMut(u64, Vec<u8>)) {
        self.stats.offered += 1;
        if !self.up {
            self.stats.link_down += 1;
            return;
        }
        if data.len() > self.shape.mtu as usize + ETHERNET {
            self.stats.too_large += 1;
            return;
        }
        self.begun(now);
        let mut done = now;
        if let Some(rate) = self.shape.rate {
            let start = now.max(self.busy_until);
            if start > now {
                if self.waiting.len() >= self.shape.queue as usize {
                    self.stats.queue_full += 1;
                    return;
                }
                self.waiting.push_back((now, start));
                self.stats.longest_queue = self.stats.longest_queue.max(self.waiting.len() as u64);
            }
            done = start + rate.ns_for(data.len() as u64);
            self.busy_until = done;
        }
        self.stats.carried += 1;
        self.stats.carried_bytes += data.len() as u64;
        if self.random.chance(self.shape.loss) {
            self.stats.lost += 1;
            return;
        }
        if self.random.chance(self.shape.corruption) && !data.is_empty() {
            let bit = self.random.below(data.len() as u64 * 8);
            data[(bit / 8) as usize] ^= 1 << (bit % 8);
            self.stats.corrupted += 1;
        }
        let mut at = done + self.shape.delay.as_ns();
        if self.random.chance(self.shape.reordering) {
            at += 1 + self.random.below(self.shape.reorder_by.as_ns().max(1));
            self.stats.reordered += 1;
        }
        if self.random.chance(self.shape.duplication) {
            self.stats.duplicated += 1;
            arrives(at, data.clone());
        }
        arrives(at, data);
    }

    /// Removes the frames whose serialisation has begun.
    fn begun(&mut self, now: u64) {
        while self.waiting.front().is_some_and(|(_, start)| *start <= now) {
            self.waiting.pop_front();
        }
    }

    /// Returns the number of frames that wait at a time that is not before the last frame's serialisation began.
    pub fn waiting_at(&self, now: u64) -> u64 {
        self.waiting.iter().filter(|(came, start)| *came <= now && now < *start).count() as u64
    }

    /// Whether the cable is up.
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// Takes the cable up or down. Frames that wait or are in flight are lost; the owner of those frames discards them.
    pub fn set_up(&mut self, up: bool) {
        self.up = up;
        if !up {
            self.waiting.clear();
            self.busy_until = 0;
        }
    }
}

/// One direction of a simulated link; it belongs to the sending node.
pub struct Direction {
    pub from: End,
    pub to: End,
    pub cable: Cable,
    to_node: usize,
    number: u64,
    /// Number of frames handed over so far.
    sent: u64,
}

impl Direction {
    pub fn new(from: End, to: End, to_node: usize, shape: Shape, seed: u64, number: u64) -> Direction {
        Direction { from, to, cable: Cable::new(shape, seed, number), to_node, number, sent: 0 }
    }

    /// Returns the node at the receiving end.
    pub fn to_node(&self) -> usize {
        self.to_node
    }

    /// Returns the propagation delay in nanoseconds.
    pub fn delay_ns(&self) -> u64 {
        self.cable.shape.delay.as_ns()
    }

    /// Sends a frame, and adds a message to `output` for each time that it arrives.
    pub fn send(&mut self, now: u64, data: Vec<u8>, output: &mut Vec<Message>) {
        let Direction { to, cable, to_node, number, sent, .. } = self;
        cable.carry(now, data, |at, data| {
            *sent += 1;
            let what = What::Frame { port: to.port, sent: now, data };
            // Nothing arrives at the moment in which it is sent, because windows have a length.
            let event = Event::carried(at.max(now + 1), *number, *sent, what);
            output.push(Message { to: *to_node, event });
        });
    }
}
