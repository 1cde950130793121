//! Insertions per second, one by one and in batches.

use std::time::{Duration, Instant};

use p4runtime_proto::v1::update::Type;

use crate::program::TableFill;
use crate::rig::{Rig, request, update};

/// Number of updates in a batch.
const BATCH: u64 = 1_000;
/// Number of insertions made one by one.
const SINGLE: u64 = 10_000;
/// Numbers of entries between which the rate is reported.
const STEPS: [u64; 4] = [10_000, 100_000, 300_000, 1_000_000];

/// Inserts in writes of `together` entries, each after the response to the one before. The time excludes making the
/// requests.
pub fn insert<S>(rig: &mut Rig<S>, kind: &TableFill, numbers: std::ops::Range<u64>, together: u64) -> Duration {
    /// Number of requests made in advance.
    const AHEAD: u64 = 50;
    let mut took = Duration::ZERO;
    let mut next = numbers.start;
    while next < numbers.end {
        let mut requests = Vec::new();
        while next < numbers.end && (requests.len() as u64) < AHEAD {
            let end = (next + together).min(numbers.end);
            let updates = (next..end).map(|number| update(Type::Insert, kind.entry(&rig.info, number)));
            requests.push(request(updates.collect()));
            next = end;
        }
        let begin = Instant::now();
        rig.runtime.block_on(async {
            for request in requests {
                rig.client.write(request).await.unwrap_or_else(|status| panic!("{status}"));
            }
        });
        took += begin.elapsed();
    }
    took
}

/// Fills the table in batches and, in another switch, one by one.
pub fn measure(kind: &TableFill, entries: u64) {
    println!("{}: {}", kind.name, kind.entries);
    let mut rig = Rig::new();
    let took = insert(&mut rig, kind, 0..SINGLE.min(entries), 1);
    let each = took.as_secs_f64() / SINGLE.min(entries) as f64;
    println!("  one by one          {:>9.0} inserts/s, each answered in {:.0} us", 1.0 / each, each * 1e6);
    let mut rig = Rig::new();
    let (mut from, mut all) = (0, Duration::ZERO);
    for to in STEPS.into_iter().map(|step| step.min(entries)) {
        if to > from {
            let took = insert(&mut rig, kind, from..to, BATCH);
            all += took;
            let rate = (to - from) as f64 / took.as_secs_f64();
            println!("  batches of {BATCH}     {rate:>9.0} inserts/s, from {from} to {to} entries");
            from = to;
        }
    }
    println!("  all together        {:>9.0} inserts/s", from as f64 / all.as_secs_f64());
}
