//! Provides named locks for tests of one binary that must not run at the same time.
//!
//! The tests of a binary are threads of one process. Tests that load the machine or measure time disturb each other;
//! such tests hold the lock of their resource, for example [`LIVE_TRAFFIC`].

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The name of the lock of tests that send traffic through running switches and expect it within a time.
pub const LIVE_TRAFFIC: &str = "live traffic";

/// Takes the lock of this name. The lock is released when the guard is dropped, also by a test that fails.
#[must_use = "the lock is released when the guard is dropped"]
pub fn lock(name: &'static str) -> MutexGuard<'static, ()> {
    static LOCKS: Mutex<BTreeMap<&'static str, &'static Mutex<()>>> = Mutex::new(BTreeMap::new());
    let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    let lock: &'static Mutex<()> = locks.entry(name).or_insert_with(|| Box::leak(Box::default()));
    drop(locks);
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_lock_keeps_others_of_its_name_out_only() {
        static IS_INSIDE: AtomicBool = AtomicBool::new(false);
        let one = lock("one");
        let thread = std::thread::spawn(|| {
            let _two = lock("two");
            let _one = lock("one");
            IS_INSIDE.store(true, Ordering::SeqCst);
        });
        std::thread::sleep(Duration::from_millis(20));
        assert!(!IS_INSIDE.load(Ordering::SeqCst));
        drop(one);
        thread.join().unwrap();
        assert!(IS_INSIDE.load(Ordering::SeqCst));
    }

    #[test]
    fn a_test_that_fails_releases_its_lock() {
        let failed = std::thread::spawn(|| {
            let _lock = lock("failing");
            panic!("on purpose");
        });
        assert!(failed.join().is_err());
        drop(lock("failing"));
    }
}
