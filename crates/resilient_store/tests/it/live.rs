//! Stores and switches in threads, on sockets of the loopback interface.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use compiler::Source;
use resilient::{ChainMember, Peer, RefusedDatagrams, SwitchId};
use resilient_store::{Cluster, StoreHook, StoreServer, StoreStatistics};
use resilient_switch::{ResilientConfig, ResilientSwitch};
use runtime::{Hook, HookContext};
use switch::{Device, Frame, Time};
use v1model::{Config, Switch, V1Model};

/// The longest time for which a test waits.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster whose sockets are bound.
pub struct Rig {
    cluster: Cluster,
    taps: Vec<UdpSocket>,
    sockets: Vec<Option<UdpSocket>>,
    stop: Arc<AtomicBool>,
    stores: Vec<JoinHandle<StoreStatistics>>,
}

impl Rig {
    /// Starts stores, and binds sockets for two switches.
    pub fn new(stores: usize) -> Rig {
        Rig::with_key(stores, None)
    }

    /// Does the same for a cluster with a key file.
    pub fn with_key(stores: usize, key_file: Option<&Path>) -> Rig {
        let line = |file: &Path| format!("key_file = \"{}\"\n", file.display());
        Rig::with_settings(stores, &key_file.map(line).unwrap_or_default())
    }

    /// Does the same for a cluster with more lines at the top of its file.
    fn with_settings(stores: usize, lines: &str) -> Rig {
        let mut text = format!("lease = \"100ms\"\n{lines}");
        let sockets: Vec<UdpSocket> =
            (0..stores + 2).map(|_| UdpSocket::bind("127.0.0.1:0").expect("loopback has ports")).collect();
        for (number, socket) in sockets.iter().enumerate() {
            let address = socket.local_addr().expect("it is bound");
            let section = if number < stores { "stores.a" } else { "switches.s" };
            text.push_str(&format!("[{section}{number}]\naddress = \"{address}\"\n"));
        }
        let cluster = Cluster::read(&text, Path::new("")).expect("the file is right");
        let taps = sockets.iter().map(|socket| socket.try_clone().expect("it can be cloned")).collect();
        let mut sockets: Vec<Option<UdpSocket>> = sockets.into_iter().map(Some).collect();
        let stop = Arc::new(AtomicBool::new(false));
        let members: Vec<ChainMember> = cluster.layout(1).chains()[0].members.clone();
        let start = |(me, socket): (ChainMember, &mut Option<UdpSocket>)| {
            let socket = socket.take().expect("it is there");
            let (cluster, stop) = (cluster.clone(), Arc::clone(&stop));
            let mut server = StoreServer::founding(cluster.clone(), &cluster.layout(1), me, socket, 1);
            std::thread::spawn(move || server.run(&stop).expect("the socket can be configured"))
        };
        let running = members.into_iter().zip(&mut sockets).map(start).collect();
        Rig { cluster, taps, sockets: sockets.split_off(stores), stop, stores: running }
    }

    /// Removes and returns second handles of all sockets: those of the stores, and of the switches.
    pub fn taps(&mut self) -> Vec<UdpSocket> {
        std::mem::take(&mut self.taps)
    }

    /// Starts a switch, 0 or 1.
    pub fn switch(&mut self, number: usize) -> LiveSwitch {
        let socket = self.sockets[number].take().expect("each switch starts once");
        LiveSwitch::new(&self.cluster, number, socket)
    }

    /// Stops the stores, and returns their summaries.
    pub fn finish(self) -> Vec<StoreStatistics> {
        self.stop.store(true, Ordering::Relaxed);
        self.stores.into_iter().map(|store| store.join().expect("no store panics")).collect()
    }
}

/// A switch with its hook, driven by the test's thread.
pub struct LiveSwitch {
    switch: ResilientSwitch<Switch>,
    hook: StoreHook,
    started: Instant,
}

impl LiveSwitch {
    /// Returns the counts of datagrams that the switch refused.
    pub fn refused(&self) -> RefusedDatagrams {
        self.hook.refused()
    }

    /// Creates a switch, 0 or 1, with a bound socket.
    pub fn new(cluster: &Cluster, number: usize, socket: UdpSocket) -> LiveSwitch {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../resilient_switch/testdata/values.p4");
        let text = std::fs::read_to_string(path).expect("the program can be read");
        let program = Arc::new(compiler::expect_program(&Source::new("values.p4", &text), &V1Model).ir);
        let inner = Switch::new(program, Config::with_ports(4)).expect("the program fits the switch");
        let config = ResilientConfig { replica: cluster.replica_config(), ..ResilientConfig::default() };
        let identity = (SwitchId(number as u32 + 1), 7);
        let layout = cluster.layout(1);
        let switch = ResilientSwitch::new(inner, config, layout, identity).unwrap_or_else(|error| panic!("{error}"));
        let hook = StoreHook::new(cluster.clone(), Peer::Switch(identity.0), socket, identity.1)
            .expect("the socket can be configured");
        LiveSwitch { switch, hook, started: Instant::now() }
    }

    /// Passes frames to the switch, performs the work that is due, and returns the frames that leave.
    pub fn step(&mut self, mut frames: Vec<Frame>) -> Vec<Frame> {
        let now = Time::from_ns(self.started.elapsed().as_nanos() as u64);
        let (mut output, mut injected) = (Vec::new(), Vec::new());
        self.switch.step(now, &mut frames, &mut output);
        let (switch, stop_others) = (&mut self.switch, &|| ());
        let mut context = HookContext { now, switch, output: &mut output, injected: &mut injected, stop_others };
        self.hook.poll(&mut context);
        output
    }

