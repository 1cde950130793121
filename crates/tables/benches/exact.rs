//! The exact table against hashbrown with a fast hash, for keys of one and two words.
//!
//! Both sides use the same packed keys. Half of the measurements look flows up uniformly, half follow Zipf's law
//! (exponent 0.99); a tenth of the keys do not exist.

mod support;

use hashbrown::HashMap;
use rng::SplitMix64;
use support::{compare, digest};
use tables::{Exact, MISS, PackedLookup};

const LOOKUPS: usize = 400_000;

/// Draws ranks by Zipf's law with exponent 0.99, by inverting its continuous form.
fn zipf(rng: &mut SplitMix64, count: u64) -> u64 {
    let uniform = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let end = (count as f64).powf(0.01);
    let rank = (1.0 + uniform * (end - 1.0)).powf(100.0) as u64;
    rank.clamp(1, count) - 1
}

fn measure<const N: usize>(count: u64, skewed: bool) {
    let key = |flow: u64| -> [u64; N] {
        let mut rng = SplitMix64::new(flow);
        std::array::from_fn(|_| rng.next_u64())
    };
    let mut exact = Exact::new(N);
    let mut map: HashMap<[u64; N], u32, foldhash::fast::FixedState> = HashMap::default();
    for flow in 0..count {
        exact.insert(&key(flow), flow as u32);
        map.insert(key(flow), flow as u32);
    }
    let mut rng = SplitMix64::new(1);
    let flow = |rng: &mut SplitMix64| {
        if rng.percent(10) {
            count + rng.below(count)
        } else if skewed {
            // Frequent flows are not neighbours in the table.
            zipf(rng, count) * 7_919 % count
        } else {
            rng.below(count)
        }
    };
    let keys: Vec<[u64; N]> = (0..LOOKUPS).map(|_| key(flow(&mut rng))).collect();
    let flat = keys.as_flattened();
    let (mut a, mut b, mut c) = (vec![0; LOOKUPS], vec![0; LOOKUPS], vec![0; LOOKUPS]);
    let mut ways: Vec<support::Contender> = vec![
        (
            "hashbrown",
            Box::new(|| {
                keys.iter().zip(&mut a).for_each(|(key, found)| *found = map.get(key).copied().unwrap_or(MISS));
                digest(&a)
            }),
        ),
        (
            "single",
            Box::new(|| {
                keys.iter().zip(&mut b).for_each(|(key, found)| *found = exact.lookup(key).unwrap_or(MISS));
                digest(&b)
            }),
        ),
        (
            "batch",
            Box::new(|| {
                exact.lookup_batch(flat, &mut c);
                digest(&c)
            }),
        ),
    ];
    let times = compare(LOOKUPS, &mut ways);
    println!(
        "{:>8}{:>7}{:>9} {:>10.1}{:>9.1}{:>9.1} {:>6.2}x {:>6.2}x {:>8}",
        count,
        N,
        if skewed { "zipf" } else { "uniform" },
        times[0],
        times[1],
        times[2],
        times[0] / times[1],
        times[0] / times[2],
        exact.memory_bytes() / exact.len(),
    );
}

fn main() {
    println!("ns a lookup, medians of 9 runs; ratios: hashbrown against single lookups and against batches");
    println!(
        "{:>8}{:>7}{:>9} {:>10}{:>9}{:>9} {:>7} {:>7} {:>8}",
        "entries", "words", "keys", "hashbrown", "single", "batch", "single", "batch", "B/entry"
    );
    for count in [1_000, 10_000, 100_000, 1_000_000] {
        for skewed in [false, true] {
            measure::<1>(count, skewed);
            measure::<2>(count, skewed);
        }
    }
}
