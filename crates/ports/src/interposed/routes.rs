//! Copies the IPv4 routes of an interface to the TAP device.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::io;

use crate::namespace::netlink::{NetlinkRequest, attributes, dump};

/// Size of struct rtmsg in bytes.
const RTMSG: usize = 12;
/// Size of struct rtnexthop in bytes.
const NEXT_HOP: usize = 8;
/// The flag of a route whose gateway need not be in one of the host's networks (`RTNH_F_ONLINK`).
const ON_LINK: u32 = 4;
/// The flag of a cached exception, such as the MTU of a path, which is no route of the table (`RTM_F_CLONED`).
const CACHED: u32 = 0x200;
/// Attributes that copies have. `RTA_OIF` and `RTA_METRICS` change.
const KEPT: [u16; 5] = [libc::RTA_DST, libc::RTA_GATEWAY, libc::RTA_PREFSRC, libc::RTA_PRIORITY, libc::RTA_METRICS];
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
    /// an IPv6 gateway, and those whose copies the kernel refuses. Their packets do not pass through the program.
    pub left: usize,
}

/// What becomes of a route.
#[derive(Debug)]
enum RouteCopy {
    /// It is no unicast route of the interface.
    None,
    /// It stays at the interface.
    Left,
    /// Its copy.
    Copied(CopiedRoute),
}

/// A copy of a route: the head of the kernel's message, and the attributes without the interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopiedRoute {
    head: [u8; RTMSG],
    attributes: Vec<(u16, Vec<u8>)>,
}

impl CopiedRoute {
    /// Returns the part that decides on the order of routes: prefix, type of service and priority. Of routes that have
    /// it in common the kernel uses the first.
    fn key(&self) -> RouteKey {
        let value =
            |kind: u16| self.attributes.iter().find(|(found, _)| *found == kind).map(|(_, value)| value.clone());
        ([self.head[1], self.head[3]], value(libc::RTA_DST), value(libc::RTA_PRIORITY))
    }

    fn has_gateway(&self) -> bool {
        self.attributes.iter().any(|(kind, _)| *kind == libc::RTA_GATEWAY)
    }

    /// Returns the request that adds the route to an interface. It lacks `NLM_F_EXCL` and `NLM_F_APPEND`, so the copy
    /// comes before the original.
    fn add_to(&self, interface: c_int) -> NetlinkRequest {
        self.request(libc::RTM_NEWROUTE, libc::NLM_F_CREATE as u16, interface)
    }

    /// Returns the request that removes the route from an interface.
    fn remove_from(&self, interface: c_int) -> NetlinkRequest {
        self.request(libc::RTM_DELROUTE, 0, interface)
    }

    fn request(&self, kind: u16, flags: u16, interface: c_int) -> NetlinkRequest {
        let request = NetlinkRequest::new(kind, flags, &self.head);
        let request = self.attributes.iter().fold(request, |request, (kind, value)| request.attribute(*kind, value));
        request.attribute(libc::RTA_OIF, &interface.to_ne_bytes())
    }
}

/// Prefix length and type of service, prefix and priority.
type RouteKey = ([u8; 2], Option<Vec<u8>>, Option<Vec<u8>>);

/// Makes the routes of `device` copies of the IPv4 unicast routes of `wire` in the main table, before the originals.
/// `mtu` is that of the device, in bytes. `refused` has the copies that the kernel refused the last time: they are
/// tried again, but others are not removed for them, since each removal is a change that leads to another update.
pub(super) fn update(
    wire: c_int,
    device: c_int,
    mtu: usize,
    refused: &mut Vec<CopiedRoute>,
) -> io::Result<RouteCounts> {
    let mut body = [0; RTMSG];
    body[0] = libc::AF_INET as u8;
    let routes = dump(libc::RTM_GETROUTE, &body)?;
    let RouteUpdate { removed, added, mut counts } = changes(&routes, wire, device, mtu, refused);
    refused.clear();
    for copy in removed {
        // The kernel removes routes by itself, too.
        allowed(copy.remove_from(device).send())?;
    }
    for copy in added {
        // The kernel may refuse the copy of a route that it has kept, such as one whose gateway is gone.
        if !allowed(copy.add_to(device).send())? {
            (counts.copied, counts.left) = (counts.copied.saturating_sub(1), counts.left + 1);
            refused.push(copy);
        }
    }
    Ok(counts)
}

/// Returns whether a request about one route or neighbour was granted. One that is refused leaves others possible.
///
/// # Errors
/// If no request is permitted.
pub(super) fn allowed(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
        Err(_) => Ok(false),
    }
}

/// The copies to remove, and then those to add, in order.
#[derive(Debug, Default)]
struct RouteUpdate {
    removed: Vec<CopiedRoute>,
    added: Vec<CopiedRoute>,
    counts: RouteCounts,
}

