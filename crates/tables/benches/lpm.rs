//! Prefix tables against a path-compressed binary trie, the usual structure of prefix libraries.
//!
//! IPv4 prefixes have the lengths of an Internet routing table (most are /24, few are longer or shorter than /16). IPv6
//! prefixes lie below 2000::/3, most of them /48 and /32. Keys lie in randomly selected prefixes; one of 20 is entirely
//! random. A second table has the time of insertions in random order, one by one and as a load; with the argument
//! `insertions`, only that one is printed.

mod support;

use std::time::Instant;

use rng::SplitMix64;
use support::{compare, digest};
use tables::{FieldKind, KeyLayout, Lpm, MISS, PackedLookup};

/// A node of the baseline: a prefix, with a result if it is one of the table's.
struct Node {
    value: u128,
    length: u32,
    result: u32,
    children: [u32; 2],
}

/// The baseline: a binary trie without nodes that have one child and no result. Values have their first bit at the top.
struct Patricia(Vec<Node>);

const NO_CHILD: u32 = u32::MAX;

fn mask(length: u32) -> u128 {
    u128::MAX.checked_shl(128 - length).unwrap_or(0)
}

fn bit(value: u128, at: u32) -> usize {
    (value >> (127 - at) & 1) as usize
}

impl Patricia {
    fn new() -> Self {
        Patricia(vec![Node { value: 0, length: 0, result: MISS, children: [NO_CHILD; 2] }])
    }

    fn insert(&mut self, value: u128, length: u32, result: u32) {
        let mut at = 0;
        loop {
            if self.0[at].length == length {
                self.0[at].result = result;
                return;
            }
            let side = bit(value, self.0[at].length);
            let child = self.0[at].children[side];
            let new = self.0.len() as u32;
            if child == NO_CHILD {
                self.0.push(Node { value, length, result, children: [NO_CHILD; 2] });
                self.0[at].children[side] = new;
                return;
            }
            let below = &self.0[child as usize];
            let common = (below.value ^ value).leading_zeros().min(below.length).min(length);
            if common == below.length {
                at = child as usize;
                continue;
            }
            let mut children = [NO_CHILD; 2];
            children[bit(below.value, common)] = child;
            self.0[at].children[side] = new;
            let result = if common == length { result } else { MISS };
            self.0.push(Node { value: value & mask(common), length: common, result, children });
            at = new as usize;
        }
    }

    fn lookup(&self, value: u128) -> u32 {
        let mut best = MISS;
        let mut node = &self.0[0];
        loop {
            if (node.value ^ value) & mask(node.length) != 0 {
                return best;
            }
            if node.result != MISS {
                best = node.result;
            }
            if node.length == 128 {
                return best;
            }
            match node.children[bit(value, node.length)] {
                NO_CHILD => return best,
                child => node = &self.0[child as usize],
            }
        }
    }
}

fn prefixes(width: u32, count: usize, rng: &mut SplitMix64) -> Vec<(u128, u32)> {
    let mut seen = std::collections::HashSet::new();
    while seen.len() < count {
        let random = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
        let (value, length) = match width {
            32 => {
                let length =
                    rng.pick(&[(1, 8), (2, 12), (13, 16), (6, 18), (10, 20), (14, 22), (60, 24), (2, 28), (2, 32)]);
                // Half of the addresses are in use.
                (random & !(1 << 127), length)
            }
            _ => {
                let length = rng.pick(&[(1, 20), (2, 29), (25, 32), (4, 36), (8, 40), (8, 44), (48, 48), (4, 64)]);
                let site = u128::from(rng.below(1 << 14));
                (0b001 << 125 | site << 104 & !(0b111 << 125) | random & mask(24) >> 24 & !mask(24), length)
            }
        };
        seen.insert((value & mask(length), length));
    }
    let mut all: Vec<_> = seen.into_iter().collect();
    all.sort();
    all
}

