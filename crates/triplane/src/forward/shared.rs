//! A port for several workers whose driver one of them has.
//!
//! ```text
//! driver ─> Home ──┬─ its own flows ─> its worker          ring: bounded; a frame that finds it full is dropped
//!           ▲      └─ ring a worker ─> Away ─> worker
//!           └──────── ring a worker ◄─ Away ◄─ worker
//! ```

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use ports::{DropReason, Frame, Port, PortError, PortStats, Received, Sent};

use super::flow::flow;

/// Frames that wait between two workers at most.
const RING: usize = 1024;

/// Wakes a worker that waits for its ports.
#[derive(Clone, Debug)]
pub struct Bell(Arc<(AtomicBool, UnixStream, UnixStream)>);

impl Bell {
    /// A bell that nobody waits for yet.
    ///
    /// # Errors
    /// If the process can open no more descriptors.
    pub fn new() -> io::Result<Bell> {
        let (ring, hear) = UnixStream::pair()?;
        ring.set_nonblocking(true)?;
        hear.set_nonblocking(true)?;
        Ok(Bell(Arc::new((AtomicBool::new(false), ring, hear))))
    }

    /// From now on the bell is rung when something comes; what came before is to be looked for once more.
    pub fn listen(&self) {
        self.0.0.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The worker is awake.
    pub fn awake(&self) {
        self.0.0.store(false, Ordering::Relaxed);
        let mut sink = [0; 64];
        while matches!((&self.0.2).read(&mut sink), Ok(count) if count > 0) {}
    }

    /// Rings, if the worker listens. What it is to find has been put there before.
    pub fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.0.0.load(Ordering::Relaxed) && self.0.0.swap(false, Ordering::Relaxed) {
            // A bell that has been rung so often that it takes no more is heard as well.
            _ = (&self.0.1).write(&[1]);
        }
    }

    /// What is readable when the bell was rung.
    pub fn fd(&self) -> RawFd {
        self.0.2.as_raw_fd()
    }
}

/// One way between two workers.
struct Way {
    ring: SyncSender<Vec<u8>>,
    bell: Bell,
}

impl Way {
    /// Whether the frame went.
    fn put(&self, frame: Vec<u8>) -> bool {
        self.ring.try_send(frame).is_ok()
    }
}

/// The port where its driver is.
struct Home {
    driver: Box<dyn Port>,
    /// Where frames of flows go that are not this worker's: flow modulo one more than there are, 0 stays.
    others: Vec<Way>,
    /// What other workers send.
    sent: Receiver<Vec<u8>>,
    /// Frames that found no room on their way to another worker, and their bytes. The driver counts them as received.
    lost: (u64, u64),
    /// What the driver dropped of other workers' frames, which count as sent there.
    foreign: PortStats,
    batch: Vec<Frame>,
}

/// The port at a worker that does not have the driver.
struct Away {
    name: String,
    received: Receiver<Vec<u8>>,
    home: Way,
    finished: bool,
    stats: PortStats,
    /// Whether the driver's worker is to be told.
    touched: bool,
}

/// Splits a port between the worker that has the driver and others. Those that are marked get their share of what
/// arrives; all may send.
pub fn share(driver: Box<dyn Port>, home: &Bell, others: &[(Bell, bool)]) -> (Box<dyn Port>, Vec<Box<dyn Port>>) {
    let name = driver.name().to_owned();
    let (to_home, sent) = sync_channel(RING);
    let (mut ways, mut aways) = (Vec::new(), Vec::<Box<dyn Port>>::new());
    for (bell, is_dealt) in others {
        let (ring, received) = sync_channel(RING);
        if *is_dealt {
            ways.push(Way { ring, bell: bell.clone() });
        }
        let home = Way { ring: to_home.clone(), bell: home.clone() };
        let (name, stats) = (name.clone(), PortStats::default());
        aways.push(Box::new(Away { name, received, home, finished: !is_dealt, stats, touched: false }));
    }
    let home = Home { driver, others: ways, sent, lost: (0, 0), foreign: PortStats::default(), batch: Vec::new() };
    (Box::new(home), aways)
}

fn copied(frames: Vec<Frame>) -> impl Iterator<Item = Received> {
    frames.into_iter().map(|frame| Received { time_ns: frame.time_ns, data: frame.to_vec() })
}

impl Home {
    /// The driver's counts, with what was lost between workers as dropped and not as handed to the switch.
    fn dropping_lost(&self, stats: PortStats) -> PortStats {
        let (frames, bytes) = self.lost;
        PortStats {
            rx_packets: stats.rx_packets - frames,
            rx_bytes: stats.rx_bytes - bytes,
            rx_dropped: stats.rx_dropped + frames,
            ..stats
        }
    }

