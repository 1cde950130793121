//! Receives feeds: arrivals, missing messages, and message ages.

use wire::itch::Message;
use wire::{Malformed, moldudp64};

use crate::DAY_NS;

/// Parses the messages of a datagram's payload, in order.
///
/// # Errors
/// If the datagram or one of its messages is malformed.
pub fn messages(payload: &[u8]) -> Result<Vec<Message>, Malformed> {
    moldudp64::Packet::new_checked(payload)?.messages().map(Message::parse).collect()
}

/// Totals of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Datagrams with messages that were received.
    pub datagrams: u64,
    /// Messages received for the first time.
    pub messages: u64,
    /// Skipped sequence numbers.
    pub missing: u64,
    /// Messages with a sequence number that was already received or skipped.
    pub repeated: u64,
}

/// A received message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its sequence number.
    pub sequence: u64,
    /// Time from its timestamp until now, in ns, across midnight if necessary; 0 if its timestamp lies up to half a day
    /// ahead.
    pub age_ns: u64,
    /// The message.
    pub message: Message,
}

/// Maximum number of concurrent sessions; beyond it, the least recently active one is forgotten.
const MAX_SESSIONS: usize = 64;

/// Reads the sessions of a stream, sequentially or interleaved. The first datagram of a session determines its first
/// sequence number, unless sessions are read from number 1. A session that has ended and restarts with number 1 is
/// treated as new.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// Sessions, most recently active first.
    sessions: Vec<Session>,
    totals: Totals,
    from_start: bool,
}

#[derive(Clone, Copy, Debug)]
struct Session {
    name: [u8; 10],
    /// Next expected sequence number.
    expected: u64,
    is_over: bool,
}

impl Receiver {
    /// Creates a receiver for sessions that start with number 1: messages before the first datagram count as missing.
    pub fn from_start() -> Receiver {
        Receiver { from_start: true, ..Receiver::default() }
    }

    /// Receives a datagram's payload at `now_ns` since midnight. Returns the new messages, in order.
    ///
    /// # Errors
    /// If the datagram or one of its messages is malformed; the whole datagram is then ignored.
    pub fn receive(&mut self, payload: &[u8], now_ns: u64) -> Result<Vec<Arrival>, Malformed> {
        let packet = moldudp64::Packet::new_checked(payload)?;
        let header = moldudp64::Repr::parse(&packet);
        let messages = messages(payload)?;
        let session = self.session(&header);
        let missing = header.sequence.saturating_sub(session.expected);
        session.expected = session.expected.max(header.sequence);
        let mut expected = session.expected;
        self.totals.missing += missing;
        self.totals.datagrams += u64::from(!messages.is_empty());
        let mut arrivals = Vec::with_capacity(messages.len());
        for (sequence, message) in (header.sequence..).zip(messages) {
            if sequence < expected {
                self.totals.repeated += 1;
                continue;
            }
            expected = sequence.saturating_add(1);
            self.totals.messages += 1;
            let age_ns = age(message.header.timestamp_ns, now_ns);
            arrivals.push(Arrival { sequence, age_ns, message });
        }
        self.sessions[0].expected = expected;
        Ok(arrivals)
    }

    /// Returns the session of a datagram and moves it to the front.
    fn session(&mut self, header: &moldudp64::Repr) -> &mut Session {
        let is_end = header.count == moldudp64::END_OF_SESSION;
        match self.sessions.iter().position(|session| session.name == header.session) {
            Some(at) => self.sessions[..=at].rotate_right(1),
            None => {
                self.sessions.truncate(MAX_SESSIONS - 1);
                let expected = if self.from_start { 1 } else { header.sequence };
                self.sessions.insert(0, Session { name: header.session, expected, is_over: false });
            }
        }
        let session = &mut self.sessions[0];
        if session.is_over && header.sequence == 1 && !is_end {
            *session = Session { expected: 1, is_over: false, ..*session };
        }
        session.is_over |= is_end;
        session
    }

    /// Whether all known sessions have ended.
    pub fn is_over(&self) -> bool {
        !self.sessions.is_empty() && self.sessions.iter().all(|session| session.is_over)
    }

    /// Returns the totals.
    pub fn totals(&self) -> Totals {
        self.totals
    }
}

