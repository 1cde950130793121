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

/// Distance between the numbers of one program and those of the next. Frames of the earlier one may still arrive; there
/// are fewer of them.
const NEXT_PROGRAM: u64 = 1 << 20;
/// Numbers of programs begin below this one, far below the bits that mark buckets and frames.
const FIRST_NUMBERS: u64 = 1 << 46;

impl HandOverOrder {
    /// Sets the words to the first numbers of a program that follows another one on the port.
    pub(super) fn follow(&self, earlier: Option<&HandOverOrder>) {
        let words = (*self.memory).as_ref();
        for (queue, [handed, done]) in self.words.iter().enumerate() {
            let last = earlier.and_then(|earlier| {
                let [handed, _] = earlier.words.get(queue)?;
                Some((*earlier.memory).as_ref()[*handed].load(Ordering::Acquire))
            });
            let first = last.map_or(0, |last| (last + NEXT_PROGRAM) % FIRST_NUMBERS);
            words[*handed].store(first, Ordering::Relaxed);
            words[*done].store(first, Ordering::Relaxed);
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Memory;

    const MARK: u64 = 0xabc << 48;

    fn order() -> HandOverOrder {
        let words: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
        HandOverOrder { memory: Arc::new(words), mark: MARK, words: vec![[0, 1], [2, 3]] }
    }

    fn word(order: &HandOverOrder, at: usize) -> &AtomicU64 {
        &(*order.memory).as_ref()[at]
    }

    /// A frame with this word in front of it.
    fn frame(word: u64) -> Frame {
        const START: u32 = 256;
        let memory = Memory::new(1, 2048).expect("memory");
        let mut frame = Frame::from_chunk(memory, 0, START - 8, 8 + 60);
        frame[..8].copy_from_slice(&word.to_ne_bytes());
        frame.set_start(START as usize);
        frame
    }

    #[test]
    fn frames_are_done_when_more_are_asked_for() {
        let (order, mut queue) = (order(), QueueOrder::default());
        word(&order, 2).store(9, Ordering::Relaxed);
        queue.give(&order, 1, &mut [frame(MARK | 4), frame(MARK | 5)]);
        assert_eq!(word(&order, 3).load(Ordering::Relaxed), 0, "the user has them");
        queue.finish(&order, 1);
        assert_eq!(word(&order, 3).load(Ordering::Relaxed), 5);
        // A frame of another program, and none of a program.
        queue.give(&order, 1, &mut [frame(0xabd << 48 | 7)]);
        queue.give(&order, 1, &mut [Frame::from_vec(vec![0; 60])]);
        queue.finish(&order, 1);
        assert_eq!(word(&order, 3).load(Ordering::Relaxed), 5);
        assert!(order.is_outstanding());
        queue.finish(&order, 2);
        queue.give(&order, 2, &mut []);
    }

    #[test]
    fn lost_frames_are_done_after_some_quiet() {
        let (order, mut queue) = (order(), QueueOrder::default());
        word(&order, 0).store(3, Ordering::Relaxed);
        queue.give(&order, 0, &mut []);
        // One more is handed over in the meantime: it may still come.
        word(&order, 0).store(4, Ordering::Relaxed);
        queue.give(&order, 0, &mut []);
        let is_early = queue.quiet.is_some();
        std::thread::sleep(QUIET);
        queue.give(&order, 0, &mut []);
        let done = word(&order, 1).load(Ordering::Relaxed);
        assert!(done == 3 || !is_early, "{done}");
        std::thread::sleep(QUIET);
        queue.give(&order, 0, &mut []);
        std::thread::sleep(QUIET);
        queue.give(&order, 0, &mut []);
        assert_eq!(word(&order, 1).load(Ordering::Relaxed), 4);
        assert!(!order.is_outstanding());
    }

    #[test]
    fn frames_of_the_program_before_mean_nothing_to_the_next() {
        let (earlier, next, mut queue) = (order(), order(), QueueOrder::default());
        earlier.follow(None);
        word(&earlier, 0).store(77, Ordering::Relaxed);
        next.follow(Some(&earlier));
        let first = 77 + NEXT_PROGRAM;
        assert_eq!([0, 1].map(|at| word(&next, at).load(Ordering::Relaxed)), [first; 2]);
        queue.give(&next, 0, &mut [frame(MARK | 77)]);
        queue.finish(&next, 0);
        assert_eq!(word(&next, 1).load(Ordering::Relaxed), first);
        queue.give(&next, 0, &mut [frame(MARK | (first + 1))]);
        queue.finish(&next, 0);
        assert_eq!(word(&next, 1).load(Ordering::Relaxed), first + 1);
    }
}
