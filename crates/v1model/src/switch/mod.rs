//! Implements the v1model switch: parser, ingress, queues, egress and deparser, with the semantics of BMv2's
//! `simple_switch`.
//!
//! ```text
//!          ┌──────────────────── resubmit ◄──────────────┐            ┌── clone (as received), re-parsed
//!          ▼                                             │            ▼
//!  frame ─► parser ─► verify checksum ─► ingress ─► multicast │ drop │ unicast ─► queue ─► egress ─► compute checksum
//!          ▲                                                                       ▲          │            ▼
//!          │                                                                       └─ clone ◄─┘        deparser ─► frame
//!          └──────────────────────────────── recirculate ◄────────────────────────────────────────────────┘
//! ```
//!
//! After ingress, in this order: the last requested clone is made, digests are sent, then the first of these that
//! applies: resubmit, multicast (`mcast_grp` is not 0), drop (`egress_spec` is the drop port), unicast. After egress:
//! the last requested clone is made, then drop, recirculate or send.
//!
//! Everything that a received frame causes without waiting in a queue happens within the call of [`Device::step`] that
//! brought it. Passes of one packet and copies of one frame are limited ([`Config`]), so no program can block the
//! switch.
//!
//! `simple_switch` loses the ingress port of resubmitted and recirculated packets. This switch keeps it, as the
//! documentation of `simple_switch` says of resubmission.

mod actions;
mod bare;
mod config;
mod copies;
mod egress;
mod idle;
mod image;
mod in_place;
mod ingress;
mod kernel;
mod layout;
mod packet;
mod packet_switch;
mod parked;
mod paths;
mod rows;
mod state;
mod stats;
mod takeover;
mod tally;
mod tiny;
mod together;
mod trace;
mod values;
mod waiting;
mod workers;

use std::collections::VecDeque;
use std::sync::Arc;

use engine::Objects;
use ir::Program;
use switch::{
    CompileJob, Device, DropReason, Drops, EgressQueues, Frame, MirrorSession, MirrorSessions, MulticastGroup,
    MulticastGroups, Notification, PortId, Ports, Registry, Time,
};

pub(crate) use config::drop_port_of;
pub use config::{CPU_PORT, Config, DROP_PORT, Executor, MAX_PORT, WIDEST_PORT, drop_port, max_port};
pub use image::Image;
pub use kernel::{KernelMemory, KernelPortCount, kernel_pipeline};
pub use layout::LoadError;
pub use paths::{Path, PathCount, PathReason};
pub use tiny::{EXECUTIONS_PER_SECOND, INT_MTU, IntSettings, TinySettings, memory_map};

use idle::Idle;
use layout::Layout;
use packet::{Packet, Work};
use rows::RowQueues;
use state::Machine;
use stats::Stats;
use switch::trace::Recorder;

/// A switch that runs one compiled v1model program.
pub struct Switch {
    program: Arc<Program>,
    layout: Layout,
    config: Config,
    objects: Objects,
    /// The program as machine code.
    machine: Option<Arc<Machine>>,
    /// The reason why there is none although the interpreter was not requested.
    unfit: Option<Arc<str>>,
    /// The compilation of the program, until a driver takes it.
    compile_job: Option<CompileJob>,
    /// The state of packets that are processed in place.
    in_place: Option<Box<in_place::InPlace>>,
    groups: Arc<MulticastGroups>,
    mirrors: Arc<MirrorSessions>,
    queues: EgressQueues<Box<Packet>>,
    ports: Ports,
    registry: Registry,
    drops: Drops,
    stats: Stats,
    paths: paths::PathCounts,
    notifications: VecDeque<Notification>,
    idle: Idle,
    /// Passes to run before the current frame is complete.
    work: VecDeque<Work>,
    /// Number of passes that the current frame may still cause.
    work_left: u32,
    /// Packets for reuse.
    #[expect(clippy::vec_box, reason = "a packet moves from queue to queue by its address, not by its bytes")]
    spare: Vec<Box<Packet>>,
    /// The state after ingress of a packet in place while its copies pass egress, for reuse.
    copy_origin: jit::CopyOrigin,
    /// The ports and replica ids of these copies, for reuse.
    chosen: Vec<switch::Backup>,
    /// The trace that is being recorded; packets remember the one they belong to.
    trace_number: u64,
    /// Whether the switch is alone, an owner or a worker.
    role: workers::WorkerRole,
    /// Packets and outputs that wait for rows, if these are under ownership.
    rows: Option<Box<RowQueues>>,
    /// Tiny packet programs and INT, if either is on.
    tiny: Option<Box<tiny::TinyPrograms>>,
    /// The program in the kernel, if it runs there.
    kernel: Option<Box<kernel::KernelLink>>,
    kernel_counts: kernel::KernelCounts,
    kernel_diverted: kernel::DivertedPorts,
}

