//! Two kernel stacks talk through two AF_PACKET ports, with every offload on, and must notice nothing.

use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use crate::live::{Hosts, Place, Suite, TEST_TIMEOUT, Wire, noise, tcp};
use ports::namespace::{Namespace, NamespaceError};
use ports::{AfPacketPort, Port};

pub const SUITE: Suite = Suite {
    name: "live_forward",
    place: Place::UserNamespace,
    tests: &[
        ("a tcp stream arrives intact in both directions", tcp_v4),
        ("a tcp stream over ipv6 arrives intact", tcp_v6),
        ("datagrams of every size up to the mtu arrive", udp),
        ("a datagram train is cut into its datagrams", udp_segments),
        ("vlan tags are kept", vlan),
        ("a tcp stream between vlan interfaces arrives intact", vlan_tcp),
        ("a port does not receive what it sends", no_echo),
        ("large mtus pass", jumbo),
    ],
};

fn tcp_v4(router: &Namespace) {
    let hosts = Hosts::new(router);
    let wire = Wire::start(false);
    tcp(&hosts, "10.0.0.2:4000".parse().unwrap(), 8 << 20);
    let [one, two] = wire.stop().stats;
    // Otherwise the kernel left nothing to finish, and this test shows nothing.
    assert!(one.rx_segmented > 0 && two.rx_segmented > 0, "no over-long segments: {one:?} {two:?}");
    assert!(one.rx_checksums_completed > 0, "no partial checksums: {one:?}");
    assert_eq!((one.rx_unusable, two.rx_unusable), (0, 0));
}

fn tcp_v6(router: &Namespace) {
    let hosts = Hosts::new(router);
    let wire = Wire::start(false);
    tcp(&hosts, "[fd00::2]:4000".parse().unwrap(), 4 << 20);
    let [one, _] = wire.stop().stats;
    assert!(one.rx_segmented > 0 && one.rx_unusable == 0, "{one:?}");
}

fn udp(router: &Namespace) {
    let hosts = Hosts::new(router);
    let wire = Wire::start(true);
    let bind = |host: &Namespace, address: &str| host.enter(|| UdpSocket::bind(address)).unwrap().unwrap();
    let (from, to) = (bind(&hosts.h1, "10.0.0.1:5000"), bind(&hosts.h2, "10.0.0.2:5000"));
    to.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    for len in (0..=1472).step_by(64) {
        let sent = noise(len, len as u64);
        from.send_to(&sent, "10.0.0.2:5000").unwrap();
        let mut buffer = [0; 2000];
        let (count, _) = to.recv_from(&mut buffer).unwrap();
        assert_eq!(buffer[..count], sent, "datagram of {len}");
    }
    let carried = wire.stop();
    let longest = carried.frames.iter().map(Vec::len).max();
    assert_eq!(longest, Some(14 + 20 + 8 + 1472));
}

fn udp_segments(router: &Namespace) {
    let hosts = Hosts::new(router);
    let wire = Wire::start(false);
    let bind = |host: &Namespace, address: &str| host.enter(|| UdpSocket::bind(address)).unwrap().unwrap();
    let (from, to) = (bind(&hosts.h1, "10.0.0.1:5000"), bind(&hosts.h2, "10.0.0.2:5000"));
    to.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let size: libc::c_int = 1000;
    // SAFETY: the value lives through the call and has the length given.
    let set = unsafe {
        let value = (&raw const size).cast();
        libc::setsockopt(from.as_raw_fd(), libc::IPPROTO_UDP, libc::UDP_SEGMENT, value, 4)
    };
    if set < 0 {
        testing::optional("this kernel has no UDP_SEGMENT");
        return;
    }
    let sent = noise(9500, 3);
    from.send_to(&sent, "10.0.0.2:5000").unwrap();
    for chunk in sent.chunks(1000) {
        let mut buffer = [0; 2000];
        let (count, _) = to.recv_from(&mut buffer).unwrap();
        assert_eq!(buffer[..count], *chunk);
    }
    let [one, _] = wire.stop().stats;
    assert!(one.rx_segmented > 0, "{one:?}");
}

