//! Implements the AF_PACKET driver: any Ethernet interface, without taking it away from the kernel.
//!
//! ```text
//! interface ─> ring of slots shared with the kernel (TPACKET_V2) ─> finish checksum, cut, put VLAN tag back ─> switch
//!           └> socket queue, for frames longer than a slot ───────┘
//! switch ─> batch ─> sendmmsg, past the queueing discipline ─> interface
//! ```
//!
//! This uses version 2 of the ring rather than 3, because 3 hands over blocks of frames and, at low rates, only after a
//! timeout of milliseconds. Slots hold one frame of the interface's MTU. Frames of a local stack can be far longer (it
//! relies on the card for segmentation); they arrive through the socket's queue and are segmented here.
//!
//! Frames that this machine sends through the interface are not received: the port sees incoming frames, as at the end
//! of a cable. The kernel's own stack sees incoming frames as well; do not assign an address to the interface if that
//! disturbs.

mod fanout;
mod offload;
mod open;
mod ring;
mod transmit;

use std::cell::Cell;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use crate::interface;
use crate::{DropReason, Link, Port, PortError, PortStats, Received, Sent};
use offload::VnetHeader;
use ring::{Ring, RingSlot};
use transmit::Transmit;

/// Number of receptions without a frame after which the socket is checked for events of the interface. A port that
/// waits in poll(2) reaches it at once, because poll reports the error until it is read.
const IDLE_BEFORE_CHECK: u32 = 64;

/// Maximum size in bytes of an unsegmented frame of a local stack, with its headers.
const OVERSIZE: usize = 1 << 17;

/// A network interface through packet sockets. Its sockets belong to the network namespace of the thread that opened
/// it; afterwards any thread may use it.
pub struct AfPacketPort {
    name: String,
    index: c_int,
    mtu: usize,
    link: Link,
    receiver: OwnedFd,
    ring: Ring,
    transmit: Transmit,
    oversize: Box<[u8]>,
    idle: u32,
    stats: PortStats,
    note: Option<String>,
    /// Frames dropped by the kernel, which resets its counter on each query.
    kernel_dropped: Cell<u64>,
}

impl AfPacketPort {
    /// Returns the interface's MTU when it was opened, in bytes.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// Attaches a note for the user to the port.
    pub(crate) fn with_note(mut self, note: String) -> Self {
        self.note = Some(note);
        self
    }

    /// Reads and clears the receiving socket's error, and distinguishes a removed interface from one that is merely
    /// down.
    fn check_interface(&mut self) -> Result<(), PortError> {
        self.idle = 0;
        if crate::socket::take_error(&self.receiver) == 0 || interface::exists(self.receiver.as_fd(), self.index) {
            return Ok(());
        }
        Err(PortError::Vanished { interface: self.name.clone() })
    }

    /// Fetches a frame that was too long for its slot.
    fn fetch_oversize(&mut self) -> Option<usize> {
        let buffer = &mut self.oversize;
        // SAFETY: the buffer is live and exactly as long as given; the kernel writes only bytes into it.
        let len = unsafe {
            let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
            libc::recv(self.receiver.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags)
        };
        usize::try_from(len).ok().filter(|len| *len <= buffer.len())
    }

    fn deliver(&mut self, batch: &mut Vec<Received>, bytes: &[u8], tag: Option<offload::Tag>, time_ns: u64) {
        let Some((header, frame)) = VnetHeader::split(bytes) else {
            self.stats.rx_unusable += 1;
            return;
        };
        let before = batch.len();
        let done = offload::finish(header, frame, tag, &mut self.stats, |data| {
            batch.push(Received { data, time_ns: Some(time_ns) });
        });
        if !done {
            self.stats.rx_unusable += 1;
        }
        for received in &batch[before..] {
            self.stats.rx_packets += 1;
            self.stats.rx_bytes += received.data.len() as u64;
        }
    }
}

impl Port for AfPacketPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn receive(&mut self, batch: &mut Vec<Received>, max: usize) -> Result<usize, PortError> {
        let before = batch.len();
        while batch.len() - before < max {
            let Some(slot) = self.ring.take() else { break };
            if slot.outgoing {
                self.ring.release(slot);
                continue;
            }
            self.take_slot(batch, slot);
        }
        let count = batch.len() - before;
        if count > 0 {
            self.idle = 0;
            return Ok(count);
        }
        self.idle += 1;
        if self.idle >= IDLE_BEFORE_CHECK {
            self.check_interface()?;
        }
        Ok(0)
    }

    fn send(&mut self, frame: &[u8]) -> Result<Sent, PortError> {
        if !transmit::is_sendable(frame) {
            self.stats.count_dropped(DropReason::BadLength, 1, frame.len());
            return Ok(Sent::Dropped(DropReason::BadLength));
        }
        if self.transmit.is_full(frame.len()) {
            self.flush()?;
        }
        self.transmit.push(frame);
        Ok(Sent::Sent)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        let failed = self.transmit.flush(&mut self.stats);
        let Err(source) = failed else { return Ok(()) };
        let gone = matches!(source.raw_os_error(), Some(libc::ENXIO | libc::ENODEV));
        if gone || !interface::exists(self.receiver.as_fd(), self.index) {
            return Err(PortError::Vanished { interface: self.name.clone() });
        }
        Err(PortError::System { what: "sending", interface: self.name.clone(), source })
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.receiver.as_raw_fd())
    }

    fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    fn check(&mut self) -> Result<(), PortError> {
        self.check_interface()
    }

    fn link(&self) -> Option<Link> {
        Some(self.link.clone())
    }

    fn counted(&self) -> PortStats {
        self.stats
    }

    fn stats(&self) -> PortStats {
        self.kernel_dropped.set(self.kernel_dropped.get() + open::take_dropped(&self.receiver));
        PortStats { rx_dropped: self.stats.rx_dropped + self.kernel_dropped.get(), ..self.stats }
    }
}

impl AfPacketPort {
    fn take_slot(&mut self, batch: &mut Vec<Received>, slot: RingSlot) {
        if slot.is_whole() {
            self.deliver(batch, slot.bytes(), slot.tag, slot.time_ns);
        } else if slot.is_queued {
            match self.fetch_oversize() {
                Some(len) => {
                    let buffer = std::mem::take(&mut self.oversize);
                    self.deliver(batch, &buffer[..len], slot.tag, slot.time_ns);
                    self.oversize = buffer;
                }
                None => self.stats.rx_unusable += 1,
            }
        } else {
            // The socket's queue was full.
            self.stats.rx_dropped += 1;
        }
        self.ring.release(slot);
    }

    fn from_parts(
        name: &str,
        (index, link): (c_int, Link),
        mtu: usize,
        receiver: OwnedFd,
        ring: Ring,
        transmit: Transmit,
    ) -> Self {
        AfPacketPort {
            name: name.to_owned(),
            index,
            mtu,
            link,
            receiver,
            ring,
            transmit,
            oversize: vec![0; OVERSIZE].into_boxed_slice(),
            idle: 0,
            stats: PortStats::default(),
            note: None,
            kernel_dropped: Cell::new(0),
        }
    }
}

impl Drop for AfPacketPort {
    fn drop(&mut self) {
        // Accepted frames should be sent; a failure can no longer be reported.
        let _: io::Result<()> = self.transmit.flush(&mut self.stats);
    }
}
