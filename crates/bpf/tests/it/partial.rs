//! Checksums that local stacks leave to a card are completed, as the switch's ports do.

use crate::kernel::InKernel;
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
        let parts = Parts {
            tags: rng.below(4) as usize,
            is_ipv6: rng.percent(40),
            options: if rng.percent(30) { rng.below(11) as usize } else { 0 },
            protocol: rng.pick(&[(1, TCP), (1, UDP)]),
            payload: rng.pick(&[(9, 200), (1, 1400)]) as usize,
            padding: rng.below(3) as usize,
        };
        Parts { payload: rng.below(parts.payload as u64) as usize, ..parts }
    }

    /// Returns the offset of the transport header.
    fn transport(&self) -> usize {
        14 + 4 * self.tags + if self.is_ipv6 { 40 } else { 20 + 4 * self.options }
    }

    /// Returns the offset of the checksum.
    fn checksum(&self) -> usize {
        self.transport() + if self.protocol == TCP { 16 } else { 6 }
    }

    /// Returns the number of bytes of the transport header and its payload.
    fn segment(&self) -> usize {
        self.payload + if self.protocol == TCP { 20 } else { 8 }
    }

    /// Completes a frame's checksum.
    fn complete(&self, frame: &[u8]) -> Vec<u8> {
        let (mut completed, start) = (frame.to_vec(), self.transport());
        assert!(checksum::complete(&mut completed[start..start + self.segment()], 0, self.checksum() - start));
        completed
    }

    /// Sets the last two bytes of the segment, which has a payload of an even length, so that `count` times the
    /// checksum field and all other words add up to -1.
    fn balance(&self, frame: &mut [u8], count: u64) {
        let (start, end) = (self.transport(), self.transport() + self.segment());
        frame[end - 2..end].fill(0);
        let field = u16::from_be_bytes([frame[self.checksum()], frame[self.checksum() + 1]]);
        let rest = !checksum::fold(checksum::sum(&frame[start..end]) + (count - 1) * u64::from(field));
        frame[end - 2..end].copy_from_slice(&rest.to_be_bytes());
    }

    /// Returns a frame whose checksum is partial, or right.
    fn frame(&self, rng: &mut SplitMix64, is_partial: bool) -> Vec<u8> {
        let length = self.segment();
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
fn partial_checksums_are_completed_and_finished_ones_are_left_alone() {
    let (mut rig, mut rng) = (rig(), SplitMix64::new(6));
    let mut sent = 0;
    for round in 0..3000 {
        let (parts, is_partial) = (Parts::random(&mut rng), rng.percent(50));
        let frame = parts.frame(&mut rng, is_partial);
        let completed = if is_partial { parts.complete(&frame) } else { frame.clone() };
        let way = rig.packet_as(0, &frame, &completed);
        // More tags than two are not looked behind.
        assert_eq!(way == Way::HandedOver, parts.tags > 2, "round {round}: {parts:?}");
        sent += u32::from(matches!(way, Way::Sent { .. }));
    }
    assert!(sent > 1000, "{sent} packets were sent");
}

#[test]
fn a_checksum_that_is_right_and_looks_partial_stays() {
    let (mut rig, mut rng) = (rig(), SplitMix64::new(9));
    for _ in 0..200 {
        let parts =
            Parts { tags: rng.below(3) as usize, payload: 2 * (1 + rng.below(50) as usize), ..Parts::random(&mut rng) };
        let mut frame = parts.frame(&mut rng, true);
        if rng.percent(50) {
            // The sum of the pseudo-header is 0xffff: completed, the checksum would be the other form of it, 0.
            let field = parts.checksum();
            let sum = u64::from(u16::from_be_bytes([frame[field], frame[field + 1]]));
            let last = parts.transport() - if parts.is_ipv6 { 2 } else { 4 * parts.options + 2 };
            let word = u64::from(u16::from_be_bytes([frame[last], frame[last + 1]]));
            let balanced = !checksum::fold(sum + u64::from(!(word as u16)));
            frame[last..last + 2].copy_from_slice(&balanced.to_be_bytes());
            frame[field..field + 2].fill(0xff);
        }
        parts.balance(&mut frame, 2);
        assert_ne!(rig.packet(0, &frame), Way::HandedOver, "{parts:?}");
    }
}

#[test]
fn a_checksum_of_zero_is_written_as_each_protocol_expects_it() {
    let (mut rig, mut rng, mut seen) = (rig(), SplitMix64::new(10), [0; 2]);
    for _ in 0..200 {
        let parts =
            Parts { tags: rng.below(3) as usize, payload: 2 * (1 + rng.below(50) as usize), ..Parts::random(&mut rng) };
        let mut frame = parts.frame(&mut rng, true);
        parts.balance(&mut frame, 1);
        let completed = parts.complete(&frame);
        let field = if parts.protocol == TCP { [0; 2] } else { [0xff; 2] };
        assert_eq!(completed[parts.checksum()..parts.checksum() + 2], field);
        assert_ne!(rig.packet_as(0, &frame, &completed), Way::HandedOver, "{parts:?}");
        seen[usize::from(parts.protocol == TCP)] += 1;
    }
    assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
}

#[test]
fn a_segment_that_is_not_all_there_is_handed_over() {
    let (mut rig, mut rng) = (rig(), SplitMix64::new(11));
    let parts = Parts { tags: 1, is_ipv6: false, options: 0, protocol: UDP, payload: 20, padding: 0 };
    let frame = parts.frame(&mut rng, true);
    // The length of the packet, and with it the sum of the pseudo-header.
    for (change, is_fast) in
        [(0i32, true), (-20, true), (-21, false), (-27, false), (-28, false), (1, false), (4000, false)]
    {
        let mut frame = frame.clone();
        let total = (48 + change) as u16;
        frame[20..22].copy_from_slice(&total.to_be_bytes());
        let addresses = checksum::sum(&frame[30..38]);
        let field = checksum::fold(addresses + u64::from(UDP) + (28 + change) as u64);
        frame[44..46].copy_from_slice(&field.to_be_bytes());
        let mut completed = frame.clone();
        if is_fast {
            let end = (38 + 28 + change) as usize;
            assert!(checksum::complete(&mut completed[38..end], 0, 6));
        }
        let way = rig.packet_as(0, &frame, &completed);
        assert_eq!(way != Way::HandedOver, is_fast, "{change} bytes");
    }
}

#[test]
fn the_kernel_completes_the_same_checksums() {
    let (rig, mut rng) = (rig(), SplitMix64::new(12));
    let kernel = match InKernel::load_for(&rig, 1, true) {
        Ok(kernel) => kernel,
        Err(error) => return testing::skip(&format!("needs root: {error}")),
    };
    for _ in 0..1000 {
        let (parts, is_partial) = (Parts::random(&mut rng), rng.percent(70));
        kernel.compare(&rig, 0, &parts.frame(&mut rng, is_partial));
    }
    eprintln!("{} instructions processed", kernel.verified_instructions());
}

#[test]
fn every_cut_of_a_frame_is_safe() {
    let (mut rig, mut rng) = (rig(), SplitMix64::new(7));
    for _ in 0..40 {
        let (parts, is_partial) = (Parts::random(&mut rng), rng.percent(50));
        let frame = parts.frame(&mut rng, is_partial);
        for length in 1..frame.len().min(120) {
            let end = parts.transport() + parts.segment();
            let is_whole = length >= end && is_partial;
            let completed = if is_whole { parts.complete(&frame)[..length].to_vec() } else { frame[..length].to_vec() };
            let way = rig.packet_as(0, &frame[..length], &completed);
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
