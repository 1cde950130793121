//! Parses and emits VLAN tags (IEEE 802.1Q), which follow the Ethernet type 0x8100 or 0x88a8.
//!
//! ```text
//! priority 3 bits | drop eligible 1 bit | identifier 12 bits | type of what follows 16 bits
//! ```

use crate::Malformed;
use crate::field::{get16, put16, require, with_payload};

/// Size of a tag in bytes, counted from after the type that announces it.
pub const HEADER_LEN: usize = 4;

/// A tag and the bytes after it.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T> {
    bytes: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks that the tag is complete.
    ///
    /// # Errors
    /// Returns an error if it is not.
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        require("VLAN", bytes.as_ref(), HEADER_LEN)?;
        Ok(Packet { bytes })
    }

    /// Returns the priority, 0 to 7.
    pub fn priority(&self) -> u8 {
        self.bytes.as_ref()[0] >> 5
    }

    /// Whether the frame may be dropped before others.
    pub fn drop_eligible(&self) -> bool {
        self.bytes.as_ref()[0] & 0x10 != 0
    }

    /// Returns the VLAN identifier, 0 to 4095.
    pub fn identifier(&self) -> u16 {
        get16(self.bytes.as_ref(), 0) & 0xfff
    }

    /// Returns the type of the payload.
    pub fn ethertype(&self) -> u16 {
        get16(self.bytes.as_ref(), 2)
    }

    /// Returns the bytes after the tag.
    pub fn payload(&self) -> &[u8] {
        &self.bytes.as_ref()[HEADER_LEN..]
    }
}

/// A tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The priority, 0 to 7.
    pub priority: u8,
    /// Whether the frame may be dropped before others.
    pub drop_eligible: bool,
    /// VLAN identifier, 0 to 4095.
    pub identifier: u16,
    /// Type of the payload.
    pub ethertype: u16,
}

impl Repr {
    /// Parses the tag.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Repr {
        Repr {
            priority: packet.priority(),
            drop_eligible: packet.drop_eligible(),
            identifier: packet.identifier(),
            ethertype: packet.ethertype(),
        }
    }

    /// Writes the tag to the start of `buffer`; excess bits of a value are ignored.
    ///
    /// # Panics
    /// Panics if `buffer` is shorter than [`HEADER_LEN`].
    pub fn emit(&self, buffer: &mut [u8]) {
        let priority = u16::from(self.priority & 7) << 13;
        put16(buffer, 0, priority | u16::from(self.drop_eligible) << 12 | self.identifier & 0xfff);
        put16(buffer, 2, self.ethertype);
    }

    /// Returns the tag with this payload after it.
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
    fn tags_round_trip() {
        let repr = Repr { priority: 5, drop_eligible: true, identifier: 0xabc, ethertype: 0x0800 };
        let bytes = repr.packet(&[9]);
        assert_eq!(bytes, [0xba, 0xbc, 8, 0, 9]);
        let packet = Packet::new_checked(&bytes).unwrap();
        assert_eq!((Repr::parse(&packet), packet.payload()), (repr, &[9][..]));
        assert!(Packet::new_checked(&bytes[..3]).is_err());
    }
}
