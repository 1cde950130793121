//! The classifier against a tuple-space search with priorities, over ClassBench-like rule sets.
//!
//! The baseline (Srinivasan, Suri, Varghese: Packet Classification using Tuple Space Search, 1999) has a hash table for
//! each combination of masks, searches them in the order of their best priority, and stops when none can have a better
//! rule. It is written with the same care: packed keys, hashbrown, a fast hash. Of two variants the better one counts
//! for each set: tuples of all five fields, and tuples of the two prefixes with chains of rules.
//!
//! ```text
//! cargo bench -p tables --bench classifier [-- [acl] [fw] [ipc] [1000] [10000] [100000] [alone] [tuples]]
//! ```
//!
//! `alone` skips the baselines, which take most of the time; `tuples` lists the merged tuples.

mod support;

use std::time::Instant;

use hashbrown::HashMap;
use support::{compare, digest};
use tables::classbench::{self, Family, FiveTuple};
use tables::{Classifier, KeyLayout, MISS, PackedLookup, RulePattern, TupleMerge};

struct ChainEntry {
    rule: FiveTuple,
    priority: u64,
    handle: u32,
}

struct Space {
    mask: [u64; 2],
    best: u64,
    /// Chains, sorted by priority, best first.
    chains: HashMap<[u64; 2], Vec<ChainEntry>, foldhash::fast::FixedState>,
}

/// The baseline.
struct TupleSpace(Vec<Space>);

/// Returns the mask of the leading bits that all values of a range share.
fn cover((low, high): (u16, u16)) -> u64 {
    let free = 16 - (low ^ high).leading_zeros();
    u64::from(u16::MAX) << free & 0xffff
}

impl TupleSpace {
    fn new(rules: &[FiveTuple], with_ports: bool) -> Self {
        let mut spaces: Vec<Space> = Vec::new();
        let mut by_mask: HashMap<[u64; 2], usize, foldhash::fast::FixedState> = HashMap::default();
        for (index, rule) in rules.iter().enumerate() {
            let prefix = |length: u8| u64::from(u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0));
            let [source, destination] = rule.addresses.map(|(_, length)| prefix(length));
            let ports = cover(rule.ports[0]) | cover(rule.ports[1]) << 16;
            let protocol = if rule.protocol.is_some() { 0xff << 32 } else { 0 };
            let mask = [source | destination << 32, if with_ports { ports | protocol } else { 0 }];
            let header = classbench::PacketFields {
                addresses: rule.addresses.map(|(value, _)| value),
                ports: rule.ports.map(|(low, _)| low),
                protocol: rule.protocol.unwrap_or(0),
            };
            let key = header.key();
            let key = [key[0] & mask[0], key[1] & mask[1]];
            let at = *by_mask.entry(mask).or_insert_with(|| {
                spaces.push(Space { mask, best: 0, chains: HashMap::default() });
                spaces.len() - 1
            });
            let priority = (rules.len() - index) as u64;
            spaces[at].best = spaces[at].best.max(priority);
            spaces[at].chains.entry(key).or_default().push(ChainEntry { rule: *rule, priority, handle: index as u32 });
        }
        spaces.sort_by_key(|space| std::cmp::Reverse(space.best));
        TupleSpace(spaces)
    }

    fn lookup(&self, header: &classbench::PacketFields) -> u32 {
        let key = header.key();
        let (mut best, mut found) = (0, MISS);
        for space in &self.0 {
            if space.best <= best {
                break;
            }
            let Some(chain) = space.chains.get(&[key[0] & space.mask[0], key[1] & space.mask[1]]) else { continue };
            for entry in chain {
                if entry.priority <= best {
                    break;
                }
                if entry.rule.matches(header) {
                    (best, found) = (entry.priority, entry.handle);
                    break;
                }
            }
        }
        found
    }
}

