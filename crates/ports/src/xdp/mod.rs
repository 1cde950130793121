//! Implements the AF_XDP driver: frames straight from the interface's driver into memory of this process.
//!
//! ```text
//! interface ─> XDP program ─┬─> socket of the frame's receive queue ─> Frame, in place ─> switch
//!                           └─> kernel's stack, for queues without a socket
//! switch ─> Frame ─> transmit ring of the port's first queue ─> interface
//! ```
//!
//! The program consists of a few instructions that this crate writes itself; no compiler, library or loader is needed.
//! It is attached in the interface's driver if that supports XDP, else in front of the kernel's stack (generic mode).
//! This process does not copy frames, and with zero copy nobody does.
//!
//! **The interface is taken away from the kernel** while the port is open: unlike with AF_PACKET, incoming frames go to
//! the switch only. Nothing needs to be undone. Program, sockets and promiscuous mode depend on descriptors, and the
//! kernel releases them when the process ends, even by `kill -9`. No setting of the interface is changed.
//!
//! Information that AF_XDP does not provide, and the remedy:
//! - *Partial checksums* of local stacks (behind a veth or TAP) are detected and completed, see [`partial`].
//! - *Over-long segments*: a veth stops its other end from creating them while a program is attached. In generic mode
//!   they do arrive, and are segmented to the MTU.
//! - *VLAN tags* that a stack or a card keeps beside the frame: the program queries the driver and puts them back where
//!   that is supported ([`XdpPort::restores_tags`]: veth since Linux 6.8, some cards). Elsewhere they are lost, unless
//!   the sender inserts tags itself (`ethtool -K IF tx-vlan-hw-insert off`; for a card's own reception `rxvlan off`).
//!   AF_PACKET has no such gap. Tags that are in the frame stay in any case.
//! - *Frames of several buffers* (MTU over 3,818 bytes) are assembled on the heap; a kernel without multi-buffer AF_XDP
//!   rejects the port. An MTU over 10,218 bytes is always rejected, and AF_PACKET is used instead.

mod attachment;
mod open;
mod order;
mod partial;
mod program;
mod queue;
mod refused;
mod ring;

use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

pub use attachment::XdpAttachment;
pub(crate) use open::open_all;
pub use order::HandOverOrder;
pub(crate) use program::again_while_busy;
pub use refused::NoXdp;

use crate::frame::{Frame, Memory};
use crate::interface::{self, Interface, payload_len};
use crate::{DropReason, Link, Port, PortError, PortStats, Received, Sent};
use program::Redirect;
use queue::{Flushed, XdpQueue};
use wire::offload::{SegmentKind, segment};

/// Number of receptions without a frame after which the socket is checked for events of the interface.
const IDLE_BEFORE_CHECK: u32 = 64;
/// Size of an Ethernet header, the minimum length that devices accept.
const MIN_FRAME: usize = 14;

/// Settings of an AF_XDP port. The default is the fastest one without special requirements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpSettings {
    /// Attach in front of the kernel's stack (generic mode) even if the driver supports XDP.
    pub generic: bool,
    /// Copy frames even if the driver supports zero copy.
    pub copy: bool,
    /// Poll the device for this many microseconds in each reception instead of waiting for its interrupts. This
    /// occupies a core, and is worthwhile where latency matters and interrupts are expensive; on veth it costs
    /// throughput.
    pub busy_poll_us: Option<u32>,
    /// Run the program in the kernel, if it can: see [`Port::attachment`].
    pub in_kernel: bool,
    /// The program in the kernel is offered under the GPL: see [`XdpAttachment::load`].
    pub is_gpl: bool,
}

