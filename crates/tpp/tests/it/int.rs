//! Holds INT nodes against a model with an encoder and a decoder of its own, on random packets and paths.
//!
//! The model shares no code with `wire::int` and `tpp::int`: it writes whole packets and computes every checksum anew.

use rng::SplitMix64;
use tpp::int::{IntMutant, IntMutation, IntNode, IntVerdict};
use tpp::{MemoryMap, SparseMemory};
use wire::checksum::{self, Addresses};
use wire::int::{Marker, NextProtocol, Repr};

const PORT: u16 = 0x4954;
const DSCP: u8 = 0x17;

/// The fields that each instruction requests, as the specification lists them: width in bits, and name in the map.
const FIELDS: [(usize, &[(u32, &str)]); 9] = [
    (0, &[(32, "Switch:ID")]),
    (1, &[(16, "PacketMetadata:InputPort"), (16, "PacketMetadata:OutputPort")]),
    (2, &[(32, "PacketMetadata:HopLatency")]),
    (3, &[(8, "PacketMetadata:QueueID"), (24, "Queue:QueueOccupancy")]),
    (4, &[(64, "PacketMetadata:IngressTime")]),
    (5, &[(64, "PacketMetadata:EgressTime")]),
    (6, &[(32, ""), (32, "")]),
    (7, &[(32, "Link:TX-Utilization")]),
    (8, &[(8, ""), (24, "")]),
];

/// The values of a hop, by name. A value that is missing is absent.
type Values = Vec<(&'static str, u64)>;

/// What the shim keeps for the sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Dscp,
    Port,
    Protocol,
}

/// A packet on a path with INT nodes.
#[derive(Clone, Debug)]
struct Case {
    kept: Kept,
    is_ipv6: bool,
    is_udp: bool,
    tag: bool,
    class: u8,
    port: u16,
    payload: Vec<u8>,
    /// Whether a datagram has no checksum.
    no_checksum: bool,
    flags: u8,
    bitmap: u16,
    domain: [u16; 3],
    hop_words: usize,
    remaining: u8,
    stack: Vec<u8>,
    hops: Vec<(Values, usize)>,
    sink: Values,
}

fn value(values: &Values, name: &str, width: u32) -> u64 {
    let ones = u64::MAX >> (64 - width);
    values.iter().find(|(known, _)| *known == name).map_or(ones, |(_, value)| (*value).min(ones - 1))
}

/// Returns the metadata of a hop: `words` words.
fn metadata(bitmap: u16, words: usize, values: &Values) -> Vec<u8> {
    let mut bits = String::new();
    for (bit, fields) in FIELDS {
        if bitmap & 0x8000 >> bit != 0 {
            for (width, name) in fields {
                bits += &format!("{:0width$b}", value(values, name, *width), width = *width as usize);
            }
        }
    }
    let mut bytes: Vec<u8> =
        (0..bits.len() / 8).map(|at| u8::from_str_radix(&bits[8 * at..8 * at + 8], 2).unwrap()).collect();
    bytes.resize(4 * words, 0xff);
    bytes
}

fn random_values(random: &mut SplitMix64) -> Values {
    let mut values = Values::new();
    for (width, name) in FIELDS.iter().flat_map(|(_, fields)| fields.iter()) {
        let ones = u64::MAX >> (64 - width);
        let large = if *width == 64 { ones } else { 1 + ones + random.below(9) };
        let any = random.next_u64() & ones;
        let choices = [(1, None), (1, Some(large)), (1, Some(ones)), (5, Some(any))];
        if let (Some(value), false) = (random.pick(&choices), name.is_empty()) {
            values.push((name, value));
        }
    }
    values
}

