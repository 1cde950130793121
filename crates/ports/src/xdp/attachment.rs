//! Runs another program on the frames of an AF_XDP port.

use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::sync::{Arc, PoisonError};

use super::program::{Redirect, tagging_program};
use super::{HandOverOrder, XdpPort};
use crate::interface::Interface;
use crate::{KernelProgram, ProgramRejected};

/// A handle to the program of an AF_XDP port in the kernel. The program is detached when the port and all its handles
/// are dropped.
#[derive(Clone)]
pub struct XdpAttachment {
    redirect: Arc<Redirect>,
    interface: String,
    index: u32,
    mtu: usize,
    /// A socket for queries.
    control: Arc<OwnedFd>,
    queues: u32,
    is_native: bool,
    has_local_senders: bool,
}

impl XdpAttachment {
    pub(super) fn new(port: &XdpPort) -> XdpAttachment {
        XdpAttachment {
            redirect: Arc::clone(&port.redirect),
            interface: port.name.clone(),
            index: port.index.cast_unsigned(),
            mtu: port.mtu,
            control: Arc::clone(&port.control),
            queues: port.queues.len() as u32,
            is_native: port.is_native,
            has_local_senders: port.has_local_senders,
        }
    }

    /// Returns the name of the interface.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Returns the index of the interface (ifindex).
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Returns the interface's present MTU in bytes; the one when the port was opened, if the interface is gone.
    pub fn mtu(&self) -> usize {
        Interface::new(self.control.as_fd(), &self.interface).mtu().unwrap_or(self.mtu)
    }

    /// Whether the program runs in the interface's driver, so that it can redirect to other devices at full speed.
    pub fn is_native(&self) -> bool {
        self.is_native
    }

    /// Whether packets may come from a local stack, which leaves checksums to a card.
    pub fn has_local_senders(&self) -> bool {
        self.has_local_senders
    }

    /// Says that all senders finish their frames: checksums are complete, and VLAN tags are in the frame.
    pub fn expect_finished_frames(&mut self) {
        self.has_local_senders = false;
    }

    /// Whether the port's own program puts VLAN tags that were stripped (VLAN offload) back into frames. Programs
    /// loaded by [`load`](Self::load) do so only if `is_gpl`.
    pub fn restores_tags(&self) -> bool {
        self.redirect.restores_tags
    }

    /// Loads a program for the port. One with a GPL-compatible licence may ask the driver for VLAN tags that were
    /// stripped from frames, so if the port [restores them](XdpAttachment::restores_tags), they are put into the frames
    /// first.
    ///
    /// # Errors
    /// [`ProgramRejected`] with the verifier's log.
    pub fn load(&self, program: &[u64], is_gpl: bool) -> Result<KernelProgram, ProgramRejected> {
        let may_ask = is_gpl && self.restores_tags();
        match may_ask.then(|| tagging_program(self.index.cast_signed(), program, 0)).flatten() {
            Some(loaded) => Ok(KernelProgram::new(loaded)),
            None => KernelProgram::load(program),
        }
    }

    /// Returns the descriptor of the map of the port's sockets by queue, for the instructions of programs.
    pub fn sockets(&self) -> RawFd {
        self.redirect.sockets()
    }

    /// Returns the number of receive queues.
    pub fn queues(&self) -> u32 {
        self.queues
    }

    /// Runs the port's own program again, which hands all frames to the port.
    ///
    /// # Errors
    /// The system's.
    pub fn restore(&self) -> io::Result<()> {
        self.redirect.restore()
    }

    /// Whether the interface is there under its name, up, and has a link.
    pub fn has_link(&self) -> bool {
        let interface = Interface::new(self.control.as_fd(), &self.interface);
        let is_same = interface.index().is_ok_and(|index| index.cast_unsigned() == self.index);
        is_same && interface.has_link().unwrap_or(false)
    }

    /// Says in which order the next program hands frames over. It is called before that program runs, and sets the
    /// words: numbers go on, so that late frames of the present program mean nothing to the next one.
    pub fn set_order(&self, order: HandOverOrder) {
        let mut present = self.redirect.order.write().unwrap_or_else(PoisonError::into_inner);
        order.follow(present.as_deref());
        *present = Some(Arc::new(order));
    }

    /// Whether frames were handed over that the port's user is not known to be done with. Then the port is to be asked
    /// for frames every few milliseconds: one that found the ring full never comes.
    pub fn is_outstanding(&self) -> bool {
        let order = self.redirect.order.read().unwrap_or_else(PoisonError::into_inner);
        order.as_ref().is_some_and(|order| order.is_outstanding())
    }

    /// Runs a program on all frames from now on. It hands frames to the port by a redirect to
    /// [`sockets`](XdpAttachment::sockets).
    ///
    /// # Errors
    /// The system's, for example if the MTU is too large for the program.
    pub fn run(&self, program: &KernelProgram) -> io::Result<()> {
        self.redirect.replace(program.descriptor())
    }
}
