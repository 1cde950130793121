//! What traffic there is to be.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use wire::ethernet::Address;

use crate::Choice;

/// Bytes of the longest frame.
pub const MAX_FRAME: usize = 9216;

/// A header behind that of Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// An 802.1Q tag. Several may follow each other.
    Vlan,
    /// IPv4, without options.
    Ipv4,
    /// IPv6, without extensions.
    Ipv6,
    /// UDP, in IPv4 or IPv6.
    Udp,
    /// TCP without options, in IPv4 or IPv6.
    Tcp,
}

impl Layer {
    /// Bytes of the header.
    pub fn header_len(self) -> usize {
        match self {
            Layer::Vlan => wire::vlan::HEADER_LEN,
            Layer::Ipv4 => wire::ipv4::HEADER_LEN,
            Layer::Ipv6 => wire::ipv6::HEADER_LEN,
            Layer::Udp => wire::udp::HEADER_LEN,
            Layer::Tcp => wire::tcp::HEADER_LEN,
        }
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Vlan => "VLAN",
            Layer::Ipv4 => "IPv4",
            Layer::Ipv6 => "IPv6",
            Layer::Udp => "UDP",
            Layer::Tcp => "TCP",
        }
    }
}

/// A field whose values can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// Destination of Ethernet, 48 bits.
    DestinationMac,
    /// Source of Ethernet, 48 bits.
    SourceMac,
    /// The type of what follows the last header below IP, where no IP does; 16 bits.
    EtherType,
    /// Identifier of the n-th tag, 12 bits.
    Vlan(u8),
    /// Source of IPv4 (32 bits) or IPv6 (128).
    Source,
    /// Destination of IPv4 (32 bits) or IPv6 (128).
    Destination,
    /// Time to live, or hop limit; 8 bits.
    Ttl,
    /// What IP carries, where neither UDP nor TCP does; 8 bits.
    Protocol,
    /// Source port of UDP or TCP, 16 bits.
    SourcePort,
    /// Destination port of UDP or TCP, 16 bits.
    DestinationPort,
}

impl Field {
    /// A number of its own.
    pub(crate) fn salt(self) -> u64 {
        match self {
            Field::DestinationMac => 2,
            Field::SourceMac => 3,
            Field::EtherType => 4,
            Field::Source => 5,
            Field::Destination => 6,
            Field::Ttl => 7,
            Field::Protocol => 8,
            Field::SourcePort => 9,
            Field::DestinationPort => 10,
            Field::Vlan(number) => 256 + u64::from(number),
        }
    }
}

/// How long frames are, in bytes, without the frame check sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// All from the first to the second length, both included, as often.
    Between(usize, usize),
    /// The "simple Internet mix": 64, 570 and 1518 bytes (here without the four of the frame check sequence, 60, 566 and
    /// 1514), 7 : 4 : 1. Frames whose headers need more are so much longer.
    Imix,
}

/// Fields that have values together, such as those of one rule.
pub type Pattern = Vec<(Field, Choice)>;

/// Bytes of the frame that hold the number of the flow, in network byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vary {
    /// The first byte.
    pub offset: usize,
    /// How many, 1 to 8.
    pub len: usize,
}

/// What frames there are.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The headers behind that of Ethernet, from the outside in: tags, then at most one IP, then at most one of UDP
    /// and TCP.
    pub layers: Vec<Layer>,
    /// How long frames are.
    pub size: Size,
    /// How many flows there are, at least 1.
    pub flows: u64,
    /// The exponent of Zipf's law that flows follow; `None` if all are as likely.
    pub zipf: Option<f64>,
    /// The values of fields. A field without one has a usual value.
    pub fields: BTreeMap<Field, Choice>,
    /// Fields that have values together, list by list: of each list a flow follows one pattern. They come before
    /// `fields`, earlier lists before later ones.
    pub patterns: Vec<Vec<Pattern>>,
    /// What is repeated behind the headers; zeros if it is empty.
    pub payload: Vec<u8>,
    /// Whole frames like this one instead of headers and payload.
    pub frame: Option<Vec<u8>>,
    /// Where frames hold the number of their flow.
    pub vary: Option<Vary>,
    /// The switch's ports that frames come in on, at least one.
    pub ports: Vec<u32>,
    /// Where random numbers begin.
    pub seed: u64,
}