impl Case {
    fn new(seed: u64) -> Case {
        let mut random = SplitMix64::new(seed);
        let kept = random.pick(&[(1, Kept::Dscp), (1, Kept::Port), (1, Kept::Protocol)]);
        let is_udp = kept == Kept::Port || random.percent(50);
        let any = random.next_u64();
        let bitmap = 0x8000 | random.pick(&[(3, 0x9000), (3, any as u16), (1, 0xff81), (1, 0x8000)]);
        let has_domain = random.percent(30);
        let own = (0..16).map(|bit| {
            if bitmap & 0x8000 >> bit == 0 {
                0
            } else if (4..7).contains(&bit) {
                2
            } else {
                1
            }
        });
        let extra = if has_domain { random.below(4) as usize } else { 0 };
        let hop_words = own.sum::<usize>() + extra;
        let most = 252 / hop_words;
        let before = random.pick(&[(4, 0), (2, 1), (1, most), (1, most.saturating_sub(1))]);
        let stack = (0..4 * hop_words * before).map(|_| random.next_u64() as u8).collect();
        let payload_len = 2 + random.below(60);
        let hops = (0..1 + random.below(4)).map(|_| {
            let mtu = random.below(300) as usize;
            let mtu = random.pick(&[(4, 9_000), (1, mtu)]);
            (random_values(&mut random), mtu)
        });
        let hops = hops.collect();
        let mut case = Case {
            kept,
            is_ipv6: random.percent(40),
            is_udp,
            tag: random.percent(30),
            class: random.next_u64() as u8,
            port: random.next_u64() as u16,
            payload: (0..payload_len).map(|_| random.next_u64() as u8).collect(),
            no_checksum: random.percent(20),
            flags: random.pick(&[(3, 0), (1, 8), (1, 4), (1, 2)]),
            bitmap,
            domain: if has_domain { [7, 0x8001, random.next_u64() as u16] } else { [0; 3] },
            hop_words,
            remaining: random.pick(&[(2, 8), (1, 1), (1, 0), (1, 255)]),
            stack,
            hops,
            sink: random_values(&mut random),
        };
        // The marker's values are those of other packets only.
        case.class = if case.class >> 2 == DSCP { 1 } else { case.class };
        if case.is_udp && random.percent(30) {
            case.make_checksum_zero(random.percent(50));
        }
        case
    }

    /// Changes a word of the payload, so that the checksum of the packet (or of that after a hop) adds up to zero.
    fn make_checksum_zero(&mut self, after_hop: bool) {
        self.no_checksum = false;
        let mut model = self.clone();
        if after_hop {
            model.pass(0);
        }
        let packet = if after_hop { model.marked() } else { self.original() };
        let at = self.ip() + self.ip_len() + 6;
        let sum = u16::from_be_bytes([packet[at], packet[at + 1]]);
        let word = u16::from_be_bytes([self.payload[0], self.payload[1]]);
        let word = checksum::fold(u64::from(word) + u64::from(sum));
        self.payload[..2].copy_from_slice(&word.to_be_bytes());
    }

    fn ip(&self) -> usize {
        if self.tag { 18 } else { 14 }
    }

    fn ip_len(&self) -> usize {
        if self.is_ipv6 { 40 } else { 20 }
    }

    fn protocol(&self) -> u8 {
        if self.is_udp { 17 } else { 6 }
    }

    fn addresses(&self) -> Addresses {
        match self.is_ipv6 {
            true => Addresses::V6([1; 16].into(), [2; 16].into()),
            false => Addresses::V4([10, 0, 0, 1].into(), [10, 9, 0, 2].into()),
        }
    }

    /// Returns a UDP or TCP header and its payload. TCP has an option.
    fn segment(&self, protocol: u8, port: u16, payload: &[u8], no_checksum: bool) -> Vec<u8> {
        let mut bytes = vec![0x12, 0x34];
        bytes.extend(port.to_be_bytes());
        let at = match protocol {
            17 => {
                bytes.extend((8 + payload.len() as u16).to_be_bytes());
                bytes.extend([0; 2]);
                6
            }
            _ => {
                bytes.extend([1, 2, 3, 4, 5, 6, 7, 8, 0x60, 0x10, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0]);
                16
            }
        };
        bytes.extend(payload);
        let sum = checksum::finish(self.addresses().pseudo(protocol, bytes.len()) + checksum::sum(&bytes));
        let sum = if sum == 0 && protocol == 17 { 0xffff } else { sum };
        if !(no_checksum && protocol == 17) {
            bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        }
        bytes
    }

