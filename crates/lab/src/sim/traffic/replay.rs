//! Replays a capture's frames at their recorded times.

use std::any::Any;

use switch::Time;

use crate::sim::{App, Io};

/// Maximum number of frames that are sent at one moment.
const MAX_AT_ONCE: usize = 256;

/// Sends given frames unchanged, in addition to the frames of the host's stack.
pub struct Replay {
    frames: Vec<(u64, Vec<u8>)>,
    start: Time,
    stop: Time,
    /// Frames sent.
    pub sent: u64,
}

impl Replay {
    /// Creates a replay of frames with their times in nanoseconds. The first frame is sent at `start`, and none after
    /// `stop`.
    pub fn new(frames: Vec<(u64, Vec<u8>)>, start: Time, stop: Time) -> Replay {
        Replay { frames, start, stop, sent: 0 }
    }

    fn due(&self, number: usize) -> Option<Time> {
        let first = self.frames.first()?.0;
        let (time, _) = self.frames.get(number)?;
        Some(self.start.after_ns(time.saturating_sub(first))).filter(|due| *due < self.stop)
    }
}

impl App for Replay {
    fn poll(&mut self, io: &mut Io<'_>) -> Option<Time> {
        while let Some(due) = self.due(self.sent as usize) {
            // A clock that was set forward makes many frames due at once; they leave in batches.
            if due > io.now || io.raw.len() >= MAX_AT_ONCE {
                return Some(due);
            }
            io.raw.push(self.frames[self.sent as usize].1.clone());
            self.sent += 1;
        }
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
