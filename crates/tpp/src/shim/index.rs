//! Finds the filters that match a flow. Filters that compare the same bits have one table, so a packet costs one lookup
//! for each such shape, however many filters have it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::net::IpAddr;

use super::filter::{AddressPrefix, PacketFilter, PacketFlow};

/// The bits of a flow that filters compare, those that a filter compares, or their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FlowBits {
    source: u128,
    destination: u128,
    /// Version, protocol, whether there are ports, source and destination port.
    rest: u64,
}

const VERSION: u32 = 56;
const PROTOCOL: u32 = 40;
const HAS_PORTS: u32 = 32;
const SOURCE_PORT: u32 = 16;

impl FlowBits {
    fn of(flow: &PacketFlow) -> FlowBits {
        let ports = flow.ports.map_or(0, |(source, destination)| {
            1 << HAS_PORTS | u64::from(source) << SOURCE_PORT | u64::from(destination)
        });
        let (version, source) = bits(flow.source);
        let rest = version << VERSION | u64::from(flow.protocol) << PROTOCOL | ports;
        FlowBits { source, destination: bits(flow.destination).1, rest }
    }

    fn masked(self, mask: FlowBits) -> FlowBits {
        FlowBits {
            source: self.source & mask.source,
            destination: self.destination & mask.destination,
            rest: self.rest & mask.rest,
        }
    }

    /// Adds a field of `rest`.
    fn with(mut self, at: u32, value: u64) -> FlowBits {
        self.rest |= value << at;
        self
    }
}

impl Hash for FlowBits {
    /// Mixes all bits by multiplications that do not wait for each other, but for the last one. Packets add nothing to
    /// the tables, so they cannot make them slow.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let FlowBits { source, destination, rest } = *self;
        let low = folded(source as u64 ^ MIX[0], destination as u64 ^ MIX[1]);
        let high = folded((source >> 64) as u64 ^ MIX[2], (destination >> 64) as u64 ^ MIX[3]);
        state.write_u64(folded(low ^ high.rotate_left(32) ^ rest, MIX[4]));
    }
}

/// Odd numbers with about as many ones as zeros: the first digits of the fractions of the square roots of 2, 3, 5 and
/// 7, and of the golden ratio.
const MIX: [u64; 5] =
    [0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b, 0xa54f_f53a_5f1d_36f1, 0x9e37_79b9_7f4a_7c15];

/// Returns both halves of a product, combined.
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Takes the hash of [`FlowBits`] as it is.
#[derive(Clone, Copy, Default)]
struct FlowHasher(u64);

impl Hasher for FlowHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = self.0.rotate_left(8) ^ word;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

type FilterTable = HashMap<FlowBits, Vec<u64>, BuildHasherDefault<FlowHasher>>;

/// Filters by the bits that they compare.
#[derive(Clone, Debug, Default)]
pub struct FilterIndex {
    /// Ranks of filters without conditions.
    every: Vec<u64>,
    shapes: Vec<(FlowBits, FilterTable)>,
}

impl FilterIndex {
    /// Adds a filter with a rank.
    pub fn add(&mut self, filter: &PacketFilter, rank: u64) {
        let Some((mask, key)) = compared(filter) else { return };
        if mask == FlowBits::default() {
            self.every.insert(self.every.partition_point(|other| *other < rank), rank);
            return;
        }
        let at = self.shapes.iter().position(|(other, _)| *other == mask).unwrap_or_else(|| {
            self.shapes.push((mask, FilterTable::default()));
            self.shapes.len() - 1
        });
        let ranks = self.shapes[at].1.entry(key).or_default();
        ranks.insert(ranks.partition_point(|other| *other < rank), rank);
    }

    /// Returns the ranks of the filters that match, in ascending order. Gathers those of several shapes in `found`.
    pub fn find<'a>(&'a self, flow: &PacketFlow, found: &'a mut Vec<u64>) -> &'a [u64] {
        if self.shapes.is_empty() {
            return &self.every;
        }
        let flow = FlowBits::of(flow);
        let matching = |(mask, table): &'a (FlowBits, FilterTable)| table.get(&flow.masked(*mask));
        if let ([shape], []) = (&self.shapes[..], &self.every[..]) {
            return matching(shape).map_or(&[], Vec::as_slice);
        }
        found.clear();
        found.extend(&self.every);
        self.shapes.iter().filter_map(matching).for_each(|ranks| found.extend(ranks));
        found.sort_unstable();
        found
    }
}

