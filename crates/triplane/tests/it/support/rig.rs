//! A switch with a P4Runtime server in this process; a test sends its packets and receives them.

// Not every test uses all of these items.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use crate::support::TEST_TIMEOUT;
use authorization::Policy;
use p4runtime_server::{DataPlane, DataPlaneChannels, Listening, Server, Settings, Tls, switch_builder};
use switch::{Device, Frame, PortId, Time};
use v1model::{CPU_PORT, Config, Switch, V1Model};

/// A source of packets: the next one, until there are none left.
pub type Source = Box<dyn FnMut() -> Option<Frame> + Send>;

pub struct Rig {
    _listening: Listening,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    source: Mutex<Option<Source>>,
    sent: AtomicU64,
    /// Rounds of the thread that have ended.
    rounds: AtomicU64,
    /// Packets that left, by port.
    left: Mutex<BTreeMap<u32, Vec<Vec<u8>>>>,
}

/// A program that is not generated from rules.
const NOTHING: &str = include_str!("../../../src/nothing.p4");

fn nothing() -> ir::Program {
    compiler::expect_program(&compiler::Source::new("nothing.p4", NOTHING), &V1Model).ir
}

impl Rig {
    /// Starts a switch with the ports from 1 to `ports` that listens at `address`. It runs no program of a controller.
    pub fn new(ports: u32, address: SocketAddr) -> Rig {
        Rig::over(ports, address, None)
    }

    /// Starts a switch with the ports from 1 to `ports`, with TLS if `tls` is given.
    pub fn over(ports: u32, address: SocketAddr, tls: Option<Tls>) -> Rig {
        Rig::admitting(ports, address, tls, None)
    }

    /// Starts a switch whose clients are users of a policy, if there is one.
    pub fn admitting(ports: u32, address: SocketAddr, tls: Option<Tls>, policy: Option<Policy>) -> Rig {
        let config = Config {
            ports: (1..=ports).map(PortId).collect(),
            cpu_port: Some(PortId(CPU_PORT)),
            seed: 1,
            ..Config::default()
        };
        let mut switch = Switch::new(Arc::new(nothing()), config.clone()).expect("the switch runs the program");
        let thread: Arc<OnceLock<Thread>> = Arc::default();
        let (rung, sleeper) = (Arc::new(AtomicBool::new(false)), thread.clone());
        let ring = {
            let rung = rung.clone();
            move || {
                rung.store(true, Ordering::Relaxed);
                sleeper.get().inspect(|thread| thread.unpark());
            }
        };
        let builder = switch_builder(move |program| Switch::new(program, config.clone()));
        let DataPlaneChannels { handle, mut operations, notifier, notifications } =
            DataPlaneChannels::new(builder, Arc::new(ring));
        let server = Server::new(Settings {
            policy: policy.map(Arc::new),
            ..Settings::new(&V1Model, 1..=ports, Some(CPU_PORT))
        });
        let listening =
            p4runtime_server::listen(server, handle, notifications, address, tls).expect("the server listens");
        let shared = Arc::new(Shared::default());
        let here = shared.clone();
        let run = move || {
            thread.set(std::thread::current()).expect("nobody else does");
            let started = Instant::now();
            while !here.stop.load(Ordering::Relaxed) {
                let now = Time::from_ns(started.elapsed().as_nanos() as u64);
                let mut output = Vec::new();
                if rung.swap(false, Ordering::Relaxed)
                    && operations.poll(&mut DataPlane {
                        switch: &mut switch,
                        now,
                        output: &mut output,
                        stop_others: &|| (),
                    })
                {
                    rung.store(true, Ordering::Relaxed);
                }
                let next = here.source.lock().unwrap().as_mut().and_then(|source| source());
                let is_idle = next.is_none();
                if let Some(frame) = next {
                    switch.step(now, &mut vec![frame], &mut output);
                    here.sent.fetch_add(1, Ordering::SeqCst);
                }
                if switch.has_notifications() {
                    let program = switch.program().clone();
                    notifier.send(&program, switch.take_notifications());
                }
                let mut left = here.left.lock().unwrap();
                for frame in output {
                    left.entry(frame.port.0).or_default().push(frame.data);
                }
                drop(left);
                here.rounds.fetch_add(1, Ordering::SeqCst);
                // Yields to other threads, too.
                if is_idle && !rung.load(Ordering::Relaxed) {
                    std::thread::park_timeout(Duration::from_millis(10));
                }
            }
        };
        Rig { _listening: listening, shared, thread: Some(std::thread::spawn(run)) }
    }

    /// Sends packets from this source.
    pub fn feed(&self, source: Source) {
        *self.shared.source.lock().unwrap() = Some(source);
        self.thread.iter().for_each(|thread| thread.thread().unpark());
    }

    /// Ends the source, and waits until the packets sent so far have left.
    pub fn drain(&self) {
        *self.shared.source.lock().unwrap() = None;
        let begin = Instant::now();
        // The round that may have a packet of the source ends with this number or a later one.
        let round = self.shared.rounds.load(Ordering::SeqCst) + 1;
        while self.shared.rounds.load(Ordering::SeqCst) < round {
            assert!(begin.elapsed() < TEST_TIMEOUT, "the packets' thread does not run");
            self.thread.iter().for_each(|thread| thread.thread().unpark());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Number of packets that were sent and have passed the switch.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::SeqCst)
    }

    /// Packets that have left so far, by port.
    pub fn left(&self) -> BTreeMap<u32, Vec<Vec<u8>>> {
        self.shared.left.lock().unwrap().clone()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            thread.join().expect("the packets' thread does not panic");
        }
    }
}
