//! Configures interfaces, addresses, routes and neighbours of a namespace.

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use super::netlink::{self, NetlinkRequest};
use super::{Namespace, NamespaceError};
use crate::interface::Interface;

const CREATE: u16 = (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
const REPLACE: u16 = (libc::NLM_F_CREATE | libc::NLM_F_REPLACE) as u16;
/// The attribute of a veth's link data that describes its other end (`VETH_INFO_PEER`).
const PEER: u16 = 1;

/// Creates a pair of connected Ethernet interfaces: frames that enter `name_a` of namespace `a` leave `name_b` of
/// namespace `b`. Both are down. They live until one is removed or one of the namespaces ends.
///
/// # Errors
/// Returns an error if a name is taken or invalid.
pub fn veth(a: &Namespace, name_a: &str, b: &Namespace, name_b: &str) -> Result<(), NamespaceError> {
    veth_with_queues(a, name_a, b, name_b, 1)
}

/// Like [`veth()`], with several queues in each direction. Frames sent on a queue arrive on the other end's queue of
/// the same number; the kernel chooses the queue by flow.
///
/// # Errors
/// As [`veth()`]; also returns an error if this number of queues is not supported.
pub fn veth_with_queues(
    a: &Namespace,
    name_a: &str,
    b: &Namespace,
    name_b: &str,
    queues: u32,
) -> Result<(), NamespaceError> {
    let queued = |request: NetlinkRequest| {
        // With one queue the kernel's default is kept.
        if queues == 1 {
            return request;
        }
        let queues = queues.to_ne_bytes();
        request.attribute(libc::IFLA_NUM_TX_QUEUES, &queues).attribute(libc::IFLA_NUM_RX_QUEUES, &queues)
    };
    let what = format!("creating a veth pair {name_a} and {name_b}");
    let make = || {
        let other_end = b.descriptor().as_raw_fd().to_ne_bytes();
        queued(NetlinkRequest::new(libc::RTM_NEWLINK, CREATE, &link(0, 0, 0)))
            .attribute(libc::IFLA_IFNAME, &text(name_a)?)
            .nested(libc::IFLA_LINKINFO, |request| {
                request.attribute(libc::IFLA_INFO_KIND, b"veth").nested(libc::IFLA_INFO_DATA, |request| {
                    request.nested(PEER, |request| {
                        queued(request.raw(&link(0, 0, 0)))
                            .attribute(libc::IFLA_IFNAME, &text(name_b).unwrap_or_default())
                            .attribute(libc::IFLA_NET_NS_FD, &other_end)
                    })
                })
            })
            .send()
    };
    text(name_b).map_err(a.failed(what.clone()))?;
    a.enter(make)?.map_err(a.failed(what))
}

impl Namespace {
    /// Sets an interface up, as if its cable were plugged in; a veth carries frames once both ends are up.
    ///
    /// # Errors
    /// Returns an error if there is no such interface.
    pub fn set_up(&self, interface: &str) -> Result<(), NamespaceError> {
        self.change(interface, "bringing up", |index| {
            let up = libc::IFF_UP as u32;
            NetlinkRequest::new(libc::RTM_NEWLINK, 0, &link(index, up, up)).send()
        })
    }

    /// Waits until an interface that is up can carry frames, for at most `timeout`. Returns false if it cannot by then.
    /// The kernel notices with a small delay that the other end of a veth is up, and drops frames until then. So call
    /// this on both ends once both are up, or the first frames may be lost.
    ///
    /// # Errors
    /// Returns an error if there is no such interface.
    pub fn wait_for_link(&self, interface: &str, timeout: Duration) -> Result<bool, NamespaceError> {
        let work = || {
            let socket = any_socket()?;
            let device = Interface::new(socket.as_fd(), interface);
            let deadline = Instant::now() + timeout;
            while !device.has_link()? {
                if Instant::now() >= deadline {
                    return Ok(false);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(true)
        };
        self.enter(work)?.map_err(self.failed(format!("reading the link state of {interface}")))
    }

    /// Sets an interface down.
    ///
    /// # Errors
    /// Returns an error if there is no such interface.
    pub fn set_down(&self, interface: &str) -> Result<(), NamespaceError> {
        self.change(interface, "bringing down", |index| {
            NetlinkRequest::new(libc::RTM_NEWLINK, 0, &link(index, 0, libc::IFF_UP as u32)).send()
        })
    }

    /// Renames an interface, which is down.
    ///
    /// # Errors
    /// Returns an error if there is no such interface, or its new name is not one that an interface can have.
    pub fn rename(&self, interface: &str, name: &str) -> Result<(), NamespaceError> {
        let name = text(name).map_err(self.failed(format!("renaming {interface}")))?;
        self.change(interface, "renaming", |index| {
            NetlinkRequest::new(libc::RTM_NEWLINK, 0, &link(index, 0, 0)).attribute(libc::IFLA_IFNAME, &name).send()
        })
    }

    /// Removes an interface, and with one end of a veth pair also the other.
    ///
    /// # Errors
    /// Returns an error if there is no such interface.
    pub fn remove(&self, interface: &str) -> Result<(), NamespaceError> {
        self.change(interface, "removing", |index| NetlinkRequest::new(libc::RTM_DELLINK, 0, &link(index, 0, 0)).send())
    }

    /// Moves an interface to another namespace; it is down afterwards.
    ///
    /// # Errors
    /// Returns an error if there is no such interface, or the other namespace has one of the same name.
    pub fn move_to(&self, interface: &str, other: &Namespace) -> Result<(), NamespaceError> {
        self.change(interface, "moving", |index| {
            let file = other.descriptor().as_raw_fd().to_ne_bytes();
            NetlinkRequest::new(libc::RTM_NEWLINK, 0, &link(index, 0, 0)).attribute(libc::IFLA_NET_NS_FD, &file).send()
        })
    }

    /// Sets an interface's Ethernet address.
    ///
    /// # Errors
    /// Returns an error if there is no such interface, or the address is not a unicast address.
    pub fn set_mac(&self, interface: &str, mac: [u8; 6]) -> Result<(), NamespaceError> {
        self.change(interface, "setting the Ethernet address of", |index| {
            NetlinkRequest::new(libc::RTM_NEWLINK, 0, &link(index, 0, 0)).attribute(libc::IFLA_ADDRESS, &mac).send()
        })
    }

    /// Sets an interface's MTU, in bytes.
    ///
    /// # Errors
    /// Returns an error if there is no such interface, or it cannot have this MTU.
    pub fn set_mtu(&self, interface: &str, mtu: u32) -> Result<(), NamespaceError> {
        self.change(interface, "setting the MTU of", |index| {
            NetlinkRequest::new(libc::RTM_NEWLINK, 0, &link(index, 0, 0))
                .attribute(libc::IFLA_MTU, &mtu.to_ne_bytes())
                .send()
        })
    }

    /// Creates a VLAN interface on top of another: its frames leave `parent` with a tag of identifier `id`.
    ///
    /// # Errors
    /// Returns an error if there is no such parent, or the name is taken.
    pub fn add_vlan(&self, parent: &str, name: &str, id: u16) -> Result<(), NamespaceError> {
        self.change(parent, "creating a VLAN interface on", |index| {
            let name = text(name)?;
            NetlinkRequest::new(libc::RTM_NEWLINK, CREATE, &link(0, 0, 0))
                .attribute(libc::IFLA_IFNAME, &name)
                .attribute(libc::IFLA_LINK, &index.to_ne_bytes())
                .nested(libc::IFLA_LINKINFO, |request| {
                    // IFLA_VLAN_ID is the first of the VLAN's attributes.
                    let data = |request: NetlinkRequest| request.attribute(1, &id.to_ne_bytes());
                    request.attribute(libc::IFLA_INFO_KIND, b"vlan").nested(libc::IFLA_INFO_DATA, data)
                })
                .send()
        })
    }

    /// Adds an address to an interface, and a route to its network of `prefix` bits. IPv6 addresses can be used at
    /// once, without duplicate address detection, as no other host on these links can have them.
    ///
    /// # Errors
    /// Returns an error if there is no such interface or it already has the address.
    pub fn add_address(&self, interface: &str, address: IpAddr, prefix: u8) -> Result<(), NamespaceError> {
        self.change(interface, "adding an address to", |index| {
            let bytes = octets(address);
            // struct ifaddrmsg: family, prefix, flags, scope, interface.
            let mut body = vec![family(address), prefix, libc::IFA_F_NODAD as u8, 0];
            body.extend(index.to_ne_bytes());
            NetlinkRequest::new(libc::RTM_NEWADDR, CREATE, &body)
                .attribute(libc::IFA_LOCAL, &bytes)
                .attribute(libc::IFA_ADDRESS, &bytes)
                .send()
        })
    }

    /// Routes `destination`/`prefix` through `gateway`; prefix 0 is the default route.
    ///
    /// # Errors
    /// Returns an error if the gateway is not on any interface's network, or both are not of one family.
    pub fn add_route(&self, destination: IpAddr, prefix: u8, gateway: IpAddr) -> Result<(), NamespaceError> {
        self.add_routes(&[(destination, prefix)], gateway)
    }

    /// Routes several destinations through one gateway, in order. Tens of thousands take less than a second.
    ///
    /// # Errors
    /// As [`add_route`](Self::add_route). Routes before the one that failed stay.
    pub fn add_routes(&self, destinations: &[(IpAddr, u8)], gateway: IpAddr) -> Result<(), NamespaceError> {
        let add = || {
            let failed = |(destination, prefix)| format!("routing {destination}/{prefix} through {gateway}");
            let socket = netlink::route_socket().map_err(self.failed("opening a netlink socket".to_owned()))?;
            let add = |to| route(to, gateway).send_through(&socket).map_err(self.failed(failed(to)));
            destinations.iter().copied().try_for_each(add)
        };
        self.enter(add)?
    }

    /// Adds a permanent neighbour entry with an Ethernet address, so that no address resolution is needed.
    ///
    /// # Errors
    /// Returns an error if there is no such interface.
    pub fn add_neighbour(&self, interface: &str, address: IpAddr, mac: [u8; 6]) -> Result<(), NamespaceError> {
        self.change(interface, "adding a neighbour to", |index| {
            // struct ndmsg: family and padding, interface, state, flags, type.
            let mut body = vec![family(address), 0, 0, 0];
            body.extend(index.to_ne_bytes());
            body.extend(libc::NUD_PERMANENT.to_ne_bytes());
            body.extend([0, libc::RTN_UNICAST]);
            NetlinkRequest::new(libc::RTM_NEWNEIGH, REPLACE, &body)
                .attribute(libc::NDA_DST, &octets(address))
                .attribute(libc::NDA_LLADDR, &mac)
                .send()
        })
    }

    /// Looks an interface up inside the namespace and changes it there.
    fn change(
        &self,
        interface: &str,
        what: &str,
        change: impl FnOnce(i32) -> io::Result<()> + Send,
    ) -> Result<(), NamespaceError> {
        let work = || {
            let socket =
                std::net::UdpSocket::bind("127.0.0.1:0").or_else(|_| std::net::UdpSocket::bind("0.0.0.0:0"))?;
            change(Interface::new(socket.as_fd(), interface).index()?)
        };
        self.enter(work)?.map_err(self.failed(format!("{what} {interface}")))
    }
}

/// Returns the request to route `destination`/`prefix` through `gateway`.
fn route((destination, prefix): (IpAddr, u8), gateway: IpAddr) -> NetlinkRequest {
    // struct rtmsg: family, prefixes, service, table, protocol, scope, type, flags.
    let (table, scope) = (libc::RT_TABLE_MAIN, libc::RT_SCOPE_UNIVERSE);
    let head = [family(gateway), prefix, 0, 0, table, libc::RTPROT_STATIC, scope, libc::RTN_UNICAST];
    let body: Vec<u8> = head.into_iter().chain([0; 4]).collect();
    let request = NetlinkRequest::new(libc::RTM_NEWROUTE, CREATE, &body);
    let request = if prefix == 0 { request } else { request.attribute(libc::RTA_DST, &octets(destination)) };
    request.attribute(libc::RTA_GATEWAY, &octets(gateway))
}

/// Opens a socket for interface queries.
fn any_socket() -> io::Result<UdpSocket> {
    UdpSocket::bind("0.0.0.0:0")
}

/// Encodes struct ifinfomsg: family, type, index, flags, mask of flags to change.
fn link(index: i32, flags: u32, change: u32) -> [u8; 16] {
    let mut body = [0; 16];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[8..12].copy_from_slice(&flags.to_ne_bytes());
    body[12..16].copy_from_slice(&change.to_ne_bytes());
    body
}

/// Encodes an interface's name as in attributes, with a terminating zero.
fn text(name: &str) -> io::Result<Vec<u8>> {
    if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.bytes().any(|b| b == 0) {
        let complaint = format!("`{name}` is not a valid interface name: names have 1 to 15 characters");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, complaint));
    }
    Ok(name.bytes().chain([0]).collect())
}

fn family(address: IpAddr) -> u8 {
    (if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }) as u8
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}
