//! Shares one port between several workers when only one of them has its driver.
//!
//! ```text
//! driver ─> OwnedPort ──┬─ the owner's flows ──────> its worker
//!              ▲        └─ FrameRing a worker ─────> RemotePort ─> worker
//!              └────────── FrameRing, one for all ─< RemotePort ◄─ worker
//! ```
//!
//! A [`FrameRing`] is bounded. A frame that finds its ring full is dropped and counted.

use std::os::fd::RawFd;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use ports::{DropReason, Frame, Link, Port, PortError, PortStats, Received, Sent};

use crate::flow::flow_hash;
use crate::waker::Waker;

/// Capacity of a [`FrameRing`], in frames.
pub const RING_CAPACITY: usize = 1024;

/// The sending end of a bounded queue of frames to another worker.
struct FrameRing {
    frames: SyncSender<Vec<u8>>,
    /// Wakes the receiving worker.
    waker: Waker,
}

impl FrameRing {
    /// Appends a frame. Returns false if the ring is full.
    fn push(&self, frame: Vec<u8>) -> bool {
        self.frames.try_send(frame).is_ok()
    }
}

/// The port at the worker that has the driver.
struct OwnedPort {
    driver: Box<dyn Port>,
    /// Rings to the workers that receive too. A frame goes to the worker `flow hash % (rings + 1)`; 0 is this worker.
    others: Vec<FrameRing>,
    /// Frames that the other workers send.
    to_send: Receiver<Vec<u8>>,
    /// Frames and bytes that found their ring full. The driver counts them as received.
    lost: (u64, u64),
    /// Frames of other workers that the driver dropped. Those workers count them as sent.
    foreign_drops: PortStats,
    batch: Vec<Frame>,
}

/// The port at a worker that does not have the driver.
struct RemotePort {
    name: String,
    link: Option<Link>,
    received: Receiver<Vec<u8>>,
    owner: FrameRing,
    is_finished: bool,
    stats: PortStats,
    /// Whether the owner must be woken at the next flush.
    is_touched: bool,
}

/// Splits a port between the worker that has the driver and others. Every other worker may send; those whose flag is
/// true receive their share of the flows. Returns the owner's port, then one port for each of `others`.
pub fn share(driver: Box<dyn Port>, owner: &Waker, others: &[(Waker, bool)]) -> (Box<dyn Port>, Vec<Box<dyn Port>>) {
    let (to_owner, to_send) = sync_channel(RING_CAPACITY);
    let mut owned = OwnedPort {
        driver,
        others: Vec::new(),
        to_send,
        lost: (0, 0),
        foreign_drops: PortStats::default(),
        batch: Vec::new(),
    };
    let mut remotes = Vec::<Box<dyn Port>>::new();
    for (waker, receives) in others {
        let (frames, received) = sync_channel(RING_CAPACITY);
        if *receives {
            owned.others.push(FrameRing { frames, waker: waker.clone() });
        }
        remotes.push(Box::new(RemotePort {
            name: owned.driver.name().to_owned(),
            link: owned.driver.link(),
            received,
            owner: FrameRing { frames: to_owner.clone(), waker: owner.clone() },
            is_finished: !receives,
            stats: PortStats::default(),
            is_touched: false,
        }));
    }
    (Box::new(owned), remotes)
}

fn copied(frames: Vec<Frame>) -> impl Iterator<Item = Received> {
    frames.into_iter().map(|frame| Received { time_ns: frame.time_ns, data: frame.to_vec() })
}

impl OwnedPort {
    /// Corrects the driver's counts: frames that found a ring full count as dropped, not as received.
    fn without_lost(&self, stats: PortStats) -> PortStats {
        let (frames, bytes) = self.lost;
        PortStats {
            rx_packets: stats.rx_packets - frames,
            rx_bytes: stats.rx_bytes - bytes,
            rx_dropped: stats.rx_dropped + frames,
            ..stats
        }
    }

    /// Sends the frames of the other workers.
    fn send_remote(&mut self) -> Result<(), PortError> {
        let Ok(first) = self.to_send.try_recv() else { return Ok(()) };
        let before = self.driver.counted();
        self.driver.send(&first)?;
        for frame in self.to_send.try_iter().take(RING_CAPACITY) {
            self.driver.send(&frame)?;
        }
        self.driver.flush()?;
        let now = self.driver.counted();
        self.foreign_drops.tx_queue_full += now.tx_queue_full - before.tx_queue_full;
        self.foreign_drops.tx_bad_length += now.tx_bad_length - before.tx_bad_length;
        self.foreign_drops.tx_link_down += now.tx_link_down - before.tx_link_down;
        self.foreign_drops.tx_dropped_bytes += now.tx_dropped_bytes - before.tx_dropped_bytes;
        Ok(())
    }

