//! Implements the traits of a switch: each method does what the switch inside does, and the wrapper's part of it.

use switch::{Device, Egress, Frame, FrameMut, Notification, PacketSwitch, PortId, RowSwitch, SwitchControl, Time};

use crate::ElasticSwitch;

impl<S: RowSwitch> Device for ElasticSwitch<S> {
    fn step(&mut self, now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>) {
        let before = input.len();
        input.retain(|frame| !self.take(now, frame.port, &frame.data));
        let has_answers = input.len() < before;
        self.begin_step(now, output);
        self.inner.step(now, input, output);
        self.end_step(now, has_answers, output);
    }

    fn next_event(&self) -> Option<Time> {
        self.inner.next_event().into_iter().chain(self.next_deadline()).min()
    }
}

impl<S: RowSwitch> PacketSwitch for ElasticSwitch<S> {
    fn step_in_place<F: FrameMut>(&mut self, now: Time, port: PortId, batch: &mut [F], output: &mut Vec<Egress>) {
        let mut is_taken = |frame: &mut F| {
            let (buffer, start) = frame.headroom();
            self.take(now, port, &buffer[start..])
        };
        let taken: Vec<usize> = (0..batch.len()).filter(|index| is_taken(&mut batch[*index])).collect();
        let mut made = Vec::new();
        self.begin_step(now, &mut made);
        let mut first = 0;
        for end in taken.iter().copied().chain([batch.len()]) {
            let before = output.len();
            if first < end {
                self.inner.step_in_place(now, port, &mut batch[first..end], output);
            }
            for egress in &mut output[before..] {
                if let Egress::InPlace { index, .. } = egress {
                    *index += first;
                }
            }
            first = end + 1;
        }
        self.end_step(now, !taken.is_empty(), &mut made);
        output.extend(made.into_iter().map(Egress::Owned));
    }

    fn has_notifications(&self) -> bool {
        self.inner.has_notifications()
    }

    fn take_notifications(&mut self) -> Vec<Notification> {
        self.inner.take_notifications()
    }

    /// # Panics
    /// Always: one worker runs a switch with tables in the memory of servers.
    fn workers(&mut self, _: u32) -> Vec<ElasticSwitch<S>> {
        panic!("a switch with tables in the memory of servers has one worker")
    }

    switch::forward_packets!(inner);
}

impl<S: RowSwitch> SwitchControl for ElasticSwitch<S> {
    switch::forward_control!(inner, but set_port_up);

    /// Sets the state of a port. The next step gives up the READs of servers behind a port that is down, and sends them
    /// to other copies.
    fn set_port_up(&mut self, port: PortId, up: bool) -> bool {
        self.wake();
        self.inner.set_port_up(port, up)
    }

    /// Sends every queued packet, except for those that wait for entries.
    fn drain(&mut self, now: Time, output: &mut Vec<Frame>) {
        self.inner.drain(now, output);
        self.end_step(now, false, output);
    }

    /// # Panics
    /// Always: the tables of another program are others.
    fn swap_with(&mut self, _: &mut dyn SwitchControl) {
        panic!("a program with tables in the memory of servers is not replaced while it runs")
    }
}