/// The kernel takes a frame's outermost tag out before anyone sees it, and the port puts it back.
fn vlan(router: &Namespace) {
    let hosts = Hosts::new(router);
    let wire = Wire::start(false);
    let open = |host: &Namespace| host.enter(|| AfPacketPort::open("eth0")).unwrap().unwrap();
    let (mut from, mut to) = (open(&hosts.h1), open(&hosts.h2));
    let tags: [&[u8]; 4] = [&[], &[0x81, 0, 0x20, 5], &[0x88, 0xa8, 0, 7], &[0x88, 0xa8, 0x0f, 0xff, 0x81, 0, 0xe0, 0]];
    for tag in tags {
        // Addresses, tags, a type for experiments (IEEE 802), payload.
        let sent = [&[8, 0, 0, 0, 0, 2, 8, 0, 0, 0, 0, 1][..], tag, &[0x88, 0xb5], &noise(100, 9)].concat();
        from.send(&sent).unwrap();
        from.flush().unwrap();
        let mut batch = Vec::new();
        let deadline = Instant::now() + TEST_TIMEOUT;
        while !batch.iter().any(|frame: &ports::Received| frame.data == sent) {
            assert!(Instant::now() < deadline, "{sent:02x?} did not arrive, but {batch:02x?}");
            ports::wait(&[to.poll_fd().unwrap()], Duration::from_millis(100)).unwrap();
            to.receive(&mut batch, 64).unwrap();
        }
    }
    wire.stop();
}

fn vlan_tcp(router: &Namespace) {
    let hosts = Hosts::new(router);
    for (host, number) in [(&hosts.h1, 1), (&hosts.h2, 2)] {
        match host.add_vlan("eth0", "eth0.5", 5) {
            Err(NamespaceError::System { source, .. }) if source.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                testing::optional("this kernel has no VLAN interfaces");
                return;
            }
            result => result.unwrap(),
        }
        host.add_address("eth0.5", IpAddr::from([10, 5, 0, number]), 24).unwrap();
        host.set_up("eth0.5").unwrap();
    }
    let wire = Wire::start(true);
    tcp(&hosts, "10.5.0.2:4000".parse().unwrap(), 1 << 20);
    let carried = wire.stop();
    let tagged = carried.frames.iter().filter(|frame| frame[12..16] == [0x81, 0, 0, 5]).count();
    assert!(tagged > 700, "{tagged} tagged frames of {}", carried.frames.len());
    let longest = carried.frames.iter().map(Vec::len).max();
    assert_eq!(longest, Some(1518), "a full frame and its tag");
}

fn no_echo(router: &Namespace) {
    let _hosts = Hosts::new(router);
    let mut port = AfPacketPort::open("r1").unwrap();
    for _ in 0..10 {
        port.send(&[0xaa; 60]).unwrap();
    }
    port.flush().unwrap();
    assert_eq!(port.stats().tx_packets, 10);
    let mut batch = Vec::new();
    port.receive(&mut batch, 100).unwrap();
    assert!(batch.iter().all(|frame| frame.data != [0xaa; 60]));
}

fn jumbo(router: &Namespace) {
    let hosts = Hosts::new(router);
    for host in [&hosts.h1, &hosts.h2] {
        host.set_mtu("eth0", 9000).unwrap();
    }
    for end in ["r1", "r2"] {
        router.set_mtu(end, 9000).unwrap();
    }
    let wire = Wire::start(true);
    tcp(&hosts, "10.0.0.2:4000".parse().unwrap(), 1 << 20);
    let carried = wire.stop();
    assert_eq!(carried.frames.iter().map(Vec::len).max(), Some(9014));
}
