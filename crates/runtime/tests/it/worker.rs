//! One worker: forwarding, losses, notifications.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use ir::Program;
use ports::PortError;
use runtime::{Clock, NotificationSink, RunConfig, Worker};
use switch::{Notification, PortId, SwitchControl};

use crate::rig::{Repeater, cable, frame, program, run_while, two_ports};

#[test]
fn one_poll_forwards_a_batch_from_every_port() {
    let (first, first_cable) = cable();
    let (second, second_cable) = cable();
    let mut worker =
        Worker::new(Repeater::new(program("a")), vec![(PortId(1), Box::new(first)), (PortId(2), Box::new(second))]);
    (0..3).for_each(|flow| first_cable.send(&frame(flow, 1)));
    second_cable.send(&frame(9, 2));
    assert_eq!(worker.poll(&Clock::start()), 4);
    let received: Vec<_> = (0..3).filter_map(|_| second_cable.receive()).collect();
    assert_eq!(received, [frame(0, 1), frame(1, 1), frame(2, 1)]);
    assert_eq!(first_cable.receive(), Some(frame(9, 2)));
    assert_eq!(worker.poll(&Clock::start()), 0);
}

#[test]
fn a_run_reports_its_ports_and_returns_the_switch() {
    let (ports, [first, second]) = two_ports();
    let (report, ()) = run_while(RunConfig::new(Repeater::new(program("a")), ports), || {
        for flow in 0..10 {
            first.send(&frame(flow, 1));
            assert_eq!(second.receive(), Some(frame(flow, 1)));
        }
    });
    assert_eq!(report.switch.counts.forwarded.load(Ordering::Relaxed), 10);
    let counts: Vec<_> =
        report.ports.iter().map(|port| (port.id.0, port.stats.rx_packets, port.stats.tx_packets)).collect();
    assert_eq!(counts, [(1, 10, 0), (2, 0, 10)]);
    assert_eq!(report.failures().count(), 0);
}

#[test]
fn a_lost_port_is_reported_once_and_the_other_goes_on() {
    let (ports, [first, second]) = two_ports();
    drop(second);
    let lost = Arc::new(Mutex::new(Vec::new()));
    let losses = Arc::clone(&lost);
    let on_port_loss = Box::new(move |id: PortId, _: &PortError| losses.lock().unwrap().push(id.0));
    let config = RunConfig { on_port_loss, ..RunConfig::new(Repeater::new(program("a")), ports) };
    let (report, ()) = run_while(config, || {
        (0..5).for_each(|flow| first.send(&frame(flow, 1)));
        while lost.lock().unwrap().is_empty() {
            std::thread::yield_now();
        }
    });
    assert_eq!(*lost.lock().unwrap(), [2]);
    assert!(!report.switch.ports().is_up(PortId(2)) && report.switch.ports().is_up(PortId(1)));
    assert_eq!(report.failures().map(|(id, _)| id.0).collect::<Vec<_>>(), [2]);
    // Every frame to the lost port counts as dropped.
    let counts = &report.switch.counts;
    assert_eq!(counts.taken_back.load(Ordering::Relaxed), counts.forwarded.load(Ordering::Relaxed));
}

/// Records the names of the programs that sent notifications.
#[derive(Default)]
struct Recorder(Mutex<Vec<(String, usize)>>);

impl NotificationSink for Recorder {
    fn receive(&self, program: &Arc<Program>, notifications: &[Notification]) {
        self.0.lock().unwrap().push((program.arch.clone(), notifications.len()));
    }
}

#[test]
fn every_sink_receives_notifications_with_their_program() {
    for workers in [1, 2] {
        let sinks = [Arc::new(Recorder::default()), Arc::new(Recorder::default())];
        let (ports, [first, second]) = two_ports();
        let config = RunConfig {
            workers,
            sinks: sinks.iter().map(|sink| Arc::clone(sink) as Arc<dyn NotificationSink>).collect(),
            ..RunConfig::new(Repeater::new(program("a")), ports)
        };
        run_while(config, || {
            first.send(&frame(1, 0xcc));
            assert_eq!(second.receive(), Some(frame(1, 0xcc)));
        });
        for sink in &sinks {
            assert_eq!(*sink.0.lock().unwrap(), [("a".to_owned(), 1)]);
        }
    }
}
