//! Frames, drops, hooks and crashes of a switch whose ports are in memory.

use std::os::fd::RawFd;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;

use lab::Shape;
use lab::sim::Cable;
use ports::{DropReason, PortError, PortStats, Sent};

use super::*;
use crate::ControllerEndpoint;
use crate::test_network::TestNetwork;

/// The behaviour of a [`MemoryPort`] when a frame is sent.
#[derive(Clone, Copy, PartialEq)]
enum Transmit {
    Accept,
    /// Drops the frame, since the device's queue is full.
    Drop,
    /// Drops the frame in the flush.
    DropLater,
    /// Fails for good.
    Fail,
}

/// A driver in memory.
struct MemoryPort {
    transmit: Transmit,
    to_receive: Arc<Mutex<Vec<Vec<u8>>>>,
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
    stats: PortStats,
    unflushed: PortStats,
}

impl Port for MemoryPort {
    fn name(&self) -> &str {
        "memory"
    }

    fn receive(&mut self, batch: &mut Vec<Received>, _: usize) -> Result<usize, PortError> {
        let received = std::mem::take(&mut *self.to_receive.lock().unwrap());
        batch.extend(received.into_iter().map(|data| Received { data, time_ns: None }));
        Ok(batch.len())
    }

    fn send(&mut self, frame: &[u8]) -> Result<Sent, PortError> {
        let dropped = PortStats { tx_queue_full: 1, tx_dropped_bytes: frame.len() as u64, ..PortStats::default() };
        match self.transmit {
            Transmit::Accept => self.sent.lock().unwrap().push(frame.to_vec()),
            Transmit::Drop => {
                self.stats += dropped;
                return Ok(Sent::Dropped(DropReason::QueueFull));
            }
            Transmit::DropLater => self.unflushed += dropped,
            Transmit::Fail => return Err(PortError::Vanished { interface: "memory".to_owned() }),
        }
        Ok(Sent::Sent)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.stats += std::mem::take(&mut self.unflushed);
        Ok(())
    }

    fn poll_fd(&self) -> Option<RawFd> {
        None
    }

    fn stats(&self) -> PortStats {
        self.stats
    }
}

