//! Opens AF_XDP ports: attaching the program, creating the sockets, sharing one memory.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use super::program::{Redirect, again_while_busy};
use super::queue::{Rings, XdpQueue};
use super::{NoXdp, XdpPort, XdpSettings};
use crate::PortError;
use crate::bpf::Attach;
use crate::frame::Memory;
use crate::interface::Interface;
use crate::socket::{get_option, open as open_socket, promiscuous, set_option, set_queue};

/// Number of entries in each ring.
const RING_LEN: u32 = 2048;
/// Number of chunks per queue: full rings of both directions, and some in the switch.
const CHUNKS: u32 = 2 * RING_LEN + 1024;
/// Number of times the memory is halved when the limit on locked memory is too low.
const HALVINGS: u32 = 4;
/// Headroom in bytes that the kernel leaves in front of a received frame (`XDP_PACKET_HEADROOM`).
const HEADROOM: usize = 256;
/// Size of an Ethernet header and two VLAN tags.
const HEADERS: usize = 22;
/// Maximum MTU: frames of 10,240 bytes, which covers jumbo frames of all kinds. Longer frames take tens of buffers
/// each, and a ring would hold only a few dozen such frames.
pub(super) const MAX_MTU: usize = 10_240 - HEADERS;
/// Maximum number of bytes in transit in the kernel per socket.
const QUEUE_BYTES: c_int = 8 << 20;
/// Number of frames that a call sends in copy mode (`XDP_MAX_TX_SKB_BUDGET`, Linux 6.17).
const MAX_TX_SKB_BUDGET: c_int = 9;

/// The state of an interface before opening.
struct FoundInterface<'a> {
    name: &'a str,
    index: c_int,
    mtu: usize,
    /// Number of receive queues, and number of those that can also send.
    queues: u32,
    senders: u32,
    driver: String,
    /// A packet socket, used for queries and to keep the interface promiscuous.
    control: OwnedFd,
}

/// A memory shared by ports, once a socket has registered it.
struct SharedMemory {
    memory: Arc<Memory>,
    owner: OwnedFd,
    ring_len: u32,
}

/// Opens interfaces whose frames share one memory, so that forwarding between them copies nothing in this process. Each
/// has its own result.
pub(crate) fn open_all(interfaces: &[(&str, XdpSettings)]) -> Vec<Result<XdpPort, PortError>> {
    let found: Vec<_> = interfaces.iter().map(|(name, _)| look(name)).collect();
    let usable = || found.iter().flatten().filter(|found| found.mtu <= MAX_MTU);
    let queues: u32 = usable().map(|found| found.queues).sum();
    let longest = usable().map(|found| found.mtu + HEADERS).max().unwrap_or(0);
    let chunk_len = if longest + HEADROOM <= 2048 { 2048 } else { 4096 };
    let mut shared = None;
    let mut open = |found: Result<FoundInterface<'_>, PortError>, settings: &XdpSettings| {
        let found = found?;
        let name = found.name;
        let refused = |why| PortError::NoXdp { interface: name.to_owned(), why };
        found.open(settings, &mut shared, queues, chunk_len).map_err(refused)
    };
    found.into_iter().zip(interfaces).map(|(found, (_, settings))| open(found, settings)).collect()
}

fn look(name: &str) -> Result<FoundInterface<'_>, PortError> {
    let failed = |what| move |source| PortError::system(what, name, "cap_net_raw", source);
    let control = open_socket(libc::AF_PACKET).map_err(|source| PortError::NoXdp {
        interface: name.to_owned(),
        why: NoXdp::at("opening a packet socket")(source),
    })?;
    let interface = Interface::new(control.as_fd(), name);
    let index = interface.index().map_err(failed("looking up the interface"))?;
    let mtu = interface.mtu().map_err(failed("reading the MTU"))?;
    let hardware_type = interface.hardware_type().map_err(failed("reading the hardware type"))?;
    if !crate::interface::ETHERNET_TYPES.contains(&hardware_type) {
        return Err(PortError::NotEthernet { interface: name.to_owned(), hardware_type });
    }
    let (queues, senders) = interface.queues();
    let driver = interface.driver().unwrap_or_default();
    Ok(FoundInterface { name, index, mtu, queues, senders, driver, control })
}