    /// Passes frames to the switch, and runs it until this many frames have left. Returns values and numbers of
    /// changes.
    pub fn run(&mut self, frames: Vec<Frame>, wanted: usize) -> Vec<(u32, u16)> {
        let (mut frames, mut output) = (frames, Vec::new());
        let until = Instant::now() + PATIENCE;
        while output.len() < wanted {
            assert!(Instant::now() < until, "{} of {wanted} frames have left", output.len());
            output.extend(self.step(std::mem::take(&mut frames)));
        }
        output.iter().map(answer).collect()
    }
}

/// Returns the value and the number of changes in a frame that has left.
pub fn answer(frame: &Frame) -> (u32, u16) {
    let data = &frame.data;
    (u32::from_be_bytes([data[2], data[3], data[4], data[5]]), u16::from_be_bytes([data[6], data[7]]))
}

/// Returns a request to read (0), set (1) or add to (2) a row.
pub fn request(op: u8, row: u8, value: u32) -> Frame {
    Frame::new(1, [&[op, row][..], &value.to_be_bytes(), &[0; 10]].concat())
}

#[test]
fn a_switch_continues_where_a_dead_one_stopped() {
    for (stores, hold) in [(1, "local"), (3, "local"), (1, "piggyback"), (3, "piggyback")] {
        let mut rig = Rig::with_settings(stores, &format!("hold = \"{hold}\"\n"));
        let mut first = rig.switch(0);
        let counted: Vec<_> = (0..500).flat_map(|_| first.run(vec![request(2, 3, 1)], 1)).collect();
        let expected: Vec<_> = (1..=500).map(|count| (count, count as u16)).collect();
        assert_eq!(counted, expected);
        // 100 packets at once share acknowledgements, and leave in order.
        let many = (0..100).map(|_| request(2, 3, 1)).collect();
        let expected: Vec<_> = (501..=600).map(|count| (count, count as u16)).collect();
        assert_eq!(first.run(many, 100), expected);
        let carried = first.switch.counts(Time::ZERO).piggyback;
        assert_eq!((carried.returned > 500, carried.lost), (hold == "piggyback", 0), "{carried:?}");
        drop(first);
        let mut second = rig.switch(1);
        let mut answers = second.run(vec![request(2, 3, 1), request(0, 4, 0)], 2);
        answers.sort_unstable();
        assert_eq!(answers, [(0, 0), (601, 601)]);
        let done = rig.finish();
        assert_eq!(done.len(), stores);
        assert!(done.iter().all(|store| (store.rows, store.refused.total()) == (2, 0)), "{done:?}");
    }
}

#[test]
fn a_switch_says_once_that_no_store_answers_and_that_one_answers_again() {
    let mut rig = Rig::new(1);
    let mut first = rig.switch(0);
    let notices = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&notices);
    first.hook.on_notice(Box::new(move |notice| noted.lock().unwrap().push(notice.to_string())));
    let mut poll = |now: Time| {
        let (mut output, mut injected) = (Vec::new(), Vec::new());
        let (switch, stop_others) = (&mut first.switch, &|| ());
        let mut context = HookContext { now, switch, output: &mut output, injected: &mut injected, stop_others };
        Hook::<ResilientSwitch<Switch>>::on_wake(&mut first.hook);
        first.hook.poll(&mut context);
        notices.lock().unwrap().len()
    };
    // The first poll sends no request, so the second hears nothing.
    assert_eq!(poll(Time::ZERO), 0);
    assert_eq!(poll(Time::from_ms(3_000)), 1);
    let until = Instant::now() + PATIENCE;
    while poll(Time::from_ms(3_001)) == 1 {
        assert!(Instant::now() < until, "the store answers");
    }
    assert_eq!(poll(Time::from_ms(3_002)), 2);
    let notices = notices.lock().unwrap();
    assert!(notices[0].starts_with("no store answers"), "{notices:?}");
    assert_eq!(notices[1], "the stores answer");
    rig.finish();
}

#[test]
fn strangers_and_nonsense_are_counted_and_change_nothing() {
    let mut rig = Rig::new(1);
    let store = rig.cluster.address_of(rig.cluster.store("a0").expect("it is there").peer).expect("it has one");
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
    let mut first = rig.switch(0);
    assert_eq!(first.run(vec![request(1, 3, 5)], 1), [(5, 1)]);
    for bytes in [&b""[..], b"TR\x01", b"TR\x01\x00\x09\x06\0\0\0\0\0\0\0\0\0", &[0xff; 1400]] {
        stranger.send_to(bytes, store).expect("it is sent");
    }
    assert_eq!(first.run(vec![request(2, 3, 1)], 1), [(6, 2)]);
    let refused = rig.finish()[0].refused;
    assert_eq!(refused, RefusedDatagrams { stranger: 4, ..RefusedDatagrams::default() });
}

#[test]
fn names_and_addresses_are_those_of_the_file() {
    let rig = Rig::new(1);
    let switch = rig.cluster.switch("s2").expect("it is there");
    assert_eq!(switch.peer, Peer::Switch(SwitchId(2)));
    rig.finish();
}
