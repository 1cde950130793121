//! Counts frames that the kernel loses when XDP programs redirect them to interfaces.
//!
//! A program does not learn what becomes of a redirected frame: the kernel collects up to 16 of them for an interface,
//! gives them to its driver, and frees those that the driver does not take. It reports both kinds of losses at
//! tracepoints only (include/trace/events/xdp.h in the Linux tree):
//!
//! ```text
//! xdp_devmap_xmit(from device, to device, sent, drops, error)                  a driver was given frames
//! xdp_redirect_err(device, program, target, error, map type, map, index)       a redirect failed at once
//! ```
//!
//! A small program at each adds to a counter of the interface. Both compare the namespace too, since interfaces of
//! different namespaces may have the same index:
//!
//! ```text
//! r0 = 0
//! r6 = frames;               if r6 == 0: exit
//! r2 = the device;           if r2 == 0: exit
//! r3 = r2->nd_net.net->net_cookie;   if r3 != the cookie: exit
//! r2 = r2->ifindex
//! for each interface: if r2 == its index: counter += r6, exit
//! exit
//! ```
//!
//! The first program runs once for each batch of frames that a driver is given, the second once for each failed
//! redirect.

use std::io;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use crate::bpf::{self, code, instruction, load_element, load_number};
use crate::btf::KernelTypes;
use crate::kernel_program::KernelRegion;
use crate::socket::get_option;

/// Maximum number of interfaces.
const MAX_INTERFACES: usize = 256;
/// Size of the counters in bytes: a multiple of every page size.
const REGION_BYTES: u32 = 1 << 16;
/// Counters of each interface: frames lost and redirects failed.
const COUNTERS: usize = 2;
/// The type of maps of AF_XDP sockets (`BPF_MAP_TYPE_XSKMAP`).
const SOCKETS: i32 = 17;

/// Counters of the frames lost after redirects, from when it is opened until it is dropped. The programs of all
/// processes count.
#[derive(Debug)]
pub struct RedirectLosses {
    counters: KernelRegion,
    interfaces: usize,
    /// Kept open: the attachments last as long as the descriptors.
    _links: [OwnedFd; 2],
}

impl RedirectLosses {
    /// Starts to count for interfaces of the calling thread's network namespace, given by their indices
    /// ([`interface_index`](crate::interface_index)). An index that is listed twice counts at its first position.
    ///
    /// # Errors
    /// The system's: no privilege (CAP_BPF and CAP_PERFMON), or [`io::ErrorKind::Unsupported`] if the kernel has no
    /// type information or not these tracepoints. [`io::ErrorKind::InvalidInput`] for more than 256 interfaces.
    pub fn open(interfaces: &[u32]) -> io::Result<RedirectLosses> {
        if interfaces.len() > MAX_INTERFACES {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "more than 256 interfaces"));
        }
        let missing = |what| move || io::Error::new(io::ErrorKind::Unsupported, format!("the kernel has no {what}"));
        let types = KernelTypes::read().ok_or_else(missing("type information (CONFIG_DEBUG_INFO_BTF)"))?;
        let sent = types.tracepoint("xdp_devmap_xmit").ok_or_else(missing("tracepoint xdp_devmap_xmit"))?;
        let failed = types.tracepoint("xdp_redirect_err").ok_or_else(missing("tracepoint xdp_redirect_err"))?;
        let members =
            Members::find(&types).ok_or_else(missing("device with an index and a namespace with a cookie"))?;
        let socket = OwnedFd::from(UdpSocket::bind("0.0.0.0:0")?);
        let cookie: u64 = get_option(&socket, libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, 0)?;

        let counters = KernelRegion::new(REGION_BYTES)?;
        let program = |frames: &[u64], device, counter| {
            [frames, &find_device(&members, device, cookie), &count(interfaces, &counters, counter)].concat()
        };
        let links = [
            bpf::attach_at_tracepoint(&program(&drops(), 1, 0), sent)?,
            bpf::attach_at_tracepoint(&program(&failure(), 0, 1), failed)?,
        ];
        Ok(RedirectLosses { counters, interfaces: interfaces.len(), _links: links })
    }

    /// Returns the number of frames that were redirected to an interface and that its driver did not take: its queue
    /// was full, its other end was down, or they were too long for it. Frames that a program of the map entry dropped
    /// count too. `at` is the interface's position in the list given to [`open`](Self::open).
    ///
    /// Frames of programs that run in front of the stack instead of in the driver do not count: the stack sends them.
    ///
    /// # Panics
    /// Panics if there is no such position.
    pub fn lost(&self, at: usize) -> u64 {
        self.counter(at, 0)
    }

    /// Returns the number of frames that were received on an interface and whose redirect to another interface failed
    /// at once: that interface is down, does not accept redirects
    /// ([`accepts_redirects`](crate::accepts_redirects())), or has an MTU below the frame's length. Redirects to
    /// AF_XDP sockets do not count, as the ports that own the sockets count them.
    ///
    /// # Panics
    /// As [`lost`](Self::lost).
    pub fn failed(&self, at: usize) -> u64 {
        self.counter(at, 1)
    }

    fn counter(&self, at: usize, counter: usize) -> u64 {
        assert!(at < self.interfaces, "interface {at} of {}", self.interfaces);
        self.counters.words()[at * COUNTERS + counter].load(Ordering::Relaxed)
    }
}

