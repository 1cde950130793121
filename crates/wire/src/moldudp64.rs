//! Parses and emits MoldUDP64 (Nasdaq, protocol specification 1.00): a stream of numbered messages in UDP datagrams.
//!
//! ```text
//! session 10 | sequence number 8 | message count 2 | then for each message: length 2 | that many bytes
//! ```
//!
//! The sequence number is that of the first message; the others count on from it. A receiver that sees a higher number
//! than expected has missed messages. A datagram without messages announces the next number ([`HEARTBEAT`]); one with
//! the count [`END_OF_SESSION`] announces the end of the session.

use crate::Malformed;
use crate::field::{array, get16, put16, require};

/// Size of the header in bytes.
pub const HEADER_LEN: usize = 20;
/// Size of the length field in front of each message, in bytes.
pub const LENGTH_LEN: usize = 2;
/// Message count of a datagram that only announces the next sequence number.
pub const HEARTBEAT: u16 = 0;
/// Message count of the datagrams that end a session.
pub const END_OF_SESSION: u16 = 0xffff;

const FORMAT: &str = "MoldUDP64";

/// A datagram with a complete header, and with all messages that the header counts.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T> {
    bytes: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks that the header and all messages are complete. Bytes after the last message are ignored.
    ///
    /// # Errors
    /// Returns an error if they are not.
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        let all = bytes.as_ref();
        require(FORMAT, all, HEADER_LEN)?;
        let mut end = HEADER_LEN;
        for _ in 0..messages_of(get16(all, 18)) {
            require(FORMAT, all, end + LENGTH_LEN)?;
            end += LENGTH_LEN + usize::from(get16(all, end));
            require(FORMAT, all, end)?;
        }
        Ok(Packet { bytes })
    }

    /// Returns the session of the sequence numbers: text, padded with spaces.
    pub fn session(&self) -> [u8; 10] {
        array(self.bytes.as_ref(), 0)
    }

    /// Returns the number of the first message, or the next one's if there is none.
    pub fn sequence(&self) -> u64 {
        u64::from_be_bytes(array(self.bytes.as_ref(), 10))
    }

    /// Returns the message count as sent, including [`HEARTBEAT`] and [`END_OF_SESSION`].
    pub fn count(&self) -> u16 {
        get16(self.bytes.as_ref(), 18)
    }

    /// Returns the messages, in order.
    pub fn messages(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes.as_ref()[HEADER_LEN..];
        (0..messages_of(self.count())).map(move |_| {
            let (message, behind) = rest[LENGTH_LEN..].split_at(get16(rest, 0).into());
            rest = behind;
            message
        })
    }
}

/// Returns the number of messages that follow a header with this count.
fn messages_of(count: u16) -> u16 {
    if count == END_OF_SESSION { 0 } else { count }
}

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Session of the sequence numbers: text, padded with spaces.
    pub session: [u8; 10],
    /// Number of the first message.
    pub sequence: u64,
    /// Number of messages, or [`HEARTBEAT`], or [`END_OF_SESSION`].
    pub count: u16,
}

impl Repr {
    /// Parses the header.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Repr {
        Repr { session: packet.session(), sequence: packet.sequence(), count: packet.count() }
    }

    /// Writes the header to the start of `buffer`.
    ///
    /// # Panics
    /// Panics if `buffer` is shorter than [`HEADER_LEN`].
    pub fn emit(&self, buffer: &mut [u8]) {
        buffer[..10].copy_from_slice(&self.session);
        buffer[10..18].copy_from_slice(&self.sequence.to_be_bytes());
        put16(buffer, 18, self.count);
    }
}

/// Returns the payload of a datagram with these messages.
///
/// # Panics
/// Panics if there are 65535 messages or more, or one is longer than 65535 bytes.
pub fn datagram<M: AsRef<[u8]>>(session: [u8; 10], sequence: u64, messages: &[M]) -> Vec<u8> {
    let count = u16::try_from(messages.len()).ok().filter(|count| *count != END_OF_SESSION);
    let count = count.expect("a datagram has fewer than 65535 messages");
    let mut bytes = vec![0; HEADER_LEN];
    Repr { session, sequence, count }.emit(&mut bytes);
    for message in messages {
        let message = message.as_ref();
        let len = u16::try_from(message.len()).expect("a message has at most 65535 bytes");
        bytes.extend_from_slice(&len.to_be_bytes());
        bytes.extend_from_slice(message);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: [u8; 10] = *b"000000042 ";

    #[test]
    fn datagrams_round_trip() {
        let bytes = datagram(SESSION, 7, &[&b"first"[..], b"", b"third"]);
        let packet = Packet::new_checked(&bytes).unwrap();
        assert_eq!(Repr::parse(&packet), Repr { session: SESSION, sequence: 7, count: 3 });
        assert_eq!(packet.messages().collect::<Vec<_>>(), [&b"first"[..], b"", b"third"]);
        assert_eq!(bytes[HEADER_LEN..][..3], [0, 5, b'f']);
    }

    #[test]
    fn exactly_the_truncated_datagrams_are_malformed() {
        let bytes = datagram(SESSION, 1, &[b"one", b"two"]);
        for len in 0..bytes.len() {
            assert!(Packet::new_checked(&bytes[..len]).is_err(), "{len} bytes");
        }
        let padded = [&bytes[..], &[0xff; 9]].concat();
        assert_eq!(Packet::new_checked(&padded).unwrap().messages().count(), 2);
    }

    #[test]
    fn heartbeats_and_ends_have_no_messages() {
        for count in [HEARTBEAT, END_OF_SESSION] {
            let mut bytes = [0; HEADER_LEN];
            Repr { session: SESSION, sequence: 9, count }.emit(&mut bytes);
            let packet = Packet::new_checked(bytes).unwrap();
            assert_eq!((packet.messages().count(), packet.count(), packet.sequence()), (0, count, 9));
        }
    }
}
