//! Reports to a program in the kernel how many of the frames that it handed over the port's user is done with.
//!
//! The program numbers the frames of each queue, and writes the number in front of the frame. When the user asks for
//! more frames, it has processed and sent those that it got before. A frame that found the socket's ring full never
//! arrives: if nothing arrives for some time, all that were numbered before it are done.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::frame::Frame;

/// Time without a frame after which none is on its way. The kernel publishes received frames at the end of a poll of
/// the device, some hundred microseconds later at most.
const QUIET: Duration = Duration::from_millis(2);

/// The words that the program and the port share.
pub struct HandOverOrder {
    /// Memory with the words.
    pub memory: Arc<dyn AsRef<[AtomicU64]> + Send + Sync>,
    /// Upper bits of the word in front of a frame that is handed over. The others are its number.
    pub mark: u64,
    /// For each queue, the indices of two words: the number of its last frame that was handed over, and of the last one
    /// that is done. A queue with the same words as another one has no order.
    pub words: Vec<[usize; 2]>,
}

impl HandOverOrder {
    /// Whether frames were handed over that nobody is known to be done with.
    pub(super) fn is_outstanding(&self) -> bool {
        let words = (*self.memory).as_ref();
        let differ = |[handed, done]: &[usize; 2]| {
            words[*handed].load(Ordering::Relaxed) != words[*done].load(Ordering::Relaxed)
        };
        self.words.iter().any(differ)
    }
}

/// What a queue knows of its frames.
#[derive(Debug, Default)]
pub(super) struct QueueOrder {
    /// The number of the last frame that the user got; 0 if there is none.
    last: u64,
    /// Since when no frame has come, and the number of the last one that was handed over until then.
    quiet: Option<(Instant, u64)>,
}

impl QueueOrder {
    /// Notes that the user is done with all frames that it got.
    pub fn finish(&mut self, order: &HandOverOrder, queue: usize) {
        let Some(&[_, done]) = order.words.get(queue) else { return };
        if self.last > 0 {
            done_with(order, done, std::mem::take(&mut self.last));
        }
    }

    /// Notes the frames that the user gets now.
    pub fn give(&mut self, order: &HandOverOrder, queue: usize, frames: &mut [Frame]) {
        let Some(&[handed, done]) = order.words.get(queue) else { return };
        if let Some(number) = frames.last_mut().and_then(|frame| number(frame, order.mark)) {
            (self.last, self.quiet) = (number, None);
        }
        if !frames.is_empty() {
            self.quiet = None;
            return;
        }
        let words = (*order.memory).as_ref();
        let numbered = words[handed].load(Ordering::Acquire);
        if words[done].load(Ordering::Relaxed) == numbered {
            self.quiet = None;
            return;
        }
        match self.quiet {
            Some((since, until)) if since.elapsed() >= QUIET => {
                done_with(order, done, until);
                self.quiet = None;
            }
            Some(_) => {}
            None => self.quiet = Some((Instant::now(), numbered)),
        }
    }
}

fn done_with(order: &HandOverOrder, done: usize, number: u64) {
    (*order.memory).as_ref()[done].fetch_max(number, Ordering::Release);
}

/// Returns the number in front of a frame.
fn number(frame: &mut Frame, mark: u64) -> Option<u64> {
    const BYTES: usize = size_of::<u64>();
    let (bytes, start) = frame.with_headroom();
    let front = start.checked_sub(BYTES)?;
    let word = u64::from_ne_bytes(bytes[front..start].try_into().ok()?);
    (word & mark == mark && word >> 48 == mark >> 48).then_some(word & !mark)
}
