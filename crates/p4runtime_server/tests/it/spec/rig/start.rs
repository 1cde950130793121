//! The packet thread, and the server in front of it.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ir::Program;
use p4runtime_server::{DataPlane, DataPlaneChannels, Server, Settings, listen, switch_builder};
use switch::{Device, Frame, PortId, Time};
use v1model::{Config, Executor, Switch};

use super::{EVERY, Sent, compile};

/// Starts both. They stop when the rig's sender of frames is dropped.
pub fn start(input: Receiver<Frame>, output: Sender<Sent>) -> SocketAddr {
    static PROGRAM: OnceLock<Arc<Program>> = OnceLock::new();
    let ports = (1..=4).map(PortId).collect();
    // The server is under test; generating machine code would only cost time.
    let config = Config { ports, executor: Executor::Interpreter, ..Config::default() };
    let program = PROGRAM.get_or_init(|| Arc::new(compile(EVERY).expect("the program is right").0)).clone();
    let mut switch = Switch::new(program, config.clone()).expect("the switch runs the program");

    let builder = move |program| Switch::new(program, config.clone());
    // The thread below polls, so nobody has to wake it.
    let DataPlaneChannels { handle, mut operations, notifier, notifications } =
        DataPlaneChannels::new(switch_builder(builder), Arc::new(|| {}));
    let server = Server::new(Settings::new(&v1model::V1Model, 1..=4, Some(510)));
    let listening =
        listen(server, handle, notifications, "127.0.0.1:0".parse().unwrap(), None).expect("the server listens");
    let address = listening.address();

    std::thread::spawn(move || {
        let _listening = listening;
        let started = Instant::now();
        loop {
            let received = match input.recv_timeout(Duration::from_micros(200)) {
                Ok(frame) => Some(frame),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let now = Time::from_ns(started.elapsed().as_nanos() as u64);
            let done = received.is_some();
            let (mut frames, mut sent): (Vec<Frame>, Vec<Frame>) = (received.into_iter().collect(), Vec::new());
            operations.poll(&mut DataPlane { switch: &mut switch, now, output: &mut sent, stop_others: &|| () });
            switch.step(now, &mut frames, &mut sent);
            if switch.has_notifications() {
                let program = switch.program().clone();
                notifier.send(&program, switch.take_notifications());
            }
            let events = sent.into_iter().map(Sent::Frame).chain(done.then_some(Sent::Done));
            if events.map(|event| output.send(event)).any(|result| result.is_err()) {
                return;
            }
        }
    });
    address
}
