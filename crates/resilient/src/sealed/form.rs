//! Reads and writes the header of a datagram, and hellos.

use crate::layout::{NodeId, OperatorId, SwitchId};
use crate::message::{OwnerId, Peer};

use super::key::{ClusterFingerprint, FINGERPRINT_BYTES};

/// Length of the header in bytes.
pub const HEADER_BYTES: usize = 32;

/// Length of the tag after the messages in bytes.
pub const TAG_BYTES: usize = 16;

const MAGIC: [u8; 3] = [b'T', b'R', 4];

/// The bit of a hello in the byte of kinds.
const HELLO: u8 = 0x01;

/// Places of the kinds of sender and receiver in the byte of kinds.
const SENDER_SHIFT: u8 = 2;
const RECEIVER_SHIFT: u8 = 4;

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
        let kinds = header[3];
        let kind = if kinds & HELLO > 0 { Kind::Hello } else { Kind::Messages };
        let sender = peer(kinds >> SENDER_SHIFT & 3, [header[4], header[5]])?;
        let receiver = peer(kinds >> RECEIVER_SHIFT, [header[6], header[7]])?;
        if kinds & 2 > 0 {
            return None;
        }
        let number = |at: usize| header[at..].first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let (sender_start, receiver_start, counter) = (number(8), number(16), number(24));
        Some((Header { kind, sender, receiver, sender_start, receiver_start, counter }, body))
    }

    /// Returns the switch at one of the ends, whose incarnation is its start number; `None` if both ends are nodes or
    /// operators.
    pub fn switch(&self) -> Option<OwnerId> {
        let ends = [(self.sender, self.sender_start), (self.receiver, self.receiver_start)];
        ends.into_iter().find_map(|(peer, incarnation)| Some(OwnerId { switch: peer.switch()?, incarnation }))
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..3].copy_from_slice(&MAGIC);
        let ((sender_kind, sender), (receiver_kind, receiver)) = (peer_fields(self.sender), peer_fields(self.receiver));
        let hello = if self.kind == Kind::Hello { HELLO } else { 0 };
        bytes[3] = hello | sender_kind << SENDER_SHIFT | receiver_kind << RECEIVER_SHIFT;
        bytes[4..6].copy_from_slice(&sender);
        bytes[6..8].copy_from_slice(&receiver);
        bytes[8..16].copy_from_slice(&self.sender_start.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.receiver_start.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.counter.to_be_bytes());
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

fn peer(kind: u8, number: [u8; 2]) -> Option<Peer> {
    let number = u32::from(u16::from_be_bytes(number));
    match kind {
        0 => Some(Peer::Switch(SwitchId(number))),
        1 => Some(Peer::Node(NodeId(number))),
        2 => Some(Peer::Operator(OperatorId(number))),
        _ => None,
    }
}

/// Returns kind and number of a member.
fn peer_fields(peer: Peer) -> (u8, [u8; 2]) {
    let (kind, number) = match peer {
        Peer::Switch(switch) => (0, switch.0),
        Peer::Node(node) => (1, node.0),
        Peer::Operator(operator) => (2, operator.0),
    };
    let number = u16::try_from(number).expect("a sealer takes members with numbers of 16 bits only");
    (kind, number.to_be_bytes())
}

/// Whether the number of a member fits into a header.
pub(super) fn fits_header(peer: Peer) -> bool {
    let (Peer::Switch(SwitchId(number)) | Peer::Node(NodeId(number)) | Peer::Operator(OperatorId(number))) = peer;
    u16::try_from(number).is_ok()
}
