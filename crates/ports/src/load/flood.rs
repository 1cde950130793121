//! Sends a flood: as many frames as the kernel can generate.
//!
//! A program runs on copies of a frame as if each had just been received (`BPF_PROG_TEST_RUN` with live frames), and
//! its verdict sends them out of the interface. The program may vary a field of the frame, so that the switch sees many
//! flows.

use std::ffi::c_int;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::PortError;
use crate::bpf::{self, BytesMap, MapKind, code, instruction, look_up};
use crate::interface::Interface;

const REDIRECT: i32 = 23;
/// `XDP_DROP`
const DROP: i32 = 1;
/// Number of consecutive frames in which a share is sent.
const SHARES: u32 = 64;
/// Indices of the map's elements: frames offered, and, if only a share is sent, all frames.
const OFFERED: i32 = 0;
const MADE: i32 = 1;
/// An odd multiplier that spreads the frames that are sent evenly.
const SPREAD: i32 = 37;
/// Number of frames after which others of 64 are in the share of a mix.
const MIX_TURN: u32 = 1024;
/// An odd multiplier whose products look random: the golden ratio's fraction, of 32 bits.
const SCATTER: i32 = 0x9e37_79b1_u32.cast_signed();
/// Number of bytes rewritten in each frame: its memory comes back as the receiver left it, and a forwarding kernel
/// modifies it in place.
const RESTORED: usize = 64;

/// A counting field of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vary {
    /// Offset of its four bytes, in network byte order. Checksums that cover it are not adapted, except through
    /// `balance`.
    pub offset: usize,
    /// Its first value.
    pub first: u32,
    /// Number of values, which repeat; rounded down to a power of two, at most 2^30.
    pub count: u32,
    /// Offset of two bytes that hold the complement of the field's low two bytes, so that an Internet checksum over
    /// both stays unchanged. The frame must start with such a pair, and `first` and `count` must not affect the high
    /// two bytes.
    pub balance: Option<usize>,
}

impl Vary {
    /// Returns the end of the bytes that are written.
    fn end(&self) -> usize {
        (self.offset + 4).max(self.balance.map_or(0, |balance| balance + 2))
    }
}

/// Four bytes that some of the frames have in place of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameMix {
    /// Offset of the bytes. They are written after a [`Vary`] that overlaps.
    pub offset: usize,
    /// The bytes.
    pub bytes: [u8; 4],
    /// Number of frames in 64 that have them, spread evenly. Frames with one value of a varied field are sometimes
    /// among them and sometimes not.
    pub share: u32,
}

impl FrameMix {
    /// Returns the end of the bytes.
    fn end(&self) -> usize {
        self.offset + self.bytes.len()
    }
}

/// The order of a varied field's values.
#[derive(Clone, Copy)]
enum ValueOrder<'a> {
    Ascending,
    Scattered,
    /// The elements of an array.
    Listed(BorrowedFd<'a>),
}

/// Differences between the frames of a flood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameVariety {
    /// A field that counts.
    pub vary: Option<Vary>,
    /// Bytes of a share of the frames.
    pub mix: Option<FrameMix>,
}

/// A flood of frames out of an interface.
///
/// The other end must accept frames without a socket buffer: a veth needs an attached XDP program or generic receive
/// offload ([`Namespace::turn_on`](crate::namespace::Namespace::turn_on)), or it receives nothing.
pub struct Flood {
    interface: String,
    program: OwnedFd,
    frame: Vec<u8>,
    /// The map in which the program counts.
    count: OwnedFd,
}

impl Flood {
    /// Prepares copies of `frame` to be sent through an interface of the calling thread's network namespace.
    /// [`send`](Self::send) must be called in the same namespace.
    ///
    /// # Errors
    /// Returns an error if there is no such interface, this process may not load BPF programs, or the kernel is older
    /// than 5.18.
    pub fn new(interface: &str, frame: &[u8], vary: Option<Vary>) -> Result<Flood, PortError> {
        Self::thinned(interface, frame, vary, SHARES)
    }

