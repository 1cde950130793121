//! Attaches the XDP program that redirects an interface's frames to sockets, and its attachment.
//!
//! ```text
//! r2 = context->rx_queue_index
//! r1 = sockets                       (two instructions)
//! r3 = XDP_PASS                      verdict if the queue has no socket
//! r0 = bpf_redirect_map(r1, r2, r3)
//! exit
//! ```
//!
//! In the driver, it first puts a VLAN tag that is kept beside the frame back into it, where the driver reports tags
//! (Linux 6.8 on a veth):
//!
//! ```text
//! if bpf_xdp_metadata_rx_vlan_tag(context, &protocol, &tag) == 0:
//!     make room for four bytes in front; move the two addresses there; write protocol and tag after them
//! ```

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, RwLock};

use super::NoXdp;
use super::order::HandOverOrder;
use crate::bpf::{self, Attach, MapKind, code, instruction, load_map};
use crate::btf::KernelTypes;

/// `bpf_redirect_map`
const REDIRECT_MAP: i32 = 51;
/// `XDP_PASS`
const PASS: i32 = 2;
/// Offset of the receive queue in `struct xdp_md`.
const RX_QUEUE_INDEX: i16 = 16;

/// An attached program. The interface returns to its previous state when this is dropped, or when the process ends in
/// any way: the kernel detaches a program without open descriptors.
pub(super) struct Redirect {
    pub(super) attach: Attach,
    /// Whether VLAN tags beside frames are put into them.
    pub(super) restores_tags: bool,
    sockets: OwnedFd,
    /// The program that hands all frames to the sockets.
    program: OwnedFd,
    /// Where the port says how many handed-over frames it is done with.
    pub(super) order: RwLock<Option<Arc<HandOverOrder>>>,
    /// The attachment lasts as long as the descriptor is open.
    link: OwnedFd,
}

impl Redirect {
    /// Attaches to an interface with `queues` receive queues: in its driver if that supports XDP and `generic` is
    /// false, else in front of its stack.
    pub(super) fn attach(index: c_int, queues: u32, generic: bool) -> Result<Redirect, NoXdp> {
        let sockets = bpf::create_map(MapKind::Sockets, 4, queues).map_err(NoXdp::at("creating a map of sockets"))?;
        let program = program(&sockets);
        let load = |flags| bpf::load_xdp(&program, flags);
        // At large MTUs, the kernel rejects a program without the multi-buffer flag; before 5.18 it does not know the
        // flag.
        let loaded = match load(bpf::HAS_FRAGS) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => load(0),
            result => result,
        };
        let loaded = loaded.map_err(NoXdp::at("loading the XDP program"))?;
        let attached = |loaded: &OwnedFd, attach, restores_tags| {
            let link = again_while_busy(|| bpf::attach_xdp(loaded.as_fd(), index, attach))?;
            Ok::<_, io::Error>((attach, restores_tags, link))
        };
        let tagging = if generic { None } else { tagging_program(index, &program, bpf::HAS_FRAGS) };
        let is_final = |result: &io::Result<_>| match result {
            Ok(_) => true,
            Err(error) => matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST)),
        };
        // From the best mode to the least; an obstacle to one mode is an obstacle to all.
        let mut result = Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        if let Some(tagging) = &tagging {
            result = attached(tagging, Attach::Native, true);
        }
        if !is_final(&result) && !generic {
            result = attached(&loaded, Attach::Native, false);
        }
        if !is_final(&result) {
            result = attached(&loaded, Attach::Generic, false);
        }
        match result {
            Ok((attach, restores_tags, link)) => {
                let program = if restores_tags { tagging.unwrap_or(loaded) } else { loaded };
                Ok(Redirect { attach, restores_tags, sockets, program, order: RwLock::new(None), link })
            }
            Err(error) if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST)) => Err(NoXdp::Occupied),
            Err(error) => Err(NoXdp::at("attaching the XDP program")(error)),
        }
    }

    /// Redirects frames received on `queue` to a bound socket from now on.
    pub(super) fn insert(&self, queue: u32, socket: &OwnedFd) -> Result<(), NoXdp> {
        let value = socket.as_raw_fd() as u32;
        bpf::update_map(self.sockets.as_fd(), queue, value).map_err(NoXdp::at("adding a socket to the map"))
    }
}

