//! A switch of one of two kinds.

use std::any::Any;
use std::ops::{Deref, DerefMut};

use crate::{
    CompileJob, CompiledCode, Device, DropReason, Egress, Frame, FrameMut, Notification, PacketSwitch, PortId,
    SwitchControl, Takeover, Time,
};

/// A switch of one of two kinds, which is chosen when it is created. A packet costs one branch more.
pub struct EitherSwitch<A, B> {
    inner: Kind<A, B>,
}

enum Kind<A, B> {
    First(Box<A>),
    Second(Box<B>),
}

/// Evaluates an expression with the switch inside, of either kind.
macro_rules! inside {
    ($kind:expr, $switch:ident => $call:expr) => {
        match $kind {
            Kind::First($switch) => $call,
            Kind::Second($switch) => $call,
        }
    };
}

impl<A, B> EitherSwitch<A, B> {
    /// Creates a switch of the first kind.
    pub fn first(switch: A) -> EitherSwitch<A, B> {
        EitherSwitch { inner: Kind::First(Box::new(switch)) }
    }

    /// Creates a switch of the second kind.
    pub fn second(switch: B) -> EitherSwitch<A, B> {
        EitherSwitch { inner: Kind::Second(Box::new(switch)) }
    }

    /// Returns the switch inside, if it is of the first kind.
    pub fn as_first(&self) -> Option<&A> {
        match &self.inner {
            Kind::First(switch) => Some(switch),
            Kind::Second(_) => None,
        }
    }

    /// Returns the switch inside, if it is of the first kind.
    pub fn as_first_mut(&mut self) -> Option<&mut A> {
        match &mut self.inner {
            Kind::First(switch) => Some(switch),
            Kind::Second(_) => None,
        }
    }

    /// Whether the switch is of the first kind.
    pub fn is_first(&self) -> bool {
        matches!(self.inner, Kind::First(_))
    }
}

impl<A: SwitchControl, B: SwitchControl> Deref for Kind<A, B> {
    type Target = dyn SwitchControl;

    fn deref(&self) -> &dyn SwitchControl {
        inside!(self, switch => &**switch)
    }
}

impl<A: SwitchControl, B: SwitchControl> DerefMut for Kind<A, B> {
    fn deref_mut(&mut self) -> &mut dyn SwitchControl {
        inside!(self, switch => &mut **switch)
    }
}

impl<A: PacketSwitch, B: PacketSwitch> Device for EitherSwitch<A, B> {
    fn step(&mut self, now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>) {
        inside!(&mut self.inner, switch => switch.step(now, input, output));
    }

    fn next_event(&self) -> Option<Time> {
        self.inner.next_event()
    }
}

impl<A: PacketSwitch, B: PacketSwitch> SwitchControl for EitherSwitch<A, B> {
    crate::forward_control!(inner);

    fn drain(&mut self, now: Time, output: &mut Vec<Frame>) {
        self.inner.drain(now, output);
    }

    /// # Panics
    /// As those of the switches inside, and if these are of different kinds.
    fn swap_with(&mut self, other: &mut dyn SwitchControl) {
        let other: &mut dyn Any = other;
        let other: &mut EitherSwitch<A, B> =
            other.downcast_mut().expect("switches of different types are not exchanged");
        match (&mut self.inner, &mut other.inner) {
            (Kind::First(own), Kind::First(other)) => own.swap_with(&mut **other),
            (Kind::Second(own), Kind::Second(other)) => own.swap_with(&mut **other),
            _ => panic!("switches of different kinds are not exchanged"),
        }
    }
}

impl<A: PacketSwitch, B: PacketSwitch> PacketSwitch for EitherSwitch<A, B> {
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

    fn workers(&mut self, count: u32) -> Vec<EitherSwitch<A, B>> {
        match &mut self.inner {
            Kind::First(switch) => switch.workers(count).into_iter().map(EitherSwitch::first).collect(),
            Kind::Second(switch) => switch.workers(count).into_iter().map(EitherSwitch::second).collect(),
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
