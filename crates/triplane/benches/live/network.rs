//! The network of the benchmark, and its traffic.
//!
//! ```text
//! source 10.0.1.1 eth0 ── r1 10.0.1.254   router   10.0.2.254 r2 ── eth0 10.0.2.2 sink
//! ```
//!
//! It has its own namespaces and ends with them.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use ports::load::{Flood, Sink, Vary};
use ports::namespace::{Namespace, NamespaceError, Offload, veth_with_queues};
use ports::{PortError, XdpPort, XdpSettings};
use serde_json::json;
use wire::{ethernet, ipv4};

use crate::load::{self, LOAD, Load};
use crate::process::pinned;

/// MAC addresses of the hosts and of the router's ports.
pub const SOURCE_MAC: [u8; 6] = [2, 0, 0, 0, 1, 1];
pub const SINK_MAC: [u8; 6] = [2, 0, 0, 0, 2, 2];
pub const ROUTER_MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 1, 0xfe], [2, 0, 0, 0, 2, 0xfe]];

/// Frames go to 10.2.0.0/16; each /24 of it is a separate prefix.
const NET: u32 = 0x0a02_0000;
const PREFIXES: u32 = 256;
/// Frames of the widest load go to 20.0.0.0/8: an address in each /24.
const WIDE_NET: u32 = 0x1400_0000;

/// The source, the router and the sink.
pub struct Network {
    pub source: Namespace,
    pub router: Namespace,
    pub sink: Namespace,
}

impl Network {
    /// Creates the network, with `queues` queues on each link.
    pub fn new(queues: u32) -> Result<Network, NamespaceError> {
        let (source, router, sink) = (Namespace::new("source")?, Namespace::new("router")?, Namespace::new("sink")?);
        let hosts = [(&source, "r1", SOURCE_MAC, 1u8, 1u8), (&sink, "r2", SINK_MAC, 2, 2)];
        router.disable_ipv6()?;
        for ((host, end, mac, net, last), router_mac) in hosts.into_iter().zip(ROUTER_MACS) {
            host.disable_ipv6()?;
            veth_with_queues(host, "eth0", &router, end, queues)?;
            host.set_mac("eth0", mac)?;
            router.set_mac(end, router_mac)?;
            host.add_address("eth0", IpAddr::from([10, 0, net, last]), 24)?;
            router.add_address(end, IpAddr::from([10, 0, net, 254]), 24)?;
            host.set_up("eth0")?;
            router.set_up(end)?;
            host.wait_for_link("eth0", Duration::from_secs(1))?;
            router.wait_for_link(end, Duration::from_secs(1))?;
        }
        // The flood's frames have no socket buffers; r1 accepts such frames only with this offload.
        router.turn_on("r1", Offload::Receive)?;
        // For the kernel's own routing, once it is enabled.
        router.add_neighbour("r2", IpAddr::from([10, 0, 2, 2]), SINK_MAC)?;
        for net in 0..PREFIXES {
            let prefix = Ipv4Addr::from(NET + (net << 8));
            router.add_route(IpAddr::from(prefix), 24, IpAddr::from([10, 0, 2, 2]))?;
        }
        Ok(Network { source, router, sink })
    }

    /// Enables or disables the kernel's routing. It would route in parallel with a forwarder that leaves the kernel its
    /// interfaces.
    pub fn let_kernel_route(&self, yes: bool) -> Result<(), NamespaceError> {
        self.router.set_parameter("net/ipv4/ip_forward", if yes { "1" } else { "0" })
    }

    /// Returns the load's frames, to be sent one by one.
    pub fn frames(len: usize) -> Vec<Vec<u8>> {
        let address = |n: u32| Ipv4Addr::from(NET + n * 251 % 65_536);
        (0..1024).map(|n| frame(len, address(n), 0)).collect()
    }

    /// Starts a load out of the source, on a processor, or on those of this process: frames of `len` bytes, at
    /// `share`/64 of the rate that the kernel could send.
    pub fn load(&self, len: usize, share: u32, processor: Option<&str>) -> Result<Load, Box<dyn std::error::Error>> {
        self.load_to(Destinations::Ascending, len, share, processor)
    }

