//! Tests rows that several switches read.

use std::sync::Arc;

use resilient::holders::MAX_READERS;
use resilient::message::{IfMissing, NumberPool, ReplyBody};
use resilient::simulation::NodeDisk;
use resilient::{
    ChainMember, NodeId, Peer, ReplicaConfig, ReplicaEvent, RowAccess, RowId, RowProgress, ShardChain, ShardId,
    StateReplica, StoreConfig, StoreEvent, StoreLayout, StoreMessage, StoreNode, SwitchId, expiry_ns,
};
use switch::Time;

use crate::rig::{LEASE_MS, NODE, ROW, StoreRig, ms, value};

/// End of a lease as the store counts it, in nanoseconds.
fn expiry() -> u64 {
    expiry_ns(LEASE_MS * 1_000_000, StoreConfig::default().drift_ppm)
}

fn ask(rig: &mut StoreRig, now: Time, switch: usize, access: RowAccess) {
    rig.replicas[switch].acquire_or(now, ROW, access, IfMissing::Grant, 0);
    rig.run(now);
    rig.replicas[switch].unpin(now, &ROW);
    rig.run(now);
}

fn readable(rig: &StoreRig, now: Time) -> Vec<bool> {
    rig.replicas.iter().map(|replica| replica.is_readable(now, &ROW)).collect()
}

/// Returns the values of the last grant of a switch.
fn seen(rig: &StoreRig, switch: usize) -> Option<Vec<u8>> {
    rig.events[switch].iter().rev().find_map(|event| match event {
        ReplicaEvent::Granted { values, .. } => Some(values.as_ref().map_or(Vec::new(), |it| it.bytes().to_vec())),
        _ => None,
    })
}

#[test]
fn readers_have_a_row_at_the_same_time_and_reading_costs_nothing() {
    let mut rig = StoreRig::new(3);
    ask(&mut rig, ms(0), 0, RowAccess::Write);
    rig.replicas[0].write(ms(1), &ROW, value(7));
    rig.run(ms(1));
    rig.replicas[0].release(ms(1), &ROW);
    rig.run(ms(1));
    (0..3).for_each(|switch| ask(&mut rig, ms(2), switch, RowAccess::Read));
    assert_eq!(readable(&rig, ms(2)), [true; 3]);
    assert!((0..3).all(|switch| seen(&rig, switch) == Some(vec![7]) && !rig.replicas[switch].is_owned(ms(2), &ROW)));
    let requests = rig.requests;
    (3..400).for_each(|at| (0..3).for_each(|switch| ask(&mut rig, ms(at), switch, RowAccess::Read)));
    assert_eq!(rig.requests, requests);
    let report = rig.replicas[1].row_report(&ROW).unwrap();
    assert_eq!((report.progress, report.values), (RowProgress::Shared, value(7)));
}

#[test]
fn a_writer_gets_a_row_when_all_readers_have_given_it_back() {
    let mut rig = StoreRig::new(3);
    (0..2).for_each(|switch| ask(&mut rig, ms(0), switch, RowAccess::Read));
    rig.replicas[2].acquire(ms(1), ROW);
    rig.run(ms(1));
    assert_eq!(readable(&rig, ms(1)), [false, false, true]);
    assert!(rig.replicas[2].is_owned(ms(1), &ROW));
    assert!((0..2).all(|reader| rig.events[reader].iter().any(|event| matches!(event, ReplicaEvent::Lost { .. }))));
}

#[test]
fn a_writer_waits_for_the_last_reader() {
    let mut rig = StoreRig::new(3);
    (0..2).for_each(|switch| ask(&mut rig, ms(0), switch, RowAccess::Read));
    rig.replicas[2].open_sessions(ms(0));
    rig.run(ms(0));
    rig.replicas[2].acquire(ms(1), ROW);
    let recalls: Vec<(Peer, StoreMessage)> =
        rig.take(2).into_iter().flat_map(|message| rig.deliver(ms(1), 2, message)).collect();
    assert_eq!(recalls.len(), 2);
    let (_, recall) = &recalls[0];
    rig.replicas[0].receive(ms(1), NodeId(0), recall);
    let released: Vec<_> = rig.take(0).into_iter().flat_map(|message| rig.deliver(ms(1), 0, message)).collect();
    assert_eq!(readable(&rig, ms(1)), [false, true, false]);
    let is_grant = |body: &ReplyBody| matches!(body, ReplyBody::Granted { .. });
    let is_granted = |(_, message): &(Peer, StoreMessage)| match message {
        StoreMessage::Reply(reply) => is_grant(&reply.body),
        _ => false,
    };
    assert!(!released.iter().any(is_granted), "one reader is left");
}

