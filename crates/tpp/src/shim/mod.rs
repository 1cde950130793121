//! Inserts programs into the packets that a host sends, and takes them out of those that it receives (paper, section
//! 4.2).
//!
//! ```text
//! applications ──> sent: first filter that matches and samples ──> insert ──> network
//! applications <── received: strip ──┬──────────────────────────────────────  network
//! aggregator   <── CollectedProgram ─┘ if the program is expected
//! ```
//!
//! [`Shim`] works on frames. It keeps their order, holds none back, and makes none longer than the MTU permits: a
//! packet for which there is no room is sent without program, and counted. So that full segments have room, it lowers
//! the maximum segment size of the TCP connections that a filter selects.

mod filter;
mod segment_size;

use wire::tpp::{self as wire_format, Addressing, ETHERTYPE, Packet, Status};
use wire::{ethernet, ipv4, ipv6, tcp, udp};

use crate::asm::TinyProgram;

pub use filter::{AddressPrefix, PacketFilter, PacketFlow};
pub use segment_size::{LEAST_IPV4, LEAST_IPV6};

/// Maximum number of filters of a host, and of programs that it expects.
pub const MAX_FILTERS: usize = 4096;

/// The reason why a filter was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// Switches send reflective programs back, and with them the packets that carry them.
    #[error("a reflective program would send the packets that carry it back")]
    Reflective,
    /// A program that is done is not executed.
    #[error("the program is marked as done, so no switch executes it")]
    Done,
    /// The sampling has no packets.
    #[error("a program in one of 0 packets is in none")]
    NeverSampled,
    /// There are [`MAX_FILTERS`].
    #[error("there are {MAX_FILTERS} filters already")]
    TooMany,
}

/// Counts of one filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterCounts {
    /// Packets that reached the filter and matched.
    pub matched: u64,
    /// Packets that got the program.
    pub inserted: u64,
    /// Packets that were sampled, but had no room for the program.
    pub too_long: u64,
}

/// Counts of a host's received programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiptCounts {
    /// Programs that were taken out of packets and collected.
    pub collected: u64,
    /// Programs that are not expected. Their packets are delivered without them.
    pub foreign: u64,
    /// Programs with a wrong checksum. A packet is delivered without its program if its own checksum is right, and
    /// dropped otherwise.
    pub damaged: u64,
    /// Frames with a malformed program, which hides where their packet begins. They are dropped.
    pub malformed: u64,
}

/// A program that arrived at the end of its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectedProgram {
    /// The flow of the packet that carried it; `None` if that was no IP packet.
    pub flow: Option<PacketFlow>,
    /// Header, instructions and memory.
    pub bytes: Vec<u8>,
}

impl CollectedProgram {
    /// Returns the handle of its application.
    pub fn application(&self) -> u16 {
        self.packet().application()
    }

    /// Returns the program with the words that the switches wrote.
    pub fn program(&self) -> TinyProgram {
        TinyProgram::decode(&self.packet())
    }

    fn packet(&self) -> Packet<&[u8]> {
        Packet::new_checked(&self.bytes[..]).expect("it was checked when it was collected")
    }
}

#[derive(Clone, Debug)]
struct ShimFilter {
    number: usize,
    priority: u32,
    filter: PacketFilter,
    /// A program is inserted into one of this number of packets.
    one_in: u32,
    program: TinyProgram,
    len: usize,
    counts: FilterCounts,
}

/// A program that hosts insert into packets to this one.
#[derive(Clone, Debug)]
struct ExpectedProgram {
    filter: PacketFilter,
    program: TinyProgram,
}

impl ExpectedProgram {
    /// Whether this is the program as it arrives: switches change its memory, hop number, stack pointer and status.
    fn is(&self, flow: &PacketFlow, found: &TinyProgram) -> bool {
        let (own, other) = (&self.program.repr, &found.repr);
        let is_same_memory = match (own.addressing, other.addressing) {
            (Addressing::Hop { len }, Addressing::Hop { len: other }) => len == other,
            (Addressing::Stack { .. }, Addressing::Stack { .. }) => true,
            _ => false,
        };
        self.filter.matches(flow)
            && is_same_memory
            && self.program.memory.len() == found.memory.len()
            && self.program.instructions == found.instructions
            && (own.word_size, own.application, own.is_read_only)
                == (other.word_size, other.application, other.is_read_only)
    }
}

