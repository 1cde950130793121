//! A memory server: lends memory to switches, and executes their requests.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use switch::Time;
use wire::checksum::Addresses;
use wire::ethernet;

use crate::endpoint::QpNumber;
use crate::frame::Receipt;
use crate::memory::{AccessRights, MemoryKey, ProtectionDomain};
use crate::path::FramePath;
use crate::random::NumberSource;
use crate::responder::{MAX_BATCH, Responder, ResponderConfig, ResponderCounts};
use crate::setup::{self, ConnectRefusal, ConnectReply, ConnectRequest, LEASE_NS, MemoryGrant, SetupFrame};
use crate::sink::FrameSink;

/// Addresses and limits of a memory server.
#[derive(Clone, Copy, Debug)]
pub struct MemoryNodeConfig {
    /// Its Ethernet address.
    pub mac: ethernet::Address,
    /// Its IP address.
    pub address: Ipv4Addr,
    /// Memory that it lends to all switches together, in bytes.
    pub bytes: u64,
    /// Maximum number of connections.
    pub connections: usize,
}

/// Memory that is lent.
#[derive(Debug)]
struct Loan {
    /// Random number, which a request that replaces the loan must name.
    id: u64,
    nonce: u64,
    bytes: u64,
    number: QpNumber,
    key: MemoryKey,
    reply: ConnectReply,
    /// Time of the last request with its nonce.
    renewed: Time,
}

/// A function that allocates zeroed memory of a size in bytes; `None` if there is not enough.
pub type AllocateFn<B> = fn(usize) -> Option<B>;

/// Maximum number of outstanding READs of a connection. RDMA cards allow 16, because they keep state for each. This
/// server keeps none, and a longer queue hides the time until its process is scheduled.
pub const MAX_READS: u16 = 256;

/// Maximum length of a READ or WRITE, in bytes. Tables need less, and longer responses would let a sender of
/// short requests flood the network of a server.
const MAX_MESSAGE: u32 = 1 << 16;

/// A memory server. A new one has never lent any memory, and what it lends is zeroed. `B` is memory, by default on the
/// heap.
#[derive(Debug)]
pub struct MemoryNode<B = Vec<u8>> {
    config: MemoryNodeConfig,
    allocate: AllocateFn<B>,
    responder: Responder<B>,
    /// By the address of the switch and its slot.
    loans: BTreeMap<(Ipv4Addr, u32), Loan>,
    lent_bytes: u64,
    refused: u64,
}

impl MemoryNode {
    /// Creates a server that lends nothing yet.
    pub fn new(config: MemoryNodeConfig) -> MemoryNode {
        MemoryNode::with_memory(config, on_heap)
    }
}