impl Switch {
    /// Builds a switch with the program's own entries, all ports up, no groups and no sessions.
    ///
    /// # Errors
    /// If the program is not a v1model program, or a port number is invalid.
    pub fn new(program: Arc<Program>, config: Config) -> Result<Switch, LoadError> {
        Self::from_image(&Image::new(program, config.executor)?, config)
    }

    /// Builds a switch like [`Switch::new`] that runs at once, and whose machine code is [installed](Switch::install)
    /// when it is ready.
    ///
    /// # Errors
    /// As [`Switch::new`].
    pub fn deferred(program: Arc<Program>, config: Config) -> Result<Switch, LoadError> {
        Self::from_image(&Image::deferred(program, config.executor)?, config)
    }

    /// Builds a switch whose machine code calls `probe` at the end of each part, for measurements.
    ///
    /// # Errors
    /// As [`Switch::new`].
    pub fn probed(program: Arc<Program>, config: Config, probe: jit::Probe) -> Result<Switch, LoadError> {
        Self::from_image(&Image::make(program, config.executor, Some(probe))?, config)
    }

    /// Builds a switch from a prepared program. Switches of one image share its machine code.
    ///
    /// # Errors
    /// If a port number is invalid.
    ///
    /// # Panics
    /// If the image was made for another executor.
    pub fn from_image(image: &Image, config: Config) -> Result<Switch, LoadError> {
        assert!(image.suits(&config), "an image is for one executor");
        let Image { program, layout, machine, unfit, is_deferred, .. } = image.clone();
        let mut registry = Registry::default();
        let mut ids = config.ports.clone();
        ids.extend(config.cpu_port.filter(|cpu| !config.ports.contains(cpu)));
        let ports = Ports::new(&ids, &mut registry).map_err(|port| LoadError::Port(port.0))?;
        let drops = Drops::new(&mut registry, layout::drop_places(&program));
        let stats = Stats::new(&mut registry);
        let mut objects = Objects::new(&program);
        objects.seed(config.seed);
        let mut queues = EgressQueues::default();
        for (port, bps) in config.bandwidths.iter().filter(|(port, _)| ports.contains(*port)) {
            queues.set_port_bandwidth(*port, Some(*bps));
        }
        let mut switch = Switch {
            idle: Idle::new(&program),
            objects,
            in_place: machine.as_deref().map(in_place::InPlace::new).map(Box::new),
            machine,
            unfit,
            compile_job: is_deferred.then(|| takeover::compile_job(&program, &layout)),
            layout,
            groups: Arc::default(),
            mirrors: Arc::default(),
            queues,
            ports,
            registry,
            drops,
            stats,
            paths: paths::PathCounts::default(),
            notifications: VecDeque::new(),
            work: VecDeque::new(),
            work_left: 0,
            spare: Vec::new(),
            copy_origin: jit::CopyOrigin::default(),
            chosen: Vec::new(),
            trace_number: 0,
            role: workers::WorkerRole::default(),
            rows: None,
            tiny: None,
            kernel: None,
            kernel_counts: kernel::KernelCounts::default(),
            kernel_diverted: kernel::DivertedPorts::default(),
            program,
            config,
        };
        switch.prepare_tiny();
        Ok(switch)
    }

