//! Defines traffic specifications.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use wire::ethernet::Address;

use crate::Choice;

/// Maximum frame length in bytes.
pub const MAX_FRAME: usize = 9216;

/// A header after the Ethernet header.
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
    /// Returns the length of the header in bytes.
    pub fn header_len(self) -> usize {
        match self {
            Layer::Vlan => wire::vlan::HEADER_LEN,
            Layer::Ipv4 => wire::ipv4::HEADER_LEN,
            Layer::Ipv6 => wire::ipv6::HEADER_LEN,
            Layer::Udp => wire::udp::HEADER_LEN,
            Layer::Tcp => wire::tcp::HEADER_LEN,
        }
    }

    /// Returns the display name.
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

/// A field whose values can be specified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowField {
    /// Ethernet destination address, 48 bits.
    DestinationMac,
    /// Ethernet source address, 48 bits.
    SourceMac,
    /// EtherType of the payload after the last header below IP, if there is no IP header; 16 bits.
    EtherType,
    /// VLAN identifier of the n-th tag, 12 bits.
    Vlan(u8),
    /// Source address of IPv4 (32 bits) or IPv6 (128 bits).
    Source,
    /// Destination address of IPv4 (32 bits) or IPv6 (128 bits).
    Destination,
    /// Time to live, or hop limit; 8 bits.
    Ttl,
    /// IP protocol number, if there is neither UDP nor TCP; 8 bits.
    Protocol,
    /// Source port of UDP or TCP, 16 bits.
    SourcePort,
    /// Destination port of UDP or TCP, 16 bits.
    DestinationPort,
}

impl FlowField {
    /// Returns a number that is unique to the field.
    pub(crate) fn salt(self) -> u64 {
        match self {
            FlowField::DestinationMac => 2,
            FlowField::SourceMac => 3,
            FlowField::EtherType => 4,
            FlowField::Source => 5,
            FlowField::Destination => 6,
            FlowField::Ttl => 7,
            FlowField::Protocol => 8,
            FlowField::SourcePort => 9,
            FlowField::DestinationPort => 10,
            FlowField::Vlan(number) => 256 + u64::from(number),
        }
    }
}

/// Frame length in bytes, without the frame check sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Uniform from the first to the second length, both inclusive.
    Between(usize, usize),
    /// The "simple Internet mix": 64, 570 and 1518 bytes (60, 566 and 1514 without the frame check sequence), 7 : 4 :
    /// 1. Frames whose headers need more are correspondingly longer.
    Imix,
}

/// FlowField values that occur together, such as those of one rule.
pub type FieldPattern = Vec<(FlowField, Choice)>;

/// Position in the frame that holds the flow number, in network byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vary {
    /// Offset of the first byte.
    pub offset: usize,
    /// Length in bytes, 1 to 8.
    pub len: usize,
}

/// Specification of traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Headers after the Ethernet header, outermost first: tags, then at most one IP header, then at most one of UDP
    /// and TCP.
    pub layers: Vec<Layer>,
    /// Frame length.
    pub size: Size,
    /// Number of flows, at least 1.
    pub flows: u64,
    /// Exponent of Zipf's law for the flows; `None` for a uniform distribution.
    pub zipf: Option<f64>,
    /// Values of fields. A field without an entry has a default value.
    pub fields: BTreeMap<FlowField, Choice>,
    /// Lists of patterns: each flow follows one pattern of each list. Patterns take precedence over `fields`, earlier
    /// lists over later ones.
    pub patterns: Vec<Vec<FieldPattern>>,
    /// Bytes repeated after the headers; zeros if empty.
    pub payload: Vec<u8>,
    /// A complete frame to send instead of headers and payload.
    pub frame: Option<Vec<u8>>,
    /// Position of the flow number in frames.
    pub vary: Option<Vary>,
    /// Ingress ports of the switch, at least one.
    pub ports: Vec<u32>,
    /// Random seed.
    pub seed: u64,
}

impl Default for Spec {
    /// Returns one flow of UDP over IPv4 in frames of 64 bytes, on port 1.
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

    /// Returns the length of all headers, or of the complete frame if one is given, in bytes.
    pub fn headers_len(&self) -> usize {
        match &self.frame {
            Some(frame) => frame.len(),
            None => wire::ethernet::HEADER_LEN + self.layers.iter().map(|layer| layer.header_len()).sum::<usize>(),
        }
    }

    /// Returns the values of a field: those specified, or the default.
    pub(crate) fn choice(&self, field: FlowField) -> Choice {
        if let Some(choice) = self.fields.get(&field) {
            return *choice;
        }
        let is_v6 = self.has(Layer::Ipv6);
        match field {
            FlowField::DestinationMac => Choice::one(0x0200_0000_0002),
            FlowField::SourceMac => Choice::one(0x0200_0000_0001),
            // First EtherType for local experiments (IEEE 802).
            FlowField::EtherType => Choice::one(0x88b5),
            FlowField::Vlan(_) => Choice::one(1),
            FlowField::Source if is_v6 => Choice::prefix(0x2001_0db8_0001 << 80, 64, 128),
            FlowField::Destination if is_v6 => Choice::prefix(0x2001_0db8_0002 << 80, 64, 128),
            FlowField::Source => Choice::prefix(0x0a01_0000, 16, 32),
            FlowField::Destination => Choice::prefix(0x0a02_0000, 16, 32),
            FlowField::Ttl => Choice::one(64),
            // Protocol number for experimentation (RFC 3692).
            FlowField::Protocol => Choice::one(253),
            FlowField::SourcePort => Choice::Range(1024, 65535),
            FlowField::DestinationPort => Choice::one(80),
        }
    }

    fn shown(&self, field: FlowField, choice: Choice) -> String {
        let is_v6 = self.has(Layer::Ipv6);
        let value = |value: u128| match field {
            FlowField::DestinationMac | FlowField::SourceMac => {
                Address(value.to_be_bytes()[10..].try_into().expect("six bytes")).to_string()
            }
            FlowField::Source | FlowField::Destination if is_v6 => Ipv6Addr::from(value).to_string(),
            FlowField::Source | FlowField::Destination => Ipv4Addr::from(value as u32).to_string(),
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
    /// `64-byte frames of UDP over IPv4 to 10.0.0.0/16, 10000 flows with Zipf exponent 0.99, on ingress ports 1 to 4`
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
        let words = [(FlowField::Source, "from"), (FlowField::Destination, "to"), (FlowField::DestinationMac, "to")];
        for (field, word) in words {
            if let Some(choice) = self.fields.get(&field) {
                write!(f, " {word} {}", self.shown(field, *choice))?;
            }
        }
        write!(f, ", {} flow{}", self.flows, if self.flows == 1 { "" } else { "s" })?;
        if let Some(exponent) = self.zipf {
            write!(f, " with Zipf exponent {exponent}")?;
        }
        match &self.ports[..] {
            [port] => write!(f, ", on ingress port {port}"),
            [first, .., last] if *last as usize - *first as usize + 1 == self.ports.len() => {
                write!(f, ", on ingress ports {first} to {last}")
            }
            ports => {
                write!(f, ", on ingress ports {}", ports.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
            }
        }
    }
}