/// A network interface through AF_XDP sockets, one for each of its receive queues. It belongs to the network namespace
/// of the thread that opened it; afterwards any thread may use it.
pub struct XdpPort {
    name: String,
    index: c_int,
    mtu: usize,
    is_native: bool,
    has_local_senders: bool,
    /// Shared by the parts of a port that was [`split`](XdpPort::split): dropping the last one detaches the program.
    redirect: Arc<Redirect>,
    queues: Vec<XdpQueue>,
    /// Number of queues, from the first, that can send.
    senders: usize,
    /// Descriptor that is readable if one of several queues is.
    epoll: Option<OwnedFd>,
    control: Arc<OwnedFd>,
    /// Index of the queue that is received from next.
    next: usize,
    idle: u32,
    is_down: bool,
    scratch: Vec<Frame>,
    stats: PortStats,
    /// A setting that was requested but is not available, as a note for the user.
    note: Option<String>,
}

impl XdpPort {
    /// Opens an interface.
    ///
    /// # Errors
    /// Returns an error if there is no such interface, or [`PortError::NoXdp`] with the reason why AF_XDP cannot be
    /// used.
    pub fn open(name: &str, settings: XdpSettings) -> Result<XdpPort, PortError> {
        open_all(&[(name, settings)]).remove(0)
    }

    /// Opens interfaces that share one memory, so that forwarding between them moves descriptors only. A device that
    /// cannot share it has a separate memory, and frames are copied.
    ///
    /// # Errors
    /// Returns the error of the first interface that cannot be opened.
    pub fn open_together(names: &[&str], settings: XdpSettings) -> Result<Vec<XdpPort>, PortError> {
        let interfaces: Vec<_> = names.iter().map(|name| (*name, settings)).collect();
        open_all(&interfaces).into_iter().collect()
    }

    /// Returns the interface's MTU when it was opened, in bytes.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// Whether the program runs in the interface's driver rather than in front of the kernel's stack.
    pub fn is_native(&self) -> bool {
        self.is_native
    }

    /// Whether VLAN tags that arrive beside a frame, from a card or from a stack behind a veth, are put into it.
    pub fn restores_tags(&self) -> bool {
        self.redirect.restores_tags
    }

    /// Whether the device itself reads and writes the frame memory.
    pub fn is_zero_copy(&self) -> bool {
        self.queues.iter().all(|queue| queue.zero_copy)
    }

    /// Returns the number of receive queues.
    pub fn queues(&self) -> usize {
        self.queues.len()
    }