    /// Sends what other workers have put here.
    fn carry(&mut self) -> Result<(), PortError> {
        let Ok(first) = self.sent.try_recv() else { return Ok(()) };
        let before = self.driver.counted();
        self.driver.send(&first)?;
        for frame in self.sent.try_iter().take(RING) {
            self.driver.send(&frame)?;
        }
        self.driver.flush()?;
        let now = self.driver.counted();
        self.foreign.tx_queue_full += now.tx_queue_full - before.tx_queue_full;
        self.foreign.tx_bad_length += now.tx_bad_length - before.tx_bad_length;
        self.foreign.tx_link_down += now.tx_link_down - before.tx_link_down;
        self.foreign.tx_dropped_bytes += now.tx_dropped_bytes - before.tx_dropped_bytes;
        Ok(())
    }
}

impl Port for Home {
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
        self.carry()?;
        if self.others.is_empty() {
            return self.driver.receive_frames(batch, max);
        }
        let before = batch.len();
        let result = self.driver.receive_frames(&mut self.batch, max);
        let shares = self.others.len() as u64 + 1;
        let mut given = vec![false; self.others.len()];
        for frame in self.batch.drain(..) {
            match (flow(&frame) % shares) as usize {
                0 => batch.push(frame),
                other if self.others[other - 1].put(frame.to_vec()) => given[other - 1] = true,
                _ => self.lost = (self.lost.0 + 1, self.lost.1 + frame.len() as u64),
            }
        }
        for (other, _) in self.others.iter().zip(given).filter(|(_, given)| *given) {
            other.bell.ring();
        }
        result.map(|_| batch.len() - before)
    }

    fn send(&mut self, frame: &[u8]) -> Result<Sent, PortError> {
        self.driver.send(frame)
    }

    fn send_frame(&mut self, frame: Frame) -> Result<Sent, PortError> {
        self.driver.send_frame(frame)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.driver.flush()
    }

    fn poll_fd(&self) -> Option<RawFd> {
        self.driver.poll_fd()
    }

    fn stats(&self) -> PortStats {
        self.dropping_lost(self.driver.stats())
    }

    fn counted(&self) -> PortStats {
        let counted = self.dropping_lost(self.driver.counted());
        PortStats {
            tx_queue_full: counted.tx_queue_full - self.foreign.tx_queue_full,
            tx_bad_length: counted.tx_bad_length - self.foreign.tx_bad_length,
            tx_link_down: counted.tx_link_down - self.foreign.tx_link_down,
            tx_dropped_bytes: counted.tx_dropped_bytes - self.foreign.tx_dropped_bytes,
            ..counted
        }
    }

    fn finished(&self) -> bool {
        self.driver.finished()
    }

    fn note(&self) -> Option<&str> {
        self.driver.note()
    }

    fn check(&mut self) -> Result<(), PortError> {
        self.driver.check()
    }
}

impl Port for Away {
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
                    self.finished |= error == TryRecvError::Disconnected;
                    return Ok(count);
                }
            }
        }
        Ok(max)
    }

    fn send(&mut self, frame: &[u8]) -> Result<Sent, PortError> {
        if self.home.put(frame.to_vec()) {
            self.touched = true;
            return Ok(Sent::Sent);
        }
        self.stats.tx_queue_full += 1;
        self.stats.tx_dropped_bytes += frame.len() as u64;
        Ok(Sent::Dropped(DropReason::QueueFull))
    }

    fn flush(&mut self) -> Result<(), PortError> {
        if std::mem::take(&mut self.touched) {
            self.home.bell.ring();
        }
        Ok(())
    }

    fn poll_fd(&self) -> Option<RawFd> {
        None
    }

    fn stats(&self) -> PortStats {
        self.stats
    }

    fn finished(&self) -> bool {
        self.finished
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A driver with so many frames left to receive, each of a flow of its own.
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
    fn the_driver_is_asked_whether_its_device_is_still_there() {
        for (left, is_there) in [(1, true), (0, false)] {
            let driver = Box::new(Many { left, stats: PortStats::default() });
            let (mut home, _) = share(driver, &Bell::new().unwrap(), &[]);
            assert_eq!(home.check().is_ok(), is_there);
        }
    }

    #[test]
    fn a_frame_lost_between_workers_is_dropped_and_not_received_as_well() {
        const ALL: u32 = 4000;
        let driver = Box::new(Many { left: ALL, stats: PortStats::default() });
        let bells = [Bell::new().unwrap(), Bell::new().unwrap()];
        let (mut home, mut aways) = share(driver, &bells[0], &[(bells[1].clone(), true)]);
        let (mut here, mut there) = (Vec::new(), Vec::new());
        while home.receive_frames(&mut here, 32).unwrap() > 0 {}
        while aways[0].receive_frames(&mut there, 32).unwrap() > 0 {}
        assert_eq!(there.len(), RING, "the other worker was late");
        let handed = (here.len() + there.len()) as u64;
        let expected = PortStats {
            rx_packets: handed,
            rx_bytes: 60 * handed,
            rx_dropped: u64::from(ALL) - handed,
            ..PortStats::default()
        };
        assert_eq!((home.stats(), home.counted()), (expected, expected));
    }
}
