//! The opcodes of the reliable connection (volume 1, table 38).

use super::extension::{AETH_LEN, ATOMIC_ACK_LEN, IMMEDIATE_LEN};
use super::{AtomicEth, Reth};

/// An operation of the reliable connection, with the place of the packet in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opcode {
    /// A part of a message for a receive buffer.
    Send(Position),
    /// The last part of such a message, with four bytes of immediate data. True if it is also the first.
    SendImmediate(bool),
    /// A part of data to write. The first part names the memory.
    Write(Position),
    /// The last part of data to write, with four bytes of immediate data. True if it is also the first.
    WriteImmediate(bool),
    /// A request to read memory.
    ReadRequest,
    /// A part of the memory that was read.
    ReadResponse(Position),
    /// An acknowledgement, or the reason for its absence.
    Acknowledge,
    /// The value before an atomic operation.
    AtomicAcknowledge,
    /// An atomic compare and swap of eight bytes.
    CompareSwap,
    /// An atomic addition to eight bytes.
    FetchAdd,
    /// An opcode of another transport, a congestion notification, or a reserved one.
    Other(u8),
}

/// The place of a packet in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    /// The first of several.
    First,
    /// Neither the first nor the last.
    Middle,
    /// The last of several.
    Last,
    /// The only one.
    Only,
}

impl Position {
    /// Returns the place of packet `index` of `count`.
    #[inline]
    pub fn of(index: u32, count: u32) -> Position {
        match (index == 0, index + 1 >= count) {
            (true, true) => Position::Only,
            (true, false) => Position::First,
            (false, true) => Position::Last,
            (false, false) => Position::Middle,
        }
    }

    /// Whether the message begins here.
    #[inline]
    pub fn is_first(self) -> bool {
        matches!(self, Position::First | Position::Only)
    }

    /// Whether the message ends here.
    #[inline]
    pub fn is_last(self) -> bool {
        matches!(self, Position::Last | Position::Only)
    }
}

impl From<u8> for Opcode {
    #[inline]
    fn from(byte: u8) -> Opcode {
        use Position::{First, Last, Middle, Only};
        match byte {
            0x00 => Opcode::Send(First),
            0x01 => Opcode::Send(Middle),
            0x02 => Opcode::Send(Last),
            0x03 => Opcode::SendImmediate(false),
            0x04 => Opcode::Send(Only),
            0x05 => Opcode::SendImmediate(true),
            0x06 => Opcode::Write(First),
            0x07 => Opcode::Write(Middle),
            0x08 => Opcode::Write(Last),
            0x09 => Opcode::WriteImmediate(false),
            0x0a => Opcode::Write(Only),
            0x0b => Opcode::WriteImmediate(true),
            0x0c => Opcode::ReadRequest,
            0x0d => Opcode::ReadResponse(First),
            0x0e => Opcode::ReadResponse(Middle),
            0x0f => Opcode::ReadResponse(Last),
            0x10 => Opcode::ReadResponse(Only),
            0x11 => Opcode::Acknowledge,
            0x12 => Opcode::AtomicAcknowledge,
            0x13 => Opcode::CompareSwap,
            0x14 => Opcode::FetchAdd,
            other => Opcode::Other(other),
        }
    }
}

impl From<Opcode> for u8 {
    #[inline]
    fn from(opcode: Opcode) -> u8 {
        // The first of four opcodes in the order first, middle, last, only.
        let of = |first: u8, position| match position {
            Position::First => first,
            Position::Middle => first + 1,
            Position::Last => first + 2,
            Position::Only => first + 3,
        };
        match opcode {
            // The opcode of the last packet with immediate data is between those of the last and the only one without.
            Opcode::Send(Position::Only) => 0x04,
            Opcode::Send(position) => of(0x00, position),
            Opcode::SendImmediate(is_only) => {
                if is_only {
                    0x05
                } else {
                    0x03
                }
            }
            Opcode::Write(Position::Only) => 0x0a,
            Opcode::Write(position) => of(0x06, position),
            Opcode::WriteImmediate(is_only) => {
                if is_only {
                    0x0b
                } else {
                    0x09
                }
            }
            Opcode::ReadRequest => 0x0c,
            Opcode::ReadResponse(position) => of(0x0d, position),
            Opcode::Acknowledge => 0x11,
            Opcode::AtomicAcknowledge => 0x12,
            Opcode::CompareSwap => 0x13,
            Opcode::FetchAdd => 0x14,
            Opcode::Other(byte) => byte,
        }
    }
}

impl Opcode {
    /// Returns the size of the headers between BTH and payload, in bytes.
    #[inline]
    pub fn extension_len(self) -> usize {
        match self {
            Opcode::Send(_) | Opcode::Other(_) => 0,
            Opcode::SendImmediate(_) | Opcode::WriteImmediate(false) => IMMEDIATE_LEN,
            Opcode::Write(position) => {
                if position.is_first() {
                    Reth::LEN
                } else {
                    0
                }
            }
            Opcode::WriteImmediate(true) => Reth::LEN + IMMEDIATE_LEN,
            Opcode::ReadRequest => Reth::LEN,
            Opcode::ReadResponse(Position::Middle) => 0,
            Opcode::ReadResponse(_) | Opcode::Acknowledge => AETH_LEN,
            Opcode::AtomicAcknowledge => AETH_LEN + ATOMIC_ACK_LEN,
            Opcode::CompareSwap | Opcode::FetchAdd => AtomicEth::LEN,
        }
    }

    /// Whether a requester sends it, and not a responder.
    #[inline]
    pub fn is_request(self) -> bool {
        !matches!(self, Opcode::ReadResponse(_) | Opcode::Acknowledge | Opcode::AtomicAcknowledge | Opcode::Other(_))
    }
}
