//! Routes IPv4 at XDP as a hand-written program does, with the kernel's own tables.
//!
//! ```text
//! if the frame is shorter than both headers, or not IPv4 with a header of 20 bytes: XDP_PASS
//! if time to live <= 1: XDP_DROP
//! number = routes[32 bits, destination]          BPF_MAP_TYPE_LPM_TRIE; none: XDP_DROP
//! hop = next_hops[number]                        array
//! time to live -= 1; checksum += 0x0100, with end-around carry
//! both MAC addresses = those of hop
//! return bpf_redirect_map(devices, hop.device)
//! ```
//!
//! It neither verifies the checksum nor counts.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::xdp_redirect::{DROP, REDIRECT_MAP, attach, device_map, failed};
use crate::PortError;
use crate::bpf::{self, BytesMap, code, instruction, load_map, look_up};

/// `XDP_PASS`
const PASS: i32 = 2;

/// Jump offsets that stand for the two ends of the program until it is complete.
const TO_DROP: i16 = i16::MAX;
const TO_PASS: i16 = i16::MAX - 1;

/// Size of an Ethernet header and an IPv4 header without options, in bytes.
const HEADERS: i32 = 34;
/// Offsets in the frame.
const ETHER_TYPE: i16 = 12;
const VERSION_AND_LENGTH: i16 = 14;
const TIME_TO_LIVE: i16 = 22;
const CHECKSUM: i16 = 24;
const DESTINATION: i16 = 30;

/// The Ethernet type of IPv4 in network byte order.
const IPV4: i32 = 0x0800_u16.to_be() as i32;
/// The first byte of an IPv4 header without options: version 4, five words.
const PLAIN_HEADER: i32 = 0x45;
/// Increment of the checksum, in network byte order, when the time to live decreases by one: `~(~HC + ~m + m')` with
/// `m' = m - 0x0100` (RFC 1624, equation 3).
const LESS_BY_ONE: i32 = 0x0100_u16.to_be() as i32;

/// A route to a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Route {
    /// Address of the network. Bits beyond the length are ignored.
    pub address: Ipv4Addr,
    /// Length of the prefix in bits, from 0 to 32.
    pub length: u8,
    /// Index of the next hop.
    pub next_hop: u32,
}

/// The neighbour that a router sends a packet to, and the interface that leads there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop<'a> {
    /// Name of the interface.
    pub interface: &'a str,
    /// MAC address that frames come from: the interface's own.
    pub source: [u8; 6],
    /// MAC address of the neighbour.
    pub destination: [u8; 6],
}

/// An IPv4 router at XDP. Frames that are not IPv4, or have options, go to the kernel's stack. The program is detached
/// when this is dropped, or when the process ends in any way.
pub struct HandWrittenRouter {
    /// Kept open: the attachments last as long as the descriptors.
    _links: Vec<OwnedFd>,
}

/// The tables of a router.
struct RouterTables {
    /// By length and address: the index of the next hop.
    routes: BytesMap<8, 4>,
    /// By index: what [`encoded`] returns.
    next_hops: BytesMap<4, HOP_LEN>,
    devices: OwnedFd,
}

