//! AF_XDP ports refused, in trouble, and gone: each says why, and the interface must be as it was.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::live::xdp::{at_host, collect, frame, native_wire, open};
use crate::live::{Hosts, Place, Suite, TEST_TIMEOUT, tcp};
use ports::namespace::{Namespace, Offload};
use ports::{NoXdp, Port, PortError, PortSpec, XdpPort, XdpSettings, wait};

/// The first argument of a process that opens ports for another one.
const HOLD: &str = "hold-ports";

pub const SUITE: Suite = Suite {
    name: "live_xdp_trouble",
    place: Place::NetworkNamespace,
    tests: &[
        ("a removed interface is one clear error", removed),
        ("a check finds an interface that was removed or moved away", checked),
        ("a link that goes down drops frames and comes back", down_and_up),
        ("an interface is left as it was found", left_as_found),
        ("an interface is left as it was found after kill -9", killed),
        ("a second port on an interface says who is in the way", occupied),
        ("without privilege af_packet takes over and says why", unprivileged),
        ("in a user namespace af_packet takes over and says why", user_namespace),
        ("an interface that does not exist is named", missing),
        ("little locked memory makes do or says so", locked_memory),
        ("an mtu of jumbo frames of any kind passes and a larger one says what would do", long_frames),
    ],
};

fn removed(router: &Namespace) {
    let _hosts = Hosts::new(router);
    let (mut receiving, mut sending) = (open("r1"), open("r2"));
    router.remove("r1").unwrap();
    router.remove("r2").unwrap();
    let deadline = Instant::now() + TEST_TIMEOUT;
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

fn checked(router: &Namespace) {
    let hosts = Hosts::new(router);
    let mut ports = [open("r1"), open("r2")];
    ports.iter_mut().for_each(|port| port.check().unwrap());
    router.set_down("r1").unwrap();
    ports[0].check().unwrap();
    router.remove("r1").unwrap();
    router.move_to("r2", &hosts.h1).unwrap();
    for (port, name) in ports.iter_mut().zip(["r1", "r2"]) {
        let error = port.check().unwrap_err();
        assert!(error.to_string().starts_with(&format!("interface `{name}` disappeared")), "{error}");
    }
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
    assert!(router.wait_for_link("r1", TEST_TIMEOUT).unwrap() && hosts.h1.wait_for_link("eth0", TEST_TIMEOUT).unwrap());
    port.flush().unwrap();
    let mut peer = at_host(&hosts.h1);
    port.send(&frame(60, 7)).unwrap();
    port.flush().unwrap();
    assert_eq!(collect(&mut peer, 1), [frame(60, 7)]);
    peer.send(&frame(60, 8)).unwrap();
    peer.flush().unwrap();
    assert_eq!(collect(&mut port, 1), [frame(60, 8)]);
}

/// Returns the kernel's state of both ends of a link, and the offloads that are on.
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
        testing::skip("needs the program ip");
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

/// In a process whose first argument is [`HOLD`], opens the ports that the other arguments name, prints `ready`, and
/// waits to be killed.
pub fn hold_if_asked() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [HOLD, names @ ..] = &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] else { return };
    let ports = XdpPort::open_together(names, XdpSettings::default()).unwrap();
    println!("ready");
    loop {
        std::thread::sleep(TEST_TIMEOUT);
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
        let deadline = Instant::now() + TEST_TIMEOUT;
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
    assert!(note.contains("`r1` uses AF_PACKET instead of AF_XDP: another XDP program"), "{note}");
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
    assert!(
        note.contains("AF_PACKET instead of AF_XDP") && note.contains("cap_net_raw,cap_net_admin,cap_bpf"),
        "{note}"
    );
}

fn user_namespace(_: &Namespace) {
    // A process of its own, since this one has other threads: it makes a user namespace and fails there.
    let mut child = Command::new("unshare");
    child.args(["--user", "--map-root-user", "--net"]).arg(std::env::current_exe().unwrap()).args([HOLD, "lo"]);
    let Ok(output) = child.output() else { return testing::skip("needs the program unshare") };
    let text = String::from_utf8_lossy(&output.stderr);
    if text.contains("unshare:") {
        return testing::skip("needs user namespaces");
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
    assert!(text.contains("locked-memory limit") && text.contains("ulimit -l"), "{text}");
}

fn long_frames(router: &Namespace) {
    let _hosts = Hosts::new(router);
    router.set_mtu("r1", 9216).unwrap();
    assert_eq!(open("r1").mtu(), 9216);
    router.set_mtu("r1", 10_219).unwrap();
    let error = XdpPort::open("r1", XdpSettings::default()).err().unwrap();
    let expected = "its MTU of 10219 bytes exceeds the AF_XDP maximum of 10218";
    assert!(error.to_string().contains(expected), "{error}");
    let port = "1=xdp:r1".parse::<PortSpec>().unwrap().open().unwrap();
    let note = port.note().unwrap();
    assert!(
        note.contains("AF_PACKET instead of AF_XDP")
            && note.contains("reduce it with `ip link set dev NAME mtu 10218`"),
        "{note}"
    );
    router.set_mtu("r1", 1500).unwrap();
}