#[test]
fn a_silent_reader_delays_a_writer_by_its_lease_and_no_longer() {
    let mut rig = StoreRig::new(2);
    ask(&mut rig, ms(0), 0, RowAccess::Read);
    let granted_at = ms(0);
    rig.replicas[1].acquire(ms(1), ROW);
    let mut now = ms(1);
    loop {
        let mut replies = rig.replies(now);
        for message in rig.take(1) {
            replies.extend(rig.deliver(now, 1, message));
        }
        replies.iter().filter(|(to, _)| *to == Peer::Switch(SwitchId(1))).for_each(|(_, message)| {
            rig.replicas[1].receive(now, NodeId(0), message);
        });
        if rig.replicas[1].is_owned(now, &ROW) {
            break;
        }
        assert!(!rig.replicas[0].is_readable(granted_at.after_ns(LEASE_MS * 1_000_000), &ROW), "a lease of its own");
        let next = [rig.replicas[1].next_deadline(), rig.node.next_deadline()].into_iter().flatten().min().unwrap();
        now = next.max(now.after_ns(1));
        rig.replicas[1].tick(now);
        rig.node.tick(now);
    }
    assert_eq!(now, granted_at.after_ns(expiry()));
}

#[test]
fn a_read_after_the_recall_waits_and_sees_what_was_written() {
    let mut rig = StoreRig::new(2);
    ask(&mut rig, ms(0), 0, RowAccess::Read);
    rig.replicas[1].acquire(ms(1), ROW);
    rig.run(ms(1));
    let seq = rig.replicas[1].write(ms(1), &ROW, value(9));
    let write = rig.take(1).remove(0);
    assert!(!rig.replicas[0].is_readable(ms(1), &ROW));
    rig.replicas[0].acquire_or(ms(1), ROW, RowAccess::Read, IfMissing::Grant, 0);
    rig.replicas[1].unpin(ms(1), &ROW);
    rig.run(ms(1));
    assert!(!rig.replicas[0].is_readable(ms(1), &ROW), "the write is not acknowledged");
    for (_, message) in rig.deliver(ms(2), 1, write) {
        rig.replicas[1].receive(ms(2), NodeId(0), &message);
    }
    rig.run(ms(2));
    assert!(
        rig.replicas[0].is_readable(ms(2), &ROW)
            && rig.events[1].contains(&ReplicaEvent::Acknowledged { row: ROW, seq })
    );
    assert_eq!(seen(&rig, 0), Some(vec![9]));
}

#[test]
fn two_readers_that_want_to_write_do_so_one_after_the_other() {
    let mut rig = StoreRig::new(2);
    (0..2).for_each(|switch| ask(&mut rig, ms(0), switch, RowAccess::Read));
    // Both give the row up before either asks the store.
    (0..2).for_each(|switch| rig.replicas[switch].acquire(ms(1), ROW));
    assert_eq!(readable(&rig, ms(1)), [false; 2]);
    rig.run(ms(1));
    let owns = |rig: &StoreRig| [0, 1].map(|switch: usize| rig.replicas[switch].is_owned(ms(1), &ROW));
    assert_eq!(owns(&rig), [true, false]);
    rig.replicas[0].write(ms(1), &ROW, value(1));
    rig.replicas[0].unpin(ms(1), &ROW);
    rig.run_until(ms(1), ms(20));
    assert_eq!(owns(&rig), [false, true]);
    assert_eq!(seen(&rig, 1), Some(vec![1]));
}

