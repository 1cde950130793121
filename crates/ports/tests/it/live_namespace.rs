//! Networks made without root: links, addresses, routes, parameters, commands and offloads.

use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::process::Stdio;
use std::time::Duration;

use crate::live::{Hosts, Place, Suite, TEST_TIMEOUT};
use ports::namespace::{Namespace, NamespaceError, Offload, PingResult, TransferError, veth};
use wire::icmpv4::Repr;

pub const SUITE: Suite = Suite {
    name: "live_namespace",
    place: Place::UserNamespace,
    tests: &[
        ("hosts behind a router reach each other by static routes and neighbours", routed),
        ("a loopback is up from the start", loopback),
        ("a stream arrives as it was sent, and a host that is away is an error", streams),
        ("parameters belong to their namespace", parameters),
        ("commands and threads run inside", inside),
        ("a cookie belongs to one namespace, also to one of another user namespace", cookies),
        ("offloads are turned off and on again", offloads),
        ("failures name the thing and the place", failures),
    ],
};

fn ip(last: [u8; 4]) -> IpAddr {
    IpAddr::from(last)
}

/// The topology of the demo, with the kernel as the router.
fn routed(_: &Namespace) {
    let [h1, h2, middle] = ["h1", "h2", "middle"].map(|name| Namespace::new(name).unwrap());
    middle.set_parameter("net/ipv4/ip_forward", "1").unwrap();
    for (host, number) in [(&h1, 1), (&h2, 2)] {
        let end = format!("r{number}");
        veth(host, "eth0", &middle, &end).unwrap();
        host.set_mac("eth0", [8, 0, 0, 0, number, 1]).unwrap();
        middle.set_mac(&end, [8, 0, 0, 0, number, 0]).unwrap();
        host.add_address("eth0", ip([10, 0, number, 1]), 24).unwrap();
        middle.add_address(&end, ip([10, 0, number, 254]), 24).unwrap();
        host.set_up("eth0").unwrap();
        middle.set_up(&end).unwrap();
        assert!(host.wait_for_link("eth0", TEST_TIMEOUT).unwrap() && middle.wait_for_link(&end, TEST_TIMEOUT).unwrap());
        host.add_route(ip([0, 0, 0, 0]), 0, ip([10, 0, number, 254])).unwrap();
        host.add_neighbour("eth0", ip([10, 0, number, 254]), [8, 0, 0, 0, number, 0]).unwrap();
    }
    let bind = |host: &Namespace, address: &'static str| host.enter(|| UdpSocket::bind(address)).unwrap().unwrap();
    let (from, to) = (bind(&h1, "10.0.1.1:1000"), bind(&h2, "10.0.2.1:1000"));
    to.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    from.send_to(b"hello", "10.0.2.1:1000").unwrap();
    let mut buffer = [0; 10];
    let (len, sender) = to.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..len], sender.to_string()), (&b"hello"[..], "10.0.1.1:1000".to_owned()));
    let ping = |last: u8| h1.ping([10, 0, 2, last].into(), 1, TEST_TIMEOUT).unwrap();
    assert!(matches!(ping(1), PingResult::Reply { ttl: 63, .. }), "{:?}", ping(1));
    let message = Repr::Unreachable { code: 1, next_mtu: 0 };
    assert_eq!(ping(77), PingResult::IcmpError { from: [10, 0, 1, 254].into(), message });
    assert!(h1.ping([127, 0, 0, 1].into(), 1, Duration::ZERO).unwrap() == PingResult::Timeout);
    let many: Vec<_> = (0..1000u16).map(|net| (ip([11, (net >> 8) as u8, net as u8, 0]), 24)).collect();
    middle.add_routes(&many, ip([10, 0, 2, 1])).unwrap();
    for to in [[11, 0, 0, 1], [11, 3, 231, 1]] {
        h2.add_address("lo", ip(to), 32).unwrap();
        let reply = h1.ping(to.into(), 1, TEST_TIMEOUT).unwrap();
        assert!(matches!(reply, PingResult::Reply { ttl: 63, .. }), "{reply:?}");
    }
    let again = [(ip([12, 0, 0, 0]), 24), many[7]];
    let error = middle.add_routes(&again, ip([10, 0, 2, 1])).unwrap_err().to_string();
    assert!(error.starts_with("routing 11.0.7.0/24 through 10.0.2.1 in namespace `middle` failed"), "{error}");
}

fn cookies(_: &Namespace) {
    let [h1, h2] = ["h1", "h2"].map(|name| Namespace::new(name).unwrap());
    let Ok(cookie) = h1.cookie() else { return testing::skip("needs Linux 5.14") };
    assert_ne!(h2.cookie().unwrap(), cookie);
    let mut child = h1.command("cat").unwrap().stdin(Stdio::piped()).spawn().unwrap();
    let same = Namespace::of_process(child.id()).unwrap();
    assert_eq!((same.number().unwrap(), same.cookie().unwrap()), (h1.number().unwrap(), cookie));
    drop(child.stdin.take());
    child.wait().unwrap();

    let mut unshare = std::process::Command::new("unshare");
    unshare.args(["--user", "--net", "sh", "-c", "readlink /proc/self/ns/net; cat"]);
    let Ok(mut child) = unshare.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
        return testing::skip("needs unshare");
    };
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let other = Namespace::of_process(child.id()).unwrap();
    assert_eq!(line.trim(), format!("net:[{}]", other.number().unwrap()));
    let cookies = [(); 2].map(|()| other.cookie().unwrap());
    assert!(cookies[0] == cookies[1] && cookies[0] != cookie && cookies[0] != h2.cookie().unwrap(), "{cookies:?}");
    drop(child.stdin.take());
    child.wait().unwrap();
}

