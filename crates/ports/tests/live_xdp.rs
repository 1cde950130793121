//! AF_XDP ports between kernel stacks, in trouble, and gone: the interface must be as it was.

mod live;

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use live::{Hosts, PATIENCE, Wire, noise, tcp};
use ports::namespace::{Namespace, NamespaceError, Offload};
use ports::{AfPacketPort, Frame, NoXdp, Port, PortError, PortSpec, Received, XdpPort, XdpSettings, wait};

/// The first argument of a process that opens ports for another one.
const HOLD: &str = "hold-ports";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, names @ ..] = &arguments[..]
        && first == HOLD
    {
        hold(names);
    }
    live::run_as_root(&[
        ("a tcp stream arrives intact in both directions", tcp_v4),
        ("a tcp stream over ipv6 arrives intact", tcp_v6),
        ("a tcp stream through generic mode arrives intact", tcp_generic),
        ("a tcp stream through busy polling ports arrives intact", tcp_busy_poll),
        ("a tcp stream from af_xdp to af_packet arrives intact", tcp_mixed),
        ("frames of every size arrive as they were sent", sizes),
        ("forwarding between ports of one memory copies nothing", in_place),
        ("a frame that grew or was cut arrives so", grown),
        ("large mtus pass", jumbo),
        ("every queue is received from", queues),
        ("a split port receives all in its parts", split),
        ("tags in the frame are kept", vlan),
        ("tags beside the frame are put into it", vlan_beside),
        ("a tcp stream between vlan interfaces arrives intact", vlan_tcp),
        ("a full ring counts what it lost", overrun),
        ("frames beyond the mtu are dropped and counted", too_long),
        ("a removed interface is one clear error", removed),
        ("a link that goes down drops frames and comes back", down_and_up),
        ("an interface is left as it was found", left_as_found),
        ("an interface is left as it was found after kill -9", killed),
        ("a second port on an interface says who is in the way", occupied),
        ("without privilege af_packet takes over and says why", unprivileged),
        ("in a user namespace af_packet takes over and says why", user_namespace),
        ("an interface that does not exist is named", missing),
        ("little locked memory makes do or says so", locked_memory),
    ]);
}

fn open(name: &str) -> XdpPort {
    XdpPort::open(name, XdpSettings::default()).unwrap()
}

fn wire_of(settings: XdpSettings, keep: bool) -> Wire {
    let mut ports = XdpPort::open_together(&["r1", "r2"], settings).unwrap().into_iter();
    let mut next = || Box::new(ports.next().unwrap()) as Box<dyn Port>;
    Wire::between([next(), next()], keep)
}

fn native_wire(keep: bool) -> Wire {
    wire_of(XdpSettings::default(), keep)
}

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
    let specs = PortSpec::parse_all(&["1=xdp:r1", "2=r2"]).unwrap();
    let ports: [Box<dyn Port>; 2] = PortSpec::open_all(&specs).unwrap().try_into().ok().unwrap();
    assert_eq!(ports[0].note(), None);
    let wire = Wire::between(ports, false);
    tcp(&hosts, "10.0.0.2:4000".parse().unwrap(), 2 << 20);
    let [one, two] = wire.stop().stats;
    assert_eq!((one.rx_unusable, two.rx_unusable), (0, 0));
}

