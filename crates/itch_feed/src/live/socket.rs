//! Opens UDP sockets for feeds.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};

/// Receive buffer requested from the kernel, in bytes; an administrator may set a lower limit.
const RECEIVE_BUFFER: usize = 8 << 20;
/// Send buffer requested from the kernel, in bytes.
const SEND_BUFFER: usize = 4 << 20;
/// Time to live of multicast datagrams: the number of routers that a feed may pass.
const TTL: u32 = 16;

/// Opens a socket that sends from an address of this machine.
pub fn sender(interface: Ipv4Addr, to: SocketAddrV4) -> io::Result<UdpSocket> {
    let socket = socket()?;
    socket.set_send_buffer_size(SEND_BUFFER)?;
    if to.ip().is_multicast() {
        socket.set_multicast_ttl_v4(TTL)?;
    }
    // For multicast groups, this selects the interface too.
    socket.bind(&SocketAddrV4::new(interface, 0).into())?;
    Ok(socket.into())
}

/// Opens a socket that receives at a port, and joins a group if there is one.
pub fn receiver(group: Option<Ipv4Addr>, interface: Ipv4Addr, port: u16) -> io::Result<UdpSocket> {
    let socket = socket()?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    // Several receivers of a group may share a machine.
    socket.set_reuse_address(group.is_some())?;
    // A socket bound to the group receives nothing else.
    let own = group.unwrap_or(interface);
    socket.bind(&SocketAddrV4::new(own, port).into())?;
    if let Some(group) = &group {
        socket.join_multicast_v4(group, &interface)?;
    }
    Ok(socket.into())
}

fn socket() -> io::Result<Socket> {
    Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))
}