    /// Whether packets are run by machine code.
    pub fn is_compiled(&self) -> bool {
        self.machine.is_some()
    }

    /// Returns the reason why packets are interpreted under [`Executor::Auto`]; `None` if they are not.
    pub fn why_interpreted(&self) -> Option<&str> {
        self.unfit.as_deref()
    }

    /// Returns the number of packets that drivers offered in batches, by the path that they took, from the fastest path
    /// to the slowest.
    pub fn path_counts(&self) -> Vec<PathCount> {
        self.paths.all()
    }

    /// Returns the program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns tables, registers, counters and all other stateful objects.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Returns the same objects for writing.
    pub fn objects_mut(&mut self) -> &mut Objects {
        self.idle.wake();
        &mut self.objects
    }

    /// Creates, replaces or removes a multicast group. Returns false and changes nothing if it is invalid: group 0,
    /// or too many replicas.
    pub fn set_multicast_group(&mut self, id: u32, group: Option<MulticastGroup>) -> bool {
        self.besides_changed();
        Arc::make_mut(&mut self.groups).set(id, group)
    }

    /// Returns the multicast groups.
    pub fn multicast_groups(&self) -> &MulticastGroups {
        &self.groups
    }

    /// Creates, replaces or removes a mirror (clone) session. Returns false and changes nothing if it has too many
    /// replicas.
    pub fn set_mirror_session(&mut self, id: u32, session: Option<MirrorSession>) -> bool {
        self.besides_changed();
        Arc::make_mut(&mut self.mirrors).set(id, session)
    }

    /// Returns the mirror sessions.
    pub fn mirror_sessions(&self) -> &MirrorSessions {
        &self.mirrors
    }

    /// Limits the packets per second that leave by a port, over all its queues. `None` removes the limit. Ports that
    /// the switch does not have are ignored: a packet to one is dropped without waiting.
    pub fn set_port_rate(&mut self, port: PortId, rate_pps: Option<u64>) {
        if self.ports.contains(port) {
            self.besides_changed();
            self.queues.set_port_rate(port, rate_pps);
        }
    }

    /// Limits the bits per second that leave by a port, over all its queues. `None` removes the limit. Waiting
    /// packets show in the depths that a program sees. Ports that the switch does not have are ignored.
    pub fn set_port_bandwidth(&mut self, port: PortId, bps: Option<u64>) {
        if self.ports.contains(port) {
            self.besides_changed();
            self.queues.set_port_bandwidth(port, bps);
        }
    }

    /// Limits the packets per second that leave one queue of a port, or each of them. `None` removes the limit. Ports
    /// that the switch does not have are ignored.
    pub fn set_queue_rate(&mut self, port: PortId, priority: Option<usize>, rate_pps: Option<u64>) {
        if self.ports.contains(port) {
            self.besides_changed();
            self.queues.set_rate(port, priority, rate_pps);
        }
    }

    /// Sets the capacity of one queue of a port, or of each of them, in packets. Ports that the switch does not have
    /// are ignored.
    pub fn set_queue_depth(&mut self, port: PortId, priority: Option<usize>, packets: usize) {
        if self.ports.contains(port) {
            self.besides_changed();
            self.queues.set_depth(port, priority, packets);
        }
    }

    /// Sets the capacity of each queue of every port, in packets.
    pub fn set_all_queue_depths(&mut self, packets: usize) {
        self.besides_changed();
        self.queues.set_depth_everywhere(packets);
    }

    /// Takes a port up or down. Returns false if there is no such port. At a worker this lasts until the owner
    /// publishes port states.
    pub fn set_port_up(&mut self, port: PortId, up: bool) -> bool {
        if self.objects.is_owner() {
            self.besides_changed();
            self.objects.set_port_up(port.0, up);
        }
        self.ports.set_up(port, up)
    }

