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
mod index;
mod port_sums;
mod rule;
mod segment_size;
mod sums;

use wire::tpp::{self as wire_format, Addressing, ETHERTYPE, HEADER_LEN, INSTRUCTION_LEN, Packet, Status};
use wire::{ethernet, ipv4, ipv6, tcp, udp};

use crate::asm::TinyProgram;

pub use filter::{AddressPrefix, PacketFilter, PacketFlow};
use index::FilterIndex;
pub use port_sums::{PeriodSums, PortSum, PortSums, PortWord};
pub use rule::{InsertionRule, RuleMistake};
pub use segment_size::{LEAST_IPV4, LEAST_IPV6};
pub use sums::{WordSum, WordSums};

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
    /// A program is inserted into one of this number of packets.
    one_in: u32,
    /// The program in front of IPv4 and of IPv6.
    encoded: [Vec<u8>; 2],
    counts: FilterCounts,
}

impl ShimFilter {
    /// Returns the length of the program in bytes.
    fn len(&self) -> usize {
        self.encoded[0].len()
    }
}

/// A program that hosts insert into packets to this one.
#[derive(Clone, Debug)]
struct ExpectedProgram {
    bytes: Vec<u8>,
    /// Length of header and instructions.
    fixed: usize,
    is_stack: bool,
}

impl ExpectedProgram {
    fn new(program: &TinyProgram) -> ExpectedProgram {
        ExpectedProgram {
            bytes: program.packet(&[]),
            fixed: HEADER_LEN + program.instructions.len() * INSTRUCTION_LEN,
            is_stack: matches!(program.repr.addressing, Addressing::Stack { .. }),
        }
    }

    /// Whether this is the program as it arrives: switches change its memory, hop number, stack pointer and status.
    fn is(&self, found: &[u8]) -> bool {
        /// Bit of the first byte that asks for reflection.
        const REFLECTIVE: u8 = 2;
        let own = &self.bytes[..];
        let is_same = |from: usize, to: usize| own[from..to] == found[from..to];
        own.len() == found.len()
            && (own[0] ^ found[0]) & !REFLECTIVE == 0
            && is_same(2, 4)
            && (self.is_stack || is_same(5, 6))
            && is_same(10, self.fixed)
    }
}

/// The shim of a host between its stack and its interface.
#[derive(Clone, Debug)]
pub struct Shim {
    /// Maximum length of an IP packet, in bytes.
    mtu: usize,
    /// By number.
    filters: Vec<ShimFilter>,
    /// Ranks of filters: high bits order them by priority, low bits are the number.
    index: FilterIndex,
    expected: Vec<ExpectedProgram>,
    expected_index: FilterIndex,
    /// Ranks that were found for a packet in several tables; kept to reuse its memory.
    found: Vec<u64>,
    counts: ReceiptCounts,
}

impl Shim {
    /// Creates a shim without filters for an interface with this MTU.
    pub fn new(mtu: usize) -> Shim {
        Shim {
            mtu,
            filters: Vec::new(),
            index: FilterIndex::default(),
            expected: Vec::new(),
            expected_index: FilterIndex::default(),
            found: Vec::new(),
            counts: ReceiptCounts::default(),
        }
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
        let encoded = [ethernet::IPV4, ethernet::IPV6].map(|encapsulated| {
            let mut program = program.clone();
            program.repr.encapsulated = encapsulated;
            program.packet(&[])
        });
        self.index.add(&filter, u64::from(!priority) << 32 | number as u64);
        self.filters.push(ShimFilter { one_in, encoded, counts: FilterCounts::default() });
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
        self.expected_index.add(&filter, self.expected.len() as u64);
        self.expected.push(ExpectedProgram::new(program));
        Ok(())
    }

    /// Returns the counts of the filter with this number.
    pub fn filter_counts(&self, number: usize) -> Option<FilterCounts> {
        self.filters.get(number).map(|filter| filter.counts)
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
        for rank in self.index.find(&flow, &mut self.found) {
            let entry = &mut self.filters[*rank as u32 as usize];
            entry.counts.matched += 1;
            if entry.one_in > 1 && below(entry.one_in) != 0 {
                continue;
            }
            if frame.len() + entry.len() > self.mtu + ethernet::HEADER_LEN {
                entry.counts.too_long += 1;
                return;
            }
            entry.counts.inserted += 1;
            frame[start - 2..start].copy_from_slice(&ETHERTYPE.to_be_bytes());
            insert(frame, start, &entry.encoded[usize::from(ethertype == ethernet::IPV6)]);
            return;
        }
    }

