//! `triplane ctl` against a P4Runtime server of this process, over the loopback interface.

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use p4runtime::{Both, Listening, Pipeline, Plane, Server, Settings};
use source::{Diagnostics, SourceMap};
use support::{Done, Running, run, triplane};
use switch::{Device, Frame, PortId, Time};
use v1model::{Config, Executor, Switch};

const ROUTER: &str = include_str!("../../../examples/router/router.p4");

/// A router that controllers may drive, until this is dropped.
struct Router {
    listening: Option<Listening>,
    stop: Arc<AtomicBool>,
    packets: Option<JoinHandle<()>>,
}

impl Router {
    /// A router to which `frames` come.
    fn start(mut frames: Vec<Frame>) -> Router {
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let arch = v1model::description::V1Model;
        let builtin = compile::Architecture::includes(&arch).to_vec();
        let options = p4::Options { defines: Vec::new(), include_dirs: Vec::new(), builtin };
        let ast = p4::parse(&mut map, "router.p4", ROUTER, &options, &p4::DiskLoader, &mut diagnostics);
        let typed = p4::check(&ast, &map, &mut diagnostics).expect("the router is right");
        let info = p4info::p4info(&typed, &p4info::V1Model, &map, &mut diagnostics);
        let program = compile::compile(&typed, &arch, &map, &mut diagnostics).expect("the router is right");
        let program = Arc::new(program);
        let ports = (1..=2).map(PortId).collect();
        let config = Config { ports, executor: Executor::Interpreter, ..Config::default() };
        let mut switch = Switch::new(program.clone(), config.clone()).expect("the switch runs it");
        let pipeline = Pipeline::new(program, info, ROUTER.into());
        let server = Server::new(Settings::new(1..=2, Some(510))).with_pipeline(pipeline, &switch);
        let builder = move |program| Switch::new(program, config.clone());
        let Both { handle, mut end, notified, .. } = p4runtime::plane(Arc::new(builder), Arc::new(|| {}));
        let listening = p4runtime::listen(server, handle, notified, "127.0.0.1:0".parse().unwrap(), None);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let packets = std::thread::spawn(move || {
            let (started, mut output) = (Instant::now(), Vec::new());
            while !stopped.load(Ordering::Relaxed) {
                let now = Time::from_ns(started.elapsed().as_nanos() as u64);
                end.poll(&mut Plane { switch: &mut switch, now, output: &mut output });
                switch.step(now, &mut frames, &mut output);
                output.clear();
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        Router { listening: Some(listening.expect("there is a port")), stop, packets: Some(packets) }
    }

    fn address(&self) -> SocketAddr {
        self.listening.as_ref().expect("it listens").address()
    }

    /// `triplane ctl` with these words.
    fn ctl(&self, words: &[&str]) -> Done {
        let address = self.address().to_string();
        run(&mut triplane(&[&["ctl", "--addr", &address], words].concat()))
    }

    /// The same, which has to be refused with all of these.
    #[track_caller]
    fn refused(&self, words: &[&str], said: &[&str]) {
        let done = self.ctl(words);
        assert_eq!(done.code, Some(1), "{done:?}");
        said.iter().for_each(|said| assert!(done.stderr.contains(said), "no `{said}`: {done:?}"));
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        self.listening.take();
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.packets.take().map(JoinHandle::join);
    }
}

const ROUTE: &str = "dst=10.0.0.0/8 -> forward(mac=02:00:00:00:00:01, port=2)";
const SHOWN: &str = "hdr.ipv4.dst=10.0.0.0/8 -> RouterIngress.forward(mac=02:00:00:00:00:01, port=2)";

#[test]
fn entries_come_change_and_go() {
    let router = Router::start(Vec::new());
    let tables = router.ctl(&["tables"]).ok().stdout;
    assert!(
        tables.contains("RouterIngress.ipv4_lpm  0 of 1024 entries\n  key     hdr.ipv4.dst: lpm, 32 bits wide\n"),
        "{tables}"
    );
    assert!(tables.contains("  action  RouterIngress.forward(mac, port)\n"), "{tables}");

    let done = router.ctl(&["insert", "ipv4_lpm", ROUTE]).ok();
    assert_eq!(done.stdout, format!("inserted: RouterIngress.ipv4_lpm {SHOWN}\n"));
    let entries = router.ctl(&["entries", "ipv4_lpm"]).ok().stdout;
    assert_eq!(entries, format!("RouterIngress.ipv4_lpm\n  {SHOWN}\n  default -> RouterIngress.no_route()\n"));
    let json = router.ctl(&["entries", "--json", "ipv4_lpm"]).ok().json();
    assert_eq!(json[0]["match"]["hdr.ipv4.dst"], "10.0.0.0/8");
    assert_eq!(json[0]["parameters"]["port"], "2");
    assert_eq!(json[1]["default"], true);

    // What is printed is what is written.
    router.ctl(&["modify", "ipv4_lpm", &SHOWN.replace("port=2", "port=1")]).ok();
    assert!(router.ctl(&["entries"]).ok().stdout.contains("port=1)\n"));
    router.ctl(&["modify", "RouterIngress.gateway", "default", "->", "arp_reply(2)"]).ok();
    assert!(router.ctl(&["entries", "gateway"]).ok().stdout.contains("default -> RouterIngress.arp_reply(mac=00:"));
    router.ctl(&["delete", "ipv4_lpm", "dst=10.0.0.0/8"]).ok();
    assert!(!router.ctl(&["entries"]).ok().stdout.contains("10.0.0.0/8"));
}

#[test]
fn what_is_wrong_is_refused_in_words() {
    let router = Router::start(Vec::new());
    router.ctl(&["insert", "ipv4_lpm", ROUTE]).ok();
    // By the command, before anything is sent; all mistakes at once, with their places.
    router.refused(&["insert", "ipv4_lmp", ROUTE], &["there is no table `ipv4_lmp`", "`RouterIngress.ipv4_lpm`?"]);
    router.refused(
        &["insert", "ipv4_lpm", "dts=10.0.0.0/8 -> forward(mac=1, prot=2)"],
        &["no key field `dts`", "there is `hdr.ipv4.dst`", "no parameter `prot`", "nothing was written"],
    );
    // By the server, for this one update.
    router.refused(&["insert", "ipv4_lpm", ROUTE], &["ALREADY_EXISTS", "MODIFY changes it"]);
    router.refused(&["delete", "ipv4_lpm", "dst=11.0.0.0/8"], &["NOT_FOUND"]);
    router.refused(&["insert", "ipv4_lpm", "dst=10.0.0.1/8 -> no_route()"], &["INVALID_ARGUMENT"]);
    router.refused(&["registers", "x"], &["there is no register `x`"]);
    let nobody = run(&mut triplane(&["ctl", "--addr", "127.0.0.1:1", "tables"]));
    assert_eq!(nobody.code, Some(3), "{nobody:?}");
    assert!(nobody.stderr.contains("no P4Runtime server answers on 127.0.0.1:1"), "{nobody:?}");
}

#[test]
fn another_primary_is_respected_until_an_election_id_says_otherwise() {
    let router = Router::start(Vec::new());
    let address = router.address().to_string();
    let mut watch = Running::start(&mut triplane(&["ctl", "--addr", &address, "--election-id", "7", "watch"]));
    watch.wait_for("watching as the primary, with election id 7");
    router.refused(
        &["insert", "ipv4_lpm", ROUTE],
        &["another controller is primary, with election id 7; --election-id 8"],
    );
    router.ctl(&["--election-id", "8", "insert", "ipv4_lpm", ROUTE]).ok();
    watch.wait_for("another controller is primary (election id 8)");
    watch.signal("INT");
    watch.wait().ok();
    // Nobody is locked out by what came before: the highest id there was is enough.
    router.ctl(&["delete", "ipv4_lpm", "dst=10.0.0.0/8"]).ok();
    router.ctl(&["--election-id", "8", "insert", "ipv4_lpm", ROUTE]).ok();
}

#[test]
fn counters_and_sessions_are_listed() {
    let router = Router::start(Vec::new());
    let counters = router.ctl(&["counters"]).ok();
    assert!(counters.stderr.contains("nothing was counted yet"), "{counters:?}");
    let json = router.ctl(&["counters", "--json", "routed"]).ok().json();
    assert_eq!(json.as_array().map(Vec::len), Some(512));
    assert_eq!(json[511]["of"], "511");
    assert!(router.ctl(&["sessions"]).ok().stderr.contains("no clone sessions"));
}
