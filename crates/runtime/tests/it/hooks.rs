//! Hooks: order, wake-ups, bounded turns, frames, with one worker and with several.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use runtime::{Hook, HookContext, RunConfig, Waker};
use switch::{Frame, PortId, Time};

use crate::rig::{Repeater, frame, program, run_while, two_ports};

/// Minimum time between two polls of an idle loop, which sleeps for 100 ms before it looks at the stop flag again. A
/// hook that is polled earlier had work, a deadline or a readable descriptor.
const IDLE_SLEEP_NS: u64 = 90_000_000;

fn wait_until(condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() && begin.elapsed() < crate::rig::TEST_TIMEOUT {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(condition());
}

/// Runs a repeater with hooks and idle ports while `body` runs.
fn run_idle(workers: usize, hooks: Vec<Box<dyn Hook<Repeater>>>, body: impl FnOnce()) {
    let (ports, _cables) = two_ports();
    run_while(RunConfig { workers, hooks, ..RunConfig::new(Repeater::new(program("a")), ports) }, body);
}

/// Appends its number and the time to a list at each poll, which is due for `left` polls.
struct Numbered {
    number: u32,
    left: u32,
    polled: Arc<Mutex<Vec<(u32, Time)>>>,
}

impl Hook<Repeater> for Numbered {
    fn poll(&mut self, context: &mut HookContext<'_, Repeater>) {
        if self.left > 0 {
            self.left -= 1;
            self.polled.lock().unwrap().push((self.number, context.now));
        }
    }

    fn is_due(&self) -> bool {
        self.left > 0
    }
}

#[test]
fn hooks_are_polled_in_order_and_as_long_as_one_is_due() {
    for workers in [1, 2] {
        let polled = Arc::new(Mutex::new(Vec::new()));
        let hook = |number, left| Box::new(Numbered { number, left, polled: Arc::clone(&polled) }) as Box<dyn Hook<_>>;
        run_idle(workers, vec![hook(0, 50), hook(1, 2), hook(2, 50)], || {
            wait_until(|| polled.lock().unwrap().len() == 102);
        });
        let polled = polled.lock().unwrap();
        let numbers: Vec<_> = polled.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers[..8], [0, 1, 2, 0, 1, 2, 0, 2]);
        let times: Vec<_> = polled.iter().filter(|(number, _)| *number == 0).map(|(_, now)| *now).collect();
        let awake = times.windows(2).filter(|pair| pair[1] < pair[0].after_ns(IDLE_SLEEP_NS)).count();
        assert!(awake > 25, "the loop slept while a hook was due, except {awake} times");
    }
}

/// Has a deadline every 5 ms. Counts the polls that an idle loop would make later.
struct Periodic {
    next: Time,
    polls: Arc<AtomicU32>,
}

impl Hook<Repeater> for Periodic {
    fn poll(&mut self, context: &mut HookContext<'_, Repeater>) {
        if context.now >= self.next {
            // An idle loop would sleep until 95 ms after the deadline.
            if context.now < self.next.after_ns(IDLE_SLEEP_NS) {
                self.polls.fetch_add(1, Ordering::Relaxed);
            }
            self.next = context.now.after_ns(5_000_000);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        Some(self.next)
    }
}

#[test]
fn a_deadline_wakes_the_loop() {
    for workers in [1, 2] {
        let polls = Arc::new(AtomicU32::new(0));
        let hook = Periodic { next: Time::ZERO, polls: Arc::clone(&polls) };
        run_idle(workers, vec![Box::new(hook)], || wait_until(|| polls.load(Ordering::Relaxed) >= 40));
    }
}

/// Counts its wake-ups, and those of them to which an idle loop would have come later.
struct Wakeable {
    waker: Waker,
    wakes: Arc<AtomicU32>,
    early_wakes: Arc<AtomicU32>,
    last_poll: Time,
}

impl Hook<Repeater> for Wakeable {
    fn poll(&mut self, context: &mut HookContext<'_, Repeater>) {
        if self.waker.take_wake() {
            if context.now < self.last_poll.after_ns(IDLE_SLEEP_NS) {
                self.early_wakes.fetch_add(1, Ordering::Relaxed);
            }
            self.wakes.fetch_add(1, Ordering::Relaxed);
        }
        self.last_poll = context.now;
    }

    fn is_due(&self) -> bool {
        !self.waker.is_armed()
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.waker.fd())
    }
}

