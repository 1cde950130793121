//! Parses and emits Ethernet II frames (IEEE 802.3), without the frame check sequence.
//!
//! ```text
//! destination 6 | source 6 | type 2 | payload
//! ```

use std::fmt;
use std::str::FromStr;

use crate::Malformed;
use crate::field::{array, get16, put16, require, with_payload};

/// The type of IPv4.
pub const IPV4: u16 = 0x0800;
/// The type of ARP.
pub const ARP: u16 = 0x0806;
/// The type of a VLAN tag (IEEE 802.1Q).
pub const VLAN: u16 = 0x8100;
/// The type of an outer VLAN tag (IEEE 802.1ad).
pub const OUTER_VLAN: u16 = 0x88a8;
/// The type of IPv6.
pub const IPV6: u16 = 0x86dd;
/// Minimum value of a type; smaller values are lengths.
pub const MIN_TYPE: u16 = 0x0600;

/// Size of the header in bytes.
pub const HEADER_LEN: usize = 14;

/// An Ethernet address; `08:00:00:00:01:01` as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub [u8; 6]);

impl Address {
    /// The broadcast address.
    pub const BROADCAST: Address = Address([0xff; 6]);

    /// Whether it is a multicast address, broadcast included.
    pub fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// The error for a text that is not an Ethernet address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an Ethernet address: write six bytes in hexadecimal, 08:00:00:00:01:01")]
pub struct NotAnAddress(String);

impl FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let wrong = || NotAnAddress(text.to_owned());
        let mut address = [0; 6];
        let mut parts = text.split([':', '-']);
        for byte in &mut address {
            let part = parts.next().ok_or_else(wrong)?;
            if part.is_empty() || part.len() > 2 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(wrong());
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| wrong())?;
        }
        if parts.next().is_some() { Err(wrong()) } else { Ok(Address(address)) }
    }
}

/// A frame of at least a header.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T> {
    bytes: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks that the header is complete.
    ///
    /// # Errors
    /// Returns an error if it is not.
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        require("Ethernet", bytes.as_ref(), HEADER_LEN)?;
        Ok(Packet { bytes })
    }

    /// Returns the destination address.
    pub fn destination(&self) -> Address {
        Address(array(self.bytes.as_ref(), 0))
    }

    /// Returns the source address.
    pub fn source(&self) -> Address {
        Address(array(self.bytes.as_ref(), 6))
    }

    /// Returns the type of the payload; a length if below [`MIN_TYPE`].
    pub fn ethertype(&self) -> u16 {
        get16(self.bytes.as_ref(), 12)
    }

    /// Returns the bytes after the header.
    pub fn payload(&self) -> &[u8] {
        &self.bytes.as_ref()[HEADER_LEN..]
    }
}

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Destination address.
    pub destination: Address,
    /// Source address.
    pub source: Address,
    /// Type of the payload.
    pub ethertype: u16,
}

impl Repr {
    /// Parses the header.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Repr {
        Repr { destination: packet.destination(), source: packet.source(), ethertype: packet.ethertype() }
    }

    /// Writes the header to the start of `buffer`.
    ///
    /// # Panics
    /// Panics if `buffer` is shorter than [`HEADER_LEN`].
    pub fn emit(&self, buffer: &mut [u8]) {
        buffer[0..6].copy_from_slice(&self.destination.0);
        buffer[6..12].copy_from_slice(&self.source.0);
        put16(buffer, 12, self.ethertype);
    }

    /// Returns the frame with this header and this payload, without padding.
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
    fn headers_round_trip() {
        let repr = Repr { destination: Address::BROADCAST, source: Address([8, 0, 0, 0, 1, 0xfe]), ethertype: ARP };
        let bytes = repr.packet(b"payload");
        assert_eq!(bytes[..14], [255, 255, 255, 255, 255, 255, 8, 0, 0, 0, 1, 0xfe, 8, 6]);
        let packet = Packet::new_checked(&bytes).unwrap();
        assert_eq!((Repr::parse(&packet), packet.payload()), (repr, &b"payload"[..]));
        assert!(Packet::new_checked(&bytes[..13]).is_err());
    }

    #[test]
    fn addresses_are_read_as_they_are_written() {
        let address = Address([8, 0, 0x27, 0xab, 1, 0xfe]);
        assert_eq!(address.to_string().parse(), Ok(address));
        assert_eq!("8-0-27-AB-1-FE".parse(), Ok(address));
        for wrong in ["", "08:00:00:00:01", "08:00:00:00:01:01:01", "08:00:00:00:01:+1", "08:00:00:00:01:001", "x"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
