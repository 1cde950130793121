//! One interface for several workers: each has sockets of its own, and the kernel deals what arrives out by flow.
//!
//! The kernel hashes addresses and ports (`PACKET_FANOUT_HASH`, packet(7)) without regard to direction, so that both
//! directions of a connection come to one worker, on every interface whose workers were opened in the same order.
//! Fragments behind the first have no ports and are hashed by their addresses alone.

use std::ffi::c_int;
use std::io;
use std::os::fd::OwnedFd;

use super::AfPacketPort;
use crate::PortError;
use crate::socket::{get_option, set_option};

/// What a member of the group sends is not received by the others (Linux 4.20; older ones ignore what they do not know
/// by refusing it).
const IGNORE_OUTGOING: c_int = 0x4000;

impl AfPacketPort {
    /// Opens an interface once for each of several workers, in their order. Each frame that arrives comes to one.
    ///
    /// # Errors
    /// As [`AfPacketPort::open`], and if the kernel cannot deal frames out.
    pub fn open_fanout(name: &str, workers: usize) -> Result<Vec<AfPacketPort>, PortError> {
        if workers == 1 {
            return Ok(vec![Self::open(name)?]);
        }
        let mut ports: Vec<AfPacketPort> = (0..workers).map(|_| Self::open(name)).collect::<Result<_, _>>()?;
        let failed = |source| PortError::system("dealing frames out to several workers", name, "cap_net_raw", source);
        let mut group = None;
        for port in &ports {
            group = Some(join(&port.receiver, group).map_err(failed)?);
        }
        // Until they had joined, sockets saw everything.
        for port in &mut ports {
            while let Some(slot) = port.ring.take() {
                port.ring.release(slot);
            }
        }
        Ok(ports)
    }
}

/// Makes a socket one of a group, or the first of a new one. Returns the group's number.
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
