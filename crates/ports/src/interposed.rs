//! Puts a program between an interface and the IPv4 stack of this host.
//!
//! ```text
//! applications ── stack ── routes ──> TAP device ──> InterposedPorts::host ─┐
//!                                                                           program
//!                   wire's interface <── packet socket <── ::wire <─────────┘
//!                     └─ ingress: IPv4, ARP and programs are hidden from the stack
//! ```
//!
//! The addresses stay at the wire's interface. The TAP device has its Ethernet address, and a copy of each of its IPv4
//! routes in the main table, before the original. So the stack sends through the device while it exists, and receives
//! what the program writes to it, as Linux accepts packets to its addresses on every interface.
//!
//! All of this belongs to descriptors of the process. When it ends, in whatever way, the kernel removes the device with
//! its routes and lets the interface deliver again: connections go on without the program. Frames of other types (IPv6,
//! VLAN tags) never leave the interface.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use wire::{ethernet, tpp};

use crate::bpf::{self, code, instruction};
use crate::interface::Interface;
use crate::namespace::netlink::{NetlinkRequest, attributes, dump};
use crate::{AfPacketPort, PortError, TapPort, tap};

/// The capabilities that loading and attaching a program needs.
const CAPABILITY: &str = "cap_net_admin,cap_net_raw,cap_bpf";
/// Minimum MTU of the device: the length of the packets that every IPv4 host accepts (RFC 791).
const LEAST_MTU: usize = 576;
/// EtherTypes that pass through the program: IPv4, ARP, and tiny packet programs.
const ETHERTYPES: [u16; 3] = [ethernet::IPV4, ethernet::ARP, tpp::ETHERTYPE];

/// The two ports of a program between an interface and the stack.
pub struct InterposedPorts {
    /// Receives what the stack sends, and sends to the stack.
    pub host: TapPort,
    /// The interface. It also receives frames that stay with the stack: see [`is_interposed`].
    pub wire: AfPacketPort,
    /// MTU of the device, in bytes.
    pub mtu: usize,
    /// Number of routes that lead to the device.
    pub routes: usize,
    /// Hides the frames of the interface from the stack.
    pub hidden: HiddenFrames,
}

/// Frames that the stack does not receive from the interface, as long as this lives.
pub struct HiddenFrames {
    /// Kept open: the attachment lasts as long as the descriptor.
    _link: OwnedFd,
}

impl InterposedPorts {
    /// Opens the interface `wire`, and creates the TAP device `device` with an MTU that is `room` bytes smaller, in the
    /// network namespace of the calling thread.
    ///
    /// # Errors
    /// If there is no such interface, its MTU is too small, the device exists, this process is not root, or the kernel
    /// is older than 6.6.
    pub fn open(wire: &str, device: &str, room: usize) -> Result<InterposedPorts, PortError> {
        let failed = |what| move |source| PortError::system(what, wire, CAPABILITY, source);
        let port = AfPacketPort::open(wire)?;
        let socket = tap::control_socket().map_err(failed("opening a socket"))?;
        let interface = Interface::new(socket.as_fd(), wire);
        let index = interface.index().map_err(failed("looking up the interface"))?;
        let mac = interface.mac().map_err(failed("reading the Ethernet address"))?;
        let mtu = port.mtu().checked_sub(room).filter(|mtu| *mtu >= LEAST_MTU).ok_or_else(|| {
            let text = format!("its MTU of {} bytes leaves less than {LEAST_MTU} beside {room}", port.mtu());
            failed("reserving room for programs")(io::Error::new(io::ErrorKind::InvalidInput, text))
        })?;
        if crate::interface_index(device).is_ok() {
            let text = "an interface has this name already".to_owned();
            let source = io::Error::new(io::ErrorKind::AlreadyExists, text);
            return Err(PortError::system("creating a TAP device", device, CAPABILITY, source));
        }
        let host = TapPort::open_with(device, |tap| {
            // IPv6 stays at the wire, so the device needs no address for it. A kernel may lack IPv6.
            let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{device}/addr_gen_mode"), "1");
            tap.set_mac(mac).and_then(|()| tap.set_mtu(mtu))
        })?;
        let hidden = hide(index).map_err(failed("hiding frames from the stack (Linux 6.6)"))?;
        let device = Interface::new(socket.as_fd(), device).index().map_err(failed("looking up the TAP device"))?;
        let routes = copy_routes(index, device).map_err(failed("copying the routes"))?;
        Ok(InterposedPorts { host, wire: port, mtu, routes, hidden })
    }
}

/// Whether a frame that the wire received passes through the program: its stack does not get it.
pub fn is_interposed(frame: &[u8]) -> bool {
    matches!(frame.get(12..14), Some([high, low]) if ETHERTYPES.contains(&u16::from_be_bytes([*high, *low])))
}

