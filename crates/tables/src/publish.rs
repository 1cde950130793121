//! One writer, many readers: versions that readers see whole.
//!
//! While there is only a writer there is one copy of the data, and changes are made in it. Once there are readers there
//! are two. Readers have one; the writer changes the other, publishes it, and makes the same changes to the first as
//! soon as the last reader has left it. So the data are plain: a reader pays no atomic operation but the check for a
//! newer version, once a batch (see [`Reader::pin`]), and whatever the writer does between two calls of
//! [`Writer::publish`] becomes visible at once.
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
//! Nobody waits. A reader never blocks. A writer that changes something while a reader still holds the copy before
//! last makes a new copy instead ([`Writer::copies_made`]); a caller that had rather wait asks [`Writer::is_clear`]
//! first. A reader holds one version at most, so there are never more than `2 + readers` copies, however long a reader
//! sleeps; one that goes idle calls [`Reader::rest`] and holds none.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;

/// Data that can make a change again, with the same result: two copies that saw the same changes in the same order are
/// equal.
pub trait Absorb<C>: Clone {
    /// Makes a change.
    fn absorb(&mut self, change: &C);

    /// Makes a change that no other copy has to see.
    fn absorb_last(&mut self, change: C) {
        self.absorb(&change);
    }
}

/// What writer and readers meet at.
struct Shared<T> {
    /// Grows after each publication: a reader that has seen this number has the newest version, or a newer one still.
    number: AtomicU64,
    version: ArcSwap<T>,
}

/// The side that changes, and sees its own changes at once.
pub struct Writer<T, C> {
    latest: Arc<T>,
    /// `None` until there is a reader.
    shared: Option<Arc<Shared<T>>>,
    /// The version before the published one, and the changes that it has not seen.
    previous: Option<Arc<T>>,
    missed: Vec<C>,
    /// Changes since the last publication.
    fresh: Vec<C>,
    copies_made: u64,
}

/// A reader's view; each thread has its own.
pub struct Reader<T> {
    shared: Arc<Shared<T>>,
    number: u64,
    held: Option<Arc<T>>,
}

impl<T: Absorb<C>, C> Writer<T, C> {
    /// With these data to begin with.
    pub fn new(first: T) -> Self {
        Writer {
            latest: Arc::new(first),
            shared: None,
            previous: None,
            missed: Vec::new(),
            fresh: Vec::new(),
            copies_made: 0,
        }
    }

    /// A reader. The first one sees everything that has been changed until now, the others what is published.
    pub fn reader(&mut self) -> Reader<T> {
        let latest = &self.latest;
        let shared = self.shared.get_or_insert_with(|| {
            Arc::new(Shared { number: AtomicU64::new(0), version: ArcSwap::new(Arc::clone(latest)) })
        });
        Reader { shared: Arc::clone(shared), number: 0, held: None }
    }

    /// The newest data, changes that are not published included.
    #[inline]
    pub fn latest(&self) -> &T {
        &self.latest
    }

    /// Makes a change, which readers see after the next [`Writer::publish`].
    pub fn change(&mut self, change: C) {
        if let Some(data) = Arc::get_mut(&mut self.latest) {
            if self.shared.is_none() {
                return data.absorb_last(change);
            }
            data.absorb(&change);
        } else {
            // What is newest is published: the other copy is brought up to date and goes on.
            self.begin().absorb(&change);
        }
        self.fresh.push(change);
    }

    /// Makes the other copy the newest one, equal to what is published.
    fn begin(&mut self) -> &mut T {
        let ready = self.previous.take().and_then(|mut previous| {
            let data = Arc::get_mut(&mut previous)?;
            self.missed.iter().for_each(|change| data.absorb(change));
            Some(previous)
        });
        self.missed.clear();
        self.latest = ready.unwrap_or_else(|| {
            self.copies_made += 1;
            Arc::new(T::clone(&self.latest))
        });
        Arc::get_mut(&mut self.latest).expect("only the writer has the copy that it changes")
    }

    /// Shows readers all changes since the last call, at once. Without any it does nothing.
    pub fn publish(&mut self) {
        let Some(shared) = self.shared.as_ref().filter(|_| !self.fresh.is_empty()) else { return };
        self.previous = Some(shared.version.swap(Arc::clone(&self.latest)));
        shared.number.fetch_add(1, Ordering::Release);
        std::mem::swap(&mut self.missed, &mut self.fresh);
    }

    /// Whether the next change will find a copy to make it in, because no reader holds it any more.
    pub fn is_clear(&self) -> bool {
        self.shared.is_none()
            || !self.fresh.is_empty()
            || self.previous.as_ref().is_some_and(|previous| Arc::strong_count(previous) == 1)
    }

    /// How often a copy had to be made: once for the second copy, and for each publication that a reader lagged behind.
    pub fn copies_made(&self) -> u64 {
        self.copies_made
    }
}

impl<T> Reader<T> {
    /// The version that is published now; call it once a batch. Costs one load where nothing has been published
    /// since the last call. What it returns does not change while it is borrowed.
    #[inline]
    pub fn pin(&mut self) -> &T {
        self.renew();
        self.pinned()
    }

    /// Pins the version that is published now. True if it is another than the one that was held.
    #[inline]
    pub fn renew(&mut self) -> bool {
        let number = self.shared.number.load(Ordering::Acquire);
        if self.number == number && self.held.is_some() {
            return false;
        }
        self.number = number;
        self.held = Some(self.shared.version.load_full());
        true
    }

    /// The version that was pinned last.
    ///
    /// # Panics
    /// If none has been pinned since the reader was made or went to rest.
    #[inline]
    pub fn pinned(&self) -> &T {
        self.held.as_deref().expect("a reader pins before it reads")
    }

    /// Lets go of the version that is held, so that the writer can use its memory.
    pub fn rest(&mut self) {
        self.held = None;
    }
}

impl<T> Clone for Reader<T> {
    fn clone(&self) -> Self {
        Reader { shared: Arc::clone(&self.shared), number: 0, held: None }
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
