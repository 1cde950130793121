//! Drops and counts frames.
//!
//! The counting program runs where packets enter the stack, and not earlier (XDP), because most frames on a veth arrive
//! as the stack's own structure: an XDP program would have to copy each of them first, at the forwarder's cost.

use std::os::fd::{AsFd, OwnedFd};

use crate::PortError;
use crate::bpf::{self, MapKind, StackSide, code, instruction, load_map};
use crate::interface::Interface;

const MAP_LOOKUP_ELEMENT: i32 = 1;
/// The verdict `TCX_DROP`.
const DROP: i32 = 2;

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
        let failed = |what| move |source| PortError::system(what, interface, "cap_bpf,cap_net_admin", source);
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").map_err(failed("opening a socket"))?;
        let index = Interface::new(socket.as_fd(), interface).index().map_err(failed("looking up the interface"))?;
        let counts = bpf::create_map(MapKind::PerCpuArray, 16, 1).map_err(failed("creating a BPF map"))?;
        let link = bpf::attach_at_stack(&program(&counts), index, StackSide::Ingress);
        Ok(Sink { counts, _link: link.map_err(failed("attaching a counting program"))? })
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

fn program(counts: &OwnedFd) -> Vec<u64> {
    let [load_low, load_high] = load_map(1, counts.as_fd());
    vec![
        instruction(code::MOVE_REGISTER, 6, 1, 0, 0),
        instruction(code::MOVE, 1, 0, 0, 0),
        instruction(code::STORE_U32, 10, 1, -4, 0),
        instruction(code::MOVE_REGISTER, 2, 10, 0, 0),
        instruction(code::ADD, 2, 0, 0, -4),
        load_low,
        load_high,
        instruction(code::CALL, 0, 0, 0, MAP_LOOKUP_ELEMENT),
        instruction(code::JUMP_EQUAL, 0, 0, 7, 0),
        instruction(code::LOAD_U64, 1, 0, 0, 0),
        instruction(code::ADD, 1, 0, 0, 1),
        instruction(code::STORE_U64, 0, 1, 0, 0),
        // The length is the context's first word.
        instruction(code::LOAD_U32, 2, 6, 0, 0),
        instruction(code::LOAD_U64, 1, 0, 8, 0),
        instruction(code::ADD_REGISTER, 1, 2, 0, 0),
        instruction(code::STORE_U64, 0, 1, 8, 0),
        instruction(code::MOVE, 0, 0, 0, DROP),
        instruction(code::EXIT, 0, 0, 0, 0),
    ]
}
