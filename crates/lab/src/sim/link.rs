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

/// One direction of a link, which belongs to the node that sends.
pub struct Direction {
    pub from: End,
    pub to: End,
    pub stats: LinkStats,
    pub up: bool,
    to_node: usize,
    shape: Shape,
    number: u64,
    /// Frames handed over so far.
    sent: u64,
    /// When the last frame is serialised.
    busy_until: u64,
    /// When the frames that wait came, and when each begins to be serialised.
    waiting: VecDeque<(u64, u64)>,
    random: Random,
}

impl Direction {
    pub fn new(from: End, to: End, to_node: usize, shape: Shape, seed: u64, number: u64) -> Direction {
        Direction {
            from,
            to,
            stats: LinkStats::default(),
            up: true,
            to_node,
            shape,
            number,
            sent: 0,
            busy_until: 0,
            waiting: VecDeque::new(),
            random: Random::new(seed, number << 8 | 1),
        }
    }

    /// Takes a frame, and says when and how it arrives, if it does.
    pub fn send(&mut self, now: u64, mut data: Vec<u8>, output: &mut Vec<Message>) {
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
        let mut at = done + self.shape.delay.as_ns().max(1);
        if self.random.chance(self.shape.reordering) {
            at += 1 + self.random.below(self.shape.reorder_by.as_ns().max(1));
            self.stats.reordered += 1;
        }
        if self.random.chance(self.shape.duplication) {
            self.stats.duplicated += 1;
            self.deliver(at, now, data.clone(), output);
        }
        self.deliver(at, now, data, output);
    }

    fn deliver(&mut self, at: u64, sent: u64, data: Vec<u8>, output: &mut Vec<Message>) {
        self.sent += 1;
        let what = What::Frame { port: self.to.port, sent, data };
        output.push(Message { to: self.to_node, event: Event::carried(at, self.number, self.sent, what) });
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

    /// Takes the direction up or down. What waits is lost with the link: the other end drops it on arrival.
    pub fn set_up(&mut self, up: bool) {
        self.up = up;
        if !up {
            self.waiting.clear();
            self.busy_until = 0;
        }
    }
}
