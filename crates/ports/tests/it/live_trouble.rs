//! Events of an interface while a port is using it, and the errors that the user sees.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use crate::live::{Hosts, Place, Suite, TEST_TIMEOUT};
use ports::namespace::{Namespace, veth};
use ports::{AfPacketPort, Port, PortError, PortSpec, Received, wait};

pub const SUITE: Suite = Suite {
    name: "live_trouble",
    place: Place::UserNamespace,
    tests: &[
        ("a removed interface is one clear error, received or sent", removed),
        ("an interface moved away is gone too", moved),
        ("a link that goes down drops frames and comes back", down_and_up),
        ("frames beyond the mtu are dropped and counted", too_long),
        ("a full ring counts what it lost", overrun),
        ("an interface that does not exist is named", missing),
        ("without the capability the answer says what to do", forbidden),
    ],
};

/// Receives, waiting as a switch does, until an error comes.
fn error_of(port: &mut AfPacketPort) -> PortError {
    let deadline = Instant::now() + TEST_TIMEOUT;
    let mut batch = Vec::new();
    while Instant::now() < deadline {
        if let Err(error) = port.receive(&mut batch, 64) {
            return error;
        }
        wait(&[port.poll_fd().unwrap()], Duration::from_millis(100)).unwrap();
    }
    panic!("no error came");
}

fn removed(router: &Namespace) {
    let _hosts = Hosts::new(router);
    let mut receiving = AfPacketPort::open("r1").unwrap();
    let mut sending = AfPacketPort::open("r1").unwrap();
    router.remove("r1").unwrap();
    let error = error_of(&mut receiving);
    assert!(matches!(error, PortError::Vanished { .. }), "{error:?}");
    assert!(error.to_string().contains("interface `r1` disappeared"), "{error}");
    sending.send(&[1; 60]).unwrap();
    assert!(matches!(sending.flush(), Err(PortError::Vanished { .. })));
}

fn moved(router: &Namespace) {
    let hosts = Hosts::new(router);
    let mut port = AfPacketPort::open("r1").unwrap();
    router.move_to("r1", &hosts.h2).unwrap();
    assert!(matches!(error_of(&mut port), PortError::Vanished { .. }));
}

fn down_and_up(router: &Namespace) {
    let hosts = Hosts::new(router);
    let mut port = AfPacketPort::open("r1").unwrap();
    router.set_down("r1").unwrap();
    let mut batch = Vec::new();
    for _ in 0..200 {
        port.receive(&mut batch, 64).unwrap();
    }
    port.send(&[1; 60]).unwrap();
    port.send(&[2; 60]).unwrap();
    port.flush().unwrap();
    assert_eq!((port.stats().tx_link_down, port.stats().tx_packets), (2, 0));
    router.set_up("r1").unwrap();
    assert!(router.wait_for_link("r1", TEST_TIMEOUT).unwrap() && hosts.h1.wait_for_link("eth0", TEST_TIMEOUT).unwrap());
    port.send(&[1; 60]).unwrap();
    port.flush().unwrap();
    assert_eq!((port.stats().tx_link_down, port.stats().tx_packets), (2, 1));
    let mut other = hosts.h1.enter(|| AfPacketPort::open("eth0")).unwrap().unwrap();
    other.send(&[0x77; 60]).unwrap();
    other.flush().unwrap();
    expect(&mut port, &[0x77; 60]);
}

/// Receives until this frame comes.
fn expect(port: &mut AfPacketPort, frame: &[u8]) {
    let mut batch: Vec<Received> = Vec::new();
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !batch.iter().any(|received| received.data == frame) {
        assert!(Instant::now() < deadline, "the frame did not come");
        wait(&[port.poll_fd().unwrap()], Duration::from_millis(100)).unwrap();
        port.receive(&mut batch, 64).unwrap();
    }
    assert!(batch.iter().all(|received| received.time_ns.is_some_and(|time_ns| time_ns > 1_000_000_000)));
}

fn too_long(router: &Namespace) {
    let _hosts = Hosts::new(router);
    let mut port = AfPacketPort::open("r1").unwrap();
    assert_eq!(port.mtu(), 1500);
    for len in [5, 1514, 1515, 9000, 60, 200_000] {
        port.send(&vec![3; len]).unwrap();
    }
    port.flush().unwrap();
    let stats = port.stats();
    assert_eq!((stats.tx_bad_length, stats.tx_packets, stats.tx_bytes), (4, 2, 1574));
}

fn overrun(router: &Namespace) {
    let hosts = Hosts::new(router);
    let mut slow = AfPacketPort::open("r1").unwrap();
    let mut fast = hosts.h1.enter(|| AfPacketPort::open("eth0")).unwrap().unwrap();
    for _ in 0..10_000 {
        fast.send(&[5; 60]).unwrap();
    }
    fast.flush().unwrap();
    let sent = fast.stats().tx_packets;
    let mut batch = Vec::new();
    while slow.receive(&mut batch, 64).unwrap() > 0 {}
    let stats = slow.stats();
    assert!(stats.rx_dropped > 0, "{stats:?}");
    assert!(stats.rx_packets + stats.rx_dropped >= sent, "{stats:?} of {sent}");
    assert_eq!(slow.stats().rx_dropped, stats.rx_dropped, "asking does not change the count");
}

fn missing(_: &Namespace) {
    let error = "1=nothere0".parse::<PortSpec>().unwrap().open().err().unwrap();
    assert!(error.to_string().contains("no network interface `nothere0`"), "{error}");
}

fn forbidden(router: &Namespace) {
    let host = Namespace::new("h1").unwrap();
    veth(&host, "eth0", router, "r1").unwrap();
    let open = || {
        // struct __user_cap_header_struct of version 3 for this thread, and three empty sets of 64 bits.
        let (header, sets) = ([0x2008_0522_u32, 0], [0u32; 6]);
        // SAFETY: both are as long as version 3 has them and live through the call; it takes powers from this thread
        // only.
        let result = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()) };
        assert_eq!(result, 0);
        AfPacketPort::open("eth0").err().unwrap()
    };
    let error = host.enter(open).unwrap();
    let PortError::NotPermitted { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!(source.kind(), ErrorKind::PermissionDenied);
    let text = error.to_string();
    assert!(text.contains("requires cap_net_raw") && text.contains("setcap cap_net_raw+ep"), "{text}");
    host.remove("eth0").unwrap();
}
