//! Random sessions of a feed, concurrent and consecutive, with datagrams lost before the switch. The sequence number of
//! each packet that leaves is compared with a model of the streams, by session and by port.
//!
//! For more runs: `SUBSCRIBE_FUZZ_COUNT=200 SUBSCRIBE_FUZZ_FROM=5 cargo test -p triplane --test it
//! subscribe::sessions`.

use std::collections::{BTreeMap, VecDeque};

use itch_feed::{DatagramMessages, DatagramSource, Feed, Mix, Spec, Workload, messages};
use rng::SplitMix64;
use wire::moldudp64::{self, END_OF_SESSION};

use crate::subscribe::{FORMAT, RULES, feed, payload, run_rules_from, wanted};
use crate::support::feed::frame;
use crate::support::{Directory, root};

/// Ports that the exchange's datagrams come in at.
const FROM: [u32; 3] = [1, 6, 7];
const PORTS: [u32; 4] = [2, 3, 4, 5];

type Name = [u8; 10];

/// The state of a stream within its session.
#[derive(Default)]
struct Stream {
    session: Option<Name>,
    is_over: bool,
    lost: u64,
    due: BTreeMap<u32, u64>,
    /// Number of messages that each port got, and the gap in the numbers that it was shown.
    given: BTreeMap<u32, (u64, u64)>,
}

/// A model that computes the expected sequence numbers from the incoming datagrams.
struct Model {
    streams: Vec<Stream>,
    tells_sessions_apart: bool,
}

impl Model {
    /// Creates a model with room for `streams` streams. With 0 the format knows no sessions.
    fn new(streams: usize) -> Model {
        let tells_sessions_apart = streams > 0;
        Model { streams: (0..streams.max(1)).map(|_| Stream::default()).collect(), tells_sessions_apart }
    }

    /// Returns the stream of a datagram that came in at a port, after it has counted the datagram's messages.
    fn arrives(&mut self, port: u32, header: &moldudp64::Repr) -> &mut Stream {
        let at = if self.tells_sessions_apart { crc32(&header.session) as usize % self.streams.len() } else { 0 };
        let stream = &mut self.streams[at];
        let is_end = header.count == END_OF_SESSION;
        if self.tells_sessions_apart {
            let anew = stream.is_over && header.sequence == 1 && !is_end;
            if stream.session != Some(header.session) || anew {
                *stream = Stream { session: Some(header.session), ..Stream::default() };
            }
            stream.is_over |= is_end;
        }
        let count = if is_end { 0 } else { u64::from(header.count) };
        let due = stream.due.entry(port).or_insert(header.sequence);
        stream.lost += header.sequence.saturating_sub(*due);
        *due = (*due).max(header.sequence + count);
        stream
    }
}

impl Stream {
    /// Returns the number of the first of `count` messages that a port gets.
    fn number(&mut self, port: u32, count: u64) -> u64 {
        let (given, gap) = self.given.entry(port).or_default();
        *gap = (*gap).max(self.lost);
        *given += count;
        *given - count + *gap + 1
    }
}

/// CRC-32 as defined by Ethernet.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & 0u32.wrapping_sub(crc & 1)))
    })
}

/// A publisher: the datagrams that it still has to send, and its port.
struct Publisher {
    port: u32,
    datagrams: VecDeque<Vec<u8>>,
}

fn header(payload: &[u8]) -> moldudp64::Repr {
    moldudp64::Repr::parse(&moldudp64::Packet::new_checked(payload).unwrap())
}

/// Returns the datagrams of sessions that publishers send by their ports, interleaved at random. Some datagrams are
/// lost before the switch.
fn publish(rng: &mut SplitMix64) -> Vec<(u32, Vec<u8>)> {
    let mut publishers: Vec<Publisher> = Vec::new();
    for _ in 0..2 + rng.below(3) {
        let mut datagrams = VecDeque::new();
        for _ in 0..1 + rng.below(3) {
            // A session may also be repeated, after its end or without one.
            let session = *format!("S{:09}", rng.below(6)).as_bytes().first_chunk().unwrap();
            let base = Workload::Synthetic.spec(rng.below(1_000));
            let spec = Spec { session, share: 0.3, mix: Mix::BOOK, counts: DatagramMessages::Exactly(3), ..base };
            let mut feed = Feed::new(spec);
            for _ in 0..5 + rng.below(20) {
                datagrams.push_back(feed.datagram(0));
                if rng.percent(10) {
                    datagrams.push_back(feed.heartbeat());
                }
            }
            if rng.percent(70) {
                datagrams.extend((0..2).map(|_| feed.end_of_session()));
            }
        }
        datagrams.retain(|_| !rng.percent(10));
        publishers.push(Publisher { port: FROM[rng.below(3) as usize], datagrams });
    }
    let mut sent = Vec::new();
    while !publishers.is_empty() {
        let at = rng.below(publishers.len() as u64) as usize;
        for _ in 0..1 + rng.below(4) {
            let next = publishers[at].datagrams.pop_front();
            sent.extend(next.map(|payload| (publishers[at].port, payload)));
        }
        publishers.retain(|publisher| !publisher.datagrams.is_empty());
    }
    sent
}

