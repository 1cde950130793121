//! A network that loses, duplicates, delays and damages frames, and changes the fields that routers change.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rng::SplitMix64;

use super::Scenario;

/// An end of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    Requester,
    Responder,
}

/// Time of arrival, number, receiver and bytes of a frame.
type FrameUnderWay = (u64, u64, Node, Vec<u8>);

#[derive(Default)]
pub struct Network {
    frames: BinaryHeap<Reverse<FrameUnderWay>>,
    sent: u64,
    /// Whether it has become reliable.
    pub is_healed: bool,
}

impl Network {
    pub fn next_time(&self) -> Option<u64> {
        self.frames.peek().map(|Reverse((time, ..))| *time)
    }

    pub fn pop(&mut self) -> Option<(Node, Vec<u8>)> {
        self.frames.pop().map(|Reverse((_, _, node, frame))| (node, frame))
    }

    pub fn sent(&self) -> u64 {
        self.sent
    }

    pub fn send(&mut self, now: u64, to: Node, frame: &[u8], scenario: &Scenario, rng: &mut SplitMix64) {
        let times = match (self.is_healed, rng.below(100)) {
            (false, chance) if chance < scenario.loss => 0,
            (false, chance) if chance < scenario.loss + scenario.copies => 2,
            _ => 1,
        };
        for _ in 0..times {
            let mut delay = 500 + rng.below(scenario.max_delay_ns);
            if !self.is_healed && rng.percent(scenario.stragglers) {
                delay += rng.below(2_000_000);
            }
            let mut frame = frame.to_vec();
            route(&mut frame, rng);
            if !self.is_healed && rng.percent(scenario.corruption) {
                damage(&mut frame, rng);
            }
            self.sent += 1;
            self.frames.push(Reverse((now + delay, self.sent, to, frame)));
        }
    }
}

/// Changes the fields that routers and switches may change: traffic class, hop limit, flow label, congestion bits, and
/// adds padding.
fn route(frame: &mut Vec<u8>, rng: &mut SplitMix64) {
    if frame.len() < 75 {
        return;
    }
    let transport = if frame[14] >> 4 == 4 {
        frame[15] = rng.next_u64() as u8;
        frame[22] -= 1;
        frame[24..26].fill(rng.next_u64() as u8);
        34
    } else {
        frame[15] = rng.next_u64() as u8;
        frame[17] = rng.next_u64() as u8;
        frame[21] -= 1;
        54
    };
    frame[transport + 6] = rng.next_u64() as u8;
    frame[transport + 8 + 4] = rng.next_u64() as u8;
    if rng.percent(10) {
        frame.extend([0xcc; 5]);
    }
}

/// Changes one to three bits after the Ethernet header, or truncates the frame.
fn damage(frame: &mut Vec<u8>, rng: &mut SplitMix64) {
    if rng.percent(10) {
        frame.truncate(rng.below(frame.len() as u64) as usize);
        return;
    }
    for _ in 0..=rng.below(3) {
        let at = 14 + rng.below(frame.len() as u64 - 14) as usize;
        frame[at] ^= 1 << rng.below(8);
    }
}
