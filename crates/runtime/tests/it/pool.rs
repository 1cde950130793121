//! Several workers: shared drivers, a hook that replaces the program, and the end of a run.

use std::os::fd::RawFd;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use ports::{Port, PortError, PortStats, Received, Sent};
use runtime::{Hook, HookContext, PortDrivers, RunConfig, RunReport};
use switch::{PortId, SwitchControl};

use crate::rig::{FATAL, Repeater, cable, frame, program, run_while, two_ports};

#[test]
fn workers_share_drivers_and_no_frame_is_lost() {
    for workers in [2, 3] {
        let (ports, [first, second]) = two_ports();
        let (report, ()) =
            run_while(RunConfig { workers, ..RunConfig::new(Repeater::new(program("a")), ports) }, || {
                for flow in 0..200 {
                    first.send(&frame(flow, 1));
                    assert_eq!(second.receive(), Some(frame(flow, 1)));
                    second.send(&frame(flow, 2));
                    assert_eq!(first.receive(), Some(frame(flow, 2)));
                }
            });
        assert_eq!(report.switch.counts.forwarded.load(Ordering::Relaxed), 400);
        let received: Vec<_> = report.ports.iter().map(|port| port.stats.rx_packets).collect();
        assert_eq!(received, [200, 200]);
    }
}

#[test]
fn workers_with_a_driver_each_receive_by_their_own() {
    let (mut ports, mut cables) = (Vec::new(), Vec::new());
    for id in [1, 2] {
        let (drivers, ends): (Vec<_>, Vec<_>) = (0..2).map(|_| cable()).unzip();
        let drivers = drivers.into_iter().map(|driver| Box::new(driver) as Box<dyn ports::Port>).collect();
        ports.push(PortDrivers { id: PortId(id), drivers });
        cables.push(ends);
    }
    let (report, ()) =
        run_while(RunConfig { workers: 2, ..RunConfig::new(Repeater::new(program("a")), ports) }, || {
            for (input, output) in cables[0].iter().zip(&cables[1]) {
                input.send(&frame(7, 1));
                assert_eq!(output.receive(), Some(frame(7, 1)), "it leaves by the same worker's driver");
            }
        });
    let received: Vec<_> = report.ports.iter().map(|port| (port.stats.rx_packets, port.stats.tx_packets)).collect();
    assert_eq!(received, [(2, 0), (0, 2)]);
}

/// Replaces the program again and again. `overlaps` counts the batches that ran while the workers were stopped.
struct Replacer {
    replaced: Arc<AtomicU32>,
    overlaps: Arc<AtomicU32>,
}

impl Hook<Repeater> for Replacer {
    fn poll(&mut self, context: &mut HookContext<'_, Repeater>) {
        context.quiesce();
        let counts = Arc::clone(&context.switch.counts);
        let before = counts.forwarded.load(Ordering::SeqCst);
        let mut next = Repeater::new(program("next"));
        next.counts = Arc::clone(&counts);
        context.switch.swap_with(&mut next);
        std::thread::sleep(std::time::Duration::from_micros(200));
        let still_running = counts.running.load(Ordering::SeqCst);
        if still_running > 0 || counts.forwarded.load(Ordering::SeqCst) != before {
            self.overlaps.fetch_add(1, Ordering::Relaxed);
        }
        self.replaced.fetch_add(1, Ordering::Relaxed);
    }

    fn is_due(&self) -> bool {
        true
    }
}

#[test]
fn no_packet_runs_while_a_hook_replaces_the_program() {
    let (replaced, overlaps) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (ports, [first, second]) = two_ports();
    let hook = Replacer { replaced: Arc::clone(&replaced), overlaps: Arc::clone(&overlaps) };
    let hooks: Vec<Box<dyn Hook<_>>> = vec![Box::new(hook)];
    let (report, ()) =
        run_while(RunConfig { workers: 2, hooks, ..RunConfig::new(Repeater::new(program("first")), ports) }, || {
            for flow in 0..=u16::MAX {
                first.send(&frame(flow, 1));
                assert_eq!(second.receive(), Some(frame(flow, 1)), "a replacement loses no frame");
                if flow >= 100 && replaced.load(Ordering::Relaxed) > 10 {
                    break;
                }
            }
        });
    assert!(replaced.load(Ordering::Relaxed) > 10);
    assert_eq!(overlaps.load(Ordering::Relaxed), 0);
    assert_eq!(report.switch.program().arch, "next");
}

/// A driver that is lost at the second receive.
struct Failing {
    receives: u32,
}

impl Port for Failing {
    fn name(&self) -> &str {
        "failing"
    }

    fn receive(&mut self, _: &mut Vec<Received>, _: usize) -> Result<usize, PortError> {
        self.receives += 1;
        if self.receives < 2 { Ok(0) } else { Err(PortError::Vanished { interface: "failing".to_owned() }) }
    }

    fn send(&mut self, _: &[u8]) -> Result<Sent, PortError> {
        Ok(Sent::Sent)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    fn poll_fd(&self) -> Option<RawFd> {
        None
    }

    fn stats(&self) -> PortStats {
        PortStats::default()
    }
}

/// Runs a repeater with two workers and without a limit until it ends by itself. Returns `None` if it panicked.
fn run_to_end(ports: Vec<PortDrivers>, hooks: Vec<Box<dyn Hook<Repeater>>>) -> Option<RunReport<Repeater>> {
    let (sender, ended) = channel();
    std::thread::spawn(move || {
        let config = RunConfig { workers: 2, hooks, ..RunConfig::new(Repeater::new(program("a")), ports) };
        let run = AssertUnwindSafe(|| config.run_live(&AtomicBool::new(false)).unwrap());
        let _ = sender.send(std::panic::catch_unwind(run).ok());
    });
    ended.recv_timeout(Duration::from_secs(60)).expect("the run ends")
}

#[test]
fn a_run_whose_ports_are_all_lost_ends() {
    let ports = [1, 2].map(|id| PortDrivers::single(PortId(id), Failing { receives: 0 }));
    let report = run_to_end(ports.into(), Vec::new()).expect("nothing panics");
    assert_eq!(report.failures().map(|(id, _)| id.0).collect::<Vec<_>>(), [1, 2]);
}

/// Stops the workers and panics.
struct Panicking;

impl Hook<Repeater> for Panicking {
    fn poll(&mut self, context: &mut HookContext<'_, Repeater>) {
        context.quiesce();
        panic!("a hook panics");
    }
}

#[test]
fn a_run_ends_when_a_hook_panics() {
    let (ports, _cables) = two_ports();
    assert!(run_to_end(ports, vec![Box::new(Panicking)]).is_none());
}

#[test]
fn a_run_ends_when_a_worker_panics() {
    let (ports, [first, _second]) = two_ports();
    first.send(&frame(1, FATAL));
    assert!(run_to_end(ports, Vec::new()).is_none());
}
