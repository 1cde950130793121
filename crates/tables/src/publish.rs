//! One writer, many readers: versions that readers see whole.
//!
//! There are two copies of the data. Readers have one; the writer changes the other, publishes it, and makes the same
//! changes to the first as soon as the last reader has left it. So the data are plain: a reader pays no atomic
//! operation but the check for a newer version, once a batch (see [`Reader::pin`]), and whatever the writer does
//! between two calls of [`Writer::publish`] becomes visible at once.
//!
//! ```text
//! writer:   change, change, publish            change, publish
//!               copy B  ────────┐ A: same changes ┌─ copy A
//! readers:  ── copy A ── pin ───┴── copy B ──── pin ┴────── copy A
//! ```
//!
//! Why so, and not by publishing inside the structures with atomic stores: that would make each structure's update
//! order a proof of its own, could not show two changes at once, and would need deferred reclamation for every node.
//! The price is memory (two copies once a table changes while it is read; one before) and each change made twice.
//!
//! Nobody waits. A reader never blocks. A writer that publishes while a reader still holds the copy before
//! last makes a new copy instead ([`Writer::copies_made`]); a caller that had rather wait asks [`Writer::is_clear`]
//! first. A reader holds one version at most, so there are never more than `2 + readers` copies, however long a reader
//! sleeps; one that goes idle calls [`Reader::rest`] and holds none.

use std::fmt;
use std::sync::Arc;

use arc_swap::{ArcSwap, Cache};

/// Data that can make a change again, with the same result: two copies that saw the same changes in the same order are
/// equal.
pub trait Absorb<C>: Clone {
    /// Makes a change.
    fn absorb(&mut self, change: &C);
}

/// The side that changes.
pub struct Writer<T, C> {
    shared: Arc<ArcSwap<T>>,
    /// What the next version will be; `None` until something changes after a publication.
    next: Option<Arc<T>>,
    /// The version before the published one, and the changes that it has not seen.
    previous: Option<Arc<T>>,
    missed: Vec<C>,
    /// Changes since the last publication.
    fresh: Vec<C>,
    copies_made: u64,
}

/// A reader's view; each thread has its own.
pub struct Reader<T> {
    shared: Arc<ArcSwap<T>>,
    /// The version that is held; its address is compared with the published one's, which is enough, since a version
    /// cannot be used again while it is held.
    held: Option<Cache<Arc<ArcSwap<T>>, Arc<T>>>,
}

impl<T: Absorb<C>, C> Writer<T, C> {
    /// Publishes a first version.
    pub fn new(first: T) -> Self {
        let shared = Arc::new(ArcSwap::from_pointee(first));
        Writer { shared, next: None, previous: None, missed: Vec::new(), fresh: Vec::new(), copies_made: 0 }
    }

    /// A reader, which sees what is published.
    pub fn reader(&self) -> Reader<T> {
        Reader { shared: Arc::clone(&self.shared), held: None }
    }

    /// Makes a change, which readers see after the next [`Writer::publish`].
    pub fn change(&mut self, change: C) {
        self.next_mut().absorb(&change);
        self.fresh.push(change);
    }

    /// What the writer will publish next: its own changes included.
    pub fn pending(&mut self) -> &T {
        self.next_mut()
    }

    /// The copy to change, brought up to date.
    fn next_mut(&mut self) -> &mut T {
        let next = self.next.take().unwrap_or_else(|| {
            let previous = self.previous.take().and_then(|mut previous| {
                let data = Arc::get_mut(&mut previous)?;
                self.missed.iter().for_each(|change| data.absorb(change));
                Some(previous)
            });
            self.missed.clear();
            previous.unwrap_or_else(|| {
                self.copies_made += 1;
                Arc::new(T::clone(&self.shared.load()))
            })
        });
        Arc::get_mut(self.next.insert(next)).expect("only the writer has the copy that it changes")
    }

    /// Shows readers all changes since the last call, at once. Without any it does nothing.
    pub fn publish(&mut self) {
        let Some(next) = self.next.take() else { return };
        let before = self.shared.swap(next);
        self.previous = Some(before);
        std::mem::swap(&mut self.missed, &mut self.fresh);
    }

    /// Whether the next change will find a copy to make it in, because no reader holds it any more.
    pub fn is_clear(&self) -> bool {
        self.next.is_some() || self.previous.as_ref().is_some_and(|previous| Arc::strong_count(previous) == 1)
    }

    /// How often a copy had to be made: once for the second copy, and for each publication that a reader lagged behind.
    pub fn copies_made(&self) -> u64 {
        self.copies_made
    }
}

impl<T> Reader<T> {
    /// The version that is published now; call it once a batch. Costs one load where nothing has been published
    /// since the last call, and two more atomic operations where something has. What it returns does not change
    /// while it is borrowed.
    #[inline]
    pub fn pin(&mut self) -> &T {
        self.held.get_or_insert_with(|| Cache::new(Arc::clone(&self.shared))).load()
    }

    /// Lets go of the version that is held, so that the writer can use its memory.
    pub fn rest(&mut self) {
        self.held = None;
    }
}

impl<T> Clone for Reader<T> {
    fn clone(&self) -> Self {
        Reader { shared: Arc::clone(&self.shared), held: None }
    }
}

impl<T, C> fmt::Debug for Writer<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("fresh", &self.fresh.len()).field("copies_made", &self.copies_made).finish()
    }
}

impl<T> fmt::Debug for Reader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("holds", &self.held.is_some()).finish()
    }
}