    /// Takes the programs out of a frame that the host receives, and passes those that are expected to `collect`.
    /// Returns whether a packet remains, which the host then receives as if it had never had a program.
    pub fn received(&mut self, frame: &mut Vec<u8>, mut collect: impl FnMut(CollectedProgram)) -> bool {
        // A program may be in front of another one.
        let (mut earlier, mut last) = (Vec::new(), None);
        let (ethertype, start) = loop {
            let Some((ethertype, start)) = wire_format::place_among_tags(frame, 0) else { break (0, frame.len()) };
            if ethertype != ETHERTYPE {
                break (ethertype, start);
            }
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
                earlier.extend(last.replace(frame[start..end].to_vec()));
            }
            if ethertype == 0 {
                frame.clear();
                break (0, 0);
            }
            frame[start - 2..start].copy_from_slice(&ethertype.to_be_bytes());
            frame.drain(start..end);
        };
        if last.is_some() {
            let flow = PacketFlow::parse(ethertype, &frame[start..]);
            self.collect(earlier.into_iter().chain(last), flow, &mut collect);
        }
        if !self.filters.is_empty() && segment_size::is_syn(ethertype, &frame[start..]) {
            self.lower_segment_size(frame, ethertype, start);
        }
        !frame.is_empty()
    }

    /// Passes on those of the programs before a packet that are expected in it.
    fn collect(
        &mut self,
        found: impl Iterator<Item = Vec<u8>>,
        flow: Option<PacketFlow>,
        collect: &mut impl FnMut(CollectedProgram),
    ) {
        let expected = flow.map_or(&[][..], |flow| self.expected_index.find(&flow, &mut self.found));
        for bytes in found {
            if expected.iter().any(|number| self.expected[*number as usize].is(&bytes)) {
                self.counts.collected += 1;
                collect(CollectedProgram { flow, bytes });
            } else {
                self.counts.foreign += 1;
            }
        }
    }

    /// Leaves room for programs in the segments that the host will send on a connection: lowers the maximum segment
    /// size in a received SYN, but not below that which every link carries.
    fn lower_segment_size(&mut self, frame: &mut [u8], ethertype: u16, start: usize) {
        let Some(flow) = PacketFlow::parse(ethertype, &frame[start..]).filter(|flow| !flow.is_program()) else {
            return;
        };
        let found = self.index.find(&flow.reverse(), &mut self.found);
        let longest = found.iter().map(|rank| self.filters[*rank as u32 as usize].len()).max();
        if let Some(longest) = longest {
            let room = self.mtu.saturating_sub(longest + start - ethernet::HEADER_LEN);
            segment_size::lower(ethertype, &mut frame[start..], room);
        }
    }
}

/// Inserts bytes into a frame, and copies each byte once.
fn insert(frame: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let (len, more) = (frame.len(), bytes.len());
    let rest = len - at;
    if rest < more {
        frame.extend_from_slice(&bytes[rest..]);
        frame.extend_from_within(at..len);
        frame[at..len].copy_from_slice(&bytes[..rest]);
    } else {
        frame.extend_from_within(len - more..);
        frame.copy_within(at..len - more, at + more);
        frame[at..at + more].copy_from_slice(bytes);
    }
}

/// Whether these bytes are a packet whose own checksum proves that it begins here: that of the header of IPv4, or that
/// of TCP or UDP in IPv6.
pub(crate) fn is_intact(ethertype: u16, bytes: &[u8]) -> bool {
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

/// Returns the EtherType of an IP packet without program, behind its VLAN tags, its offset in bytes, and its flow.
fn untouched(frame: &[u8]) -> Option<(u16, usize, PacketFlow)> {
    let (ethertype, start) = wire_format::place_among_tags(frame, 0)?;
    let flow = PacketFlow::parse(ethertype, frame.get(start..)?)?;
    (!flow.is_program()).then_some((ethertype, start, flow))
}

#[cfg(test)]
mod tests;
