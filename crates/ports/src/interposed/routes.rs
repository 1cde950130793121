//! Copies the IPv4 routes of an interface to the TAP device.

use std::ffi::c_int;
use std::io;

use crate::namespace::netlink::{NetlinkRequest, attributes, dump};

/// Size of struct rtmsg in bytes.
const RTMSG: usize = 12;
/// Size of struct rtnexthop in bytes.
const NEXT_HOP: usize = 8;
/// The flag of a route whose gateway need not be in one of the host's networks (`RTNH_F_ONLINK`).
const ON_LINK: u32 = 4;
/// Attributes that copies have. `RTA_OIF` and `RTA_METRICS` change.
const KEPT: [u16; 4] = [libc::RTA_DST, libc::RTA_GATEWAY, libc::RTA_PREFSRC, libc::RTA_PRIORITY];
/// Attributes of routes that are not copied: a gateway of another family, which IPv6 resolves, so not at the device,
/// and an encapsulation (MPLS, segment routing), which changes the type or the length of packets.
const NOT_COPIED: [u16; 3] = [RTA_VIA, RTA_ENCAP_TYPE, RTA_ENCAP];
const RTA_VIA: u16 = 18;
const RTA_ENCAP_TYPE: u16 = 21;
const RTA_ENCAP: u16 = 22;
/// The attribute in `RTA_METRICS` with the MTU of a route.
const RTAX_MTU: u16 = 2;

/// Numbers of IPv4 unicast routes of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteCounts {
    /// Routes that lead to the device.
    pub copied: usize,
    /// Routes that still lead to the interface: those of other tables, with several next hops, with an encapsulation or
    /// an IPv6 gateway. Their packets do not pass through the program.
    pub left: usize,
}

/// What becomes of a route.
#[derive(Debug)]
enum RouteCopy {
    /// It is no unicast route of the interface.
    None,
    /// It stays at the interface.
    Left,
    /// The request for a copy, and whether the route has a gateway.
    Copied(bool, NetlinkRequest),
}

/// Copies the IPv4 unicast routes of the main table from one interface to another, before the originals. `mtu` is that
/// of the other interface, in bytes.
pub(super) fn copy(from: c_int, to: c_int, mtu: usize) -> io::Result<RouteCounts> {
    let mut body = [0; RTMSG];
    body[0] = libc::AF_INET as u8;
    let (mut counts, mut copies) = (RouteCounts::default(), Vec::new());
    for route in dump(libc::RTM_GETROUTE, &body)? {
        match copy_of(&route, from, to, mtu) {
            RouteCopy::None => {}
            RouteCopy::Left => counts.left += 1,
            RouteCopy::Copied(has_gateway, request) => copies.push((has_gateway, request)),
        }
    }
    // A gateway must be reachable when its route is added.
    copies.sort_by_key(|(has_gateway, _)| *has_gateway);
    counts.copied = copies.len();
    copies.into_iter().try_for_each(|(_, request)| request.send())?;
    Ok(counts)
}

/// Decides on a route. The request lacks `NLM_F_EXCL` and `NLM_F_APPEND`, so the copy comes before the original.
fn copy_of(route: &[u8], from: c_int, to: c_int, mtu: usize) -> RouteCopy {
    let Some((head, rest)) = route.split_first_chunk::<RTMSG>() else { return RouteCopy::None };
    if head[7] != libc::RTN_UNICAST || !uses(rest, from) {
        return RouteCopy::None;
    }
    let is_plain = attributes(rest).any(|(kind, value)| kind == libc::RTA_OIF && value == from.to_ne_bytes())
        && !attributes(rest).any(|(kind, _)| NOT_COPIED.contains(&kind));
    if !is_plain || head[4] != libc::RT_TABLE_MAIN {
        return RouteCopy::Left;
    }
    let flags = u32::from_ne_bytes([head[8], head[9], head[10], head[11]]) & ON_LINK;
    let mut head = *head;
    head[8..].copy_from_slice(&flags.to_ne_bytes());
    let request = NetlinkRequest::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE as u16, &head);
    let request = attributes(rest).fold(request, |request, (kind, value)| match kind {
        libc::RTA_METRICS => request.nested(kind, |request| with_metrics(request, value, mtu)),
        _ if KEPT.contains(&kind) => request.attribute(kind, value),
        _ => request,
    });
    let has_gateway = attributes(rest).any(|(kind, _)| kind == libc::RTA_GATEWAY);
    RouteCopy::Copied(has_gateway, request.attribute(libc::RTA_OIF, &to.to_ne_bytes()))
}

/// Whether a route leads to an interface, with one next hop or several.
fn uses(route: &[u8], interface: c_int) -> bool {
    let is_it = |index: &[u8]| index == interface.to_ne_bytes();
    attributes(route).any(|(kind, value)| match kind {
        libc::RTA_OIF => is_it(value),
        libc::RTA_MULTIPATH => next_hops(value).any(|hop| is_it(&hop[4..])),
        _ => false,
    })
}

