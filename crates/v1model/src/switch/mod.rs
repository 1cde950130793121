//! The v1model switch: parser, ingress, queues, egress, deparser, and what BMv2's `simple_switch` made the meaning of
//! everything between them.
//!
//! ```text
//!          ┌──────────────────── resubmit ◄──────────────┐            ┌── clone (as it came in), re-parsed
//!          ▼                                             │            ▼
//!  frame ─► parser ─► verify checksum ─► ingress ─► multicast │ drop │ unicast ─► queue ─► egress ─► compute checksum
//!          ▲                                                                       ▲          │        ─► deparser ─► frame
//!          │                                                                       └─ clone ◄─┘              │
//!          └──────────────────────────────── recirculate ◄───────────────────────────────────────────────────┘
//! ```
//!
//! After ingress, in this order: the clone that was asked for last is made, digests are sent, then the first of these
//! that applies: resubmit, multicast (`mcast_grp` is not 0), drop (`egress_spec` is the drop port), unicast. After
//! egress: the clone asked for last is made, then drop, recirculate, or send.
//!
//! Everything one received frame causes without waiting in a queue happens within the call of [`Device::step`] that
//! brought it. Passes of one packet and copies caused by one frame are limited ([`Config`]), so that no program can
//! hold the switch up.
//!
//! Where `simple_switch` loses the ingress port of resubmitted and recirculated packets, this switch keeps it, as
//! its documentation says of resubmission.

mod config;
mod egress;
mod idle;
mod image;
mod in_place;
mod ingress;
mod layout;
mod numbers;
mod packet;
mod packet_switch;
mod state;
mod stats;
mod trace;
mod workers;

use std::collections::VecDeque;
use std::sync::Arc;

use engine::Objects;
use ir::Program;
use switch::{
    Device, DropReason, Drops, EgressQueues, Frame, MirrorSession, MirrorSessions, MulticastGroup, MulticastGroups,
    Notification, PortId, Ports, Registry, Time,
};

pub use config::{CPU_PORT, Config, DROP_PORT, Executor, MAX_PORT};
pub use image::Image;
pub use layout::LoadError;

use idle::Idle;
use layout::Layout;
use packet::{Packet, Work};
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
    /// Why there is none, although nobody asked for the interpreter.
    unfit: Option<Arc<str>>,
    /// The state of packets that are run where they lie.
    in_place: Option<in_place::InPlace>,
    groups: Arc<MulticastGroups>,
    mirrors: Arc<MirrorSessions>,
    queues: EgressQueues<Box<Packet>>,
    ports: Ports,
    registry: Registry,
    drops: Drops,
    stats: Stats,
    notifications: VecDeque<Notification>,
    idle: Idle,
    /// Passes to run before the current frame is done with.
    work: VecDeque<Work>,
    /// Passes the current frame may still cause.
    work_left: u32,
    /// Packets to use again.
    #[expect(clippy::vec_box, reason = "a packet moves from queue to queue by its address, not by its bytes")]
    spare: Vec<Box<Packet>>,
    /// Which trace is being recorded; packets remember the one they belong to.
    trace_number: u64,
    /// Which of those that share a state it is.
    role: workers::Role,
}

impl Switch {
    /// A switch with the program's own entries, all ports up, no groups and no sessions.
    ///
    /// # Errors
    /// If the program is not a v1model program, or a port number cannot be.
    pub fn new(program: Arc<Program>, config: Config) -> Result<Switch, LoadError> {
        Self::from_image(&Image::new(program, config.executor, config.drop_port)?, config)
    }

    /// The same, but machine code calls `probe` whenever a part of it has ended, so that it can be measured.
    ///
    /// # Errors
    /// As [`Switch::new`].
    pub fn probed(program: Arc<Program>, config: Config, probe: jit::Probe) -> Result<Switch, LoadError> {
        Self::from_image(&Image::make(program, config.executor, config.drop_port, Some(probe))?, config)
    }

