//! AF_XDP ports between kernel stacks, which leave checksums, lengths and tags to cards that are not there.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::live::xdp::{at_host, flows_in, frame, know_each_other, native_wire, open, send_flows, wire_of};
use crate::live::{Hosts, Place, Suite, TEST_TIMEOUT, Wire, noise, tcp};
use ports::namespace::{Namespace, NamespaceError};
use ports::{Frame, Port, PortSpec, Received, XdpPort, XdpSettings, wait};

pub const SUITE: Suite = Suite {
    name: "live_xdp_stacks",
    place: Place::NetworkNamespace,
    tests: &[
        ("a tcp stream arrives intact in both directions", tcp_v4),
        ("a tcp stream over ipv6 arrives intact", tcp_v6),
        ("a tcp stream through generic mode arrives intact", tcp_generic),
        ("a tcp stream through busy polling ports arrives intact", tcp_busy_poll),
        ("a tcp stream from af_xdp to af_packet arrives intact", tcp_mixed),
        ("large mtus pass", jumbo),
        ("tags in the frame are kept", vlan),
        ("tags beside the frame are put into it", vlan_beside),
        ("a tcp stream between vlan interfaces arrives intact", vlan_tcp),
    ],
};

fn tcp_v4(router: &Namespace) {
    let hosts = Hosts::new(router);
    let wire = native_wire(true);
    tcp(&hosts, "10.0.0.2:4000".parse().unwrap(), 8 << 20);
    let carried = wire.stop();
    for stats in carried.stats {
        // Otherwise the kernel left nothing to finish, and this test shows nothing.
        assert!(stats.rx_checksums_completed > 0 && stats.rx_unusable == 0, "{stats:?}");
    }
    assert_eq!(carried.frames.iter().map(Vec::len).max(), Some(1514));
}

fn tcp_v6(router: &Namespace) {
    let hosts = Hosts::new(router);
    let wire = native_wire(false);
    tcp(&hosts, "[fd00::2]:4000".parse().unwrap(), 4 << 20);
    let [one, _] = wire.stop().stats;
    assert!(one.rx_checksums_completed > 0 && one.rx_unusable == 0, "{one:?}");
}

fn tcp_generic(router: &Namespace) {
    let hosts = Hosts::new(router);
    let settings = XdpSettings { generic: true, ..XdpSettings::default() };
    assert!(!XdpPort::open("r1", settings).unwrap().is_native());
    let wire = wire_of(settings, true);
    tcp(&hosts, "10.0.0.2:4000".parse().unwrap(), 4 << 20);
    let carried = wire.stop();
    let [one, _] = carried.stats;
    assert!(one.rx_segmented > 0 && one.rx_unusable == 0, "{one:?}");
    assert!(carried.frames.iter().all(|frame| frame.len() <= 1514));
}

fn tcp_busy_poll(router: &Namespace) {
    let hosts = Hosts::new(router);
    let wire = wire_of(XdpSettings { busy_poll_us: Some(20), copy: true, ..XdpSettings::default() }, false);
    tcp(&hosts, "10.0.0.2:4000".parse().unwrap(), 2 << 20);
    let [one, _] = wire.stop().stats;
    assert!(one.rx_packets > 0 && one.rx_unusable == 0, "{one:?}");
}

fn tcp_mixed(router: &Namespace) {
    let hosts = Hosts::new(router);
    let specs = PortSpec::parse_all(&["1=xdp:r1", "2=r2"], 2).unwrap();
    let ports: [Box<dyn Port>; 2] = PortSpec::open_all(&specs).unwrap().try_into().ok().unwrap();
    assert_eq!(ports[0].note(), None);
    let wire = Wire::between(ports, false);
    tcp(&hosts, "10.0.0.2:4000".parse().unwrap(), 2 << 20);
    let [one, two] = wire.stop().stats;
    assert_eq!((one.rx_unusable, two.rx_unusable), (0, 0));
}

