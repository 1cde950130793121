//! Fanout: one interface for several workers. Each has its own sockets, and the kernel distributes frames by flow.
//!
//! The kernel hashes addresses and ports symmetrically (`PACKET_FANOUT_HASH`, packet(7)), so both directions of a
//! connection reach the same worker, on every interface whose workers were opened in the same order. Later fragments
//! have no ports and are hashed by their addresses alone.

use std::ffi::c_int;
use std::io;
use std::os::fd::OwnedFd;

use super::AfPacketPort;
use crate::PortError;
use crate::socket::{get_option, set_option};

/// Flag: members do not receive frames that other members send (Linux 4.20; older kernels reject unknown flags).
const IGNORE_OUTGOING: c_int = 0x4000;

impl AfPacketPort {
    /// Opens an interface once for each of several workers, in order. Each frame reaches one of them.
    ///
    /// # Errors
    /// As [`AfPacketPort::open`]; also returns an error if the kernel does not support fanout.
    pub fn open_fanout(name: &str, workers: usize) -> Result<Vec<AfPacketPort>, PortError> {
        if workers == 1 {
            return Ok(vec![Self::open(name)?]);
        }
        let mut ports: Vec<AfPacketPort> = (0..workers).map(|_| Self::open(name)).collect::<Result<_, _>>()?;
        let failed = |source| PortError::system("distributing frames to several workers", name, "cap_net_raw", source);
        let mut group = None;
        for port in &ports {
            group = Some(join(&port.receiver, group).map_err(failed)?);
        }
        // Until they had joined, the sockets received all frames.
        for port in &mut ports {
            while let Some(slot) = port.ring.take() {
                port.ring.release(slot);
            }
        }
        Ok(ports)
    }
}

/// Adds a socket to a group, or creates a new group. Returns the group's number.
fn join(socket: &OwnedFd, group: Option<c_int>) -> io::Result<c_int> {
    let set = |number: c_int, flags: c_int| {
        let value = number | ((libc::PACKET_FANOUT_HASH as c_int | flags) << 16);
        set_option(socket, libc::SOL_PACKET, libc::PACKET_FANOUT, &value)
    };
    match group {
        Some(number) => set(number, IGNORE_OUTGOING)?,
        None => set(0, IGNORE_OUTGOING | libc::PACKET_FANOUT_FLAG_UNIQUEID as c_int)?,
    }
    Ok(get_option(socket, libc::SOL_PACKET, libc::PACKET_FANOUT, 0 as c_int)? & 0xffff)
}
