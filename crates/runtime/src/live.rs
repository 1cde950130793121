//! Runs the loop of a live run with one worker, in the calling thread.

use switch::PacketSwitch;

use crate::clock::Clock;
use crate::hook::HookList;
use crate::limit::RunLimit;
use crate::worker::Worker;

/// Runs until the limit is reached or no port is left. A run without ports continues for its hooks.
pub(crate) fn run<S: PacketSwitch>(worker: &mut Worker<S>, hooks: &mut HookList<S>, limit: RunLimit<'_>) {
    let clock = Clock::start();
    while !limit.is_reached() {
        for hook in hooks.iter_mut() {
            worker.poll_hook(clock.now(), &mut **hook, &|| ());
        }
        if worker.poll(&clock) > 0 {
            continue;
        }
        if !worker.ports().is_empty() && worker.is_finished() {
            return worker.drain(clock.now());
        }
        let now = clock.now();
        let longest = hooks.sleep_limit(now, limit.longest_sleep());
        if !longest.is_zero() {
            worker.wait(now, longest, &hooks.poll_fds());
            hooks.wake();
        }
    }
}
