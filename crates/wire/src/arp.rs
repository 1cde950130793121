//! Parses and emits ARP for IPv4 over Ethernet (RFC 826).
//!
//! ```text
//! hardware 2 (1) | protocol 2 (0x0800) | lengths 1+1 (6, 4) | operation 2
//! sender's Ethernet 6 and IP address 4 | target's Ethernet 6 and IP address 4
//! ```

use std::net::Ipv4Addr;

use crate::Malformed;
use crate::ethernet::{self, Address};
use crate::field::{array, get16, put16, require};

/// Size of a message in bytes.
pub const LEN: usize = 28;

/// The operation of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Asks for the owner of the target's IP address.
    Request,
    /// Announces the sender's Ethernet address for its IP address.
    Reply,
    /// Another operation (such as reverse ARP).
    Other(u16),
}

impl Operation {
    fn number(self) -> u16 {
        match self {
            Operation::Request => 1,
            Operation::Reply => 2,
            Operation::Other(number) => number,
        }
    }
}

/// A message.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T> {
    bytes: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks that the message is complete and for IPv4 over Ethernet.
    ///
    /// # Errors
    /// Returns an error if it is not.
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        let all = bytes.as_ref();
        require("ARP", all, LEN)?;
        let wrong = |field, value: u16| Err(Malformed::Field { format: "ARP", field, value: value.into() });
        match (get16(all, 0), get16(all, 2), get16(all, 4)) {
            (1, ethernet::IPV4, 0x0604) => Ok(Packet { bytes }),
            (1, ethernet::IPV4, lengths) => wrong("address lengths", lengths),
            (1, protocol, _) => wrong("protocol", protocol),
            (hardware, ..) => wrong("hardware", hardware),
        }
    }

    /// Returns the operation.
    pub fn operation(&self) -> Operation {
        match get16(self.bytes.as_ref(), 6) {
            1 => Operation::Request,
            2 => Operation::Reply,
            number => Operation::Other(number),
        }
    }
}

/// A message's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Operation.
    pub operation: Operation,
    /// The sender's Ethernet address.
    pub sender: Address,
    /// The sender's IP address.
    pub sender_ip: Ipv4Addr,
    /// The target's Ethernet address; without meaning in a request.
    pub target: Address,
    /// The target's IP address.
    pub target_ip: Ipv4Addr,
}

impl Repr {
    /// Parses the message.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Repr {
        let all = packet.bytes.as_ref();
        Repr {
            operation: packet.operation(),
            sender: Address(array(all, 8)),
            sender_ip: array(all, 14).into(),
            target: Address(array(all, 18)),
            target_ip: array(all, 24).into(),
        }
    }

    /// Writes the message to the start of `buffer`.
    ///
    /// # Panics
    /// Panics if `buffer` is shorter than [`LEN`].
    pub fn emit(&self, buffer: &mut [u8]) {
        put16(buffer, 0, 1);
        put16(buffer, 2, ethernet::IPV4);
        put16(buffer, 4, 0x0604);
        put16(buffer, 6, self.operation.number());
        buffer[8..14].copy_from_slice(&self.sender.0);
        buffer[14..18].copy_from_slice(&self.sender_ip.octets());
        buffer[18..24].copy_from_slice(&self.target.0);
        buffer[24..28].copy_from_slice(&self.target_ip.octets());
    }

    /// Returns the message as bytes.
    pub fn message(&self) -> Vec<u8> {
        let mut bytes = vec![0; LEN];
        self.emit(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip() {
        let mut repr = Repr {
            operation: Operation::Request,
            sender: Address([1; 6]),
            sender_ip: [10, 0, 0, 1].into(),
            target: Address([0; 6]),
            target_ip: [10, 0, 0, 2].into(),
        };
        for operation in [Operation::Request, Operation::Reply, Operation::Other(9)] {
            repr.operation = operation;
            assert_eq!(Repr::parse(&Packet::new_checked(repr.message()).unwrap()), repr);
        }
        let mut bytes = repr.message();
        assert_eq!(bytes[..8], [0, 1, 8, 0, 6, 4, 0, 9]);
        assert!(Packet::new_checked(&bytes[..27]).is_err());
        bytes[4] = 8;
        assert!(Packet::new_checked(&bytes).unwrap_err().to_string().contains("address lengths"));
    }
}