/// Returns the heads of the next hops in a value of `RTA_MULTIPATH`.
fn next_hops(mut value: &[u8]) -> impl Iterator<Item = [u8; NEXT_HOP]> {
    std::iter::from_fn(move || {
        let hop = *value.first_chunk::<NEXT_HOP>()?;
        let len = usize::from(u16::from_ne_bytes([hop[0], hop[1]])).max(NEXT_HOP);
        value = value.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(hop)
    })
}

/// Adds the metrics of a route. An MTU in them takes precedence over that of the device, so it must not be larger.
fn with_metrics(request: NetlinkRequest, metrics: &[u8], mtu: usize) -> NetlinkRequest {
    attributes(metrics).fold(request, |request, (kind, value)| match value.first_chunk::<4>() {
        Some(own) if kind == RTAX_MTU => {
            let mtu = u32::from_ne_bytes(*own).min(u32::try_from(mtu).unwrap_or(u32::MAX));
            request.attribute(kind, &mtu.to_ne_bytes())
        }
        _ => request.attribute(kind, value),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: u8 = libc::RT_TABLE_MAIN;
    const UNICAST: u8 = libc::RTN_UNICAST;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        [&(value.len() as u16 + 4).to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat()
    }

    /// Returns a route to 10.0.1.0/24 with the flags ON_LINK and another one.
    fn route(table: u8, kind: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
        let head = [libc::AF_INET as u8, 24, 0, 0, table, 2, 253, kind];
        let destination = attribute(libc::RTA_DST, &[10, 0, 1, 0]);
        [&head[..], &(ON_LINK | 16).to_ne_bytes(), &destination, &attributes.concat()].concat()
    }

    fn at(interface: c_int) -> Vec<u8> {
        attribute(libc::RTA_OIF, &interface.to_ne_bytes())
    }

    fn hop(interface: c_int) -> Vec<u8> {
        [&16u16.to_ne_bytes()[..], &[0, 0], &interface.to_ne_bytes(), &[8, 0, 5, 0, 10, 0, 1, 9]].concat()
    }

    #[test]
    fn routes_of_the_interface_are_copied_or_counted() {
        let outcome = |route: &[u8]| match copy_of(route, 7, 9, 1400) {
            RouteCopy::None => "none",
            RouteCopy::Left => "left",
            RouteCopy::Copied(false, _) => "copied",
            RouteCopy::Copied(true, _) => "copied with gateway",
        };
        let gateway = attribute(libc::RTA_GATEWAY, &[10, 0, 1, 254]);
        let paths = |interfaces: [c_int; 2]| attribute(libc::RTA_MULTIPATH, &interfaces.map(hop).concat());
        for (expected, found) in [
            ("copied", route(MAIN, UNICAST, &[at(7)])),
            ("copied with gateway", route(MAIN, UNICAST, &[at(7), gateway])),
            ("none", route(MAIN, UNICAST, &[at(8)])),
            ("none", route(libc::RT_TABLE_LOCAL, libc::RTN_LOCAL, &[at(7)])),
            ("none", route(MAIN, libc::RTN_BROADCAST, &[at(7)])),
            ("none", route(MAIN, UNICAST, &[paths([8, 6])])),
            ("left", route(MAIN, UNICAST, &[paths([8, 7])])),
            ("left", route(100, UNICAST, &[at(7)])),
            ("left", route(MAIN, UNICAST, &[at(7), attribute(RTA_ENCAP, &[0; 4])])),
            ("left", route(MAIN, UNICAST, &[at(7), attribute(RTA_VIA, &[10, 0, 0, 0])])),
        ] {
            assert_eq!(outcome(&found), expected, "{found:?}");
            for len in 0..found.len() {
                outcome(&found[..len]);
            }
        }
    }

    #[test]
    fn copies_keep_what_decides_on_packets() {
        let metrics = [attribute(RTAX_MTU, &1500u32.to_ne_bytes()), attribute(11, &20u32.to_ne_bytes())].concat();
        let original = route(
            MAIN,
            UNICAST,
            &[
                at(7),
                attribute(libc::RTA_GATEWAY, &[172, 31, 1, 1]),
                attribute(libc::RTA_CACHEINFO, &[1; 4]),
                attribute(libc::RTA_METRICS, &metrics),
            ],
        );
        let RouteCopy::Copied(true, request) = copy_of(&original, 7, 9, 1400) else { panic!("it has a gateway") };
        let body = request.body();
        assert_eq!(body[..8], original[..8]);
        assert_eq!(body[8..RTMSG], ON_LINK.to_ne_bytes());
        let metrics = [attribute(RTAX_MTU, &1400u32.to_ne_bytes()), attribute(11, &20u32.to_ne_bytes())].concat();
        let expected: [(u16, &[u8]); 4] = [
            (libc::RTA_DST, &[10, 0, 1, 0]),
            (libc::RTA_GATEWAY, &[172, 31, 1, 1]),
            (libc::RTA_METRICS, &metrics),
            (libc::RTA_OIF, &9i32.to_ne_bytes()),
        ];
        assert_eq!(attributes(&body[RTMSG..]).collect::<Vec<_>>(), expected);
    }
}
