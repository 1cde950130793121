//! What a connection has besides its place.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Semaphore;

use crate::budget::Rooms;

/// Reads that are under way on one connection; others wait.
pub(crate) const READS_A_CONNECTION: usize = 8;

/// What a connection has.
pub(crate) struct Own {
    /// Room for reads.
    pub(crate) reads: Arc<Semaphore>,
    /// Room for messages, which all connections from its address share.
    pub(crate) share: Arc<Rooms>,
}

/// A connection's place.
pub(crate) type Seat = grpc_admission::Seat<Own>;
/// A call under way.
pub(crate) type Call = grpc_admission::Call<Own>;
/// All places.
pub(crate) type Seats = grpc_admission::Seats<Own>;

/// So many places, and so many for one address.
pub(crate) fn seats(max: usize, max_a_peer: usize) -> Seats {
    let shares = Shares::default();
    Seats::new(max, max_a_peer, move |peer| Own {
        reads: Arc::new(Semaphore::new(READS_A_CONNECTION)),
        share: shares.of(peer),
    })
}

/// What addresses have of the memory for messages, as long as anything of theirs is there.
#[derive(Default)]
struct Shares(Mutex<BTreeMap<IpAddr, Weak<Rooms>>>);

impl Shares {
    fn of(&self, peer: IpAddr) -> Arc<Rooms> {
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(&peer).and_then(Weak::upgrade) {
            return share;
        }
        shares.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Rooms::share());
        shares.insert(peer, Arc::downgrade(&share));
        share
    }
}
