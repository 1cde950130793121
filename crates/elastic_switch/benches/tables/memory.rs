//! Memory of the switch.

use testing::allocations;

use crate::bench::{ElasticBench, elastic, insert, plain};

/// Entries that are inserted between two turns of the switch.
const TOGETHER: u32 = 1_000;

/// Measures bytes an entry in the switch, of a local table and of one in the memory of servers.
pub fn measure() {
    for entries in [100_000, 1_000_000] {
        let per_entry = |bytes: i64| bytes as f64 / f64::from(entries);
        let mut local = plain("", entries);
        let ((), filled) = allocations::measure(|| insert(&mut local, 0..entries));
        drop(local);
        // The memory that the server lends is allocated before.
        let mut bench = ElasticBench::new(plain(&elastic(8, 1024), entries), 1, 1);
        let ((), remote) = allocations::measure(|| {
            for first in (0..entries).step_by(TOGETHER as usize) {
                insert(&mut bench.switch, first..(first + TOGETHER).min(entries));
                bench.turn();
            }
            bench.settle();
        });
        println!(
            "memory    {entries} entries: local table {:.1} B an entry, @elastic {:.1} B, peak {:.1} B",
            per_entry(filled.kept),
            per_entry(remote.kept),
            per_entry(remote.peak),
        );
    }
}
