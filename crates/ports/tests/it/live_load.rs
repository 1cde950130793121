//! Offered frames arrive, are counted, and have the requested contents.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::live::{Hosts, Place, Suite, TEST_TIMEOUT, Wire};
use ports::load::{
    Arrived, Flood, FrameMix, FrameVariety, Link, LoadError, LoadPath, Pace, Sink, ThroughputTest, Vary,
    measure_latency, payload_len,
};
use ports::namespace::{Namespace, Offload, veth};
use ports::{AfPacketPort, Frame, Port, XdpPort, XdpSettings};

pub const SUITE: Suite = Suite {
    name: "live_load",
    place: Place::NetworkNamespace,
    tests: &[
        ("a flood reaches a sink whole", flood),
        ("the field of a flood counts", varied),
        ("a scattered flood has every value once, in no order", scattered),
        ("the field of a flood has the values of a list", listed),
        ("a share of a flood has other bytes", mixed),
        ("a thinned flood sends its share", thinned),
        ("paced frames reach a sink through a wire", paced),
        ("trials and latencies between two interfaces count what arrives", measured),
        ("a sink leaves with its value", sink_ends),
        ("a sink in the driver counts both kinds of frames", sink_in_driver),
        ("a link is as its interface and the other end are", link),
        ("what cannot be opened is named", missing),
    ],
};

fn frame(len: usize) -> Vec<u8> {
    let mut frame = vec![2; len];
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame
}

fn sink_at(host: &Namespace) -> Sink {
    host.enter(|| Sink::open("eth0")).unwrap().unwrap()
}

/// Waits until this number of frames has arrived, and returns the totals.
fn arrived(sink: &Sink, frames: u64) -> Arrived {
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        let arrived = sink.arrived().unwrap();
        if arrived.frames >= frames || Instant::now() > deadline {
            return arrived;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn flood(router: &Namespace) {
    let hosts = Hosts::new(router);
    hosts.h1.turn_on("eth0", Offload::Receive).unwrap();
    let sink = sink_at(&hosts.h1);
    let flood = Flood::new("r1", &frame(100), None).unwrap();
    // The link's ring of 256 frames loses none as long as fewer wait.
    let mut last = sink.arrived().unwrap();
    for _ in 0..16 {
        flood.send(64).unwrap();
        last = arrived(&sink, last.frames + 64);
    }
    assert!(last.frames >= 1024, "{last:?}");
    assert!(last.bytes >= 102_400, "{last:?}");
    assert_eq!(flood.offered().unwrap(), 1024);
}

fn thinned(router: &Namespace) {
    let hosts = Hosts::new(router);
    hosts.h1.turn_on("eth0", Offload::Receive).unwrap();
    for sent in [0u64, 1, 24, 63] {
        let sink = sink_at(&hosts.h1);
        let flood = Flood::thinned("r1", &frame(100), None, sent as u32).unwrap();
        for _ in 0..20 {
            flood.send(64).unwrap();
            arrived(&sink, flood.offered().unwrap());
        }
        // Each call may run on another processor, with a count of its own.
        let (least, most) = (sent * 18, sent * 22);
        let arrived = arrived(&sink, least).frames;
        assert!((least..=most.max(1)).contains(&arrived), "{arrived} of 1280 at {sent} of 64");
        let offered = flood.offered().unwrap();
        assert!((least..=most).contains(&offered), "{offered} of 1280 at {sent} of 64");
    }
}

fn varied(router: &Namespace) {
    let hosts = Hosts::new(router);
    let mut port = XdpPort::open("r1", XdpSettings::default()).unwrap();
    let vary = Vary { offset: 14, first: 0xa00_0000, count: 64, balance: Some(20) };
    let flood = hosts.h1.enter(|| Flood::new("eth0", &frame(60), Some(vary)).unwrap()).unwrap();
    let mut batch: Vec<Frame> = Vec::new();
    let deadline = Instant::now() + TEST_TIMEOUT;
    for sent in [64, 128, 192, 256] {
        hosts.h1.enter(|| flood.send(64).unwrap()).unwrap();
        while batch.len() < sent {
            assert!(Instant::now() < deadline, "{} frames", batch.len());
            port.receive_frames(&mut batch, 64).unwrap();
            batch.retain(|frame| frame[12..14] == [0x88, 0xb5]);
        }
    }
    let values: BTreeSet<u32> =
        batch.iter().map(|frame| u32::from_be_bytes([frame[14], frame[15], frame[16], frame[17]])).collect();
    assert!(values.iter().copied().eq(0xa00_0000..0xa00_0040), "{values:x?}");
    assert!(batch.iter().all(|received| received.len() == 60 && received[22..] == frame(60)[22..]));
    assert!(batch.iter().all(|received| received[18..20] == [2, 2]));
    assert!(batch.iter().all(|received| received[16] ^ received[20] == 0xff && received[17] ^ received[21] == 0xff));
    // A field beyond the frame leaves it as it is.
    let beyond = Vary { offset: 58, balance: None, ..vary };
    hosts.h1.enter(|| Flood::new("eth0", &frame(60), Some(beyond)).unwrap().send(10).unwrap()).unwrap();
    batch.clear();
    while batch.len() < 10 {
        assert!(Instant::now() < deadline);
        port.receive_frames(&mut batch, 64).unwrap();
        batch.retain(|frame| frame[12..14] == [0x88, 0xb5]);
    }
    assert!(batch.iter().all(|received| received[..] == frame(60)));
}

fn scattered(router: &Namespace) {
    let hosts = Hosts::new(router);
    let mut port = XdpPort::open("r1", XdpSettings::default()).unwrap();
    for count in [1u32, 2, 64, 128] {
        let vary = Vary { offset: 14, first: 0xa00_0100, count, balance: Some(20) };
        let flood = hosts.h1.enter(|| Flood::scattered("eth0", &frame(60), vary, 64).unwrap()).unwrap();
        hosts.h1.enter(|| flood.send(count).unwrap()).unwrap();
        let mut batch: Vec<Frame> = Vec::new();
        let deadline = Instant::now() + TEST_TIMEOUT;
        while batch.len() < count as usize {
            assert!(Instant::now() < deadline, "{} frames", batch.len());
            port.receive_frames(&mut batch, 64).unwrap();
            batch.retain(|frame| frame[12..14] == [0x88, 0xb5]);
        }
        let values: Vec<u32> =
            batch.iter().map(|frame| u32::from_be_bytes([frame[14], frame[15], frame[16], frame[17]])).collect();
        let sorted: BTreeSet<u32> = values.iter().copied().collect();
        assert!(sorted.into_iter().eq(0xa00_0100..0xa00_0100 + count), "{values:x?}");
        // Of a random order, one step in count leads to the next value.
        let next = values.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) == 1).count();
        assert!(count < 64 || next <= 8, "{values:x?}");
        assert!(batch.iter().all(|frame| frame[16] ^ frame[20] == 0xff && frame[17] ^ frame[21] == 0xff));
    }
}

