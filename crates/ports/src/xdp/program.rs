//! The program that hands an interface's frames over, and its attachment.
//!
//! ```text
//! r2 = context->rx_queue_index
//! r1 = sockets                       (two instructions)
//! r3 = XDP_PASS                      what to answer if the queue has no socket
//! r0 = bpf_redirect_map(r1, r2, r3)
//! exit
//! ```

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::NoXdp;
use crate::bpf::{self, Attach, MapKind, code, instruction, load_map};

/// `bpf_redirect_map`
const REDIRECT_MAP: i32 = 51;
/// `XDP_PASS`
const PASS: i32 = 2;
/// Where `struct xdp_md` has the receive queue.
const RX_QUEUE_INDEX: i16 = 16;

/// An attached program. The interface is as it was when this is dropped, or when the process ends in whatever way: the
/// kernel detaches what no descriptor holds any more.
pub(super) struct Redirect {
    pub(super) attach: Attach,
    sockets: OwnedFd,
    /// Held open: what it stands for lasts as long as it does.
    _link: OwnedFd,
}

impl Redirect {
    /// Attaches to an interface with `queues` receive queues, in its driver if that can and not `generic` is asked for,
    /// else before its stack.
    pub(super) fn attach(index: c_int, queues: u32, generic: bool) -> Result<Redirect, NoXdp> {
        let sockets = bpf::create_map(MapKind::Sockets, 4, queues).map_err(NoXdp::at("making a map of sockets"))?;
        let program = program(&sockets);
        let load = |flags| bpf::load_xdp(&program, flags);
        // A program that does not promise to cope with several buffers is refused at large MTUs; a kernel before 5.18
        // does not know the promise.
        let loaded = match load(bpf::HAS_FRAGS) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => load(0),
            result => result,
        };
        let loaded = loaded.map_err(NoXdp::at("loading the XDP program"))?;
        let attached = |attach| {
            let link = again_while_busy(|| bpf::attach_xdp(loaded.as_fd(), index, attach))?;
            Ok::<_, io::Error>((attach, link))
        };
        let first = if generic { attached(Attach::Generic) } else { attached(Attach::Native) };
        let result = match first {
            Err(error) if error.raw_os_error() != Some(libc::EBUSY) => attached(Attach::Generic),
            result => result,
        };
        match result {
            Ok((attach, link)) => Ok(Redirect { attach, sockets, _link: link }),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST)) => Err(NoXdp::Occupied),
            Err(error) => Err(NoXdp::at("attaching the XDP program")(error)),
        }
    }

    /// Sends what comes in on `queue` to a bound socket from now on.
    pub(super) fn insert(&self, queue: u32, socket: &OwnedFd) -> Result<(), NoXdp> {
        use std::os::fd::AsRawFd;
        let value = socket.as_raw_fd() as u32;
        bpf::update_map(self.sockets.as_fd(), queue, value).map_err(NoXdp::at("entering a socket in the map"))
    }
}

fn program(sockets: &OwnedFd) -> Vec<u64> {
    let [load_low, load_high] = load_map(1, sockets.as_fd());
    vec![
        instruction(code::LOAD_U32, 2, 1, RX_QUEUE_INDEX, 0),
        load_low,
        load_high,
        instruction(code::MOVE, 3, 0, 0, PASS),
        instruction(code::CALL, 0, 0, 0, REDIRECT_MAP),
        instruction(code::EXIT, 0, 0, 0, 0),
    ]
}

/// Tries until the answer is another than `EBUSY`, for up to half a second: the kernel takes what an ended program left
/// behind apart in its own time.
pub(super) fn again_while_busy<R>(mut attempt: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    const ATTEMPTS: u32 = 50;
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            result => return result,
        }
    }
    attempt()
}
