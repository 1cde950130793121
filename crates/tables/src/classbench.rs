//! Generates ClassBench-like rule sets and packets (Taylor, Turner: ClassBench, 2007), for benchmarks and tests.
//!
//! Everything is determined by a family, a size and a seed. The distributions are our own, following published
//! descriptions of the three families:
//!
//! | family | addresses                                      | ports                                 | protocol    |
//! |--------|------------------------------------------------|---------------------------------------|-------------|
//! | acl    | both specific, destinations more than sources  | source any; destination mostly exact  | nearly all  |
//! | fw     | one of the two often anything                  | ranges common, on both sides          | mostly      |
//! | ipc    | like acl for most, like fw for some            | both sides exact, any or ranges       | mostly      |
//!
//! Addresses come from networks that contain subnets that contain hosts, with a skewed distribution. So prefixes
//! contain each other and address pairs repeat with different ports, as in real rule sets.

use crate::key_layout::{FieldKind, KeyLayout};
use crate::pattern::RulePattern;
use rng::SplitMix64;

/// The family of a rule set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Access control lists.
    Acl,
    /// Firewalls.
    Fw,
    /// IP chains, as in Linux's packet filter.
    Ipc,
}

/// A rule over the five fields. The first matching rule of a list wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FiveTuple {
    /// Source and destination: address, with zeros after its prefix, and prefix length.
    pub addresses: [(u32, u8); 2],
    /// Source and destination: lowest and highest port.
    pub ports: [(u16, u16); 2],
    /// Protocol; `None` matches any.
    pub protocol: Option<u8>,
}

/// The five fields of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketFields {
    /// Source and destination address.
    pub addresses: [u32; 2],
    /// Source and destination port.
    pub ports: [u16; 2],
    /// Protocol.
    pub protocol: u8,
}

/// Returns the key layout of the five fields: two words.
pub fn layout() -> KeyLayout {
    use FieldKind::{Masked, Prefix, Range};
    KeyLayout::new([(32, Prefix), (32, Prefix), (16, Range), (16, Range), (8, Masked)])
}

impl FiveTuple {
    /// Converts the rule to a pattern over [`layout`].
    pub fn pattern(&self, layout: &KeyLayout) -> RulePattern {
        let mut pattern = RulePattern::any(layout);
        for (field, (address, length)) in self.addresses.iter().enumerate() {
            pattern.prefix(layout, field, &[u64::from(*address)], u32::from(*length));
        }
        for (field, (low, high)) in self.ports.iter().enumerate() {
            pattern.range(layout, 2 + field, &[u64::from(*low)], &[u64::from(*high)]);
        }
        if let Some(protocol) = self.protocol {
            pattern.exact(layout, 4, &[u64::from(protocol)]);
        }
        pattern
    }

    /// Whether a packet matches; serves as test oracle.
    pub fn matches(&self, header: &PacketFields) -> bool {
        let address = |((value, length), address): (&(u32, u8), &u32)| (value ^ address) & prefix_mask(*length) == 0;
        let port = |((low, high), port): (&(u16, u16), &u16)| (low..=high).contains(&port);
        self.addresses.iter().zip(&header.addresses).all(address)
            && self.ports.iter().zip(&header.ports).all(port)
            && self.protocol.is_none_or(|protocol| protocol == header.protocol)
    }

    /// Returns the number of bits that the rule fixes, with port ranges counted by their logarithm.
    fn specificity(&self) -> u32 {
        let addresses: u32 = self.addresses.iter().map(|(_, length)| u32::from(*length)).sum();
        let ports: u32 = self.ports.iter().map(|(low, high)| 16 - (u32::from(high - low) + 1).ilog2()).sum();
        addresses + ports + if self.protocol.is_some() { 8 } else { 0 }
    }
}

impl PacketFields {
    /// Packs a key for [`layout`].
    pub fn key(&self) -> [u64; 2] {
        let [source, destination] = self.addresses.map(u64::from);
        let ports = u64::from(self.ports[0]) | u64::from(self.ports[1]) << 16;
        [source | destination << 32, ports | u64::from(self.protocol) << 32]
    }
}

