//! Puts a program between an interface and the IPv4 stack of this host.
//!
//! ```text
//! applications ── stack ── routes ──> TAP device ──> InterposedPorts::host ─┐
//!                                                                           program
//!                   wire's interface <── packet socket <── ::wire <─────────┘
//!                     └─ ingress: IPv4 and programs are hidden from the stack, ARP is not
//! ```
//!
//! The addresses stay at the wire's interface. The TAP device has its Ethernet address, and a copy of each of its IPv4
//! routes in the main table, before the original. So the stack sends through the device while it exists, and receives
//! what the program writes to it, as Linux accepts packets to its addresses on every interface. [`RouteFollower`] keeps
//! the copies equal to the originals.
//!
//! Both interfaces resolve addresses: packets of routes that are not copied leave the wire's interface as before. So
//! both receive ARP, and one of them answers requests ([`neighbours`]).
//!
//! All of this belongs to descriptors of the process. When it ends, in whatever way, the kernel removes the device with
//! its routes and lets the interface deliver again: connections go on without the program. Frames of other types (IPv6,
//! VLAN tags) never leave the interface.

mod follower;
mod frames;
mod neighbours;
mod routes;

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use wire::{ethernet, tpp};

use crate::bpf::{self, code, instruction};
use crate::interface::Interface;
use crate::{AfPacketPort, PortError, TapPort, tap};

pub use follower::RouteFollower;
pub use frames::InterposedFrames;
pub use routes::RouteCounts;

/// The capabilities that loading and attaching a program needs.
const CAPABILITY: &str = "cap_net_admin,cap_net_raw,cap_bpf";
/// Minimum MTU of the device: the length of the packets that every IPv4 host accepts (RFC 791).
const LEAST_MTU: usize = 576;
/// EtherTypes of frames that the stack does not receive from the wire: IPv4 and tiny packet programs.
const HIDDEN: [u16; 2] = [ethernet::IPV4, tpp::ETHERTYPE];
/// Names of directories of settings for all interfaces, which no device may have.
const RESERVED: [&str; 2] = ["all", "default"];

/// The two ports of a program between an interface and the stack.
pub struct InterposedPorts {
    /// Receives what the stack sends, and sends to the stack.
    pub host: TapPort,
    /// The interface. It also receives frames that stay with the stack.
    pub wire: AfPacketPort,
    /// Which frames pass between the two.
    pub frames: InterposedFrames,
    /// MTU of the device, in bytes.
    pub mtu: usize,
    /// Routes of the interface.
    pub routes: RouteCounts,
    /// Follows their changes.
    pub follower: RouteFollower,
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
    /// If there is no such interface, its MTU is too small, the device exists, another program is interposed at the
    /// interface, no interface would answer ARP, this process is not root, or the kernel is older than 6.6.
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
        if crate::interface_index(device).is_ok() || RESERVED.contains(&device) {
            return Err(PortError::NameTaken { interface: device.to_owned() });
        }
        if let Some(other) = neighbours::device_before(wire).map_err(failed("listing the interfaces"))? {
            return Err(PortError::Interposed { interface: wire.to_owned(), device: other });
        }
        let responder = neighbours::ArpResponder::of(wire)?;
        let host = TapPort::open_with(device, |tap| {
            neighbours::configure((device, tap.index()?), wire, responder)?;
            tap.set_mac(mac).and_then(|()| tap.set_mtu(mtu))
        })?;
        let hidden = hide(index).map_err(failed("hiding frames from the stack (Linux 6.6)"))?;
        let device = Interface::new(socket.as_fd(), device).index().map_err(failed("looking up the TAP device"))?;
        let (follower, routes) =
            RouteFollower::start(index, device, mtu).map_err(failed("copying the routes and neighbours"))?;
        Ok(InterposedPorts { host, wire: port, frames: InterposedFrames::new(mac), mtu, routes, follower, hidden })
    }
}

/// Drops the frames of [`HIDDEN`] that arrive at an interface, after packet sockets have seen them.
fn hide(interface: c_int) -> io::Result<HiddenFrames> {
    /// Offsets in struct __sk_buff.
    const PROTOCOL: i16 = 16;
    const VLAN_PRESENT: i16 = 20;
    const NEXT: i32 = -1;
    const DROP: i32 = 2;
    let is = |ethertype: u16, over| instruction(code::JUMP_EQUAL, 2, 0, over, i32::from(ethertype.to_be()));
    let program = [
        instruction(code::LOAD_U32, 3, 1, VLAN_PRESENT, 0),
        instruction(code::JUMP_NOT_EQUAL, 3, 0, 3, 0),
        instruction(code::LOAD_U32, 2, 1, PROTOCOL, 0),
        is(HIDDEN[0], 3),
        is(HIDDEN[1], 2),
        instruction(code::MOVE, 0, 0, 0, NEXT),
        instruction(code::EXIT, 0, 0, 0, 0),
        instruction(code::MOVE, 0, 0, 0, DROP),
        instruction(code::EXIT, 0, 0, 0, 0),
    ];
    Ok(HiddenFrames { _link: bpf::attach_at_stack(&program, interface, bpf::StackSide::Ingress)? })
}