/// Receives until `count` frames of the experiments' type are there.
fn collect(port: &mut dyn Port, count: usize) -> Vec<Vec<u8>> {
    let mut frames: Vec<Vec<u8>> = Vec::new();
    let mut batch: Vec<Received> = Vec::new();
    let deadline = Instant::now() + PATIENCE;
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

/// A frame of a type for experiments.
fn frame(len: usize, seed: u64) -> Vec<u8> {
    let mut frame = noise(len, seed);
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&[8, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame
}

fn at_host(host: &Namespace) -> AfPacketPort {
    host.enter(|| AfPacketPort::open("eth0")).unwrap().unwrap()
}

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
        let deadline = Instant::now() + PATIENCE;
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

/// Sends datagrams of many flows, which the kernel spreads over queues.
fn send_flows(hosts: &Hosts, flows: usize) {
    for flow in 0..flows {
        let socket = hosts.h1.enter(|| UdpSocket::bind("10.0.0.1:0")).unwrap().unwrap();
        let to: SocketAddr = (IpAddr::from([10, 0, 0, 2]), 6000 + flow as u16).into();
        socket.send_to(&[flow as u8; 40], to).unwrap();
    }
}

fn know_each_other(hosts: &Hosts) {
    hosts.h1.add_neighbour("eth0", IpAddr::from([10, 0, 0, 2]), [8, 0, 0, 0, 0, 2]).unwrap();
    hosts.h2.add_neighbour("eth0", IpAddr::from([10, 0, 0, 1]), [8, 0, 0, 0, 0, 1]).unwrap();
}

/// The flows of the datagrams of [`send_flows`] among these frames.
fn flows_in(batch: &[Frame]) -> Vec<u8> {
    let datagrams = batch.iter().filter(|frame| frame.len() == 82 && frame[12..14] == [8, 0] && frame[23] == 17);
    datagrams.map(|frame| frame[81]).collect()
}

fn queues(router: &Namespace) {
    let hosts = Hosts::with_queues(router, 3);
    know_each_other(&hosts);
    let mut port = open("r1");
    assert_eq!(port.queues(), 3);
    send_flows(&hosts, 100);
    let mut batch = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    while flows_in(&batch).len() < 100 {
        assert!(Instant::now() < deadline, "{} datagrams of 100", flows_in(&batch).len());
        // Small batches, so that queues take turns.
        if port.receive_frames(&mut batch, 4).unwrap() == 0 {
            assert!(wait(&[port.poll_fd().unwrap()], PATIENCE).unwrap(), "readable when any queue is");
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
    let hosts = Hosts::with_queues(router, 2);
    know_each_other(&hosts);
    let mut parts = open("r1").split();
    assert_eq!(parts.len(), 2);
    send_flows(&hosts, 100);
    let mut batches = [Vec::new(), Vec::new()];
    let deadline = Instant::now() + PATIENCE;
    let count = |batches: &[Vec<Frame>; 2]| flows_in(&batches[0]).len() + flows_in(&batches[1]).len();
    while count(&batches) < 100 {
        assert!(Instant::now() < deadline);
        for (part, batch) in parts.iter_mut().zip(&mut batches) {
            part.receive_frames(batch, 64).unwrap();
        }
    }
    assert!(batches.iter().all(|batch| !flows_in(batch).is_empty()), "the kernel spreads flows over both queues");
    // The last part holds the program: with one gone the other goes on.
    parts.remove(0);
    let mut to = at_host(&hosts.h1);
    parts[0].send(&frame(60, 1)).unwrap();
    parts[0].flush().unwrap();
    assert_eq!(collect(&mut to, 1), [frame(60, 1)]);
}

fn vlan(router: &Namespace) {
    let hosts = Hosts::new(router);
    let wire = native_wire(false);
    let (mut from, mut to) = (at_host(&hosts.h1), at_host(&hosts.h2));
    let tagged = [&frame(14, 1)[..12], &[0x81, 0, 0x20, 5], &[0x88, 0xb5], &noise(1500, 9)].concat();
    from.send(&tagged).unwrap();
    from.flush().unwrap();
    let mut batch: Vec<Received> = Vec::new();
    let deadline = Instant::now() + PATIENCE;
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
    if !port.keeps_tags() {
        return skip::optional("this kernel does not tell XDP programs about VLAN tags");
    }
    let receive = |port: &mut XdpPort, wanted: &dyn Fn(&Frame) -> bool| {
        let mut batch: Vec<Frame> = Vec::new();
        let deadline = Instant::now() + PATIENCE;
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
    if !open("r1").keeps_tags() {
        return skip::optional("this kernel does not tell XDP programs about VLAN tags");
    }
    for (host, number) in [(&hosts.h1, 1), (&hosts.h2, 2)] {
        match host.add_vlan("eth0", "eth0.5", 5) {
            Err(NamespaceError::System { source, .. }) if source.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                return skip::optional("this kernel has no VLAN interfaces");
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

fn removed(router: &Namespace) {
    let _hosts = Hosts::new(router);
    let (mut receiving, mut sending) = (open("r1"), open("r2"));
    router.remove("r1").unwrap();
    router.remove("r2").unwrap();
    let deadline = Instant::now() + PATIENCE;
    let mut batch = Vec::new();
    let error = loop {
        assert!(Instant::now() < deadline, "no error came");
        if let Err(error) = receiving.receive(&mut batch, 64) {
            break error;
        }
        wait(&[receiving.poll_fd().unwrap()], Duration::from_millis(100)).unwrap();
    };
    assert!(matches!(error, PortError::Vanished { .. }), "{error:?}");
    sending.send(&[1; 60]).unwrap();
    assert!(matches!(sending.flush(), Err(PortError::Vanished { .. })));
}

fn down_and_up(router: &Namespace) {
    let hosts = Hosts::new(router);
    let mut port = open("r1");
    router.set_down("r1").unwrap();
    let mut batch = Vec::new();
    for _ in 0..200 {
        port.receive(&mut batch, 64).unwrap();
    }
    for _ in 0..3 {
        port.send(&frame(60, 1)).unwrap();
        port.flush().unwrap();
    }
    assert!(port.stats().tx_link_down >= 2, "{:?}", port.stats());
    router.set_up("r1").unwrap();
    assert!(router.wait_for_link("r1", PATIENCE).unwrap() && hosts.h1.wait_for_link("eth0", PATIENCE).unwrap());
    port.flush().unwrap();
    let mut peer = at_host(&hosts.h1);
    port.send(&frame(60, 7)).unwrap();
    port.flush().unwrap();
    assert_eq!(collect(&mut peer, 1), [frame(60, 7)]);
    peer.send(&frame(60, 8)).unwrap();
    peer.flush().unwrap();
    assert_eq!(collect(&mut port, 1), [frame(60, 8)]);
}

/// What the kernel says about both ends of a link, and the offloads that are on.
fn state(router: &Namespace, hosts: &Hosts) -> (String, Vec<Offload>, Vec<Offload>) {
    let show = |namespace: &Namespace, name: &str| {
        let output = namespace.command("ip").unwrap().args(["-d", "link", "show", "dev", name]).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let links = show(router, "r1") + &show(&hosts.h1, "eth0");
    let on = |namespace: &Namespace, name: &str| namespace.turn_off_offloads(name).unwrap().were_on().to_vec();
    (links, on(router, "r1"), on(&hosts.h1, "eth0"))
}

fn has_ip() -> bool {
    let found = Command::new("ip").arg("-V").output().is_ok();
    if !found {
        skip::test("needs the program ip");
    }
    found
}

fn left_as_found(router: &Namespace) {
    if !has_ip() {
        return;
    }
    let hosts = Hosts::new(router);
    let before = state(router, &hosts);
    assert!(before.1.len() >= 3 && !before.0.contains("prog/xdp"), "{before:?}");
    for generic in [false, true] {
        let port = XdpPort::open("r1", XdpSettings { generic, ..XdpSettings::default() }).unwrap();
        let during = state(router, &hosts);
        assert!(during.0.contains("prog/xdp") && during.0.contains("promiscuity 1"), "{}", during.0);
        drop(port);
        assert_eq!(state(router, &hosts), before);
    }
}

/// Opens ports, says so, and waits for its end.
fn hold(names: &[String]) -> ! {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let ports = XdpPort::open_together(&names, XdpSettings::default()).unwrap();
    println!("ready");
    loop {
        std::thread::sleep(PATIENCE);
        assert!(!ports.is_empty());
    }
}

fn holder() -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap());
    let mut child = child.args([HOLD, "r1", "r2"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

fn killed(router: &Namespace) {
    if !has_ip() {
        return;
    }
    let hosts = Hosts::new(router);
    let before = state(router, &hosts);
    for _ in 0..3 {
        let mut child = holder();
        assert!(state(router, &hosts).0.contains("prog/xdp"));
        // SIGKILL: the process has no chance to tidy up.
        child.kill().unwrap();
        child.wait().unwrap();
        let deadline = Instant::now() + PATIENCE;
        while state(router, &hosts) != before {
            assert!(Instant::now() < deadline, "{:?} and not {before:?}", state(router, &hosts));
        }
        // The next one opens at once.
        let wire = native_wire(false);
        tcp(&hosts, "10.0.0.2:4000".parse().unwrap(), 100_000);
        wire.stop();
    }
    assert_eq!(state(router, &hosts), before);
}

fn occupied(router: &Namespace) {
    let _hosts = Hosts::new(router);
    let _first = open("r1");
    let error = XdpPort::open("r1", XdpSettings::default()).err().unwrap();
    assert!(matches!(error, PortError::NoXdp { why: NoXdp::Occupied, .. }), "{error:?}");
    let second = "1=xdp:r1".parse::<PortSpec>().unwrap().open().unwrap();
    let note = second.note().unwrap();
    assert!(note.contains("`r1` is used through AF_PACKET and not AF_XDP: another XDP program"), "{note}");
}

/// Takes all capabilities but one from the calling thread.
fn keep_capability(number: u32) {
    // struct __user_cap_header_struct of version 3 for this thread; effective, permitted, inheritable, low words first.
    let bit = 1u32 << number;
    let (header, sets) = ([0x2008_0522_u32, 0], [bit, bit, 0, 0, 0, 0]);
    // SAFETY: both are as long as version 3 has them and live through the call; it takes powers from this thread only.
    let result = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()) };
    assert_eq!(result, 0);
}

fn unprivileged(router: &Namespace) {
    const CAP_NET_RAW: u32 = 13;
    let _hosts = Hosts::new(router);
    let open = || {
        keep_capability(CAP_NET_RAW);
        let port = "1=xdp:r1".parse::<PortSpec>().unwrap().open().unwrap();
        port.note().map(str::to_owned)
    };
    let note = router.enter(open).unwrap().unwrap();
    assert!(note.contains("AF_PACKET and not AF_XDP") && note.contains("cap_net_raw,cap_net_admin,cap_bpf"), "{note}");
}

fn user_namespace(_: &Namespace) {
    // A process of its own, since this one has threads behind it: it makes a user namespace and fails there.
    let mut child = Command::new("unshare");
    child.args(["--user", "--map-root-user", "--net"]).arg(std::env::current_exe().unwrap()).args([HOLD, "lo"]);
    let Ok(output) = child.output() else { return skip::test("needs the program unshare") };
    let text = String::from_utf8_lossy(&output.stderr);
    if text.contains("unshare:") {
        return skip::test("needs user namespaces");
    }
    assert!(!output.status.success() && text.contains("NotPermitted"), "{text}");
}

fn missing(_: &Namespace) {
    let error = "1=xdp:nothere0".parse::<PortSpec>().unwrap().open().err().unwrap();
    assert!(error.to_string().contains("no network interface `nothere0`"), "{error}");
}

fn locked_memory(router: &Namespace) {
    let _hosts = Hosts::new(router);
    let with_limit = |bytes: u64| {
        let open = move || {
            // CAP_NET_ADMIN 12, CAP_NET_RAW 13, CAP_BPF 39: all it takes, and no CAP_IPC_LOCK.
            let (header, low, high) = ([0x2008_0522_u32, 0], 1u32 << 12 | 1 << 13, 1u32 << 7);
            let sets = [low, low, 0, high, high, 0];
            // SAFETY: as in `keep_capability`.
            assert_eq!(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()) }, 0);
            let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
            let mut old = limit;
            // SAFETY: the structs live through the calls.
            unsafe {
                libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut old);
                let limit = libc::rlimit { rlim_max: old.rlim_max, ..limit };
                assert_eq!(libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit), 0);
            }
            let result = XdpPort::open("r1", XdpSettings::default());
            // SAFETY: as above.
            unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const old) };
            result.map(|port| port.memory().len_bytes())
        };
        router.enter(open).unwrap()
    };
    let some = with_limit(4 << 20).unwrap();
    assert!(some <= 4 << 20, "{some} bytes");
    let error = with_limit(64 << 10).err().unwrap();
    let text = error.to_string();
    assert!(text.contains("may lock") && text.contains("ulimit -l"), "{text}");
}
