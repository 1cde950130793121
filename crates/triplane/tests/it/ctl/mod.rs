//! `triplane ctl` against a P4Runtime server of this process, over the loopback interface.

mod complete;
mod objects;
mod tables;
mod tls;
mod watch;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::support::{Done, run, triplane};
use compiler::Source;
use p4runtime_server::{DataPlane, DataPlaneChannels, Listening, Pipeline, Server, Settings, Tls};
use switch::{Device, Frame, PortId, Time};
use v1model::{Config, Executor, Switch};

/// A router with three tables.
pub const ROUTER: &str = include_str!("../../../../../examples/router/router.p4");
/// A program with a table and an object of every kind.
pub const EVERY: &str = include_str!("../../../../p4runtime_server/tests/p4/every.p4");

/// A switch with ports 1 to 4 that accepts controllers until this is dropped.
pub struct Router {
    listening: Option<Listening>,
    stop: Arc<AtomicBool>,
    frames: Sender<Frame>,
    packets: Option<JoinHandle<()>>,
}

impl Router {
    /// Starts a switch that runs a program.
    pub fn start(program: &str) -> Router {
        Router::start_with(program, None)
    }

    /// Starts a switch that runs a program, with TLS if `tls` is given.
    pub fn start_with(text: &str, tls: Option<Tls>) -> Router {
        let compiled = compiler::expect_program(&Source::new("program.p4", text), &v1model::V1Model);
        let (program, info) = (Arc::new(compiled.ir), compiled.p4info);
        let ports = (1..=4).map(PortId).collect();
        let config = Config { ports, executor: Executor::Interpreter, ..Config::default() };
        let mut switch = Switch::new(program.clone(), config.clone()).expect("the switch runs it");
        let pipeline = Pipeline::new(program, info, text.into());
        let server = Server::new(Settings::new(&v1model::V1Model, 1..=4, Some(510))).with_pipeline(pipeline, &switch);
        let builder = move |program| Switch::new(program, config.clone());
        let DataPlaneChannels { handle, mut operations, notifier, notifications } =
            DataPlaneChannels::new(p4runtime_server::switch_builder(builder), Arc::new(|| {}));
        let listening = p4runtime_server::listen(server, handle, notifications, "127.0.0.1:0".parse().unwrap(), tls);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let (frames, arriving) = channel();
        let packets = std::thread::spawn(move || {
            let (started, mut output) = (Instant::now(), Vec::new());
            while !stopped.load(Ordering::Relaxed) {
                let now = Time::from_ns(started.elapsed().as_nanos() as u64);
                operations.poll(&mut DataPlane { switch: &mut switch, now, output: &mut output, stop_others: &|| () });
                switch.step(now, &mut arriving.try_iter().collect(), &mut output);
                output.clear();
                if switch.has_notifications() {
                    let told = switch.take_notifications();
                    notifier.send(switch.program(), told);
                }
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        Router { listening: Some(listening.expect("there is a port")), stop, frames, packets: Some(packets) }
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.listening.as_ref().expect("it listens").address()
    }

    /// Receives a frame on a port of the switch.
    pub fn receive(&self, port: u32, data: Vec<u8>) {
        self.frames.send(Frame { port: PortId(port), data }).expect("packets run");
    }

    /// Runs `triplane ctl` with these words.
    pub fn ctl(&self, words: &[&str]) -> Done {
        let address = self.address().to_string();
        run(&mut triplane(&[&["ctl", "--addr", &address], words].concat()))
    }

    /// Runs `triplane ctl`, which must succeed, and returns its standard output.
    #[track_caller]
    pub fn says(&self, words: &[&str]) -> String {
        self.ctl(words).ok().stdout
    }

    /// Runs `triplane ctl`, which must be refused with all of these messages.
    #[track_caller]
    pub fn refused(&self, words: &[&str], said: &[&str]) {
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