/// Returns the update that makes the routes of the device copies of those of the wire. The routes are in the order in
/// which the kernel uses them.
fn changes(routes: &[Vec<u8>], wire: c_int, device: c_int, mtu: usize, refused: &[CopiedRoute]) -> RouteUpdate {
    let mut counts = RouteCounts::default();
    // By key: the routes of both interfaces in their order, each with whether it is one of the device.
    let mut by_key: BTreeMap<RouteKey, Vec<(bool, CopiedRoute)>> = BTreeMap::new();
    for route in routes {
        match copy_of(route, wire, mtu) {
            RouteCopy::None => {
                if let RouteCopy::Copied(copy) = copy_of(route, device, mtu) {
                    by_key.entry(copy.key()).or_default().push((true, copy));
                }
            }
            RouteCopy::Left => counts.left += 1,
            RouteCopy::Copied(copy) => {
                counts.copied += 1;
                by_key.entry(copy.key()).or_default().push((false, copy));
            }
        }
    }
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    for routes in by_key.into_values() {
        let of = |is_device: bool| routes.iter().filter(move |route| route.0 == is_device).map(|route| &route.1);
        let is_first = routes.iter().skip_while(|route| route.0).all(|route| !route.0);
        if is_first && of(true).eq(of(false).filter(|copy| !refused.contains(copy))) {
            added.extend(of(false).filter(|copy| refused.contains(copy)).cloned());
            continue;
        }
        removed.extend(of(true).cloned());
        // Each one comes before those that were added earlier.
        added.extend(of(false).cloned().collect::<Vec<_>>().into_iter().rev());
    }
    // A gateway must be reachable when its route is added.
    added.sort_by_key(CopiedRoute::has_gateway);
    RouteUpdate { removed, added, counts }
}