#[test]
fn a_single_reader_that_may_write_owns_the_row_and_shares_it_when_another_one_reads() {
    let mut rig = StoreRig::new(3);
    ask(&mut rig, ms(0), 0, RowAccess::ReadFirst);
    assert!(rig.replicas[0].is_owned(ms(0), &ROW));
    ask(&mut rig, ms(1), 1, RowAccess::ReadFirst);
    ask(&mut rig, ms(2), 0, RowAccess::ReadFirst);
    ask(&mut rig, ms(2), 2, RowAccess::ReadFirst);
    assert_eq!(readable(&rig, ms(2)), [true; 3]);
    assert!(!rig.replicas.iter().any(|replica| replica.is_owned(ms(2), &ROW)));
}

#[test]
fn readers_that_come_and_go_keep_no_writer_waiting_and_no_writer_keeps_them() {
    let mut rig = StoreRig::new(5);
    let mut grants = [0; 5];
    for at in 1..400 {
        for switch in 0..5 {
            let access = if switch < 2 { RowAccess::Write } else { RowAccess::Read };
            rig.replicas[switch].acquire_or(ms(at), ROW, access, IfMissing::Grant, 0);
        }
        rig.run_until(ms(at), ms(at));
        for (switch, events) in rig.events.iter_mut().enumerate() {
            let granted = events.drain(..).filter(|event| matches!(event, ReplicaEvent::Granted { .. })).count();
            grants[switch] += granted;
            if granted > 0 {
                rig.replicas[switch].unpin(ms(at), &ROW);
            }
        }
        rig.replicas.iter_mut().for_each(|replica| replica.tick(ms(at)));
        rig.node.tick(ms(at));
    }
    let (least, most) = (grants.iter().min().unwrap(), grants.iter().max().unwrap());
    assert!(*least >= 5 && most - least <= 2, "{grants:?}");
}

#[test]
fn a_reader_waits_behind_a_writer_that_came_before() {
    let mut rig = StoreRig::new(3);
    rig.replicas.iter_mut().for_each(|replica| replica.open_sessions(ms(0)));
    rig.run(ms(0));
    // Its packets have not run: it keeps the row.
    rig.replicas[0].acquire_or(ms(0), ROW, RowAccess::Read, IfMissing::Grant, 0);
    rig.run(ms(0));
    rig.replicas[1].acquire(ms(1), ROW);
    rig.run(ms(1));
    rig.replicas[2].acquire_or(ms(2), ROW, RowAccess::Read, IfMissing::Grant, 0);
    rig.run(ms(2));
    assert_eq!(readable(&rig, ms(2)), [true, false, false]);
    rig.replicas[0].unpin(ms(3), &ROW);
    rig.run(ms(3));
    assert_eq!(readable(&rig, ms(3)), [false, true, false]);
}

#[test]
fn readers_of_a_row_are_bounded() {
    let mut rig = StoreRig::new(MAX_READERS as u32 + 1);
    (0..MAX_READERS).for_each(|switch| ask(&mut rig, ms(0), switch, RowAccess::Read));
    assert_eq!(readable(&rig, ms(0)).iter().filter(|it| **it).count(), MAX_READERS);
    ask(&mut rig, ms(1), MAX_READERS, RowAccess::Read);
    let has = readable(&rig, ms(1));
    assert!(has[MAX_READERS] && has.iter().filter(|it| **it).count() <= MAX_READERS, "{has:?}");
}

/// Dead readers make room in the list, and no living reader is dropped for a new one.
#[test]
fn a_reader_is_recalled_after_many_others_have_died() {
    let mut rig = StoreRig::new(3);
    ask(&mut rig, ms(0), 0, RowAccess::Read);
    let mut now = 0;
    for life in 0..MAX_READERS as u64 + 2 {
        let one = ShardChain { members: vec![ChainMember { node: NODE, life: 1 }], learner: None };
        let layout = Arc::new(StoreLayout::new(1, vec![one]));
        rig.replicas[1] = StateReplica::new(ReplicaConfig::default(), layout, SwitchId(1), 1000 + life);
        ask(&mut rig, ms(now), 1, RowAccess::Read);
        rig.run_until(ms(now), ms(now + 2 * LEASE_MS));
        now += 2 * LEASE_MS;
        assert!(rig.replicas[0].is_readable(ms(now), &ROW));
    }
    rig.replicas[2].acquire_or(ms(now), ROW, RowAccess::Write, IfMissing::Grant, 0);
    rig.run(ms(now));
    assert!(rig.replicas[2].is_owned(ms(now), &ROW), "the reader that lives gave the row back");
    assert!(!rig.replicas[0].is_readable(ms(now), &ROW));
}

