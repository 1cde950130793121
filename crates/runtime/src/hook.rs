//! Work beside the packets: hooks that the loop polls between two batches.
//!
//! ```text
//!   loop:   poll hook 0, hook 1, ... ─> poll the ports ─> nothing to do? sleep until a port, a hook's descriptor,
//!                                                         a hook's deadline or the switch's next event
//!   turn:   hook.poll(context) ─> transmit context.output ─> step the switch with context.injected ─> transmit
//! ```
//!
//! A control plane, a metrics exporter, a replication client and a requester of remote memory are all hooks. A hook
//! that releases frames which its switch held back transmits them through [`HookContext::output`]; one that has frames
//! for the program sends them through [`HookContext::injected`].

use std::os::fd::RawFd;
use std::time::Duration;

use switch::{Frame, PacketSwitch, Time};

/// A task that shares the thread of the packets. It has the switch to itself during its turn.
pub trait Hook<S: PacketSwitch>: Send {
    /// Does the work that is due, in bounded time: packets wait meanwhile. The loop calls it between any two batches,
    /// so it must return at once if there is nothing to do. Work that is left makes [`is_due`](Hook::is_due) true.
    fn poll(&mut self, context: &mut HookContext<'_, S>);

    /// Whether there is work now, so the loop must not sleep.
    fn is_due(&self) -> bool {
        false
    }

    /// Notes that the loop has slept since the last turn, so the descriptor may be readable. A hook that reads
    /// its descriptor only now and then while the loop is busy reads it in the next turn.
    fn on_wake(&mut self) {}

    /// Returns a descriptor that is readable when there is work. It wakes a loop that sleeps.
    fn poll_fd(&self) -> Option<RawFd> {
        None
    }

    /// Returns the time at which the hook must be polled next; the loop does not sleep past it. A poll at or after that
    /// time must move or remove the deadline.
    fn next_deadline(&self) -> Option<Time> {
        None
    }
}

/// The data plane as a hook sees it during its turn.
pub struct HookContext<'a, S> {
    /// The time of the run.
    pub now: Time,
    /// The switch. With several workers it is the owner of their switches: writes reach the workers when the turn is
    /// over, or when the hook calls [`publish`](switch::SwitchControl::publish).
    pub switch: &'a mut S,
    /// Frames to transmit. They leave by their port without passing the switch.
    pub output: &'a mut Vec<Frame>,
    /// Frames to process. They enter the switch at their port when the turn is over, as if they had been received
    /// there.
    pub injected: &'a mut Vec<Frame>,
    /// Implements [`quiesce`](HookContext::quiesce).
    pub stop_others: &'a dyn Fn(),
}

impl<S> HookContext<'_, S> {
    /// Waits until no other worker runs packets of this switch. The others stay stopped until the turn is over. A hook
    /// must call this before it replaces the program.
    pub fn quiesce(&self) {
        (self.stop_others)();
    }
}

/// The hooks of a run, in the order in which they are polled.
pub struct HookList<S>(Vec<Box<dyn Hook<S>>>);

impl<S: PacketSwitch> HookList<S> {
    /// Returns the list of these hooks.
    pub fn new(hooks: Vec<Box<dyn Hook<S>>>) -> HookList<S> {
        HookList(hooks)
    }

    /// Whether there is no hook.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the hooks, to poll them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Box<dyn Hook<S>>> {
        self.0.iter_mut()
    }

    /// Calls [`Hook::on_wake`] of all hooks, after the loop has slept.
    pub fn wake(&mut self) {
        self.iter_mut().for_each(|hook| hook.on_wake());
    }

    /// Returns how long the loop may sleep, at most `longest`; zero if a hook has work.
    pub fn sleep_limit(&self, now: Time, longest: Duration) -> Duration {
        if self.0.iter().any(|hook| hook.is_due()) {
            return Duration::ZERO;
        }
        let deadline = self.0.iter().filter_map(|hook| hook.next_deadline()).min();
        deadline.map_or(longest, |deadline| Duration::from_nanos(deadline.since_ns(now)).min(longest))
    }

    /// Returns the descriptors that wake the loop.
    pub fn poll_fds(&self) -> Vec<RawFd> {
        self.0.iter().filter_map(|hook| hook.poll_fd()).collect()
    }
}