impl Default for Spec {
    /// One flow of UDP over IPv4 in frames of 64 bytes, in on port 1.
    fn default() -> Spec {
        Spec {
            layers: vec![Layer::Ipv4, Layer::Udp],
            size: Size::Between(64, 64),
            flows: 1,
            zipf: None,
            fields: BTreeMap::new(),
            patterns: Vec::new(),
            payload: Vec::new(),
            frame: None,
            vary: None,
            ports: vec![1],
            seed: 1,
        }
    }
}

impl Spec {
    /// Whether there is a header of this kind.
    pub fn has(&self, layer: Layer) -> bool {
        self.layers.contains(&layer)
    }

    /// Bytes of all headers, or of the whole frame where that is given.
    pub fn headers_len(&self) -> usize {
        match &self.frame {
            Some(frame) => frame.len(),
            None => wire::ethernet::HEADER_LEN + self.layers.iter().map(|layer| layer.header_len()).sum::<usize>(),
        }
    }

    /// The values of a field: those given, or usual ones.
    pub(crate) fn choice(&self, field: Field) -> Choice {
        if let Some(choice) = self.fields.get(&field) {
            return *choice;
        }
        let is_v6 = self.has(Layer::Ipv6);
        match field {
            Field::DestinationMac => Choice::one(0x0200_0000_0002),
            Field::SourceMac => Choice::one(0x0200_0000_0001),
            // The first type for local experiments (IEEE 802).
            Field::EtherType => Choice::one(0x88b5),
            Field::Vlan(_) => Choice::one(1),
            Field::Source if is_v6 => Choice::prefix(0x2001_0db8_0001 << 80, 64, 128),
            Field::Destination if is_v6 => Choice::prefix(0x2001_0db8_0002 << 80, 64, 128),
            Field::Source => Choice::prefix(0x0a01_0000, 16, 32),
            Field::Destination => Choice::prefix(0x0a02_0000, 16, 32),
            Field::Ttl => Choice::one(64),
            // For experimentation (RFC 3692).
            Field::Protocol => Choice::one(253),
            Field::SourcePort => Choice::Range(1024, 65535),
            Field::DestinationPort => Choice::one(80),
        }
    }

    fn shown(&self, field: Field, choice: Choice) -> String {
        let is_v6 = self.has(Layer::Ipv6);
        let value = |value: u128| match field {
            Field::DestinationMac | Field::SourceMac => {
                Address(value.to_be_bytes()[10..].try_into().expect("six bytes")).to_string()
            }
            Field::Source | Field::Destination if is_v6 => Ipv6Addr::from(value).to_string(),
            Field::Source | Field::Destination => Ipv4Addr::from(value as u32).to_string(),
            _ => value.to_string(),
        };
        match choice {
            Choice::Range(low, high) if low == high => value(low),
            Choice::Range(low, high) => format!("{} to {}", value(low), value(high)),
            Choice::Free { value: fixed, free: 0 } => value(fixed),
            Choice::Free { value: fixed, free } => {
                let width = if is_v6 { 128 } else { 32 };
                format!("{}/{}", value(fixed), width - free.count_ones())
            }
        }
    }
}

impl fmt::Display for Spec {
    /// `64-byte frames of UDP over IPv4 to 10.0.0.0/16, 10000 flows by Zipf's law (0.99), in on ports 1 to 4`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.size {
            Size::Between(low, high) if low == high => write!(f, "{low}-byte frames")?,
            Size::Between(low, high) => write!(f, "frames of {low} to {high} bytes")?,
            Size::Imix => f.write_str("frames of 60, 566 and 1514 bytes (7:4:1)")?,
        }
        let layers: Vec<&str> = self.layers.iter().rev().map(|layer| layer.name()).collect();
        match (&self.frame, layers.is_empty()) {
            (Some(_), _) => f.write_str(" as given")?,
            (None, true) => f.write_str(" of Ethernet")?,
            (None, false) => write!(f, " of {}", layers.join(" over "))?,
        }
        let words = [(Field::Source, "from"), (Field::Destination, "to"), (Field::DestinationMac, "to")];
        for (field, word) in words {
            if let Some(choice) = self.fields.get(&field) {
                write!(f, " {word} {}", self.shown(field, *choice))?;
            }
        }
        write!(f, ", {} flow{}", self.flows, if self.flows == 1 { "" } else { "s" })?;
        if let Some(exponent) = self.zipf {
            write!(f, " by Zipf's law ({exponent})")?;
        }
        match &self.ports[..] {
            [port] => write!(f, ", in on port {port}"),
            [first, .., last] if *last as usize - *first as usize + 1 == self.ports.len() => {
                write!(f, ", in on ports {first} to {last}")
            }
            ports => {
                write!(f, ", in on ports {}", ports.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
            }
        }
    }
}