impl HandWrittenRouter {
    /// Attaches to the drivers of `interfaces`; what they receive is routed. All interfaces are those of the calling
    /// thread's network namespace. Of two routes with the same prefix, the later one wins.
    ///
    /// The kernel drops each frame for an interface that does not
    /// [accept redirects](crate::accepts_redirects).
    ///
    /// # Errors
    /// Returns an error if there is no such interface, its driver does not support XDP, another program is attached, or
    /// this process may not load BPF programs.
    ///
    /// # Panics
    /// Panics if there is no next hop, a route names one that does not exist, or its length is more than 32.
    pub fn attach(
        interfaces: &[&str],
        routes: &[Ipv4Route],
        next_hops: &[NextHop<'_>],
    ) -> Result<HandWrittenRouter, PortError> {
        let tables = RouterTables::new(routes, next_hops)?;
        let first = interfaces.first().copied().unwrap_or_default();
        let program = bpf::load_xdp(&program(&tables), 0).map_err(failed("loading a routing program", first))?;
        let links = interfaces.iter().map(|interface| attach(&program, interface)).collect::<Result<_, _>>()?;
        Ok(HandWrittenRouter { _links: links })
    }
}

impl RouterTables {
    fn new(routes: &[Ipv4Route], next_hops: &[NextHop<'_>]) -> Result<RouterTables, PortError> {
        assert!(!next_hops.is_empty(), "a router has a next hop");
        let mut interfaces: Vec<&str> = next_hops.iter().map(|hop| hop.interface).collect();
        interfaces.sort_unstable();
        interfaces.dedup();
        let failed = |what| failed(what, next_hops[0].interface);
        let tables = RouterTables {
            // A map needs room for one entry at least.
            routes: BytesMap::prefix_trie(routes.len().max(1) as u32).map_err(failed("creating a table of routes"))?,
            next_hops: BytesMap::array(next_hops.len() as u32).map_err(failed("creating a table of next hops"))?,
            devices: device_map(&interfaces)?,
        };
        for (number, hop) in (0u32..).zip(next_hops) {
            let device = interfaces.binary_search(&hop.interface).expect("every interface is in the list");
            let value = encoded(hop, device as u32);
            tables.next_hops.update(&number.to_ne_bytes(), &value).map_err(failed("adding a next hop"))?;
        }
        for route in routes {
            assert!(route.length <= 32 && (route.next_hop as usize) < next_hops.len(), "{route:?}");
            let mut key = [0; 8];
            key[..4].copy_from_slice(&u32::from(route.length).to_ne_bytes());
            key[4..].copy_from_slice(&route.address.octets());
            tables.routes.update(&key, &route.next_hop.to_ne_bytes()).map_err(failed("adding a route"))?;
        }
        Ok(tables)
    }
}

/// Size of an encoded next hop in bytes, and the offset of the device in it.
const HOP_LEN: usize = 16;
const HOP_DEVICE: usize = 12;

/// Encodes a next hop: both MAC addresses as at the start of a frame, then the index of the device.
fn encoded(hop: &NextHop<'_>, device: u32) -> [u8; HOP_LEN] {
    let mut value = [0; HOP_LEN];
    value[..6].copy_from_slice(&hop.destination);
    value[6..HOP_DEVICE].copy_from_slice(&hop.source);
    value[HOP_DEVICE..].copy_from_slice(&device.to_ne_bytes());
    value
}

/// Generates the program. The frame's address is in r7.
fn program(tables: &RouterTables) -> Vec<u64> {
    let mut program = vec![
        // The headers are complete, and are those of IPv4 without options.
        instruction(code::LOAD_U32, 7, 1, 0, 0),
        instruction(code::LOAD_U32, 2, 1, 4, 0),
        instruction(code::MOVE_REGISTER, 3, 7, 0, 0),
        instruction(code::ADD, 3, 0, 0, HEADERS),
        instruction(code::JUMP_GREATER_REGISTER, 3, 2, TO_PASS, 0),
        instruction(code::LOAD_U16, 1, 7, ETHER_TYPE, 0),
        instruction(code::JUMP_NOT_EQUAL, 1, 0, TO_PASS, IPV4),
        instruction(code::LOAD_U8, 1, 7, VERSION_AND_LENGTH, 0),
        instruction(code::JUMP_NOT_EQUAL, 1, 0, TO_PASS, PLAIN_HEADER),
        instruction(code::LOAD_U8, 1, 7, TIME_TO_LIVE, 0),
        instruction(code::JUMP_LESS, 1, 0, TO_DROP, 2),
        // The key of the route: 32 bits, the destination.
        instruction(code::STORE_IMMEDIATE_U32, 10, 0, -8, 32),
        instruction(code::LOAD_U32, 1, 7, DESTINATION, 0),
        instruction(code::STORE_U32, 10, 1, -4, 0),
    ];
    program.extend(lookup(tables.routes.as_fd()));
    // The key of the next hop: its index.
    program.extend([instruction(code::LOAD_U32, 1, 0, 0, 0), instruction(code::STORE_U32, 10, 1, -8, 0)]);
    program.extend(lookup(tables.next_hops.as_fd()));
    let [load_low, load_high] = load_map(1, tables.devices.as_fd());
    program.extend([
        instruction(code::LOAD_U8, 1, 7, TIME_TO_LIVE, 0),
        instruction(code::ADD, 1, 0, 0, -1),
        instruction(code::STORE_U8, 7, 1, TIME_TO_LIVE, 0),
        instruction(code::LOAD_U16, 1, 7, CHECKSUM, 0),
        instruction(code::ADD, 1, 0, 0, LESS_BY_ONE),
        // The carry goes around, also at 0xffff, the other form of zero.
        instruction(code::JUMP_LESS, 1, 0, 1, 0xffff),
        instruction(code::ADD, 1, 0, 0, 1),
        instruction(code::STORE_U16, 7, 1, CHECKSUM, 0),
        instruction(code::LOAD_U64, 1, 0, 0, 0),
        instruction(code::STORE_U64, 7, 1, 0, 0),
        instruction(code::LOAD_U32, 1, 0, 8, 0),
        instruction(code::STORE_U32, 7, 1, 8, 0),
        instruction(code::LOAD_U32, 2, 0, HOP_DEVICE as i16, 0),
        load_low,
        load_high,
        instruction(code::MOVE, 3, 0, 0, DROP),
        instruction(code::CALL, 0, 0, 0, REDIRECT_MAP),
        instruction(code::EXIT, 0, 0, 0, 0),
    ]);
    let to_pass = program.len();
    program.extend([instruction(code::MOVE, 0, 0, 0, PASS), instruction(code::EXIT, 0, 0, 0, 0)]);
    let to_drop = program.len();
    program.extend([instruction(code::MOVE, 0, 0, 0, DROP), instruction(code::EXIT, 0, 0, 0, 0)]);
    resolve(&mut program, [(TO_PASS, to_pass), (TO_DROP, to_drop)]);
    program
}

/// Generates code that looks up the key at `r10 - 8`: r0 becomes the address of its value. Without one, the frame is
/// dropped.
fn lookup(map: BorrowedFd<'_>) -> Vec<u64> {
    [&look_up(map, -8)[..], &[instruction(code::JUMP_EQUAL, 0, 0, TO_DROP, 0)]].concat()
}

/// Replaces the offsets that stand for places of the program. No other instruction has such an offset.
fn resolve(program: &mut [u64], places: [(i16, usize); 2]) {
    for (at, instruction) in program.iter_mut().enumerate() {
        let offset = (*instruction >> 16) as i16;
        if let Some((_, place)) = places.iter().find(|(stand_in, _)| *stand_in == offset) {
            let distance = (place - at - 1) as u64;
            *instruction = *instruction & !0xffff_0000 | distance << 16;
        }
    }
}
