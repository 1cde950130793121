//! Reads and writes the header of a datagram, and hellos.

use crate::layout::{NodeId, OperatorId, SwitchId};
use crate::message::Peer;

use super::key::{ClusterFingerprint, FINGERPRINT_BYTES};

/// Length of the header in bytes.
pub const HEADER_BYTES: usize = 38;

/// Length of the tag after the messages in bytes.
pub const TAG_BYTES: usize = 16;

const MAGIC: [u8; 3] = [b'T', b'R', 3];

/// Length of a hello between header and tag.
const HELLO_BYTES: usize = FINGERPRINT_BYTES + 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Messages,
    Hello,
}

/// Header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub kind: Kind,
    pub sender: Peer,
    pub receiver: Peer,
    pub sender_start: u64,
    /// 0 if the sender does not know it.
    pub receiver_start: u64,
    pub counter: u64,
}

/// A request for a start number, or the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub fingerprint: ClusterFingerprint,
    /// The number that the receiver has to echo; 0 for none.
    pub challenge: u64,
    /// The receiver's challenge; 0 for none.
    pub echo: u64,
}

impl Header {
    /// Reads a datagram. Returns the header, and the bytes between it and the tag.
    pub fn read(datagram: &[u8]) -> Option<(Header, &[u8])> {
        let (header, rest) = datagram.split_first_chunk::<HEADER_BYTES>()?;
        let body = rest.get(..rest.len().checked_sub(TAG_BYTES)?)?;
        if header[..3] != MAGIC {
            return None;
        }
        let kind = match header[3] {
            0 => Kind::Messages,
            1 => Kind::Hello,
            _ => return None,
        };
        let (sender, receiver) = (peer(&header[4..9])?, peer(&header[9..14])?);
        let number = |at: usize| header[at..].first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let (sender_start, receiver_start, counter) = (number(14), number(22), number(30));
        Some((Header { kind, sender, receiver, sender_start, receiver_start, counter }, body))
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..3].copy_from_slice(&MAGIC);
        bytes[3] = u8::from(self.kind == Kind::Hello);
        bytes[4..9].copy_from_slice(&peer_bytes(self.sender));
        bytes[9..14].copy_from_slice(&peer_bytes(self.receiver));
        bytes[14..22].copy_from_slice(&self.sender_start.to_be_bytes());
        bytes[22..30].copy_from_slice(&self.receiver_start.to_be_bytes());
        bytes[30..38].copy_from_slice(&self.counter.to_be_bytes());
        bytes
    }
}

impl Hello {
    /// Reads a hello.
    pub fn read(body: &[u8]) -> Option<Hello> {
        let body: &[u8; HELLO_BYTES] = body.try_into().ok()?;
        let (fingerprint, numbers) = body.split_first_chunk()?;
        let (challenge, echo) = numbers.split_first_chunk()?;
        let [challenge, echo] = [*challenge, echo.try_into().ok()?].map(u64::from_be_bytes);
        Some(Hello { fingerprint: ClusterFingerprint(*fingerprint), challenge, echo })
    }

    /// Appends the hello to a datagram.
    pub fn append_to(&self, datagram: &mut Vec<u8>) {
        datagram.extend(self.fingerprint.0);
        datagram.extend(self.challenge.to_be_bytes());
        datagram.extend(self.echo.to_be_bytes());
    }
}

fn peer(bytes: &[u8]) -> Option<Peer> {
    let (kind, number) = bytes.split_first()?;
    let number = u32::from_be_bytes(number.try_into().ok()?);
    match kind {
        0 => Some(Peer::Switch(SwitchId(number))),
        1 => Some(Peer::Node(NodeId(number))),
        2 => Some(Peer::Operator(OperatorId(number))),
        _ => None,
    }
}

/// Returns kind and number of a member.
pub(super) fn peer_bytes(peer: Peer) -> [u8; 5] {
    let (kind, number) = match peer {
        Peer::Switch(switch) => (0, switch.0),
        Peer::Node(node) => (1, node.0),
        Peer::Operator(operator) => (2, operator.0),
    };
    let [a, b, c, d] = number.to_be_bytes();
    [kind, a, b, c, d]
}