impl Redirect {
    /// Returns the descriptor of the map of sockets.
    pub(super) fn sockets(&self) -> RawFd {
        self.sockets.as_raw_fd()
    }

    /// Returns to the program that hands all frames to the sockets.
    pub(super) fn restore(&self) -> io::Result<()> {
        self.replace(self.program.as_fd())
    }

    /// Replaces the program. Every packet runs the old program or the new one.
    pub(super) fn replace(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        bpf::update_link(self.link.as_fd(), program)
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

/// Loads the program that handles a tag beside the frame and continues with `rest`, which gets the context in r1.
/// Returns `None` where the kernel or the driver does not report tags.
pub(super) fn tagging_program(index: c_int, rest: &[u64], flags: u32) -> Option<OwnedFd> {
    /// Source register 2 of a call marks the number as that of a kernel function.
    const KERNEL_FUNCTION: u8 = 2;
    const ADJUST_HEAD: i32 = 44;
    let ask = KernelTypes::read()?.function("bpf_xdp_metadata_rx_vlan_tag")?;
    let mut program = vec![
        instruction(code::MOVE_REGISTER, 6, 1, 0, 0),
        instruction(code::STORE_IMMEDIATE_U64, 10, 0, -8, 0),
        instruction(code::STORE_IMMEDIATE_U64, 10, 0, -16, 0),
        instruction(code::MOVE_REGISTER, 2, 10, 0, 0),
        instruction(code::ADD, 2, 0, 0, -8),
        instruction(code::MOVE_REGISTER, 3, 10, 0, 0),
        instruction(code::ADD, 3, 0, 0, -16),
        instruction(code::CALL, 0, KERNEL_FUNCTION, 0, ask),
        instruction(code::JUMP_NOT_EQUAL, 0, 0, 20, 0),
        instruction(code::MOVE_REGISTER, 1, 6, 0, 0),
        instruction(code::MOVE, 2, 0, 0, -4),
        instruction(code::CALL, 0, 0, 0, ADJUST_HEAD),
        instruction(code::JUMP_NOT_EQUAL, 0, 0, 16, 0),
        // if data + 16 > data_end: goto rest
        instruction(code::LOAD_U32, 2, 6, 0, 0),
        instruction(code::LOAD_U32, 3, 6, 4, 0),
        instruction(code::MOVE_REGISTER, 4, 2, 0, 0),
        instruction(code::ADD, 4, 0, 0, 16),
        instruction(code::JUMP_GREATER_REGISTER, 4, 3, 11, 0),
        instruction(code::LOAD_U32, 1, 2, 4, 0),
        instruction(code::STORE_U32, 2, 1, 0, 0),
        instruction(code::LOAD_U32, 1, 2, 8, 0),
        instruction(code::STORE_U32, 2, 1, 4, 0),
        instruction(code::LOAD_U32, 1, 2, 12, 0),
        instruction(code::STORE_U32, 2, 1, 8, 0),
        // The protocol is in network byte order already.
        instruction(code::LOAD_U16, 1, 10, -8, 0),
        instruction(code::STORE_U16, 2, 1, 12, 0),
        instruction(code::LOAD_U16, 1, 10, -16, 0),
        instruction(code::TO_BIG_ENDIAN, 1, 0, 0, 16),
        instruction(code::STORE_U16, 2, 1, 14, 0),
        instruction(code::MOVE_REGISTER, 1, 6, 0, 0),
    ];
    program.extend(rest);
    bpf::load_xdp_for(index, &program, flags).ok()
}

/// Retries while the result is `EBUSY`, for up to half a second: the kernel releases the resources of an ended program
/// asynchronously.
pub(crate) fn again_while_busy<R>(mut attempt: impl FnMut() -> io::Result<R>) -> io::Result<R> {
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
