//! Tests exact exchanges, and a network with an attacker that records and replays everything.

use std::collections::{BTreeMap, BTreeSet};

use rng::SplitMix64;

use super::*;
use crate::layout::{NodeId, SwitchId};

const SWITCH: Peer = Peer::Switch(SwitchId(1));
const STORE: Peer = Peer::Node(NodeId(1));

fn sealer_with(me: Peer, start: u64, key: u8, settings: &[u8]) -> DatagramSealer {
    let key = ClusterKey::new(&[key; 32]);
    DatagramSealer::new(me, start, key, ClusterFingerprint::new(settings), [SWITCH, STORE])
}

fn sealer(me: Peer, start: u64) -> DatagramSealer {
    sealer_with(me, start, 7, b"")
}

const NONE: [u64; 0] = [];

/// Returns a message with a number.
fn message(number: u64) -> StoreMessage {
    StoreMessage::LayoutRequest(number)
}

fn numbers(messages: &[StoreMessage]) -> Vec<u64> {
    let number = |message: &StoreMessage| match message {
        StoreMessage::LayoutRequest(number) => *number,
        other => unreachable!("nobody sent {other:?}"),
    };
    messages.iter().map(number).collect()
}

fn outgoing(from: &mut DatagramSealer) -> Vec<Vec<u8>> {
    from.take_outgoing().map(|(_, datagram)| datagram).collect()
}

/// Gives datagrams of a peer to a member. Returns the numbers of the messages that count.
fn give(to: &mut DatagramSealer, from: Peer, datagrams: &[Vec<u8>]) -> Vec<u64> {
    datagrams.iter().flat_map(|datagram| numbers(&to.open(Time::ZERO, from, datagram))).collect()
}

/// Exchanges all datagrams at once. Returns the numbers that reached the switch and the store, and the number of
/// flights.
fn exchange(switch: &mut DatagramSealer, store: &mut DatagramSealer) -> (Vec<u64>, Vec<u64>, usize) {
    let (mut at_switch, mut at_store) = (Vec::new(), Vec::new());
    for flights in 0..10 {
        let (up, down) = (outgoing(switch), outgoing(store));
        if up.is_empty() && down.is_empty() {
            return (at_switch, at_store, flights);
        }
        at_store.extend(give(store, SWITCH, &up));
        at_switch.extend(give(switch, STORE, &down));
    }
    panic!("the exchange goes on for ever");
}

/// Returns two members that know each other's start numbers.
fn pair() -> (DatagramSealer, DatagramSealer) {
    let (mut switch, mut store) = (sealer(SWITCH, 100), sealer(STORE, 200));
    switch.send(Time::ZERO, &[(STORE, message(1))]);
    assert_eq!(exchange(&mut switch, &mut store), (vec![], vec![1], 3));
    (switch, store)
}

#[test]
fn the_first_messages_wait_for_one_round_trip_and_the_others_for_nothing() {
    let (mut switch, mut store) = pair();
    store.send(Time::ZERO, &[(SWITCH, message(2))]);
    assert_eq!(exchange(&mut switch, &mut store), (vec![2], vec![], 1), "the store knows the switch, too");
    switch.send(Time::ZERO, &[(STORE, message(3)), (STORE, message(4))]);
    let sent = outgoing(&mut switch);
    assert_eq!(sent.iter().map(Vec::len).collect::<Vec<_>>(), [HEADER_BYTES + 2 * 9 + TAG_BYTES]);
    assert_eq!(give(&mut store, SWITCH, &sent), [3, 4]);
    assert_eq!((switch.refused().total(), store.refused().total()), (0, 0));
}

#[test]
fn both_may_begin_at_once() {
    let (mut switch, mut store) = (sealer(SWITCH, 100), sealer(STORE, 200));
    switch.send(Time::ZERO, &[(STORE, message(1))]);
    store.send(Time::ZERO, &[(SWITCH, message(2))]);
    assert_eq!(exchange(&mut switch, &mut store), (vec![2], vec![1], 3));
}

#[test]
fn either_side_may_start_again() {
    let (mut switch, mut store) = pair();
    let mut other = sealer(SWITCH, 101);
    other.send(Time::ZERO, &[(STORE, message(2))]);
    assert_eq!(exchange(&mut other, &mut store), (vec![], vec![2], 3));
    // The datagrams of the first start are old now, although the store is the same.
    switch.send(Time::ZERO, &[(STORE, message(3))]);
    assert_eq!(give(&mut store, SWITCH, &outgoing(&mut switch)), NONE);
    assert_eq!(store.refused(), RefusedDatagrams { other_start: 1, ..Default::default() });
    // The store restarts. The switch learns this from the answer to its first datagram, which is lost.
    let mut again = sealer(STORE, 201);
    other.send(Time::ZERO, &[(STORE, message(4))]);
    assert_eq!(exchange(&mut other, &mut again), (vec![], vec![], 4));
    other.send(Time::ZERO, &[(STORE, message(5))]);
    again.send(Time::ZERO, &[(SWITCH, message(6))]);
    assert_eq!(exchange(&mut other, &mut again), (vec![6], vec![5], 1));
}

