//! Processes In-band Network Telemetry, INT-MD, in the frames of a switch (P4.org Applications Working Group, *INT
//! Dataplane Specification* 2.1): the metadata of a hop come from the rows of the [map](crate::map) that name an INT
//! field.
//!
//! A [transit](IntNode::transit) puts its metadata on the stack of a packet; a [sink](IntNode::sink) removes INT and
//! reports; a [source](IntNode::source) adds an empty stack. All other frames keep every byte, as do frames whose INT
//! header is malformed or has an inconsistent length. Checksums are updated, so the checksum complement is not used and
//! is all ones (section 5.6).

mod edit;
mod fields;
mod mutant;

pub use fields::{INSTRUCTIONS, fields, values};
pub use mutant::{IntMutant, IntMutation};

use wire::Malformed;
use wire::int::report::Repr as Report;
use wire::int::{HEADER_LEN, IntPlace, Marker, NextProtocol, Repr, SHIM_LEN, WORD, find, place_for};

use crate::SwitchMemory;
use crate::map::{IntField, int_sources};
use edit::{FrameEdit, grow_ip, put_ip_word};

/// Maximum number of words in header and stack.
const MAX_WORDS: usize = 0xff;
/// Bits of the instructions that a report may name (Telemetry Report Format 2.0, section 3.3.1).
const REPORTED: [u16; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

/// What a node did with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntVerdict {
    /// The frame has no INT.
    Absent,
    /// The metadata are on the stack.
    Inserted,
    /// No hops remained; the packet says so.
    HopsExceeded,
    /// The packet would exceed the MTU; it says so.
    MtuExceeded,
    /// The stack has no room for another hop. The frame is unchanged.
    StackFull,
    /// The header is malformed or has an inconsistent length. The frame is unchanged.
    Malformed(Malformed),
}

/// What a sink took off a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntRemoval {
    /// The report for the collector (Telemetry Report Format 2.0), the payload of a datagram.
    pub report: Vec<u8>,
    /// Whether the source asks the sink to discard the packet.
    pub is_discarded: bool,
}

/// A field of the metadata, and the address of its row.
#[derive(Clone, Copy, Debug)]
struct MetadataField {
    field: IntField,
    address: Option<u32>,
}

/// A node of an INT domain.
#[derive(Clone, Debug)]
pub struct IntNode {
    marker: Marker,
    fields: Vec<MetadataField>,
    mutation: IntMutation,
}

impl IntNode {
    /// Creates a node of the domain whose packets have this marker.
    pub fn new(marker: Marker) -> IntNode {
        IntNode::with_mutation(marker, IntMutation::default())
    }

    /// Creates a node with an error, in test builds.
    pub fn with_mutation(marker: Marker, mutation: IntMutation) -> IntNode {
        let fields = int_sources(u16::MAX).map(|source| {
            let address = source.row.map(|row| u32::from(row.address()));
            MetadataField { field: source.field, address }
        });
        IntNode { marker, fields: fields.collect(), mutation }
    }

    /// Returns the marker of the domain.
    pub fn marker(&self) -> Marker {
        self.marker
    }

    /// Whether a frame has the marker. Its INT header may be malformed.
    #[inline]
    pub fn is_marked(&self, frame: &[u8]) -> bool {
        find(frame, self.marker).is_some()
    }

    fn is(&self, mutant: IntMutant) -> bool {
        self.mutation.is(mutant)
    }

