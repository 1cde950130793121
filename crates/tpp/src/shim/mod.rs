//! Inserts programs into the packets that a host sends, and takes them out of those that it receives (paper, section
//! 4.2).
//!
//! ```text
//! applications ──> sent: first filter that matches and samples ──> insert ──> network
//! applications <── received: strip ──┬──────────────────────────────────────  network
//! aggregator   <── CollectedProgram ─┘
//! ```
//!
//! [`Shim`] works on frames. It keeps their order, holds none back, and makes none longer than the MTU permits: a
//! packet for which there is no room is sent without program, and counted. So that full segments have room, it lowers
//! the maximum segment size of the TCP connections that a filter selects.

mod filter;
mod segment_size;

use wire::ethernet;
use wire::tpp::{self as wire_format, ETHERTYPE, Packet, Status};

use crate::asm::TinyProgram;

pub use filter::{AddressPrefix, PacketFilter, PacketFlow};

/// Maximum number of filters of a host.
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
    /// Programs with a wrong checksum. Their packets are delivered without them.
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

/// The shim of a host between its stack and its interface.
#[derive(Clone, Debug)]
pub struct Shim {
    /// Maximum length of an IP packet, in bytes.
    mtu: usize,
    /// In the order in which they are tried.
    filters: Vec<ShimFilter>,
    counts: ReceiptCounts,
}

impl Shim {
    /// Creates a shim without filters for an interface with this MTU.
    pub fn new(mtu: usize) -> Shim {
        Shim { mtu, filters: Vec::new(), counts: ReceiptCounts::default() }
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

    /// Takes the programs out of a frame that the host receives, and passes them to `collect`. Returns whether a packet
    /// remains, which the host then receives as if it had never had a program.
    pub fn received(&mut self, frame: &mut Vec<u8>, mut collect: impl FnMut(CollectedProgram)) -> bool {
        // A program may be in front of another one.
        let mut collected = Vec::new();
        while let Some((ETHERTYPE, start)) = wire_format::place_among_tags(frame, 0) {
            let Ok(program) = Packet::new_checked(&frame[start..]) else {
                self.counts.malformed += 1;
                return false;
            };
            let (end, ethertype) = (start + program.length(), program.encapsulated());
            let is_reflected = program.status().contains(Status::DONE);
            if program.is_checksum_right() {
                collected.push(frame[start..end].to_vec());
            } else {
                self.counts.damaged += 1;
            }
            // The packet behind a reflected program is the host's own.
            if ethertype == 0 || is_reflected {
                frame.clear();
                break;
            }
            frame[start - 2..start].copy_from_slice(&ethertype.to_be_bytes());
            frame.drain(start..end);
        }
        let flow = if collected.is_empty() { None } else { flow(frame).map(|(.., flow)| flow) };
        self.counts.collected += collected.len() as u64;
        collected.into_iter().for_each(|bytes| collect(CollectedProgram { flow, bytes }));
        self.lower_segment_size(frame);
        !frame.is_empty()
    }

    /// Leaves room for programs in the segments that the host will send on a connection: lowers the maximum segment
    /// size in a received SYN.
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