    /// Returns the ports.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Returns the counters of the switch by name; at the owner their sums over all workers.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the number of packets in the queues of a port, and the number that these dropped.
    pub fn queue(&self, port: PortId) -> (u64, u64) {
        let waiting = (0..switch::PRIORITIES).map(|priority| self.queues.depth(port, priority) as u64).sum();
        (waiting, self.ports.queue_drops(&self.registry, port))
    }

    /// Returns the number of packets in queues.
    pub fn waiting(&self) -> usize {
        self.queues.waiting()
    }

    /// Sends every queued packet at once and removes all rates, before another switch replaces this one. No packets run
    /// in the kernel from then on.
    pub fn drain(&mut self, now: Time, output: &mut Vec<Frame>) {
        self.leave_kernel();
        if self.waiting() == 0 {
            return;
        }
        let ports: Vec<PortId> = self.ports.ids().collect();
        for port in ports {
            self.set_port_rate(port, None);
            self.set_port_bandwidth(port, None);
            self.set_queue_rate(port, None, None);
        }
        self.step(now, &mut Vec::new(), output);
    }

    /// Adds the counts of the switch that this one replaces, from its registry. Depths of queues are no counts.
    pub fn continue_counts(&mut self, before: &Registry) {
        self.drops.count_all(&mut self.registry, before);
        self.registry.add_all(before, |name| !name.starts_with("drop.") && !name.ends_with(".depth"));
    }

    /// Returns the drop counts by reason and by place in the program.
    pub fn drop_sites(&self) -> Vec<switch::DropSite> {
        self.drops.sites(&self.registry)
    }

    /// Converts transmitted frames back into drops, because the driver could not send them: each counts as dropped by
    /// its reason. `bytes` is their total length.
    pub fn take_back_sent(&mut self, port: PortId, frames: &[(DropReason, u64)], bytes: u64) {
        for (reason, count) in frames.iter().filter(|(_, count)| *count > 0) {
            self.drops.count_many(&mut self.registry, *reason, 0, *count);
        }
        let all = frames.iter().map(|(_, count)| count).sum();
        self.ports.take_back_tx(&mut self.registry, port, all, bytes);
        let is_of_driver = |reason: &DropReason| {
            matches!(reason, DropReason::PortFull | DropReason::PortLength | DropReason::PortLost)
        };
        if frames.iter().all(|(reason, _)| is_of_driver(reason)) {
            self.count_unsent(port, all, bytes);
        }
    }

    /// Whether notifications are pending for the control plane.
    pub fn has_notifications(&self) -> bool {
        !self.notifications.is_empty()
    }

    /// Removes and returns the pending notifications, oldest first.
    pub fn take_notifications(&mut self) -> Vec<Notification> {
        self.notifications.drain(..).collect()
    }

    /// Returns a summary for people of received, sent and dropped packets.
    pub fn summary(&self) -> String {
        let mut text = self.ports.render(&self.registry);
        let sites = self.drop_sites();
        if !sites.is_empty() {
            text.push('\n');
        }
        for site in sites {
            text.push_str(&format!("{site}\n"));
        }
        let parts = ["clone", "resubmit", "recirculate", "multicast", "notification", "parser"];
        let others = |name: &str| parts.iter().any(|part| name.split('.').next() == Some(part));
        let others: Vec<_> = self.registry.iter().filter(|(name, value)| *value > 0 && others(name)).collect();
        if !others.is_empty() {
            text.push('\n');
        }
        let width = others.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in others {
            text.push_str(&format!("{name:width$}  {value}\n"));
        }
        text
    }

    fn notify(&mut self, notification: Notification) {
        if let Some(notification) = self.hold_notification(notification) {
            self.queue_notification(notification);
        }
    }

    /// Queues a notification. Beyond the maximum number, it is lost.
    fn queue_notification(&mut self, notification: Notification) {
        if self.notifications.len() < self.config.max_notifications {
            self.notifications.push_back(notification);
        } else {
            self.registry.add(self.stats.lost_notifications, 1);
        }
    }