/// Offsets of members in structs of the kernel, in bytes.
struct Members {
    /// The index in struct net_device.
    index: i16,
    /// The address of the namespace in struct net_device.
    namespace: i16,
    /// The cookie in struct net.
    cookie: i16,
}

impl Members {
    fn find(types: &KernelTypes) -> Option<Members> {
        let offset = |structure, member| i16::try_from(types.offset(structure, member)?).ok();
        Some(Members {
            index: offset("net_device", "ifindex")?,
            // The type of this member is a struct whose only member is the address.
            namespace: offset("net_device", "nd_net")?,
            cookie: offset("net", "net_cookie")?,
        })
    }
}

/// Returns the offset of an argument of a tracepoint in the context.
const fn argument(number: i16) -> i16 {
    number * 8
}

/// Generates code that loads the number of frames that a driver did not take into r6, and exits if it took all.
fn drops() -> [u64; 5] {
    [
        instruction(code::MOVE, 0, 0, 0, 0),
        instruction(code::LOAD_U64, 6, 1, argument(3), 0),
        instruction(code::MOVE_REGISTER_U32, 6, 6, 0, 0),
        instruction(code::JUMP_NOT_EQUAL, 6, 0, 1, 0),
        instruction(code::EXIT, 0, 0, 0, 0),
    ]
}

/// Generates code that loads 1, for one frame, into r6, and exits if the redirect was to a socket.
fn failure() -> [u64; 6] {
    [
        instruction(code::MOVE, 0, 0, 0, 0),
        instruction(code::MOVE, 6, 0, 0, 1),
        instruction(code::LOAD_U64, 2, 1, argument(4), 0),
        instruction(code::MOVE_REGISTER_U32, 2, 2, 0, 0),
        instruction(code::JUMP_NOT_EQUAL, 2, 0, 1, SOCKETS),
        instruction(code::EXIT, 0, 0, 0, 0),
    ]
}

/// Generates code that loads the index of the device in an argument into r2, and exits if there is none or it is in
/// another namespace.
fn find_device(members: &Members, device: i16, cookie: u64) -> [u64; 10] {
    let [low, high] = load_number(4, cookie);
    [
        instruction(code::LOAD_U64, 2, 1, argument(device), 0),
        instruction(code::JUMP_NOT_EQUAL, 2, 0, 1, 0),
        instruction(code::EXIT, 0, 0, 0, 0),
        instruction(code::LOAD_U64, 3, 2, members.namespace, 0),
        instruction(code::LOAD_U64, 3, 3, members.cookie, 0),
        low,
        high,
        instruction(code::JUMP_EQUAL_REGISTER, 3, 4, 1, 0),
        instruction(code::EXIT, 0, 0, 0, 0),
        instruction(code::LOAD_U32, 2, 2, members.index, 0),
    ]
}

/// Generates code that adds r6 to a counter of the interface whose index is in r2, and exits.
fn count(interfaces: &[u32], counters: &KernelRegion, counter: usize) -> Vec<u64> {
    let mut program = load_element(1, counters.descriptor()).to_vec();
    for (at, interface) in interfaces.iter().enumerate() {
        let offset = ((at * COUNTERS + counter) * size_of::<u64>()) as i16;
        program.extend([
            instruction(code::JUMP_NOT_EQUAL, 2, 0, 2, interface.cast_signed()),
            instruction(code::ATOMIC_ADD_U64, 1, 6, offset, 0),
            instruction(code::EXIT, 0, 0, 0, 0),
        ]);
    }
    program.push(instruction(code::EXIT, 0, 0, 0, 0));
    program
}
