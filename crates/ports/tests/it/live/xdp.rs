//! Common helpers of the live tests of AF_XDP.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use ports::namespace::Namespace;
use ports::{AfPacketPort, Frame, Port, Received, XdpPort, XdpSettings, wait};

use super::{Hosts, TEST_TIMEOUT, Wire, noise};

pub fn open(name: &str) -> XdpPort {
    XdpPort::open(name, XdpSettings::default()).unwrap()
}

pub fn wire_of(settings: XdpSettings, keep: bool) -> Wire {
    let mut ports = XdpPort::open_together(&["r1", "r2"], settings).unwrap().into_iter();
    let mut next = || Box::new(ports.next().unwrap()) as Box<dyn Port>;
    Wire::between([next(), next()], keep)
}

pub fn native_wire(keep: bool) -> Wire {
    wire_of(XdpSettings::default(), keep)
}

/// Receives until `count` frames of the experiments' type are there.
pub fn collect(port: &mut dyn Port, count: usize) -> Vec<Vec<u8>> {
    let mut frames: Vec<Vec<u8>> = Vec::new();
    let mut batch: Vec<Received> = Vec::new();
    let deadline = Instant::now() + TEST_TIMEOUT;
    while frames.len() < count {
        assert!(Instant::now() < deadline, "{} of {count} frames came: {:?}", frames.len(), port.stats());
        if port.receive(&mut batch, 64).unwrap() == 0 {
            wait(&[port.poll_fd().unwrap()], Duration::from_millis(100)).unwrap();
        }
        // The hosts' own stacks speak up now and then.
        let ours = |received: Received| (received.data[12..14] == [0x88, 0xb5]).then_some(received.data);
        frames.extend(batch.drain(..).filter_map(ours));
    }
    frames
}

/// Returns a frame of a type for experiments.
pub fn frame(len: usize, seed: u64) -> Vec<u8> {
    let mut frame = noise(len, seed);
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&[8, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame
}

pub fn at_host(host: &Namespace) -> AfPacketPort {
    host.enter(|| AfPacketPort::open("eth0")).unwrap().unwrap()
}

/// Sends datagrams of many flows, which the kernel spreads over queues.
pub fn send_flows(hosts: &Hosts, flows: usize) {
    for flow in 0..flows {
        let socket = hosts.h1.enter(|| UdpSocket::bind("10.0.0.1:0")).unwrap().unwrap();
        let to: SocketAddr = (IpAddr::from([10, 0, 0, 2]), 6000 + flow as u16).into();
        socket.send_to(&[flow as u8; 40], to).unwrap();
    }
}

pub fn know_each_other(hosts: &Hosts) {
    hosts.h1.add_neighbour("eth0", IpAddr::from([10, 0, 0, 2]), [8, 0, 0, 0, 0, 2]).unwrap();
    hosts.h2.add_neighbour("eth0", IpAddr::from([10, 0, 0, 1]), [8, 0, 0, 0, 0, 1]).unwrap();
}

/// Returns the flows of the datagrams of [`send_flows`] among these frames.
pub fn flows_in(batch: &[Frame]) -> Vec<u8> {
    let datagrams = batch.iter().filter(|frame| frame.len() == 82 && frame[12..14] == [8, 0] && frame[23] == 17);
    datagrams.map(|frame| frame[81]).collect()
}
