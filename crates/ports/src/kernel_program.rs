//! Loads compiled programs into the kernel, with the memory that they share with the process.
//!
//! The programs are sequences of encoded instructions, which the caller makes. They run on the frames of an AF_XDP port
//! ([`XdpAttachment::run`](crate::XdpAttachment::run)), or on single ones ([`KernelProgram::run`]).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use crate::bpf::{self, MapKind};

/// Size of the buffer for the verifier's log in bytes.
const LOG_BYTES: usize = 1 << 20;

/// Returns the time of the clock that `bpf_ktime_get_ns` reads, in nanoseconds.
pub fn kernel_time_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the argument is a timespec. The clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Memory that programs in the kernel and the process share: the one element of a map. All words are 0 at first.
#[derive(Debug)]
pub struct KernelRegion {
    map: OwnedFd,
    words: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: the memory is only given out as atomic words, and it stays mapped until the value is dropped.
unsafe impl Send for KernelRegion {}
// SAFETY: as above.
unsafe impl Sync for KernelRegion {}

impl KernelRegion {
    /// Creates a region of this size, a multiple of the page size.
    ///
    /// # Errors
    /// The system's: no privilege, no memory, or a kernel before Linux 5.5.
    pub fn new(bytes: u32) -> io::Result<KernelRegion> {
        let map = bpf::create_map_with(MapKind::Array, bytes, 1, bpf::MAPPABLE)?;
        let length = bytes as usize;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, map.as_raw_fd(), 0) };
        match NonNull::new(at.cast()).filter(|_| at != libc::MAP_FAILED) {
            Some(words) => Ok(KernelRegion { map, words, count: length / 8 }),
            None => Err(io::Error::last_os_error()),
        }
    }

    /// Returns the words.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has this many words, is aligned to pages, and lives as long as `self`. Programs in the
        // kernel access it at the same time, which atomic words permit.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr(), self.count) }
    }

    /// Returns the descriptor of the map, for the instructions of programs.
    pub fn descriptor(&self) -> i32 {
        self.map.as_raw_fd()
    }
}

impl AsRef<[AtomicU64]> for KernelRegion {
    fn as_ref(&self) -> &[AtomicU64] {
        self.words()
    }
}

impl Drop for KernelRegion {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new`, and nothing borrows it any more.
        unsafe { libc::munmap(self.words.as_ptr().cast(), self.count * 8) };
    }
}

/// A map of interfaces, or of AF_XDP sockets, by index.
#[derive(Debug)]
pub struct RedirectMap(OwnedFd);

impl RedirectMap {
    /// Creates a map of interfaces.
    ///
    /// # Errors
    /// The system's.
    pub fn devices(entries: u32) -> io::Result<RedirectMap> {
        bpf::create_map(MapKind::Devices, 4, entries).map(RedirectMap)
    }

    /// Creates a map of sockets.
    ///
    /// # Errors
    /// The system's.
    pub fn sockets(entries: u32) -> io::Result<RedirectMap> {
        bpf::create_map(MapKind::Sockets, 4, entries).map(RedirectMap)
    }

    /// Enters an interface by its number.
    ///
    /// # Errors
    /// The system's: there is no such interface, or no such index.
    pub fn set_device(&self, index: u32, interface: u32) -> io::Result<()> {
        bpf::update_map(self.0.as_fd(), index, interface)
    }

    /// Returns the descriptor of the map, for the instructions of programs.
    pub fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

/// The kernel refused a program.
#[derive(Debug, thiserror::Error)]
#[error("the kernel refuses the program: {error}")]
pub struct ProgramRejected {
    /// The system's error.
    pub error: io::Error,
    /// The verifier's log; empty if it did not come so far.
    pub log: String,
}

impl ProgramRejected {
    /// Returns the number of the instruction that the verifier looked at last, if it says so.
    pub fn instruction(&self) -> Option<usize> {
        let number = |line: &str| {
            let (number, rest) = line.split_once(": (")?;
            rest.get(2..3).filter(|end| *end == ")")?;
            number.parse().ok()
        };
        self.log.lines().rev().find_map(number)
    }

    /// Returns the verifier's reason, the last line of its log without its statistics.
    pub fn reason(&self) -> &str {
        const STATISTICS: [&str; 3] = ["processed ", "stack depth ", "verification time "];
        let is_reason = |line: &&str| !STATISTICS.iter().any(|begin| line.starts_with(begin));
        self.log.lines().rev().find(is_reason).unwrap_or_default()
    }
}

/// A program in the kernel.
#[derive(Debug)]
pub struct KernelProgram {
    program: OwnedFd,
    processed: Option<u64>,
}

impl KernelProgram {
    /// Loads an XDP program.
    ///
    /// # Errors
    /// [`ProgramRejected`] with the verifier's log.
    pub fn load(program: &[u64]) -> Result<KernelProgram, ProgramRejected> {
        let mut log = vec![0; LOG_BYTES];
        match bpf::load_xdp_logged(program, false, &mut log) {
            Ok(program) => Ok(KernelProgram { program, processed: processed(&text(&log)) }),
            Err(error) => {
                let again = bpf::load_xdp_logged(program, true, &mut log);
                let log = if again.is_err() { text(&log) } else { String::new() };
                Err(ProgramRejected { error, log })
            }
        }
    }

    /// Wraps a program that was loaded.
    pub(crate) fn new(program: OwnedFd) -> KernelProgram {
        KernelProgram { program, processed: None }
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Returns the number of instructions that the verifier processed, if it says so.
    pub fn verified_instructions(&self) -> Option<u64> {
        self.processed
    }

    /// Runs the program once on a copy of a frame of at least 14 bytes. Returns its verdict and the frame as it left
    /// it. A redirect is not carried out.
    ///
    /// # Errors
    /// The system's.
    pub fn run(&self, frame: &[u8]) -> io::Result<(u32, Vec<u8>)> {
        bpf::run(self.program.as_fd(), frame, 1)
    }

    /// Runs the program this many times on one copy of a frame of at least 14 bytes, without a system call in between.
    /// Redirects are not carried out.
    ///
    /// # Errors
    /// The system's.
    pub fn run_repeatedly(&self, frame: &[u8], times: u32) -> io::Result<()> {
        bpf::run(self.program.as_fd(), frame, times).map(drop)
    }
}

/// Returns the text of a log, which ends at the first zero byte.
fn text(log: &[u8]) -> String {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    String::from_utf8_lossy(&log[..end]).into_owned()
}

/// Returns the number in `processed 123 insns`.
fn processed(log: &str) -> Option<u64> {
    log.split("processed ").nth(1)?.split(' ').next()?.parse().ok()
}