/// Returns the sessions and the sequence numbers that each port gets: one number per message, and one per packet
/// without messages.
fn expected(model: &mut Model, sent: &[(u32, Vec<u8>)]) -> BTreeMap<u32, Vec<(Name, u64, bool)>> {
    let mut all: BTreeMap<u32, Vec<_>> = PORTS.iter().map(|port| (*port, Vec::new())).collect();
    for (from, payload) in sent {
        let header = header(payload);
        let stream = model.arrives(*from, &header);
        for message in messages(payload).unwrap() {
            let mut ports = wanted(&message);
            ports.dedup();
            for port in ports {
                let number = stream.number(port, 1);
                all.get_mut(&port).unwrap().push((header.session, number, true));
            }
        }
        if header.count == 0 || header.count == END_OF_SESSION {
            for port in PORTS {
                let number = stream.number(port, 0);
                all.get_mut(&port).unwrap().push((header.session, number, false));
            }
        }
    }
    all
}

fn check(format: &str, streams: usize, seed: u64) -> usize {
    let mut rng = SplitMix64::new(seed);
    let sent = publish(&mut rng);
    let frames: Vec<(u32, Vec<u8>)> = sent.iter().map(|(port, payload)| (*port, frame(payload))).collect();
    let shape: &[&str] = if rng.percent(40) { &["--messages-per-pass", "1"] } else { &[] };
    let got = run_rules_from(format, RULES, shape, &frames, &PORTS);
    let expected = expected(&mut Model::new(streams), &sent);
    for (port, frames) in PORTS.iter().zip(&got) {
        let numbers = frames.iter().flat_map(|frame| {
            let payload = payload(frame);
            let header = header(&payload);
            let count = messages(&payload).unwrap().len() as u64;
            let of_messages = (0..count).map(move |at| (header.session, header.sequence + at, true));
            of_messages.chain((count == 0).then_some((header.session, header.sequence, false)))
        });
        assert_eq!(
            numbers.collect::<Vec<_>>(),
            expected[port],
            "seed {seed}, {streams} streams, port {port}, {shape:?}"
        );
    }
    got.iter().map(Vec::len).sum()
}

/// Writes the example's format with another declaration of its session.
fn with_session(directory: &Directory, session: &str) -> String {
    let text = std::fs::read_to_string(root().join(FORMAT)).unwrap();
    let said = "session = \"mold.session\",";
    assert!(text.contains(said));
    directory.write("feed.p4", text.replace(said, session))
}

#[test]
fn sessions_have_numbers_of_their_own_at_each_port() {
    let (from, count) = (testing::number("SUBSCRIBE_FUZZ_FROM", 0u64), testing::number("SUBSCRIBE_FUZZ_COUNT", 2u64));
    let directory = Directory::new();
    let mut packets = 0;
    for seed in from..from + count {
        packets += check(FORMAT, 64, seed);
        // Sessions that share a slot evict each other.
        packets += check(&with_session(&directory, "session = \"mold.session\", streams = 2,"), 2, seed + 1_000);
        packets += check(&with_session(&directory, ""), 0, seed + 2_000);
    }
    assert!(packets > 100 * count as usize, "{packets} packets left");
}

#[test]
fn a_new_session_shows_what_it_lost_and_begins_with_number_1() {
    let sessions = [b"000000001 ", b"000000002 "].map(|session| {
        let base = Workload::WorstCase.spec(1);
        feed(Spec { session: *session, counts: DatagramMessages::Exactly(1), ..base }, 100)
    });
    let [first, mut second] = sessions;
    second.drain(9..19);
    let missing = |frames: &[Vec<u8>]| {
        [itch_feed::Receiver::default(), itch_feed::Receiver::from_start()].map(|mut receiver| {
            frames.iter().for_each(|frame| drop(receiver.receive(&payload(frame), 0).unwrap()));
            (receiver.totals().messages, receiver.totals().missing, receiver.totals().repeated)
        })
    };
    let rules = "stock == \"GOOGL\" : fwd(2)\n";
    let from =
        |port: u32, payloads: &[Vec<u8>]| payloads.iter().map(|payload| (port, frame(payload))).collect::<Vec<_>>();
    // One session after the other by one port, and both at the same time by two ports.
    let in_turn = from(1, &[&first[..], &second].concat());
    let pairs = from(1, &first).into_iter().zip(from(5, &second));
    let together: Vec<_> = pairs.flat_map(|(one, other)| [one, other]).chain(from(1, &first[90..])).collect();
    for (frames, repeated) in [(in_turn, 0), (together, 0)] {
        let got = run_rules_from(FORMAT, rules, &[], &frames, &[2]);
        let all = frames.len() as u64;
        assert_eq!(missing(&got[0]), [(all, 10, repeated); 2]);
    }
}
