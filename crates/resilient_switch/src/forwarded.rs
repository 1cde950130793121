//! Implements the traits of a switch: each method does what the switch inside does, and the protocol's part of it.

use std::sync::Arc;

use engine::Objects;
use ir::Program;
use switch::{
    CompileJob, CompiledCode, Device, DropReason, DropSite, Egress, Frame, FrameMut, MirrorSession, MirrorSessions,
    MulticastGroup, MulticastGroups, Notification, PacketSwitch, PortId, Ports, Registry, RowSwitch, SwitchControl,
    Takeover, Time,
};

use crate::ResilientSwitch;
use crate::in_band::Carried;

impl<S: RowSwitch> ResilientSwitch<S> {
    /// Takes a frame if it belongs to the protocol. Returns whether it did.
    fn intercept(&mut self, now: Time, bytes: &[u8], output: &mut Vec<Frame>) -> bool {
        let carried = self.in_band.as_ref().map_or(Carried::Other, |in_band| in_band.carried(bytes));
        match carried {
            Carried::Other => return false,
            Carried::Malformed => {}
            Carried::PassOn(port) => output.push(Frame { port, data: bytes.to_vec() }),
            Carried::Messages(from, messages) => {
                messages.iter().for_each(|message| self.deliver(now, from, message, output));
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
            let mut count = 0;
            while first + count < batch.len() {
                let (buffer, start) = batch[first + count].headroom();
                if self.intercept(now, &buffer[start..], &mut made) {
                    break;
                }
                count += 1;
            }
            let before = output.len();
            self.inner.step_in_place(now, port, &mut batch[first..first + count], output);
            for egress in &mut output[before..] {
                if let Egress::InPlace { index, .. } = egress {
                    *index += first;
                }
            }
            self.end_step(now, &mut made);
            first += count + 1;
        }
        output.extend(made.into_iter().map(Egress::Owned));
    }

    fn take_back_sent(&mut self, port: PortId, frames: &[(DropReason, u64)], bytes: u64) {
        self.inner.take_back_sent(port, frames, bytes);
    }

    fn waiting(&self) -> usize {
        self.inner.waiting()
    }

    fn has_notifications(&self) -> bool {
        !self.notifications.is_empty() || self.inner.has_notifications()
    }

    fn take_notifications(&mut self) -> Vec<Notification> {
        let mut all = std::mem::take(&mut self.notifications);
        all.extend(self.inner.take_notifications());
        all
    }

    /// # Panics
    /// Always: one worker runs a switch with resilient state.
    fn workers(&mut self, _: u32) -> Vec<ResilientSwitch<S>> {
        panic!("a switch with resilient state has one worker")
    }

    fn is_clear(&self) -> bool {
        self.inner.is_clear()
    }

    fn rest(&mut self) {
        self.inner.rest();
    }

    fn take_compile_job(&mut self) -> Option<CompileJob> {
        self.inner.take_compile_job()
    }

    fn install(&mut self, code: CompiledCode) -> Takeover {
        self.inner.install(code)
    }
}

impl<S: RowSwitch> SwitchControl for ResilientSwitch<S> {
    fn program(&self) -> &Arc<Program> {
        self.inner.program()
    }

    fn objects(&self) -> &Objects {
        self.inner.objects()
    }

    fn objects_mut(&mut self) -> &mut Objects {
        self.inner.objects_mut()
    }

    fn multicast_groups(&self) -> &MulticastGroups {
        self.inner.multicast_groups()
    }

    fn set_multicast_group(&mut self, id: u32, group: Option<MulticastGroup>) -> bool {
        self.inner.set_multicast_group(id, group)
    }

    fn mirror_sessions(&self) -> &MirrorSessions {
        self.inner.mirror_sessions()
    }

    fn set_mirror_session(&mut self, id: u32, session: Option<MirrorSession>) -> bool {
        self.inner.set_mirror_session(id, session)
    }

    fn ports(&self) -> &Ports {
        self.inner.ports()
    }

    fn cpu_port(&self) -> Option<PortId> {
        self.inner.cpu_port()
    }

    fn set_port_up(&mut self, port: PortId, up: bool) -> bool {
        self.inner.set_port_up(port, up)
    }

    fn set_port_rate(&mut self, port: PortId, rate_pps: Option<u64>) {
        self.inner.set_port_rate(port, rate_pps);
    }

    fn set_port_bandwidth(&mut self, port: PortId, bandwidth_bps: Option<u64>) {
        self.inner.set_port_bandwidth(port, bandwidth_bps);
    }

    fn set_queue_rate(&mut self, port: PortId, priority: Option<usize>, rate_pps: Option<u64>) {
        self.inner.set_queue_rate(port, priority, rate_pps);
    }

    fn set_queue_depth(&mut self, port: PortId, priority: Option<usize>, packets: usize) {
        self.inner.set_queue_depth(port, priority, packets);
    }

    fn queue(&self, port: PortId) -> (u64, u64) {
        self.inner.queue(port)
    }

    fn registry(&self) -> &Registry {
        self.inner.registry()
    }

    fn continue_counts(&mut self, before: &Registry) {
        self.inner.continue_counts(before);
    }

    fn drop_sites(&self) -> Vec<DropSite> {
        self.inner.drop_sites()
    }

    fn summary(&self) -> String {
        self.inner.summary()
    }

    /// Sends every queued packet, except for what depends on writes that are not acknowledged: it goes on waiting.
    fn drain(&mut self, now: Time, output: &mut Vec<Frame>) {
        self.inner.drain(now, output);
        self.end_step(now, output);
    }

    fn publish(&mut self) {
        self.inner.publish();
    }

    /// # Panics
    /// Always: the state of another program has other rows.
    fn swap_with(&mut self, _: &mut dyn SwitchControl) {
        panic!("a program with resilient state is not replaced while it runs")
    }
}
