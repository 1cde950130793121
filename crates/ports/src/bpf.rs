//! Wraps bpf(2) for redirecting, counting, sending and tracing programs: maps, programs written as instructions,
//! and links. It needs no compiler and no library.
//!
//! An instruction is eight bytes: `code u8, source and destination register u8, offset i16, immediate i32`. A 64-bit
//! immediate takes two of them. Source: Documentation/bpf/standardization/instruction-set.rst in the Linux tree; the
//! layouts of the requests are those of `union bpf_attr` in `include/uapi/linux/bpf.h`.

use std::ffi::{CStr, c_int};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const MAP_CREATE: c_int = 0;
const MAP_LOOKUP: c_int = 1;
const MAP_UPDATE: c_int = 2;
const PROG_LOAD: c_int = 5;
const PROG_TEST_RUN: c_int = 10;
const PROG_GET_DESCRIPTOR: c_int = 13;
const RAW_TRACEPOINT_OPEN: c_int = 17;
const LINK_CREATE: c_int = 28;
const LINK_UPDATE: c_int = 29;

/// Type and attachment point of a program.
#[derive(Clone, Copy)]
struct ProgramKind {
    kind: u32,
    attach: u32,
    /// Number of the kernel's type that a tracing program is for; 0 for other programs.
    traced: u32,
}

/// XDP programs: `BPF_PROG_TYPE_XDP`, `BPF_XDP`.
const XDP: ProgramKind = ProgramKind { kind: 6, attach: 37, traced: 0 };

/// The licences that programs need which call functions of the kernel or read its structs. The few instructions of
/// this crate are offered under the GPL too.
const DUAL_LICENSE: &CStr = c"Dual MIT/GPL";

/// The side of the kernel's stack at which a program of type `BPF_PROG_TYPE_SCHED_CLS` runs.
#[derive(Clone, Copy)]
pub(crate) enum StackSide {
    /// Incoming packets (`BPF_TCX_INGRESS`).
    Ingress = 46,
    /// Outgoing packets (`BPF_TCX_EGRESS`).
    Egress = 47,
}

/// The map types used here.
#[derive(Clone, Copy)]
pub(crate) enum MapKind {
    /// Values by key (`BPF_MAP_TYPE_HASH`).
    Hash = 1,
    /// Values by index.
    Array = 2,
    /// Numbers or bytes by index, one copy per processor, so that counting takes no lock.
    PerCpuArray = 6,
    /// Values by prefix, found by the longest match (`BPF_MAP_TYPE_LPM_TRIE`).
    PrefixTrie = 11,
    /// Interfaces by index.
    Devices = 14,
    /// AF_XDP sockets by index.
    Sockets = 17,
}

/// Flag: the program supports packets of several buffers (`BPF_F_XDP_HAS_FRAGS`, Linux 5.18).
pub(crate) const HAS_FRAGS: u32 = 1 << 5;

/// The mode in which an XDP program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attach {
    /// In the driver, before the kernel allocates its own packet structures.
    Native = 1 << 2,
    /// In the kernel's receive path, for drivers without XDP support.
    Generic = 1 << 1,
}