/// Returns zeroed memory on the heap. It takes pages as they are used.
fn on_heap(size: usize) -> Option<Vec<u8>> {
    // Its allocation cannot fail without ending the process, so that the size is tried first.
    Vec::<u8>::new().try_reserve_exact(size).ok()?;
    Some(vec![0; size])
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> MemoryNode<B> {
    /// Creates a server that lends nothing yet, and gets what it lends from `allocate`.
    pub fn with_memory(config: MemoryNodeConfig, allocate: AllocateFn<B>) -> MemoryNode<B> {
        let responder = Responder::new(ResponderConfig { max_reads: MAX_READS, max_message: MAX_MESSAGE });
        MemoryNode { config, allocate, responder, loans: BTreeMap::new(), lent_bytes: 0, refused: 0 }
    }

    /// Returns the number of connections, and the memory that they have in bytes.
    pub fn lent(&self) -> (usize, u64) {
        (self.loans.len(), self.lent_bytes)
    }

    /// Returns the number of refused requests for memory.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the counts of executed requests.
    pub fn counts(&self) -> &ResponderCounts {
        self.responder.counts()
    }

    /// Uses up to [`MAX_BATCH`] frames, and writes answers to `sink`. Frames for others are ignored.
    ///
    /// # Panics
    /// Panics if there are more frames.
    pub fn on_frames(&mut self, now: Time, rng: &mut dyn NumberSource, frames: &[&[u8]], sink: &mut impl FrameSink) {
        let mut others = [false; MAX_BATCH];
        self.responder.on_frames(frames, sink, |index, receipt| others[index] = receipt == Receipt::NotOurs);
        // The switch of a queue pair that failed opens another connection, which closes this one.
        while self.responder.next_failure().is_some() {}
        for (frame, _) in frames.iter().zip(others).filter(|(_, is_other)| *is_other) {
            self.on_setup_frame(now, rng, frame, sink);
        }
    }

    /// Processes a frame that is not for one of its queue pairs.
    fn on_setup_frame(&mut self, now: Time, rng: &mut dyn NumberSource, frame: &[u8], sink: &mut impl FrameSink) {
        let is_ours = |it: &SetupFrame<'_>| it.destination == self.config.address && self.is_sender(it);
        let Some(received) = SetupFrame::parse(frame).filter(is_ours) else { return };
        let Some(request) = ConnectRequest::parse(received.payload) else { return };
        let reply = self.connect(now, rng, &received, &request);
        let MemoryNodeConfig { mac, address, .. } = self.config;
        let ethernet = ethernet::Repr { destination: received.ethernet_source, source: mac, ethertype: ethernet::IPV4 };
        let frame = setup::frame(ethernet, address, received.source, &reply.to_bytes());
        // A reply without room is lost, and asked for again.
        if let Some(room) = sink.room(frame.len()) {
            room[..frame.len()].copy_from_slice(&frame);
            sink.commit(frame.len());
        }
    }

    /// Whether the addresses of a frame can be those of a switch. Answers to others would reach many hosts, or this
    /// one.
    fn is_sender(&self, frame: &SetupFrame<'_>) -> bool {
        let (mac, address) = (frame.ethernet_source, frame.source);
        let is_unicast_mac = !mac.is_multicast() && mac.0 != [0; 6];
        let is_group = address.is_multicast() || address.is_broadcast();
        let is_host = !is_group && !address.is_unspecified() && !address.is_loopback();
        is_unicast_mac && is_host && mac != self.config.mac && address != self.config.address
    }

    fn connect(
        &mut self,
        now: Time,
        rng: &mut dyn NumberSource,
        from: &SetupFrame<'_>,
        request: &ConnectRequest,
    ) -> ConnectReply {
        let owner = (from.source, request.slot);
        if request.bytes == 0 {
            // Nobody waits for the reply to a release. It concerns no loan but that of its own nonce.
            if self.loans.get(&owner).is_some_and(|known| known.nonce == request.nonce) {
                self.release(owner);
            }
            return ConnectReply { nonce: request.nonce, result: Err(ConnectRefusal::NoMemory) };
        }
        let known = self.loans.get_mut(&owner);
        if let Some(known) = known.filter(|known| known.nonce == request.nonce) {
            known.renewed = now;
            return known.reply;
        }
        let known = self.loans.get(&owner);
        if let Some(known) = known.filter(|known| known.id != request.replaces) {
            return ConnectReply { nonce: request.nonce, result: Err(ConnectRefusal::Occupied { loan: known.id }) };
        }
        // A request that is refused leaves the connection that it would replace.
        let own = known.map_or((0, 0), |known| (1, known.bytes));
        if self.refusal(own, request).is_some() {
            self.reclaim(now, owner);
        }
        let result = match self.refusal(own, request) {
            Some(refusal) => Err(refusal),
            None => {
                self.release(owner);
                self.lend(rng, from, request)
            }
        };
        self.refused += u64::from(result.is_err());
        let reply = ConnectReply { nonce: request.nonce, result };
        if let Ok(MemoryGrant { endpoint, key }) = result {
            let (id, nonce, bytes) = (rng.next_u64(), request.nonce, request.bytes);
            let loan = Loan { id, nonce, bytes, number: endpoint.number, key, reply, renewed: now };
            self.loans.insert(owner, loan);
            self.lent_bytes += request.bytes;
        }
        reply
    }

    /// Returns the reason why a request cannot be met, in place of this number of connections with their bytes.
    fn refusal(&self, (connections, bytes): (usize, u64), request: &ConnectRequest) -> Option<ConnectRefusal> {
        if self.loans.len() - connections >= self.config.connections {
            return Some(ConnectRefusal::TooMany);
        }
        let has_room = (1..=self.config.bytes - (self.lent_bytes - bytes)).contains(&request.bytes);
        (!has_room).then_some(ConnectRefusal::NoMemory)
    }

    fn lend(
        &mut self,
        rng: &mut dyn NumberSource,
        from: &SetupFrame<'_>,
        request: &ConnectRequest,
    ) -> Result<MemoryGrant, ConnectRefusal> {
        let size = usize::try_from(request.bytes).map_err(|_| ConnectRefusal::NoMemory)?;
        let memory = (self.allocate)(size).ok_or(ConnectRefusal::NoMemory)?;
        // Each connection has its own protection domain, so no other connection has access to its memory.
        let domain = ProtectionDomain(rng.next_u64() as u32);
        let rights = AccessRights { can_swap: false, ..AccessRights::ALL };
        let key = self.responder.register(rng, domain, rights, 0, memory);
        let key = key.map_err(|_| ConnectRefusal::TooMany)?;
        let addresses = Addresses::V4(self.config.address, from.source);
        let path = FramePath::new(self.config.mac, from.ethernet_source, addresses, request.mtu);
        match self.responder.accept(rng, domain, path, request.endpoint) {
            Ok(endpoint) => Ok(MemoryGrant { endpoint, key }),
            Err(_) => {
                self.responder.deregister(key);
                Err(ConnectRefusal::TooMany)
            }
        }
    }

    /// Closes every connection whose lease has expired, except that of `except`.
    fn reclaim(&mut self, now: Time, except: (Ipv4Addr, u32)) {
        let is_over = |loan: &Loan| loan.renewed.after_ns(LEASE_NS) <= now;
        let over = self.loans.iter().filter(|(owner, loan)| **owner != except && is_over(loan));
        let over: Vec<_> = over.map(|(owner, _)| *owner).collect();
        over.into_iter().for_each(|owner| self.release(owner));
    }

    /// Changes the memory of all connections, as a fault of the server would. For tests.
    pub fn change_memory(&mut self, mut change: impl FnMut(&mut [u8])) {
        for loan in self.loans.values() {
            self.responder.memory_mut(loan.key).into_iter().for_each(|memory| change(memory.as_mut()));
        }
    }

    fn release(&mut self, owner: (Ipv4Addr, u32)) {
        if let Some(loan) = self.loans.remove(&owner) {
            self.responder.close(loan.number);
            self.responder.deregister(loan.key);
            self.lent_bytes -= loan.bytes;
        }
    }
}
