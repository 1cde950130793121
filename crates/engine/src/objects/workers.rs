//! Several workers on one state: how versions come to them, and what an architecture publishes with them.

use std::any::Any;
use std::sync::Arc;

use super::control::{Attached, Change};
use super::{Objects, Random, Side, Tally};

impl Objects {
    /// What another worker, on another thread, runs packets with. It pins a version before its first packet. Its random
    /// numbers are a stream of its own, the same for the same seed and number of workers before it.
    ///
    /// From now on what the control plane writes is seen by this owner at once, and by workers after
    /// [`Objects::publish`].
    ///
    /// # Panics
    /// If this is a worker itself.
    pub fn worker(&mut self) -> Objects {
        let Side::Owner(writer) = &mut self.side else { panic!("workers are made by the owner of the objects") };
        writer.publish();
        let side = Side::Worker(writer.reader());
        self.several = true;
        self.workers += 1;
        Objects {
            side,
            facts: Arc::clone(&self.facts),
            tally: self.free_tally(),
            tallies: Vec::new(),
            shared: Arc::clone(&self.shared),
            several: true,
            exclusive: self.exclusive.another(),
            chosen: self.chosen.clone(),
            random: Random::stream(self.seed, self.workers),
            seed: self.seed,
            workers: 0,
            now_ns: self.now_ns,
        }
    }

    /// A tally that a worker has left behind, which goes on, or a new one.
    fn free_tally(&mut self) -> Arc<Tally> {
        if let Some(free) = self.tallies.iter_mut().find_map(|tally| Arc::get_mut(tally).is_some().then_some(tally)) {
            return Arc::clone(free);
        }
        let tally = Arc::new(Tally::new(self.facts.counters.len(), self.chosen.len()));
        self.tallies.push(Arc::clone(&tally));
        tally
    }

    /// Whether this is the owner, whom the control plane speaks to.
    pub fn is_owner(&self) -> bool {
        matches!(self.side, Side::Owner(_))
    }

    /// At the owner: lets workers see everything that was written since the last call, all at once, from their next
    /// batch on. Costs next to nothing without workers or changes.
    #[inline]
    pub fn publish(&mut self) {
        if let Side::Owner(writer) = &mut self.side {
            writer.publish();
        }
    }

    /// At a worker: goes on with the version that is published now; called before each batch of packets. True if it is
    /// another than before. At the owner, who always has the newest, false.
    #[inline]
    pub fn pin(&mut self) -> bool {
        match &mut self.side {
            Side::Owner(_) => false,
            Side::Worker(reader) => reader.renew(),
        }
    }

    /// At a worker that has nothing to do for a while: lets go of the version it has, so that the next change need not
    /// copy everything. The worker pins before it runs another packet.
    pub fn rest(&mut self) {
        if let Side::Worker(reader) = &mut self.side {
            reader.rest();
        }
    }

    /// At the owner: whether the next change is made at once. Otherwise a worker is still busy with the version before
    /// last, and the change would copy everything; within a batch's time it is clear.
    pub fn is_clear(&self) -> bool {
        match &self.side {
            Side::Owner(writer) => writer.is_clear(),
            Side::Worker(_) => false,
        }
    }

    /// At the owner: how often everything was copied for a change: once when the first came after the first worker,
    /// and whenever a change did not wait until [`Objects::is_clear`].
    pub fn copies_made(&self) -> u64 {
        match &self.side {
            Side::Owner(writer) => writer.copies_made(),
            Side::Worker(_) => 0,
        }
    }

    /// What the architecture keeps with this version: published, and seen, together with tables.
    pub fn attached(&self) -> &Arc<dyn Any + Send + Sync> {
        &self.control().attached.0
    }

    /// Sets what the architecture keeps with the next version.
    pub fn attach(&mut self, what: Arc<dyn Any + Send + Sync>) {
        self.change(Change::Attach(Attached(what)));
    }
}
