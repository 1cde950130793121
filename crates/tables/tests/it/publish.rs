//! Readers see whole versions while a writer changes tables as fast as it can.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rng::SplitMix64;
use tables::publish::{Absorb, RcuWriter};
use tables::{Exact, FieldKind, KeyLayout, Lpm, PackedLookup};

/// Two tables with equal contents in every version: each key's handle is the version that last wrote it.
#[derive(Clone)]
struct Pair {
    exact: Exact,
    prefixes: Lpm,
    version: u32,
}

enum Change {
    Put(u64, u32),
    Take(u64),
    Version(u32),
}

impl Absorb<Change> for Pair {
    fn absorb(&mut self, change: &Change) {
        match change {
            Change::Put(key, handle) => {
                self.exact.insert(&[*key], *handle);
                self.prefixes.insert(&[*key], 32, *handle);
            }
            Change::Take(key) => {
                let one = self.exact.remove(&[*key]);
                assert_eq!(one, self.prefixes.remove(&[*key], 32));
            }
            Change::Version(version) => self.version = *version,
        }
    }
}

fn empty() -> Pair {
    let layout = KeyLayout::new([(32, FieldKind::Prefix)]);
    Pair { exact: Exact::new(1), prefixes: Lpm::new(&layout), version: 0 }
}

const KEYS: u64 = 300;

/// Checks the invariant of every version: keys 0 and 1 exist together or not at all, both written by the version
/// itself, and the two tables agree.
fn check(pair: &Pair, rng: &mut SplitMix64) {
    let marks = [0u64, 1].map(|key| pair.exact.lookup(&[key]));
    let want = pair.version.is_multiple_of(2).then_some(pair.version);
    assert_eq!(marks, [want, want], "version {}", pair.version);
    for _ in 0..32 {
        let key = rng.below(KEYS);
        let exact = pair.exact.lookup(&[key]);
        assert_eq!(exact, pair.prefixes.lookup(&[key]), "key {key} in version {}", pair.version);
        assert!(exact.is_none_or(|handle| handle <= pair.version));
    }
}

#[test]
fn readers_see_batches_whole() {
    let mut writer = RcuWriter::new(empty());
    [0, 1].into_iter().for_each(|key| writer.change(Change::Put(key, 0)));
    writer.publish();
    let done = AtomicBool::new(false);
    let seen = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let mut reader = writer.reader();
            let (done, seen) = (&done, &seen);
            scope.spawn(move || {
                let mut rng = SplitMix64::new(seed);
                let mut last = 0;
                while !done.load(Ordering::Relaxed) {
                    let pair = reader.pin();
                    check(pair, &mut rng);
                    assert!(pair.version >= last, "versions never go back");
                    seen.fetch_add(u64::from(pair.version != last), Ordering::Relaxed);
                    last = pair.version;
                    if rng.percent(5) {
                        reader.rest();
                    }
                    // A reader that lags occasionally.
                    if rng.percent(1) {
                        std::thread::yield_now();
                    }
                }
            });
        }
        let mut rng = SplitMix64::new(99);
        let mut version = 0;
        // Until readers have seen enough versions, or too many have been published.
        while version < 2000 || (seen.load(Ordering::Relaxed) < 200 && version < 1_000_000) {
            version += 1;
            for key in [0, 1] {
                writer.change(match version % 2 {
                    0 => Change::Put(key, version),
                    _ => Change::Take(key),
                });
            }
            for _ in 0..rng.below(20) {
                let key = 2 + rng.below(KEYS - 2);
                writer.change(if rng.percent(60) { Change::Put(key, version) } else { Change::Take(key) });
            }
            writer.change(Change::Version(version));
            writer.publish();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(seen.load(Ordering::Relaxed) >= 200, "readers saw too few versions");
}

#[test]
fn a_change_is_seen_only_after_its_publication() {
    let mut writer = RcuWriter::new(empty());
    let mut reader = writer.reader();
    writer.change(Change::Put(7, 1));
    writer.change(Change::Put(8, 1));
    assert_eq!(reader.pin().exact.len(), 0);
    assert_eq!(writer.latest().exact.len(), 2);
    writer.publish();
    assert_eq!(reader.pin().exact.len(), 2);
    writer.publish();
    assert_eq!(reader.pin().exact.len(), 2);
}

#[test]
fn memory_is_bounded_and_readers_never_wait() {
    let mut writer = RcuWriter::new(empty());
    let mut sleeper = writer.reader();
    let mut awake = writer.reader();
    sleeper.pin();
    for version in 0..1000 {
        writer.change(Change::Put(u64::from(version), version));
        writer.publish();
        assert_eq!(awake.pin().exact.len(), version as usize + 1);
        // The copy that this reader held until now is available for the next change; the sleeper has a separate copy.
        assert!(version < 2 || writer.is_clear());
    }
    assert!(writer.copies_made() <= 2, "{} copies", writer.copies_made());
    assert_eq!(sleeper.pin().exact.len(), 1000);
}