    /// Returns the frame memory.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.queues[0].memory
    }

    /// Returns the number of queues that can send too.
    pub fn senders(&self) -> usize {
        self.senders
    }

    /// Splits the port into parts for separate threads, each with its share of the queues; frames stay in order within
    /// a queue. A part sends through its first queue; a part without a sending queue can only receive.
    ///
    /// # Errors
    /// Returns an error if the process can open no more descriptors.
    ///
    /// # Panics
    /// Panics if there are fewer queues than parts.
    pub fn split(mut self, parts: usize) -> Result<Vec<XdpPort>, PortError> {
        assert!((1..=self.queues.len()).contains(&parts), "each part has a queue");
        let mut shares: Vec<Vec<XdpQueue>> = (0..parts).map(|_| Vec::new()).collect();
        for (number, queue) in std::mem::take(&mut self.queues).into_iter().enumerate() {
            shares[number % parts].push(queue);
        }
        let failed =
            |source| PortError::System { what: "creating an epoll instance", interface: self.name.clone(), source };
        let part = |(number, queues): (usize, Vec<XdpQueue>)| {
            let epoll = if queues.len() > 1 { Some(open::epoll(&queues).map_err(failed)?) } else { None };
            Ok(XdpPort {
                name: self.name.clone(),
                index: self.index,
                mtu: self.mtu,
                is_native: self.is_native,
                has_local_senders: self.has_local_senders,
                redirect: Arc::clone(&self.redirect),
                senders: self.senders.saturating_sub(number).div_ceil(parts).min(queues.len()),
                queues,
                epoll,
                control: Arc::clone(&self.control),
                next: 0,
                idle: 0,
                is_down: false,
                scratch: Vec::new(),
                stats: if number == 0 { self.stats } else { PortStats::default() },
                note: if number == 0 { self.note.take() } else { None },
            })
        };
        shares.into_iter().enumerate().map(part).collect()
    }

    /// Distinguishes a removed interface from one that is merely down.
    fn check_interface(&mut self) -> Result<(), PortError> {
        self.idle = 0;
        // A removed interface leaves an error on its sockets.
        if self.queues.iter().all(|queue| crate::socket::take_error(&queue.socket) == 0) {
            return Ok(());
        }
        self.check_existence()
    }

    fn check_existence(&self) -> Result<(), PortError> {
        if interface::exists(self.control.as_fd(), self.index) {
            return Ok(());
        }
        Err(PortError::Vanished { interface: self.name.clone() })
    }

    /// Finishes frames of a local stack that rely on a card, from the frame at `first` of the batch on.
    fn finish(&mut self, batch: &mut Vec<Frame>, first: usize) {
        let limit = self.longest();
        if batch[first..].iter().any(|frame| frame.len() > limit + 8) {
            let rest: Vec<Frame> = batch.drain(first..).collect();
            for frame in rest {
                self.cut(batch, frame);
            }
        }
        for frame in &mut batch[first..] {
            if partial::complete(frame) {
                self.stats.rx_checksums_completed += 1;
            }
        }
    }

    /// Segments a TCP train to the MTU; only TCP can be segmented without knowing the sender's segment size.
    fn cut(&mut self, batch: &mut Vec<Frame>, frame: Frame) {
        if frame.len() <= self.longest() + 8 {
            batch.push(frame);
            return;
        }
        // The transport headers take at most 60 bytes of each segment, and the network headers at most 60 as well.
        let size = self.mtu.saturating_sub(120);
        let cut = segment(&frame, SegmentKind::Tcp, None, size, |piece| batch.push(Frame::from_vec(piece)));
        match cut {
            Ok(_) => self.stats.rx_segmented += 1,
            Err(_) => self.stats.rx_unusable += 1,
        }
    }

    /// Returns the maximum length of a frame without VLAN tags, in bytes.
    fn longest(&self) -> usize {
        self.mtu + 14
    }

    /// Returns the reason why a frame cannot be sent at all, if there is one.
    fn obstacle(&mut self, frame: &[u8]) -> Option<DropReason> {
        if self.senders == 0 {
            return Some(DropReason::QueueFull);
        }
        if self.is_down {
            return Some(DropReason::LinkDown);
        }
        if frame.len() < MIN_FRAME {
            return Some(DropReason::BadLength);
        }
        let len = payload_len(frame);
        if len > self.mtu {
            // The MTU may have changed.
            self.mtu = Interface::new(self.control.as_fd(), &self.name).mtu().unwrap_or(self.mtu);
        }
        (len > self.mtu).then_some(DropReason::BadLength)
    }

    fn account(&mut self, len: usize, result: Result<(), DropReason>) -> Sent {
        match result {
            Ok(()) => {
                self.stats.tx_packets += 1;
                self.stats.tx_bytes += len as u64;
                Sent::Sent
            }
            Err(reason) => {
                self.stats.count_dropped(reason, 1, len);
                Sent::Dropped(reason)
            }
        }
    }
}