    fn frame(&self, class: u8, protocol: u8, segment: &[u8]) -> Vec<u8> {
        let mut bytes = vec![2; 12];
        if self.tag {
            bytes.extend([0x81, 0, 0, 9]);
        }
        if self.is_ipv6 {
            bytes.extend([0x86, 0xdd, 0x60 | class >> 4, class << 4, 3, 4]);
            bytes.extend((segment.len() as u16).to_be_bytes());
            bytes.extend([protocol, 64]);
            bytes.extend([1; 16]);
            bytes.extend([2; 16]);
        } else {
            let mut header = vec![0x45, class];
            header.extend((20 + segment.len() as u16).to_be_bytes());
            header.extend([9, 9, 0x40, 0, 63, protocol, 0, 0, 10, 0, 0, 1, 10, 9, 0, 2]);
            let sum = checksum::checksum(&header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            bytes.extend([8, 0]);
            bytes.extend(header);
        }
        bytes.extend(segment);
        // Short frames are padded.
        bytes.resize(bytes.len().max(60), 0);
        bytes
    }

    fn original(&self) -> Vec<u8> {
        let segment = self.inner();
        self.frame(self.class, self.protocol(), &segment)
    }

    /// Returns the segment of the source. A header that the source inserts before it has its own checksum, or none.
    fn inner(&self) -> Vec<u8> {
        let no_checksum = self.no_checksum && self.kept != Kept::Protocol;
        self.segment(self.protocol(), self.port, &self.payload, no_checksum)
    }

    /// Returns shim, header and stack.
    fn header(&self) -> Vec<u8> {
        let (kind, restored) = match self.kept {
            Kept::Dscp => (0, [0, self.class & 0xfc]),
            Kept::Port => (1, self.port.to_be_bytes()),
            Kept::Protocol => (2, [0, self.protocol()]),
        };
        let mut bytes = vec![0x10 | kind << 2, 3 + (self.stack.len() / 4) as u8, restored[0], restored[1]];
        bytes.extend([0x20 | self.flags, 0, self.hop_words as u8, self.remaining]);
        bytes
            .extend([self.bitmap, self.domain[0], self.domain[1], self.domain[2]].map(u16::to_be_bytes).as_flattened());
        bytes.extend(&self.stack);
        bytes
    }

    /// Returns the packet with INT.
    fn marked(&self) -> Vec<u8> {
        let mut payload = self.header();
        match self.kept {
            Kept::Dscp => {
                payload.extend(&self.payload);
                let segment = self.segment(self.protocol(), self.port, &payload, self.no_checksum);
                self.frame(DSCP << 2 | self.class & 3, self.protocol(), &segment)
            }
            Kept::Port => {
                payload.extend(&self.payload);
                self.frame(self.class, 17, &self.segment(17, PORT, &payload, self.no_checksum))
            }
            Kept::Protocol => {
                payload.extend(self.inner());
                self.frame(self.class, 17, &self.segment(17, PORT, &payload, self.no_checksum))
            }
        }
    }

    /// Returns the length of the IP packet.
    fn len(&self, frame: &[u8]) -> usize {
        let at = self.ip() + if self.is_ipv6 { 4 } else { 2 };
        usize::from(u16::from_be_bytes([frame[at], frame[at + 1]])) + if self.is_ipv6 { 40 } else { 0 }
    }

    /// Does what the specification asks of a hop.
    fn pass(&mut self, hop: usize) -> &'static str {
        let (values, mtu) = self.hops[hop].clone();
        if self.remaining == 0 {
            self.flags |= 4;
            return "hops";
        }
        if 3 + self.stack.len() / 4 + self.hop_words > 255 {
            return "full";
        }
        if self.len(&self.marked()) + 4 * self.hop_words > mtu {
            self.flags |= 2;
            return "mtu";
        }
        self.stack = [metadata(self.bitmap, self.hop_words, &values), self.stack.clone()].concat();
        self.remaining -= 1;
        "inserted"
    }

    fn marker(&self) -> Marker {
        if self.kept == Kept::Dscp { Marker::Dscp(DSCP) } else { Marker::UdpPort(PORT) }
    }

