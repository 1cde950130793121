//! AF_XDP ports alone: frames of all sizes, in place, through several queues, and more than there is room for.

use std::time::Instant;

use crate::live::xdp::{at_host, collect, flows_in, frame, know_each_other, native_wire, open, send_flows};
use crate::live::{Hosts, Place, Suite, TEST_TIMEOUT, tcp};
use ports::namespace::Namespace;
use ports::{Frame, Port, XdpPort, XdpSettings, wait};

pub const SUITE: Suite = Suite {
    name: "live_xdp",
    place: Place::NetworkNamespace,
    tests: &[
        ("frames of every size arrive as they were sent", sizes),
        ("forwarding between ports of one memory copies nothing", in_place),
        ("a frame that grew or was cut arrives so", grown),
        ("every queue is received from", queues),
        ("a split port receives all in its parts", split),
        ("a full ring counts what it lost", overrun),
        ("frames beyond the mtu are dropped and counted", too_long),
    ],
};

fn sizes(router: &Namespace) {
    let hosts = Hosts::new(router);
    let (mut port, mut peer) = (open("r1"), at_host(&hosts.h1));
    assert!(port.is_native() && port.queues() == 1 && port.note().is_none());
    let sent: Vec<_> = (14..=1514).step_by(25).chain([1514]).map(|len| frame(len, len as u64)).collect();
    for bytes in &sent {
        peer.send(bytes).unwrap();
    }
    peer.flush().unwrap();
    assert!(collect(&mut port, sent.len()) == sent, "what came in differs");
    for bytes in &sent {
        port.send(bytes).unwrap();
    }
    port.flush().unwrap();
    assert!(collect(&mut peer, sent.len()) == sent, "what went out differs");
    let stats = port.stats();
    assert_eq!(stats.tx_packets, sent.len() as u64);
    assert_eq!(stats.tx_bytes, sent.iter().map(Vec::len).sum::<usize>() as u64);
}

fn in_place(router: &Namespace) {
    let hosts = Hosts::new(router);
    let mut ports = XdpPort::open_together(&["r1", "r2"], XdpSettings::default()).unwrap();
    let (mut two, mut one) = (ports.pop().unwrap(), ports.pop().unwrap());
    assert!(std::sync::Arc::ptr_eq(one.memory(), two.memory()));
    let (mut from, mut to) = (at_host(&hosts.h1), at_host(&hosts.h2));
    let before = one.memory().free_chunks();
    // Many more than there are chunks: each must come back.
    let mut sum = 0;
    for round in 0..1000 {
        for number in 0..32 {
            from.send(&frame(60, round * 32 + number + 1)).unwrap();
        }
        from.flush().unwrap();
        let mut batch: Vec<Frame> = Vec::new();
        let deadline = Instant::now() + TEST_TIMEOUT;
        while batch.len() < 32 {
            assert!(Instant::now() < deadline);
            one.receive_frames(&mut batch, 64).unwrap();
            batch.retain(|frame| frame[12..14] == [0x88, 0xb5]);
        }
        for (number, received) in batch.iter().enumerate() {
            assert!(received[..] == frame(60, round * 32 + number as u64 + 1), "round {round}, frame {number}");
            assert!(received.headroom() >= 128);
        }
        // Every fourth goes nowhere, every eighth twice.
        for (number, received) in batch.drain(..).enumerate() {
            if number % 8 == 1 {
                two.send_frame(received.duplicate()).unwrap();
            }
            if number % 4 != 0 {
                two.send_frame(received).unwrap();
            }
        }
        two.flush().unwrap();
        sum += collect(&mut to, 28).len();
    }
    assert_eq!(sum, 28_000);
    assert_eq!((one.stats().rx_dropped, two.stats().tx_packets), (0, 28_000));
    let after = one.memory().free_chunks();
    assert!(after + 4096 > before, "{before} free chunks became {after}");
}

fn grown(router: &Namespace) {
    let hosts = Hosts::new(router);
    let mut ports = XdpPort::open_together(&["r1", "r2"], XdpSettings::default()).unwrap();
    let (mut two, mut one) = (ports.pop().unwrap(), ports.pop().unwrap());
    let (mut from, mut to) = (at_host(&hosts.h1), at_host(&hosts.h2));
    let sent = frame(100, 1);
    for _ in 0..4 {
        from.send(&sent).unwrap();
    }
    from.flush().unwrap();
    let mut batch: Vec<Frame> = Vec::new();
    while batch.len() < 4 {
        one.receive_frames(&mut batch, 64).unwrap();
        batch.retain(|frame| frame[..] == sent);
    }
    let header = frame(14, 2);
    for (mut received, added) in batch.into_iter().zip([0, 14, 100, 1000]) {
        received.truncate(60);
        received.push_front(added);
        let put = header.len().min(added);
        received[..put].copy_from_slice(&header[..put]);
        received[put..added].fill(5);
        two.send_frame(received).unwrap();
    }
    two.flush().unwrap();
    for (got, added) in collect(&mut to, 4).iter().zip([0, 14, 100, 1000]) {
        let put = header.len().min(added);
        assert_eq!(got.len(), 60 + added);
        assert!(got[..put] == header[..put] && got[added..] == sent[..60], "{added} bytes added");
    }
}

