//! Passes collected programs to a thread that may be slow, without waiting for it.

use std::io;
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
    refused: u64,
}

impl ProgramQueue {
    /// Starts a thread that passes programs to `consume`, until it returns false. `capacity` programs may wait.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start(
        capacity: usize,
        consume: impl FnMut(CollectedProgram) -> bool + Send + 'static,
    ) -> io::Result<ProgramQueue> {
        let (sender, receiver) = sync_channel(capacity);
        let run = move || _ = receiver.into_iter().all(consume);
        let thread = thread::Builder::new().name("programs".to_owned()).spawn(run)?;
        Ok(ProgramQueue { sender, thread, refused: 0 })
    }

    /// Adds a program. It is counted and dropped if there is no room, or nobody consumes programs any more.
    pub fn push(&mut self, program: CollectedProgram) {
        self.refused += u64::from(self.sender.try_send(program).is_err());
    }

    /// Returns the number of programs that were dropped.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Waits until the programs in the queue are consumed, for 2 seconds at most. Returns false if they are not.
    pub fn end(self) -> bool {
        drop(self.sender);
        let deadline = Instant::now() + LONGEST_END;
        while !self.thread.is_finished() {
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(Duration::from_millis(5));
        }
        true
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
        (0..10).for_each(|number| queue.push(program(number)));
        // The thread may have taken one.
        let kept = 10 - queue.refused();
        assert!((3..=4).contains(&kept), "{kept} of 10");
        (0..kept).for_each(|_| permit.send(()).expect("it consumes"));
        assert!(queue.end());
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
        while queue.refused() == 0 {
            queue.push(program(2));
        }
        assert!(queue.end());
    }
}
