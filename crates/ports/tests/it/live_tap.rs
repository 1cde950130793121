//! A kernel stack talks to us through a TAP device.

use std::net::{IpAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::live::{Place, Suite, TEST_TIMEOUT};
use ports::namespace::Namespace;
use ports::{DropReason, Port, PortError, Received, Sent, TapPort, wait};

pub const SUITE: Suite = Suite {
    name: "live_tap",
    place: Place::UserNamespace,
    tests: &[
        ("frames go to the kernel and come from it, checksums complete", both_ways),
        ("over-long segments arrive cut", cut),
        ("the device goes with the port", removed_at_exit),
        ("a link that is down drops, a device that is gone is an error", trouble),
    ],
};

/// Returns the port, or a note that this machine has none.
fn open(name: &str) -> Option<TapPort> {
    match TapPort::open(name) {
        Err(error @ (PortError::NoTunDriver { .. } | PortError::NotPermitted { .. })) => {
            testing::skip(&error.to_string());
            None
        }
        port => Some(port.unwrap()),
    }
}

/// Receives until a frame of `len` bytes has come, and returns all.
fn receive(port: &mut TapPort, len: usize) -> Vec<Vec<u8>> {
    let deadline = Instant::now() + TEST_TIMEOUT;
    let mut batch: Vec<Received> = Vec::new();
    while !batch.iter().any(|frame| frame.data.len() == len) {
        assert!(Instant::now() < deadline, "no frame of {len} bytes came");
        wait(&[port.poll_fd().unwrap()], Duration::from_millis(100)).unwrap();
        port.receive(&mut batch, 64).unwrap();
    }
    batch.into_iter().map(|frame| frame.data).collect()
}

const NEIGHBOUR: [u8; 6] = [8, 0, 0, 0, 0, 9];

fn prepare(router: &Namespace, name: &str) -> Option<(TapPort, UdpSocket)> {
    let port = open(name)?;
    router.add_address(name, IpAddr::from([10, 9, 0, 1]), 24).unwrap();
    router.add_neighbour(name, IpAddr::from([10, 9, 0, 2]), NEIGHBOUR).unwrap();
    Some((port, UdpSocket::bind("10.9.0.1:7000").unwrap()))
}

fn both_ways(router: &Namespace) {
    let Some((mut port, socket)) = prepare(router, "p4tap0") else { return };
    socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    socket.send_to(b"a datagram", "10.9.0.2:7001").unwrap();
    let mut frame = receive(&mut port, 52).into_iter().find(|frame| frame.len() == 52).unwrap();
    let pseudo = wire::checksum::sum(&frame[26..34]) + 17 + 18;
    assert_eq!(wire::checksum::finish(pseudo + wire::checksum::sum(&frame[34..])), 0);
    // Send it back: Ethernet addresses, IP addresses and ports change places, and no checksum changes by that.
    for (a, b, len) in [(0, 6, 6), (26, 30, 4), (34, 36, 2)] {
        for at in 0..len {
            frame.swap(a + at, b + at);
        }
    }
    assert_eq!(port.send(&frame).unwrap(), Sent::Sent);
    let mut buffer = [0; 100];
    let (len, from) = socket.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..len], from.to_string()), (&b"a datagram"[..], "10.9.0.2:7001".to_owned()));
}

fn cut(router: &Namespace) {
    use std::os::fd::AsRawFd;
    let Some((mut port, socket)) = prepare(router, "p4tap1") else { return };
    let size: libc::c_int = 500;
    // SAFETY: the value lives through the call and has the length given.
    let set = unsafe {
        let value = (&raw const size).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_UDP, libc::UDP_SEGMENT, value, 4)
    };
    assert_eq!(set, 0);
    socket.send_to(&[1; 1400], "10.9.0.2:7001").unwrap();
    let lens: Vec<usize> = receive(&mut port, 442).iter().map(Vec::len).filter(|len| *len > 400).collect();
    assert_eq!(lens, [542, 542, 442]);
}

fn removed_at_exit(router: &Namespace) {
    let Some(port) = open("p4tap2") else { return };
    assert!(router.set_up("p4tap2").is_ok());
    drop(port);
    assert!(router.set_up("p4tap2").is_err());
    assert!(open("p4tap2").is_some(), "the name is free again");
}

fn trouble(router: &Namespace) {
    let Some(mut port) = open("p4tap3") else { return };
    assert_eq!(port.send(&[0; 5]).unwrap(), Sent::Dropped(DropReason::BadLength));
    router.set_down("p4tap3").unwrap();
    assert_eq!(port.send(&[0; 60]).unwrap(), Sent::Dropped(DropReason::LinkDown));
    router.remove("p4tap3").unwrap();
    assert!(matches!(port.send(&[0; 60]), Err(PortError::Vanished { .. })));
    let error = port.receive(&mut Vec::new(), 1).unwrap_err();
    assert!(matches!(error, PortError::Vanished { .. }), "{error}");
}