    /// Adds the metadata of this hop to a frame that leaves. The IP packet has at most `max_len` bytes afterwards.
    pub fn transit<M: SwitchMemory>(&self, frame: &mut Vec<u8>, max_len: usize, memory: &mut M) -> IntVerdict {
        let Some(place) = find(frame, self.marker) else { return IntVerdict::Absent };
        let packet = match place.packet(frame) {
            Ok(packet) => packet,
            Err(malformed) => return IntVerdict::Malformed(malformed),
        };
        let (hop, words) = (packet.hop_len(), (packet.length() - SHIM_LEN) / WORD + packet.hop_len() / WORD);
        let (instructions, remaining, stack_len) =
            (packet.instructions(), packet.remaining_hops(), packet.stack().len());
        if remaining == 0 && !self.is(IntMutant::ExceededHopsAdd) {
            if !self.is(IntMutant::HopsFlagStays) {
                self.set_flag(frame, place, 0x0400);
            }
            return IntVerdict::HopsExceeded;
        }
        if words > MAX_WORDS && !self.is(IntMutant::ShimLengthWraps) {
            return IntVerdict::StackFull;
        }
        let is_too_long = place.packet_len(frame) + hop > max_len.min(usize::from(u16::MAX));
        if is_too_long && !self.is(IntMutant::MtuIgnored) {
            if !self.is(IntMutant::MtuFlagStays) {
                self.set_flag(frame, place, 0x0200);
            }
            if self.is(IntMutant::MtuTakesHop) {
                frame[place.start + 7] -= 1;
            }
            return IntVerdict::MtuExceeded;
        }
        let metadata = self.metadata(instructions, hop, memory);
        let mut edit = FrameEdit::new(frame, place, self.mutation);
        if !self.is(IntMutant::ShimLengthStays) {
            let shim = edit.word(place.start);
            edit.put(place.start, shim & 0xff00 | (words & 0xff) as u16);
        }
        if !self.is(IntMutant::RemainingStays) {
            let counts = edit.word(place.start + 6);
            edit.put(place.start + 6, counts & 0xff00 | u16::from(remaining.wrapping_sub(1)));
        }
        let top = place.start + SHIM_LEN + HEADER_LEN;
        edit.insert(if self.is(IntMutant::StackAtEnd) { top + stack_len } else { top }, &metadata);
        edit.finish(metadata.len() as isize);
        IntVerdict::Inserted
    }

    /// Removes INT from a frame, restores the packet that the source received, and reports. `number` returns the number
    /// of the report.
    ///
    /// # Errors
    /// Returns [`IntVerdict::Absent`] or [`IntVerdict::Malformed`]; the frame is unchanged.
    pub fn sink<M: SwitchMemory>(
        &self,
        frame: &mut Vec<u8>,
        node: u32,
        number: impl FnOnce() -> u32,
        memory: &mut M,
    ) -> Result<IntRemoval, IntVerdict> {
        let place = find(frame, self.marker).ok_or(IntVerdict::Absent)?;
        let packet = place.packet(frame).map_err(IntVerdict::Malformed)?;
        let (len, next, is_discarded) = (packet.length(), packet.next_protocol(), packet.is_discarded());
        let (metadata_bits, metadata) = self.reported(packet.instructions(), memory);
        let end = if self.is(IntMutant::ReportWithoutStack) { place.start } else { place.start + len };
        let (sequence, is_ipv6, packet) = (number(), place.is_ipv6, &frame[place.ip..end]);
        let report = Report { node, sequence, metadata_bits, metadata: &metadata, is_ipv6, packet }.emit();
        self.take_off(frame, place, len, next);
        Ok(IntRemoval { report, is_discarded })
    }

    /// Adds an empty stack to a packet of a source. `repr` says what each hop adds; its `next` is set from the packet.
    /// Returns false, with the frame unchanged, if the packet is not one of UDP, or of TCP for a DSCP; if the IP packet
    /// would exceed `max_len` bytes; or if it is marked already.
    pub fn source(&self, frame: &mut Vec<u8>, repr: Repr, max_len: usize) -> bool {
        let Some((place, own)) = place_for(frame, self.marker).filter(|(_, own)| *own != self.marker) else {
            return false;
        };
        let next = match own {
            Marker::UdpPort(port) => NextProtocol::UdpPayload { port },
            Marker::Dscp(dscp) => NextProtocol::Payload { dscp },
        };
        let bytes = Repr { next, ..repr }.packet(&[]);
        if place.packet_len(frame) + bytes.len() > max_len.min(usize::from(u16::MAX)) {
            return false;
        }
        let mut edit = FrameEdit::new(frame, place, self.mutation);
        edit.insert(place.start, &bytes);
        if let Marker::UdpPort(port) = self.marker {
            edit.put(place.transport + 2, port);
        }
        edit.finish(bytes.len() as isize);
        if let Marker::Dscp(dscp) = self.marker {
            self.put_dscp(frame, place, dscp);
        }
        true
    }

    /// Sets bits of the first word of the metadata header.
    fn set_flag(&self, frame: &mut Vec<u8>, place: IntPlace, flag: u16) {
        let mut edit = FrameEdit::new(frame, place, self.mutation);
        let flags = edit.word(place.start + SHIM_LEN);
        edit.put(place.start + SHIM_LEN, flags | flag);
        edit.finish(0);
    }

