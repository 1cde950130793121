//! Implements the traits of a switch: each method does what the switch inside does, and the protocol's part of it.

use switch::{Device, Egress, Frame, FrameMut, Notification, PacketSwitch, PortId, RowSwitch, SwitchControl, Time};

use crate::ResilientSwitch;
use crate::in_band::{Carried, InBandCarrier};

impl<S: RowSwitch> ResilientSwitch<S> {
    /// Handles a frame if it belongs to the protocol. Returns whether it does.
    fn intercept(&mut self, now: Time, bytes: &[u8], output: &mut Vec<Frame>) -> bool {
        let carried = self.in_band.as_mut().map_or(Carried::Other, |in_band| in_band.carried(now, bytes));
        match carried {
            Carried::Other => return false,
            Carried::Stranger => {}
            Carried::PassOn(port) => output.push(Frame { port, data: bytes.to_vec() }),
            Carried::Messages(from, messages) => {
                self.deliver_all(now, messages.iter().map(|message| (from, message)), output);
                // Those that answer a hello, or have waited for it.
                output.extend(self.in_band.iter_mut().flat_map(InBandCarrier::take_frames));
            }
        }
        true
    }
}

impl<S: RowSwitch> Device for ResilientSwitch<S> {
    fn step(&mut self, now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>) {
        self.begin_step(now, output);
        input.retain(|frame| !self.intercept(now, &frame.data, output));
        self.inner.step(now, input, output);
        self.end_step(now, output);
    }

    fn next_event(&self) -> Option<Time> {
        self.inner.next_event().into_iter().chain(self.next_deadline()).min()
    }
}

impl<S: RowSwitch> PacketSwitch for ResilientSwitch<S> {
    fn step_in_place<F: FrameMut>(&mut self, now: Time, port: PortId, batch: &mut [F], output: &mut Vec<Egress>) {
        let mut made = Vec::new();
        self.begin_step(now, &mut made);
        let mut first = 0;
        while first < batch.len() {
            // Without messages between the frames, the complete batch is the program's.
            let mut count = if self.in_band.is_some() { 0 } else { batch.len() };
            while first + count < batch.len() {
                let (buffer, start) = batch[first + count].headroom();
                if self.intercept(now, &buffer[start..], &mut made) {
                    break;
                }
                count += 1;
            }
            let before = output.len();
            self.inner.step_in_place(now, port, &mut batch[first..first + count], output);
            if first > 0 {
                for egress in &mut output[before..] {
                    if let Egress::InPlace { index, .. } = egress {
                        *index += first;
                    }
                }
            }
            self.end_step(now, &mut made);
            first += count + 1;
        }
        output.extend(made.into_iter().map(Egress::Owned));
    }

    fn has_notifications(&self) -> bool {
        self.inner.has_notifications()
    }

    fn take_notifications(&mut self) -> Vec<Notification> {
        self.inner.take_notifications()
    }

    /// # Panics
    /// Always: one worker runs a switch with resilient state.
    fn workers(&mut self, _: u32) -> Vec<ResilientSwitch<S>> {
        panic!("a switch with resilient state has one worker")
    }

    switch::forward_packets!(inner);
}

impl<S: RowSwitch> SwitchControl for ResilientSwitch<S> {
    switch::forward_control!(inner);

    /// Sends every queued packet, except for those that depend on unacknowledged writes: these continue to wait.
    fn drain(&mut self, now: Time, output: &mut Vec<Frame>) {
        self.inner.drain(now, output);
        self.end_step(now, output);
    }

    /// # Panics
    /// Always: the state of another program has other rows.
    fn swap_with(&mut self, _: &mut dyn SwitchControl) {
        panic!("a program with resilient state is not replaced while it runs")
    }
}