impl Port for XdpPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn receive(&mut self, batch: &mut Vec<Received>, max: usize) -> Result<usize, PortError> {
        let mut frames = std::mem::take(&mut self.scratch);
        let result = self.receive_frames(&mut frames, max);
        batch.extend(frames.drain(..).map(|frame| Received { data: frame.to_vec(), time_ns: frame.time_ns }));
        self.scratch = frames;
        result
    }

    fn receive_frames(&mut self, batch: &mut Vec<Frame>, max: usize) -> Result<usize, PortError> {
        let before = batch.len();
        let order = self.redirect.order.read().ok().and_then(|order| order.clone());
        // Each queue is received from first in turn, so that a busy one does not starve the others.
        for _ in 0..self.queues.len() {
            let (first, left) = (batch.len(), max - (batch.len() - before).min(max));
            let queue = &mut self.queues[self.next];
            if let Some(order) = &order {
                queue.order.finish(order, queue.index as usize);
            }
            queue.receive(batch, left);
            if let Some(order) = &order {
                queue.order.give(order, queue.index as usize, &mut batch[first..]);
            }
            self.next = if self.next + 1 == self.queues.len() { 0 } else { self.next + 1 };
        }
        if batch.len() == before {
            self.idle += 1;
            if self.idle >= IDLE_BEFORE_CHECK {
                self.check_interface()?;
            }
            return Ok(0);
        }
        self.idle = 0;
        if self.has_local_senders {
            self.finish(batch, before);
        }
        for frame in &batch[before..] {
            self.stats.rx_packets += 1;
            self.stats.rx_bytes += frame.len() as u64;
        }
        Ok(batch.len() - before)
    }

    fn send(&mut self, frame: &[u8]) -> Result<Sent, PortError> {
        if let Some(reason) = self.obstacle(frame) {
            return Ok(self.account(frame.len(), Err(reason)));
        }
        let mut done = self.queues[0].push_copy(frame);
        if !done {
            self.flush()?;
            done = self.queues[0].push_copy(frame);
        }
        Ok(self.account(frame.len(), if done { Ok(()) } else { Err(DropReason::QueueFull) }))
    }

    fn send_frame(&mut self, frame: Frame) -> Result<Sent, PortError> {
        if let Some(reason) = self.obstacle(&frame) {
            return Ok(self.account(frame.len(), Err(reason)));
        }
        let len = frame.len();
        let mut result = self.queues[0].push(frame);
        if let Err(frame) = result {
            self.flush()?;
            result = self.queues[0].push(frame);
        }
        Ok(self.account(len, result.map_err(|_| DropReason::QueueFull)))
    }

    fn flush(&mut self) -> Result<(), PortError> {
        if !self.queues[0].has_gathered() && !self.is_down {
            return Ok(());
        }
        match self.queues[0].flush() {
            Ok(Flushed::Down) => {
                self.check_existence()?;
                self.is_down = true;
            }
            Ok(Flushed::Done { dropped, bytes }) => {
                let device = Interface::new(self.control.as_fd(), &self.name);
                self.is_down = self.is_down && !device.has_link().unwrap_or(true);
                if dropped > 0 {
                    let connected = device.has_link().unwrap_or(true);
                    let reason = if connected { DropReason::QueueFull } else { DropReason::LinkDown };
                    self.stats.count_dropped(reason, dropped, bytes);
                    self.stats.tx_packets = self.stats.tx_packets.saturating_sub(dropped);
                    self.stats.tx_bytes = self.stats.tx_bytes.saturating_sub(bytes as u64);
                }
            }
            Err(source) => {
                self.check_existence()?;
                return Err(PortError::System { what: "sending", interface: self.name.clone(), source });
            }
        }
        Ok(())
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.epoll.as_ref().map_or_else(|| self.queues[0].socket.as_raw_fd(), AsRawFd::as_raw_fd))
    }

    fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    fn attachment(&self) -> Option<XdpAttachment> {
        Some(XdpAttachment::new(self))
    }

    fn link(&self) -> Option<Link> {
        Some(Link::new(&self.control, self.index))
    }

    // The kernel does not wake a thread that waits for a socket whose interface disappears.
    fn check(&mut self) -> Result<(), PortError> {
        self.check_interface()
    }

    fn counted(&self) -> PortStats {
        self.stats
    }

    fn stats(&self) -> PortStats {
        let dropped: u64 = self.queues.iter().map(XdpQueue::dropped).sum();
        PortStats { rx_dropped: self.stats.rx_dropped + dropped, ..self.stats }
    }
}