/// Returns the version and the bits of an address.
fn bits(address: IpAddr) -> (u64, u128) {
    match address {
        IpAddr::V4(address) => (4, address.to_bits().into()),
        IpAddr::V6(address) => (6, address.to_bits()),
    }
}

/// Returns the bits that a filter compares, and their values; `None` for a filter that matches no packet.
fn compared(filter: &PacketFilter) -> Option<(FlowBits, FlowBits)> {
    let PacketFilter { source, destination, protocol, source_port, destination_port } = *filter;
    let mask_of = |prefix: AddressPrefix| {
        let width = if prefix.address().is_ipv4() { 32 } else { 128 };
        let all = if width == 32 { u128::from(u32::MAX) } else { u128::MAX };
        all & all.checked_shl(width - width.min(prefix.bits().into())).unwrap_or(0)
    };
    let (mut mask, mut key) = (FlowBits::default(), FlowBits::default());
    for prefix in [source, destination].into_iter().flatten() {
        let version = bits(prefix.address()).0;
        if mask.rest != 0 && key.rest != version << VERSION {
            return None;
        }
        (mask.rest, key.rest) = (0xff << VERSION, version << VERSION);
    }
    mask.source = source.map_or(0, mask_of);
    mask.destination = destination.map_or(0, mask_of);
    key.source = source.map_or(0, |prefix| bits(prefix.address()).1 & mask.source);
    key.destination = destination.map_or(0, |prefix| bits(prefix.address()).1 & mask.destination);
    if let Some(protocol) = protocol {
        (mask, key) = (mask.with(PROTOCOL, 0xff), key.with(PROTOCOL, protocol.into()));
    }
    for (port, at) in [(source_port, SOURCE_PORT), (destination_port, 0)] {
        if let Some(port) = port {
            mask = mask.with(HAS_PORTS, 1).with(at, 0xffff);
            key = key.with(HAS_PORTS, 1).with(at, port.into());
        }
    }
    Some((mask, key))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use rng::SplitMix64;

    use super::*;

    fn address(random: &mut SplitMix64) -> IpAddr {
        let low = random.below(4);
        match random.below(3) {
            0 => Ipv6Addr::from_bits(u128::from(random.below(2)) << 127 | u128::from(low)).into(),
            _ => Ipv4Addr::from_bits((random.below(2) << 31 | low) as u32).into(),
        }
    }

    fn filter(random: &mut SplitMix64) -> PacketFilter {
        let prefix = |random: &mut SplitMix64| {
            let bits = [0, 1, 31, 32, 127, 128, 200][random.below(7) as usize];
            (random.below(2) == 0).then(|| AddressPrefix::new(address(random), bits))
        };
        let (source, destination) = (prefix(random), prefix(random));
        let mut value = |end: u64| (random.below(3) == 0).then(|| random.below(end) as u8);
        let protocol = value(2).map(|choice| [6, 17][usize::from(choice)]);
        let [source_port, destination_port] = [value(3), value(3)].map(|port| port.map(u16::from));
        PacketFilter { source, destination, protocol, source_port, destination_port }
    }

    #[test]
    fn the_index_finds_what_each_filter_matches_in_order() {
        let mut random = SplitMix64::new(5);
        let mut all = 0;
        for _ in 0..300 {
            let filters: Vec<_> = (0..random.below(40)).map(|_| filter(&mut random)).collect();
            let mut index = FilterIndex::default();
            // The order of addition is not that of the ranks.
            for (rank, filter) in filters.iter().enumerate().rev() {
                index.add(filter, rank as u64);
            }
            let mut found = vec![99];
            for _ in 0..50 {
                let source = address(&mut random);
                let mut destination = address(&mut random);
                while destination.is_ipv4() != source.is_ipv4() {
                    destination = address(&mut random);
                }
                let ports = (random.below(4) > 0).then(|| (random.below(3) as u16, random.below(3) as u16));
                let protocol = [6, 17, 1][random.below(3) as usize];
                let flow = PacketFlow { source, destination, protocol, ports };
                let found = index.find(&flow, &mut found);
                let expected: Vec<u64> =
                    (0..).zip(&filters).filter(|(_, it)| it.matches(&flow)).map(|(at, _)| at).collect();
                assert_eq!(found, expected, "{flow:?} in {filters:?}");
                all += found.len();
            }
        }
        assert!(all > 10_000, "{all} matches");
    }
}
