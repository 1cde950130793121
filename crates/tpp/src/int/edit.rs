//! Changes the bytes of a frame under a UDP or TCP checksum, and keeps lengths and checksums right.

use wire::checksum;
use wire::int::IntPlace;

use super::{IntMutant, IntMutation};

/// Changes of one frame behind the UDP or TCP header at a place. Checksums are updated and never computed anew, so that
/// damage from before remains visible (INT 2.1, section 5.6).
pub(super) struct FrameEdit<'a> {
    frame: &'a mut Vec<u8>,
    place: IntPlace,
    /// Sum of the changes of words that the UDP or TCP checksum covers.
    delta: u64,
    mutation: IntMutation,
}

fn get16(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

fn put16(frame: &mut [u8], at: usize, value: u16) {
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Changes a word of the IP header, and the checksum of IPv4.
pub(super) fn put_ip_word(frame: &mut [u8], place: IntPlace, offset: usize, value: u16, mutation: IntMutation) {
    let at = place.ip + offset;
    let old = get16(frame, at);
    put16(frame, at, value);
    if !place.is_ipv6 && !mutation.is(IntMutant::IpChecksumStays) {
        let sum = get16(frame, place.ip + 10);
        put16(frame, place.ip + 10, checksum::update(sum, old, value));
    }
}

/// Changes the length of the IP packet.
pub(super) fn grow_ip(frame: &mut [u8], place: IntPlace, growth: isize, mutation: IntMutation) {
    if mutation.is(IntMutant::IpLengthStays) {
        return;
    }
    let offset = if place.is_ipv6 { 4 } else { 2 };
    let len = grown(get16(frame, place.ip + offset), growth);
    put_ip_word(frame, place, offset, len, mutation);
}

fn grown(len: u16, growth: isize) -> u16 {
    u16::try_from(len as isize + growth).expect("the caller has checked the length")
}

impl<'a> FrameEdit<'a> {
    pub fn new(frame: &'a mut Vec<u8>, place: IntPlace, mutation: IntMutation) -> FrameEdit<'a> {
        FrameEdit { frame, place, delta: 0, mutation }
    }

    /// Returns the word at an offset of the frame.
    pub fn word(&self, at: usize) -> u16 {
        get16(self.frame, at)
    }

    /// Changes a word. Its offset from the UDP or TCP header is even.
    pub fn put(&mut self, at: usize, value: u16) {
        self.delta += u64::from(!get16(self.frame, at)) + u64::from(value);
        put16(self.frame, at, value);
    }

    /// Inserts whole words of 4 bytes.
    pub fn insert(&mut self, at: usize, bytes: &[u8]) {
        self.delta += checksum::sum(bytes);
        self.frame.splice(at..at, bytes.iter().copied());
    }

    /// Removes whole words of 4 bytes.
    pub fn remove(&mut self, at: usize, len: usize) {
        self.delta += u64::from(!checksum::fold(checksum::sum(&self.frame[at..at + len])));
        self.frame.drain(at..at + len);
    }

    /// Completes lengths and checksums of a packet that has become `growth` bytes longer.
    pub fn finish(mut self, growth: isize) {
        let IntPlace { transport, is_udp, end, .. } = self.place;
        let mutation = self.mutation;
        if growth != 0 {
            grow_ip(self.frame, self.place, growth, mutation);
            let old = u16::try_from(end - transport).expect("the length of an IP packet has 16 bits");
            let new = grown(old, growth);
            if is_udp && !mutation.is(IntMutant::UdpLengthStays) {
                self.put(transport + 4, new);
            }
            if !mutation.is(IntMutant::PseudoLengthStays) {
                self.delta += u64::from(!old) + u64::from(new);
            }
        }
        let at = transport + if is_udp { 6 } else { 16 };
        let sum = get16(self.frame, at);
        let is_without = is_udp && sum == 0 && !mutation.is(IntMutant::ZeroChecksumUpdated);
        if is_without || mutation.is(IntMutant::ChecksumStays) {
            return;
        }
        let value = match checksum::finish(u64::from(!sum) + self.delta) {
            0 if is_udp && !mutation.is(IntMutant::ZeroResultSent) => 0xffff,
            value => value,
        };
        put16(self.frame, at, value);
    }
}
