//! Runs many seeds of a scenario, on several threads.

use std::sync::Mutex;
use std::sync::mpsc::{SyncSender, sync_channel};

use super::{Results, Run, Scenario};
use crate::Topology;

/// Runs a scenario once for each seed. `prepare` creates the run of a seed, which takes one thread; `threads` of them
/// run at the same time. `finished` gets the results in the order in which the runs end, on the calling thread.
pub fn run_seeds(
    topology: &Topology,
    scenario: &Scenario,
    seeds: impl Iterator<Item = u64> + Send,
    threads: usize,
    prepare: impl Fn(u64) -> Run + Sync,
    mut finished: impl FnMut(u64, Results),
) {
    let seeds = Mutex::new(seeds);
    // Few results wait: with samples of queues they are large.
    let (sender, results) = sync_channel(1);
    let work = |sender: SyncSender<(u64, Results)>| {
        loop {
            let next = seeds.lock().expect("an iterator over numbers does not panic").next();
            let Some(seed) = next else { return };
            let mut run = prepare(seed);
            run.run(1, &mut |_| {});
            if sender.send((seed, run.results(topology, scenario))).is_err() {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            let (work, sender) = (&work, sender.clone());
            scope.spawn(move || work(sender));
        }
        drop(sender);
        results.iter().for_each(|(seed, results)| finished(seed, results));
    });
}
