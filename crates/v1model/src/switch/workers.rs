//! Runs several workers on one program and one state.
//!
//! ```text
//!                 owner ── publish ──> version (tables, groups, sessions, port states, queue settings)
//!   control plane ─┘ ▲                     │ pin, once a batch
//!                    └── counts ── workers ◄┘ ── registers, meters ── workers
//! ```

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use switch::{EgressQueues, MirrorSessions, MulticastGroups, PortId, QueueSettings};

use super::Switch;
use super::idle::Idle;
use super::in_place::InPlace;
use super::paths::PathCounts;
use super::state::Machine;

/// The role of a switch among those that share a state.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkerRole {
    /// Number of workers that share the queues' rates; 0 while the owner is alone.
    workers: u32,
    /// Whether there are changes to publish that the engine does not know of.
    besides_changed: bool,
    /// At a worker, the version that it follows.
    followed: Option<Arc<dyn Any + Send + Sync>>,
}

impl WorkerRole {
    /// Whether several workers share the state.
    pub fn is_shared(&self) -> bool {
        self.workers > 0
    }

    pub fn besides_changed(&mut self) {
        self.besides_changed = true;
    }
}

/// State that the switch publishes with the tables.
struct PublishedState {
    groups: Arc<MulticastGroups>,
    mirrors: Arc<MirrorSessions>,
    queues: QueueSettings,
    down: Vec<PortId>,
    machine: Option<Arc<Machine>>,
}

impl Switch {
    /// Creates switches for other threads, which run packets with this switch's program and state. The caller
    /// distributes the packets; those of one flow should go to one worker, in order.
    ///
    /// This switch becomes the owner: workers see changes of it (entries, groups, sessions, ports, queues) after
    /// [`Switch::publish`], all at once, from their next batch on. Its counters include the workers'. Notifications
    /// come from the switch that made them. The owner watches entries that age, so it must be stepped regularly.
    /// Every worker has queues of its own, and an equal share of each rate and depth.
    ///
    /// Call it once: shares are those of `count` workers.
    ///
    /// # Panics
    /// If this is a worker itself.
    pub fn workers(&mut self, count: u32) -> Vec<Switch> {
        self.role = WorkerRole { workers: count, besides_changed: true, followed: None };
        self.publish();
        (0..count).map(|_| self.worker()).collect()
    }

    fn worker(&mut self) -> Switch {
        Switch {
            program: Arc::clone(&self.program),
            layout: self.layout.clone(),
            config: self.config.clone(),
            objects: self.objects.worker(),
            machine: self.machine.clone(),
            unfit: self.unfit.clone(),
            compile_job: None,
            in_place: self.machine.as_deref().map(InPlace::new).map(Box::new),
            groups: Arc::clone(&self.groups),
            mirrors: Arc::clone(&self.mirrors),
            queues: EgressQueues::default(),
            ports: self.ports.clone(),
            registry: self.registry.worker(),
            drops: self.drops.clone(),
            stats: self.stats,
            paths: PathCounts::default(),
            notifications: VecDeque::new(),
            idle: Idle::default(),
            work: VecDeque::new(),
            work_left: 0,
            spare: Vec::new(),
            copy_origin: jit::CopyOrigin::default(),
            chosen: Vec::new(),
            trace_number: 0,
            role: self.role.clone(),
            rows: None,
            tiny: self.tiny.clone(),
            kernel: None,
            kernel_counts: BTreeMap::default(),
            kernel_diverted: BTreeSet::default(),
        }
    }

    /// Notes a change that the engine does not know of.
    pub(super) fn besides_changed(&mut self) {
        self.role.besides_changed();
        if let Some(link) = &mut self.kernel {
            link.note_ports_changed();
        }
    }

    /// Publishes all changes since the last call (RCU-style): workers see them all at once, from their next batch on,
    /// and packets in the kernel from the next one on. Stepping the switch publishes to workers, too.
    pub fn publish(&mut self) {
        self.update_kernel();
        if self.role.workers == 0 || !self.objects.is_owner() {
            return;
        }
        if std::mem::take(&mut self.role.besides_changed) {
            let (groups, mirrors) = (Arc::clone(&self.groups), Arc::clone(&self.mirrors));
            let down = self.ports.ids().filter(|port| !self.ports.is_up(*port)).collect();
            let (queues, machine) = (self.queues.settings(), self.machine.clone());
            self.objects.attach(Arc::new(PublishedState { groups, mirrors, queues, down, machine }));
        }
        self.objects.publish();
    }

    /// At the owner: whether changes can be made without copying all tables, since no worker is still in a batch that
    /// began two publications ago. Always true without workers.
    pub fn is_clear(&self) -> bool {
        self.objects.is_clear()
    }

    /// At an idle worker: releases its version of the tables.
    pub fn rest(&mut self) {
        self.objects.rest();
    }

    /// Begins a batch: the owner publishes, a worker pins the newest version.
    #[inline]
    pub(super) fn begin_batch(&mut self) {
        if self.role.workers == 0 {
            return;
        }
        self.publish();
        if self.objects.pin() {
            self.follow();
        }
    }

    /// Adopts the state in the version beside the tables.
    fn follow(&mut self) {
        let attached = self.objects.attached();
        if self.role.followed.as_ref().is_some_and(|followed| Arc::ptr_eq(followed, attached)) {
            return;
        }
        let attached = Arc::clone(attached);
        let besides: &PublishedState = attached.downcast_ref().expect("the owner attaches it before there are workers");
        (self.groups, self.mirrors) = (Arc::clone(&besides.groups), Arc::clone(&besides.mirrors));
        self.queues.share(&besides.queues, self.role.workers);
        let ports: Vec<_> = self.ports.ids().collect();
        for port in ports {
            self.ports.set_up(port, !besides.down.contains(&port));
        }
        if let (None, Some(machine)) = (&self.machine, &besides.machine) {
            self.run_machine(Arc::clone(machine));
        }
        self.role.followed = Some(attached);
    }
}
