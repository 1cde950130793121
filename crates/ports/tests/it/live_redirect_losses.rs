//! Frames that are lost after a redirect are counted exactly, for the interfaces of one namespace.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use crate::live::{self, Hosts, Place, Suite, TEST_TIMEOUT};
use ports::load::{Flood, Sink};
use ports::namespace::{Namespace, Offload};
use ports::{Port, RedirectLosses, interface_index};

pub const SUITE: Suite = Suite {
    name: "live_redirect_losses",
    place: Place::NetworkNamespace,
    tests: &[
        ("frames to a veth that accepts no redirects fail where they come in", refused),
        ("frames to a veth whose other end is down are lost", down),
        ("frames too long for the other end are lost, and others arrive", too_long),
        ("frames too long for the interface fail where they come in", too_long_for_interface),
        ("frames lost at AF_XDP sockets do not count", sockets),
        ("losses in other namespaces do not count", elsewhere),
        ("the number of interfaces is limited", many),
    ],
};

/// Positions of the interfaces that [`open`] counts for. Frames of a flood come in on the loopback interface.
const R1: usize = 0;
const R2: usize = 1;
const LO: usize = 2;

fn open() -> RedirectLosses {
    RedirectLosses::open(&["r1", "r2", "lo"].map(|name| interface_index(name).unwrap())).unwrap()
}

/// Returns the frames lost at r1 and r2, and the failed redirects of frames from lo.
fn counts(losses: &RedirectLosses) -> [u64; 3] {
    assert_eq!([losses.lost(LO), losses.failed(R1), losses.failed(R2)], [0; 3]);
    [losses.lost(R1), losses.lost(R2), losses.failed(LO)]
}

/// Sends frames out of an interface.
fn send(interface: &str, len: usize, frames: u32) {
    let mut frame = vec![2; len];
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    Flood::new(interface, &frame, None).unwrap().send(frames).unwrap();
}

fn refused(router: &Namespace) {
    let _hosts = Hosts::new(router);
    send("r1", 60, 100);
    let losses = open();
    assert_eq!(counts(&losses), [0, 0, 0], "it counts from when it is opened");
    send("r1", 60, 1000);
    assert_eq!(counts(&losses), [0, 0, 1000]);
}

fn down(router: &Namespace) {
    let hosts = Hosts::new(router);
    hosts.h1.turn_on("eth0", Offload::Receive).unwrap();
    hosts.h2.turn_on("eth0", Offload::Receive).unwrap();
    hosts.h1.set_down("eth0").unwrap();
    let losses = open();
    send("r1", 60, 1000);
    assert_eq!(counts(&losses), [1000, 0, 0]);
    send("r2", 60, 10);
    assert_eq!(counts(&losses), [1000, 0, 0]);
    let also = open();
    send("r1", 60, 7);
    assert_eq!((counts(&losses), counts(&also)), ([1007, 0, 0], [7, 0, 0]));
}

fn too_long(router: &Namespace) {
    let hosts = Hosts::new(router);
    hosts.h2.turn_on("eth0", Offload::Receive).unwrap();
    hosts.h2.set_mtu("eth0", 1000).unwrap();
    let sink = hosts.h2.enter(|| Sink::open("eth0")).unwrap().unwrap();
    let losses = open();
    for _ in 0..5 {
        send("r2", 1100, 50);
        send("r2", 1000, 50);
    }
    assert_eq!(counts(&losses), [0, 250, 0]);
    wait_until(|| sink.arrived().unwrap().frames >= 250);
}

fn too_long_for_interface(router: &Namespace) {
    let hosts = Hosts::new(router);
    hosts.h1.turn_on("eth0", Offload::Receive).unwrap();
    router.set_mtu("r1", 1000).unwrap();
    let losses = open();
    send("r1", 1100, 50);
    assert_eq!(counts(&losses), [0, 0, 50]);
}

fn sockets(router: &Namespace) {
    let hosts = Hosts::new(router);
    let (slow, mut fast) = (live::xdp::open("r1"), live::xdp::at_host(&hosts.h1));
    let losses = open();
    for _ in 0..10_000 {
        fast.send(&[2; 60]).unwrap();
    }
    fast.flush().unwrap();
    wait_until(|| slow.stats().rx_dropped > 0);
    assert_eq!(counts(&losses), [0, 0, 0]);
}

fn elsewhere(router: &Namespace) {
    let hosts = Hosts::new(router);
    let at_host = hosts.h1.enter(|| {
        // Each namespace's loopback interface has this index.
        assert_eq!(interface_index("lo").unwrap(), 1);
        RedirectLosses::open(&[1]).unwrap()
    });
    let losses = open();
    hosts.h2.enter(|| send("eth0", 60, 20)).unwrap();
    let at_host = at_host.unwrap();
    assert_eq!((counts(&losses), at_host.failed(0)), ([0, 0, 0], 0));
    hosts.h1.enter(|| send("eth0", 60, 20)).unwrap();
    assert_eq!((counts(&losses), at_host.failed(0)), ([0, 0, 0], 20));
}

fn many(router: &Namespace) {
    let hosts = Hosts::new(router);
    let mut interfaces: Vec<u32> = (1000..1255).collect();
    interfaces.push(interface_index("lo").unwrap());
    let losses = RedirectLosses::open(&interfaces).unwrap();
    send("r1", 60, 30);
    assert_eq!((losses.failed(255), losses.failed(254), losses.lost(255)), (30, 0, 0));
    interfaces.push(9);
    assert_eq!(RedirectLosses::open(&interfaces).unwrap_err().kind(), ErrorKind::InvalidInput);
    drop(hosts);
}

fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(1));
    }
}
