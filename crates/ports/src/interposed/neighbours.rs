//! Decides which of the two interfaces answers ARP requests, and marks the device, so that other programs find it.
//!
//! Both have the host's Ethernet address, and both receive requests. The wire's interface has the IPv4 addresses, so it
//! answers, unless the kernel's settings for multihomed hosts forbid it: the routes lead to the device, and some
//! settings compare the route to the requester with the interface of the request.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::io;

use crate::PortError;
use crate::namespace::netlink::{NetlinkRequest, attributes, dump};

/// Size of struct ndmsg in bytes.
const NDMSG: usize = 12;
/// Size of struct ifinfomsg in bytes.
const IFINFOMSG: usize = 16;
/// The address for interfaces that have none (RFC 7600, section 4.8).
const DUMMY_ADDRESS: [u8; 4] = [192, 0, 0, 8];

/// The interface that answers ARP requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArpResponder {
    /// The wire's, so that the device must not.
    Wire,
    /// The device.
    Device,
}

/// The settings of an interface that decide on answers.
#[derive(Clone, Copy, Debug, Default)]
struct ArpSettings {
    /// Strictness of the test whether packets come from where the route to their source leads.
    rp_filter: u32,
    /// Whether the route to the requester decides.
    arp_filter: u32,
    /// Addresses for which an interface does not answer: those of other interfaces, from 1 on.
    arp_ignore: u32,
}

impl ArpSettings {
    /// Reads the settings: for each, the larger one of those of the interface and of all is in force.
    fn of(interface: &str) -> ArpSettings {
        let value = |interface: &str, name: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{interface}/{name}"));
            text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
        };
        let larger = |name: &str| value("all", name).max(value(interface, name));
        ArpSettings {
            rp_filter: larger("rp_filter"),
            arp_filter: larger("arp_filter"),
            arp_ignore: larger("arp_ignore"),
        }
    }

    /// Decides which interface answers; `None` if none would. `device` has the settings of new devices.
    fn responder(self, device: ArpSettings) -> Option<ArpResponder> {
        if self.rp_filter != 1 && self.arp_filter == 0 {
            return Some(ArpResponder::Wire);
        }
        // The device has no address.
        (device.arp_ignore == 0).then_some(ArpResponder::Device)
    }
}

impl ArpResponder {
    /// Decides for a wire.
    ///
    /// # Errors
    /// If none would answer.
    pub(super) fn of(wire: &str) -> Result<ArpResponder, PortError> {
        let responder = ArpSettings::of(wire).responder(ArpSettings::of("default"));
        responder.ok_or_else(|| PortError::NoArp { interface: wire.to_owned() })
    }
}

/// Configures a device that is not up yet: it has a mark, and no IPv6, which stays at the wire; one interface answers
/// ARP. A setting that cannot be changed costs nothing: IPv6 is not passed to the device, and two equal answers are as
/// good as one.
pub(super) fn configure(device: (&str, c_int), wire: &str, responder: ArpResponder) -> io::Result<()> {
    /// The value of `arp_ignore` that forbids all answers.
    const NO_ANSWERS: &str = "8";
    let (name, index) = device;
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
    if responder == ArpResponder::Wire {
        let _ = std::fs::write(format!("/proc/sys/net/ipv4/conf/{name}/arp_ignore"), NO_ANSWERS);
    }
    let mut head = [0; IFINFOMSG];
    head[4..8].copy_from_slice(&index.to_ne_bytes());
    let request = NetlinkRequest::new(libc::RTM_NEWLINK, 0, &head);
    request.attribute(libc::IFLA_IFALIAS, mark(wire).as_bytes()).send()?;
    if ArpSettings::of("default").rp_filter == 0 { Ok(()) } else { add_dummy_address(index) }
}

/// Gives a device an address that is never used as a source. Without any, even a loose `rp_filter` drops packets from
/// where a route leads to another interface: those of routes that are not copied.
fn add_dummy_address(index: c_int) -> io::Result<()> {
    let [family, bits, scope] = [libc::AF_INET as u8, 32, libc::RT_SCOPE_HOST];
    let head = [&[family, bits, 0, scope][..], &index.to_ne_bytes()].concat();
    let request = NetlinkRequest::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE as u16, &head);
    request.attribute(libc::IFA_LOCAL, &DUMMY_ADDRESS).attribute(libc::IFA_ADDRESS, &DUMMY_ADDRESS).send()
}

/// A permanent neighbour of an interface: the head of its entry, its address and its Ethernet address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Neighbour {
    head: [u8; NDMSG],
    address: Vec<u8>,
    mac: Vec<u8>,
}

impl Neighbour {
    /// Parses an entry; `None` if it is not a permanent one of the interface. The kernel resolves others again.
    fn parse(entry: &[u8], interface: c_int) -> Option<Neighbour> {
        let (head, rest) = entry.split_first_chunk::<NDMSG>()?;
        let is_permanent = u16::from_ne_bytes([head[8], head[9]]) & libc::NUD_PERMANENT != 0;
        if head[4..8] != interface.to_ne_bytes() || !is_permanent {
            return None;
        }
        let value = |kind: u16| attributes(rest).find(|(found, _)| *found == kind).map(|(_, value)| value.to_vec());
        Some(Neighbour { head: *head, address: value(libc::NDA_DST)?, mac: value(libc::NDA_LLADDR)? })
    }

