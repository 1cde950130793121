//! Opens the two sockets of an interface.

use std::ffi::c_int;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use super::AfPacketPort;
use super::ring::Ring;
use super::transmit::Transmit;
use crate::interface::{ETHERNET_TYPES, Interface};
use crate::socket::{get_option, promiscuous, set_option, set_queue, take_error};
use crate::{Link, PortError};

/// The capability that packet sockets need.
const CAPABILITY: &str = "cap_net_raw";
/// Maximum number of bytes in a socket's queue: several frames of maximum length.
const QUEUE_BYTES: c_int = 8 << 20;
/// Size of an Ethernet header and two VLAN tags.
const HEADERS: usize = 22;

impl AfPacketPort {
    /// Opens the interface called `name` in the calling thread's network namespace, and makes it promiscuous while the
    /// port lives.
    ///
    /// # Errors
    /// Returns an error if there is no such interface, it does not carry Ethernet, or this process may not open packet
    /// sockets.
    pub fn open(name: &str) -> Result<Self, PortError> {
        let failed = |what| move |source| PortError::system(what, name, CAPABILITY, source);
        // Sockets start without a protocol, so that nothing is received before they are bound to the interface.
        let receiver = socket().map_err(failed("opening a packet socket"))?;
        let interface = Interface::new(receiver.as_fd(), name);
        let index = interface.index().map_err(failed("looking up the interface"))?;
        let mtu = interface.mtu().map_err(failed("reading the MTU"))?;
        let hardware_type = interface.hardware_type().map_err(failed("reading the hardware type"))?;
        if !ETHERNET_TYPES.contains(&hardware_type) {
            return Err(PortError::NotEthernet { interface: name.to_owned(), hardware_type });
        }
        let option = |option: c_int, value: c_int| set_option(&receiver, libc::SOL_PACKET, option, &value);
        let version = libc::tpacket_versions::TPACKET_V2 as c_int;
        option(libc::PACKET_VERSION, version).map_err(failed("setting the ring version"))?;
        option(libc::PACKET_VNET_HDR, 1).map_err(failed("enabling offload headers"))?;
        option(libc::PACKET_COPY_THRESH, 1).map_err(failed("enabling oversized frames"))?;
        // Linux before 4.20 has no such option; there the ring's addresses distinguish sent from received frames.
        let _ = option(libc::PACKET_IGNORE_OUTGOING, 1);
        set_queue(&receiver, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, QUEUE_BYTES);
        let ring = Ring::map(&receiver, mtu + HEADERS).map_err(failed("creating the receive ring"))?;
        bind(&receiver, libc::ETH_P_ALL as u16, index).map_err(failed("binding the receiving socket"))?;
        // Binding to an interface that is down leaves a pending error; frames arrive when it is up.
        take_error(&receiver);
        promiscuous(&receiver, index).map_err(failed("enabling promiscuous mode"))?;
        let sender = socket().map_err(failed("opening a packet socket"))?;
        bind(&sender, 0, index).map_err(failed("binding the sending socket"))?;
        take_error(&sender);
        // Without this option frames pass through the queueing discipline, which only costs time.
        let _ = set_option(&sender, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1);
        set_queue(&sender, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, QUEUE_BYTES);
        // A socket of its own: those above hold the port's memory as long as they are open.
        let link = Link::new(&Arc::new(socket().map_err(failed("opening a packet socket"))?), index);
        Ok(AfPacketPort::from_parts(name, (index, link), mtu, receiver, ring, Transmit::new(sender)))
    }
}

fn socket() -> io::Result<OwnedFd> {
    crate::socket::open(libc::AF_PACKET)
}

fn bind(socket: &OwnedFd, protocol: u16, index: c_int) -> io::Result<()> {
    // SAFETY: a struct of integers, for which zero bytes are valid.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index;
    // SAFETY: the address lives through the call and has the given length.
    let result = unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads and clears the count of frames dropped for lack of space.
pub(super) fn take_dropped(socket: &OwnedFd) -> u64 {
    let zero = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    get_option(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, zero).map_or(0, |stats| stats.tp_drops.into())
}
