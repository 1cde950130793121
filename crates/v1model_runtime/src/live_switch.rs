//! The switch of a live lab: in the network of its stores, or with tables in the memory of servers.

use std::ops::{Deref, DerefMut};

use elastic_switch::ElasticSwitch;
use resilient_switch::InBandSwitch;
use switch::{
    CompileJob, CompiledCode, Device, DropReason, Egress, Frame, FrameMut, Notification, PacketSwitch, PortId,
    RowSwitch, SwitchControl, Takeover, Time,
};

/// A switch of a live lab.
pub struct LiveSwitch<S> {
    inner: WrappedSwitch<S>,
}

enum WrappedSwitch<S> {
    InBand(Box<InBandSwitch<S>>),
    Elastic(Box<ElasticSwitch<S>>),
}

/// Evaluates an expression with the switch inside, of either kind.
macro_rules! inside {
    ($kind:expr, $switch:ident => $call:expr) => {
        match $kind {
            WrappedSwitch::InBand($switch) => $call,
            WrappedSwitch::Elastic($switch) => $call,
        }
    };
}

impl<S: RowSwitch> Deref for WrappedSwitch<S> {
    type Target = dyn SwitchControl;

    fn deref(&self) -> &dyn SwitchControl {
        inside!(self, switch => &**switch)
    }
}

impl<S: RowSwitch> DerefMut for WrappedSwitch<S> {
    fn deref_mut(&mut self) -> &mut dyn SwitchControl {
        inside!(self, switch => &mut **switch)
    }
}

impl<S: RowSwitch> From<InBandSwitch<S>> for LiveSwitch<S> {
    fn from(switch: InBandSwitch<S>) -> LiveSwitch<S> {
        LiveSwitch { inner: WrappedSwitch::InBand(Box::new(switch)) }
    }
}

impl<S: RowSwitch> From<ElasticSwitch<S>> for LiveSwitch<S> {
    fn from(switch: ElasticSwitch<S>) -> LiveSwitch<S> {
        LiveSwitch { inner: WrappedSwitch::Elastic(Box::new(switch)) }
    }
}

impl<S: RowSwitch> Device for LiveSwitch<S> {
    fn step(&mut self, now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>) {
        inside!(&mut self.inner, switch => switch.step(now, input, output));
    }

    fn next_event(&self) -> Option<Time> {
        self.inner.next_event()
    }
}

impl<S: RowSwitch> SwitchControl for LiveSwitch<S> {
    switch::forward_control!(inner);

    fn drain(&mut self, now: Time, output: &mut Vec<Frame>) {
        self.inner.drain(now, output);
    }

    /// Exchanges the programs of two switches without resilient state and without memory servers.
    ///
    /// # Panics
    /// If one of them has tables in the memory of servers, or resilient state.
    fn swap_with(&mut self, other: &mut dyn SwitchControl) {
        let other: &mut dyn std::any::Any = other;
        let other: &mut LiveSwitch<S> = other.downcast_mut().expect("switches of different types are not exchanged");
        match (&mut self.inner, &mut other.inner) {
            (WrappedSwitch::InBand(own), WrappedSwitch::InBand(other)) => own.swap_with(&mut **other),
            _ => panic!("a program with tables in the memory of servers is not replaced while it runs"),
        }
    }
}

impl<S: RowSwitch> PacketSwitch for LiveSwitch<S> {
    fn step_in_place<F: FrameMut>(&mut self, now: Time, port: PortId, batch: &mut [F], output: &mut Vec<Egress>) {
        inside!(&mut self.inner, switch => switch.step_in_place(now, port, batch, output));
    }

    fn take_back_sent(&mut self, port: PortId, frames: &[(DropReason, u64)], bytes: u64) {
        inside!(&mut self.inner, switch => switch.take_back_sent(port, frames, bytes));
    }

    fn waiting(&self) -> usize {
        inside!(&self.inner, switch => switch.waiting())
    }

    fn has_notifications(&self) -> bool {
        inside!(&self.inner, switch => switch.has_notifications())
    }

    fn take_notifications(&mut self) -> Vec<Notification> {
        inside!(&mut self.inner, switch => switch.take_notifications())
    }

    /// # Panics
    /// As those of the switch inside.
    fn workers(&mut self, count: u32) -> Vec<LiveSwitch<S>> {
        match &mut self.inner {
            WrappedSwitch::InBand(switch) => switch.workers(count).into_iter().map(LiveSwitch::from).collect(),
            WrappedSwitch::Elastic(switch) => switch.workers(count).into_iter().map(LiveSwitch::from).collect(),
        }
    }

    fn is_clear(&self) -> bool {
        inside!(&self.inner, switch => switch.is_clear())
    }

    fn rest(&mut self) {
        inside!(&mut self.inner, switch => switch.rest());
    }

    fn take_compile_job(&mut self) -> Option<CompileJob> {
        inside!(&mut self.inner, switch => switch.take_compile_job())
    }

    fn install(&mut self, code: CompiledCode) -> Takeover {
        inside!(&mut self.inner, switch => switch.install(code))
    }
}