    /// Sends the packet through the nodes and the sink. Returns what differs from the model.
    fn run(mut self, mutation: IntMutation) -> Result<(), &'static str> {
        let node = IntNode::with_mutation(self.marker(), mutation);
        // Padding behind a packet stays; INT makes short frames longer, so it is cut here.
        let unpadded = |case: &Case, frame: &mut Vec<u8>| frame.truncate(case.ip() + case.len(frame));
        let (mut frame, mut original) = (self.marked(), self.original());
        unpadded(&self, &mut frame);
        unpadded(&self, &mut original);
        if !node.is_marked(&frame) || node.is_marked(&original) && self.kept != Kept::Port {
            return Err("marker");
        }
        self.check_source(&node, &original)?;
        for hop in 0..self.hops.len() {
            let expected = self.pass(hop);
            let (values, mtu) = &self.hops[hop];
            let verdict = node.transit(&mut frame, *mtu, &mut memory(values));
            let name = match verdict {
                IntVerdict::Inserted => "inserted",
                IntVerdict::HopsExceeded => "hops",
                IntVerdict::MtuExceeded => "mtu",
                IntVerdict::StackFull => "full",
                IntVerdict::Absent | IntVerdict::Malformed(_) => "refused",
            };
            if name != expected {
                return Err("verdict");
            }
            let mut expected = self.marked();
            unpadded(&self, &mut expected);
            if frame != expected {
                return Err("packet");
            }
        }
        let header_len = self.header().len();
        let before = frame.clone();
        let removal =
            node.sink(&mut frame, 77, || 0x12345, &mut memory(&self.sink)).map_err(|_| "verdict at the sink")?;
        if frame != original {
            return Err("restored packet");
        }
        if removal.is_discarded != (self.flags & 8 != 0) {
            return Err("discard");
        }
        let stack_end = before.len()
            - match self.kept {
                Kept::Protocol => self.inner().len(),
                _ => self.payload.len(),
            };
        assert_eq!(before[stack_end - header_len..stack_end], self.header());
        self.check_report(&removal.report, &before[self.ip()..stack_end])
    }

    /// Compares what a source makes of the packet with the model.
    fn check_source(&self, node: &IntNode, original: &[u8]) -> Result<(), &'static str> {
        if self.kept == Kept::Protocol || self.kept == Kept::Port && self.port == PORT {
            return Ok(());
        }
        let model = Case { stack: Vec::new(), flags: 0, domain: [0; 3], ..self.clone() };
        let repr = Repr {
            hop_words: model.hop_words as u8,
            ..Repr::new(NextProtocol::Payload { dscp: 0 }, self.bitmap, self.remaining)
        };
        let (mut frame, mut expected, len) = (original.to_vec(), model.marked(), self.len(original));
        expected.truncate(self.ip() + model.len(&expected));
        if node.source(&mut frame, repr, len + 15) || frame != original {
            return Err("source without room");
        }
        if !node.source(&mut frame, repr, len + 16) || frame != expected || node.source(&mut frame, repr, 9_000) {
            return Err("source");
        }
        Ok(())
    }

    fn check_report(&self, report: &[u8], packet: &[u8]) -> Result<(), &'static str> {
        let is_known = |bit: usize| {
            let names = FIELDS[bit].1.iter().map(|(_, name)| name);
            (1..9).contains(&bit) && names.into_iter().any(|name| self.sink.iter().any(|(known, _)| known == name))
        };
        let bits = (0..9).filter(|bit| self.bitmap & 0x8000 >> bit != 0 && is_known(*bit));
        let bitmap = bits.fold(0, |bitmap: u16, bit| bitmap | 0x8000 >> bit);
        let words = (bitmap.count_ones() + (bitmap & 0x0e00).count_ones()) as usize;
        let fitting = packet.len().min(4 * (253 - words));
        let mut expected = vec![0x20, 0x01, 0x23, 0x45, 0, 0, 0, 77];
        expected.extend([if self.is_ipv6 { 0x15 } else { 0x14 }, (2 + words + fitting / 4) as u8, words as u8, 0x20]);
        expected.extend(bitmap.to_be_bytes());
        expected.extend([0; 6]);
        expected.extend(metadata(bitmap, words, &self.sink));
        expected.extend(&packet[..fitting]);
        if report == expected { Ok(()) } else { Err("report") }
    }
}

fn memory(values: &Values) -> SparseMemory {
    let (map, mut memory) = (MemoryMap::new(), SparseMemory::new());
    values.iter().for_each(|(name, value)| memory.fixed(map.find(name).unwrap().address, *value));
    memory
}

#[test]
fn nodes_agree_with_the_model_on_random_paths() {
    testing::seed::for_each(0..testing::number("TRIPLANE_INT_CASES", 20_000), |seed| {
        if let Err(difference) = Case::new(seed).run(IntMutation::default()) {
            panic!("seed {seed}: {difference} differs\n{:?}", Case::new(seed));
        }
        true
    });
}

const HEADER: &str = "\
# Errors of INT nodes

Each line is an error that `tpp::int::IntMutant` switches on, and the first random path at which the node and the model
differ, and what differs. The list is written by `UPDATE_EXPECT=1 cargo test -p tpp int`.
";

#[test]
fn each_error_of_a_node_is_found() {
    let list = (concat!(env!("CARGO_MANIFEST_DIR"), "/tests/int_mutants.md"), HEADER);
    testing::mutants::assert_each_is_found(IntMutant::ALL, list, |seed, mutant| {
        Case::new(seed).run(IntMutation::of(Some(mutant))).err()
    });
}