    /// Like [`new`](Self::new), but only `sent` of each 64 frames leave: the others cost the sender a little, and
    /// nobody else anything. So the kernel can offer less than its maximum, at a steady rate, without waiting.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Panics
    /// Panics if `sent` is more than 64.
    pub fn thinned(interface: &str, frame: &[u8], vary: Option<Vary>, sent: u32) -> Result<Flood, PortError> {
        Self::various(interface, frame, FrameVariety { vary, mix: None }, sent)
    }

    /// Like [`thinned`](Self::thinned), with all kinds of differences between the frames.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Panics
    /// Panics if `sent` or the share of the mix is more than 64.
    pub fn various(interface: &str, frame: &[u8], variety: FrameVariety, sent: u32) -> Result<Flood, PortError> {
        Self::open(interface, frame, variety, ValueOrder::Ascending, sent)
    }

    /// Like [`thinned`](Self::thinned), but the values of the field come in an order without locality, each of them
    /// once in `vary.count` frames. Ascending addresses would find most of a large table's path in the cache.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Panics
    /// Panics if `sent` is more than 64.
    pub fn scattered(interface: &str, frame: &[u8], vary: Vary, sent: u32) -> Result<Flood, PortError> {
        let variety = FrameVariety { vary: Some(vary), mix: None };
        Self::open(interface, frame, variety, ValueOrder::Scattered, sent)
    }

    /// Like [`thinned`](Self::thinned), but the four bytes at `offset` have these values in turn, in network byte
    /// order. Their number is rounded down to a power of two.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Panics
    /// Panics if there are no values, or `sent` is more than 64.
    pub fn listed(interface: &str, frame: &[u8], offset: usize, values: &[u32], sent: u32) -> Result<Flood, PortError> {
        let count = 1_u32 << values.len().ilog2();
        let failed = |source| PortError::system("creating a BPF map", interface, "cap_bpf,cap_net_admin", source);
        let list = BytesMap::<4, 4>::array(count).map_err(failed)?;
        for (number, value) in (0..count).zip(values) {
            list.update(&number.to_ne_bytes(), &value.to_ne_bytes()).map_err(failed)?;
        }
        let vary = Some(Vary { offset, first: 0, count, balance: None });
        Self::open(interface, frame, FrameVariety { vary, mix: None }, ValueOrder::Listed(list.as_fd()), sent)
    }

    fn open(
        interface: &str,
        frame: &[u8],
        variety: FrameVariety,
        order: ValueOrder<'_>,
        sent: u32,
    ) -> Result<Flood, PortError> {
        let most = variety.mix.map_or(sent, |mix| sent.max(mix.share));
        assert!(most <= SHARES, "a share of 64");
        let failed = |what| move |source| PortError::system(what, interface, "cap_bpf,cap_net_admin", source);
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").map_err(failed("opening a socket"))?;
        let index = Interface::new(socket.as_fd(), interface).index().map_err(failed("looking up the interface"))?;
        let count = bpf::create_map(MapKind::PerCpuArray, 8, 2).map_err(failed("creating a BPF map"))?;
        let program = bpf::load_xdp(&program(index, frame, &count, (variety, order), sent), 0)
            .map_err(failed("loading a sending program"))?;
        Ok(Flood { interface: interface.to_owned(), program, frame: frame.to_vec(), count })
    }

    /// Offers `frames` frames as fast as possible. Frames that the other end has no room for are lost. At its start and
    /// end, a call takes some 20 ms in which nothing is offered, so a load without gaps is a single call, stopped by
    /// the end of its process.
    ///
    /// # Errors
    /// Returns an error if the kernel rejects the call, or a signal arrives.
    pub fn send(&self, frames: u32) -> Result<(), PortError> {
        let result = bpf::run_live(self.program.as_fd(), &self.frame, frames);
        result.map_err(|source| PortError::system("sending frames", &self.interface, "cap_bpf,cap_net_admin", source))
    }