impl FoundInterface<'_> {
    fn open(
        self,
        settings: &XdpSettings,
        shared: &mut Option<SharedMemory>,
        queues: u32,
        chunk_len: usize,
    ) -> Result<XdpPort, NoXdp> {
        // Attached before the MTU check, so that a missing permission is reported first. Dropping `redirect` detaches
        // it.
        let redirect = Redirect::attach(self.index, self.queues, settings.generic)?;
        if self.mtu > MAX_MTU {
            return Err(NoXdp::LongFrames { mtu: self.mtu, max_mtu: MAX_MTU });
        }
        let is_native = redirect.attach == Attach::Native;
        let binding = Binding {
            index: self.index,
            // Receive offload joins packets before a program in the receive path runs, and stacks pass on whole trains.
            several_buffers: self.mtu + HEADERS + HEADROOM > 4096 || !is_native,
            must_copy: settings.copy || !is_native,
            chunk_len,
            chunks: queues * CHUNKS,
        };
        let (mut bound, mut note) = (Vec::new(), None);
        for queue in 0..self.queues {
            let made = binding.bind(queue, shared).map_err(|error| error.into_no_xdp(self.mtu))?;
            redirect.insert(queue, &made.socket)?;
            let refused = settings.busy_poll_us.map(|us| busy_poll(&made.socket, us).err());
            let is_polled = matches!(refused, Some(None));
            note = note.or(refused.flatten().map(|error| no_busy_poll(self.name, &error)));
            bound.push(XdpQueue::new(queue, made.socket, made.memory, made.rings, (made.zero_copy, is_polled)));
        }
        promiscuous(&self.control, self.index).map_err(NoXdp::at("enabling promiscuous mode"))?;
        let epoll =
            if bound.len() > 1 { Some(epoll(&bound).map_err(NoXdp::at("creating an epoll instance"))?) } else { None };
        Ok(XdpPort {
            name: self.name.to_owned(),
            index: self.index,
            mtu: self.mtu,
            has_local_senders: !is_native || matches!(self.driver.as_str(), "veth" | "tun"),
            is_native,
            redirect: Arc::new(redirect),
            queues: bound,
            senders: self.senders as usize,
            epoll,
            control: Arc::new(self.control),
            next: 0,
            idle: 0,
            is_down: false,
            scratch: Vec::new(),
            stats: crate::PortStats::default(),
            note,
        })
    }
}

/// Parameters for binding the sockets of an interface.
struct Binding {
    index: c_int,
    several_buffers: bool,
    must_copy: bool,
    chunk_len: usize,
    chunks: u32,
}

/// The parts of a bound socket.
struct Bound {
    socket: OwnedFd,
    memory: Arc<Memory>,
    rings: Rings,
    zero_copy: bool,
}

/// The step at which binding failed.
enum BindError {
    No(NoXdp),
    /// Long frames were requested but are not supported.
    Jumbo(io::Error),
}

impl From<NoXdp> for BindError {
    fn from(why: NoXdp) -> Self {
        BindError::No(why)
    }
}

impl BindError {
    fn into_no_xdp(self, mtu: usize) -> NoXdp {
        match self {
            BindError::No(why) => why,
            BindError::Jumbo(source) => NoXdp::Jumbo { mtu, source },
        }
    }
}