    /// Receives a batch from the driver and distributes it.
    fn receive_share(&mut self, batch: &mut Vec<Frame>, max: usize) -> Result<usize, PortError> {
        self.send_remote()?;
        if self.others.is_empty() {
            return self.driver.receive_frames(batch, max);
        }
        let before = batch.len();
        let result = self.driver.receive_frames(&mut self.batch, max);
        let shares = self.others.len() as u64 + 1;
        let mut is_given = vec![false; self.others.len()];
        for frame in self.batch.drain(..) {
            match (flow_hash(&frame) % shares) as usize {
                0 => batch.push(frame),
                other if self.others[other - 1].push(frame.to_vec()) => is_given[other - 1] = true,
                _ => self.lost = (self.lost.0 + 1, self.lost.1 + frame.len() as u64),
            }
        }
        for (other, is_given) in self.others.iter().zip(is_given) {
            if is_given {
                other.waker.wake();
            }
        }
        result.map(|_| batch.len() - before)
    }

    /// Closes the rings after an error, which ends the use of the port. The other workers then see that it is lost.
    fn close_after<T>(&mut self, result: Result<T, PortError>) -> Result<T, PortError> {
        if result.is_err() {
            for FrameRing { frames, waker } in self.others.drain(..) {
                drop(frames);
                waker.wake();
            }
        }
        result
    }
}

impl Port for OwnedPort {
    fn name(&self) -> &str {
        self.driver.name()
    }

    fn receive(&mut self, batch: &mut Vec<Received>, max: usize) -> Result<usize, PortError> {
        let mut frames = Vec::new();
        let count = self.receive_frames(&mut frames, max)?;
        batch.extend(copied(frames));
        Ok(count)
    }

    fn receive_frames(&mut self, batch: &mut Vec<Frame>, max: usize) -> Result<usize, PortError> {
        let result = self.receive_share(batch, max);
        self.close_after(result)
    }

    fn send(&mut self, frame: &[u8]) -> Result<Sent, PortError> {
        let result = self.driver.send(frame);
        self.close_after(result)
    }

    fn send_frame(&mut self, frame: Frame) -> Result<Sent, PortError> {
        let result = self.driver.send_frame(frame);
        self.close_after(result)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        let result = self.driver.flush();
        self.close_after(result)
    }

    fn poll_fd(&self) -> Option<RawFd> {
        self.driver.poll_fd()
    }

    fn stats(&self) -> PortStats {
        self.without_lost(self.driver.stats())
    }

    fn counted(&self) -> PortStats {
        let counted = self.without_lost(self.driver.counted());
        PortStats {
            tx_queue_full: counted.tx_queue_full - self.foreign_drops.tx_queue_full,
            tx_bad_length: counted.tx_bad_length - self.foreign_drops.tx_bad_length,
            tx_link_down: counted.tx_link_down - self.foreign_drops.tx_link_down,
            tx_dropped_bytes: counted.tx_dropped_bytes - self.foreign_drops.tx_dropped_bytes,
            ..counted
        }
    }

    fn finished(&self) -> bool {
        self.driver.finished()
    }

    fn note(&self) -> Option<&str> {
        self.driver.note()
    }

    fn link(&self) -> Option<Link> {
        self.driver.link()
    }

    fn check(&mut self) -> Result<(), PortError> {
        let result = self.driver.check();
        self.close_after(result)
    }
}

impl Port for RemotePort {
    fn name(&self) -> &str {
        &self.name
    }

    fn receive(&mut self, batch: &mut Vec<Received>, max: usize) -> Result<usize, PortError> {
        let mut frames = Vec::new();
        let count = self.receive_frames(&mut frames, max)?;
        batch.extend(copied(frames));
        Ok(count)
    }

    fn receive_frames(&mut self, batch: &mut Vec<Frame>, max: usize) -> Result<usize, PortError> {
        for count in 0..max {
            match self.received.try_recv() {
                Ok(frame) => batch.push(Frame::from_vec(frame)),
                Err(error) => {
                    self.is_finished |= error == TryRecvError::Disconnected;
                    return Ok(count);
                }
            }
        }
        Ok(max)
    }