#[test]
fn frames_that_lie_keep_every_byte() {
    let mut refused = 0;
    testing::seed::for_each(0..20_000, |seed| {
        let (mut random, case) = (SplitMix64::new(seed ^ 0x5eed), Case::new(seed));
        let node = IntNode::new(case.marker());
        let mut frame = case.marked();
        for _ in 0..1 + random.below(3) {
            let at = random.below(frame.len() as u64) as usize;
            frame[at] = random.next_u64() as u8;
        }
        if random.percent(30) {
            frame.truncate(random.below(1 + frame.len() as u64) as usize);
        }
        let (values, before) = (&case.hops[0].0, frame.clone());
        let verdict = node.transit(&mut frame, 9_000, &mut memory(values));
        let changes = matches!(verdict, IntVerdict::Inserted | IntVerdict::HopsExceeded | IntVerdict::MtuExceeded);
        assert!(changes || frame == before, "seed {seed}: {verdict:?}");
        frame.clone_from(&before);
        let removal = node.sink(&mut frame, 1, || 1, &mut memory(values));
        assert!(removal.is_ok() || frame == before, "seed {seed}");
        // What a transit accepts, a sink accepts.
        assert_eq!(removal.is_ok(), changes || verdict == IntVerdict::StackFull, "seed {seed}: {verdict:?}");
        true
    });
    for (at, value, why) in
        [(42, 0x20, "type"), (43, 2, "length"), (43, 200, "more"), (46, 0x10, "version"), (48, 1, "hop")]
    {
        let mut frame = EXAMPLE;
        frame[at] = value;
        let mut data = frame.to_vec();
        let verdict = IntNode::new(Marker::default()).transit(&mut data, 1_500, &mut SparseMemory::new());
        assert!(matches!(verdict, IntVerdict::Malformed(_)) && data == frame, "{why}: {verdict:?}");
        refused += 1;
    }
    assert_eq!(refused, 5);
}

/// Ethernet, IPv4 and UDP to the port of INT (18772), an empty stack for eight hops, and four bytes of payload. The
/// original port is 53. Hops add number, interfaces, queue, both timestamps and the checksum complement: 8 words.
const EXAMPLE: [u8; 62] = [
    2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00, // Ethernet
    0x45, 0, 0, 48, 0, 0, 0x40, 0, 64, 17, 0x26, 0xbb, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
    0x03, 0xe8, 0x49, 0x54, 0, 28, 0, 0, // UDP, without a checksum
    0x14, 3, 0, 53, // the shim: INT-MD, original UDP port
    0x20, 0, 8, 8, 0xdc, 0x01, 0, 0, 0, 0, 0, 0, // the header; bits 0, 1, 3, 4, 5 and 15 follow
    b'd', b'a', b't', b'a',
];

#[test]
fn bytes_are_those_of_the_specification() {
    let node = IntNode::new(Marker::UdpPort(18_772));
    let mut frame = EXAMPLE.to_vec();
    let values = vec![
        ("Switch:ID", 7),
        ("PacketMetadata:InputPort", 1),
        ("PacketMetadata:OutputPort", 2),
        ("PacketMetadata:QueueID", 3),
        ("Queue:QueueOccupancy", 5),
        ("PacketMetadata:IngressTime", 1_000_000_007),
        ("PacketMetadata:EgressTime", 1_000_002_007),
    ];
    assert_eq!(node.transit(&mut frame, 1_500, &mut memory(&values)), IntVerdict::Inserted);
    let mut expected = EXAMPLE[..58].to_vec();
    (expected[17], expected[24], expected[25]) = (80, 0x26, 0x9b);
    (expected[39], expected[43], expected[49]) = (60, 11, 7);
    let metadata = [
        0, 0, 0, 7, 0, 1, 0, 2, 3, 0, 0, 5, 0, 0, 0, 0, 0x3b, 0x9a, 0xca, 0x07, 0, 0, 0, 0, 0x3b, 0x9a, 0xd1, 0xd7,
        0xff, 0xff, 0xff, 0xff,
    ];
    expected.extend(metadata);
    expected.extend(b"data");
    assert_eq!(frame, expected);
    // A switch that knows nothing.
    assert_eq!(node.transit(&mut frame, 1_500, &mut SparseMemory::new()), IntVerdict::Inserted);
    assert_eq!((&frame[58..90], &frame[90..122], frame[49]), (&[0xff; 32][..], &metadata[..], 6));
    let removal = node.sink(&mut frame, 9, || 1, &mut memory(&vec![("Queue:QueueOccupancy", 6)])).expect("it is there");
    let mut original = [&EXAMPLE[..42], b"data"].concat();
    (original[17], original[24], original[25]) = (32, 0x26, 0xcb);
    (original[36], original[37], original[39]) = (0, 53, 12);
    assert_eq!((frame, removal.is_discarded), (original, false));
    // The group header; 30 words, one of metadata, of a flow; bit 3: queue absent, six packets; the IPv4 packet.
    let report =
        [0x20, 0, 0, 1, 0, 0, 0, 9, 0x14, 30, 1, 0x20, 0x10, 0, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 6, 0x45, 0, 0, 112];
    assert_eq!((&removal.report[..28], removal.report.len()), (&report[..], 24 + 108));
}