    fn put_dscp(&self, frame: &mut [u8], place: IntPlace, dscp: u8) {
        // The traffic class is the second byte of IPv4, and has four bits less before it in IPv6.
        let shift = if place.is_ipv6 { 6 } else { 2 };
        let old = u16::from_be_bytes([frame[place.ip], frame[place.ip + 1]]);
        let ecn = if self.is(IntMutant::EcnCleared) { 3 << (shift - 2) } else { 0 };
        let new = old & !(0x3f << shift | ecn) | u16::from(dscp) << shift;
        put_ip_word(frame, place, 0, new, self.mutation);
    }

    /// Removes `len` bytes of INT, and restores what the marker replaced.
    fn take_off(&self, frame: &mut Vec<u8>, place: IntPlace, len: usize, next: NextProtocol) {
        if let NextProtocol::Transport { protocol } = next {
            let start = if self.is(IntMutant::InsertedHeaderStays) { place.start } else { place.transport };
            let removed = place.start + len - start;
            frame.drain(start..place.start + len);
            grow_ip(frame, place, -(removed as isize), self.mutation);
            if !self.is(IntMutant::ProtocolStays) {
                // The protocol is a low byte in IPv4, and a high one in IPv6.
                let (offset, shift) = if place.is_ipv6 { (6, 8) } else { (8, 0) };
                let old = u16::from_be_bytes([frame[place.ip + offset], frame[place.ip + offset + 1]]);
                let new = old & !(0xff << shift) | u16::from(protocol) << shift;
                put_ip_word(frame, place, offset, new, self.mutation);
            }
            return;
        }
        let mut edit = FrameEdit::new(frame, place, self.mutation);
        edit.remove(place.start, len);
        if let (NextProtocol::UdpPayload { port }, false) = (next, self.is(IntMutant::PortStays)) {
            edit.put(place.transport + 2, port);
        }
        edit.finish(-(len as isize));
        if let (NextProtocol::Payload { dscp }, false) = (next, self.is(IntMutant::DscpStays)) {
            self.put_dscp(frame, place, dscp);
        }
    }

    /// Returns the metadata of this hop: `len` bytes, at least as many as the instructions request.
    fn metadata<M: SwitchMemory>(&self, instructions: u16, len: usize, memory: &mut M) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len);
        self.append(instructions, &mut bytes, memory);
        // Words of reserved instructions and of domains are unknown, and the checksum complement is not used.
        bytes.resize(len, if self.is(IntMutant::RestIsZero) { 0 } else { 0xff });
        bytes
    }

    /// Appends the fields that instructions request, in wire order. Returns the instructions with a value.
    fn append<M: SwitchMemory>(&self, instructions: u16, bytes: &mut Vec<u8>, memory: &mut M) -> u16 {
        let (mut word, mut bits, mut known) = (0u64, 0, 0);
        for MetadataField { field, address } in &self.fields {
            let bit = 0x8000 >> field.bit;
            if instructions & bit == 0 {
                continue;
            }
            let ones = u64::MAX >> (64 - field.width);
            let value = match address.and_then(|address| memory.read(address)) {
                Some(value) => {
                    known |= bit;
                    self.fitting(value, ones)
                }
                None if self.is(IntMutant::AbsentIsZero) => 0,
                None => ones,
            };
            word = if field.width == 64 { value } else { word << field.width | value };
            bits += field.width;
            if bits % 32 == 0 {
                bytes.extend_from_slice(&word.to_be_bytes()[8 - bits as usize / 8..]);
                (word, bits) = (0, 0);
            }
        }
        known
    }

    /// Returns a value that fits into a field, and is not all ones, which means absent.
    fn fitting(&self, value: u64, ones: u64) -> u64 {
        if self.is(IntMutant::LargeValueWraps) {
            return value & ones;
        }
        value.min(if self.is(IntMutant::LargeValueLooksAbsent) { ones } else { ones - 1 })
    }

    /// Returns the metadata of this hop that it has, and their bitmap, for a report.
    fn reported<M: SwitchMemory>(&self, instructions: u16, memory: &mut M) -> (u16, Vec<u8>) {
        let (mut bitmap, mut bytes) = (0, Vec::new());
        for bit in REPORTED.map(|bit| instructions & 0x8000 >> bit) {
            let before = bytes.len();
            if self.append(bit, &mut bytes, memory) != 0 || self.is(IntMutant::ReportOfAbsent) {
                bitmap |= bit;
            } else {
                bytes.truncate(before);
            }
        }
        (bitmap, bytes)
    }
}
