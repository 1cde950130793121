//! Implements RCU-style publication with two copies (left-right): one writer, many readers, atomic versions.
//!
//! While there is only a writer, there is one copy of the data, changed in place. Once there are readers, there are
//! two. Readers use one; the writer changes the other, publishes it, and replays the same changes on the first as soon
//! as the last reader has left it (quiescence). So the data are plain: a reader pays no atomic operation except the
//! check for a newer version, once per batch (see [`RcuReader::pin`]), and all changes between two calls of
//! [`RcuWriter::publish`] become visible at once.
//!
//! ```text
//! writer:   change, change, publish            change, publish
//!               copy B  ────────┐ A: same changes ┌─ copy A
//! readers:  ── copy A ── pin ───┴── copy B ──── pin ┴────── copy A
//! ```
//!
//! The alternative is to publish inside the structures with atomic stores. It was rejected: each structure's update
//! order would need a proof of its own, two changes could not become visible at once, and every node would need
//! deferred reclamation. The price of two copies is memory (two copies once a table changes while it is read; one
//! before) and that each change is made twice.
//!
//! Nobody waits. A reader never blocks. A writer that makes a change while a reader still holds the copy before last
//! makes a new copy instead ([`RcuWriter::copies_made`]); a caller that would rather wait checks
//! [`RcuWriter::is_clear`] first. A reader holds at most one version, so there are never more than `2 + readers`
//! copies, however long a reader sleeps. A reader that goes idle calls [`RcuReader::rest`] and holds none.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;

/// Data that can replay a change with the same result: two copies to which the same changes were applied in the same
/// order are equal.
pub trait Absorb<C>: Clone {
    /// Applies a change.
    fn absorb(&mut self, change: &C);

    /// Applies a change that will not be replayed on another copy.
    fn absorb_last(&mut self, change: C) {
        self.absorb(&change);
    }
}

/// The state that writer and readers share.
struct PublishedVersion<T> {
    /// Number of publications. A reader that has seen this number has the newest version, or an even newer one.
    number: AtomicU64,
    version: ArcSwap<T>,
}

/// The writing side, which sees its own changes at once.
pub struct RcuWriter<T, C> {
    latest: Arc<T>,
    /// `None` until there is a reader.
    shared: Option<Arc<PublishedVersion<T>>>,
    /// The version before the published one, and the changes it lacks.
    previous: Option<Arc<T>>,
    missed: Vec<C>,
    /// Changes since the last publication.
    fresh: Vec<C>,
    copies_made: u64,
}

/// A reader's view of the data; each thread has its own.
pub struct RcuReader<T> {
    shared: Arc<PublishedVersion<T>>,
    number: u64,
    pinned: Option<Arc<T>>,
}

impl<T: Absorb<C>, C> RcuWriter<T, C> {
    /// Creates a writer with these initial data.
    pub fn new(first: T) -> Self {
        RcuWriter {
            latest: Arc::new(first),
            shared: None,
            previous: None,
            missed: Vec::new(),
            fresh: Vec::new(),
            copies_made: 0,
        }
    }

    /// Creates a reader. The first one sees all changes made so far, later ones the published version.
    pub fn reader(&mut self) -> RcuReader<T> {
        let latest = &self.latest;
        let shared = self.shared.get_or_insert_with(|| {
            Arc::new(PublishedVersion { number: AtomicU64::new(0), version: ArcSwap::new(Arc::clone(latest)) })
        });
        RcuReader { shared: Arc::clone(shared), number: 0, pinned: None }
    }

    /// Returns the newest data, including unpublished changes.
    #[inline]
    pub fn latest(&self) -> &T {
        &self.latest
    }

    /// Applies a change, which readers see after the next [`RcuWriter::publish`].
    pub fn change(&mut self, change: C) {
        if let Some(data) = Arc::get_mut(&mut self.latest) {
            if self.shared.is_none() {
                return data.absorb_last(change);
            }
            data.absorb(&change);
        } else {
            // The newest data are published, so the other copy is brought up to date and becomes the newest.
            self.begin().absorb(&change);
        }
        self.fresh.push(change);
    }

    /// Makes the other copy the newest, equal to the published one.
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

    /// Publishes all changes since the last call, at once. Without changes it does nothing.
    pub fn publish(&mut self) {
        let Some(shared) = self.shared.as_ref().filter(|_| !self.fresh.is_empty()) else { return };
        self.previous = Some(shared.version.swap(Arc::clone(&self.latest)));
        shared.number.fetch_add(1, Ordering::Release);
        std::mem::swap(&mut self.missed, &mut self.fresh);
    }

    /// Whether the next change can reuse the other copy, because no reader holds it any more.
    pub fn is_clear(&self) -> bool {
        self.shared.is_none()
            || !self.fresh.is_empty()
            || self.previous.as_ref().is_some_and(|previous| Arc::strong_count(previous) == 1)
    }

    /// Returns the number of copies made: one for the second copy, and one for each publication that found a reader
    /// lagging.
    pub fn copies_made(&self) -> u64 {
        self.copies_made
    }
}

impl<T> RcuReader<T> {
    /// Pins and returns the published version; call it once per batch. It costs one load if nothing has been published
    /// since the last call. The result does not change while it is borrowed.
    #[inline]
    pub fn pin(&mut self) -> &T {
        self.renew();
        self.pinned()
    }

    /// Pins the published version. Returns true if it differs from the one held before.
    #[inline]
    pub fn renew(&mut self) -> bool {
        let number = self.shared.number.load(Ordering::Acquire);
        if self.number == number && self.pinned.is_some() {
            return false;
        }
        self.number = number;
        self.pinned = Some(self.shared.version.load_full());
        true
    }

    /// Returns the version pinned last.
    ///
    /// # Panics
    /// Panics if none has been pinned since the reader was created or went to rest.
    #[inline]
    pub fn pinned(&self) -> &T {
        self.pinned.as_deref().expect("a reader pins before it reads")
    }

    /// Releases the version, so that the writer can reuse its memory.
    pub fn rest(&mut self) {
        self.pinned = None;
    }
}

impl<T> Clone for RcuReader<T> {
    fn clone(&self) -> Self {
        RcuReader { shared: Arc::clone(&self.shared), number: 0, pinned: None }
    }
}

impl<T, C> fmt::Debug for RcuWriter<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RcuWriter").field("fresh", &self.fresh.len()).field("copies_made", &self.copies_made).finish()
    }
}

impl<T> fmt::Debug for RcuReader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RcuReader").field("holds", &self.pinned.is_some()).finish()
    }
}
