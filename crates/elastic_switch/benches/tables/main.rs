//! Measures a switch with a table in the memory of servers, all in one thread: its frames are in memory, and servers
//! answer at once.
//!
//! ```text
//! cargo bench -p elastic_switch --bench tables                    # all; about two minutes
//! cargo bench -p elastic_switch --bench tables -- hits memory     # some: hits misses parking memory servers rebuild
//! ```
//!
//! Keys are IPv4 connections (13 bytes), records have 7 bytes, cells 32, and a READ 256. Variants alternate within
//! each turn, and a ratio is the median of the turns' ratios.

mod bench;
mod load;
mod memory;
#[path = "../shared/nodes.rs"]
mod nodes;
mod packets;

use testing::allocations::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Returns the median.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let measures: [(&str, fn()); 6] = [
        ("hits", packets::hits),
        ("misses", packets::misses),
        ("parking", packets::parking),
        ("memory", memory::measure),
        ("servers", load::servers),
        ("rebuild", load::rebuild),
    ];
    for (name, measure) in measures {
        if words.is_empty() || words.iter().any(|word| word == name) {
            measure();
        }
    }
}