/// Returns the duration between two times of day, in ns.
fn age(then_ns: u64, now_ns: u64) -> u64 {
    let passed = now_ns.saturating_add(DAY_NS).saturating_sub(then_ns) % DAY_NS;
    if passed < DAY_NS / 2 { passed } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DatagramMessages, DatagramSource, Feed, Spec, Workload};

    fn feed() -> Feed {
        named(b"TRIPLANE01")
    }

    fn named(session: &[u8; 10]) -> Feed {
        Feed::new(Spec { session: *session, counts: DatagramMessages::Exactly(3), ..Workload::Synthetic.spec(1) })
    }

    #[test]
    fn a_complete_stream_has_no_losses_and_reports_ages() {
        let (mut feed, mut receiver) = (feed(), Receiver::default());
        for at in 0..10 {
            let arrivals = receiver.receive(&feed.datagram(100 * at), 100 * at + 7).unwrap();
            let told: Vec<_> = arrivals.iter().map(|arrival| (arrival.sequence, arrival.age_ns)).collect();
            assert_eq!(told, [(3 * at + 1, 7), (3 * at + 2, 7), (3 * at + 3, 7)]);
        }
        assert_eq!(receiver.totals(), Totals { datagrams: 10, messages: 30, missing: 0, repeated: 0 });
    }

    #[test]
    fn gaps_repeats_and_heartbeats_are_counted_separately() {
        let (mut feed, mut receiver) = (feed(), Receiver::default());
        let first = feed.datagram(0);
        receiver.receive(&first, 0).unwrap();
        feed.datagram(0);
        receiver.receive(&feed.datagram(0), 0).unwrap();
        assert_eq!(receiver.totals().missing, 3);
        assert_eq!(receiver.receive(&first, 0).unwrap(), []);
        assert_eq!(receiver.totals().repeated, 3);
        let next = feed.next_sequence();
        let mut heartbeat = moldudp64::datagram::<[u8; 0]>(*b"TRIPLANE01", next, &[]);
        receiver.receive(&heartbeat, 0).unwrap();
        assert_eq!(receiver.totals().missing, 3);
        heartbeat[17] += 2;
        receiver.receive(&heartbeat, 0).unwrap();
        assert_eq!(receiver.totals().missing, 5);
    }

    #[test]
    fn losses_at_the_beginning_and_the_end_of_a_session_are_counted() {
        let (mut feed, mut receiver) = (feed(), Receiver::from_start());
        feed.datagram(0);
        receiver.receive(&feed.datagram(0), 0).unwrap();
        feed.datagram(0);
        receiver.receive(&feed.heartbeat(), 0).unwrap();
        assert!(!receiver.is_over());
        receiver.receive(&feed.end_of_session(), 0).unwrap();
        assert!(receiver.is_over());
        assert_eq!(receiver.totals(), Totals { datagrams: 1, messages: 3, missing: 6, repeated: 0 });
    }

    #[test]
    fn sessions_have_numbers_of_their_own_also_at_the_same_time() {
        for from_start in [false, true] {
            let (mut first, mut second) = (named(b"000000001 "), named(b"000000002 "));
            let mut receiver = Receiver { from_start, ..Receiver::default() };
            for number in 0..10 {
                let (one, other) = (first.datagram(0), second.datagram(0));
                receiver.receive(&one, 0).unwrap();
                if number != 4 {
                    receiver.receive(&other, 0).unwrap();
                }
            }
            assert_eq!(receiver.totals(), Totals { datagrams: 19, messages: 57, missing: 3, repeated: 0 });
            receiver.receive(&first.end_of_session(), 0).unwrap();
            assert!(!receiver.is_over());
            receiver.receive(&second.end_of_session(), 0).unwrap();
            assert!(receiver.is_over());
        }
    }

    #[test]
    fn a_session_restarts_only_after_its_end() {
        let mut receiver = Receiver::default();
        let mut feeds = [feed(), feed(), feed()];
        for feed in &mut feeds[..2] {
            receiver.receive(&feed.datagram(0), 0).unwrap();
        }
        assert_eq!(receiver.totals().repeated, 3);
        receiver.receive(&feeds[0].end_of_session(), 0).unwrap();
        receiver.receive(&feeds[1].datagram(0), 0).unwrap();
        assert!(receiver.is_over());
        receiver.receive(&feeds[2].datagram(0), 0).unwrap();
        assert!(!receiver.is_over());
        assert_eq!(receiver.totals(), Totals { datagrams: 4, messages: 9, missing: 0, repeated: 3 });
    }

    #[test]
    fn a_receiver_does_not_grow_with_what_comes() {
        let mut receiver = Receiver::default();
        for number in 0..1_000u64 {
            let name = format!("{number:010}").into_bytes().try_into().unwrap();
            receiver.receive(&moldudp64::datagram::<[u8; 0]>(name, 1, &[]), 0).unwrap();
        }
        assert_eq!(receiver.sessions.len(), MAX_SESSIONS);
    }

    #[test]
    fn ages_are_right_at_midnight_and_never_negative() {
        assert_eq!(age(100, 107), 7);
        assert_eq!(age(DAY_NS - 3, 4), 7);
        assert_eq!(age(107, 100), 0);
        assert_eq!(age(u64::MAX, 0), 0);
    }

    #[test]
    fn bad_datagrams_count_for_nothing() {
        let (mut feed, mut receiver) = (feed(), Receiver::default());
        let mut payload = feed.datagram(0);
        receiver.receive(&payload, 0).unwrap();
        let before = receiver.totals();
        payload = feed.datagram(0);
        payload[moldudp64::HEADER_LEN + moldudp64::LENGTH_LEN + 19] = b'?';
        assert!(receiver.receive(&payload, 0).is_err());
        assert!(receiver.receive(&payload[..30], 0).is_err());
        assert_eq!(receiver.totals(), before);
    }
}
