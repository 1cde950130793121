//! Who is connected: so many connections in all and from one address, of which old idle ones give way to new ones.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::oneshot;

/// A connection's place, with what else the connection has.
pub struct Seat<T> {
    number: u64,
    /// Where its client is. Of IPv6, the network of 64 bits: whoever has one address there has them all.
    pub peer: IpAddr,
    /// What the connection has besides.
    pub own: T,
    has_called: AtomicBool,
    calls: AtomicUsize,
    dismiss: Mutex<Option<oneshot::Sender<()>>>,
}

/// A call under way, from its first to its last byte.
pub struct Call<T>(Arc<Seat<T>>);

impl<T> Seat<T> {
    /// A call begins.
    pub fn call(self: &Arc<Self>) -> Call<T> {
        self.has_called.store(true, Ordering::Relaxed);
        self.calls.fetch_add(1, Ordering::Relaxed);
        Call(self.clone())
    }

    /// Whether any call has begun, ever.
    pub fn has_called(&self) -> bool {
        self.has_called.load(Ordering::Relaxed)
    }

    /// Closes the connection soon.
    pub fn dismiss(&self) {
        let sender = self.dismiss.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(sender) = sender {
            let _ = sender.send(());
        }
    }

    fn is_idle(&self) -> bool {
        self.calls.load(Ordering::Relaxed) == 0
    }
}

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a connection from an address has besides its place.
type Own<T> = Box<dyn Fn(IpAddr) -> T + Send + Sync>;

/// All places.
pub struct Seats<T> {
    max: usize,
    max_a_peer: usize,
    taken: Mutex<BTreeMap<u64, Arc<Seat<T>>>>,
    own: Own<T>,
    last: AtomicU64,
    refused: AtomicU64,
}

impl<T> Seats<T> {
    /// So many places, and so many for one address (see [`Seat::peer`]). `own` makes what a connection has besides.
    pub fn new(max: usize, max_a_peer: usize, own: impl Fn(IpAddr) -> T + Send + Sync + 'static) -> Self {
        Seats {
            max,
            max_a_peer,
            taken: Mutex::default(),
            own: Box::new(own),
            last: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Connections that were closed because there were too many: new ones, or idle ones that gave way to them.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Seat<T>>>> {
        self.taken.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// A place for a connection, and what tells it that it has to go. Where there is none, the oldest connection without
    /// a call under way gives way, one that has never called before others: of the same address if that has its share.
    /// `None` if all others are busy.
    pub fn take(&self, peer: IpAddr) -> Option<(Arc<Seat<T>>, oneshot::Receiver<()>)> {
        let peer = network(peer);
        let mut taken = self.taken();
        let of_peer = taken.values().filter(|seat| seat.peer == peer).count();
        if of_peer >= self.max_a_peer || taken.len() >= self.max {
            self.refused.fetch_add(1, Ordering::Relaxed);
            let may_go = |seat: &&Arc<Seat<T>>| seat.is_idle() && (of_peer < self.max_a_peer || seat.peer == peer);
            let oldest = taken.values().filter(may_go).min_by_key(|seat| (seat.has_called(), seat.number));
            let oldest = oldest?.number;
            if let Some(seat) = taken.remove(&oldest) {
                seat.dismiss();
            }
        }
        let (dismiss, dismissed) = oneshot::channel();
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let seat = Arc::new(Seat {
            number,
            peer,
            own: (self.own)(peer),
            has_called: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
            dismiss: Mutex::new(Some(dismiss)),
        });
        taken.insert(number, seat.clone());
        Some((seat, dismissed))
    }

    /// The connection has ended.
    pub fn leave(&self, seat: &Seat<T>) {
        self.taken().remove(&seat.number);
    }
}

/// What counts as one address.
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
    fn idle_connections_give_way_to_new_ones_and_busy_ones_do_not() {
        let seats = Seats::new(3, 3, |_| ());
        let (busy, mut busy_told) = seats.take(ip("10.0.0.1")).expect("there is room");
        let _call = busy.call();
        let (idle, mut idle_told) = seats.take(ip("10.0.0.2")).expect("there is room");
        drop(idle.call());
        let (_silent, mut silent_told) = seats.take(ip("10.0.0.3")).expect("there is room");
        let (third, _third_told) = seats.take(ip("10.0.0.4")).expect("one gives way");
        assert_eq!(silent_told.try_recv(), Ok(()), "who never called goes before who did");
        assert!(idle_told.try_recv().is_err());
        let _call = third.call();
        let (fourth, _fourth_told) = seats.take(ip("10.0.0.5")).expect("one gives way");
        assert_eq!(idle_told.try_recv(), Ok(()));
        let _call = fourth.call();
        assert!(seats.take(ip("10.0.0.6")).is_none(), "all are busy");
        assert!(busy_told.try_recv().is_err());
        seats.leave(&busy);
        assert!(seats.take(ip("10.0.0.6")).is_some());
    }

    #[test]
    fn an_address_has_its_share_and_takes_no_others_places() {
        let seats = Seats::new(10, 2, |_| ());
        let (_other, mut other_told) = seats.take(ip("192.0.2.1")).expect("there is room");
        let (_first, mut first_told) = seats.take(ip("2001:db8::1")).expect("there is room");
        let (second, _second_told) = seats.take(ip("2001:db8::2")).expect("there is room");
        assert!(seats.take(ip("2001:db8::3")).is_some(), "its own first one goes");
        assert_eq!(first_told.try_recv(), Ok(()));
        assert!(other_told.try_recv().is_err());
        let _call = second.call();
        assert!(seats.take(ip("::ffff:192.0.2.1")).is_some(), "it has one place more");
    }
}