    /// Processes a frame and everything that it causes now.
    fn take(&mut self, now: Time, frame: Frame, output: &mut Vec<Frame>) {
        self.receive(now, frame, &mut ());
        self.drive(now, output, &mut ());
    }

    /// Counts a received frame and queues its first pass, or drops it.
    fn receive<R: Recorder>(&mut self, now: Time, frame: Frame, recorder: &mut R) {
        let Frame { port, mut data } = frame;
        self.work_left = self.config.max_work;
        let reason = if !self.ports.contains(port) {
            Some(DropReason::NoIngressPort)
        } else if !self.ports.is_up(port) {
            Some(DropReason::IngressPortDown)
        } else if data.len() < self.config.min_frame {
            Some(DropReason::Runt)
        } else if data.len() > self.config.max_frame {
            Some(DropReason::Oversized)
        } else if self.refuses_program(port, &data) {
            Some(DropReason::ProgramRefused)
        } else {
            None
        };
        self.ports.count_rx(&mut self.registry, port, data.len());
        let tiny = if reason.is_none() { self.peel(&mut data, port, now) } else { None };
        let packet = self.packet(data, port, tiny, recorder);
        match reason {
            Some(reason) => self.drop_packet(packet, reason, recorder),
            None => self.work.push_back(Work::Ingress(packet, now)),
        }
    }

    /// Runs everything that can run by `now`: passes that wait for nothing, and packets that may leave their queues.
    fn drive<R: Recorder>(&mut self, now: Time, output: &mut Vec<Frame>, recorder: &mut R) {
        while let Some(work) = self.next_work(now) {
            self.run_work(work, output, recorder);
        }
    }

    /// Returns the next pass that can run by `now`. One that waited until now may cause as many passes as a new frame.
    fn next_work(&mut self, now: Time) -> Option<Work> {
        if let Some(work) = self.work.pop_front() {
            return Some(work);
        }
        let waited = self.next_resumed(now).or_else(|| {
            let left = self.queues.pop(now)?;
            let depth = left.depth;
            self.ports.set_depth(&mut self.registry, left.port, left.priority, depth);
            Some(Work::Egress(left.item, packet::Leaving { port: left.port, at: left.at, depth }))
        });
        if waited.is_some() {
            self.work_left = self.config.max_work;
        }
        waited
    }

    /// Runs a pass that waits for nothing, or drops its packet if its frame has used up its passes.
    fn run_work<R: Recorder>(&mut self, work: Work, output: &mut Vec<Frame>, recorder: &mut R) {
        let traced = work.packet().trace == self.trace_number && self.trace_number != 0;
        let Some(left) = self.work_left.checked_sub(1) else {
            return match traced {
                true => self.drop_packet(work.into_packet(), DropReason::LoopLimit, recorder),
                false => self.drop_packet(work.into_packet(), DropReason::LoopLimit, &mut ()),
            };
        };
        self.work_left = left;
        match (work, traced) {
            (Work::Ingress(packet, at), true) => self.ingress(packet, at, recorder),
            (Work::Ingress(packet, at), false) => self.ingress(packet, at, &mut ()),
            (Work::Egress(packet, leaving), true) => self.egress(packet, leaving, output, recorder),
            (Work::Egress(packet, leaving), false) => self.egress(packet, leaving, output, &mut ()),
        }
        self.leave_pass();
    }
}

impl Device for Switch {
    fn step(&mut self, now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>) {
        self.begin_batch();
        self.objects.advance_clock(now.as_ns());
        self.sweep_idle(now);
        self.run_resumed(now, output);
        self.drive(now, output, &mut ());
        for frame in input.drain(..) {
            self.take(now, frame, output);
        }
    }

    fn next_event(&self) -> Option<Time> {
        match (self.queues.next_event(), self.idle.next_event()) {
            (Some(queue), Some(idle)) => Some(queue.min(idle)),
            (queue, idle) => queue.or(idle),
        }
    }
}

#[cfg(test)]
mod tests;