    /// The same of a program that was made ready before: switches of one image share its machine code.
    ///
    /// # Errors
    /// If a port number cannot be.
    ///
    /// # Panics
    /// If the image was made for another executor or drop port.
    pub fn from_image(image: &Image, config: Config) -> Result<Switch, LoadError> {
        assert!(image.suits(&config), "an image is for one executor and drop port");
        let Image { program, layout, machine, unfit, .. } = image.clone();
        let mut registry = Registry::default();
        let mut ids = config.ports.clone();
        ids.extend(config.cpu_port.filter(|cpu| !config.ports.contains(cpu)));
        let ports = Ports::new(&ids, &mut registry).map_err(|port| LoadError::Port(port.0))?;
        let drops = Drops::new(&mut registry, layout::drop_places(&program));
        let stats = Stats::new(&mut registry);
        let mut objects = Objects::new(&program);
        objects.seed(config.seed);
        Ok(Switch {
            idle: Idle::new(&program),
            objects,
            in_place: machine.as_deref().map(in_place::InPlace::new),
            machine,
            unfit,
            layout,
            groups: Arc::default(),
            mirrors: Arc::default(),
            queues: EgressQueues::default(),
            ports,
            registry,
            drops,
            stats,
            notifications: VecDeque::new(),
            work: VecDeque::new(),
            work_left: 0,
            spare: Vec::new(),
            trace_number: 0,
            role: workers::Role::default(),
            program,
            config,
        })
    }

    /// Whether packets are run by machine code.
    pub fn is_compiled(&self) -> bool {
        self.machine.is_some()
    }