/// Two nodes and three switches whose messages arrive at once.
struct ChainRig {
    nodes: Vec<StoreNode>,
    replicas: Vec<StateReplica>,
    /// Switches that receive and send nothing.
    silent: Vec<usize>,
    first_node: u32,
    recalls: usize,
}

impl ChainRig {
    fn new() -> ChainRig {
        let layout = layout(1, 0..2);
        let node = |node| StoreNode::founding(StoreConfig::default(), member(node), 1, Time::ZERO, &layout);
        let new = |switch| {
            StateReplica::new(ReplicaConfig::default(), Arc::clone(&layout), SwitchId(switch), u64::from(switch))
        };
        let (nodes, replicas) = ((0..2).map(node).collect(), (0..3).map(new).collect());
        ChainRig { nodes, replicas, silent: Vec::new(), first_node: 0, recalls: 0 }
    }

    /// Delivers messages until there are none. Packets of granted rows run at once.
    fn run(&mut self, now: Time) {
        let mut is_idle = false;
        while !std::mem::replace(&mut is_idle, true) {
            for index in self.first_node as usize..2 {
                self.nodes[index].flush(now);
                let events: Vec<StoreEvent> = self.nodes[index].take_events().collect();
                for event in events {
                    let StoreEvent::Send { to, message } = event else { continue };
                    is_idle = false;
                    let from = NodeId(index as u32);
                    match to {
                        Peer::Node(node) if node.0 >= self.first_node => {
                            self.nodes[node.0 as usize].receive(now, Peer::Node(from), message);
                        }
                        Peer::Switch(SwitchId(switch)) => {
                            let is_recall = |body: &ReplyBody| matches!(body, ReplyBody::Recall { .. });
                            self.recalls +=
                                usize::from(matches!(&message, StoreMessage::Reply(reply) if is_recall(&reply.body)));
                            if !self.silent.contains(&(switch as usize)) {
                                self.replicas[switch as usize].receive(now, from, &message);
                            }
                        }
                        _ => {}
                    }
                }
            }
            for switch in (0..self.replicas.len()).filter(|switch| !self.silent.contains(switch)).collect::<Vec<_>>() {
                let events: Vec<ReplicaEvent> = self.replicas[switch].take_events().collect();
                for event in events {
                    is_idle = false;
                    match event {
                        ReplicaEvent::Send { to, message } if to.0 >= self.first_node => {
                            let from = Peer::Switch(SwitchId(switch as u32));
                            self.nodes[to.0 as usize].receive(now, from, message);
                        }
                        ReplicaEvent::Granted { row, .. } => self.replicas[switch].unpin(now, &row),
                        _ => {}
                    }
                }
            }
        }
    }

    /// Lets time pass until a condition holds, and returns the time.
    fn run_while(&mut self, mut now: Time, goes_on: impl Fn(&ChainRig, Time) -> bool) -> Time {
        self.run(now);
        while goes_on(self, now) {
            now = now.after_ns(100_000);
            for switch in (0..self.replicas.len()).filter(|switch| !self.silent.contains(switch)).collect::<Vec<_>>() {
                self.replicas[switch].tick(now);
            }
            self.nodes[self.first_node as usize..].iter_mut().for_each(|node| node.tick(now));
            self.run(now);
        }
        now
    }

    fn share(&mut self, now: Time) {
        for switch in 0..2 {
            self.replicas[switch].acquire_or(now, ROW, RowAccess::Read, IfMissing::Grant, 0);
        }
        self.replicas[2].open_sessions(now);
        self.run(now);
        assert!((0..2).all(|switch| self.replicas[switch].is_readable(now, &ROW)));
    }

    /// Makes the second node the only one.
    fn fail_head(&mut self, now: Time) {
        self.first_node = 1;
        let after = layout(2, 1..2);
        self.nodes[1].set_layout(now, &after);
        for switch in 0..3 {
            self.replicas[switch].set_layout(now, &after);
        }
    }
}