fn measure(width: u32, count: usize) {
    let mut rng = SplitMix64::new(1);
    let prefixes = prefixes(width, count, &mut rng);
    let layout = KeyLayout::new([(width, FieldKind::Prefix)]);
    let pack = |value: u128| -> [u64; 2] {
        let value = value >> (128 - width);
        [value as u64, (value >> 64) as u64]
    };
    let mut lpm = Lpm::new(&layout);
    let mut trie = Patricia::new();
    for ((value, length), handle) in prefixes.iter().zip(0..) {
        lpm.insert(&pack(*value)[..layout.words()], *length, handle);
        trie.insert(*value, *length, handle);
    }
    let lookups = 200_000;
    let values: Vec<u128> = (0..lookups)
        .map(|_| {
            let random = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
            let (value, length) = if rng.percent(5) { (0, 0) } else { prefixes[rng.below(count as u64) as usize] };
            (value | random & !mask(length)) & mask(width)
        })
        .collect();
    let keys: Vec<u64> = values.iter().flat_map(|value| pack(*value)[..layout.words()].to_vec()).collect();
    let (mut a, mut b, mut c) = (vec![0; lookups], vec![0; lookups], vec![0; lookups]);
    let mut ways: Vec<support::Contender> = vec![
        (
            "patricia",
            Box::new(|| {
                values.iter().zip(&mut a).for_each(|(value, found)| *found = trie.lookup(*value));
                digest(&a)
            }),
        ),
        (
            "single",
            Box::new(|| {
                let keys = keys.chunks_exact(layout.words());
                keys.zip(&mut b).for_each(|(key, found)| *found = lpm.lookup(key).unwrap_or(MISS));
                digest(&b)
            }),
        ),
        (
            "batch",
            Box::new(|| {
                lpm.lookup_batch(&keys, &mut c);
                digest(&c)
            }),
        ),
    ];
    let times = compare(lookups, &mut ways);
    println!(
        "{:>5}{count:>9} {:>9.1}{:>9.1}{:>9.1} {:>6.1}x {:>9}",
        if width == 32 { "IPv4" } else { "IPv6" },
        times[0],
        times[1],
        times[2],
        times[0] / times[2],
        lpm.memory_bytes() / count,
    );
}

/// Prints the time of insertions, the median of five rounds.
fn measure_insertions(width: u32, count: usize) {
    let mut rng = SplitMix64::new(2);
    let mut prefixes = prefixes(width, count, &mut rng);
    for at in (1..count).rev() {
        prefixes.swap(at, rng.below(at as u64 + 1) as usize);
    }
    let layout = KeyLayout::new([(width, FieldKind::Prefix)]);
    let one_run = |is_load: bool| {
        let mut lpm = Lpm::new(&layout);
        let begin = Instant::now();
        if is_load {
            lpm.begin_load(count);
        }
        for ((value, length), handle) in prefixes.iter().zip(0..) {
            let value = value >> (128 - width);
            lpm.insert(&[value as u64, (value >> 64) as u64][..layout.words()], *length, handle);
        }
        lpm.finish_load();
        let ns = begin.elapsed().as_nanos() as f64 / count as f64;
        assert_eq!(lpm.len(), count);
        ns
    };
    let mut rounds: Vec<[f64; 2]> = (0..5).map(|_| [one_run(false), one_run(true)]).collect();
    let median = |rounds: &mut Vec<[f64; 2]>, at: usize| {
        rounds.sort_by(|one, other| one[at].total_cmp(&other[at]));
        rounds[2][at]
    };
    let (single, load) = (median(&mut rounds, 0), median(&mut rounds, 1));
    println!("{:>5}{count:>9} {single:>9.1}{load:>9.1}", if width == 32 { "IPv4" } else { "IPv6" });
}

fn main() {
    if !std::env::args().any(|word| word == "insertions") {
        println!("ns a lookup, medians of 9 runs; ratio: the baseline trie against batches");
        println!(
            "{:>5}{:>9} {:>9}{:>9}{:>9} {:>7} {:>9}",
            "", "prefixes", "baseline", "single", "batch", "ratio", "B/prefix"
        );
        for width in [32, 128] {
            for count in [100, 1_000, 10_000, 100_000, 1_000_000] {
                measure(width, count);
            }
        }
    }
    println!("ns an insertion in random order, medians of 5 rounds");
    println!("{:>5}{:>9} {:>9}{:>9}", "", "prefixes", "single", "load");
    for (width, count) in [(32, 100_000), (32, 1_000_000), (128, 1_000_000)] {
        measure_insertions(width, count);
    }
}
