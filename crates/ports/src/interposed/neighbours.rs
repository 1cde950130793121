//! Decides which of the two interfaces answers ARP requests, and marks the device, so that other programs find it.
//!
//! Both have the host's Ethernet address, and both receive requests. The wire's interface has the IPv4 addresses, so it
//! answers, unless the kernel's settings for multihomed hosts forbid it: the routes lead to the device, and some
//! settings compare the route to the requester with the interface of the request.

use std::ffi::c_int;
use std::io;

use crate::PortError;
use crate::namespace::netlink::{NetlinkRequest, attributes, dump};

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
