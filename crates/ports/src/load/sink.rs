//! Drops and counts frames.
//!
//! The counting program runs at one of two places of a veth, so that it costs the forwarder as little as possible:
//! - where packets enter the stack, for frames that arrive as the stack's own structure. An XDP program would have to
//!   copy most of them first.
//! - in the driver (XDP), for frames that a program in the kernel redirects: they have no such structure, and creating
//!   it takes longer than forwarding the frame.

use std::os::fd::{AsFd, OwnedFd};

use super::xdp_redirect::{DROP as XDP_DROP, attach, failed, index_of};
use crate::PortError;
use crate::bpf::{self, MapKind, StackSide, code, instruction, look_up};

/// `bpf_xdp_get_buff_len`
const XDP_FRAME_LENGTH: i32 = 188;
/// Verdict at the stack.
const TCX_DROP: i32 = 2;

/// Totals since a sink was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// Frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// An interface whose frames are counted and dropped, as long as this lives. Frames that receive offload has joined
/// count once, so leave it off.
pub struct Sink {
    counts: OwnedFd,
    /// Kept open: the attachment lasts as long as the descriptor.
    _link: OwnedFd,
}

impl Sink {
    /// Opens an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// Returns an error if there is no such interface, this process may not load BPF programs, or the kernel is older
    /// than 6.6.
    pub fn open(interface: &str) -> Result<Sink, PortError> {
        let index = index_of(interface)?;
        let counts = counts(interface)?;
        // The length is the context's first word.
        let length = [instruction(code::LOAD_U32, 0, 6, 0, 0)];
        let link = bpf::attach_at_stack(&program(&counts, &length, TCX_DROP), index, StackSide::Ingress);
        Ok(Sink { counts, _link: link.map_err(failed("attaching a counting program", interface))? })
    }

    /// Like [`open`](Self::open), but counts in the interface's driver. A veth then accepts frames that programs
    /// redirect to its other end.
    ///
    /// # Errors
    /// Returns an error if there is no such interface, its driver does not support XDP, another program is attached, or
    /// this process may not load BPF programs.
    pub fn open_in_driver(interface: &str) -> Result<Sink, PortError> {
        let counts = counts(interface)?;
        let length = [instruction(code::MOVE_REGISTER, 1, 6, 0, 0), instruction(code::CALL, 0, 0, 0, XDP_FRAME_LENGTH)];
        let program = bpf::load_xdp(&program(&counts, &length, XDP_DROP), bpf::HAS_FRAGS)
            .map_err(failed("loading a counting program", interface))?;
        Ok(Sink { counts, _link: attach(&program, interface)? })
    }

    /// Returns the totals so far, over all processors.
    ///
    /// # Errors
    /// Returns an error if the counts cannot be read.
    pub fn arrived(&self) -> Result<Arrived, PortError> {
        let sums = bpf::sum_per_cpu(self.counts.as_fd(), 0, 2)
            .map_err(|source| PortError::system("reading counters", "sink", "cap_bpf", source))?;
        Ok(Arrived { frames: sums[0], bytes: sums[1] })
    }
}

fn counts(interface: &str) -> Result<OwnedFd, PortError> {
    bpf::create_map(MapKind::PerCpuArray, 16, 1).map_err(failed("creating a BPF map", interface))
}

/// Generates the program. `length` loads the frame's length into r0; the context is in r6.
fn program(counts: &OwnedFd, length: &[u64], drop: i32) -> Vec<u64> {
    let key = [
        instruction(code::MOVE_REGISTER, 6, 1, 0, 0),
        instruction(code::MOVE, 1, 0, 0, 0),
        instruction(code::STORE_U32, 10, 1, -4, 0),
    ];
    let lookup = [&key[..], &look_up(counts.as_fd(), -4)].concat();
    let count = [
        instruction(code::MOVE_REGISTER, 7, 0, 0, 0),
        instruction(code::LOAD_U64, 1, 7, 0, 0),
        instruction(code::ADD, 1, 0, 0, 1),
        instruction(code::STORE_U64, 7, 1, 0, 0),
    ];
    let count_bytes = [
        instruction(code::LOAD_U64, 1, 7, 8, 0),
        instruction(code::ADD_REGISTER, 1, 0, 0, 0),
        instruction(code::STORE_U64, 7, 1, 8, 0),
    ];
    let counted = [&count[..], length, &count_bytes].concat();
    let none = [instruction(code::JUMP_EQUAL, 0, 0, counted.len() as i16, 0)];
    let end = [instruction(code::MOVE, 0, 0, 0, drop), instruction(code::EXIT, 0, 0, 0, 0)];
    [&lookup[..], &none, &counted, &end].concat()
}
