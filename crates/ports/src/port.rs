//! What every driver offers.

use std::ops::AddAssign;
use std::os::fd::RawFd;

use crate::{Frame, PortError};

/// A frame that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The frame from its Ethernet header on, VLAN tags included, without frame check sequence, checksums complete.
    pub data: Vec<u8>,
    /// When it arrived, in nanoseconds since 1970, if the driver knows.
    pub time_ns: Option<u64>,
}

/// What became of a frame that was to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It was accepted. Drivers that send in batches may still drop it in [`Port::flush`]; the statistics say so.
    Sent,
    /// It will not leave.
    Dropped(DropReason),
}

/// Why a frame did not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The device's queue had no room.
    QueueFull,
    /// The frame is longer than the device's MTU allows, or too short to be a frame.
    BadLength,
    /// The device is not up.
    LinkDown,
}

/// What a port has counted since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Frames handed to the switch.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames that the kernel dropped because they were not fetched in time.
    pub rx_dropped: u64,
    /// Frames that could not be finished (segments of an unknown kind) and were dropped.
    pub rx_unusable: u64,
    /// Frames of which only the beginning is there (a capture's snapshot length); they are handed on all the same.
    pub rx_truncated: u64,
    /// Frames whose checksum a local stack had left to the network card and that was computed here.
    pub rx_checksums_completed: u64,
    /// Over-long frames that a local stack had left to the network card to cut, and that were cut here.
    pub rx_segmented: u64,
    /// Frames that left.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames dropped for [`DropReason::QueueFull`].
    pub tx_queue_full: u64,
    /// Frames dropped for [`DropReason::BadLength`].
    pub tx_bad_length: u64,
    /// Frames dropped for [`DropReason::LinkDown`].
    pub tx_link_down: u64,
    /// Bytes of all frames that were to be sent and did not leave.
    pub tx_dropped_bytes: u64,
}

impl PortStats {
    /// Counts frames that did not leave, and their bytes.
    pub(crate) fn count_dropped(&mut self, reason: DropReason, frames: u64, bytes: usize) {
        self.tx_dropped_bytes += bytes as u64;
        match reason {
            DropReason::QueueFull => self.tx_queue_full += frames,
            DropReason::BadLength => self.tx_bad_length += frames,
            DropReason::LinkDown => self.tx_link_down += frames,
        }
    }

    /// Frames that were to be sent and did not leave, for whatever reason.
    pub fn tx_dropped(&self) -> u64 {
        self.tx_queue_full + self.tx_bad_length + self.tx_link_down
    }
}

/// Adds the counts of two drivers of one port.
impl AddAssign for PortStats {
    fn add_assign(&mut self, other: PortStats) {
        self.rx_packets += other.rx_packets;
        self.rx_bytes += other.rx_bytes;
        self.rx_dropped += other.rx_dropped;
        self.rx_unusable += other.rx_unusable;
        self.rx_truncated += other.rx_truncated;
        self.rx_checksums_completed += other.rx_checksums_completed;
        self.rx_segmented += other.rx_segmented;
        self.tx_packets += other.tx_packets;
        self.tx_bytes += other.tx_bytes;
        self.tx_queue_full += other.tx_queue_full;
        self.tx_bad_length += other.tx_bad_length;
        self.tx_link_down += other.tx_link_down;
        self.tx_dropped_bytes += other.tx_dropped_bytes;
    }
}

/// A place where frames enter and leave. No method blocks.
pub trait Port: Send {
    /// What the port is called in messages: its interface or its files.
    fn name(&self) -> &str;

    /// Appends up to `max` frames to `batch` and says how many. An over-long segment that is cut into several frames
    /// is never split over two calls, so now and then a few more than `max` arrive.
    ///
    /// # Errors
    /// If the port can be used no longer.
    fn receive(&mut self, batch: &mut Vec<Received>, max: usize) -> Result<usize, PortError>;

    /// Sends a frame, or puts it into the batch that the next [`flush`](Self::flush) sends.
    ///
    /// # Errors
    /// If the port can be used no longer. A frame that merely could not be sent is [`Sent::Dropped`].
    fn send(&mut self, frame: &[u8]) -> Result<Sent, PortError>;

    /// Like [`receive`](Self::receive), with frames that stay where the driver put them if it can do that.
    ///
    /// # Errors
    /// If the port can be used no longer.
    fn receive_frames(&mut self, batch: &mut Vec<Frame>, max: usize) -> Result<usize, PortError> {
        let mut received = Vec::new();
        let result = self.receive(&mut received, max);
        batch.extend(received.into_iter().map(|received| {
            let mut frame = Frame::from_vec(received.data);
            frame.time_ns = received.time_ns;
            frame
        }));
        result
    }

    /// Like [`send`](Self::send), of a frame that need not be kept: a driver that stands on the frame's memory sends it
    /// from where it lies.
    ///
    /// # Errors
    /// If the port can be used no longer.
    fn send_frame(&mut self, frame: Frame) -> Result<Sent, PortError> {
        self.send(&frame)
    }

    /// Sends what [`send`](Self::send) has gathered.
    ///
    /// # Errors
    /// If the port can be used no longer.
    fn flush(&mut self) -> Result<(), PortError>;

    /// A descriptor that becomes readable when frames can be received, for [`wait`](crate::wait); `None` if frames
    /// need no waiting for.
    fn poll_fd(&self) -> Option<RawFd>;

    /// What was counted so far.
    fn stats(&self) -> PortStats;

    /// What this program has counted so far: [`stats`](Self::stats) without asking the kernel what it dropped, for
    /// looking often.
    fn counted(&self) -> PortStats {
        self.stats()
    }

    /// Whether the device is still there. It costs a system call or two, so it is asked now and then, when nothing has
    /// come for a while.
    ///
    /// # Errors
    /// If the port can be used no longer.
    fn check(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    /// Whether no frame can come in any more: a capture at its end. Interfaces never finish.
    fn finished(&self) -> bool {
        false
    }

    /// What the user should know about how the port was opened, in one sentence: that it is not what was asked for, and
    /// why.
    fn note(&self) -> Option<&str> {
        None
    }

    /// Says what time it is for the frames sent from here on, in nanoseconds since 1970. Only drivers that write times
    /// down care.
    fn set_time(&mut self, _now_ns: u64) {}
}