/// Drops the frames of [`ETHERTYPES`] that arrive at an interface, after packet sockets have seen them.
fn hide(interface: c_int) -> io::Result<HiddenFrames> {
    /// Offsets in struct __sk_buff.
    const PROTOCOL: i16 = 16;
    const VLAN_PRESENT: i16 = 20;
    const NEXT: i32 = -1;
    const DROP: i32 = 2;
    let is = |ethertype: u16, over| instruction(code::JUMP_EQUAL, 2, 0, over, i32::from(ethertype.to_be()));
    let program = [
        instruction(code::LOAD_U32, 3, 1, VLAN_PRESENT, 0),
        instruction(code::JUMP_NOT_EQUAL, 3, 0, 4, 0),
        instruction(code::LOAD_U32, 2, 1, PROTOCOL, 0),
        is(ETHERTYPES[0], 4),
        is(ETHERTYPES[1], 3),
        is(ETHERTYPES[2], 2),
        instruction(code::MOVE, 0, 0, 0, NEXT),
        instruction(code::EXIT, 0, 0, 0, 0),
        instruction(code::MOVE, 0, 0, 0, DROP),
        instruction(code::EXIT, 0, 0, 0, 0),
    ];
    Ok(HiddenFrames { _link: bpf::attach_at_stack(&program, interface, bpf::StackSide::Ingress)? })
}

/// Size of struct rtmsg in bytes.
const RTMSG: usize = 12;

/// Copies the IPv4 unicast routes of the main table from one interface to another, before the originals. Returns their
/// number.
fn copy_routes(from: c_int, to: c_int) -> io::Result<usize> {
    let mut body = [0; RTMSG];
    body[0] = libc::AF_INET as u8;
    let mut copies: Vec<_> =
        dump(libc::RTM_GETROUTE, &body)?.iter().filter_map(|route| copy_of(route, from, to)).collect();
    // A gateway must be reachable when its route is added.
    copies.sort_by_key(|(has_gateway, _)| *has_gateway);
    let count = copies.len();
    copies.into_iter().try_for_each(|(_, request)| request.send())?;
    Ok(count)
}

/// Returns the request for a copy of a route at another interface, and whether it has a gateway; `None` if the route is
/// none of this interface. The request lacks `NLM_F_EXCL` and `NLM_F_APPEND`, so the copy comes first.
fn copy_of(route: &[u8], from: c_int, to: c_int) -> Option<(bool, NetlinkRequest)> {
    const KEPT: [u16; 4] = [libc::RTA_DST, libc::RTA_GATEWAY, libc::RTA_PREFSRC, libc::RTA_PRIORITY];
    let (head, rest) = route.split_first_chunk::<RTMSG>()?;
    let is_its = attributes(rest).any(|(kind, value)| kind == libc::RTA_OIF && value == from.to_ne_bytes());
    if !is_its || head[4] != libc::RT_TABLE_MAIN || head[7] != libc::RTN_UNICAST {
        return None;
    }
    let mut head = *head;
    head[8..].fill(0);
    let request = NetlinkRequest::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE as u16, &head);
    let kept = attributes(rest).filter(|(kind, _)| KEPT.contains(kind));
    let request = kept.fold(request, |request, (kind, value)| request.attribute(kind, value));
    let has_gateway = attributes(rest).any(|(kind, _)| kind == libc::RTA_GATEWAY);
    Some((has_gateway, request.attribute(libc::RTA_OIF, &to.to_ne_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_untagged_ipv4_arp_and_programs_pass_through() {
        let frame = |ethertype: u16| [&[2; 12][..], &ethertype.to_be_bytes(), &[0; 46]].concat();
        let through =
            [0x0800, 0x0806, 0x6666, 0x86dd, 0x8100, 0x88cc].map(|ethertype| is_interposed(&frame(ethertype)));
        assert_eq!(through, [true, true, true, false, false, false]);
        assert!(!is_interposed(&[8; 13]));
    }

    #[test]
    fn routes_of_the_interface_are_copied_and_others_are_not() {
        let route = |table: u8, kind: u8, interface: c_int| {
            let head = [libc::AF_INET as u8, 24, 0, 0, table, 2, 253, kind, 16, 0, 0, 0];
            let attribute = |kind: u16, value: [u8; 4]| [&8u16.to_ne_bytes()[..], &kind.to_ne_bytes(), &value].concat();
            [
                &head[..],
                &attribute(libc::RTA_DST, [10, 0, 1, 0]),
                &attribute(libc::RTA_OIF, interface.to_ne_bytes()),
                &attribute(libc::RTA_CACHEINFO, [1; 4]),
            ]
            .concat()
        };
        let (main, unicast) = (libc::RT_TABLE_MAIN, libc::RTN_UNICAST);
        assert!(copy_of(&route(main, unicast, 7), 7, 9).is_some_and(|(has_gateway, _)| !has_gateway));
        let others =
            [route(main, unicast, 8), route(libc::RT_TABLE_LOCAL, unicast, 7), route(main, libc::RTN_BROADCAST, 7)];
        for other in others {
            assert!(copy_of(&other, 7, 9).is_none(), "{other:?}");
        }
        let whole = route(main, unicast, 7);
        for len in 0..whole.len() {
            copy_of(&whole[..len], 7, 9);
        }
    }
}