fn streams(_: &Namespace) {
    let [h1, h2] = ["h1", "h2"].map(|name| Namespace::new(name).unwrap());
    veth(&h1, "eth0", &h2, "eth0").unwrap();
    for (host, last) in [(&h1, 1), (&h2, 2)] {
        host.set_up("eth0").unwrap();
        host.add_address("eth0", ip([10, 0, 0, last]), 24).unwrap();
    }
    assert!(h1.wait_for_link("eth0", TEST_TIMEOUT).unwrap() && h2.wait_for_link("eth0", TEST_TIMEOUT).unwrap());
    let address = |last| SocketAddrV4::new([10, 0, 0, last].into(), 5001);
    let time = Duration::from_millis(20);
    let transfer = h1.transfer_stream(&h2, address(2), time, TEST_TIMEOUT).unwrap();
    assert!(transfer.is_intact && transfer.bytes > 0 && transfer.seconds > 0.0, "{transfer:?}");
    // h2 does not have the address.
    let error = h1.transfer_stream(&h2, address(3), time, TEST_TIMEOUT).unwrap_err();
    assert!(matches!(&error, TransferError::Listen { host, .. } if host == "h2"), "{error:?}");
    let sink = h2.enter(|| UdpSocket::bind("10.0.0.2:9")).unwrap().unwrap();
    sink.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    h1.send_datagrams(SocketAddrV4::new([10, 0, 0, 2].into(), 9), b"hello", 2).unwrap();
    for _ in 0..2 {
        let mut buffer = [0; 10];
        assert_eq!(sink.recv(&mut buffer).map(|len| buffer[..len].to_vec()).unwrap(), b"hello");
    }
    let error = h1.send_datagrams(SocketAddrV4::new([10, 9, 9, 9].into(), 9), b"hello", 1).unwrap_err().to_string();
    assert!(error.starts_with("sending to 10.9.9.9:9 in namespace `h1` failed"), "{error}");
}

fn loopback(_: &Namespace) {
    let host = Namespace::new("alone").unwrap();
    let text = host.enter(|| {
        let listener = TcpListener::bind("127.0.0.1:9")?;
        let client = TcpStream::connect("127.0.0.1:9")?;
        drop(listener.accept()?);
        let mut text = String::new();
        (&client).read_to_string(&mut text)?;
        Ok::<_, std::io::Error>(text)
    });
    assert_eq!(text.unwrap().unwrap(), "");
}

fn parameters(_: &Namespace) {
    let [one, two] = ["one", "two"].map(|name| Namespace::new(name).unwrap());
    one.set_parameter("net/ipv4/ip_default_ttl", "77").unwrap();
    let read = |host: &Namespace| {
        host.enter(|| std::fs::read_to_string("/proc/sys/net/ipv4/ip_default_ttl").unwrap()).unwrap()
    };
    assert_eq!((read(&one).trim(), read(&two).trim() == "77"), ("77", false));
    let error = one.set_parameter("net/ipv4/nonsense", "1").unwrap_err().to_string();
    assert!(error.contains("setting net/ipv4/nonsense") && error.contains("`one`"), "{error}");
}

fn inside(router: &Namespace) {
    let hosts = Hosts::new(router);
    let listed = hosts.h1.command("cat").unwrap().arg("/proc/self/net/dev").output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("eth0:") && !listed.contains("r1:"), "{listed}");
    let thread = hosts.h2.spawn(|| UdpSocket::bind("10.0.0.2:0").unwrap().local_addr().unwrap()).unwrap();
    assert_eq!(thread.join().unwrap().unwrap().ip(), ip([10, 0, 0, 2]));
    assert!(UdpSocket::bind("10.0.0.2:0").is_err(), "the caller stayed where it was");
}

fn offloads(router: &Namespace) {
    let hosts = Hosts::new(router);
    let off = hosts.h1.turn_off_offloads("eth0").unwrap();
    assert!(off.were_on().contains(&Offload::Checksum), "{:?}", off.were_on());
    let before = off.were_on().to_vec();
    assert_eq!(hosts.h1.turn_off_offloads("eth0").unwrap().were_on(), []);
    drop(off);
    assert_eq!(hosts.h1.turn_off_offloads("eth0").unwrap().were_on(), before);
}

fn failures(router: &Namespace) {
    let host = Namespace::new("h9").unwrap();
    let error = host.set_up("eth7").unwrap_err().to_string();
    assert!(error.contains("bringing up eth7 in namespace `h9`"), "{error}");
    let error = veth(&host, "eth0", router, "a-name-much-too-long").unwrap_err().to_string();
    assert!(error.contains("1 to 15 characters"), "{error}");
    veth(&host, "eth0", router, "r9").unwrap();
    host.set_up("eth0").unwrap();
    assert!(!host.wait_for_link("eth0", Duration::from_millis(2)).unwrap(), "the other end is down");
    assert!(veth(&host, "eth0", router, "r8").is_err(), "the name is taken");
    let error = host.add_route(ip([1, 2, 3, 4]), 32, ip([9, 9, 9, 9])).unwrap_err().to_string();
    assert!(error.contains("routing 1.2.3.4/32 through 9.9.9.9"), "{error}");
    assert!(std::thread::spawn(|| matches!(Namespace::new_user(), Err(NamespaceError::ManyThreads))).join().unwrap());
    host.remove("eth0").unwrap();
}
