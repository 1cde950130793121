//! Several workers on one program and one state.
//!
//! ```text
//!                 owner ── publish ──> version (tables, groups, sessions, port states, queue settings)
//!   control plane ─┘ ▲                     │ pin, once a batch
//!                    └── counts ── workers ◄┘ ── registers, meters ── workers
//! ```

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use switch::{EgressQueues, MirrorSessions, MulticastGroups, PortId, QueueSettings};

use super::Switch;
use super::idle::Idle;
use super::in_place::InPlace;

/// Which of those that share a state a switch is.
#[derive(Clone, Debug, Default)]
pub(super) struct Role {
    /// How many workers share the queues' rates; 0 while the owner is alone.
    workers: u32,
    /// Whether there is something to publish that the engine does not know of.
    besides_changed: bool,
    /// At a worker, what it follows.
    followed: Option<Arc<dyn Any + Send + Sync>>,
}

impl Role {
    pub fn besides_changed(&mut self) {
        self.besides_changed = true;
    }
}

/// What the switch publishes with the tables.
struct Besides {
    groups: Arc<MulticastGroups>,
    mirrors: Arc<MirrorSessions>,
    queues: QueueSettings,
    down: Vec<PortId>,
}

impl Switch {
    /// Switches for other threads that run packets with this one's program and state. Which packets each gets is the
    /// caller's choice; those of one flow should go to one worker, in their order.
    ///
    /// From now on this switch is the owner: what it is told (entries, groups, sessions, ports, queues) workers see
    /// after [`Switch::publish`], all at once, from their next batch on. Its numbers contain the workers'.
    /// Notifications come from the switch that made them; entries that age are the owner's to watch, so it has to be
    /// stepped now and then. Every worker has queues of its own, and an equal share of each rate and depth.
    ///
    /// Call it once: shares are those of `count` workers.
    ///
    /// # Panics
    /// If this is a worker itself.
    pub fn workers(&mut self, count: u32) -> Vec<Switch> {
        self.role = Role { workers: count, besides_changed: true, followed: None };
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
            in_place: self.machine.as_deref().map(InPlace::new),
            groups: Arc::clone(&self.groups),
            mirrors: Arc::clone(&self.mirrors),
            queues: EgressQueues::default(),
            ports: self.ports.clone(),
            registry: self.registry.worker(),
            drops: self.drops.clone(),
            stats: self.stats,
            notifications: VecDeque::new(),
            idle: Idle::default(),
            work: VecDeque::new(),
            work_left: 0,
            spare: Vec::new(),
            trace_number: 0,
            role: self.role.clone(),
        }
    }

    /// Lets workers see everything that this switch was told since the last call, all at once, from their next batch
    /// on. Stepping the switch does it, too. Without workers there is nothing to do.
    pub fn publish(&mut self) {
        if self.role.workers == 0 || !self.objects.is_owner() {
            return;
        }
        if std::mem::take(&mut self.role.besides_changed) {
            let (groups, mirrors) = (Arc::clone(&self.groups), Arc::clone(&self.mirrors));
            let down = self.ports.ids().filter(|port| !self.ports.is_up(*port)).collect();
            self.objects.attach(Arc::new(Besides { groups, mirrors, queues: self.queues.settings(), down }));
        }
        self.objects.publish();
    }

    /// At the owner: whether changes can be made now without copying all tables, since no worker is still in a batch that
    /// began two publications ago. Always true without workers.
    pub fn is_clear(&self) -> bool {
        self.objects.is_clear()
    }

    /// At a worker without work: lets go of the version of the tables it has.
    pub fn rest(&mut self) {
        self.objects.rest();
    }

    /// At the begin of a batch: the owner publishes, a worker takes the newest version.
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

    /// Takes over what is in the version beside the tables.
    fn follow(&mut self) {
        let attached = self.objects.attached();
        if self.role.followed.as_ref().is_some_and(|followed| Arc::ptr_eq(followed, attached)) {
            return;
        }
        let attached = Arc::clone(attached);
        let besides: &Besides = attached.downcast_ref().expect("the owner attaches it before there are workers");
        (self.groups, self.mirrors) = (Arc::clone(&besides.groups), Arc::clone(&besides.mirrors));
        self.queues.share(&besides.queues, self.role.workers);
        let ports: Vec<_> = self.ports.ids().collect();
        for port in ports {
            self.ports.set_up(port, !besides.down.contains(&port));
        }
        self.role.followed = Some(attached);
    }
}