fn queues(router: &Namespace) {
    let hosts = Hosts::with_queues(router, 3);
    know_each_other(&hosts);
    let mut port = open("r1");
    assert_eq!(port.queues(), 3);
    send_flows(&hosts, 100);
    let mut batch = Vec::new();
    let deadline = Instant::now() + TEST_TIMEOUT;
    while flows_in(&batch).len() < 100 {
        assert!(Instant::now() < deadline, "{} datagrams of 100", flows_in(&batch).len());
        // Small batches, so that queues take turns.
        if port.receive_frames(&mut batch, 4).unwrap() == 0 {
            assert!(wait(&[port.poll_fd().unwrap()], TEST_TIMEOUT).unwrap(), "readable when any queue is");
        }
    }
    let mut flows = flows_in(&batch);
    flows.sort_unstable();
    assert!(flows.iter().copied().eq(0..100));
    drop(port);
    let wire = native_wire(false);
    tcp(&hosts, "10.0.0.2:4000".parse().unwrap(), 2 << 20);
    wire.stop();
}

fn split(router: &Namespace) {
    let hosts = Hosts::with_queues(router, 3);
    know_each_other(&hosts);
    let mut parts = open("r1").split(2).unwrap();
    let queues: Vec<_> = parts.iter().map(|part| (part.queues(), part.senders())).collect();
    assert_eq!(queues, [(2, 2), (1, 1)]);
    send_flows(&hosts, 100);
    let mut batches = [Vec::new(), Vec::new()];
    let deadline = Instant::now() + TEST_TIMEOUT;
    let count = |batches: &[Vec<Frame>; 2]| flows_in(&batches[0]).len() + flows_in(&batches[1]).len();
    while count(&batches) < 100 {
        assert!(Instant::now() < deadline);
        for (part, batch) in parts.iter_mut().zip(&mut batches) {
            part.receive_frames(batch, 64).unwrap();
        }
    }
    assert!(batches.iter().all(|batch| !flows_in(batch).is_empty()), "the kernel spreads flows over all queues");
    // The last part holds the program: with one gone the other goes on.
    parts.remove(0);
    let mut to = at_host(&hosts.h1);
    parts[0].send(&frame(60, 1)).unwrap();
    parts[0].flush().unwrap();
    assert_eq!(collect(&mut to, 1), [frame(60, 1)]);
}

fn overrun(router: &Namespace) {
    let hosts = Hosts::new(router);
    let mut slow = open("r1");
    let mut fast = at_host(&hosts.h1);
    for _ in 0..10_000 {
        fast.send(&frame(60, 1)).unwrap();
    }
    fast.flush().unwrap();
    let sent = fast.stats().tx_packets;
    let mut batch = Vec::new();
    while slow.receive(&mut batch, 64).unwrap() > 0 {}
    let stats = slow.stats();
    assert!(stats.rx_dropped > 0, "{stats:?}");
    assert!(stats.rx_packets + stats.rx_dropped >= sent, "{stats:?} of {sent}");
    // It goes on as before.
    fast.send(&frame(60, 2)).unwrap();
    fast.flush().unwrap();
    assert_eq!(collect(&mut slow, 1), [frame(60, 2)]);
}

fn too_long(router: &Namespace) {
    let _hosts = Hosts::new(router);
    let mut port = open("r1");
    assert_eq!(port.mtu(), 1500);
    for len in [5, 1514, 1515, 9000, 60, 200_000] {
        port.send(&vec![3; len]).unwrap();
    }
    port.flush().unwrap();
    let stats = port.stats();
    assert_eq!((stats.tx_bad_length, stats.tx_packets, stats.tx_bytes), (4, 2, 1574));
    assert_eq!(stats.tx_queue_full, 0);
    router.set_mtu("r1", 1600).unwrap();
    port.send(&[3; 1614]).unwrap();
    assert_eq!(port.stats().tx_bad_length, 4, "the limit moves with the interface");
}