/// The shim of a host between its stack and its interface.
#[derive(Clone, Debug)]
pub struct Shim {
    /// Maximum length of an IP packet, in bytes.
    mtu: usize,
    /// In the order in which they are tried.
    filters: Vec<ShimFilter>,
    expected: Vec<ExpectedProgram>,
    counts: ReceiptCounts,
}

impl Shim {
    /// Creates a shim without filters for an interface with this MTU.
    pub fn new(mtu: usize) -> Shim {
        Shim { mtu, filters: Vec::new(), expected: Vec::new(), counts: ReceiptCounts::default() }
    }

    /// Adds a filter, and returns its number. Packets that match get the program, one of `one_in` on average. Filters
    /// with higher priorities come first; of equal ones, the older.
    ///
    /// # Errors
    /// If the program may not be in other packets, `one_in` is 0, or there are too many filters.
    pub fn add_tpp(
        &mut self,
        filter: PacketFilter,
        program: &TinyProgram,
        one_in: u32,
        priority: u32,
    ) -> Result<usize, FilterError> {
        let number = self.filters.len();
        match () {
            () if program.repr.is_reflective => return Err(FilterError::Reflective),
            () if program.repr.status.contains(Status::DONE) => return Err(FilterError::Done),
            () if one_in == 0 => return Err(FilterError::NeverSampled),
            () if number == MAX_FILTERS => return Err(FilterError::TooMany),
            () => {}
        }
        let (len, counts) = (program.packet(&[]).len(), FilterCounts::default());
        let at = self.filters.partition_point(|other| other.priority >= priority);
        let program = program.clone();
        self.filters.insert(at, ShimFilter { number, priority, filter, one_in, program, len, counts });
        Ok(number)
    }

    /// Collects a program from received packets that match the filter. Other programs do not come from the hosts of
    /// this measurement: they are taken out of their packets and counted, and nothing is collected.
    ///
    /// # Errors
    /// If [`MAX_FILTERS`] programs are expected already.
    pub fn expect_tpp(&mut self, filter: PacketFilter, program: &TinyProgram) -> Result<(), FilterError> {
        if self.expected.len() == MAX_FILTERS {
            return Err(FilterError::TooMany);
        }
        self.expected.push(ExpectedProgram { filter, program: program.clone() });
        Ok(())
    }

    /// Returns the counts of the filter with this number.
    pub fn filter_counts(&self, number: usize) -> Option<FilterCounts> {
        self.filters.iter().find(|filter| filter.number == number).map(|filter| filter.counts)
    }

    /// Returns the counts of received programs.
    pub fn receipt_counts(&self) -> ReceiptCounts {
        self.counts
    }

    /// Inserts a program into a frame that the host sends, if a filter selects it. A packet that a filter does not
    /// sample continues with the next one. A packet gets at most one program, and none if it has one. `below` returns a
    /// random number below its argument.
    pub fn sent(&mut self, frame: &mut Vec<u8>, mut below: impl FnMut(u32) -> u32) {
        if self.filters.is_empty() {
            return;
        }
        let Some((ethertype, start, flow)) = untouched(frame) else { return };
        for entry in self.filters.iter_mut().filter(|entry| entry.filter.matches(&flow)) {
            entry.counts.matched += 1;
            if entry.one_in > 1 && below(entry.one_in) != 0 {
                continue;
            }
            if frame.len() + entry.len > self.mtu + ethernet::HEADER_LEN {
                entry.counts.too_long += 1;
                return;
            }
            entry.counts.inserted += 1;
            entry.program.repr.encapsulated = ethertype;
            frame[start - 2..start].copy_from_slice(&ETHERTYPE.to_be_bytes());
            frame.splice(start..start, entry.program.packet(&[]));
            return;
        }
    }