fn listed(router: &Namespace) {
    let hosts = Hosts::new(router);
    let mut port = XdpPort::open("r1", XdpSettings::default()).unwrap();
    // Of five values, the first four are sent.
    let values = [7, 0x0102_0304, 0, 7, 9];
    let flood = hosts.h1.enter(|| Flood::listed("eth0", &frame(60), 14, &values, 64).unwrap()).unwrap();
    hosts.h1.enter(|| flood.send(64).unwrap()).unwrap();
    let mut batch: Vec<Frame> = Vec::new();
    let deadline = Instant::now() + TEST_TIMEOUT;
    while batch.len() < 64 {
        assert!(Instant::now() < deadline, "{} frames", batch.len());
        port.receive_frames(&mut batch, 64).unwrap();
        batch.retain(|frame| frame[12..14] == [0x88, 0xb5]);
    }
    for (frame, value) in batch.iter().zip(values[..4].iter().cycle()) {
        assert_eq!(frame[14..18], value.to_be_bytes());
    }
}

fn mixed(router: &Namespace) {
    let hosts = Hosts::new(router);
    let mut port = XdpPort::open("r1", XdpSettings::default()).unwrap();
    let vary = Vary { offset: 14, first: 0, count: 64, balance: None };
    let mix = FrameMix { offset: 22, bytes: [1, 2, 3, 4], share: 16 };
    let variety = FrameVariety { vary: Some(vary), mix: Some(mix) };
    let flood = hosts.h1.enter(|| Flood::various("eth0", &frame(60), variety, 64).unwrap()).unwrap();
    let mut batch: Vec<Frame> = Vec::new();
    let deadline = Instant::now() + TEST_TIMEOUT;
    for sent in [64, 128, 192, 256] {
        hosts.h1.enter(|| flood.send(64).unwrap()).unwrap();
        while batch.len() < sent {
            assert!(Instant::now() < deadline, "{} frames", batch.len());
            port.receive_frames(&mut batch, 64).unwrap();
            batch.retain(|frame| frame[12..14] == [0x88, 0xb5]);
        }
    }
    let marked = batch.iter().filter(|frame| frame[22..26] == [1, 2, 3, 4]).count();
    // Each call may run on another processor, with a count of its own, but a call is a whole turn.
    assert_eq!((batch.len(), marked), (256, 64));
    let other = frame(60);
    assert!(batch.iter().all(|frame| frame[22..26] == [1, 2, 3, 4] || frame[22..26] == other[22..26]));
    assert!(batch.iter().all(|frame| frame[18..22] == other[18..22] && frame[26..] == other[26..]));
}

fn paced(router: &Namespace) {
    let hosts = Hosts::new(router);
    let sink = sink_at(&hosts.h2);
    let before = sink.arrived().unwrap().frames;
    let wire = Wire::start(false);
    let port: Box<dyn Port> = Box::new(hosts.h1.enter(|| AfPacketPort::open("eth0")).unwrap().unwrap());
    let mut pace = Pace::new(port, vec![frame(60), frame(61)]);
    // The wire's ring has room for all of them, should the wire's thread be late.
    let sent = pace.run(500.0, Duration::from_millis(400), &AtomicBool::new(false)).unwrap();
    assert!(sent > 0 && sent <= 200, "{sent} frames in 0.4 s at 500 a second");
    assert!(arrived(&sink, before + sent).frames >= before + sent);
    assert_eq!(pace.run(0.0, TEST_TIMEOUT, &AtomicBool::new(true)).unwrap(), 0, "stopped before it began");
    wire.stop();
}

