//! A requester and a responder that are connected, and the table that is read.

use ports::HugeBytes;
use rdma::{
    AccessRights, FramePath, MemoryKey, ProtectionDomain, QpNumber, Requester, RequesterConfig, Responder,
    ResponderConfig,
};
use rng::SplitMix64;
use wire::checksum::Addresses;
use wire::ethernet::Address;
use wire::roce::Mtu;

/// Size of a cell in bytes.
pub const CELL: u64 = 32;
/// Size of a READ in bytes.
pub const READ: usize = 256;
/// Virtual address of the memory.
pub const BASE: u64 = 1 << 32;
const DOMAIN: ProtectionDomain = ProtectionDomain(1);

/// Both ends of a connection.
pub struct ConnectedEnds {
    pub requester: Requester,
    pub responder: Responder<HugeBytes>,
    /// The requester's queue pair.
    pub number: QpNumber,
    /// Key of the memory.
    pub key: MemoryKey,
}

/// Connects both ends, with a table of `entries` cells, whose bytes are the lowest ones of their addresses. Up to
/// `window` READs may be outstanding.
pub fn connect(rng: &mut SplitMix64, entries: u64, window: usize) -> ConnectedEnds {
    let mut memory = HugeBytes::new(entries as usize * CELL as usize + READ).expect("there is room");
    memory.as_mut().iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
    let max_reads = window as u16;
    let config = RequesterConfig { max_reads, queue_len: window, ..RequesterConfig::default() };
    let mut requester = Requester::new(config);
    let mut responder = Responder::new(ResponderConfig { max_reads, ..ResponderConfig::default() });
    let key = responder.register(rng, DOMAIN, AccessRights::READ, BASE, memory).expect("the first region");
    let addresses = Addresses::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let path = FramePath::new(Address([2; 6]), Address([4; 6]), addresses, Mtu::Mtu1024);
    let local = requester.open(rng, path).expect("the first queue pair");
    let remote = responder.accept(rng, DOMAIN, path.reversed(), local).expect("the first queue pair");
    requester.connect(local.number, remote).expect("it is open");
    ConnectedEnds { requester, responder, number: local.number, key }
}