/// Encodes one instruction; `R1` and so on are numbers 0 to 10.
pub(crate) const fn instruction(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> u64 {
    let registers = destination | source << 4;
    code as u64 | (registers as u64) << 8 | (offset as u16 as u64) << 16 | (immediate as u32 as u64) << 32
}

/// Operation codes of the instructions used here.
pub(crate) mod code {
    /// `destination = immediate` (64 bit)
    pub(crate) const MOVE: u8 = 0xb7;
    /// `destination = source` (64 bit)
    pub(crate) const MOVE_REGISTER: u8 = 0xbf;
    /// `destination = *(u32 *)(source + offset)`
    pub(crate) const LOAD_U32: u8 = 0x61;
    /// `destination = *(u16 *)(source + offset)`
    pub(crate) const LOAD_U16: u8 = 0x69;
    /// `destination = *(u8 *)(source + offset)`
    pub(crate) const LOAD_U8: u8 = 0x71;
    /// `*(u8 *)(destination + offset) = source`
    pub(crate) const STORE_U8: u8 = 0x73;
    /// `*(u16 *)(destination + offset) = source`
    pub(crate) const STORE_U16: u8 = 0x6b;
    /// `*(u64 *)(destination + offset) = immediate`
    pub(crate) const STORE_IMMEDIATE_U64: u8 = 0x7a;
    /// `*(u32 *)(destination + offset) = immediate`
    pub(crate) const STORE_IMMEDIATE_U32: u8 = 0x62;
    /// `if destination != immediate goto offset`
    pub(crate) const JUMP_NOT_EQUAL: u8 = 0x55;
    /// `destination = *(u64 *)(source + offset)`
    pub(crate) const LOAD_U64: u8 = 0x79;
    /// `*(u32 *)(destination + offset) = source`
    pub(crate) const STORE_U32: u8 = 0x63;
    /// `*(u64 *)(destination + offset) = source`
    pub(crate) const STORE_U64: u8 = 0x7b;
    /// `destination = ` the map whose descriptor is the immediate; takes two instructions.
    pub(crate) const LOAD_MAP: u8 = 0x18;
    /// `destination += immediate`
    pub(crate) const ADD: u8 = 0x07;
    /// `destination += source`
    pub(crate) const ADD_REGISTER: u8 = 0x0f;
    /// `destination &= immediate`
    pub(crate) const AND: u8 = 0x57;
    /// `destination *= immediate`
    pub(crate) const MULTIPLY: u8 = 0x27;
    /// `destination >>= immediate` (unsigned)
    pub(crate) const SHIFT_RIGHT: u8 = 0x77;
    /// `if destination < immediate goto offset` (unsigned)
    pub(crate) const JUMP_LESS: u8 = 0xa5;
    /// `destination ^= immediate`
    pub(crate) const XOR: u8 = 0xa7;
    /// `destination ^= source`
    pub(crate) const XOR_REGISTER: u8 = 0xaf;
    /// `if destination > source goto offset` (unsigned)
    pub(crate) const JUMP_GREATER_REGISTER: u8 = 0x2d;
    /// `if destination == immediate goto offset`
    pub(crate) const JUMP_EQUAL: u8 = 0x15;
    /// `if destination == source goto offset`
    pub(crate) const JUMP_EQUAL_REGISTER: u8 = 0x1d;
    /// `destination = ` the low 32 bits of the source
    pub(crate) const MOVE_REGISTER_U32: u8 = 0xbc;
    /// `destination = ` the 64-bit immediate; takes two instructions.
    pub(crate) const MOVE_U64: u8 = 0x18;
    /// `*(u64 *)(destination + offset) += source`, atomically; the immediate is 0.
    pub(crate) const ATOMIC_ADD_U64: u8 = 0xdb;
    /// Converts the destination's low 16, 32 or 64 bits (the immediate) to network byte order.
    pub(crate) const TO_BIG_ENDIAN: u8 = 0xdc;
    /// Calls the kernel function with the immediate's number.
    pub(crate) const CALL: u8 = 0x85;
    /// Returns r0.
    pub(crate) const EXIT: u8 = 0x95;
}

/// Encodes the pair of instructions that loads a map into a register.
pub(crate) fn load_map(destination: u8, map: BorrowedFd<'_>) -> [u64; 2] {
    // Source register 1 (BPF_PSEUDO_MAP_FD) marks the immediate as a descriptor.
    [instruction(code::LOAD_MAP, destination, 1, 0, map.as_raw_fd()), 0]
}

/// Encodes the instructions that look up the key at this offset from r10 in a map: r0 becomes the address of its value,
/// or 0. Overwrites r1 to r5.
pub(crate) fn look_up(map: BorrowedFd<'_>, key: i32) -> [u64; 5] {
    /// `bpf_map_lookup_elem`
    const MAP_LOOKUP_ELEMENT: i32 = 1;
    let [load_low, load_high] = load_map(1, map);
    [
        load_low,
        load_high,
        instruction(code::MOVE_REGISTER, 2, 10, 0, 0),
        instruction(code::ADD, 2, 0, 0, key),
        instruction(code::CALL, 0, 0, 0, MAP_LOOKUP_ELEMENT),
    ]
}

/// Encodes the pair of instructions that loads the address of a map's one element into a register.
pub(crate) fn load_element(destination: u8, map: c_int) -> [u64; 2] {
    // Source register 2 (BPF_PSEUDO_MAP_VALUE) marks the immediate as a descriptor, whose element is meant.
    [instruction(code::LOAD_MAP, destination, 2, 0, map), 0]
}

/// Encodes the pair of instructions that loads a 64-bit number into a register.
pub(crate) fn load_number(destination: u8, number: u64) -> [u64; 2] {
    let [low, high] = [number as i32, (number >> 32) as i32];
    [instruction(code::MOVE_U64, destination, 0, 0, low), instruction(0, 0, 0, 0, high)]
}

/// Runs one command.
///
/// # Safety
/// `A` has the layout of the beginning of `union bpf_attr` for this command, and every address in it points to memory
/// of the kind that the command expects, which lives through the call.
unsafe fn bpf<A>(command: c_int, attributes: &mut A) -> io::Result<c_int> {
    let attributes = &raw mut *attributes;
    // SAFETY: by the caller's promise; the kernel accesses no more than the given size.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<A>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as c_int) }
}

fn owned(descriptor: c_int) -> OwnedFd {
    // SAFETY: called on a descriptor that the kernel just returned, which has no other owner.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

/// Creates a map with keys of four bytes.
pub(crate) fn create_map(kind: MapKind, value_len: u32, entries: u32) -> io::Result<OwnedFd> {
    create_map_with(kind, value_len, entries, 0)
}

/// Flag of arrays: they can be mapped into the process (`BPF_F_MMAPABLE`, Linux 5.5).
pub(crate) const MAPPABLE: u32 = 1 << 10;

/// Creates a map with keys of four bytes and flags.
pub(crate) fn create_map_with(kind: MapKind, value_len: u32, entries: u32, flags: u32) -> io::Result<OwnedFd> {
    create(kind, 4, value_len, entries, flags)
}

fn create(kind: MapKind, key_len: u32, value_len: u32, entries: u32, flags: u32) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Create {
        kind: u32,
        key_len: u32,
        value_len: u32,
        entries: u32,
        flags: u32,
    }
    let mut create = Create { kind: kind as u32, key_len, value_len, entries, flags };
    // SAFETY: the layout is the command's, and it contains no address.
    unsafe { bpf(MAP_CREATE, &mut create) }.map(owned)
}

#[repr(C)]
struct Element {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Sets a four-byte value of a map.
pub(crate) fn update_map(map: BorrowedFd<'_>, key: u32, value: u32) -> io::Result<()> {
    let (key, value) = (&raw const key, &raw const value);
    let map = map.as_raw_fd() as u32;
    let mut element = Element { map, padding: 0, key: key as u64, value: value as u64, flags: 0 };
    // SAFETY: the layout is the command's; key and value have the sizes of the maps created here for writing.
    unsafe { bpf(MAP_UPDATE, &mut element) }.map(drop)
}

/// A map with keys of `K` bytes and values of `V` bytes, one copy of each value.
pub(crate) struct BytesMap<const K: usize, const V: usize>(OwnedFd);

impl<const V: usize> BytesMap<4, V> {
    /// Creates an array; keys are indices in the machine's byte order.
    pub(crate) fn array(entries: u32) -> io::Result<Self> {
        create(MapKind::Array, 4, V as u32, entries, 0).map(Self)
    }
}

impl<const K: usize, const V: usize> BytesMap<K, V> {
    /// Creates a hash table for at most this number of entries.
    pub(crate) fn hash(entries: u32) -> io::Result<Self> {
        create(MapKind::Hash, K as u32, V as u32, entries, 0).map(Self)
    }

    /// Creates a trie of prefixes for at most this number of entries. A key is the prefix's length in bits, a `u32` in
    /// the machine's byte order, and then the address, the most significant byte first.
    pub(crate) fn prefix_trie(entries: u32) -> io::Result<Self> {
        /// `BPF_F_NO_PREALLOC`, without which the kernel rejects this kind.
        const ALLOCATE_LATE: u32 = 1;
        create(MapKind::PrefixTrie, K as u32, V as u32, entries, ALLOCATE_LATE).map(Self)
    }

    /// Inserts or replaces a value.
    pub(crate) fn update(&self, key: &[u8; K], value: &[u8; V]) -> io::Result<()> {
        let map = self.0.as_raw_fd() as u32;
        let mut element = Element { map, padding: 0, key: key.as_ptr() as u64, value: value.as_ptr() as u64, flags: 0 };
        // SAFETY: the layout is the command's; key and value have the lengths with which the map was created, of a kind
        // that has one copy of each value.
        unsafe { bpf(MAP_UPDATE, &mut element) }.map(drop)
    }
}

impl<const K: usize, const V: usize> AsFd for BytesMap<K, V> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Reads `values` 64-bit numbers of each processor's copy of an entry, and adds the copies up.
pub(crate) fn sum_per_cpu(map: BorrowedFd<'_>, key: u32, values: usize) -> io::Result<Vec<u64>> {
    let mut copies = vec![0u64; values * possible_cpus()];
    let (key, into) = (&raw const key, copies.as_mut_ptr());
    let map = map.as_raw_fd() as u32;
    let mut element = Element { map, padding: 0, key: key as u64, value: into as u64, flags: 0 };
    // SAFETY: the layout is the command's; the kernel writes one value, a multiple of eight bytes, for each possible
    // processor, and the buffer is large enough.
    unsafe { bpf(MAP_LOOKUP, &mut element) }?;
    let mut sums = vec![0; values];
    for copy in copies.chunks(values) {
        sums.iter_mut().zip(copy).for_each(|(sum, value)| *sum += value);
    }
    Ok(sums)
}

/// Whether the kernel has a program with this number, as `ip -details link` shows it. It has one as long as a process,
/// an interface or the BPF file system refers to it.
///
/// # Errors
/// The system's: only a process with CAP_SYS_ADMIN may ask.
pub fn is_program_loaded(number: u32) -> io::Result<bool> {
    let mut attributes = [number, 0, 0];
    // SAFETY: the layout is the command's: the number, that of the next program, and flags.
    match unsafe { bpf(PROG_GET_DESCRIPTOR, &mut attributes) } {
        Ok(descriptor) => {
            drop(owned(descriptor));
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the number of processors for which the kernel keeps copies, which includes those that could be hot-plugged.
/// If it is not known, as `/sys` cannot be read, this is 4,096.
pub fn possible_cpus() -> usize {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    // In `0-3` or `0,2-7`, the last number counts.
    let last = text.trim().rsplit(['-', ',']).next().and_then(|last| last.parse::<usize>().ok());
    // A larger buffer is harmless, a smaller one is not.
    last.map_or(4096, |last| last + 1)
}

/// Loads an XDP program.
pub(crate) fn load_xdp(program: &[u64], flags: u32) -> io::Result<OwnedFd> {
    load(XDP, program, flags, 0, c"Apache-2.0")
}

/// Loads an XDP program. The verifier writes its log to `log`: the reason of a refusal, or the number of instructions
/// that it processed.
pub(crate) fn load_xdp_logged(program: &[u64], is_verbose: bool, log: &mut [u8]) -> io::Result<OwnedFd> {
    // `BPF_LOG_LEVEL1` and `BPF_LOG_STATS`.
    load_with(XDP, program, 0, 0, c"Apache-2.0", (if is_verbose { 5 } else { 4 }, log))
}

/// Loads an XDP program bound to one interface, whose driver it may query about a packet (`BPF_F_XDP_DEV_BOUND_ONLY`,
/// Linux 6.3).
pub(crate) fn load_xdp_for(interface: c_int, program: &[u64], flags: u32) -> io::Result<OwnedFd> {
    const DEVICE_BOUND: u32 = 1 << 6;
    load(XDP, program, flags | DEVICE_BOUND, interface, DUAL_LICENSE)
}

/// Loads a program for packets at the stack and attaches it as [`attach_xdp`] does (Linux 6.6). It runs beside the
/// programs of others.
pub(crate) fn attach_at_stack(program: &[u64], interface: c_int, side: StackSide) -> io::Result<OwnedFd> {
    const SCHED_CLS: u32 = 3;
    let kind = ProgramKind { kind: SCHED_CLS, attach: side as u32, traced: 0 };
    let program = load(kind, program, 0, 0, c"Apache-2.0")?;
    attach(program.as_fd(), interface, side as u32, 0)
}

/// Loads a program for a tracepoint of the kernel, given by its type
/// ([`tracepoint`](crate::btf::KernelTypes::tracepoint)), and attaches it for as long as the returned descriptor is
/// open. Its context has the tracepoint's arguments as 64-bit numbers. Needs CAP_BPF and CAP_PERFMON.
pub(crate) fn attach_at_tracepoint(program: &[u64], tracepoint: i32) -> io::Result<OwnedFd> {
    /// `BPF_PROG_TYPE_TRACING`
    const TRACING: u32 = 26;
    /// `BPF_TRACE_RAW_TP`
    const RAW_TRACEPOINT: u32 = 23;
    #[repr(C)]
    struct Open {
        /// Address of the tracepoint's name; 0, since the program knows its tracepoint.
        name: u64,
        program: u32,
        padding: u32,
    }
    let kind = ProgramKind { kind: TRACING, attach: RAW_TRACEPOINT, traced: tracepoint.cast_unsigned() };
    let program = load(kind, program, 0, 0, DUAL_LICENSE)?;
    let mut open = Open { name: 0, program: program.as_raw_fd() as u32, padding: 0 };
    // SAFETY: the layout is the command's, and it contains no address.
    unsafe { bpf(RAW_TRACEPOINT_OPEN, &mut open) }.map(owned)
}

fn load(kind: ProgramKind, program: &[u64], flags: u32, interface: c_int, license: &CStr) -> io::Result<OwnedFd> {
    load_with(kind, program, flags, interface, license, (0, &mut []))
}

fn load_with(
    ProgramKind { kind, attach, traced }: ProgramKind,
    program: &[u64],
    flags: u32,
    interface: c_int,
    license: &CStr,
    (log_level, log): (u32, &mut [u8]),
) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Load {
        kind: u32,
        instructions: u32,
        program: u64,
        license: u64,
        log_level: u32,
        log_len: u32,
        log: u64,
        kernel: u32,
        flags: u32,
        name: [u8; 16],
        interface: u32,
        attach: u32,
        /// Type information of the program.
        types: [u32; 9],
        traced: u32,
    }
    let mut name = [0; 16];
    name[..8].copy_from_slice(b"triplane");
    let mut load = Load {
        kind,
        instructions: program.len() as u32,
        program: program.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level,
        log_len: log.len() as u32,
        log: if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 },
        kernel: 0,
        flags,
        name,
        interface: interface as u32,
        attach,
        types: [0; 9],
        traced,
    };
    // SAFETY: the layout is the command's; the program has the given number of instructions, the licence is terminated
    // by zero, the log has the given length, and all live through the call.
    unsafe { bpf(PROG_LOAD, &mut load) }.map(owned)
}

/// Attaches an XDP program to an interface for as long as the returned descriptor is open, so at most until the process
/// ends in any way. If another program is attached, the error is `EBUSY`.
pub(crate) fn attach_xdp(program: BorrowedFd<'_>, interface: c_int, how: Attach) -> io::Result<OwnedFd> {
    attach(program, interface, XDP.attach, how as u32)
}

fn attach(program: BorrowedFd<'_>, interface: c_int, attach: u32, flags: u32) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Link {
        program: u32,
        interface: u32,
        attach: u32,
        flags: u32,
        /// At the stack: the program's position among others.
        relative: u32,
        padding: u32,
        revision: u64,
    }
    let program = program.as_raw_fd() as u32;
    let mut link = Link { program, interface: interface as u32, attach, flags, relative: 0, padding: 0, revision: 0 };
    // SAFETY: the layout is the command's, and it contains no address.
    unsafe { bpf(LINK_CREATE, &mut link) }.map(owned)
}

/// Replaces the program of an attachment. Every packet runs the old program or the new one.
pub(crate) fn update_link(link: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    #[repr(C)]
    struct Update {
        link: u32,
        program: u32,
        flags: u32,
        before: u32,
    }
    let (link, program) = (link.as_raw_fd() as u32, program.as_raw_fd() as u32);
    let mut update = Update { link, program, flags: 0, before: 0 };
    // SAFETY: the layout is the command's, and it contains no address.
    unsafe { bpf(LINK_UPDATE, &mut update) }.map(drop)
}

#[derive(Default)]
#[repr(C)]
struct TestRun {
    program: u32,
    result: u32,
    input_len: u32,
    output_len: u32,
    input: u64,
    output: u64,
    repeat: u32,
    duration: u32,
    context_len: u32,
    context_out_len: u32,
    context: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch: u32,
    padding: u32,
}

/// Runs a program on `repeat` copies of `frame`, which its verdict forwards as if they had just been received
/// (`BPF_F_TEST_XDP_LIVE_FRAMES`, Linux 5.18). A signal ends it early with `EINTR`.
pub(crate) fn run_live(program: BorrowedFd<'_>, frame: &[u8], repeat: u32) -> io::Result<()> {
    let mut run = TestRun {
        program: program.as_raw_fd() as u32,
        input_len: frame.len() as u32,
        input: frame.as_ptr() as u64,
        repeat,
        flags: 1 << 1,
        batch: 64,
        ..TestRun::default()
    };
    // SAFETY: the layout is the command's, and the input lives through the call and has the given length.
    unsafe { bpf(PROG_TEST_RUN, &mut run) }.map(drop)
}

/// Runs a program `repeat` times on one copy of `frame`. Returns the last verdict and the frame as it left it.
pub(crate) fn run(program: BorrowedFd<'_>, frame: &[u8], repeat: u32) -> io::Result<(u32, Vec<u8>)> {
    let mut output = vec![0; frame.len() + 512];
    let mut run = TestRun {
        program: program.as_raw_fd() as u32,
        input_len: frame.len() as u32,
        output_len: output.len() as u32,
        input: frame.as_ptr() as u64,
        output: output.as_mut_ptr() as u64,
        repeat,
        ..TestRun::default()
    };
    // SAFETY: the layout is the command's; input and output live through the call and have the given lengths.
    unsafe { bpf(PROG_TEST_RUN, &mut run) }?;
    output.truncate(run.output_len as usize);
    Ok((run.result, output))
}
