//! Where frames end and are counted.

use std::os::fd::{AsFd, OwnedFd};

use crate::PortError;
use crate::bpf::{self, Attach, MapKind, code, instruction, load_map};
use crate::interface::Interface;

const MAP_LOOKUP_ELEMENT: i32 = 1;
const DROP: i32 = 1;

/// What has arrived since a sink was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// Frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// An interface whose frames are counted and dropped, as long as this lives.
pub struct Sink {
    counts: OwnedFd,
    /// Held open: what it stands for lasts as long as it does.
    _link: OwnedFd,
}

impl Sink {
    /// Opens an interface of the calling thread's network namespace. On a veth the other end can send to it without
    /// socket buffers from then on.
    ///
    /// # Errors
    /// If there is no such interface, another XDP program is attached to it, or this process may not load BPF programs.
    pub fn open(interface: &str) -> Result<Sink, PortError> {
        let failed =
            |what| move |source| PortError::system(what, interface, "cap_bpf,cap_net_admin,cap_perfmon", source);
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").map_err(failed("opening a socket"))?;
        let index = Interface::new(socket.as_fd(), interface).index().map_err(failed("looking up the interface"))?;
        let counts = bpf::create_map(MapKind::PerCpuArray, 16, 1).map_err(failed("making a BPF map"))?;
        let program = bpf::load_xdp(&program(&counts), 0).map_err(failed("loading a counting program"))?;
        let link = bpf::attach_xdp(program.as_fd(), index, Attach::Native)
            .or_else(|_| bpf::attach_xdp(program.as_fd(), index, Attach::Generic));
        Ok(Sink { counts, _link: link.map_err(failed("attaching a counting program"))? })
    }

    /// What has arrived so far, on all processors.
    ///
    /// # Errors
    /// If the counts cannot be read.
    pub fn arrived(&self) -> Result<Arrived, PortError> {
        let sums = bpf::sum_per_cpu(self.counts.as_fd(), 0, 2)
            .map_err(|source| PortError::system("reading counts", "sink", "cap_bpf", source))?;
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
        instruction(code::JUMP_EQUAL, 0, 0, 9, 0),
        instruction(code::LOAD_U64, 1, 0, 0, 0),
        instruction(code::ADD, 1, 0, 0, 1),
        instruction(code::STORE_U64, 0, 1, 0, 0),
        // The length: the context's end less its beginning.
        instruction(code::LOAD_U32, 2, 6, 4, 0),
        instruction(code::LOAD_U32, 3, 6, 0, 0),
        instruction(code::SUBTRACT_REGISTER, 2, 3, 0, 0),
        instruction(code::LOAD_U64, 1, 0, 8, 0),
        instruction(code::ADD_REGISTER, 1, 2, 0, 0),
        instruction(code::STORE_U64, 0, 1, 8, 0),
        instruction(code::MOVE, 0, 0, 0, DROP),
        instruction(code::EXIT, 0, 0, 0, 0),
    ]
}
