//! A switch of a network in which the switches themselves carry the protocol's messages between their ports.

use std::any::Any;

use switch::{
    Device, Egress, EitherSwitch, Frame, FrameMut, Notification, PacketSwitch, PortId, RowSwitch, SwitchControl, Time,
};

use crate::{InBand, ResilientSwitch};

/// A switch of such a network: with resilient state, or without.
pub struct InBandSwitch<S> {
    inner: EitherSwitch<S, ResilientSwitch<S>>,
    /// The routes by which messages pass a switch without resilient state, if it has any.
    routes: Option<InBand>,
}

impl<S: RowSwitch> InBandSwitch<S> {
    /// Returns a switch without resilient state. With routes, it forwards messages of others.
    pub fn plain(switch: S, routes: Option<InBand>) -> InBandSwitch<S> {
        InBandSwitch { inner: EitherSwitch::first(switch), routes }
    }

    /// Returns a switch with resilient state, which carries its messages itself.
    pub fn resilient(switch: ResilientSwitch<S>) -> InBandSwitch<S> {
        InBandSwitch { inner: EitherSwitch::second(switch), routes: None }
    }
}

impl<S> InBandSwitch<S> {
    /// Returns the switch inside, if it has no resilient state and carries no messages of others.
    pub fn as_plain(&self) -> Option<&S> {
        self.inner.as_first().filter(|_| self.routes.is_none())
    }

    /// Returns the switch inside, if it has no resilient state and carries no messages of others.
    pub fn as_plain_mut(&mut self) -> Option<&mut S> {
        self.inner.as_first_mut().filter(|_| self.routes.is_none())
    }
}

impl<S: RowSwitch> Device for InBandSwitch<S> {
    fn step(&mut self, now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>) {
        if let Some(routes) = &self.routes {
            input.retain_mut(|frame| match routes.passes_on(&frame.data) {
                Some(port) => {
                    output.push(Frame { port, data: std::mem::take(&mut frame.data) });
                    false
                }
                None => true,
            });
        }
        self.inner.step(now, input, output);
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
        assert!(
            self.inner.is_first() && other.inner.is_first(),
            "a program with resilient state is not replaced while it runs"
        );
        self.inner.swap_with(&mut other.inner);
    }
}

impl<S: RowSwitch> PacketSwitch for InBandSwitch<S> {
    fn step_in_place<F: FrameMut>(&mut self, now: Time, port: PortId, batch: &mut [F], output: &mut Vec<Egress>) {
        if self.routes.is_none() {
            return self.inner.step_in_place(now, port, batch, output);
        }
        let owned = |frame: &mut F| {
            let (buffer, start) = frame.headroom();
            Frame { port, data: buffer[start..].to_vec() }
        };
        let (mut input, mut frames) = (batch.iter_mut().map(owned).collect(), Vec::new());
        self.step(now, &mut input, &mut frames);
        output.extend(frames.into_iter().map(Egress::Owned));
    }

    fn has_notifications(&self) -> bool {
        self.inner.has_notifications()
    }

    fn take_notifications(&mut self) -> Vec<Notification> {
        self.inner.take_notifications()
    }

    /// # Panics
    /// If the switch has resilient state: it runs on one worker.
    fn workers(&mut self, count: u32) -> Vec<InBandSwitch<S>> {
        let workers = self.inner.workers(count).into_iter();
        workers.map(|inner| InBandSwitch { inner, routes: self.routes.clone() }).collect()
    }

    switch::forward_packets!(inner);
}