#[test]
fn every_bit_counts() {
    let (mut switch, mut store) = pair();
    switch.send(Time::ZERO, &[(STORE, message(2))]);
    let sent = outgoing(&mut switch).remove(0);
    for bit in 0..sent.len() * 8 {
        let mut changed = sent.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(store.open(Time::from_ms(9_000), SWITCH, &changed), [], "bit {bit}");
    }
    for length in 0..sent.len() {
        assert_eq!(store.open(Time::from_ms(9_000), SWITCH, &sent[..length]), [], "{length} bytes");
    }
    assert_eq!(store.open(Time::from_ms(9_000), SWITCH, &[&sent[..], &[0]].concat()), []);
    assert_eq!(outgoing(&mut store), [[0_u8; 0]; 0], "forged datagrams are not answered");
    let refused = store.refused();
    assert!(refused.malformed > 0 && refused.stranger > 0 && refused.wrong_tag > 0, "{refused:?}");
    assert_eq!(refused.total(), sent.len() as u64 * 9 + 1);
    assert_eq!(give(&mut store, SWITCH, &[sent]), [2]);
}

#[test]
fn a_datagram_is_of_its_sender_for_its_receiver_with_their_key() {
    let (mut switch, mut store) = pair();
    switch.send(Time::ZERO, &[(STORE, message(2))]);
    let sent = outgoing(&mut switch);
    assert_eq!(give(&mut store, STORE, &sent), NONE, "from another address");
    assert_eq!(give(&mut store, Peer::Switch(SwitchId(2)), &sent), NONE, "from nobody of the cluster");
    assert_eq!(give(&mut switch, STORE, &sent), NONE, "reflected");
    assert_eq!((store.refused().stranger, switch.refused().stranger), (2, 1));
    let mut other = sealer_with(SWITCH, 100, 8, b"");
    other.send(Time::ZERO, &[(STORE, message(3))]);
    assert_eq!(exchange(&mut other, &mut store), (vec![], vec![], 1), "a hello with another key is not answered");
    assert_eq!(store.refused().wrong_tag, 1);
}

#[test]
fn replays_neither_count_nor_disturb_a_pair() {
    let (mut early, mut store) = (sealer(SWITCH, 99), sealer(STORE, 200));
    let (mut recorded, mut now) = (Vec::new(), Time::ZERO);
    let mut answers = Vec::new();
    early.send(now, &[(STORE, message(1))]);
    for _ in 0..3 {
        recorded.extend(outgoing(&mut early));
        recorded.iter().for_each(|datagram| _ = store.open(now, SWITCH, datagram));
        answers.extend(outgoing(&mut store));
        answers.iter().for_each(|datagram| _ = early.open(now, STORE, datagram));
    }
    let mut switch = sealer(SWITCH, 100);
    switch.send(now, &[(STORE, message(2))]);
    assert_eq!(exchange(&mut switch, &mut store), (vec![], vec![2], 3));
    for number in 3..50 {
        now = now.after_ns(10_000_000);
        for datagram in &recorded {
            assert_eq!(store.open(now, SWITCH, datagram), []);
        }
        for datagram in &answers {
            assert_eq!(switch.open(now, STORE, datagram), []);
        }
        let (up, down) = (outgoing(&mut switch).len(), outgoing(&mut store).len());
        assert!(up <= answers.len() && down <= recorded.len(), "an attacker gets no more than it sends: {up}, {down}");
        // The pair continues without a new hello, regardless of these requests.
        switch.send(now, &[(STORE, message(number))]);
        assert_eq!(give(&mut store, SWITCH, &outgoing(&mut switch)), [number]);
    }
}

#[test]
fn other_settings_are_reported_once_by_both() {
    let (mut switch, mut store) = (sealer_with(SWITCH, 100, 7, b"lease 1s"), sealer_with(STORE, 200, 7, b"lease 2s"));
    let mut reported = (Vec::new(), Vec::new());
    for second in 0..20 {
        let now = Time::from_ms(second * 2000);
        switch.send(now, &[(STORE, message(second))]);
        store.send(now, &[(SWITCH, message(second))]);
        let (at_switch, at_store, flights) = exchange(&mut switch, &mut store);
        assert!(at_switch.is_empty() && at_store.is_empty() && flights <= 3);
        reported.0.extend(switch.take_disagreeing());
        reported.1.extend(store.take_disagreeing());
    }
    assert_eq!(reported, (vec![STORE], vec![SWITCH]));
    assert!(switch.refused().other_settings > 0 && store.refused().other_settings > 0);
    // Restarted with the correct file, it is served.
    let mut switch = sealer_with(SWITCH, 101, 7, b"lease 2s");
    switch.send(Time::from_ms(60_000), &[(STORE, message(7))]);
    assert_eq!(exchange(&mut switch, &mut store).1, [7]);
}

#[test]
fn what_waits_for_a_peer_is_bounded() {
    let mut switch = sealer(SWITCH, 100);
    (0..100).for_each(|number| switch.send(Time::ZERO, &[(STORE, message(number))]));
    assert_eq!(switch.outgoing.len(), 1, "one request in a millisecond");
    let mut store = sealer(STORE, 200);
    assert_eq!(exchange(&mut switch, &mut store).1, (92..100).collect::<Vec<_>>());
}

