//! Supports several workers on one state: distribution of versions, and the architecture's attached state.

use std::any::Any;
use std::sync::Arc;

use super::control::{Attached, ControlChange};
use super::use_times::UseTimes;
use super::{Objects, RandomStream, Tally, ViewRole};

impl Objects {
    /// Creates a worker, with which another thread runs packets. It pins a version before its first packet. Its random
    /// numbers are a separate stream, determined by the seed and the number of workers created before it.
    ///
    /// From now on, this owner sees the control plane's writes at once, and workers see them after
    /// [`Objects::publish`].
    ///
    /// # Panics
    /// Panics if this is a worker itself.
    pub fn worker(&mut self) -> Objects {
        let ViewRole::Owner(writer) = &mut self.side else { panic!("workers are made by the owner of the objects") };
        writer.publish();
        let side = ViewRole::Worker(writer.reader());
        self.several = true;
        self.workers += 1;
        let mut worker = Objects {
            side,
            sizes: Arc::clone(&self.sizes),
            tally: self.free_tally(),
            tallies: Vec::new(),
            shared: Arc::clone(&self.shared),
            several: true,
            exclusive: self.exclusive.another(),
            chosen: self.chosen.clone(),
            random: RandomStream::stream(self.seed, self.workers),
            seed: self.seed,
            workers: 0,
            now_ns: self.now_ns,
            rows: None,
            ledgers: None,
            array_addresses: Vec::new(),
            use_times: UseTimes::default(),
            changes: None,
        };
        worker.renew_array_addresses();
        worker
    }

    /// Returns a tally that a dropped worker has left, which continues counting, or a new one.
    fn free_tally(&mut self) -> Arc<Tally> {
        if let Some(free) = self.tallies.iter_mut().find_map(|tally| Arc::get_mut(tally).is_some().then_some(tally)) {
            return Arc::clone(free);
        }
        let tally = Arc::new(Tally::new(self.sizes.counters.len(), self.chosen.len()));
        self.tallies.push(Arc::clone(&tally));
        tally
    }

    /// Whether this is the owner, which serves the control plane.
    pub fn is_owner(&self) -> bool {
        matches!(self.side, ViewRole::Owner(_))
    }

    /// Publishes everything that the owner has written since the last call; workers see all of it from their next batch
    /// on. Without workers or changes the cost is negligible. Called by the owner.
    #[inline]
    pub fn publish(&mut self) {
        if let ViewRole::Owner(writer) = &mut self.side {
            writer.publish();
        }
    }

    /// Pins the published version; a worker calls this before each batch of packets. Returns true if it differs from
    /// the one before. The owner always has the newest version and gets false.
    #[inline]
    pub fn pin(&mut self) -> bool {
        match &mut self.side {
            ViewRole::Owner(_) => false,
            ViewRole::Worker(reader) => reader.renew(),
        }
    }

    /// Releases the pinned version of a worker that will be idle for a while, so that the next change need not copy
    /// everything. The worker pins before it runs another packet.
    pub fn rest(&mut self) {
        if let ViewRole::Worker(reader) = &mut self.side {
            reader.rest();
        }
    }

    /// Whether the owner's next change can reuse a copy. Otherwise a worker is still busy with the version before last,
    /// and the change would copy everything; the delay is at most the duration of a batch.
    pub fn is_clear(&self) -> bool {
        match &self.side {
            ViewRole::Owner(writer) => writer.is_clear(),
            ViewRole::Worker(_) => false,
        }
    }

    /// Returns how often the owner has copied everything for a change: once at the first change after the first worker,
    /// and whenever a change did not wait for [`Objects::is_clear`].
    pub fn copies_made(&self) -> u64 {
        match &self.side {
            ViewRole::Owner(writer) => writer.copies_made(),
            ViewRole::Worker(_) => 0,
        }
    }

    /// Returns the architecture's state in this version, which is published and seen together with tables.
    pub fn attached(&self) -> &Arc<dyn Any + Send + Sync> {
        &self.control().attached.0
    }

    /// Sets the architecture's state in the next version.
    pub fn attach(&mut self, what: Arc<dyn Any + Send + Sync>) {
        self.change(ControlChange::Attach(Attached(what)));
    }
}