fn prefix_mask(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
}

/// The networks that a rule set refers to.
struct Networks {
    /// First 16 bits of each network.
    sites: Vec<u32>,
    subnets_per_site: u64,
    hosts_per_subnet: u64,
    salt: u64,
}

impl Networks {
    /// Draws networks; larger rule sets refer to more networks, and refer to each of them more often.
    fn new(rng: &mut SplitMix64, rules: usize) -> Self {
        let root = (rules as f64).sqrt();
        let sites = (0..(root / 4.0).max(4.0) as usize).map(|_| rng.next_u64() as u32 & 0xffff_0000).collect();
        Networks {
            sites,
            subnets_per_site: ((root / 4.0) as u64).clamp(4, 200),
            hosts_per_subnet: 60,
            salt: rng.next_u64(),
        }
    }

    /// Draws a number below `end`, with small ones far more frequent.
    fn skewed(rng: &mut SplitMix64, end: u64) -> u64 {
        let (a, b) = (rng.below(end), rng.below(end));
        a.min(b) * rng.below(4).min(1)
    }

    fn address(&self, rng: &mut SplitMix64) -> u32 {
        let site = Self::skewed(rng, self.sites.len() as u64);
        let subnet = Self::skewed(rng, self.subnets_per_site);
        let host = rng.below(self.hosts_per_subnet);
        // The subnets of a site and the hosts of a subnet are fixed, but scattered.
        let scatter = |parts: &[u64]| {
            let seed = parts.iter().fold(self.salt, |seed, part| SplitMix64::new(seed ^ part).next_u64());
            seed as u32 & 0xff
        };
        self.sites[site as usize] | scatter(&[site, subnet]) << 8 | scatter(&[site, subnet, host])
    }

    fn prefix(&self, rng: &mut SplitMix64, lengths: &[(u64, u8)]) -> (u32, u8) {
        let length = rng.pick(lengths);
        // Lengths between the usual ones occur, but rarely.
        let length = if length % 8 == 4 { length - 3 + rng.below(7) as u8 } else { length };
        (self.address(rng) & prefix_mask(length), length)
    }
}

#[derive(Clone, Copy)]
enum Ports {
    Any,
    Low,
    High,
    Range,
    Exact,
}

fn ports(rng: &mut SplitMix64, classes: &[(u64, Ports)]) -> (u16, u16) {
    const KNOWN: [u16; 24] = [
        80, 443, 53, 22, 25, 23, 21, 110, 143, 123, 161, 389, 445, 1433, 1521, 3306, 3389, 5060, 8080, 111, 137, 139,
        179, 514,
    ];
    match rng.pick(classes) {
        Ports::Any => (0, u16::MAX),
        Ports::Low => (0, 1023),
        Ports::High => (1024, u16::MAX),
        Ports::Range => {
            let low = rng.pick(&[(3, 1024), (2, 2000), (2, 5000), (3, 0)]) + rng.below(30_000) as u16;
            (low, low + rng.pick(&[(4, 1u16), (3, 9), (2, 100), (1, 3000)]) + rng.below(8) as u16)
        }
        Ports::Exact if rng.percent(70) => {
            let port = KNOWN[Networks::skewed(rng, KNOWN.len() as u64) as usize];
            (port, port)
        }
        Ports::Exact => {
            let port = 1024 + rng.below(9000) as u16;
            (port, port)
        }
    }
}