fn member(node: u32) -> ChainMember {
    ChainMember { node: NodeId(node), life: 1 }
}

fn layout(epoch: u64, nodes: std::ops::Range<u32>) -> Arc<StoreLayout> {
    Arc::new(StoreLayout::new(epoch, vec![ShardChain { members: nodes.map(member).collect(), learner: None }]))
}

#[test]
fn a_new_head_recalls_a_row_from_its_readers() {
    let mut rig = ChainRig::new();
    rig.share(ms(0));
    rig.fail_head(ms(10));
    rig.replicas[2].acquire(ms(10), ROW);
    rig.run(ms(10));
    assert_eq!((rig.replicas[2].is_owned(ms(10), &ROW), rig.recalls), (true, 2));
    assert!((0..2).all(|switch| !rig.replicas[switch].is_readable(ms(10), &ROW)));
}

#[test]
fn a_new_head_waits_a_lease_for_a_reader_that_does_not_answer() {
    let mut rig = ChainRig::new();
    rig.share(ms(0));
    rig.silent = vec![1];
    rig.fail_head(ms(10));
    rig.replicas[2].acquire(ms(10), ROW);
    let at = rig.run_while(ms(10), |rig, now| !rig.replicas[2].is_owned(now, &ROW));
    let earliest = ms(10).after_ns(expiry());
    assert!(at >= earliest && at <= earliest.after_ns(200_000), "{at}");
}

#[test]
fn a_store_that_restarts_knows_the_readers_of_its_rows() {
    let config = StoreConfig { is_durable: true, ..StoreConfig::default() };
    let mut rig = StoreRig::with(3, ReplicaConfig::default(), config);
    let mut disk = NodeDisk::default();
    for _ in 0..20 {
        rig.node.flush(ms(0));
        let events: Vec<StoreEvent> = rig.node.take_events().collect();
        for event in events {
            match event {
                StoreEvent::Persist { number, record } => {
                    disk.write(number, record);
                    disk.sync(number);
                    rig.node.persisted(number);
                }
                StoreEvent::Send { to: Peer::Switch(SwitchId(switch)), message } => {
                    rig.replicas[switch as usize].receive(ms(0), NodeId(0), &message);
                }
                StoreEvent::Send { .. } => {}
            }
        }
        for switch in 0..2 {
            rig.replicas[switch].acquire_or(ms(0), ROW, RowAccess::Read, IfMissing::Grant, 0);
            for message in rig.take(switch) {
                rig.node.receive(ms(0), Peer::Switch(SwitchId(switch as u32)), message);
            }
        }
    }
    assert_eq!(readable(&rig, ms(0)), [true, true, false]);
    let node = disk.recover(StoreConfig::default(), member(0), 2, ms(10));
    let readers: Vec<u32> = node.all_rows().flat_map(|row| row.holders.readers()).map(|it| it.owner.switch.0).collect();
    assert_eq!(readers, [0, 1]);
    rig.node = node;
    (0..2).for_each(|switch| rig.replicas[switch].unpin(ms(10), &ROW));
    rig.replicas[2].acquire(ms(10), ROW);
    rig.run_until(ms(10), ms(30));
    assert_eq!(readable(&rig, ms(30)), [false, false, true]);
}

/// Idle time of rows: so long that the store visits a row less often than once in a lease.
const IDLE_MS: u32 = 20_000;

const IDLE: u64 = IDLE_MS as u64;

fn key() -> RowId {
    RowId::of_index(2, 1)
}

/// Gives a row that ages to two switches.
fn two_readers_of_a_key() -> StoreRig {
    let mut rig = StoreRig::new(2);
    let pool = IfMissing::Allocate(NumberPool { first: 1, last: 9, bytes: 2, is_shared: false });
    for switch in 0..2 {
        rig.replicas[switch].acquire_or(ms(0), key(), RowAccess::Read, pool.clone(), IDLE_MS);
        rig.run(ms(0));
        rig.replicas[switch].unpin(ms(0), &key());
    }
    assert!(rig.replicas.iter().all(|replica| replica.is_readable(ms(0), &key())));
    rig
}