    /// Takes the programs out of a frame that the host receives, and passes those that are expected to `collect`.
    /// Returns whether a packet remains, which the host then receives as if it had never had a program.
    pub fn received(&mut self, frame: &mut Vec<u8>, mut collect: impl FnMut(CollectedProgram)) -> bool {
        // A program may be in front of another one.
        let mut found = Vec::new();
        while let Some((ETHERTYPE, start)) = wire_format::place_among_tags(frame, 0) {
            let Ok(program) = Packet::new_checked(&frame[start..]) else {
                self.counts.malformed += 1;
                return false;
            };
            let (end, ethertype) = (start + program.length(), program.encapsulated());
            if !program.is_checksum_right() {
                self.counts.damaged += 1;
                // The length may be what is wrong.
                if !is_intact(ethertype, &frame[end..]) {
                    return false;
                }
            } else if program.status().contains(Status::DONE) {
                // A switch reflected it. No program of this shim is reflective, so the packet behind it is another's.
                self.counts.foreign += 1;
                return false;
            } else {
                found.push(frame[start..end].to_vec());
            }
            if ethertype == 0 {
                frame.clear();
                break;
            }
            frame[start - 2..start].copy_from_slice(&ethertype.to_be_bytes());
            frame.drain(start..end);
        }
        self.collect(found, frame, &mut collect);
        self.lower_segment_size(frame);
        !frame.is_empty()
    }

    /// Passes on those of the programs before a packet that are expected in it.
    fn collect(&mut self, found: Vec<Vec<u8>>, frame: &[u8], collect: &mut impl FnMut(CollectedProgram)) {
        let flow = if found.is_empty() { None } else { flow(frame).map(|(.., flow)| flow) };
        for bytes in found {
            let collected = CollectedProgram { flow, bytes };
            let program = collected.program();
            let is_expected = |flow: PacketFlow| self.expected.iter().any(|expected| expected.is(&flow, &program));
            if flow.is_some_and(is_expected) {
                self.counts.collected += 1;
                collect(collected);
            } else {
                self.counts.foreign += 1;
            }
        }
    }

    /// Leaves room for programs in the segments that the host will send on a connection: lowers the maximum segment
    /// size in a received SYN, but not below that which every link carries.
    fn lower_segment_size(&self, frame: &mut [u8]) {
        if self.filters.is_empty() {
            return;
        }
        let Some((ethertype, start, flow)) = untouched(frame) else { return };
        let flow = flow.reverse();
        let longest = self.filters.iter().filter(|entry| entry.filter.matches(&flow)).map(|entry| entry.len).max();
        if let Some(longest) = longest {
            let room = self.mtu.saturating_sub(longest + start - ethernet::HEADER_LEN);
            segment_size::lower(ethertype, &mut frame[start..], room);
        }
    }
}

/// Whether these bytes are a packet whose own checksum proves that it begins here: that of the header of IPv4, or that
/// of TCP or UDP in IPv6.
fn is_intact(ethertype: u16, bytes: &[u8]) -> bool {
    match ethertype {
        ethernet::IPV4 => {
            ipv4::Packet::new_checked(bytes).is_ok_and(|packet| packet.is_checksum_right() && !packet.is_cut())
        }
        ethernet::IPV6 => {
            let Ok(packet) = ipv6::Packet::new_checked(bytes) else { return false };
            let addresses = ipv6::Repr::parse(&packet).addresses();
            let (protocol, offset, segment) = packet.transport();
            let is_right = match protocol {
                ipv4::TCP => tcp::Packet::new_checked(segment).is_ok_and(|tcp| tcp.is_checksum_right(addresses)),
                ipv4::UDP => udp::Packet::new_checked(segment)
                    .is_ok_and(|udp| udp.checksum() != 0 && udp.is_checksum_right(addresses)),
                _ => false,
            };
            is_right && offset == 0 && !packet.is_cut()
        }
        _ => false,
    }
}

/// Returns the EtherType of an IP packet after its VLAN tags, the offset of the packet in bytes, and its flow.
fn flow(frame: &[u8]) -> Option<(u16, usize, PacketFlow)> {
    let (ethertype, start) = wire_format::place_among_tags(frame, 0)?;
    Some((ethertype, start, PacketFlow::parse(ethertype, frame.get(start..)?)?))
}

/// Does the same for packets without programs.
fn untouched(frame: &[u8]) -> Option<(u16, usize, PacketFlow)> {
    flow(frame).filter(|(.., flow)| !flow.is_program())
}

#[cfg(test)]
mod tests;
