//! Packets of local stacks, whose checksums a card would complete, are handed over.

use crate::rig::{Rig, Way, compile_text};
use rng::SplitMix64;
use wire::checksum;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// The parts of a frame.
#[derive(Clone, Debug)]
struct Parts {
    tags: usize,
    is_ipv6: bool,
    /// Number of words of IPv4 options.
    options: usize,
    protocol: u8,
    payload: usize,
    /// Bytes behind the packet, as short frames have them.
    padding: usize,
}

impl Parts {
    fn random(rng: &mut SplitMix64) -> Parts {
        Parts {
            tags: rng.below(4) as usize,
            is_ipv6: rng.percent(40),
            options: if rng.percent(30) { rng.below(11) as usize } else { 0 },
            protocol: rng.pick(&[(1, TCP), (1, UDP)]),
            payload: rng.below(200) as usize,
            padding: rng.below(3) as usize,
        }
    }

    /// Returns the offset of the transport header.
    fn transport(&self) -> usize {
        14 + 4 * self.tags + if self.is_ipv6 { 40 } else { 20 + 4 * self.options }
    }

    /// Returns the offset of the checksum.
    fn checksum(&self) -> usize {
        self.transport() + if self.protocol == TCP { 16 } else { 6 }
    }

    /// Returns a frame whose checksum is partial, or right.
    fn frame(&self, rng: &mut SplitMix64, is_partial: bool) -> Vec<u8> {
        let header = if self.protocol == TCP { 20 } else { 8 };
        let length = header + self.payload;
        let mut frame: Vec<u8> = (0..12).map(|_| rng.next_u64() as u8).collect();
        for tag in 0..self.tags {
            frame.extend(if tag == 0 { [0x88, 0xa8] } else { [0x81, 0] });
            frame.extend([0, 7]);
        }
        let addresses: Vec<u8> = (0..if self.is_ipv6 { 32 } else { 8 }).map(|_| rng.next_u64() as u8).collect();
        if self.is_ipv6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((length as u16).to_be_bytes());
            frame.extend([self.protocol, 64]);
            frame.extend(&addresses);
        } else {
            let words = 5 + self.options;
            frame.extend([8, 0, 0x40 | words as u8, 0]);
            frame.extend((4 * words as u16 + length as u16).to_be_bytes());
            frame.extend([0, 1, 0x40, 0, 64, self.protocol, 0, 0]);
            frame.extend(&addresses);
            frame.extend(vec![1; 4 * self.options]);
        }
        let mut transport: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
        let at = self.checksum() - self.transport();
        transport[at..at + 2].fill(0);
        let pseudo = checksum::sum(&addresses) + u64::from(self.protocol) + length as u64;
        let field = match is_partial {
            true => checksum::fold(pseudo),
            false => checksum::finish(pseudo + checksum::sum(&transport)),
        };
        transport[at..at + 2].copy_from_slice(&field.to_be_bytes());
        // A right checksum that looks partial is made another one.
        if !is_partial && field == checksum::fold(pseudo) {
            transport[at] ^= 1;
        }
        frame.extend(transport);
        frame.extend(vec![0; self.padding]);
        frame
    }
}

fn rig() -> Rig {
    let program = compile_text(include_str!("two_tables.p4"), None).expect("a valid program");
    let mut rig = Rig::new(&program, |_, _| ());
    rig.set_local_senders(true);
    rig
}

#[test]
fn partial_checksums_are_handed_over_and_finished_ones_are_not() {
    let (mut rig, mut rng) = (rig(), SplitMix64::new(6));
    let mut fast = 0;
    for round in 0..3000 {
        let (parts, is_partial) = (Parts::random(&mut rng), rng.percent(50));
        let frame = parts.frame(&mut rng, is_partial);
        let is_handed_over = rig.packet(0, &frame) == Way::HandedOver;
        // More tags than two are not looked behind.
        assert_eq!(is_handed_over, is_partial || parts.tags > 2, "round {round}: {parts:?}");
        fast += u32::from(!is_handed_over);
    }
    assert!(fast > 900, "{fast} packets stayed");
}

#[test]
fn every_cut_of_a_frame_is_safe() {
    let (mut rig, mut rng) = (rig(), SplitMix64::new(7));
    for _ in 0..40 {
        let (parts, is_partial) = (Parts::random(&mut rng), rng.percent(50));
        let frame = parts.frame(&mut rng, is_partial);
        for length in 1..frame.len().min(120) {
            let way = rig.packet(0, &frame[..length]);
            // What has no checksum field cannot be partial.
            let is_finished = parts.tags <= 2 && length < parts.transport();
            assert!(!is_finished || way != Way::HandedOver, "{length} bytes of {parts:?}");
        }
    }
}

#[test]
fn ports_without_local_senders_are_not_looked_at() {
    let (mut rig, mut rng) = (rig(), SplitMix64::new(8));
    rig.set_local_senders(false);
    for _ in 0..100 {
        let parts = Parts::random(&mut rng);
        let frame = parts.frame(&mut rng, true);
        assert_ne!(rig.packet(0, &frame), Way::HandedOver, "{parts:?}");
    }
}