fn rows(rig: &StoreRig) -> usize {
    rig.node.rows(ShardId(0))
}

#[test]
fn a_row_stays_while_one_of_its_readers_uses_it() {
    let mut rig = two_readers_of_a_key();
    rig.replicas[0].release_idle(ms(1), &key());
    rig.run_until(ms(1), ms(20 * IDLE));
    assert_eq!(rows(&rig), 2);
    let end = ms(20 * IDLE);
    rig.replicas[1].release_idle(end, &key());
    rig.run(end);
    assert_eq!(rows(&rig), 0);
}

/// Lets a switch give a row back in use after a second, and the other one, which had none, read it at a later time.
fn a_reader_after_another(at: u64) -> StoreRig {
    let mut rig = two_readers_of_a_key();
    rig.replicas[1].release_idle(ms(999), &key());
    rig.run(ms(999));
    rig.replicas[0].release(ms(1000), &key());
    rig.run_until(ms(1000), ms(at));
    rig.replicas[1].acquire_or(ms(at), key(), RowAccess::Read, IfMissing::Grant, IDLE_MS);
    rig.run(ms(at));
    rig.replicas[1].unpin(ms(at), &key());
    assert!(rig.replicas[1].is_readable(ms(at), &key()));
    rig
}

#[test]
fn a_reader_that_gave_a_row_back_in_use_counts_when_a_later_one_is_idle() {
    let mut rig = a_reader_after_another(1500);
    rig.replicas[1].release_idle(ms(1501), &key());
    rig.run_until(ms(1501), ms(999 + IDLE));
    assert_eq!(rows(&rig), 2);
    rig.run_until(ms(999 + IDLE), ms(1001 + IDLE * 5 / 4));
    assert_eq!(rows(&rig), 0);
}

#[test]
fn a_row_stays_for_its_idle_time_after_a_later_reader_that_died() {
    // One of these readers comes and dies between two visits of the store.
    for at in (IDLE - 2000..IDLE + 900).step_by(100) {
        let mut rig = a_reader_after_another(at);
        let mut tick_until = |end: u64| {
            while let Some(next) = rig.node.next_deadline().filter(|next| *next < ms(end)) {
                rig.node.tick(next);
                rig.replies(next);
            }
            rows(&rig)
        };
        assert_eq!(tick_until(at + IDLE), 2, "a reader since {at} ms");
        assert_eq!(tick_until(at + 3 * LEASE_MS + IDLE * 3 / 2), 0);
    }
}

#[test]
fn a_reader_that_gave_a_row_back_in_use_counts_when_the_last_one_is_idle() {
    let mut rig = two_readers_of_a_key();
    rig.replicas[0].release(ms(1000), &key());
    rig.run(ms(1000));
    rig.replicas[1].release_idle(ms(1001), &key());
    rig.run_until(ms(1001), ms(999 + IDLE));
    assert_eq!(rows(&rig), 2);
    rig.run_until(ms(999 + IDLE), ms(1001 + IDLE * 5 / 4));
    assert_eq!(rows(&rig), 0);
}

#[test]
fn a_reader_that_died_counts_when_the_last_one_is_idle() {
    let mut rig = two_readers_of_a_key();
    // The first switch sends nothing more, and the second one is active beyond the lease of the first.
    let mut now = ms(0);
    while now < ms(LEASE_MS + 1) {
        now = now.after_ns(100_000_000);
        rig.replicas[1].tick(now);
        let replies: Vec<_> = rig.take(1).into_iter().flat_map(|message| rig.deliver(now, 1, message)).collect();
        replies.iter().for_each(|(_, message)| rig.replicas[1].receive(now, NodeId(0), message));
    }
    rig.replicas[1].release_idle(now, &key());
    for message in rig.take(1) {
        rig.deliver(now, 1, message);
    }
    assert_eq!(rows(&rig), 2, "the first switch may have used it until its lease ended");
    for at in 0..IDLE * 3 / 2 {
        rig.node.tick(now.after_ns(at * 1_000_000));
        rig.replies(now);
        assert!(rows(&rig) == 2 || at >= IDLE, "{at} ms later");
    }
    assert_eq!(rows(&rig), 0);
}
