//! Bounds the number of users of a resource, for example of connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A counting semaphore whose permits are given back when they are dropped.
pub struct Semaphore {
    max_permits: usize,
    used: Arc<AtomicUsize>,
}

/// The right to use the resource until this is dropped.
pub struct SemaphorePermit(Arc<AtomicUsize>);

impl Semaphore {
    /// Returns a semaphore whose permits are all free.
    pub fn new(max_permits: usize) -> Semaphore {
        Semaphore { max_permits, used: Arc::default() }
    }

    /// Takes a permit; `None` if all are used.
    pub fn try_acquire(&self) -> Option<SemaphorePermit> {
        let next = |used| (used < self.max_permits).then_some(used + 1);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        Some(SemaphorePermit(Arc::clone(&self.used)))
    }
}

impl Drop for SemaphorePermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_is_free_again_after_it_is_dropped() {
        let semaphore = Semaphore::new(1);
        let permit = semaphore.try_acquire().expect("it is free");
        assert!(semaphore.try_acquire().is_none());
        drop(permit);
        assert!(semaphore.try_acquire().is_some());
    }
}