    fn send(&mut self, frame: &[u8]) -> Result<Sent, PortError> {
        if self.owner.push(frame.to_vec()) {
            self.is_touched = true;
            return Ok(Sent::Sent);
        }
        self.stats.tx_queue_full += 1;
        self.stats.tx_dropped_bytes += frame.len() as u64;
        Ok(Sent::Dropped(DropReason::QueueFull))
    }

    fn flush(&mut self) -> Result<(), PortError> {
        if std::mem::take(&mut self.is_touched) {
            self.owner.waker.wake();
        }
        Ok(())
    }

    fn poll_fd(&self) -> Option<RawFd> {
        None
    }

    fn link(&self) -> Option<Link> {
        self.link.clone()
    }

    fn stats(&self) -> PortStats {
        self.stats
    }

    fn finished(&self) -> bool {
        self.is_finished
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A driver that receives `left` more frames, each of a flow of its own.
    struct Many {
        left: u32,
        stats: PortStats,
    }

    impl Port for Many {
        fn name(&self) -> &str {
            "many"
        }

        fn receive(&mut self, batch: &mut Vec<Received>, max: usize) -> Result<usize, PortError> {
            let count = max.min(self.left as usize);
            for _ in 0..count {
                self.left -= 1;
                let mut data = vec![0; 60];
                data[..4].copy_from_slice(&self.left.to_be_bytes());
                self.stats.rx_packets += 1;
                self.stats.rx_bytes += data.len() as u64;
                batch.push(Received { data, time_ns: None });
            }
            Ok(count)
        }

        fn send(&mut self, _: &[u8]) -> Result<Sent, PortError> {
            Ok(Sent::Sent)
        }

        fn flush(&mut self) -> Result<(), PortError> {
            Ok(())
        }

        fn poll_fd(&self) -> Option<RawFd> {
            None
        }

        fn stats(&self) -> PortStats {
            self.stats
        }

        fn check(&mut self) -> Result<(), PortError> {
            match self.left {
                0 => Err(PortError::Vanished { interface: "many".to_owned() }),
                _ => Ok(()),
            }
        }
    }

    #[test]
    fn check_reaches_the_driver() {
        for (left, is_there) in [(1, true), (0, false)] {
            let driver = Box::new(Many { left, stats: PortStats::default() });
            let (mut owned, _) = share(driver, &Waker::new().unwrap(), &[]);
            assert_eq!(owned.check().is_ok(), is_there);
        }
    }

    #[test]
    fn an_error_ends_the_port_of_every_worker() {
        let driver = Box::new(Many { left: 0, stats: PortStats::default() });
        let wakers = [Waker::new().unwrap(), Waker::new().unwrap()];
        let (mut owned, mut remotes) = share(driver, &wakers[0], &[(wakers[1].clone(), true)]);
        wakers[1].arm();
        assert_eq!(remotes[0].receive_frames(&mut Vec::new(), 32).unwrap(), 0);
        assert!(wakers[1].is_armed() && !remotes[0].finished());
        assert!(owned.check().is_err());
        assert!(!wakers[1].is_armed(), "the other worker is woken");
        assert_eq!(remotes[0].receive_frames(&mut Vec::new(), 32).unwrap(), 0);
        assert!(remotes[0].finished());
    }

    #[test]
    fn a_frame_lost_between_workers_is_dropped_and_not_received_as_well() {
        const ALL: u32 = 4000;
        let driver = Box::new(Many { left: ALL, stats: PortStats::default() });
        let wakers = [Waker::new().unwrap(), Waker::new().unwrap()];
        let (mut owned, mut remotes) = share(driver, &wakers[0], &[(wakers[1].clone(), true)]);
        let (mut here, mut there) = (Vec::new(), Vec::new());
        while owned.receive_frames(&mut here, 32).unwrap() > 0 {}
        while remotes[0].receive_frames(&mut there, 32).unwrap() > 0 {}
        assert_eq!(there.len(), RING_CAPACITY, "the other worker was late");
        let handed = (here.len() + there.len()) as u64;
        let expected = PortStats {
            rx_packets: handed,
            rx_bytes: 60 * handed,
            rx_dropped: u64::from(ALL) - handed,
            ..PortStats::default()
        };
        assert_eq!((owned.stats(), owned.counted()), (expected, expected));
    }
}
