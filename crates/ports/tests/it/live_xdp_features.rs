//! The features that interfaces announce follow the other end's settings.

use crate::live::xdp::open;
use crate::live::{Hosts, Place, Suite};
use ports::accepts_redirects;
use ports::namespace::{Namespace, Offload};

pub const SUITE: Suite = Suite {
    name: "live_xdp_features",
    place: Place::NetworkNamespace,
    tests: &[
        ("a veth accepts redirects while its other end has receive offload", receive_offload),
        ("a veth accepts redirects while its other end has a program", program),
        ("the kernel says nothing about missing interfaces", missing),
    ],
};

fn receive_offload(router: &Namespace) {
    let hosts = Hosts::new(router);
    assert_eq!(accepts_redirects("r1"), Some(false));
    hosts.h1.turn_on("eth0", Offload::Receive).unwrap();
    assert_eq!((accepts_redirects("r1"), accepts_redirects("r2")), (Some(true), Some(false)));
    assert_eq!(hosts.h1.enter(|| accepts_redirects("eth0")).unwrap(), Some(false), "that is the router's setting");
    let off = hosts.h1.turn_off_offloads("eth0").unwrap();
    assert_eq!(accepts_redirects("r1"), Some(false));
    drop(off);
    assert_eq!(accepts_redirects("r1"), Some(true));
}

fn program(router: &Namespace) {
    let hosts = Hosts::new(router);
    let at_host = || hosts.h1.enter(|| accepts_redirects("eth0")).unwrap();
    assert_eq!(at_host(), Some(false));
    let port = open("r1");
    assert_eq!(at_host(), Some(true));
    drop(port);
}

fn missing(_: &Namespace) {
    assert_eq!(accepts_redirects("lo"), Some(false));
    for name in ["nothere0", "", "a\0b", "a-name-that-is-too-long-for-the-kernel"] {
        assert_eq!(accepts_redirects(name), None, "{name}");
    }
}
