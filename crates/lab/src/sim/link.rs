//! One direction of a link: frames are serialised one after the other, wait while another is, travel, and may be lost.

use std::collections::VecDeque;

use super::event::{Event, Message, What};
use crate::random::Random;
use crate::topology::{End, Shape};

/// Bytes of the Ethernet header, which the MTU does not count.
const ETHERNET: usize = 14;

/// What one direction of a link did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Frames that were handed to the link.
    pub offered: u64,
    /// Frames that it began to serialise, and their bytes.
    pub carried: u64,
    /// Bytes of those.
    pub carried_bytes: u64,
    /// Frames that found the queue full.
    pub queue_full: u64,
    /// Frames lost by chance.
    pub lost: u64,
    /// Frames larger than the MTU.
    pub too_large: u64,
    /// Frames handed to a link that is down.
    pub link_down: u64,
    /// Frames with a flipped bit.
    pub corrupted: u64,
    /// Frames that arrived twice.
    pub duplicated: u64,
    /// Frames that were held back.
    pub reordered: u64,
    /// The most frames that waited.
    pub longest_queue: u64,
}

impl LinkStats {
    /// Frames that did not arrive.
    pub fn dropped(&self) -> u64 {
        self.queue_full + self.lost + self.too_large + self.link_down
    }
}

/// How one direction of a link treats frames: when each arrives, if it does. It has no clock and no frames of its own,
/// so a simulation and real ports use it alike.
#[derive(Debug)]
pub struct Cable {
    /// What it did.
    pub stats: LinkStats,
    shape: Shape,
    up: bool,
    /// When the last frame is serialised.
    busy_until: u64,
    /// When the frames that wait came, and when each begins to be serialised.
    waiting: VecDeque<(u64, u64)>,
    random: Random,
}

impl Cable {
    /// A cable of this shape. `stream` tells it from others of the same seed.
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

    /// Takes a frame at a time in nanoseconds, and tells `arrives` when it arrives at the other end, if it does: at most
    /// twice. Times may not go back.
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

    /// Forgets the frames that wait no longer.
    fn begun(&mut self, now: u64) {
        while self.waiting.front().is_some_and(|(_, start)| *start <= now) {
            self.waiting.pop_front();
        }
    }

    /// How many frames wait at a time that is not before the last frame began to be serialised.
    pub fn waiting_at(&self, now: u64) -> u64 {
        self.waiting.iter().filter(|(came, start)| *came <= now && now < *start).count() as u64
    }

    /// Whether it carries anything.
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// Takes it up or down. What waits or is on the way is lost; whoever holds it forgets it.
    pub fn set_up(&mut self, up: bool) {
        self.up = up;
        if !up {
            self.waiting.clear();
            self.busy_until = 0;
        }
    }
}

/// One direction of a simulated link, which belongs to the node that sends.
pub struct Direction {
    pub from: End,
    pub to: End,
    pub cable: Cable,
    to_node: usize,
    number: u64,
    /// Frames handed over so far.
    sent: u64,
}

impl Direction {
    pub fn new(from: End, to: End, to_node: usize, shape: Shape, seed: u64, number: u64) -> Direction {
        Direction { from, to, cable: Cable::new(shape, seed, number), to_node, number, sent: 0 }
    }

    /// The node it leads to.
    pub fn to_node(&self) -> usize {
        self.to_node
    }

    /// The time a bit travels, in nanoseconds.
    pub fn delay_ns(&self) -> u64 {
        self.cable.shape.delay.as_ns()
    }

    /// Takes a frame, and says when and how it arrives, if it does.
    pub fn send(&mut self, now: u64, data: Vec<u8>, output: &mut Vec<Message>) {
        let Direction { to, cable, to_node, number, sent, .. } = self;
        cable.carry(now, data, |at, data| {
            *sent += 1;
            let what = What::Frame { port: to.port, sent: now, data };
            // Nothing arrives in the moment in which it is sent: windows have a length.
            let event = Event::carried(at.max(now + 1), *number, *sent, what);
            output.push(Message { to: *to_node, event });
        });
    }
}
