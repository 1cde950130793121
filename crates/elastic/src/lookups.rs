//! Holds packets while their lookups are in progress: a miss-status holding register for keys (Kroft, 1981).
//!
//! The first packet of a key begins a lookup, later ones join it. All of them get its result, in the order of their
//! arrival. A packet joins as long as the lookup is in progress, even if the switch could answer by now: it would
//! overtake the others. Numbers of lookups and packets are bounded.

use hashbrown::HashTable;
use smallvec::SmallVec;

use crate::keys::ProbeKey;
use crate::slots::SlotArena;

/// Bounds on what waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookupLimits {
    /// Lookups that are in progress at the same time.
    pub lookups: usize,
    /// Packets that wait, over all lookups.
    pub packets: usize,
}

impl Default for LookupLimits {
    fn default() -> Self {
        LookupLimits { lookups: 4096, packets: 16_384 }
    }
}

/// Numbers of packets. Each packet that waited was answered, or drained, or still waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookupCounts {
    /// Packets that began a lookup.
    pub begun: u64,
    /// Packets that joined one.
    pub coalesced: u64,
    /// Packets that were refused because a limit was reached.
    pub refused: u64,
    /// Packets that left with the result of their lookup.
    pub released: u64,
}

/// Identifies a lookup while it is in progress, and is not reused soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LookupId(pub u64);

/// Result of asking whether a packet can wait.
#[derive(Debug, PartialEq, Eq)]
pub enum JoinOutcome<P> {
    /// The packet waits after others of its key.
    Joined,
    /// No lookup of this key is in progress; one may begin.
    Absent(P),
    /// A limit is reached.
    Full(P),
}

/// The packets of a lookup, in the order of their arrival. Most have one.
pub type WaitingPackets<P> = SmallVec<[P; 1]>;

#[derive(Debug)]
struct WaitingList<P, S> {
    hash: u64,
    key: ProbeKey,
    packets: WaitingPackets<P>,
    state: S,
}

/// Waiting lists of packets `P`, one a key, each with the state `S` of its lookup.
#[derive(Debug)]
pub struct WaitingLookups<P, S> {
    limits: LookupLimits,
    by_key: HashTable<LookupId>,
    lists: SlotArena<WaitingList<P, S>>,
    waiting: usize,
    counts: LookupCounts,
}

impl<P, S> WaitingLookups<P, S> {
    /// Creates an empty set of lookups.
    pub fn new(limits: LookupLimits) -> WaitingLookups<P, S> {
        WaitingLookups {
            limits,
            by_key: HashTable::new(),
            lists: SlotArena::default(),
            waiting: 0,
            counts: LookupCounts::default(),
        }
    }

    /// Returns the number of packets that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Returns the number of lookups in progress.
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// Whether no lookup is in progress.
    pub fn is_empty(&self) -> bool {
        self.lists.len() == 0
    }

    /// Returns the counts since the start.
    pub fn counts(&self) -> LookupCounts {
        self.counts
    }

    fn find(&self, hash: u64, key: &[u8]) -> Option<LookupId> {
        self.by_key.find(hash, |id| self.lists.get(id.0).is_some_and(|list| *list.key == *key)).copied()
    }

    /// Appends a packet to the lookup of its key, if one is in progress. `hash` is that of the key, under a secret.
    pub fn join(&mut self, hash: u64, key: &[u8], packet: P) -> JoinOutcome<P> {
        let Some(id) = self.find(hash, key) else { return JoinOutcome::Absent(packet) };
        if self.waiting >= self.limits.packets {
            self.counts.refused += 1;
            return JoinOutcome::Full(packet);
        }
        self.lists.get_mut(id.0).expect("each key has a list").packets.push(packet);
        self.waiting += 1;
        self.counts.coalesced += 1;
        JoinOutcome::Joined
    }

    /// Whether another lookup may begin; if not, the packet is counted as refused.
    pub fn has_room(&mut self) -> bool {
        let has_room = self.lists.len() < self.limits.lookups && self.waiting < self.limits.packets;
        self.counts.refused += u64::from(!has_room);
        has_room
    }

    /// Begins a lookup for a key that has none.
    pub fn begin(&mut self, hash: u64, key: &[u8], packet: P, state: S) -> LookupId {
        let list = WaitingList { hash, key: key.into(), packets: SmallVec::from_iter([packet]), state };
        let id = LookupId(self.lists.add(list));
        let lists = &self.lists;
        let hash_of = |id: &LookupId| lists.get(id.0).expect("each key has a list").hash;
        self.by_key.insert_unique(hash, id, hash_of);
        self.waiting += 1;
        self.counts.begun += 1;
        id
    }

    /// Returns the key and the state of a lookup in progress.
    pub fn get(&mut self, id: LookupId) -> Option<(&[u8], &mut S)> {
        self.lists.get_mut(id.0).map(|list| (&*list.key, &mut list.state))
    }

    /// Returns the lookups in progress.
    pub fn ids(&self) -> Vec<LookupId> {
        self.lists.iter().map(|(id, _)| LookupId(id)).collect()
    }

    /// Ends a lookup. Returns its key, its packets in the order of their arrival, and its state.
    pub fn finish(&mut self, id: LookupId) -> Option<(ProbeKey, WaitingPackets<P>, S)> {
        let list = self.lists.remove(id.0)?;
        if let Ok(entry) = self.by_key.find_entry(list.hash, |other| *other == id) {
            entry.remove();
        }
        self.waiting -= list.packets.len();
        self.counts.released += list.packets.len() as u64;
        Some((list.key, list.packets, list.state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lookup_serves_all_packets_of_a_key_in_order() {
        let mut lookups = WaitingLookups::new(LookupLimits { lookups: 2, packets: 4 });
        assert_eq!(lookups.join(1, b"a", 1), JoinOutcome::Absent(1));
        let a = lookups.begin(1, b"a", 1, ());
        assert_eq!(lookups.join(1, b"a", 2), JoinOutcome::Joined);
        let b = lookups.begin(1, b"b", 3, ());
        assert!(!lookups.has_room(), "two lookups go on");
        assert_eq!(lookups.join(1, b"a", 4), JoinOutcome::Joined);
        assert_eq!(lookups.join(1, b"b", 5), JoinOutcome::Full(5));
        assert_eq!(lookups.ids(), [a, b]);
        let (key, packets, ()) = lookups.finish(a).unwrap();
        assert_eq!((&*key, packets.to_vec()), (&b"a"[..], vec![1, 2, 4]));
        assert!(lookups.finish(a).is_none() && lookups.has_room());
        assert_eq!(lookups.counts(), LookupCounts { begun: 2, coalesced: 2, refused: 2, released: 3 });
        assert_eq!((lookups.waiting(), lookups.len()), (1, 1));
    }
}
