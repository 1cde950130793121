//! Passes collected programs to a thread that may be slow, without waiting for it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tpp::shim::CollectedProgram;

/// Maximum time that the end of a queue waits for its thread.
const LONGEST_END: Duration = Duration::from_secs(2);

/// A bounded queue of programs, and the thread that consumes them.
pub struct ProgramQueue {
    sender: SyncSender<CollectedProgram>,
    thread: JoinHandle<()>,
    pushed: u64,
    consumed: Arc<AtomicU64>,
}

/// The end of a [`ProgramQueue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueEnd {
    /// Whether the thread has ended. If not, it still waits for something, such as a reader of the output.
    pub is_finished: bool,
    /// Number of programs that were not consumed.
    pub unconsumed: u64,
}

impl ProgramQueue {
    /// Starts a thread that passes programs to `consume`, until it returns false because it could not consume one.
    /// `capacity` programs may wait.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start(
        capacity: usize,
        mut consume: impl FnMut(CollectedProgram) -> bool + Send + 'static,
    ) -> io::Result<ProgramQueue> {
        let (sender, receiver) = sync_channel(capacity);
        let consumed = Arc::new(AtomicU64::new(0));
        let count = consumed.clone();
        let run = move || {
            for program in receiver {
                if !consume(program) {
                    return;
                }
                count.fetch_add(1, Ordering::Relaxed);
            }
        };
        let thread = thread::Builder::new().name("programs".to_owned()).spawn(run)?;
        Ok(ProgramQueue { sender, thread, pushed: 0, consumed })
    }

    /// Adds a program. It is dropped if there is no room, or nobody consumes programs any more. Returns whether it was
    /// added.
    pub fn push(&mut self, program: CollectedProgram) -> bool {
        self.pushed += 1;
        self.sender.try_send(program).is_ok()
    }

    /// Waits until the programs in the queue are consumed, for 2 seconds at most.
    pub fn end(self) -> QueueEnd {
        drop(self.sender);
        let deadline = Instant::now() + LONGEST_END;
        let mut is_finished = self.thread.is_finished();
        while !is_finished && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
            is_finished = self.thread.is_finished();
        }
        QueueEnd { is_finished, unconsumed: self.pushed - self.consumed.load(Ordering::Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn program(number: u8) -> CollectedProgram {
        CollectedProgram { flow: None, bytes: vec![number] }
    }

    #[test]
    fn programs_are_consumed_in_order_and_dropped_without_room() {
        let (permit, permits) = channel();
        let (consumed, all) = channel();
        let consume = move |program: CollectedProgram| {
            permits.recv().expect("the test goes on");
            consumed.send(program.bytes[0]).expect("the test goes on");
            true
        };
        let mut queue = ProgramQueue::start(3, consume).expect("there is a thread");
        let kept = (0..10).filter(|number| queue.push(program(*number))).count() as u64;
        // The thread may have taken one.
        assert!((3..=4).contains(&kept), "{kept} of 10");
        (0..kept).for_each(|_| permit.send(()).expect("it consumes"));
        assert_eq!(queue.end(), QueueEnd { is_finished: true, unconsumed: 10 - kept });
        assert_eq!(all.into_iter().collect::<Vec<_>>(), (0..kept as u8).collect::<Vec<_>>());
    }

    #[test]
    fn programs_that_nobody_consumes_are_dropped() {
        let (is_called, called) = channel();
        let consume = move |_| {
            is_called.send(()).expect("the test goes on");
            false
        };
        let mut queue = ProgramQueue::start(1, consume).expect("there is a thread");
        queue.push(program(1));
        called.recv().expect("it was called");
        let mut pushed = 1;
        loop {
            pushed += 1;
            if !queue.push(program(2)) {
                break;
            }
        }
        assert_eq!(queue.end(), QueueEnd { is_finished: true, unconsumed: pushed });
    }

    #[test]
    fn a_consumer_that_waits_ends_the_wait_for_it() {
        let (permit, permits) = channel::<()>();
        let mut queue = ProgramQueue::start(3, move |_| permits.recv().is_ok()).expect("there is a thread");
        (0..2).for_each(|number| assert!(queue.push(program(number))));
        assert_eq!(queue.end(), QueueEnd { is_finished: false, unconsumed: 2 });
        drop(permit);
    }
}