impl Binding {
    /// Binds a socket to a queue, on the shared memory if there is one that the device accepts, else on a new one.
    fn bind(&self, queue: u32, shared: &mut Option<SharedMemory>) -> Result<Bound, BindError> {
        if let Some(with) = shared.as_ref().filter(|with| with.memory.chunk_len() >= self.chunk_len) {
            let socket = self.socket()?;
            let rings = Rings::map(&socket, with.ring_len).map_err(NoXdp::at("creating rings"))?;
            // The flags are those of the socket that registered the memory; no others may be given.
            let bound = self.bind_to(&socket, queue, libc::XDP_SHARED_UMEM, with.owner.as_raw_fd());
            match bound {
                Ok(()) => return Ok(self.bound(socket, Arc::clone(&with.memory), rings)),
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    return Err(NoXdp::QueueInUse { queue }.into());
                }
                // The device does not accept this memory, because of zero copy or several buffers.
                Err(_) => {}
            }
        }
        let (made, own) = self.bind_first(queue)?;
        shared.get_or_insert(own);
        Ok(made)
    }

    /// Registers a memory with a new socket and binds it.
    fn bind_first(&self, queue: u32) -> Result<(Bound, SharedMemory), BindError> {
        let copy = if self.must_copy { libc::XDP_COPY } else { 0 };
        let several = if self.several_buffers { libc::XDP_USE_SG } else { 0 };
        let (socket, memory, ring_len) = self.register()?;
        let rings = Rings::map(&socket, ring_len).map_err(NoXdp::at("creating rings"))?;
        // Without XDP_COPY the kernel tries zero copy and falls back to copying.
        match self.bind_to(&socket, queue, libc::XDP_USE_NEED_WAKEUP | copy | several, 0) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => return Err(NoXdp::QueueInUse { queue }.into()),
            Err(error) if self.several_buffers => return Err(BindError::Jumbo(error)),
            Err(error) => return Err(NoXdp::at("binding an AF_XDP socket")(error).into()),
        }
        let owner = socket.try_clone().map_err(NoXdp::at("duplicating an AF_XDP socket"))?;
        let shared = SharedMemory { memory: Arc::clone(&memory), owner, ring_len };
        Ok((self.bound(socket, memory, rings), shared))
    }

    /// Creates a socket with its own memory, as large as the limit on locked memory allows.
    fn register(&self) -> Result<(OwnedFd, Arc<Memory>, u32), NoXdp> {
        for halvings in 0..=HALVINGS {
            let socket = self.socket()?;
            let memory =
                Memory::new(self.chunks >> halvings, self.chunk_len).map_err(NoXdp::at("allocating frame memory"))?;
            let request = libc::xdp_umem_reg {
                addr: memory.base().as_ptr() as u64,
                len: memory.len_bytes() as u64,
                chunk_size: self.chunk_len as u32,
                headroom: 0,
                flags: 0,
                tx_metadata_len: 0,
            };
            match set_option(&socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &request) {
                Ok(()) => return Ok((socket, memory, RING_LEN >> halvings)),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                Err(error) => return Err(NoXdp::at("registering the frame memory")(error)),
            }
        }
        Err(NoXdp::LockedMemory { kib: ((self.chunks >> HALVINGS) as usize * self.chunk_len) >> 10 })
    }

    fn socket(&self) -> Result<OwnedFd, NoXdp> {
        let socket = open_socket(libc::AF_XDP).map_err(NoXdp::at("opening an AF_XDP socket"))?;
        set_queue(&socket, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, QUEUE_BYTES);
        Ok(socket)
    }

    fn bind_to(&self, socket: &OwnedFd, queue: u32, flags: u16, shared_with: c_int) -> io::Result<()> {
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: flags,
            sxdp_ifindex: self.index as u32,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: shared_with as u32,
        };
        again_while_busy(|| {
            // SAFETY: the address lives through the call and has the given length.
            let result = unsafe {
                let len = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
                libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len)
            };
            if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        })
    }

    fn bound(&self, socket: OwnedFd, memory: Arc<Memory>, rings: Rings) -> Bound {
        let options = get_option(&socket, libc::SOL_XDP, libc::XDP_OPTIONS, libc::xdp_options { flags: 0 });
        let zero_copy = options.is_ok_and(|options| options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0);
        // Kernels before 6.17 send 32 frames per call regardless.
        let _ = set_option(&socket, libc::SOL_XDP, MAX_TX_SKB_BUDGET, &RING_LEN);
        Bound { socket, memory, rings, zero_copy }
    }
}

/// Makes receptions on the socket poll the device for this many microseconds before they wait for an interrupt.
fn busy_poll(socket: &OwnedFd, us: u32) -> io::Result<()> {
    /// Maximum number of frames per poll.
    const BUDGET: c_int = 64;
    let us = c_int::try_from(us).unwrap_or(c_int::MAX);
    set_option(socket, libc::SOL_SOCKET, libc::SO_PREFER_BUSY_POLL, &1)?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, &us)?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL_BUDGET, &BUDGET)
}

/// Returns the note for a user who requested polling of a device that cannot be polled.
fn no_busy_poll(interface: &str, error: &io::Error) -> String {
    let remedy = match error.raw_os_error() {
        Some(libc::EPERM) => "grant the program cap_net_admin",
        Some(libc::ENOPROTOOPT) => "this requires Linux 5.11 with CONFIG_NET_RX_BUSY_POLL",
        _ => "omit busy_poll to suppress this note",
    };
    format!("`{interface}` uses interrupts instead of busy polling: the kernel rejected busy_poll ({error}); {remedy}")
}

/// Creates a descriptor that is readable when one of the queues is.
pub(super) fn epoll(queues: &[XdpQueue]) -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;
    // SAFETY: no pointers are involved.
    let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    if epoll < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and has no other owner.
    let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
    for queue in queues {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        let socket = queue.socket.as_raw_fd();
        // SAFETY: the event lives through the call.
        if unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, socket, &raw mut event) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(epoll)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_busy_poll_is_reported_with_a_remedy() {
        // A pipe is not a socket, and rejects every option.
        let (pipe, _) = io::pipe().unwrap();
        let error = busy_poll(&pipe.into(), 20).unwrap_err();
        let note = no_busy_poll("eth1", &error);
        assert!(
            note.starts_with("`eth1` uses interrupts instead of busy polling")
                && note.contains("Socket operation on non-socket"),
            "{note}"
        );
        let note = no_busy_poll("eth1", &io::Error::from_raw_os_error(libc::EPERM));
        assert!(note.ends_with("grant the program cap_net_admin"), "{note}");
    }
}
