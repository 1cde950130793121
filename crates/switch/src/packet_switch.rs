//! Defines the two faces of a switch: [`SwitchControl`] for the control plane, [`PacketSwitch`] for whatever drives
//! packets.
//!
//! ```text
//!   P4Runtime, entries files, metrics ──> dyn SwitchControl   tables, groups, sessions, ports, counters
//!   worker, lab, simulator            ──> S: PacketSwitch     step, step in place, events, workers, publication
//! ```
//!
//! A driver is generic over [`PacketSwitch`], so every architecture gets a packet loop of its own without a
//! virtual call per packet. The control plane works on a `dyn SwitchControl`: a virtual call per table write costs
//! nothing that can be measured, and code above it is compiled once.
//!
//! A *wrapper* around a switch is a switch. It implements both traits, forwards what it does not change to the switch
//! inside, and does its own work in [`Device::step`] and [`PacketSwitch::step_in_place`].

use std::any::Any;
use std::sync::Arc;

use engine::Objects;
use ir::Program;

use crate::{
    CompileJob, CompiledCode, Device, DropReason, DropSite, Egress, Frame, FrameMut, MirrorSession, MirrorSessions,
    MulticastGroup, MulticastGroups, Notification, PortId, Ports, Registry, Takeover, Time,
};

/// An error from building a switch for a program: the program does not fit the architecture or a port number is out of
/// range.
pub type BuildError = Box<dyn std::error::Error + Send + Sync>;

/// A switch as the control plane sees it. The trait is object-safe. Packets of the control plane enter by
/// [`Device::step`].
pub trait SwitchControl: Device + Any + Send {
    /// Returns the program that runs.
    fn program(&self) -> &Arc<Program>;

    /// Returns tables, action profiles, value sets, registers, counters and meters.
    fn objects(&self) -> &Objects;

    /// Returns the same objects for writing.
    fn objects_mut(&mut self) -> &mut Objects;

    /// Returns the multicast groups.
    fn multicast_groups(&self) -> &MulticastGroups;

    /// Creates, replaces or (with `None`) removes a multicast group. Returns false and changes nothing if the group is
    /// invalid: number 0, or more than [`MAX_REPLICAS`](crate::MAX_REPLICAS) replicas.
    fn set_multicast_group(&mut self, id: u32, group: Option<MulticastGroup>) -> bool;

    /// Returns the mirror (clone) sessions.
    fn mirror_sessions(&self) -> &MirrorSessions;

    /// Creates, replaces or (with `None`) removes a mirror session. Returns false and changes nothing if it has more
    /// than [`MAX_REPLICAS`](crate::MAX_REPLICAS) replicas.
    fn set_mirror_session(&mut self, id: u32, session: Option<MirrorSession>) -> bool;

    /// Returns the ports.
    fn ports(&self) -> &Ports;

    /// Returns the port to the controller, if the switch has one.
    fn cpu_port(&self) -> Option<PortId>;

    /// Takes a port up or down. Returns false if there is no such port.
    fn set_port_up(&mut self, port: PortId, up: bool) -> bool;

    /// Limits the packets per second that leave by a port, over all its queues. `None` removes the limit. Ports that
    /// the switch does not have are ignored.
    fn set_port_rate(&mut self, port: PortId, rate_pps: Option<u64>);

    /// Limits the bits per second that leave by a port, over all its queues. `None` removes the limit. Ports that the
    /// switch does not have are ignored.
    fn set_port_bandwidth(&mut self, port: PortId, bandwidth_bps: Option<u64>);

    /// Limits the packets per second that leave one queue of a port, or (with `None` as the priority) each of its
    /// queues.
    fn set_queue_rate(&mut self, port: PortId, priority: Option<usize>, rate_pps: Option<u64>);

    /// Sets the capacity of one queue of a port, or of each of its queues, in packets.
    fn set_queue_depth(&mut self, port: PortId, priority: Option<usize>, packets: usize);

    /// Returns the number of packets that wait in the queues of a port, and the number of packets that those queues
    /// dropped.
    fn queue(&self, port: PortId) -> (u64, u64);

    /// Returns the counters of the switch by name; at the owner of workers their sum.
    fn registry(&self) -> &Registry;

    /// Adds the counts of the switch that this one replaces, from its registry: packets by port and queue, drops,
    /// copies and notifications. Drops at places of the former program count without a place.
    fn continue_counts(&mut self, before: &Registry);

    /// Returns the drop counts by reason and by place in the program.
    fn drop_sites(&self) -> Vec<DropSite>;

    /// Returns a summary for people: packets by port, drops by reason, clones, resubmissions, notifications.
    fn summary(&self) -> String;

    /// Sends every queued packet at once and removes all rates, before another program replaces this one.
    fn drain(&mut self, now: Time, output: &mut Vec<Frame>);

    /// Adds what packets have counted outside the switch, in the kernel. Call it before reading or setting counters.
    fn collect_counts(&mut self) {}

    /// Sends all packets that run outside the switch, in the kernel, to the switch until the next
    /// [`SwitchControl::publish`], and waits for those that run there. They would see changes of registers at once, and
    /// so a part of what is published.
    fn suspend_kernel(&mut self) {}

    /// Publishes everything that was written since the last call: workers see all of it from their next batch on
    /// (RCU-style), and so do packets in the kernel. The control plane calls it before it acknowledges a write.
    fn publish(&mut self);

    /// Exchanges this switch with another of the same type. A wrapper keeps what belongs to it and exchanges the switch
    /// inside.
    ///
    /// # Panics
    /// If `other` is of another type.
    fn swap_with(&mut self, other: &mut dyn SwitchControl);
}

/// A switch as its driver sees it: sans-IO, with time as an argument.
pub trait PacketSwitch: Device + SwitchControl + Sized {
    /// Processes frames that arrived on `port`, in order, in the caller's memory, and appends what leaves now to
    /// `output`, in the order in which it leaves. Frames of the batch that `output` does not name hold unspecified
    /// bytes afterwards.
    ///
    /// The effect is that of [`Device::step`] with copies of the frames.
    fn step_in_place<F: FrameMut>(&mut self, now: Time, port: PortId, batch: &mut [F], output: &mut Vec<Egress>);

    /// Converts transmitted frames back into drops, because the driver could not send them: each counts as dropped by
    /// its reason. `bytes` is their total length.
    fn take_back_sent(&mut self, port: PortId, frames: &[(DropReason, u64)], bytes: u64);

    /// Returns the number of packets in queues.
    fn waiting(&self) -> usize;

    /// Whether notifications are pending for the control plane.
    fn has_notifications(&self) -> bool;

    /// Removes and returns the pending notifications, oldest first.
    fn take_notifications(&mut self) -> Vec<Notification>;

    /// Creates switches for `count` worker threads, which run packets with this switch's program and state. This switch
    /// becomes their owner. See `docs/design/workers.md` for what they share.
    ///
    /// Call it once per program: each worker gets 1/`count` of every rate and queue depth.
    fn workers(&mut self, count: u32) -> Vec<Self>;

    /// Whether a write can proceed without copying all tables, since no worker still reads the version before last.
    /// Always true without workers.
    fn is_clear(&self) -> bool;

    /// Releases the version of the tables that an idle worker holds.
    fn rest(&mut self);

    /// Returns the compilation of the program, once, if packets are interpreted until it is done. Workers have none:
    /// their owner has it for all.
    fn take_compile_job(&mut self) -> Option<CompileJob>;

    /// Continues with compiled code, between two batches; all state is kept. Workers follow their owner from their next
    /// batch on.
    fn install(&mut self, code: CompiledCode) -> Takeover;
}
