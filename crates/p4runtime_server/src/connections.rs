//! Holds the state of a connection: its permits for reads and its memory pools.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use tokio::sync::Semaphore;

use crate::caller::Caller;
use crate::memory_budget::MemoryPools;
use crate::status::Refusal;

/// Maximum number of concurrent reads of one connection. Others wait.
pub(crate) const READS_A_CONNECTION: usize = 8;

/// The state of a connection.
pub(crate) struct ConnectionState {
    /// Permits for reads.
    pub(crate) reads: Arc<Semaphore>,
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
    let shares = AddressPools::default();
    ConnectionSlots::new(max, max_a_peer, move |peer| ConnectionState {
        reads: Arc::new(Semaphore::new(READS_A_CONNECTION)),
        share: shares.of(peer),
        caller: OnceLock::new(),
    })
}

/// The memory pools of client addresses. An address keeps its pools while anything of it is in use.
#[derive(Default)]
struct AddressPools(Mutex<BTreeMap<IpAddr, Weak<MemoryPools>>>);

impl AddressPools {
    fn of(&self, peer: IpAddr) -> Arc<MemoryPools> {
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(&peer).and_then(Weak::upgrade) {
            return share;
        }
        shares.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(MemoryPools::share());
        shares.insert(peer, Arc::downgrade(&share));
        share
    }
}
