//! Forwards what a wrapper around a switch does not change to the switch inside.

/// Implements the methods of [`SwitchControl`](crate::SwitchControl) by those of the switch in this field, except for
/// `drain` and `swap_with`, which a wrapper has to think about; `forward_control!(field, but set_port_up)` leaves out
/// `set_port_up`, too. The crate that calls it depends on `engine` and `ir`.
#[macro_export]
macro_rules! forward_control {
    ($inner:ident) => {
        fn set_port_up(&mut self, port: $crate::PortId, up: bool) -> bool {
            self.$inner.set_port_up(port, up)
        }

        $crate::forward_control!($inner, but set_port_up);
    };
    ($inner:ident, but set_port_up) => {
        fn program(&self) -> &::std::sync::Arc<::ir::Program> {
            self.$inner.program()
        }

        fn objects(&self) -> &::engine::Objects {
            self.$inner.objects()
        }

        fn objects_mut(&mut self) -> &mut ::engine::Objects {
            self.$inner.objects_mut()
        }

        fn multicast_groups(&self) -> &$crate::MulticastGroups {
            self.$inner.multicast_groups()
        }

        fn set_multicast_group(&mut self, id: u32, group: Option<$crate::MulticastGroup>) -> bool {
            self.$inner.set_multicast_group(id, group)
        }

        fn mirror_sessions(&self) -> &$crate::MirrorSessions {
            self.$inner.mirror_sessions()
        }

        fn set_mirror_session(&mut self, id: u32, session: Option<$crate::MirrorSession>) -> bool {
            self.$inner.set_mirror_session(id, session)
        }

        fn ports(&self) -> &$crate::Ports {
            self.$inner.ports()
        }

        fn cpu_port(&self) -> Option<$crate::PortId> {
            self.$inner.cpu_port()
        }

        fn set_port_rate(&mut self, port: $crate::PortId, rate_pps: Option<u64>) {
            self.$inner.set_port_rate(port, rate_pps);
        }

        fn set_port_bandwidth(&mut self, port: $crate::PortId, bandwidth_bps: Option<u64>) {
            self.$inner.set_port_bandwidth(port, bandwidth_bps);
        }

        fn set_queue_rate(&mut self, port: $crate::PortId, priority: Option<usize>, rate_pps: Option<u64>) {
            self.$inner.set_queue_rate(port, priority, rate_pps);
        }

        fn set_queue_depth(&mut self, port: $crate::PortId, priority: Option<usize>, packets: usize) {
            self.$inner.set_queue_depth(port, priority, packets);
        }

        fn queue(&self, port: $crate::PortId) -> (u64, u64) {
            self.$inner.queue(port)
        }

        fn registry(&self) -> &$crate::Registry {
            self.$inner.registry()
        }

        fn continue_counts(&mut self, before: &$crate::Registry) {
            self.$inner.continue_counts(before);
        }

        fn drop_sites(&self) -> Vec<$crate::DropSite> {
            self.$inner.drop_sites()
        }

        fn summary(&self) -> String {
            self.$inner.summary()
        }

        fn collect_counts(&mut self) {
            self.$inner.collect_counts();
        }

        fn suspend_kernel(&mut self) {
            self.$inner.suspend_kernel();
        }

        fn publish(&mut self) {
            self.$inner.publish();
        }
    };
}

/// Implements the methods of [`PacketSwitch`](crate::PacketSwitch) that are neither about packets nor about workers by
/// those of the switch in this field.
#[macro_export]
macro_rules! forward_packets {
    ($inner:ident) => {
        fn take_back_sent(&mut self, port: $crate::PortId, frames: &[($crate::DropReason, u64)], bytes: u64) {
            self.$inner.take_back_sent(port, frames, bytes);
        }

        fn waiting(&self) -> usize {
            self.$inner.waiting()
        }

        fn is_clear(&self) -> bool {
            self.$inner.is_clear()
        }

        fn rest(&mut self) {
            self.$inner.rest();
        }

        fn take_compile_job(&mut self) -> Option<$crate::CompileJob> {
            self.$inner.take_compile_job()
        }

        fn install(&mut self, code: $crate::CompiledCode) -> $crate::Takeover {
            self.$inner.install(code)
        }
    };
}
