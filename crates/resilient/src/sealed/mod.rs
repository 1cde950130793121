//! Seals datagrams between the members of a cluster, and opens them: only a member with the key of the cluster can
//! create a valid one, and each counts once.
//!
//! ```text
//!   bytes
//!    2  "TR"
//!    1  version, 4
//!    1  kinds: bit 0 is 0 for messages and 1 for a hello; bits 2 and 3 are the sender's kind, 4 to 7 the receiver's:
//!       0 for a switch, 1 for a store, 2 for an operator
//!    2  number of the sender
//!    2  number of the receiver
//!    8  start number of the sender
//!    8  start number of the receiver as the sender knows it; 0 if it does not
//!    8  counter of the sender for this receiver, from 1; 0 in a hello
//!       messages (crate::wire_form), or in a hello: fingerprint (16), challenge (8), echo (8); 0 is none
//!   16  tag: keyed BLAKE3 of all bytes before it
//! ```
//!
//! Each member draws a random **start number** when it starts. A datagram with messages counts only if it has the
//! start number of its receiver, the sender's start number that the receiver knows, and a counter that is new in a
//! window of the last 1024.
//!
//! **Hellos** make start numbers known. A member learns the start number of another only from the answer to a challenge
//! of its own, so a recorded hello proves nothing, and a start that has ended never counts again. No list of ended
//! starts is needed, as they cannot answer. Challenging a member again whose start number has not changed has no
//! effect, so replays do not disturb a pair.
//!
//! ```text
//!   switch (starts)                                        store
//!     request: challenge 1                     ──>
//!                                              <──         answer: echo 1, challenge 1
//!     answer: echo 1; then messages            ──>
//! ```
//!
//! A member sends a request when it has messages for a peer whose start number it does not know (they wait), and when a
//! datagram with a valid tag has unknown start numbers; at most one in a millisecond to each peer. A hello with a
//! challenge is answered at once, by a hello of the same length. The answer has a challenge itself only if the hello
//! did not prove its start number: so an exchange has at most three hellos. Datagrams with a wrong tag are never
//! answered.
//!
//! Hellos carry a [`ClusterFingerprint`]. A peer with another one is refused.

mod form;
mod key;
mod peer_state;
mod replay_window;

use std::collections::BTreeMap;

use switch::Time;

use crate::message::{OwnerId, Peer, StoreMessage};
use crate::wire_form;
pub use form::{HEADER_BYTES, TAG_BYTES};
use form::{Header, Hello, Kind, fits_header};
pub use key::{ClusterFingerprint, ClusterKey};
use peer_state::PeerState;

/// Counts of datagrams that were refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedDatagrams {
    /// Datagrams that are not valid messages of the protocol.
    pub malformed: u64,
    /// Datagrams from addresses outside the cluster, or that name another sender or receiver.
    pub stranger: u64,
    /// Datagrams with a wrong tag: forged, damaged, or from a member with another key.
    pub wrong_tag: u64,
    /// Datagrams that were received before, or are older than the window.
    pub replayed: u64,
    /// Datagrams of another start of the sender or receiver, as after a restart.
    pub other_start: u64,
    /// Datagrams from members with other settings of the cluster.
    pub other_settings: u64,
}

/// Returns the messages of a datagram without verifying its tag, for drawings of a run; `None` for a hello, and for
/// other bytes.
pub fn peek(datagram: &[u8]) -> Option<Vec<StoreMessage>> {
    let (header, body) = Header::read(datagram)?;
    let is_hello = matches!(header.kind, Kind::Hello);
    wire_form::read_messages(body, header.switch()).ok().filter(|_| !is_hello)
}

impl RefusedDatagrams {
    /// Returns the total number.
    pub fn total(&self) -> u64 {
        let RefusedDatagrams { malformed, stranger, wrong_tag, replayed, other_start, other_settings } = self;
        malformed + stranger + wrong_tag + replayed + other_start + other_settings
    }
}

/// The reason for which a datagram is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DatagramRefusal {
    Malformed,
    Stranger,
    WrongTag,
    Replayed,
    OtherStart,
    OtherSettings,
}

