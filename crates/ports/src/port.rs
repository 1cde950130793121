//! Defines the interface of all drivers.

use std::ops::AddAssign;
use std::os::fd::RawFd;

use crate::{Frame, Link, PortError, XdpAttachment};

/// A received frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The frame from its Ethernet header on, including VLAN tags, without frame check sequence. Checksums are
    /// complete.
    pub data: Vec<u8>,
    /// Arrival time in nanoseconds since 1970, if the driver knows it.
    pub time_ns: Option<u64>,
}

/// The result of sending a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Accepted. Drivers that send in batches may still drop it in [`Port::flush`], which the statistics show.
    Sent,
    /// Dropped.
    Dropped(DropReason),
}

/// The reason for dropping a frame on transmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The device's queue was full.
    QueueFull,
    /// The frame is longer than the device's MTU allows, or shorter than an Ethernet header.
    BadLength,
    /// The device is not up.
    LinkDown,
}

/// Statistics of a port since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Frames received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Frames that the kernel dropped because they were not fetched in time.
    pub rx_dropped: u64,
    /// Frames dropped because they could not be finished (segments of an unknown kind).
    pub rx_unusable: u64,
    /// Truncated frames (by a capture's snapshot length); they are delivered all the same.
    pub rx_truncated: u64,
    /// Frames with a partial checksum of a local stack, completed here.
    pub rx_checksums_completed: u64,
    /// Over-long frames of a local stack, segmented here.
    pub rx_segmented: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Frames dropped for [`DropReason::QueueFull`].
    pub tx_queue_full: u64,
    /// Frames dropped for [`DropReason::BadLength`].
    pub tx_bad_length: u64,
    /// Frames dropped for [`DropReason::LinkDown`].
    pub tx_link_down: u64,
    /// Bytes of all frames that were dropped on transmit.
    pub tx_dropped_bytes: u64,
}

impl PortStats {
    /// Counts dropped frames and their bytes.
    pub(crate) fn count_dropped(&mut self, reason: DropReason, frames: u64, bytes: usize) {
        self.tx_dropped_bytes += bytes as u64;
        match reason {
            DropReason::QueueFull => self.tx_queue_full += frames,
            DropReason::BadLength => self.tx_bad_length += frames,
            DropReason::LinkDown => self.tx_link_down += frames,
        }
    }

    /// Returns the number of frames dropped on transmit, for any reason.
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

/// A port, at which frames are received and sent. No method blocks.
pub trait Port: Send {
    /// Returns the name of the port in messages: its interface or its files.
    fn name(&self) -> &str;

    /// Appends up to `max` frames to `batch` and returns their number. The segments of an over-long frame are never
    /// split over two calls, so the result may exceed `max` slightly.
    ///
    /// # Errors
    /// Returns an error if the port can no longer be used.
    fn receive(&mut self, batch: &mut Vec<Received>, max: usize) -> Result<usize, PortError>;

    /// Sends a frame, or adds it to the batch that the next [`flush`](Self::flush) sends.
    ///
    /// # Errors
    /// Returns an error if the port can no longer be used. A frame that merely could not be sent is [`Sent::Dropped`].
    fn send(&mut self, frame: &[u8]) -> Result<Sent, PortError>;

    /// Like [`receive`](Self::receive), with frames that stay in the driver's memory if it supports that.
    ///
    /// # Errors
    /// Returns an error if the port can no longer be used.
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

    /// Like [`send`](Self::send), for a frame that the caller gives up: a driver that owns the frame's memory sends it
    /// without a copy.
    ///
    /// # Errors
    /// Returns an error if the port can no longer be used.
    fn send_frame(&mut self, frame: Frame) -> Result<Sent, PortError> {
        self.send(&frame)
    }

    /// Sends the frames that [`send`](Self::send) has batched.
    ///
    /// # Errors
    /// Returns an error if the port can no longer be used.
    fn flush(&mut self) -> Result<(), PortError>;

    /// Returns a descriptor that becomes readable when frames can be received, for [`wait`](crate::wait); `None` if
    /// frames are always available.
    fn poll_fd(&self) -> Option<RawFd>;

    /// Returns the statistics.
    fn stats(&self) -> PortStats;

    /// Returns the statistics of this process: [`stats`](Self::stats) without a query of the kernel's drop counters,
    /// for frequent calls.
    fn counted(&self) -> PortStats {
        self.stats()
    }

    /// Checks that the device still exists. It costs a system call or two, so it is called occasionally, when no frame
    /// has arrived for a while.
    ///
    /// # Errors
    /// Returns an error if the port can no longer be used.
    fn check(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    /// Returns the device's link, to watch it; `None` if the port has no cable.
    fn link(&self) -> Option<Link> {
        None
    }

    /// Whether the device has a link. It costs two system calls. A port without a cable always has one, and so has one
    /// that cannot find out.
    fn has_link(&self) -> bool {
        self.link().is_none_or(|link| link.is_up())
    }

    /// Whether no frame can arrive any more: a capture at its end. Interfaces never finish.
    fn finished(&self) -> bool {
        false
    }

    /// Returns a note for the user, in one sentence, if the port differs from what was requested, with the reason.
    fn note(&self) -> Option<&str> {
        None
    }

    /// Returns the port's program in the kernel, if it has one that can be replaced: AF_XDP ports do. A driver that
    /// must see every frame has none.
    fn attachment(&self) -> Option<XdpAttachment> {
        None
    }

    /// Sets the time of the frames sent from here on, in nanoseconds since 1970. Only drivers that record times use it.
    fn set_time(&mut self, _now_ns: u64) {}
}