/// Two members, and a network whose attacker keeps all datagrams.
struct World {
    random: SplitMix64,
    now: Time,
    members: BTreeMap<Peer, DatagramSealer>,
    starts: u64,
    under_way: Vec<(Peer, Vec<u8>)>,
    recorded: Vec<(Peer, Vec<u8>)>,
    sent: u64,
    /// The receiver's starts, and the numbers that reached it.
    received: BTreeSet<u64>,
    /// For each number, the sender and its start.
    senders: Vec<(Peer, u64)>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut world = World {
            random: SplitMix64::new(seed),
            now: Time::ZERO,
            members: BTreeMap::new(),
            starts: 0,
            under_way: Vec::new(),
            recorded: Vec::new(),
            sent: 0,
            received: BTreeSet::new(),
            senders: Vec::new(),
        };
        world.start(SWITCH);
        world.start(STORE);
        world
    }

    fn other(peer: Peer) -> Peer {
        if peer == SWITCH { STORE } else { SWITCH }
    }

    fn start(&mut self, peer: Peer) {
        self.starts += 1;
        self.members.insert(peer, sealer(peer, self.starts));
    }

    fn send(&mut self, from: Peer) {
        self.senders.push((from, self.members[&from].start));
        let message = message(self.sent);
        self.sent += 1;
        let now = self.now;
        self.member(from).send(now, &[(World::other(from), message)]);
        self.take(from);
    }

    fn member(&mut self, peer: Peer) -> &mut DatagramSealer {
        self.members.get_mut(&peer).expect("both run")
    }

    fn take(&mut self, from: Peer) {
        let to = World::other(from);
        let sent = outgoing(self.member(from)).into_iter().map(|datagram| (to, datagram));
        let sent: Vec<_> = sent.collect();
        self.recorded.extend(sent.iter().cloned());
        self.under_way.extend(sent);
    }

    /// Delivers a datagram. No number counts twice, and none of the attacker's does.
    fn deliver(&mut self, to: Peer, datagram: &[u8]) {
        let (now, from) = (self.now, World::other(to));
        for number in numbers(&self.member(to).open(now, from, datagram)) {
            assert!(number < self.sent, "forged");
            assert!(self.received.insert(number), "{number} counts twice");
            let (sender, start) = self.senders[number as usize];
            assert_eq!(sender, from);
            let known = self.members[&to].peers[&from].start;
            assert_eq!(known, Some(start), "a start that the receiver does not know");
        }
        self.take(to);
    }

    /// The attacks: replays, changes, truncations and concatenations of recorded datagrams.
    fn attack(&mut self) {
        if self.recorded.is_empty() {
            return;
        }
        let at = self.random.below(self.recorded.len() as u64) as usize;
        let (mut to, mut datagram) = self.recorded[at].clone();
        match self.random.below(5) {
            0 => {
                let at = self.random.below(datagram.len() as u64) as usize;
                datagram[at] ^= 1 << self.random.below(8);
            }
            1 => datagram.truncate(self.random.below(datagram.len() as u64) as usize),
            2 => to = World::other(to),
            3 => {
                let (_, other) = &self.recorded[self.random.below(self.recorded.len() as u64) as usize];
                let at = self.random.below(datagram.len().min(other.len()) as u64) as usize;
                datagram[at..].iter_mut().zip(&other[at..]).for_each(|(byte, other)| *byte = *other);
            }
            _ => {}
        }
        self.deliver(to, &datagram);
    }

    fn network(&mut self, loss: u64) {
        if self.under_way.is_empty() {
            return;
        }
        let at = self.random.below(self.under_way.len() as u64) as usize;
        let (to, datagram) = self.under_way.swap_remove(at);
        if self.random.percent(loss) {
            return;
        }
        if self.random.percent(10) {
            self.under_way.push((to, datagram.clone()));
        }
        self.deliver(to, &datagram);
    }
}

#[test]
fn nothing_counts_twice_and_live_pairs_get_through() {
    for seed in 0..300 {
        let mut world = World::new(seed);
        let loss = world.random.below(60);
        for _ in 0..400 {
            world.now = world.now.after_ns(world.random.below(2_000_000));
            match world.random.below(40) {
                0 => world.start(SWITCH),
                1 => world.start(STORE),
                2..6 => world.send(SWITCH),
                6..10 => world.send(STORE),
                10..16 => world.attack(),
                _ => world.network(loss),
            }
        }
        // The loss ends; the attack continues. Members repeat their messages, as the protocol does.
        for round in 0.. {
            assert!(round < 6, "seed {seed}: no way in {round} rounds");
            world.now = world.now.after_ns(10_000_000);
            let first = world.sent;
            [SWITCH, STORE].into_iter().for_each(|from| world.send(from));
            for _ in 0..1_000 {
                if world.random.percent(20) {
                    world.attack();
                }
                world.network(0);
            }
            world.under_way.clear();
            if world.received.contains(&first) && world.received.contains(&(first + 1)) {
                break;
            }
        }
    }
}