/// A member's end of the sealed datagrams to and from all other members.
#[derive(Debug)]
pub struct DatagramSealer {
    me: Peer,
    start: u64,
    key: ClusterKey,
    fingerprint: ClusterFingerprint,
    peers: BTreeMap<Peer, PeerState>,
    outgoing: Vec<(Peer, Vec<u8>)>,
    disagreeing: Vec<Peer>,
    refused: RefusedDatagrams,
}

impl DatagramSealer {
    /// Creates the end of a member. `start` is a random number, drawn at its start. `peers` are the members with which
    /// it exchanges datagrams. The numbers of members have 16 bits.
    pub fn new(
        me: Peer,
        start: u64,
        key: ClusterKey,
        fingerprint: ClusterFingerprint,
        peers: impl IntoIterator<Item = Peer>,
    ) -> DatagramSealer {
        let peers: BTreeMap<_, _> =
            peers.into_iter().filter(|peer| *peer != me).map(|peer| (peer, PeerState::default())).collect();
        assert!(peers.keys().chain([&me]).all(|peer| fits_header(*peer)), "a member's number has more than 16 bits");
        // 0 means an unknown start number.
        let start = start.max(1);
        let (outgoing, disagreeing) = (Vec::new(), Vec::new());
        DatagramSealer { me, start, key, fingerprint, peers, outgoing, disagreeing, refused: Default::default() }
    }

    /// Returns the start number of the member.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Sends messages. Those for one peer are in order, with as many in a datagram as fit.
    pub fn send(&mut self, now: Time, messages: &[(Peer, StoreMessage)]) {
        for (to, datagram) in wire_form::datagrams(messages, |to| self.switch_towards(to)) {
            self.seal(now, to, datagram);
        }
    }

    /// Returns the switch that the header of a datagram for a peer names, if its start number is known by now.
    fn switch_towards(&self, to: Peer) -> Option<OwnerId> {
        let start = self.peers.get(&to)?.start;
        self.header(Kind::Messages, to, start.unwrap_or(0), 0).switch().filter(|_| start.is_some())
    }

    /// Seals a datagram that [`wire_form`] has written. It waits if the peer's start number is unknown. It is dropped
    /// if the peer is not in the cluster; if too many wait, the oldest is dropped.
    fn seal(&mut self, now: Time, to: Peer, datagram: Vec<u8>) {
        let Some(peer) = self.peers.get_mut(&to) else { return };
        match peer.start {
            Some(start) => self.finish(to, start, datagram),
            None => {
                peer.wait(datagram);
                self.request(now, to);
            }
        }
    }

    /// Opens a datagram that came from the address of a member, and returns its messages: none if it does not count,
    /// or is a hello.
    pub fn open(&mut self, now: Time, from: Peer, datagram: &[u8]) -> Vec<StoreMessage> {
        self.try_open(now, from, datagram).unwrap_or_else(|refusal| {
            self.refuse(refusal);
            Vec::new()
        })
    }

    /// Counts a datagram from an address outside the cluster.
    pub fn refuse_stranger(&mut self) {
        self.refuse(DatagramRefusal::Stranger);
    }