    /// Starts a load to these destinations.
    pub fn load_to(
        &self,
        destinations: Destinations,
        len: usize,
        share: u32,
        processor: Option<&str>,
    ) -> Result<Load, Box<dyn std::error::Error>> {
        let own = std::env::current_exe()?;
        let mut command = match processor {
            Some(processor) => pinned(&self.source, processor, &own)?,
            None => self.source.command(&own)?,
        };
        Load::start(command.args([LOAD, &len.to_string(), &share.to_string(), destinations.name()]))
    }

    /// Opens a counter of the frames that arrive.
    pub fn sink(&self) -> Result<Sink, Box<dyn std::error::Error>> {
        Ok(self.sink.enter(|| Sink::open("eth0"))??)
    }

    /// Opens a counter of the frames that arrive, in the driver.
    pub fn driver_sink(&self) -> Result<Sink, Box<dyn std::error::Error>> {
        Ok(self.sink.enter(|| Sink::open_in_driver("eth0"))??)
    }

    /// Opens the interfaces of both hosts, for frames that this program sends.
    pub fn ends(&self) -> Result<[XdpPort; 2], Box<dyn std::error::Error>> {
        let open = || -> Result<XdpPort, PortError> { XdpPort::open("eth0", XdpSettings::default()) };
        Ok([self.source.enter(open)??, self.sink.enter(open)??])
    }
}

/// The destinations of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destinations {
    /// The addresses of 256 prefixes, one after the other.
    Ascending,
    /// The same in an order without locality.
    Scattered,
    /// An address in each of 65,536 prefixes, in an order without locality.
    Wide,
    /// One address: all frames are of one flow.
    One,
}

impl Destinations {
    const ALL: [Destinations; 4] =
        [Destinations::Ascending, Destinations::Scattered, Destinations::Wide, Destinations::One];

    fn name(self) -> &'static str {
        match self {
            Destinations::Ascending => "ascending",
            Destinations::Scattered => "scattered",
            Destinations::Wide => "wide",
            Destinations::One => "one",
        }
    }

    /// Returns the prefixes of 24 bits that all destinations are in.
    pub fn prefixes(self) -> impl Iterator<Item = Ipv4Addr> {
        let (first, count) = if self == Destinations::Wide { (WIDE_NET, 1 << 16) } else { (NET, PREFIXES) };
        (0..count).map(move |net| Ipv4Addr::from(first + (net << 8)))
    }
}

/// Runs the process of a load. Its arguments are the length of frames, their share of 64, and their destinations.
pub fn run_load() -> Result<(), Box<dyn std::error::Error>> {
    let argument = |at| std::env::args().nth(at).and_then(|text| text.parse().ok()).ok_or("a number is missing");
    let name = std::env::args().nth(4).unwrap_or_default();
    let destinations = Destinations::ALL.into_iter().find(|one| one.name() == name).ok_or("no such destinations")?;
    load::run(&flood_here(destinations, argument(2)?, argument(3)? as u32)?)
}

/// Returns a flood out of the source, as fast as the kernel generates it, for a process in the source's namespace. Only
/// `share` of each 64 frames leave.
fn flood_here(destinations: Destinations, len: usize, share: u32) -> Result<Flood, PortError> {
    // The identification balances the address in the header's checksum.
    let narrow = Vary { offset: 30, first: NET, count: 1 << 16, balance: Some(18) };
    let frame_to_net = || frame(len, Ipv4Addr::from(NET), 0xffff);
    match destinations {
        Destinations::Ascending => Flood::thinned("eth0", &frame_to_net(), Some(narrow), share),
        Destinations::Scattered => Flood::scattered("eth0", &frame_to_net(), narrow, share),
        Destinations::One => Flood::thinned("eth0", &frame_to_net(), None, share),
        Destinations::Wide => {
            // The field begins in the last byte of the source address, whose middle bytes balance it.
            let frame = frame_between(len, Ipv4Addr::new(10, 255, 255, 17), Ipv4Addr::from(WIDE_NET), 0);
            let vary = Vary { offset: 29, first: 17 << 24 | WIDE_NET >> 8, count: 1 << 16, balance: Some(27) };
            Flood::scattered("eth0", &frame, vary, share)
        }
    }
}

