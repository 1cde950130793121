//! Implements the TAP driver: a virtual interface whose other end is the switch.
//!
//! The device is created without offloads, so the kernel finishes every frame before the switch reads it, and each read
//! or write is one frame, as on a cable. It disappears when the port is dropped or the process ends, unless it was
//! created as persistent by another program.

use std::ffi::{c_int, c_short};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::interface::{self, Interface};
use crate::{DropReason, Port, PortError, PortStats, Received, Sent};

const CAPABILITY: &str = "cap_net_admin";
/// Upper bound of the length of a TAP device's frames.
const MAX_FRAME: usize = 1 << 16;
/// Size of an Ethernet header, the minimum length that the kernel accepts.
const MIN_FRAME: usize = 14;

/// A TAP device. It belongs to the network namespace of the thread that opened it; afterwards any thread may use it.
pub struct TapPort {
    name: String,
    file: File,
    buffer: Box<[u8]>,
    stats: PortStats,
}

impl TapPort {
    /// Creates a TAP device called `name`, or attaches to an existing persistent one, and sets it up.
    ///
    /// # Errors
    /// Returns an error if the kernel has no TUN/TAP driver, the name belongs to another interface, or this process may
    /// not create devices.
    pub fn open(name: &str) -> Result<Self, PortError> {
        Self::open_with(name, |_| Ok(()))
    }

    /// Does the same, and lets a function configure the device before it is up.
    pub(crate) fn open_with(
        name: &str,
        configure: impl FnOnce(&Interface<'_>) -> io::Result<()>,
    ) -> Result<Self, PortError> {
        let failed = |what| move |source| PortError::system(what, name, CAPABILITY, source);
        let opened = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun");
        let file = opened.map_err(|source| {
            let hint = match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    "run as root, or make it accessible to all users with `sudo chmod 666 /dev/net/tun`"
                }
                _ => "load the driver with `sudo modprobe tun`",
            };
            PortError::NoTunDriver { interface: name.to_owned(), hint, source }
        })?;
        attach(&file, name).map_err(failed("creating a TAP device"))?;
        let socket = control_socket().map_err(failed("opening a socket"))?;
        let device = Interface::new(socket.as_fd(), name);
        configure(&device).map_err(failed("configuring the TAP device"))?;
        device.bring_up().map_err(failed("bringing up the TAP device"))?;
        let buffer = vec![0; MAX_FRAME].into_boxed_slice();
        Ok(TapPort { name: name.to_owned(), file, buffer, stats: PortStats::default() })
    }

    fn failed(&self, what: &'static str, source: io::Error) -> PortError {
        let interface = self.name.clone();
        match source.raw_os_error() {
            // The device was removed; its file descriptor survives it.
            Some(libc::EBADFD | libc::ENODEV | libc::ENXIO) => PortError::Vanished { interface },
            _ => PortError::System { what, interface, source },
        }
    }
}

fn attach(file: &File, name: &str) -> io::Result<()> {
    let mut request = libc::ifreq { ifr_name: interface::name_field(name)?, ..interface::zeroed_ifreq() };
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as c_short;
    // SAFETY: TUNSETIFF takes a pointer to an `ifreq`, and `request` is one that lives through the call.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // The last user of a persistent device may have left offloads enabled.
    let none: c_int = 0;
    // SAFETY: TUNSETOFFLOAD takes its argument by value.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, none) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(crate) fn control_socket() -> io::Result<OwnedFd> {
    // SAFETY: no pointers are involved.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl Port for TapPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn receive(&mut self, batch: &mut Vec<Received>, max: usize) -> Result<usize, PortError> {
        let mut count = 0;
        while count < max {
            match self.file.read(&mut self.buffer) {
                Ok(len) => {
                    self.stats.rx_packets += 1;
                    self.stats.rx_bytes += len as u64;
                    batch.push(Received { data: self.buffer[..len].to_vec(), time_ns: None });
                    count += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed("receiving", error)),
            }
        }
        Ok(count)
    }

    fn send(&mut self, frame: &[u8]) -> Result<Sent, PortError> {
        let reason = if !(MIN_FRAME..=MAX_FRAME).contains(&frame.len()) {
            DropReason::BadLength
        } else {
            match self.file.write(frame) {
                // A device accepts a frame whole or not at all.
                Ok(len) => {
                    debug_assert_eq!(len, frame.len());
                    self.stats.tx_packets += 1;
                    self.stats.tx_bytes += frame.len() as u64;
                    return Ok(Sent::Sent);
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR) => DropReason::QueueFull,
                    Some(libc::EINVAL | libc::EMSGSIZE) => DropReason::BadLength,
                    // The kernel's error while the device is down.
                    Some(libc::EIO) => DropReason::LinkDown,
                    _ => return Err(self.failed("sending", error)),
                },
            }
        };
        self.stats.count_dropped(reason, 1, frame.len());
        Ok(Sent::Dropped(reason))
    }

    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.file.as_raw_fd())
    }

    fn stats(&self) -> PortStats {
        self.stats
    }
}