    /// Removes and returns the datagrams to send.
    pub fn take_outgoing(&mut self) -> impl Iterator<Item = (Peer, Vec<u8>)> + use<'_> {
        self.outgoing.drain(..)
    }

    /// Removes and returns the peers that have proved to have other settings, each once.
    pub fn take_disagreeing(&mut self) -> Vec<Peer> {
        std::mem::take(&mut self.disagreeing)
    }

    /// Returns the counts of datagrams that were refused.
    pub fn refused(&self) -> RefusedDatagrams {
        self.refused
    }

    fn refuse(&mut self, refusal: DatagramRefusal) {
        let RefusedDatagrams { malformed, stranger, wrong_tag, replayed, other_start, other_settings } =
            &mut self.refused;
        *match refusal {
            DatagramRefusal::Malformed => malformed,
            DatagramRefusal::Stranger => stranger,
            DatagramRefusal::WrongTag => wrong_tag,
            DatagramRefusal::Replayed => replayed,
            DatagramRefusal::OtherStart => other_start,
            DatagramRefusal::OtherSettings => other_settings,
        } += 1;
    }

    fn try_open(&mut self, now: Time, from: Peer, datagram: &[u8]) -> Result<Vec<StoreMessage>, DatagramRefusal> {
        let (header, body) = Header::read(datagram).ok_or(DatagramRefusal::Malformed)?;
        let peer = self.peers.get_mut(&from).ok_or(DatagramRefusal::Stranger)?;
        if header.sender != from || header.receiver != self.me {
            return Err(DatagramRefusal::Stranger);
        }
        if !self.key.has_sealed(datagram) {
            return Err(DatagramRefusal::WrongTag);
        }
        if header.kind == Kind::Hello {
            let hello = Hello::read(body).ok_or(DatagramRefusal::Malformed)?;
            return self.hello(&header, &hello).map(|()| Vec::new());
        }
        if header.receiver_start != self.start || peer.start != Some(header.sender_start) {
            let refusal = peer.refusal();
            self.request(now, from);
            return Err(refusal);
        }
        if !peer.window.accept(header.counter) {
            return Err(DatagramRefusal::Replayed);
        }
        wire_form::read_messages(body, header.switch()).map_err(|_| DatagramRefusal::Malformed)
    }

    /// Handles a hello with a valid tag. Its start number counts only if it answers a challenge of this member's.
    fn hello(&mut self, header: &Header, hello: &Hello) -> Result<(), DatagramRefusal> {
        if header.receiver_start != 0 && header.receiver_start != self.start {
            return Err(DatagramRefusal::OtherStart);
        }
        let from = header.sender;
        let Some(peer) = self.peers.get_mut(&from) else { return Err(DatagramRefusal::Stranger) };
        let is_proven = header.receiver_start == self.start && hello.echo != 0 && hello.echo == peer.challenge;
        let is_alike = hello.fingerprint == self.fingerprint;
        let mut waited = Vec::new();
        if is_proven && is_alike {
            waited = peer.adopt(header.sender_start);
        } else if is_proven && peer.reject() {
            self.disagreeing.push(from);
        }
        if hello.challenge != 0 {
            let needs_proof = !is_proven && peer.start != Some(header.sender_start);
            let challenge = if needs_proof { peer.challenge() } else { 0 };
            let answer = Hello { fingerprint: self.fingerprint, challenge, echo: hello.challenge };
            self.say(from, header.sender_start, &answer);
        }
        // Sent after the answer, which makes this member's start number known.
        waited.into_iter().for_each(|datagram| self.finish(from, header.sender_start, datagram));
        if is_proven && !is_alike { Err(DatagramRefusal::OtherSettings) } else { Ok(()) }
    }

    /// Requests a peer's start number, unless this was done a moment ago.
    fn request(&mut self, now: Time, to: Peer) {
        let Some(peer) = self.peers.get_mut(&to) else { return };
        if !peer.may_request(now) {
            return;
        }
        let request = Hello { fingerprint: self.fingerprint, challenge: peer.challenge(), echo: 0 };
        self.say(to, 0, &request);
    }

    fn say(&mut self, to: Peer, receiver_start: u64, hello: &Hello) {
        let mut datagram = vec![0; HEADER_BYTES];
        hello.append_to(&mut datagram);
        let header = self.header(Kind::Hello, to, receiver_start, 0);
        self.outgoing.push((to, self.key.seal(&header, datagram)));
    }

    /// Completes a datagram with messages, and sends it.
    fn finish(&mut self, to: Peer, receiver_start: u64, datagram: Vec<u8>) {
        let Some(peer) = self.peers.get_mut(&to) else { return };
        peer.sent += 1;
        let counter = peer.sent;
        let header = self.header(Kind::Messages, to, receiver_start, counter);
        self.outgoing.push((to, self.key.seal(&header, datagram)));
    }

    fn header(&self, kind: Kind, receiver: Peer, receiver_start: u64, counter: u64) -> Header {
        Header { kind, sender: self.me, receiver, sender_start: self.start, receiver_start, counter }
    }
}

#[cfg(test)]
mod tests;
