//! Implements the traits of [`Switch`] for drivers and the control plane: each method forwards to the inherent method
//! of its name.

use std::any::Any;
use std::sync::Arc;

use engine::Objects;
use ir::Program;
use switch::{
    CompileJob, CompiledCode, DropReason, DropSite, Egress, Frame, FrameMut, MirrorSession, MirrorSessions,
    MulticastGroup, MulticastGroups, Notification, PacketSwitch, PortId, Ports, Registry, SwitchControl, Takeover,
    Time,
};

use super::Switch;

impl SwitchControl for Switch {
    fn program(&self) -> &Arc<Program> {
        Switch::program(self)
    }

    fn objects(&self) -> &Objects {
        Switch::objects(self)
    }

    fn objects_mut(&mut self) -> &mut Objects {
        Switch::objects_mut(self)
    }

    fn multicast_groups(&self) -> &MulticastGroups {
        Switch::multicast_groups(self)
    }

    fn set_multicast_group(&mut self, id: u32, group: Option<MulticastGroup>) -> bool {
        Switch::set_multicast_group(self, id, group)
    }

    fn mirror_sessions(&self) -> &MirrorSessions {
        Switch::mirror_sessions(self)
    }

    fn set_mirror_session(&mut self, id: u32, session: Option<MirrorSession>) -> bool {
        Switch::set_mirror_session(self, id, session)
    }

    fn ports(&self) -> &Ports {
        Switch::ports(self)
    }

    fn cpu_port(&self) -> Option<PortId> {
        self.config.cpu_port
    }

    fn set_port_up(&mut self, port: PortId, up: bool) -> bool {
        Switch::set_port_up(self, port, up)
    }

    fn set_port_rate(&mut self, port: PortId, rate_pps: Option<u64>) {
        Switch::set_port_rate(self, port, rate_pps);
    }

    fn set_port_bandwidth(&mut self, port: PortId, bandwidth_bps: Option<u64>) {
        Switch::set_port_bandwidth(self, port, bandwidth_bps);
    }

    fn set_queue_rate(&mut self, port: PortId, priority: Option<usize>, rate_pps: Option<u64>) {
        Switch::set_queue_rate(self, port, priority, rate_pps);
    }

    fn set_queue_depth(&mut self, port: PortId, priority: Option<usize>, packets: usize) {
        Switch::set_queue_depth(self, port, priority, packets);
    }

    fn queue(&self, port: PortId) -> (u64, u64) {
        Switch::queue(self, port)
    }

    fn registry(&self) -> &Registry {
        Switch::registry(self)
    }

    fn continue_counts(&mut self, before: &Registry) {
        Switch::continue_counts(self, before);
    }

    fn drop_sites(&self) -> Vec<DropSite> {
        Switch::drop_sites(self)
    }

    fn summary(&self) -> String {
        Switch::summary(self)
    }

    fn drain(&mut self, now: Time, output: &mut Vec<Frame>) {
        Switch::drain(self, now, output);
    }

    fn collect_counts(&mut self) {
        Switch::collect_counts(self);
    }

    fn suspend_kernel(&mut self) {
        Switch::suspend_kernel(self);
    }

    fn publish(&mut self) {
        Switch::publish(self);
    }

    fn swap_with(&mut self, other: &mut dyn SwitchControl) {
        let other: &mut dyn Any = other;
        let other: &mut Switch = other.downcast_mut().expect("switches of different types are never exchanged");
        std::mem::swap(self, other);
        // These counts are the run's, as those of drivers are, and so are captures of its ports.
        std::mem::swap(&mut self.kernel_counts, &mut other.kernel_counts);
        std::mem::swap(&mut self.kernel_diverted, &mut other.kernel_diverted);
    }
}

impl PacketSwitch for Switch {
    #[inline]
    fn step_in_place<F: FrameMut>(&mut self, now: Time, port: PortId, batch: &mut [F], output: &mut Vec<Egress>) {
        Switch::step_in_place(self, now, port, batch, output);
    }

    fn take_back_sent(&mut self, port: PortId, frames: &[(DropReason, u64)], bytes: u64) {
        Switch::take_back_sent(self, port, frames, bytes);
    }

    #[inline]
    fn waiting(&self) -> usize {
        Switch::waiting(self)
    }

    #[inline]
    fn has_notifications(&self) -> bool {
        Switch::has_notifications(self)
    }

    fn take_notifications(&mut self) -> Vec<Notification> {
        Switch::take_notifications(self)
    }

    fn workers(&mut self, count: u32) -> Vec<Switch> {
        Switch::workers(self, count)
    }

    fn is_clear(&self) -> bool {
        Switch::is_clear(self)
    }

    fn rest(&mut self) {
        Switch::rest(self);
    }

    #[inline]
    fn take_compile_job(&mut self) -> Option<CompileJob> {
        Switch::take_compile_job(self)
    }

    fn install(&mut self, code: CompiledCode) -> Takeover {
        Switch::install(self, code)
    }
}
