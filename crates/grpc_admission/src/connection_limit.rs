//! Limits the number of connections, in total and for each client address. New connections replace old idle ones.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::oneshot;

/// The place of a connection, with its state.
pub struct Slot<T> {
    number: u64,
    /// Address of the client. For IPv6 it is the /64 network, because a client has all addresses of its network.
    pub peer: IpAddr,
    /// State that the server attached to the connection.
    pub state: T,
    has_called: AtomicBool,
    calls: AtomicUsize,
    close: Mutex<Option<oneshot::Sender<()>>>,
}

/// An active call, from its first to its last byte. Dropping it ends the call.
pub struct ActiveCall<T>(Arc<Slot<T>>);

impl<T> Slot<T> {
    /// Registers the begin of a call.
    pub fn begin_call(self: &Arc<Self>) -> ActiveCall<T> {
        self.has_called.store(true, Ordering::Relaxed);
        self.calls.fetch_add(1, Ordering::Relaxed);
        ActiveCall(self.clone())
    }

    /// Whether the connection has ever made a call.
    pub fn has_called(&self) -> bool {
        self.has_called.load(Ordering::Relaxed)
    }

    /// Orders the connection to close, which it does at its next operation.
    pub fn close(&self) {
        let sender = self.close.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(sender) = sender {
            let _ = sender.send(());
        }
    }

    fn is_idle(&self) -> bool {
        self.calls.load(Ordering::Relaxed) == 0
    }
}

impl<T> Drop for ActiveCall<T> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Creates the state of a connection from an address.
type NewState<T> = Box<dyn Fn(IpAddr) -> T + Send + Sync>;

/// The slots of all connections.
pub struct ConnectionLimit<T> {
    max: usize,
    max_per_peer: usize,
    occupied: Mutex<BTreeMap<u64, Arc<Slot<T>>>>,
    new_state: NewState<T>,
    last: AtomicU64,
    refused: AtomicU64,
}

impl<T> ConnectionLimit<T> {
    /// Limits the connections to `max` in total and `max_per_peer` for each client address ([`Slot::peer`]).
    /// `new_state` creates the state of a connection.
    pub fn new(max: usize, max_per_peer: usize, new_state: impl Fn(IpAddr) -> T + Send + Sync + 'static) -> Self {
        ConnectionLimit {
            max,
            max_per_peer,
            occupied: Mutex::default(),
            new_state: Box::new(new_state),
            last: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Returns the number of connections that were closed because of the limits: new ones, and idle ones that were
    /// replaced.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn occupied(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Slot<T>>>> {
        self.occupied.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Admits a connection. Returns its slot, and the receiver of the order to close it. At the limit the oldest
    /// connection without an active call is replaced, and those that have never made a call come first; at the limit of
    /// one address it is one of that address. Returns `None` if all of these have active calls.
    pub fn admit(&self, peer: IpAddr) -> Option<(Arc<Slot<T>>, oneshot::Receiver<()>)> {
        let peer = network(peer);
        let mut occupied = self.occupied();
        let of_peer = occupied.values().filter(|slot| slot.peer == peer).count();
        if of_peer >= self.max_per_peer || occupied.len() >= self.max {
            self.refused.fetch_add(1, Ordering::Relaxed);
            let is_replaceable =
                |slot: &&Arc<Slot<T>>| slot.is_idle() && (of_peer < self.max_per_peer || slot.peer == peer);
            let oldest = occupied.values().filter(is_replaceable).min_by_key(|slot| (slot.has_called(), slot.number));
            let oldest = oldest?.number;
            if let Some(slot) = occupied.remove(&oldest) {
                slot.close();
            }
        }
        let (close, closed) = oneshot::channel();
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let slot = Arc::new(Slot {
            number,
            peer,
            state: (self.new_state)(peer),
            has_called: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
            close: Mutex::new(Some(close)),
        });
        occupied.insert(number, slot.clone());
        Some((slot, closed))
    }

    /// Releases the slot of a connection that has ended.
    pub fn release(&self, slot: &Slot<T>) {
        self.occupied().remove(&slot.number);
    }
}

/// Reduces an address to the part that counts as one client.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn idle_connections_are_replaced_by_new_ones_and_busy_ones_are_not() {
        let limit = ConnectionLimit::new(3, 3, |_| ());
        let (busy, mut busy_closed) = limit.admit(ip("10.0.0.1")).expect("there is room");
        let _call = busy.begin_call();
        let (idle, mut idle_closed) = limit.admit(ip("10.0.0.2")).expect("there is room");
        drop(idle.begin_call());
        let (_silent, mut silent_closed) = limit.admit(ip("10.0.0.3")).expect("there is room");
        let (third, _third_closed) = limit.admit(ip("10.0.0.4")).expect("one is replaced");
        assert_eq!(silent_closed.try_recv(), Ok(()), "a connection without any call is replaced first");
        assert!(idle_closed.try_recv().is_err());
        let _call = third.begin_call();
        let (fourth, _fourth_closed) = limit.admit(ip("10.0.0.5")).expect("one is replaced");
        assert_eq!(idle_closed.try_recv(), Ok(()));
        let _call = fourth.begin_call();
        assert!(limit.admit(ip("10.0.0.6")).is_none(), "all are busy");
        assert!(busy_closed.try_recv().is_err());
        limit.release(&busy);
        assert!(limit.admit(ip("10.0.0.6")).is_some());
    }

    #[test]
    fn an_address_has_its_share_and_replaces_no_others() {
        let limit = ConnectionLimit::new(10, 2, |_| ());
        let (_other, mut other_closed) = limit.admit(ip("192.0.2.1")).expect("there is room");
        let (_first, mut first_closed) = limit.admit(ip("2001:db8::1")).expect("there is room");
        let (second, _second_closed) = limit.admit(ip("2001:db8::2")).expect("there is room");
        assert!(limit.admit(ip("2001:db8::3")).is_some(), "its own first one is replaced");
        assert_eq!(first_closed.try_recv(), Ok(()));
        assert!(other_closed.try_recv().is_err());
        let _call = second.begin_call();
        assert!(limit.admit(ip("::ffff:192.0.2.1")).is_some(), "it has one slot left");
    }
}