/// A veth pair within one namespace forwards by itself.
fn measured(router: &Namespace) {
    veth(router, "t0", router, "t1").unwrap();
    let path = LoadPath::parse("t0:t1").unwrap();
    let error = ThroughputTest::open(&path, vec![frame(60)]).err().unwrap();
    assert!(matches!(&error, LoadError::Down { interface } if interface == "t0"), "{error:?}");
    router.set_up("t0").unwrap();
    router.set_up("t1").unwrap();
    assert!(router.wait_for_link("t1", TEST_TIMEOUT).unwrap());
    let error = ThroughputTest::open(&path, vec![frame(60), frame(2014)]).err().unwrap();
    assert!(matches!(error, LoadError::TooLong { longest: 2000, mtu: 1500, .. }), "{error:?}");

    let mut test = ThroughputTest::open(&path, vec![frame(60)]).unwrap();
    let mut seen = Vec::new();
    let trials = test.search(Duration::from_millis(50), 1.0, &mut |trial| seen.push(*trial)).unwrap();
    assert_eq!(trials, seen);
    assert!(matches!(trials[..], [trial] if trial.received > 0 && trial.received <= trial.sent), "{trials:?}");

    let next = |number: u64, data: &mut Vec<u8>| {
        *data = frame(60);
        data[20..28].copy_from_slice(&number.to_be_bytes());
    };
    let number_of = |data: &[u8]| data.get(20..28)?.try_into().ok().map(u64::from_be_bytes);
    let mut latencies = Vec::new();
    let record = |ns| latencies.push(ns);
    let sent = measure_latency(&path, Duration::from_millis(20), TEST_TIMEOUT, next, number_of, record).unwrap();
    assert!(sent > 0 && latencies.len() as u64 == sent, "{} of {sent}", latencies.len());
    drop(test);
    router.remove("t0").unwrap();
}

fn sink_ends(router: &Namespace) {
    let hosts = Hosts::new(router);
    let (sink, mut peer) = (sink_at(&hosts.h1), AfPacketPort::open("r1").unwrap());
    let mut send = || {
        peer.send(&frame(60)).unwrap();
        peer.flush().unwrap();
    };
    send();
    assert_eq!(arrived(&sink, 1), Arrived { frames: 1, bytes: 60 });
    drop(sink);
    let sink = sink_at(&hosts.h1);
    send();
    assert_eq!(arrived(&sink, 1).frames, 1);
}

fn sink_in_driver(router: &Namespace) {
    let hosts = Hosts::new(router);
    let sink = hosts.h1.enter(|| Sink::open_in_driver("eth0")).unwrap().unwrap();
    // With socket buffers, from the stack, and without, from a program.
    let mut peer = AfPacketPort::open("r1").unwrap();
    for len in [60, 1514] {
        peer.send(&frame(len)).unwrap();
    }
    peer.flush().unwrap();
    assert_eq!(arrived(&sink, 2), Arrived { frames: 2, bytes: 1574 });
    Flood::new("r1", &frame(100), None).unwrap().send(64).unwrap();
    assert_eq!(arrived(&sink, 66), Arrived { frames: 66, bytes: 7974 });
    let error = hosts.h1.enter(|| Sink::open_in_driver("eth0")).unwrap().err().unwrap().to_string();
    assert!(error.starts_with("attaching an XDP program on `eth0` failed"), "{error}");
    drop(sink);
    hosts.h1.enter(|| Sink::open_in_driver("eth0")).unwrap().unwrap();
}

fn link(router: &Namespace) {
    let hosts = Hosts::new(router);
    let link = || Link::of("r1").unwrap();
    assert_eq!(link(), Link { is_up: true, mtu: 1500 });
    let mut tagged = frame(1518);
    tagged[12..14].copy_from_slice(&[0x81, 0x00]);
    assert_eq!((payload_len(&frame(1515)), payload_len(&tagged), payload_len(&[0; 3])), (1501, 1500, 0));
    router.set_mtu("r1", 1400).unwrap();
    hosts.h1.set_down("eth0").unwrap();
    assert_eq!(link(), Link { is_up: false, mtu: 1400 });
    hosts.h1.set_up("eth0").unwrap();
    assert!(link().is_up);
    router.set_down("r1").unwrap();
    assert!(!link().is_up);
}

fn missing(_: &Namespace) {
    let error = Flood::new("nothere0", &frame(60), None).err().unwrap().to_string();
    assert!(error.contains("no network interface `nothere0`"), "{error}");
    let error = Sink::open("nothere0").err().unwrap().to_string();
    assert!(error.contains("no network interface `nothere0`"), "{error}");
    let error = Link::of("nothere0").unwrap_err().to_string();
    assert!(error.contains("no network interface `nothere0`"), "{error}");
}