    /// Why packets are interpreted although the executor was left to the switch ([`Executor::Auto`]); `None` if they are not.
    pub fn why_interpreted(&self) -> Option<&str> {
        self.unfit.as_deref()
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// What the switch was told when it was made.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Tables, registers, counters and what else keeps state.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Tables, registers, counters and what else keeps state, to change.
    pub fn objects_mut(&mut self) -> &mut Objects {
        self.idle.wake();
        &mut self.objects
    }

    /// Makes, replaces or removes a multicast group. False, and no change, if it cannot be: group 0, too many replicas.
    pub fn set_multicast_group(&mut self, id: u32, group: Option<MulticastGroup>) -> bool {
        self.role.besides_changed();
        Arc::make_mut(&mut self.groups).set(id, group)
    }

    /// The multicast groups.
    pub fn multicast_groups(&self) -> &MulticastGroups {
        &self.groups
    }

    /// Makes, replaces or removes a mirror (clone) session. False, and no change, if it has too many replicas.
    pub fn set_mirror_session(&mut self, id: u32, session: Option<MirrorSession>) -> bool {
        self.role.besides_changed();
        Arc::make_mut(&mut self.mirrors).set(id, session)
    }

    /// The mirror sessions.
    pub fn mirror_sessions(&self) -> &MirrorSessions {
        &self.mirrors
    }

    /// How many packets a second leave by a port, over all its queues; `None` for as many as come. Nothing changes for
    /// ports that the switch does not have: a packet to one is dropped, and does not wait before.
    pub fn set_port_rate(&mut self, port: PortId, rate_pps: Option<u64>) {
        if self.ports.contains(port) {
            self.role.besides_changed();
            self.queues.set_port_rate(port, rate_pps);
        }
    }

    /// How many bits a second leave by a port, over all its queues; `None` for as many as come. What waits shows in the
    /// depths that a program sees. Nothing changes for ports that the switch does not have.
    pub fn set_port_bandwidth(&mut self, port: PortId, bps: Option<u64>) {
        if self.ports.contains(port) {
            self.role.besides_changed();
            self.queues.set_port_bandwidth(port, bps);
        }
    }

    /// How many packets a second leave one queue of a port, or each of them; `None` for as many as come. Nothing
    /// changes for ports that the switch does not have.
    pub fn set_queue_rate(&mut self, port: PortId, priority: Option<usize>, rate_pps: Option<u64>) {
        if self.ports.contains(port) {
            self.role.besides_changed();
            self.queues.set_rate(port, priority, rate_pps);
        }
    }

    /// How many packets one queue of a port holds, or each of them. Nothing changes for ports that the switch
    /// does not have.
    pub fn set_queue_depth(&mut self, port: PortId, priority: Option<usize>, packets: usize) {
        if self.ports.contains(port) {
            self.role.besides_changed();
            self.queues.set_depth(port, priority, packets);
        }
    }

    /// How many packets each queue of every port holds.
    pub fn set_all_queue_depths(&mut self, packets: usize) {
        self.role.besides_changed();
        self.queues.set_depth_everywhere(packets);
    }

    /// Takes a port up or down. False if there is no such port. At a worker it holds for this worker, until the owner
    /// publishes port states.
    pub fn set_port_up(&mut self, port: PortId, up: bool) -> bool {
        if self.objects.is_owner() {
            self.role.besides_changed();
            self.objects.set_port_up(port.0, up);
        }
        self.ports.set_up(port, up)
    }

    /// The ports.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Everything the switch counts, by name; at the owner with what workers count.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// How many packets wait in the queues of a port, and how many those dropped.
    pub fn queue(&self, port: PortId) -> (u64, u64) {
        let waiting = (0..switch::PRIORITIES).map(|priority| self.queues.depth(port, priority) as u64).sum();
        (waiting, self.ports.queue_drops(&self.registry, port))
    }

    /// How many packets wait in queues.
    pub fn waiting(&self) -> usize {
        self.queues.waiting()
    }

    /// Lets everything leave that waits in queues, at once, and forgets their rates: what a switch does before another
    /// takes its place.
    pub fn drain(&mut self, now: Time, output: &mut Vec<Frame>) {
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

    /// What was dropped: by which reason, and at which place of the program.
    pub fn drop_sites(&self) -> Vec<switch::DropSite> {
        self.drops.sites(&self.registry)
    }

    /// Takes back that frames left by a port: its driver could not send them. They count as dropped, each by its reason;
    /// `bytes` is what they had together.
    pub fn take_back_sent(&mut self, port: PortId, frames: &[(DropReason, u64)], bytes: u64) {
        for (reason, count) in frames.iter().filter(|(_, count)| *count > 0) {
            self.drops.count_many(&mut self.registry, *reason, 0, *count);
        }
        let all = frames.iter().map(|(_, count)| count).sum();
        self.ports.take_back_tx(&mut self.registry, port, all, bytes);
    }

    /// Whether anything waits for the control plane.
    pub fn has_notifications(&self) -> bool {
        !self.notifications.is_empty()
    }

    /// What waits for the control plane, oldest first; it is gone from the switch then.
    pub fn take_notifications(&mut self) -> Vec<Notification> {
        self.notifications.drain(..).collect()
    }

    /// What came, left and was dropped, for people.
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
        if self.notifications.len() < self.config.max_notifications {
            self.notifications.push_back(notification);
        } else {
            self.registry.add(self.stats.lost_notifications, 1);
        }
    }

    /// Does everything a frame causes now.
    fn take(&mut self, now: Time, frame: Frame, output: &mut Vec<Frame>) {
        self.receive(now, frame, &mut ());
        self.drive(now, output, &mut ());
    }

    /// Counts a frame in and queues its first pass, or drops it.
    fn receive<R: Recorder>(&mut self, now: Time, frame: Frame, recorder: &mut R) {
        let Frame { port, data } = frame;
        self.work_left = self.config.max_work;
        let reason = if !self.ports.contains(port) {
            Some(DropReason::NoIngressPort)
        } else if !self.ports.is_up(port) {
            Some(DropReason::IngressPortDown)
        } else if data.len() < self.config.min_frame {
            Some(DropReason::Runt)
        } else if data.len() > self.config.max_frame {
            Some(DropReason::Oversized)
        } else {
            None
        };
        self.ports.count_rx(&mut self.registry, port, data.len());
        let packet = self.packet(data, port, recorder);
        match reason {
            Some(reason) => self.drop_packet(packet, reason, recorder),
            None => self.work.push_back(Work::Ingress(packet, now)),
        }
    }

    /// Runs everything that can run by `now`: passes that wait for nothing, and packets whose queue lets them go.
    fn drive<R: Recorder>(&mut self, now: Time, output: &mut Vec<Frame>, recorder: &mut R) {
        loop {
            let work = match self.work.pop_front() {
                Some(work) => work,
                None => match self.queues.pop(now) {
                    Some(left) => {
                        let depth = left.depth;
                        self.ports.set_depth(&mut self.registry, left.port, left.priority, depth);
                        self.work_left = self.config.max_work;
                        Work::Egress(left.item, packet::Leaving { port: left.port, at: left.at, depth })
                    }
                    None => return,
                },
            };
            let traced = work.packet().trace == self.trace_number && self.trace_number != 0;
            let Some(left) = self.work_left.checked_sub(1) else {
                match traced {
                    true => self.drop_packet(work.into_packet(), DropReason::LoopLimit, recorder),
                    false => self.drop_packet(work.into_packet(), DropReason::LoopLimit, &mut ()),
                }
                continue;
            };
            self.work_left = left;
            match (work, traced) {
                (Work::Ingress(packet, at), true) => self.ingress(packet, at, recorder),
                (Work::Ingress(packet, at), false) => self.ingress(packet, at, &mut ()),
                (Work::Egress(packet, leaving), true) => self.egress(packet, leaving, output, recorder),
                (Work::Egress(packet, leaving), false) => self.egress(packet, leaving, output, &mut ()),
            }
        }
    }
}

impl Device for Switch {
    fn step(&mut self, now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>) {
        self.begin_batch();
        self.objects.advance_clock(now.as_ns());
        self.sweep_idle(now);
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
