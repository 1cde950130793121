//! Multicast, clones, recirculation and resubmission.

use std::collections::HashMap;

use switch::{Egress, Frame, FrameMut, PortId};

use super::{ByHand, Comparison, Counters, loaded};
use crate::cases::{GROUP, SESSION};
use crate::measure::Slot;

const ETHERNET: usize = 14;
const TRAFFIC: &str = "udp,flows=1000,dst=10.0.0.0/16";
const LONG: &str = "udp,flows=1000,dst=10.0.0.0/16,size=1400";

/// What a hand-written program does with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Multicast,
    CloneFromIngress,
    CloneFromEgress,
    Recirculate,
    Resubmit,
}

struct Copies {
    work: Work,
    stations: HashMap<u64, u32>,
    groups: HashMap<u32, Vec<u32>>,
    sessions: HashMap<u32, u32>,
    counters: Counters,
}

pub fn comparisons() -> impl Iterator<Item = Comparison> {
    let all = [
        ("multicast to three ports", Work::Multicast, "multicast", GROUP, TRAFFIC),
        ("multicast to three ports, 1400 bytes", Work::Multicast, "multicast", GROUP, LONG),
        ("clone from ingress", Work::CloneFromIngress, "clone", SESSION, TRAFFIC),
        ("clone from ingress, 1400 bytes", Work::CloneFromIngress, "clone", SESSION, LONG),
        ("clone from egress", Work::CloneFromEgress, "clone_egress", SESSION, TRAFFIC),
        ("recirculate", Work::Recirculate, "recirculate", "", TRAFFIC),
        ("resubmit", Work::Resubmit, "resubmit", "", TRAFFIC),
    ];
    all.into_iter().map(|(name, work, program, entries, traffic)| {
        let prepare = move || {
            let program = format!("crates/v1model_runtime/benches/survey/programs/{program}.p4");
            let by_hand: Box<dyn ByHand> = Box::new(Copies {
                work,
                stations: HashMap::new(),
                groups: HashMap::from([(1, vec![1, 2, 3, 4])]),
                sessions: HashMap::from([(1, 5)]),
                counters: Counters::default(),
            });
            (loaded(&program, entries, traffic), by_hand)
        };
        Comparison { name, bound: 3.0, prepare: Box::new(prepare) }
    })
}

/// Returns the Ethernet header of a frame.
fn header(bytes: &mut [u8]) -> Option<&mut [u8; ETHERNET]> {
    bytes.first_chunk_mut()
}

fn mac(bytes: &[u8]) -> u64 {
    let mut mac = [0; 8];
    mac[2..].copy_from_slice(&bytes[..6]);
    u64::from_be_bytes(mac)
}

fn set_source(header: &mut [u8; ETHERNET], mac: u64) {
    header[6..12].copy_from_slice(&mac.to_be_bytes()[2..]);
}

fn increment_source(bytes: &mut [u8]) {
    if let Some(header) = header(bytes) {
        set_source(header, mac(&header[6..]).wrapping_add(1));
    }
}

/// Makes a frame of its own from a frame in place.
fn copy(bytes: &[u8], port: u32) -> Frame {
    Frame { port: PortId(port), data: bytes.to_vec() }
}

impl Copies {
    /// Returns the destination's port, or the members of the group for unknown stations.
    fn flood(&mut self, port: PortId, index: usize, bytes: &mut [u8], left: &mut Vec<Egress>) {
        let Some(header) = header(bytes) else { return };
        if let Some(port) = self.stations.get(&mac(&header[..6])) {
            self.counters.send(*port, bytes.len());
            left.push(Egress::InPlace { index, port: PortId(*port) });
            return;
        }
        let members = &self.groups[&1];
        for member in &members[..members.len() - 1] {
            if *member == port.0 {
                self.counters.queue(*member);
                self.counters.dropped += 1;
                continue;
            }
            let mut frame = copy(bytes, *member);
            if let Some(header) = self::header(&mut frame.data) {
                set_source(header, 0x02aa_bbcc_dd00 | u64::from(*member));
            }
            self.counters.send(*member, frame.data.len());
            left.push(Egress::Owned(frame));
        }
        // The last copy is the frame itself.
        let last = members[members.len() - 1];
        if let Some(header) = self::header(bytes) {
            set_source(header, 0x02aa_bbcc_dd00 | u64::from(last));
        }
        self.counters.send(last, bytes.len());
        left.push(Egress::InPlace { index, port: PortId(last) });
    }

    fn clone_to_monitor(&mut self, bytes: &[u8]) -> Option<Egress> {
        let monitor = *self.sessions.get(&1)?;
        let mut frame = copy(bytes, monitor);
        header(&mut frame.data)?[12..14].copy_from_slice(&[0x88, 0xb5]);
        self.counters.send(monitor, frame.data.len());
        Some(Egress::Owned(frame))
    }
}

impl ByHand for Copies {
    fn run(&mut self, port: PortId, frames: &mut [Slot], left: &mut Vec<Egress>) {
        self.counters.receive(port, frames);
        if self.work == Work::Recirculate {
            // A packet is complete before it comes again: its header is written, and parsed once more.
            for frame in &mut *frames {
                let (room, start) = frame.headroom();
                increment_source(&mut room[start..]);
                self.counters.queue(2);
            }
        }
        for (index, frame) in frames.iter_mut().enumerate() {
            let (room, start) = frame.headroom();
            let bytes = &mut room[start..];
            match self.work {
                Work::Multicast => {
                    self.flood(port, index, bytes, left);
                    continue;
                }
                Work::CloneFromIngress => {
                    left.extend(self.clone_to_monitor(bytes));
                    header(bytes).into_iter().for_each(|header| set_source(header, 0x0200_0000_0001));
                }
                Work::CloneFromEgress => {
                    header(bytes).into_iter().for_each(|header| set_source(header, 0x0200_0000_0001))
                }
                Work::Recirculate => increment_source(bytes),
                Work::Resubmit => {
                    let Some(header) = header(bytes) else { continue };
                    let original = *header;
                    set_source(header, mac(&header[6..]).wrapping_add(1));
                    *header = std::hint::black_box(original);
                    increment_source(bytes);
                }
            }
            self.counters.send(2, bytes.len());
            left.push(Egress::InPlace { index, port: PortId(2) });
            if self.work == Work::CloneFromEgress {
                left.extend(self.clone_to_monitor(bytes));
            }
        }
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