fn main() {
    let layout = classbench::layout();
    println!("ns a lookup, medians of 9 runs; ratio: the better tuple space against the classifier in batches");
    println!(
        "{:<9}{:>8} {:>9}{:>9} {:>9}{:>9} {:>7} | {:>7}{:>7}{:>9}{:>9}{:>8}",
        "set",
        "rules",
        "spaces",
        "prefixes",
        "single",
        "batch",
        "ratio",
        "spaces",
        "tuples",
        "B/rule",
        "ns/insert",
        "Mpps"
    );
    let asked = |of: &[String]| -> Vec<String> {
        let some: Vec<_> = of.iter().filter(|one| is_asked(one)).cloned().collect();
        if some.is_empty() { of.to_vec() } else { some }
    };
    let families = [("acl", Family::Acl), ("fw", Family::Fw), ("ipc", Family::Ipc)];
    let names = asked(&families.map(|(name, _)| name.to_owned()));
    let counts = asked(&["1000", "10000", "100000"].map(str::to_owned));
    for (name, family) in families.into_iter().filter(|(name, _)| names.iter().any(|asked| asked == name)) {
        for count in &counts {
            measure(name, family, count.parse().expect("it is one of three numbers"), &layout);
        }
    }
}

fn is_asked(word: &str) -> bool {
    std::env::args().any(|argument| argument == word)
}

fn measure(name: &str, family: Family, count: usize, layout: &KeyLayout) {
    let rules = classbench::rules(family, count, 1);
    let headers = classbench::headers(&rules, 100_000, 2);
    let keys: Vec<u64> = headers.iter().flat_map(|header| header.key()).collect();
    let patterns: Vec<RulePattern> = rules.iter().map(|rule| rule.pattern(layout)).collect();
    let full = TupleSpace::new(&rules, true);
    let pairs = TupleSpace::new(&rules, false);
    let mut merge = TupleMerge::new(layout);
    let start = Instant::now();
    for (index, pattern) in patterns.iter().enumerate() {
        merge.insert(pattern, (rules.len() - index) as u64, index as u32);
    }
    let insert_ns = start.elapsed().as_nanos() as usize / rules.len();
    check(&rules, &headers, &merge);

    let mut found = vec![0; headers.len()];
    let mut one = vec![0; headers.len()];
    let (mut a, mut b) = (vec![0; headers.len()], vec![0; headers.len()]);
    let mut ways: Vec<support::Contender> = vec![
        (
            "spaces",
            Box::new(|| {
                headers.iter().zip(&mut a).for_each(|(header, found)| *found = full.lookup(header));
                digest(&a)
            }),
        ),
        (
            "prefixes",
            Box::new(|| {
                headers.iter().zip(&mut b).for_each(|(header, found)| *found = pairs.lookup(header));
                digest(&b)
            }),
        ),
        (
            "single",
            Box::new(|| {
                keys.chunks_exact(2).zip(&mut one).for_each(|(key, found)| *found = merge.lookup(key).unwrap_or(MISS));
                digest(&one)
            }),
        ),
        (
            "batch",
            Box::new(|| {
                merge.lookup_batch(&keys, &mut found);
                digest(&found)
            }),
        ),
    ];
    if is_asked("alone") {
        ways.drain(..2);
    }
    let mut times = compare(headers.len(), &mut ways);
    if times.len() == 2 {
        times.splice(0..0, [f64::NAN; 2]);
    }
    let ratio = times[0].min(times[1]) / times[3];
    println!(
        "{name:<9}{:>8} {:>9.0}{:>9.0} {:>9.0}{:>9.0} {ratio:>6.1}x | {:>7}{:>7}{:>9}{insert_ns:>9}{:>8.1}",
        rules.len(),
        times[0],
        times[1],
        times[2],
        times[3],
        full.0.len(),
        merge.tuples().count(),
        merge.memory_bytes() / rules.len(),
        1e3 / times[3],
    );
    if is_asked("tuples") {
        for (mask, len) in merge.tuples() {
            println!("    {:016x} {:016x} {len}", mask[0], mask[1]);
        }
    }
}

/// Compares the results for some of the packets with a scan of all rules.
fn check(rules: &[FiveTuple], headers: &[classbench::PacketFields], merge: &TupleMerge) {
    for header in headers.iter().take(2_000_000 / rules.len()) {
        let want = rules.iter().position(|rule| rule.matches(header)).map(|index| index as u32);
        assert_eq!(merge.lookup(&header.key()), want, "{header:?}");
    }
}