/// A switch whose port 1 has received `received` from another switch, and the frames that its port 2 sent.
struct Rig {
    thread: SwitchThread<TestNetwork>,
    /// The frames that port 1 is to receive.
    to_receive: Arc<Mutex<Vec<Vec<u8>>>>,
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Rig {
    fn new(network: &Arc<TestNetwork>, received: Vec<Vec<u8>>, transmit: Transmit) -> Rig {
        Rig::with_listener(network, None, received, transmit)
    }

    fn with_listener(
        network: &Arc<TestNetwork>,
        listener: Option<ControllerListener<TestNetwork>>,
        received: Vec<Vec<u8>>,
        transmit: Transmit,
    ) -> Rig {
        let sent = Arc::default();
        let port = |number, to_receive, transmit| {
            let (stats, unflushed) = (PortStats::default(), PortStats::default());
            let driver = MemoryPort { transmit, to_receive, sent: Arc::clone(&sent), stats, unflushed };
            let cable = Cable::new(Shape { delay: lab::Delay::default(), ..Shape::default() }, 1, u64::from(number));
            (SwitchPort::new(number, cable, None), Box::new(driver) as Box<dyn Port>)
        };
        let to_receive = Arc::new(Mutex::new(received));
        let ports = vec![port(1, Arc::clone(&to_receive), Transmit::Accept), port(2, Arc::default(), transmit)];
        // No command comes in these tests.
        let (_, commands) = channel();
        let mut thread = SwitchThread::new(
            (Arc::clone(network), 0, 1),
            listener,
            Neighbours::default(),
            ports,
            commands,
            Instant::now(),
        )
        .expect("it needs no kernel");
        thread.start_services();
        Rig { thread, to_receive, sent }
    }

    /// Makes port 1 receive these frames in the next turn.
    fn receive(&self, frames: Vec<Vec<u8>>) {
        *self.to_receive.lock().unwrap() = frames;
    }

    fn counter(&mut self, name: &str) -> u64 {
        let counters = self.thread.status().counters;
        counters.iter().find(|(known, _)| known == name).map_or(0, |(_, value)| *value)
    }
}

fn frame(mark: u8) -> Vec<u8> {
    vec![mark; 60]
}

#[test]
fn a_frame_that_a_port_drops_counts_as_dropped_and_not_as_sent() {
    let network = TestNetwork::new(None);
    for transmit in [Transmit::Accept, Transmit::Drop, Transmit::DropLater] {
        let mut rig = Rig::new(&network, vec![frame(1), frame(2)], transmit);
        rig.thread.handle_due(|| 1_000);
        let counts = ["port.1.rx.packets", "port.2.tx.packets", "port.2.tx.bytes", "drop.tx.device-full"];
        let expected = if transmit == Transmit::Accept { [2, 2, 120, 0] } else { [2, 0, 0, 2] };
        assert_eq!(counts.map(|name| rig.counter(name)), expected);
    }
}

#[test]
fn a_new_driver_of_a_port_counts_from_the_start() {
    let network = TestNetwork::new(None);
    let mut rig = Rig::new(&network, vec![frame(1), frame(2)], Transmit::Drop);
    rig.thread.handle_due(|| 1_000);
    let (stats, unflushed) = (PortStats::default(), PortStats::default());
    let (to_receive, sent) = (Arc::default(), Arc::default());
    let driver = MemoryPort { transmit: Transmit::Drop, to_receive, sent, stats, unflushed };
    rig.thread.drivers.as_mut_slice()[1].replace_driver(Box::new(driver));
    rig.receive(vec![frame(3)]);
    rig.thread.handle_due(|| 2_000);
    assert_eq!(rig.counter("drop.tx.device-full"), 3);
}

#[test]
fn frames_that_arrive_at_a_crashed_switch_are_counted_as_lost() {
    let network = TestNetwork::new(None);
    let mut rig = Rig::new(&network, vec![frame(1)], Transmit::Accept);
    let counts = |rig: &mut Rig| {
        let port = &rig.thread.status().ports[0];
        (port.received, port.lost_while_failed)
    };
    rig.thread.handle_due(|| 1_000);
    assert_eq!(counts(&mut rig), (1, 0));
    rig.thread.carry_out(SwitchCommand::Fail(true));
    rig.receive(vec![frame(2), frame(3)]);
    rig.thread.handle_due(|| 2_000);
    rig.thread.carry_out(SwitchCommand::Fail(false));
    rig.receive(vec![frame(4)]);
    rig.thread.handle_due(|| 3_000);
    assert_eq!(counts(&mut rig), (2, 2), "a restart resets neither");
    assert_eq!(*rig.sent.lock().unwrap(), [frame(1), frame(4)]);
}

#[test]
fn a_port_that_fails_is_down_and_its_frames_count_as_dropped() {
    let network = TestNetwork::new(None);
    let mut rig = Rig::new(&network, vec![frame(1), frame(2)], Transmit::Fail);
    rig.thread.handle_due(|| 1_000);
    assert_eq!([rig.counter("port.2.tx.packets"), rig.counter("drop.tx.device-down")], [0, 2]);
    let is_up = |rig: &Rig| rig.thread.switch.as_ref().is_some_and(|switch| switch.ports().is_up(PortId(2)));
    assert!(!is_up(&rig) && rig.thread.status().ports[1].failure.is_some());
    // Neither its link nor a restart of the switch brings it back.
    let (done, _outcome) = channel();
    rig.thread.carry_out(SwitchCommand::Link { port: 2, up: true, done });
    assert!(!is_up(&rig));
    rig.thread.carry_out(SwitchCommand::Fail(true));
    rig.thread.carry_out(SwitchCommand::Fail(false));
    assert!(!is_up(&rig));
}

#[test]
fn a_hook_beside_p4runtime_has_its_turn_and_injects_frames() {
    let network = TestNetwork::new(Some(frame(7)));
    let endpoint = ControllerEndpoint { address: ([127, 0, 0, 1], 0).into(), device_id: 1 };
    let listener = crate::controller::bind(&endpoint).expect("a port of this machine is free");
    let listener = ControllerListener::new(listener, Arc::clone(&network), 0, 1, endpoint);
    let mut rig = Rig::with_listener(&network, Some(listener), vec![frame(1)], Transmit::Accept);
    assert!(rig.thread.server.is_some(), "{:?}", rig.thread.why);
    assert_eq!(rig.thread.hooks.iter_mut().count(), 2, "that of P4Runtime, and another");

    let begin = Instant::now();
    (0..20).for_each(|_| rig.thread.wait());
    assert!(begin.elapsed() < 10 * MAX_WAIT, "the thread slept while a hook was due");
    rig.thread.handle_due(|| 1_000);
    assert_eq!(network.turns.load(Ordering::Relaxed), 1);
    assert_eq!(*rig.sent.lock().unwrap(), [frame(7), frame(1)], "the injected frame entered after the hook's turn");
    assert_eq!(rig.counter("port.1.rx.packets"), 2);

    rig.thread.carry_out(SwitchCommand::Fail(true));
    rig.thread.handle_due(|| 2_000);
    assert_eq!(network.turns.load(Ordering::Relaxed), 1, "hooks end with a crash");
    rig.thread.carry_out(SwitchCommand::Fail(false));
    rig.thread.handle_due(|| 3_000);
    assert_eq!(network.turns.load(Ordering::Relaxed), 2);
    assert_eq!(rig.sent.lock().unwrap().last(), Some(&frame(7)));
}
