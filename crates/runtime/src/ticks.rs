//! Calls a function at an interval beside work that blocks.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Runs `work` in the calling thread, and meanwhile calls `tick` in another one: once after `first`, and then every
/// `interval`. Work that takes less than `first` gets no tick. No tick runs after the return.
pub fn tick_during<T>(
    first: Duration,
    interval: Duration,
    mut tick: impl FnMut() + Send,
    work: impl FnOnce() -> T,
) -> T {
    std::thread::scope(|scope| {
        // The work has ended when this end is dropped, also by a panic.
        let (_working, has_ended) = channel::<()>();
        scope.spawn(move || {
            let mut wait = first;
            while has_ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                tick();
                wait = interval;
            }
        });
        work()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn ticks_repeat_until_the_work_has_ended() {
        let (ticks, ticked) = channel();
        let tick = move || {
            let _ = ticks.send(());
        };
        let has_ticked = |_| ticked.recv_timeout(Duration::from_secs(60)).is_ok();
        let seen = tick_during(Duration::ZERO, Duration::from_millis(1), tick, || (0..3).all(has_ticked));
        assert!(seen, "three ticks come while the work waits for them");
        // This ends only when the sender is gone: no tick can follow.
        ticked.iter().for_each(drop);
    }

    #[test]
    fn short_work_gets_no_tick() {
        let hour = Duration::from_secs(3600);
        let work = tick_during(hour, hour, || panic!("it was called"), || 7);
        assert_eq!(work, 7);
    }
}
