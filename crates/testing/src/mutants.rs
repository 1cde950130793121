//! Finds the errors that a crate's test builds switch on, and lists the seeds that find them.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::path::Path;
use std::sync::Mutex;

use crate::{golden, seed};

/// Number of seeds within which a mutant must be found.
const SEEDS: u64 = 1000;

/// Looks for each mutant on two threads, and compares the Markdown table of the first seeds that find them with a file,
/// below `header`. `violation` runs a seed with a mutant, and returns the violation, if there is one.
///
/// # Panics
/// If a mutant is not found within 1,000 seeds, or the file has another table. `UPDATE_EXPECT=1` writes the file.
#[track_caller]
pub fn assert_each_is_found<M: Copy + Debug + Ord + Send + Sync>(
    all: &[M],
    (file, header): (impl AsRef<Path>, &str),
    violation: impl Fn(u64, M) -> Option<&'static str> + Sync,
) {
    let found = Mutex::new(BTreeMap::new());
    seed::for_each(0..all.len() as u64, |number| {
        let mutant = all[number as usize];
        let killed = (0..SEEDS).find_map(|seed| Some((seed, violation(seed, mutant)?)));
        println!("{mutant:?}: {killed:?}");
        found.lock().unwrap().insert(mutant, killed);
        true
    });
    let found = found.into_inner().unwrap();
    let mut table = format!("{header}\n| mutant | seed | violation |\n|---|---|---|\n");
    for (mutant, killed) in &found {
        let (seed, violation) = killed.map_or(("none".to_owned(), ""), |(seed, kind)| (seed.to_string(), kind));
        writeln!(table, "| {mutant:?} | {seed} | {violation} |").unwrap();
    }
    golden::assert_golden(file, &table);
    let alive: Vec<_> = found.iter().filter(|(_, killed)| killed.is_none()).map(|(mutant, _)| mutant).collect();
    assert!(alive.is_empty(), "no seed finds {alive:?}");
}
