//! Parses and emits ICMP for IPv4 (RFC 792).
//!
//! ```text
//! type 1 | code 1 | checksum 2 | four bytes that depend on the type | payload
//! ```

use crate::Malformed;
use crate::checksum;
use crate::field::{array, get16, put16, require, with_payload};

/// Size of the header in bytes.
pub const HEADER_LEN: usize = 8;

/// A message with a complete header.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T> {
    bytes: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks that the header is complete.
    ///
    /// # Errors
    /// Returns an error if not.
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        require("ICMP", bytes.as_ref(), HEADER_LEN)?;
        Ok(Packet { bytes })
    }

    /// Returns the type.
    pub fn kind(&self) -> u8 {
        self.bytes.as_ref()[0]
    }

    /// Returns the code, the variant of the type.
    pub fn code(&self) -> u8 {
        self.bytes.as_ref()[1]
    }

    /// Returns the checksum.
    pub fn checksum(&self) -> u16 {
        get16(self.bytes.as_ref(), 2)
    }

    /// Whether the checksum is correct, if these bytes are the whole message.
    pub fn is_checksum_right(&self) -> bool {
        checksum::checksum(self.bytes.as_ref()) == 0
    }

    /// Returns the bytes after the header: an echo's data, or the start of the packet that caused the error.
    pub fn payload(&self) -> &[u8] {
        &self.bytes.as_ref()[HEADER_LEN..]
    }
}

/// The meaning of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repr {
    /// An echo request.
    EchoRequest {
        /// Identifier of the sender.
        identifier: u16,
        /// Sequence number of the request.
        sequence: u16,
    },
    /// An echo reply.
    EchoReply {
        /// Identifier of the request.
        identifier: u16,
        /// Sequence number of the request.
        sequence: u16,
    },
    /// The packet could not be delivered.
    Unreachable {
        /// Reason: 0 network, 1 host, 2 protocol, 3 port, 4 fragmentation needed but forbidden, ...
        code: u8,
        /// For code 4, the maximum packet size that passes, in bytes (RFC 1191).
        next_mtu: u16,
    },
    /// The packet's time to live was exceeded (code 0), or fragment reassembly timed out (code 1).
    TimeExceeded {
        /// Code, 0 or 1.
        code: u8,
    },
    /// Any other message.
    Other {
        /// The type.
        kind: u8,
        /// The code, the variant of the type.
        code: u8,
        /// The four bytes after the checksum.
        rest: [u8; 4],
    },
}

impl Repr {
    /// Parses the header.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Repr {
        let all = packet.bytes.as_ref();
        let (identifier, sequence) = (get16(all, 4), get16(all, 6));
        match (packet.kind(), packet.code()) {
            (8, 0) => Repr::EchoRequest { identifier, sequence },
            (0, 0) => Repr::EchoReply { identifier, sequence },
            (3, code) => Repr::Unreachable { code, next_mtu: sequence },
            (11, code) => Repr::TimeExceeded { code },
            (kind, code) => Repr::Other { kind, code, rest: array(all, 4) },
        }
    }

    /// Writes the header, including the checksum, to the start of `message`; the rest is the payload.
    ///
    /// # Panics
    /// Panics if `message` is shorter than [`HEADER_LEN`].
    pub fn emit(&self, message: &mut [u8]) {
        let echo = |identifier: u16, sequence: u16| {
            let ([a, b], [c, d]) = (identifier.to_be_bytes(), sequence.to_be_bytes());
            [a, b, c, d]
        };
        let (kind, code, rest) = match *self {
            Repr::EchoRequest { identifier, sequence } => (8, 0, echo(identifier, sequence)),
            Repr::EchoReply { identifier, sequence } => (0, 0, echo(identifier, sequence)),
            Repr::Unreachable { code, next_mtu } => (3, code, echo(0, next_mtu)),
            Repr::TimeExceeded { code } => (11, code, [0; 4]),
            Repr::Other { kind, code, rest } => (kind, code, rest),
        };
        message[0] = kind;
        message[1] = code;
        put16(message, 2, 0);
        message[4..8].copy_from_slice(&rest);
        let value = checksum::checksum(message);
        put16(message, 2, value);
    }

    /// Returns the message with this header and this payload.
    pub fn packet(&self, payload: &[u8]) -> Vec<u8> {
        let mut bytes = with_payload(HEADER_LEN, payload);
        self.emit(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip() {
        for repr in [
            Repr::EchoRequest { identifier: 7, sequence: 1 },
            Repr::EchoReply { identifier: 7, sequence: 1 },
            Repr::Unreachable { code: 4, next_mtu: 1400 },
            Repr::TimeExceeded { code: 0 },
            Repr::Other { kind: 5, code: 1, rest: [10, 0, 0, 1] },
        ] {
            let mut bytes = repr.packet(b"payload");
            let packet = Packet::new_checked(&bytes).unwrap();
            assert_eq!((Repr::parse(&packet), packet.payload()), (repr, &b"payload"[..]));
            assert!(packet.is_checksum_right());
            bytes[10] ^= 1;
            assert!(!Packet::new_checked(&bytes).unwrap().is_checksum_right());
            assert!(Packet::new_checked(&bytes[..7]).is_err());
        }
    }
}