fn rule(family: Family, networks: &Networks, rng: &mut SplitMix64) -> FiveTuple {
    use Ports::{Any, Exact, High, Low, Range};
    const TCP: Option<u8> = Some(6);
    const UDP: Option<u8> = Some(17);
    const ICMP: Option<u8> = Some(1);
    const SPECIFIC: &[(u64, u8)] = &[(3, 0), (1, 8), (1, 12), (6, 16), (5, 20), (22, 24), (10, 28), (52, 32)];
    const SOURCE: &[(u64, u8)] = &[(12, 0), (2, 8), (2, 12), (12, 16), (8, 20), (26, 24), (8, 28), (30, 32)];
    const OPEN: &[(u64, u8)] = &[(55, 0), (1, 8), (1, 12), (5, 16), (3, 20), (12, 24), (3, 28), (20, 32)];
    let style = match family {
        Family::Ipc if rng.percent(35) => Family::Fw,
        Family::Ipc => Family::Acl,
        other => other,
    };
    let addresses = match style {
        Family::Fw => {
            let destination = if rng.percent(60) { SPECIFIC } else { OPEN };
            [networks.prefix(rng, OPEN), networks.prefix(rng, destination)]
        }
        _ => [networks.prefix(rng, SOURCE), networks.prefix(rng, SPECIFIC)],
    };
    let (source, destination): (&[_], &[_]) = match family {
        Family::Acl => (&[(98, Any), (2, Exact)], &[(10, Any), (2, Low), (8, High), (14, Range), (66, Exact)]),
        Family::Fw => (
            &[(62, Any), (14, High), (2, Low), (6, Range), (16, Exact)],
            &[(24, Any), (12, High), (2, Low), (12, Range), (50, Exact)],
        ),
        Family::Ipc => (
            &[(70, Any), (8, High), (1, Low), (3, Range), (18, Exact)],
            &[(40, Any), (8, High), (2, Low), (8, Range), (42, Exact)],
        ),
    };
    let protocol = match family {
        Family::Acl => rng.pick(&[(80, TCP), (14, UDP), (3, ICMP), (3, None)]),
        Family::Fw => rng.pick(&[(64, TCP), (22, UDP), (4, ICMP), (10, None)]),
        Family::Ipc => rng.pick(&[(56, TCP), (26, UDP), (6, ICMP), (12, None)]),
    };
    let ports = match protocol {
        // Only TCP and UDP have ports.
        TCP | UDP => [ports(rng, source), ports(rng, destination)],
        _ => [(0, u16::MAX); 2],
    };
    FiveTuple { addresses, ports, protocol }
}

/// Generates up to `count` different rules, with more specific ones rather at the front, as in real rule sets, where
/// exceptions precede general rules. There are fewer if the address space is too small.
pub fn rules(family: Family, count: usize, seed: u64) -> Vec<FiveTuple> {
    let mut rng = SplitMix64::new(seed ^ (family as u64) << 56);
    let networks = Networks::new(&mut rng, count);
    let mut seen = std::collections::HashSet::new();
    let mut rules = Vec::with_capacity(count);
    for _ in 0..count * 20 {
        let rule = rule(family, &networks, &mut rng);
        if seen.insert(rule) {
            let place = rule.specificity() + rng.below(24) as u32;
            rules.push((std::cmp::Reverse(place), rule));
        }
        if rules.len() == count {
            break;
        }
    }
    rules.sort();
    rules.into_iter().map(|(_, rule)| rule).collect()
}

/// Generates packets that each match a random rule at a random point; one of 20 is entirely random. There is no
/// locality: a flow cache would not help.
pub fn headers(rules: &[FiveTuple], count: usize, seed: u64) -> Vec<PacketFields> {
    let mut rng = SplitMix64::new(seed);
    let header = |_| {
        let rule = if rules.is_empty() || rng.percent(5) {
            FiveTuple { addresses: [(0, 0); 2], ports: [(0, u16::MAX); 2], protocol: None }
        } else {
            rules[rng.below(rules.len() as u64) as usize]
        };
        let addresses = rule.addresses.map(|(value, length)| value | rng.next_u64() as u32 & !prefix_mask(length));
        let ports = rule.ports.map(|(low, high)| low + rng.below(u64::from(high - low) + 1) as u16);
        let protocol = rule.protocol.unwrap_or_else(|| rng.pick(&[(6, 6), (3, 17), (1, 1)]));
        PacketFields { addresses, ports, protocol }
    };
    (0..count).map(header).collect()
}