/// Decides on a route of the interface `from`.
fn copy_of(route: &[u8], from: c_int, mtu: usize) -> RouteCopy {
    let Some((head, rest)) = route.split_first_chunk::<RTMSG>() else { return RouteCopy::None };
    let flags = u32::from_ne_bytes([head[8], head[9], head[10], head[11]]);
    if head[7] != libc::RTN_UNICAST || flags & CACHED != 0 || !uses(rest, from) {
        return RouteCopy::None;
    }
    let is_plain = attributes(rest).any(|(kind, value)| kind == libc::RTA_OIF && value == from.to_ne_bytes())
        && !attributes(rest).any(|(kind, _)| NOT_COPIED.contains(&kind));
    if !is_plain || head[4] != libc::RT_TABLE_MAIN {
        return RouteCopy::Left;
    }
    let mut head = *head;
    head[8..].copy_from_slice(&(flags & ON_LINK).to_ne_bytes());
    let kept = attributes(rest).filter(|(kind, _)| KEPT.contains(kind)).map(|(kind, value)| match kind {
        libc::RTA_METRICS => (kind, with_metrics(value, mtu)),
        _ => (kind, value.to_vec()),
    });
    RouteCopy::Copied(CopiedRoute { head, attributes: kept.collect() })
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

/// Returns the metrics of a copy. An MTU in them takes precedence over that of the device, so it must not be larger.
fn with_metrics(metrics: &[u8], mtu: usize) -> Vec<u8> {
    let mut copied = Vec::new();
    for (kind, value) in attributes(metrics) {
        let value = match value.first_chunk::<4>() {
            Some(own) if kind == RTAX_MTU => {
                u32::from_ne_bytes(*own).min(u32::try_from(mtu).unwrap_or(u32::MAX)).to_ne_bytes().to_vec()
            }
            _ => value.to_vec(),
        };
        copied.extend((value.len() as u16 + 4).to_ne_bytes());
        copied.extend(kind.to_ne_bytes());
        copied.extend(&value);
        copied.resize(copied.len().next_multiple_of(4), 0);
    }
    copied
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

    /// Returns all requests in order: those that remove routes, then those that add some.
    fn all_changes(routes: &[Vec<u8>], wire: c_int, device: c_int, mtu: usize) -> (Vec<NetlinkRequest>, RouteCounts) {
        let RouteUpdate { removed, added, counts } = changes(routes, wire, device, mtu, &[]);
        let removed = removed.iter().map(|copy| copy.remove_from(device));
        (removed.chain(added.iter().map(|copy| copy.add_to(device))).collect(), counts)
    }

    /// Makes a route a cached exception.
    fn cached(mut route: Vec<u8>) -> Vec<u8> {
        let flags = u32::from_ne_bytes(route[8..12].try_into().expect("four bytes")) | CACHED;
        route[8..12].copy_from_slice(&flags.to_ne_bytes());
        route
    }

    #[test]
    fn routes_of_the_interface_are_copied_or_counted() {
        let outcome = |route: &[u8]| match copy_of(route, 7, 1400) {
            RouteCopy::None => "none",
            RouteCopy::Left => "left",
            RouteCopy::Copied(copy) if copy.has_gateway() => "copied with gateway",
            RouteCopy::Copied(_) => "copied",
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
            ("none", cached(route(MAIN, UNICAST, &[at(7)]))),
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
        let RouteCopy::Copied(copy) = copy_of(&original, 7, 1400) else { panic!("it is copied") };
        assert!(copy.has_gateway());
        let request = copy.add_to(9);
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

    /// Returns a route to 10.0.1.0/24 by a gateway.
    fn by(gateway: u8, interface: c_int) -> Vec<u8> {
        route(MAIN, UNICAST, &[attribute(libc::RTA_GATEWAY, &[10, 0, 1, gateway]), at(interface)])
    }

    /// Carries the requests out on a list of routes as the kernel does, and returns the routes.
    fn updated(routes: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut routes = routes.to_vec();
        let normal = |route: &[u8]| {
            let interface = if uses(&route[RTMSG..], 7) { 7 } else { 9 };
            match copy_of(route, interface, 1400) {
                RouteCopy::Copied(copy) => (interface, copy),
                other => panic!("{other:?}"),
            }
        };
        let (requests, _) = all_changes(&routes, 7, 9, 1400);
        for request in requests {
            let is_same = |route: &Vec<u8>| normal(route) == normal(request.body());
            match request.kind() {
                libc::RTM_DELROUTE => {
                    let at = routes.iter().position(is_same).expect("it is there");
                    routes.remove(at);
                }
                _ => {
                    assert!(!routes.iter().any(is_same), "it exists");
                    routes.insert(0, request.body().to_vec());
                }
            }
        }
        let (requests, counts) = all_changes(&routes, 7, 9, 1400);
        assert!(requests.is_empty(), "{requests:?}");
        assert_eq!(counts.left, 0);
        routes
    }

    #[test]
    fn copies_follow_the_originals_and_keep_their_order() {
        let gateways = |routes: &[Vec<u8>]| -> Vec<(u8, bool)> {
            let gateway = |route: &Vec<u8>| {
                let value =
                    attributes(&route[RTMSG..]).find(|(kind, _)| *kind == libc::RTA_GATEWAY).expect("it has one");
                (value.1[3], uses(&route[RTMSG..], 9))
            };
            routes.iter().map(gateway).collect()
        };
        let (own, copy) = (|gateway| by(gateway, 7), |gateway| by(gateway, 9));
        for (found, expected) in [
            // A first route, and one that another host's copy is in front of already.
            (vec![own(1)], vec![(1, true), (1, false)]),
            (vec![copy(1), own(1)], vec![(1, true), (1, false)]),
            // The original is gone, or another one has replaced it: that takes the place of the copy.
            (vec![copy(1)], vec![]),
            (vec![own(2), own(1)], vec![(2, true), (1, true), (2, false), (1, false)]),
            (vec![copy(1), own(2)], vec![(2, true), (2, false)]),
            // A route was put before the others, or behind them.
            (vec![own(2), copy(1), own(1)], vec![(2, true), (1, true), (2, false), (1, false)]),
            (vec![copy(1), own(1), own(2)], vec![(1, true), (2, true), (1, false), (2, false)]),
            (vec![own(1), copy(1)], vec![(1, true), (1, false)]),
        ] {
            assert_eq!(gateways(&updated(&found)), expected, "{:?}", gateways(&found));
        }
    }

    #[test]
    fn for_a_copy_that_the_kernel_refuses_no_other_is_removed() {
        let copied = |gateway| match copy_of(&by(gateway, 7), 7, 1400) {
            RouteCopy::Copied(copy) => copy,
            other => panic!("{other:?}"),
        };
        // The copy of the second original was refused.
        let found = [by(1, 9), by(1, 7), by(2, 7)];
        let RouteUpdate { removed, added, .. } = changes(&found, 7, 9, 1400, &[copied(2)]);
        assert_eq!((removed, added), (vec![], vec![copied(2)]));
        // Once the kernel has accepted it, the copies get the order of the originals.
        let found = [by(2, 9), by(1, 9), by(1, 7), by(2, 7)];
        let RouteUpdate { removed, added, .. } = changes(&found, 7, 9, 1400, &[]);
        assert_eq!((removed, added), (vec![copied(2), copied(1)], vec![copied(2), copied(1)]));
    }

    #[test]
    fn gateways_are_added_after_the_routes_that_lead_to_them() {
        let mut to_gateway = route(MAIN, UNICAST, &[at(7)]);
        to_gateway[RTMSG + 4] = 11;
        let (requests, counts) = all_changes(&[by(1, 7), to_gateway], 7, 9, 1400);
        let has_gateway: Vec<bool> = requests
            .iter()
            .map(|request| attributes(&request.body()[RTMSG..]).any(|(kind, _)| kind == libc::RTA_GATEWAY))
            .collect();
        assert_eq!((has_gateway, counts.copied), (vec![false, true], 2));
    }
}