    /// Returns the request that adds the neighbour to another interface, or changes the one there.
    pub(super) fn add_to(&self, interface: c_int) -> NetlinkRequest {
        let flags = (libc::NLM_F_CREATE | libc::NLM_F_REPLACE) as u16;
        self.request(libc::RTM_NEWNEIGH, flags, interface).attribute(libc::NDA_LLADDR, &self.mac)
    }

    /// Returns the request that removes the neighbour from another interface.
    pub(super) fn remove_from(&self, interface: c_int) -> NetlinkRequest {
        self.request(libc::RTM_DELNEIGH, 0, interface)
    }

    fn request(&self, kind: u16, flags: u16, interface: c_int) -> NetlinkRequest {
        let mut head = self.head;
        head[4..8].copy_from_slice(&interface.to_ne_bytes());
        NetlinkRequest::new(kind, flags, &head).attribute(libc::NDA_DST, &self.address)
    }
}

/// Returns the permanent IPv4 neighbours of an interface, by address.
pub(super) fn permanent(interface: c_int) -> io::Result<BTreeMap<Vec<u8>, Neighbour>> {
    let mut body = [0; NDMSG];
    body[0] = libc::AF_INET as u8;
    let entries = dump(libc::RTM_GETNEIGH, &body)?;
    let found = entries.iter().filter_map(|entry| Neighbour::parse(entry, interface));
    Ok(found.map(|neighbour| (neighbour.address.clone(), neighbour)).collect())
}

/// Returns the alias of a device in front of an interface.
fn mark(wire: &str) -> String {
    format!("between {wire} and the stack")
}

/// Returns the name of the device in front of an interface: that of a program that is interposed already.
pub(super) fn device_before(wire: &str) -> io::Result<Option<String>> {
    let links = dump(libc::RTM_GETLINK, &[0; IFINFOMSG])?;
    Ok(links.iter().find_map(|link| marked_name(link, &mark(wire))))
}

/// Returns the name of a link if it has this alias.
fn marked_name(link: &[u8], mark: &str) -> Option<String> {
    let (_, rest) = link.split_first_chunk::<IFINFOMSG>()?;
    // Names and aliases end with a zero byte.
    let text = |kind: u16| {
        let (_, value) = attributes(rest).find(|(found, _)| *found == kind)?;
        value.split(|byte| *byte == 0).next()
    };
    let is_marked = text(libc::IFLA_IFALIAS)? == mark.as_bytes();
    let name = text(libc::IFLA_IFNAME)?;
    is_marked.then(|| String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_that_may_answer_does() {
        let free = ArpSettings::default();
        let silent = ArpSettings { arp_ignore: 1, ..free };
        let strict = ArpSettings { rp_filter: 1, ..free };
        let filtered = ArpSettings { arp_filter: 1, ..free };
        for (wire, device, expected) in [
            (free, free, Some(ArpResponder::Wire)),
            (silent, silent, Some(ArpResponder::Wire)),
            (ArpSettings { rp_filter: 2, ..free }, silent, Some(ArpResponder::Wire)),
            (strict, free, Some(ArpResponder::Device)),
            (filtered, free, Some(ArpResponder::Device)),
            (strict, silent, None),
            (filtered, silent, None),
        ] {
            assert_eq!(wire.responder(device), expected, "{wire:?} {device:?}");
        }
    }

    #[test]
    fn only_permanent_neighbours_of_the_interface_are_copied() {
        let attribute = |kind: u16, value: &[u8]| {
            let mut bytes = [&(value.len() as u16 + 4).to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let neighbour = |interface: c_int, state: u16| {
            let head = [&[libc::AF_INET as u8, 0, 0, 0][..], &interface.to_ne_bytes(), &state.to_ne_bytes(), &[0, 1]];
            let address = attribute(libc::NDA_DST, &[10, 0, 1, 254]);
            [head.concat(), address, attribute(libc::NDA_LLADDR, &[2, 0, 0, 0, 1, 254])].concat()
        };
        let permanent = neighbour(7, libc::NUD_PERMANENT);
        let copied = Neighbour::parse(&permanent, 7).expect("it is permanent");
        let copy = neighbour(9, libc::NUD_PERMANENT);
        assert_eq!(copied.add_to(9).body(), copy);
        // The request that removes it has no Ethernet address.
        assert_eq!(copied.remove_from(9).body(), &copy[..copy.len() - 12]);
        assert_eq!(Neighbour::parse(&neighbour(7, libc::NUD_REACHABLE), 7), None);
        assert_eq!(Neighbour::parse(&neighbour(8, libc::NUD_PERMANENT), 7), None);
        (0..permanent.len() - 2).for_each(|len| assert_eq!(Neighbour::parse(&permanent[..len], 7), None));
    }

    #[test]
    fn devices_before_an_interface_are_found_by_their_alias() {
        let attribute = |kind: u16, value: &[u8]| {
            let mut bytes = [&(value.len() as u16 + 4).to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let name = attribute(libc::IFLA_IFNAME, b"tpp3\0");
        let alias = attribute(libc::IFLA_IFALIAS, b"between eth0 and the stack\0");
        let whole = [&[0; IFINFOMSG][..], &name, &alias].concat();
        assert_eq!(marked_name(&whole, &mark("eth0")).as_deref(), Some("tpp3"));
        assert_eq!(marked_name(&whole, &mark("eth")), None);
        assert_eq!(marked_name(&[&[0; IFINFOMSG][..], &name].concat(), &mark("eth0")), None);
        for len in 0..whole.len() - 1 {
            assert_eq!(marked_name(&whole[..len], &mark("eth0")), None);
        }
    }
}