    /// Returns the number of frames offered so far; any thread may call this while another one sends.
    ///
    /// # Errors
    /// Returns an error if the count cannot be read.
    pub fn offered(&self) -> Result<u64, PortError> {
        let sums = bpf::sum_per_cpu(self.count.as_fd(), OFFERED.cast_unsigned(), 1);
        sums.map(|sums| sums[0])
            .map_err(|source| PortError::system("reading counters", &self.interface, "cap_bpf", source))
    }
}

fn program(
    index: c_int,
    frame: &[u8],
    count: &OwnedFd,
    (variety, order): (FrameVariety, ValueOrder<'_>),
    sent: u32,
) -> Vec<u64> {
    let redirect = [
        instruction(code::MOVE, 1, 0, 0, index),
        instruction(code::MOVE, 2, 0, 0, 0),
        instruction(code::CALL, 0, 0, 0, REDIRECT),
        instruction(code::EXIT, 0, 0, 0, 0),
    ];
    let vary = variety.vary.filter(|vary| vary.end() <= frame.len());
    let mix = variety.mix.filter(|mix| mix.end() <= frame.len());
    // Instructions that write to each frame, whose address is in r2; the value of the field is in r7, its complement in
    // r8, the number of frames before in r9.
    let mut writes = Vec::new();
    let restored = frame.len().min(RESTORED) / 4 * 4;
    for (word, at) in frame[..restored].chunks_exact(4).zip((0..).step_by(4)) {
        let word = i32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
        writes.push(instruction(code::STORE_IMMEDIATE_U32, 2, 0, at, word));
    }
    let end = restored.max(vary.map_or(0, |vary| vary.end())).max(mix.map_or(0, |mix| mix.end()));
    if let Some(Vary { offset, balance, .. }) = vary {
        if let Some(balance) = balance {
            writes.push(instruction(code::STORE_U16, 2, 8, balance as i16, 0));
        }
        writes.push(instruction(code::STORE_U32, 2, 7, offset as i16, 0));
    }
    writes.extend(mix.iter().flat_map(mixing));
    let mut work = vec![
        instruction(code::LOAD_U32, 2, 6, 0, 0),
        instruction(code::LOAD_U32, 3, 6, 4, 0),
        instruction(code::MOVE_REGISTER, 4, 2, 0, 0),
        instruction(code::ADD, 4, 0, 0, end as i32),
        instruction(code::JUMP_GREATER_REGISTER, 4, 3, writes.len() as i16, 0),
    ];
    work.extend(writes);
    work.splice(0..0, counted(count, vary.map(|vary| (vary, order)), work.len() as i16));
    let mut program = vec![instruction(code::MOVE_REGISTER, 6, 1, 0, 0)];
    if sent < SHARES {
        program.extend(thinning(count, sent));
    }
    program.extend(work);
    program.extend(redirect);
    program
}

/// Generates code that drops all but a share of the frames.
fn thinning(count: &OwnedFd, sent: u32) -> Vec<u64> {
    let found = [
        instruction(code::LOAD_U64, 1, 0, 0, 0),
        instruction(code::MOVE_REGISTER, 2, 1, 0, 0),
        instruction(code::ADD, 2, 0, 0, 1),
        instruction(code::STORE_U64, 0, 2, 0, 0),
        instruction(code::MULTIPLY, 1, 0, 0, SPREAD),
        instruction(code::AND, 1, 0, 0, SHARES as i32 - 1),
        instruction(code::JUMP_LESS, 1, 0, 2, sent as i32),
        instruction(code::MOVE, 0, 0, 0, DROP),
        instruction(code::EXIT, 0, 0, 0, 0),
    ];
    let mut program = element(count, MADE);
    program.push(instruction(code::JUMP_EQUAL, 0, 0, found.len() as i16, 0));
    program.extend(found);
    program
}

/// Generates code that writes the bytes of a mix to its share of the frames.
fn mixing(mix: &FrameMix) -> [u64; 7] {
    let least = (SHARES - mix.share) as i32;
    [
        // r1 = (the number * SPREAD + the number / 1024) % SHARES
        instruction(code::MOVE_REGISTER, 1, 9, 0, 0),
        instruction(code::SHIFT_RIGHT, 1, 0, 0, MIX_TURN.ilog2() as i32),
        instruction(code::MULTIPLY, 9, 0, 0, SPREAD),
        instruction(code::ADD_REGISTER, 1, 9, 0, 0),
        instruction(code::AND, 1, 0, 0, SHARES as i32 - 1),
        instruction(code::JUMP_LESS, 1, 0, 1, least),
        instruction(code::STORE_IMMEDIATE_U32, 2, 0, mix.offset as i16, i32::from_ne_bytes(mix.bytes)),
    ]
}

/// Generates code that loads the address of a map's element into r0, or 0.
fn element(map: &OwnedFd, index: i32) -> Vec<u64> {
    let key = [instruction(code::MOVE, 1, 0, 0, index), instruction(code::STORE_U32, 10, 1, -4, 0)];
    [&key[..], &look_up(map.as_fd(), -4)].concat()
}

/// Generates code that permutes the numbers of this many bits, in r7. Each step is a bijection: the multiplier is odd,
/// and the shift moves high bits onto low ones only.
fn scattering(bits: i32) -> [u64; 7] {
    let multiply = instruction(code::MULTIPLY, 7, 0, 0, SCATTER);
    let truncate = instruction(code::AND, 7, 0, 0, (1 << bits) - 1);
    [
        multiply,
        truncate,
        instruction(code::MOVE_REGISTER, 8, 7, 0, 0),
        instruction(code::SHIFT_RIGHT, 8, 0, 0, bits / 2 + 1),
        instruction(code::XOR_REGISTER, 7, 8, 0, 0),
        multiply,
        truncate,
    ]
}

/// Generates code that counts an offered frame. If a field varies, r7 becomes its next value and r8 the complement, as
/// written to the frame. If there is no count, the next `behind` instructions are skipped as well.
fn counted(count: &OwnedFd, vary: Option<(Vary, ValueOrder<'_>)>, behind: i16) -> Vec<u64> {
    let mut found = vec![
        instruction(code::LOAD_U64, 7, 0, 0, 0),
        instruction(code::MOVE_REGISTER, 1, 7, 0, 0),
        instruction(code::ADD, 1, 0, 0, 1),
        instruction(code::STORE_U64, 0, 1, 0, 0),
        instruction(code::MOVE_REGISTER, 9, 7, 0, 0),
    ];
    if let Some((Vary { first, count: values, .. }, order)) = vary {
        let bits = values.clamp(1, 1 << 30).ilog2() as i32;
        // r7 = (the count, which increases) % values + first
        found.push(instruction(code::AND, 7, 0, 0, (1 << bits) - 1));
        let last = [
            instruction(code::ADD, 7, 0, 0, first.cast_signed()),
            instruction(code::MOVE_REGISTER, 8, 7, 0, 0),
            instruction(code::XOR, 8, 0, 0, 0xffff),
            instruction(code::TO_BIG_ENDIAN, 8, 0, 0, 16),
            instruction(code::TO_BIG_ENDIAN, 7, 0, 0, 32),
        ];
        match order {
            ValueOrder::Ascending => {}
            ValueOrder::Scattered => found.extend(scattering(bits)),
            ValueOrder::Listed(list) => {
                found.push(instruction(code::STORE_U32, 10, 7, -8, 0));
                found.extend(look_up(list, -8));
                found.push(instruction(code::JUMP_EQUAL, 0, 0, 1 + last.len() as i16 + behind, 0));
                found.push(instruction(code::LOAD_U32, 7, 0, 0, 0));
            }
        }
        found.extend(last);
    }
    let mut program = element(count, OFFERED);
    program.push(instruction(code::JUMP_EQUAL, 0, 0, found.len() as i16 + behind, 0));
    program.extend(found);
    program
}
