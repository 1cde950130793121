//! As many frames as the kernel can make.
//!
//! A program is run on copies of a frame as if each had just been received (`BPF_PROG_TEST_RUN` with live frames), and
//! its verdict sends them out of the interface. The program may count through a field of the frame, so that the switch
//! sees many flows.

use std::ffi::c_int;
use std::os::fd::{AsFd, OwnedFd};

use crate::PortError;
use crate::bpf::{self, MapKind, code, instruction, load_map};
use crate::interface::Interface;

const MAP_LOOKUP_ELEMENT: i32 = 1;
const REDIRECT: i32 = 23;

/// A field of the frame that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vary {
    /// Where its four bytes, in network byte order, begin. No checksum that covers them is adapted, but see `balance`.
    pub offset: usize,
    /// Its first value.
    pub first: u32,
    /// How many values it takes in turn; rounded down to a power of two, at most 2^30.
    pub count: u32,
    /// Where two bytes begin that hold the complement of the field's low two, so that an Internet checksum over both stays
    /// what it is. The frame must begin with such a pair, and `first` and `count` leave the high two alone.
    pub balance: Option<usize>,
}

/// A flood of frames out of an interface.
///
/// The other end must take frames without a socket buffer: on a veth it has an XDP program attached or generic receive
/// offload on ([`Namespace::turn_on`](crate::namespace::Namespace::turn_on)), or it receives nothing.
pub struct Flood {
    interface: String,
    program: OwnedFd,
    frame: Vec<u8>,
    /// Where the program counts; held open.
    _count: OwnedFd,
}

impl Flood {
    /// Prepares copies of `frame` to leave through an interface of the calling thread's network namespace.
    /// [`send`](Self::send) must be called in the same one.
    ///
    /// # Errors
    /// If there is no such interface, this process may not load BPF programs, or the kernel is older than 5.18.
    pub fn new(interface: &str, frame: &[u8], vary: Option<Vary>) -> Result<Flood, PortError> {
        let failed = |what| move |source| PortError::system(what, interface, "cap_bpf,cap_net_admin", source);
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").map_err(failed("opening a socket"))?;
        let index = Interface::new(socket.as_fd(), interface).index().map_err(failed("looking up the interface"))?;
        let count = bpf::create_map(MapKind::PerCpuArray, 8, 1).map_err(failed("making a BPF map"))?;
        let program = bpf::load_xdp(&program(index, &count, vary), 0).map_err(failed("loading a sending program"))?;
        Ok(Flood { interface: interface.to_owned(), program, frame: frame.to_vec(), _count: count })
    }

    /// Offers `frames` frames, as fast as can be. Those the other end has no room for are lost. A call costs some 20 ms
    /// besides, so let it be a million.
    ///
    /// # Errors
    /// If the kernel does not do it, or a signal comes.
    pub fn send(&self, frames: u32) -> Result<(), PortError> {
        let result = bpf::run_live(self.program.as_fd(), &self.frame, frames);
        result.map_err(|source| PortError::system("offering frames", &self.interface, "cap_bpf,cap_net_admin", source))
    }
}

fn program(index: c_int, count: &OwnedFd, vary: Option<Vary>) -> Vec<u64> {
    let redirect = [
        instruction(code::MOVE, 1, 0, 0, index),
        instruction(code::MOVE, 2, 0, 0, 0),
        instruction(code::CALL, 0, 0, 0, REDIRECT),
        instruction(code::EXIT, 0, 0, 0, 0),
    ];
    let Some(Vary { offset, first, count: values, balance }) = vary else { return redirect.to_vec() };
    let mask = (1 << values.clamp(1, 1 << 30).ilog2()) - 1;
    // Beyond any frame: the program's own check of the length fails, and the frame stays as it is.
    let place = |offset| i16::try_from(offset).unwrap_or(i16::MAX - 8);
    let offset = place(offset);
    let balance = balance.map(place);
    let end = (offset + 4).max(balance.map_or(0, |balance| balance + 2));
    // Unbalanced, the complement is written where the field comes next.
    let complement_at = balance.unwrap_or(offset);
    let [load_low, load_high] = load_map(1, count.as_fd());
    let mut program = vec![
        instruction(code::MOVE_REGISTER, 6, 1, 0, 0),
        instruction(code::MOVE, 1, 0, 0, 0),
        instruction(code::STORE_U32, 10, 1, -4, 0),
        instruction(code::MOVE_REGISTER, 2, 10, 0, 0),
        instruction(code::ADD, 2, 0, 0, -4),
        load_low,
        load_high,
        instruction(code::CALL, 0, 0, 0, MAP_LOOKUP_ELEMENT),
        instruction(code::JUMP_EQUAL, 0, 0, 17, 0),
        // r7 = (the count, which goes up) % values + first
        instruction(code::LOAD_U64, 7, 0, 0, 0),
        instruction(code::MOVE_REGISTER, 1, 7, 0, 0),
        instruction(code::ADD, 1, 0, 0, 1),
        instruction(code::STORE_U64, 0, 1, 0, 0),
        instruction(code::AND, 7, 0, 0, mask),
        instruction(code::ADD, 7, 0, 0, first.cast_signed()),
        instruction(code::MOVE_REGISTER, 8, 7, 0, 0),
        instruction(code::XOR, 8, 0, 0, 0xffff),
        instruction(code::TO_BIG_ENDIAN, 8, 0, 0, 16),
        instruction(code::TO_BIG_ENDIAN, 7, 0, 0, 32),
        // if the frame has the field: write it
        instruction(code::LOAD_U32, 2, 6, 0, 0),
        instruction(code::LOAD_U32, 3, 6, 4, 0),
        instruction(code::MOVE_REGISTER, 4, 2, 0, 0),
        instruction(code::ADD, 4, 0, 0, i32::from(end)),
        instruction(code::JUMP_GREATER_REGISTER, 4, 3, 2, 0),
        instruction(code::STORE_U16, 2, 8, complement_at, 0),
        instruction(code::STORE_U32, 2, 7, offset, 0),
    ];
    program.extend(redirect);
    program
}
