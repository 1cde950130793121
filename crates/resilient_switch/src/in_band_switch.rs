//! A switch of a network in which the switches themselves carry the protocol's messages between their ports.

use std::any::Any;

use switch::{
    CompileJob, CompiledCode, Device, DropReason, Egress, Frame, FrameMut, Notification, PacketSwitch, PortId,
    RowSwitch, SwitchControl, Takeover, Time,
};

use crate::{InBand, ResilientSwitch};

/// A switch of such a network: with resilient state, or without.
pub struct InBandSwitch<S> {
    inner: Kind<S>,
}

enum Kind<S> {
    /// Messages pass it if it has routes.
    Plain(Box<S>, Option<InBand>),
    Resilient(Box<ResilientSwitch<S>>),
}

/// Evaluates an expression with the switch inside, of either kind.
macro_rules! inside {
    ($kind:expr, $switch:ident => $call:expr) => {
        match $kind {
            Kind::Plain($switch, _) => $call,
            Kind::Resilient($switch) => $call,
        }
    };
}

impl<S: RowSwitch> std::ops::Deref for Kind<S> {
    type Target = dyn SwitchControl;

    fn deref(&self) -> &dyn SwitchControl {
        inside!(self, switch => &**switch)
    }
}

impl<S: RowSwitch> std::ops::DerefMut for Kind<S> {
    fn deref_mut(&mut self) -> &mut dyn SwitchControl {
        inside!(self, switch => &mut **switch)
    }
}

impl<S: RowSwitch> InBandSwitch<S> {
    /// Returns a switch without resilient state. With routes, it forwards messages of others.
    pub fn plain(switch: S, routes: Option<InBand>) -> InBandSwitch<S> {
        InBandSwitch { inner: Kind::Plain(Box::new(switch), routes) }
    }

    /// Returns a switch with resilient state, which carries its messages itself.
    pub fn resilient(switch: ResilientSwitch<S>) -> InBandSwitch<S> {
        InBandSwitch { inner: Kind::Resilient(Box::new(switch)) }
    }
}

impl<S: RowSwitch> Device for InBandSwitch<S> {
    fn step(&mut self, now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>) {
        if let Kind::Plain(_, Some(routes)) = &self.inner {
            input.retain_mut(|frame| match routes.passes_on(&frame.data) {
                Some(port) => {
                    output.push(Frame { port, data: std::mem::take(&mut frame.data) });
                    false
                }
                None => true,
            });
        }
        inside!(&mut self.inner, switch => switch.step(now, input, output));
    }

    fn next_event(&self) -> Option<Time> {
        self.inner.next_event()
    }
}

impl<S: RowSwitch> SwitchControl for InBandSwitch<S> {
    switch::forward_control!(inner);

    fn drain(&mut self, now: Time, output: &mut Vec<Frame>) {
        self.inner.drain(now, output);
    }

    /// Exchanges the programs of two switches without resilient state. Each keeps its routes.
    ///
    /// # Panics
    /// If one of them has resilient state.
    fn swap_with(&mut self, other: &mut dyn SwitchControl) {
        let other: &mut dyn Any = other;
        let other: &mut InBandSwitch<S> = other.downcast_mut().expect("switches of different types are not exchanged");
        match (&mut self.inner, &mut other.inner) {
            (Kind::Plain(own, _), Kind::Plain(other, _)) => std::mem::swap(own, other),
            _ => panic!("a program with resilient state is not replaced while it runs"),
        }
    }
}

impl<S: RowSwitch> PacketSwitch for InBandSwitch<S> {
    fn step_in_place<F: FrameMut>(&mut self, now: Time, port: PortId, batch: &mut [F], output: &mut Vec<Egress>) {
        if !matches!(self.inner, Kind::Plain(_, Some(_))) {
            return inside!(&mut self.inner, switch => switch.step_in_place(now, port, batch, output));
        }
        let owned = |frame: &mut F| {
            let (buffer, start) = frame.headroom();
            Frame { port, data: buffer[start..].to_vec() }
        };
        let (mut input, mut frames) = (batch.iter_mut().map(owned).collect(), Vec::new());
        self.step(now, &mut input, &mut frames);
        output.extend(frames.into_iter().map(Egress::Owned));
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
    /// If the switch has resilient state: it runs on one worker.
    fn workers(&mut self, count: u32) -> Vec<InBandSwitch<S>> {
        match &mut self.inner {
            Kind::Plain(switch, routes) => {
                let workers = switch.workers(count).into_iter();
                workers.map(|worker| InBandSwitch::plain(worker, routes.clone())).collect()
            }
            Kind::Resilient(_) => panic!("a switch with resilient state has one worker"),
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