fn jumbo(router: &Namespace) {
    let hosts = Hosts::new(router);
    for (host, end) in [(&hosts.h1, "r1"), (&hosts.h2, "r2")] {
        host.set_mtu("eth0", 9000).unwrap();
        router.set_mtu(end, 9000).unwrap();
    }
    let wire = native_wire(true);
    tcp(&hosts, "10.0.0.2:4000".parse().unwrap(), 4 << 20);
    let carried = wire.stop();
    assert_eq!(carried.frames.iter().map(Vec::len).max(), Some(9014));
    let [one, two] = carried.stats;
    assert_eq!((one.rx_unusable, two.rx_unusable, two.tx_bad_length), (0, 0, 0));
}

fn vlan(router: &Namespace) {
    let hosts = Hosts::new(router);
    let wire = native_wire(false);
    let (mut from, mut to) = (at_host(&hosts.h1), at_host(&hosts.h2));
    let tagged = [&frame(14, 1)[..12], &[0x81, 0, 0x20, 5], &[0x88, 0xb5], &noise(1500, 9)].concat();
    from.send(&tagged).unwrap();
    from.flush().unwrap();
    let mut batch: Vec<Received> = Vec::new();
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !batch.iter().any(|received| received.data == tagged) {
        assert!(Instant::now() < deadline, "the frame did not arrive as it was sent");
        wait(&[to.poll_fd().unwrap()], Duration::from_millis(100)).unwrap();
        to.receive(&mut batch, 64).unwrap();
    }
    wire.stop();
}

fn vlan_beside(router: &Namespace) {
    let hosts = Hosts::new(router);
    know_each_other(&hosts);
    let mut port = open("r1");
    if !port.restores_tags() {
        return testing::optional("this kernel does not tell XDP programs about VLAN tags");
    }
    let receive = |port: &mut XdpPort, wanted: &dyn Fn(&Frame) -> bool| {
        let mut batch: Vec<Frame> = Vec::new();
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            assert!(Instant::now() < deadline, "it did not come, but {batch:02x?}");
            port.receive_frames(&mut batch, 64).unwrap();
            if let Some(at) = batch.iter().position(wanted) {
                return batch.swap_remove(at);
            }
        }
    };
    let tagging = hosts.h1.tag_sent("eth0", 0x123).unwrap();
    send_flows(&hosts, 1);
    let tagged = receive(&mut port, &|frame| frame.len() == 86);
    let expected = [&[8, 0, 0, 0, 0, 2, 8, 0, 0, 0, 0, 1][..], &[0x81, 0, 0x01, 0x23], &[8, 0, 0x45]].concat();
    assert_eq!(tagged[..19], expected);
    assert_eq!((tagged[27], &tagged[46..]), (17, &[0; 40][..]));
    assert!(port.stats().rx_checksums_completed > 0, "behind a tag as well");
    drop(tagging);
    send_flows(&hosts, 1);
    let plain = receive(&mut port, &|frame| flows_in(std::slice::from_ref(frame)).len() == 1);
    assert!(plain[..] == [&tagged[..12], &tagged[16..18], &plain[14..]].concat());
}

/// VLAN interfaces leave their tags beside the frame, for the card to put them in.
fn vlan_tcp(router: &Namespace) {
    let hosts = Hosts::new(router);
    if !open("r1").restores_tags() {
        return testing::optional("this kernel does not tell XDP programs about VLAN tags");
    }
    for (host, number) in [(&hosts.h1, 1), (&hosts.h2, 2)] {
        match host.add_vlan("eth0", "eth0.5", 5) {
            Err(NamespaceError::System { source, .. }) if source.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                return testing::optional("this kernel has no VLAN interfaces");
            }
            result => result.unwrap(),
        }
        host.add_address("eth0.5", IpAddr::from([10, 5, 0, number]), 24).unwrap();
        host.set_up("eth0.5").unwrap();
    }
    let wire = native_wire(true);
    tcp(&hosts, "10.5.0.2:4000".parse().unwrap(), 1 << 20);
    let carried = wire.stop();
    let tagged = carried.frames.iter().filter(|frame| frame[12..16] == [0x81, 0, 0, 5]).count();
    assert!(tagged > 700, "{tagged} tagged frames of {}", carried.frames.len());
    assert_eq!(carried.frames.iter().map(Vec::len).max(), Some(1518), "a full frame and its tag");
    assert!(carried.stats[0].rx_checksums_completed > 0);
}