/// Returns a frame of `len` bytes from the source to an address beyond the router.
pub fn frame(len: usize, to: Ipv4Addr, identification: u16) -> Vec<u8> {
    frame_between(len, Ipv4Addr::new(10, 0, 1, 1), to, identification)
}

fn frame_between(len: usize, from: Ipv4Addr, to: Ipv4Addr, identification: u16) -> Vec<u8> {
    let payload = vec![0x5a; len.max(42) - 34];
    let mut packet = ipv4::Repr::new(from, to, 17).packet(&payload);
    packet[4..6].copy_from_slice(&identification.to_be_bytes());
    packet[10..12].fill(0);
    let sum: u32 = packet[..20].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    ethernet::Repr {
        destination: ethernet::Address(ROUTER_MACS[0]),
        source: ethernet::Address(SOURCE_MAC),
        ethertype: ethernet::IPV4,
    }
    .packet(&packet)
}

/// Returns the entries of `examples/router`: every prefix, and the router's own addresses on both ports.
pub fn entries() -> String {
    entries_for(Destinations::Ascending, RouteKeys::Prefixes)
}

/// More specific prefixes of the 256 /24, with 656 of their 65,536 addresses: 1 %.
const ONE_PERCENT: [(u32, u32); 6] = [(0, 25), (1, 25), (2, 25), (3, 25), (4, 25), (5, 28)];

/// Returns an address as entries have it.
pub fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Keys of the entries of the router's table of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteKeys {
    /// Prefixes.
    Prefixes,
    /// Prefixes, and more specific ones with 1 % of the scattered destinations, which lead to a port that does not
    /// exist.
    SlowPrefixes,
    /// Ternary keys with priorities: each prefix is divided into 9 parts, with masks of 25 to 32 bits.
    Rules,
}

/// Does the same for the prefixes of these destinations.
pub fn entries_for(destinations: Destinations, keys: RouteKeys) -> String {
    let route = |prefix: Ipv4Addr, length: u32, port: u32| {
        let mut route = json!({
            "table": "RouterIngress.ipv4_lpm",
            "match": { "hdr.ipv4.dst": [prefix.to_string(), length] },
            "action_name": "RouterIngress.forward",
            "action_params": { "mac": mac_text(SINK_MAC), "port": port },
        });
        if keys == RouteKeys::Rules {
            let mask = Ipv4Addr::from(u32::MAX << (32 - length));
            route["match"]["hdr.ipv4.dst"] = json!([prefix.to_string(), mask.to_string()]);
            route["priority"] = length.into();
        }
        route
    };
    let port = |(port, own): (usize, &[u8; 6])| {
        json!({
            "table": "RouterEgress.port_mac",
            "match": { "standard_metadata.egress_port": port + 1 },
            "action_name": "RouterEgress.set_source",
            "action_params": { "mac": mac_text(*own) },
        })
    };
    let slow = ONE_PERCENT.iter().filter(|_| keys == RouteKeys::SlowPrefixes);
    let slow = slow.map(|(net, length)| route(Ipv4Addr::from(NET + (net << 8)), *length, 9));
    let routes = destinations.prefixes().flat_map(|prefix| match keys {
        RouteKeys::Rules => parts(prefix).map(|(part, length)| route(part, length, 2)).collect(),
        RouteKeys::Prefixes | RouteKeys::SlowPrefixes => vec![route(prefix, 24, 2)],
    });
    let all: Vec<_> = routes.chain(slow).chain(ROUTER_MACS.iter().enumerate().map(port)).collect();
    json!({ "table_entries": all }).to_string()
}

/// Divides a prefix of 24 bits: its first half, the first half of the rest, and so on; the last part is one address.
fn parts(prefix: Ipv4Addr) -> impl Iterator<Item = (Ipv4Addr, u32)> {
    let first = u32::from(prefix);
    let part = move |length: u32| (Ipv4Addr::from(first + 256 - (1 << (33 - length))), length);
    (25..=32).map(part).chain([(Ipv4Addr::from(first + 255), 32)])
}