#[test]
fn the_descriptor_of_any_hook_wakes_the_loop() {
    for workers in [1, 2] {
        let (mut hooks, mut ends) = (Vec::<Box<dyn Hook<_>>>::new(), Vec::new());
        for _ in 0..2 {
            let waker = Waker::new().unwrap();
            let (wakes, early_wakes) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
            waker.arm();
            hooks.push(Box::new(Wakeable {
                waker: waker.clone(),
                wakes: Arc::clone(&wakes),
                early_wakes: Arc::clone(&early_wakes),
                last_poll: Time::ZERO,
            }));
            ends.push((waker, wakes, early_wakes));
        }
        // A busy machine may delay rounds by more than the sleep of an idle loop.
        run_idle(workers, hooks, || {
            for round in 1..=100 {
                for (waker, wakes, _) in &ends {
                    // The loop is usually asleep by now.
                    std::thread::sleep(Duration::from_millis(2));
                    waker.wake();
                    wait_until(|| wakes.load(Ordering::Relaxed) == round);
                }
                if ends.iter().all(|(_, _, early_wakes)| early_wakes.load(Ordering::Relaxed) >= 20) {
                    return;
                }
            }
            panic!("descriptors do not wake the loop");
        });
    }
}

/// Has work until the switch has forwarded 20 frames. Records the different numbers of forwarded frames that it saw at
/// its turns.
struct LongJob {
    forwarded: Arc<Mutex<Vec<u64>>>,
}

impl Hook<Repeater> for LongJob {
    fn poll(&mut self, context: &mut HookContext<'_, Repeater>) {
        let forwarded = context.switch.counts.forwarded.load(Ordering::Relaxed);
        let mut seen = self.forwarded.lock().unwrap();
        if seen.last() != Some(&forwarded) {
            seen.push(forwarded);
        }
    }

    fn is_due(&self) -> bool {
        self.forwarded.lock().unwrap().last().is_none_or(|forwarded| *forwarded < 20)
    }
}

#[test]
fn packets_pass_between_the_turns_of_a_long_job() {
    let forwarded = Arc::new(Mutex::new(Vec::new()));
    let (ports, [first, second]) = two_ports();
    let hook = LongJob { forwarded: Arc::clone(&forwarded) };
    let config = RunConfig { hooks: vec![Box::new(hook)], ..RunConfig::new(Repeater::new(program("a")), ports) };
    run_while(config, || {
        for flow in 0..20 {
            first.send(&frame(flow, 1));
            assert_eq!(second.receive(), Some(frame(flow, 1)), "packets starve");
        }
    });
    let forwarded = forwarded.lock().unwrap();
    assert!(forwarded.len() > 10, "the job was interrupted only {} times", forwarded.len());
}

/// Transmits one frame and injects another, once.
struct Sender(bool);

impl Hook<Repeater> for Sender {
    fn poll(&mut self, context: &mut HookContext<'_, Repeater>) {
        if !std::mem::replace(&mut self.0, true) {
            context.injected.push(Frame { port: PortId(1), data: frame(1, 0xa1) });
            context.output.push(Frame { port: PortId(2), data: frame(2, 0xa2) });
        }
    }
}

#[test]
fn injected_frames_pass_the_switch_after_transmitted_ones_have_left() {
    for workers in [1, 2] {
        let (ports, [first, second]) = two_ports();
        let hooks: Vec<Box<dyn Hook<_>>> = vec![Box::new(Sender(false))];
        let config = RunConfig { workers, hooks, ..RunConfig::new(Repeater::new(program("a")), ports) };
        let (report, ()) = run_while(config, || {
            assert_eq!(second.receive(), Some(frame(2, 0xa2)));
            assert_eq!(second.receive(), Some(frame(1, 0xa1)));
        });
        assert!(first.is_empty());
        let passed: Vec<_> = report.switch.times.iter().map(|(_, mark)| *mark).collect();
        assert_eq!(passed, [0xa1], "only the injected frame passed the switch");
    }
}

/// Stops the run from inside.
struct Stopper(Arc<AtomicBool>);

impl Hook<Repeater> for Stopper {
    fn poll(&mut self, _: &mut HookContext<'_, Repeater>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_run_ends_when_its_flag_is_set() {
    for workers in [1, 2] {
        let stop = Arc::new(AtomicBool::new(false));
        let (ports, _cables) = two_ports();
        let hooks: Vec<Box<dyn Hook<_>>> = vec![Box::new(Stopper(Arc::clone(&stop)))];
        let config = RunConfig { workers, hooks, ..RunConfig::new(Repeater::new(program("a")), ports) };
        config.run_live(&stop).unwrap();
    }
}
