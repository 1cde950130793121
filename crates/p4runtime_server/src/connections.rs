//! Holds the state of a connection, and what all connections from its address share: permits for reads and memory.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use tokio::sync::Semaphore;

use crate::caller::Caller;
use crate::memory_budget::MemoryPools;
use crate::service::READS;
use crate::status::Refusal;

/// Maximum number of concurrent reads of one connection. Others wait.
pub(crate) const READS_A_CONNECTION: usize = 8;
/// Maximum number of concurrent reads of one address: half of the server's, so that other addresses have the rest.
pub(crate) const READS_A_PEER: usize = READS / 2;

/// The state of a connection.
pub(crate) struct ConnectionState {
    /// Permits for reads.
    pub(crate) reads: Arc<Semaphore>,
    /// Permits for reads of all connections from its address.
    pub(crate) reads_of_peer: Arc<Semaphore>,
    /// Memory for messages, shared by all connections from its address.
    pub(crate) share: Arc<MemoryPools>,
    /// The client, once a call has asked for it.
    pub(crate) caller: OnceLock<Result<Caller, Refusal>>,
}

/// An admitted connection.
pub(crate) type ConnectionSlot = grpc_admission::Slot<ConnectionState>;
/// A call in progress.
pub(crate) type ActiveCall = grpc_admission::ActiveCall<ConnectionState>;
/// All admitted connections.
pub(crate) type ConnectionSlots = grpc_admission::ConnectionLimit<ConnectionState>;

/// Creates a table of `max` connections, at most `max_a_peer` of them from one address.
pub(crate) fn connection_slots(max: usize, max_a_peer: usize) -> ConnectionSlots {
    let shares = AddressShares::default();
    ConnectionSlots::new(max, max_a_peer, move |peer| {
        let (share, reads_of_peer) = shares.of(peer);
        let reads = Arc::new(Semaphore::new(READS_A_CONNECTION));
        ConnectionState { reads, reads_of_peer, share, caller: OnceLock::new() }
    })
}

/// What the connections of one address share.
type AddressShare = (Weak<MemoryPools>, Weak<Semaphore>);

/// The memory pools and the permits for reads of client addresses. An address keeps each while anything of it is in
/// use, also after its connections are closed.
#[derive(Default)]
struct AddressShares(Mutex<BTreeMap<IpAddr, AddressShare>>);

impl AddressShares {
    fn of(&self, peer: IpAddr) -> (Arc<MemoryPools>, Arc<Semaphore>) {
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shares.retain(|_, (memory, reads)| memory.strong_count() + reads.strong_count() > 0);
        let (memory, reads) = shares.entry(peer).or_default();
        let kept = (memory.upgrade(), reads.upgrade());
        let share = (
            kept.0.unwrap_or_else(|| Arc::new(MemoryPools::share())),
            kept.1.unwrap_or_else(|| Arc::new(Semaphore::new(READS_A_PEER))),
        );
        (*memory, *reads) = (Arc::downgrade(&share.0), Arc::downgrade(&share.1));
        share
    }
}
