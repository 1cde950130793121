//! A wrapper around a switch is a switch: the same worker and pool drive it.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use runtime::{Hook, HookContext, RunConfig};
use switch::{Device, Egress, Frame, FrameMut, Notification, PacketSwitch, PortId, SwitchControl, Time};

use crate::rig::{Repeater, frame, program, run_while, two_ports};

/// Frames whose byte 12 has this value are held back on their way out.
const HELD: u8 = 0xbb;

/// Counts the frames that leave the switch inside, and holds some back until a hook releases them. Workers share both.
struct Holding<S> {
    inner: S,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    left: AtomicU64,
    held: Mutex<Vec<Frame>>,
}

impl<S> Holding<S> {
    fn new(inner: S) -> Holding<S> {
        Holding { inner, shared: Arc::default() }
    }

    /// Returns whether a frame may leave now; keeps a copy if not.
    fn may_leave(&self, port: PortId, bytes: &[u8]) -> bool {
        self.shared.left.fetch_add(1, Ordering::Relaxed);
        if bytes[12] != HELD {
            return true;
        }
        self.shared.held.lock().unwrap().push(Frame { port, data: bytes.to_vec() });
        false
    }
}

impl<S: PacketSwitch> Device for Holding<S> {
    fn step(&mut self, now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>) {
        let mut inner = Vec::new();
        self.inner.step(now, input, &mut inner);
        output.extend(inner.into_iter().filter(|frame| self.may_leave(frame.port, &frame.data)));
    }

    fn next_event(&self) -> Option<Time> {
        self.inner.next_event()
    }
}

impl<S: PacketSwitch> PacketSwitch for Holding<S> {
    fn step_in_place<F: FrameMut>(&mut self, now: Time, port: PortId, batch: &mut [F], output: &mut Vec<Egress>) {
        let start = output.len();
        self.inner.step_in_place(now, port, batch, output);
        for egress in output.split_off(start) {
            let may_leave = match &egress {
                Egress::InPlace { index, port } => {
                    let (buffer, start) = batch[*index].headroom();
                    self.may_leave(*port, &buffer[start..])
                }
                Egress::Owned(frame) => self.may_leave(frame.port, &frame.data),
            };
            if may_leave {
                output.push(egress);
            }
        }
    }

    fn has_notifications(&self) -> bool {
        self.inner.has_notifications()
    }

    fn take_notifications(&mut self) -> Vec<Notification> {
        self.inner.take_notifications()
    }

    fn workers(&mut self, count: u32) -> Vec<Holding<S>> {
        let shared = &self.shared;
        self.inner.workers(count).into_iter().map(|inner| Holding { inner, shared: Arc::clone(shared) }).collect()
    }

    switch::forward_packets!(inner);
}

impl<S: PacketSwitch> SwitchControl for Holding<S> {
    switch::forward_control!(inner);

    fn drain(&mut self, now: Time, output: &mut Vec<Frame>) {
        self.inner.drain(now, output);
    }

    /// Exchanges the switches inside; the held frames stay.
    fn swap_with(&mut self, other: &mut dyn SwitchControl) {
        let other: &mut dyn Any = other;
        match other.downcast_mut::<Holding<S>>() {
            Some(other) => self.inner.swap_with(&mut other.inner),
            None => self.inner.swap_with(other.downcast_mut::<S>().expect("a switch of the type inside")),
        }
    }
}

/// Releases the held frames once there are `wanted` of them, and replaces the program before.
struct Releaser {
    wanted: usize,
}

impl Hook<Holding<Repeater>> for Releaser {
    fn poll(&mut self, context: &mut HookContext<'_, Holding<Repeater>>) {
        if context.switch.shared.held.lock().unwrap().len() < self.wanted {
            return;
        }
        context.quiesce();
        context.switch.swap_with(&mut Repeater::new(program("next")));
        context.output.append(&mut context.switch.shared.held.lock().unwrap());
    }

    fn is_due(&self) -> bool {
        true
    }
}

#[test]
fn a_wrapper_holds_frames_of_one_worker_or_several_until_a_hook_releases_them() {
    for workers in [1, 2] {
        let (ports, [first, second]) = two_ports();
        let hooks: Vec<Box<dyn Hook<_>>> = vec![Box::new(Releaser { wanted: 4 })];
        let switch = Holding::new(Repeater::new(program("first")));
        let config = RunConfig { workers, hooks, ..RunConfig::new(switch, ports) };
        let (report, ()) = run_while(config, || {
            (0..3).for_each(|flow| first.send(&frame(flow, HELD)));
            first.send(&frame(3, 1));
            assert_eq!(second.receive(), Some(frame(3, 1)), "only this one is not held");
            assert!(second.is_empty());
            first.send(&frame(4, HELD));
            let mut released: Vec<_> = (0..4).filter_map(|_| second.receive()).collect();
            released.sort();
            assert_eq!(released, [0, 1, 2, 4].map(|flow| frame(flow, HELD)));
            first.send(&frame(5, 1));
            assert_eq!(second.receive(), Some(frame(5, 1)), "the next program forwards");
        });
        assert_eq!(report.switch.shared.left.load(Ordering::Relaxed), 6);
        assert_eq!(report.switch.program().arch, "next");
    }
}
