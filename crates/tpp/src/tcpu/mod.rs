//! Executes programs at one hop (paper, sections 3.4 and 3.5).
//!
//! [`Tcpu`] changes a packet in place. [`mod@reference`] does the same in the simplest way, and both are compared on
//! random programs.
//!
//! | event | packet memory | status | program |
//! |---|---|---|---|
//! | switch memory is absent or may not be read | keeps its bytes | `absent` | continues; `CEXEC` and `CSTORE` end it |
//! | a write is disabled or forbidden | keeps its bytes; `CSTORE` inverts `old` | `suppressed` | continues; `CSTORE` ends it |
//! | an operand is outside packet memory | keeps its bytes | `full` | continues; `CEXEC` and `CSTORE` end it |
//! | `CEXEC` does not match | keeps its bytes | | ends |
//! | `CSTORE` finds another value | `old` is that value | | ends |
//!
//! A `PUSH` or `POP` that is executed moves the stack pointer even if switch memory is absent, so the words of each hop
//! have fixed places. Outside packet memory, the pointer does not move. The hop number counts up to 127 in any case.
//!
//! A location is read once an execution unless the program writes it in between. So both halves of a 64-bit counter are
//! of the same moment. After a failed or suppressed `CSTORE`, `old` always differs from the value that was sent.

mod fast;
mod memory;
pub mod reference;
mod rights;

pub use fast::Tcpu;
pub use memory::{SparseMemory, SwitchMemory};
pub use rights::{AccessRights, AddressSet};

use wire::Malformed;
use wire::tpp::{HEADER_LEN, WordSize};

use crate::map::{DIRECT_REGISTERS, OF_REGISTER};

/// The first address of the program's own header fields. The TCPU answers reads of them; everyone may read them.
pub const OWN_FIELDS: u16 = 0x4800;

/// Number of own header fields. The address of field `n` is `OWN_FIELDS + 2 * n`.
pub(crate) const OWN_FIELD_COUNT: usize = 7;

/// Result of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Outcome for the program as a whole.
    pub verdict: ProgramVerdict,
    /// Number of instructions that took effect.
    pub executed: u8,
    /// Whether the packet has to be sent back, as [`wire::tpp::reflect`] does. The program is marked as done.
    pub reflect: bool,
}

/// Outcome of an execution for the program as a whole. The packet is forwarded in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramVerdict {
    /// All instructions were executed.
    Completed,
    /// A `CEXEC` or a `CSTORE` ended the program, or there is no block for this hop.
    Ended,
    /// The hop number is negative. The packet is unchanged except for the hop number and the checksum.
    Waiting,
    /// The program is marked as done. The packet is unchanged.
    Done,
    /// The checksum is wrong. The packet is unchanged.
    WrongChecksum,
    /// The bytes are not a program. They are unchanged.
    Malformed(Malformed),
}

impl Execution {
    fn none(verdict: ProgramVerdict) -> Execution {
        Execution { verdict, executed: 0, reflect: false }
    }
}

/// Returns the half of a value that an address selects: the low bits for an even one, the next bits for an odd one.
#[inline]
pub(crate) fn half(value: u64, address: u32, bits: u32) -> u32 {
    let shifted = if address & 1 == 0 { value } else { value >> bits };
    if bits == 16 { shifted as u32 & 0xffff } else { shifted as u32 }
}

/// Returns a field of the program's own header, by its number in the map.
pub(crate) fn own_field(header: &[u8; HEADER_LEN], number: usize) -> u32 {
    let is_hop_mode = header[0] & 4 != 0;
    let of_mode = |is_wanted| if is_wanted { 2 * u32::from(header[5]) } else { 0 };
    match number {
        0 => header[4].into(),
        1 => of_mode(!is_hop_mode),
        2 => 2 * u32::from(header[2]),
        3 => 2 * u32::from(header[3]),
        4 => of_mode(is_hop_mode),
        5 => u16::from_be_bytes([header[10], header[11]]).into(),
        _ => header[1].into(),
    }
}

/// Whether a location that was read may be that of a direct address. A register has a second address, for indirect
/// loads.
#[inline]
pub(crate) fn may_be_same(location: u32, direct: u16) -> bool {
    location == direct.into() || DIRECT_REGISTERS.contains(&direct) && location >> 28 == OF_REGISTER >> 28
}

/// The largest value of a word.
#[inline]
pub(crate) fn max_of(word: WordSize) -> u64 {
    match word {
        WordSize::Bits16 => 0xffff,
        WordSize::Bits32 => 0xffff_ffff,
    }
}
