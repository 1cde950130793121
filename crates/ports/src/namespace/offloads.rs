//! Switches off the offloads that an interface provides to the stack.
//!
//! The AF_PACKET driver completes frames of local stacks itself, so it does not need this. It is for measuring the
//! difference, and for other programs on the same links that cannot handle such frames.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;

use super::{Namespace, NamespaceError};
use crate::interface::Interface;

/// An offload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Checksums of sent frames are computed by the card.
    Checksum,
    /// TCP segmentation is done by the card.
    TcpSegmentation,
    /// Over-long frames are segmented as late as possible.
    Segmentation,
    /// Received frames are merged into longer ones before the stack sees them.
    Receive,
}

impl Offload {
    /// All of them, in an order in which they can be turned off: segmentation depends on checksums.
    const ALL: [Offload; 4] = [Offload::TcpSegmentation, Offload::Segmentation, Offload::Receive, Offload::Checksum];

    /// Returns the ethtool commands that read and set it.
    fn commands(self) -> (u32, u32) {
        match self {
            Offload::Checksum => (0x16, 0x17),
            Offload::TcpSegmentation => (0x1e, 0x1f),
            Offload::Segmentation => (0x23, 0x24),
            Offload::Receive => (0x2b, 0x2c),
        }
    }
}

/// Offloads that are off; dropping this turns them on again.
pub struct Offloads {
    socket: UdpSocket,
    interface: String,
    /// Offloads that were on, in the order in which they were turned off.
    were_on: Vec<Offload>,
}

impl Offloads {
    /// Returns the offloads that were on before.
    pub fn were_on(&self) -> &[Offload] {
        &self.were_on
    }
}

impl Namespace {
    /// Turns an offload of an interface on, for as long as the interface lives. [`Offload::Receive`] allows a veth's
    /// other end to send to it without socket buffers.
    ///
    /// # Errors
    /// Returns an error if there is no such interface or it does not have the offload.
    pub fn turn_on(&self, interface: &str, offload: Offload) -> Result<(), NamespaceError> {
        let work = || -> io::Result<()> {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            Interface::new(socket.as_fd(), interface).ethtool(offload.commands().1, 1).map(drop)
        };
        self.enter(work)?.map_err(self.failed(format!("enabling an offload of {interface}")))
    }

    /// Lets the stack behind an interface finish its frames itself, or leave that to the card again, for as long as the
    /// interface lives. A finished frame has complete checksums and its VLAN tags, and fits the MTU.
    ///
    /// # Errors
    /// Returns an error if there is no such interface or it does not allow it.
    pub fn finish_sent_frames(&self, interface: &str, is_finished: bool) -> Result<(), NamespaceError> {
        // ETHTOOL_GFLAGS, ETHTOOL_SFLAGS and ETH_FLAG_TXVLAN.
        const GET_FLAGS: u32 = 0x25;
        const SET_FLAGS: u32 = 0x26;
        const INSERT_TAGS: u32 = 1 << 7;
        let work = || -> io::Result<()> {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            let device = Interface::new(socket.as_fd(), interface);
            for offload in [Offload::Checksum, Offload::TcpSegmentation, Offload::Segmentation] {
                match device.ethtool(offload.commands().1, u32::from(!is_finished)) {
                    // While the other end of a veth has an XDP program, this end has no segmentation.
                    Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
                    result => _ = result?,
                }
            }
            let flags = device.ethtool(GET_FLAGS, 0)?;
            let flags = if is_finished { flags & !INSERT_TAGS } else { flags | INSERT_TAGS };
            device.ethtool(SET_FLAGS, flags).map(drop)
        };
        self.enter(work)?.map_err(self.failed(format!("changing the offloads of {interface}")))
    }

    /// Turns all offloads of an interface off until the returned value is dropped.
    ///
    /// # Errors
    /// Returns an error if there is no such interface or it does not allow it.
    pub fn turn_off_offloads(&self, interface: &str) -> Result<Offloads, NamespaceError> {
        let work = || -> io::Result<Offloads> {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            let mut off = Offloads { socket, interface: interface.to_owned(), were_on: Vec::new() };
            for offload in Offload::ALL {
                let (get, set) = offload.commands();
                let device = Interface::new(off.socket.as_fd(), interface);
                match device.ethtool(get, 0) {
                    Ok(0) => {}
                    Ok(_) => {
                        device.ethtool(set, 0)?;
                        off.were_on.push(offload);
                    }
                    // An offload that the device does not have counts as off.
                    Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(off)
        };
        self.enter(work)?.map_err(self.failed(format!("disabling the offloads of {interface}")))
    }
}

impl Drop for Offloads {
    fn drop(&mut self) {
        let device = Interface::new(self.socket.as_fd(), &self.interface);
        for offload in self.were_on.iter().rev() {
            // If the interface is gone, there is nothing to restore.
            let _ = device.ethtool(offload.commands().1, 1);
        }
    }
}
