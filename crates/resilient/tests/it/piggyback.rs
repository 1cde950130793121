//! Tests outputs that travel with writes, for each way in which they return or are lost.

use std::sync::Arc;

use resilient::message::{Forward, IfMissing, Operation, Reply, ReplyBody, Request, RequestBody};
use resilient::store::{ShardChange, StoreRecord};
use resilient::{
    CarriedCounts, CarriedOutputs, ChainMember, HoldMode, NodeId, OwnerId, Peer, ReplicaConfig, ReplicaEvent, RowId,
    ShardChain, ShardId, StoreConfig, StoreEvent, StoreLayout, StoreMessage, StoreNode, SwitchId,
};
use switch::Time;

use crate::rig::{LEASE_MS, ROW, StoreRig, ms, value};

const NODE: NodeId = NodeId(0);

fn outputs(number: u8) -> CarriedOutputs {
    CarriedOutputs::new(&[number; 100]).expect("it is short enough")
}

/// Creates a rig whose first switch owns the row.
fn owned(switches: u32) -> StoreRig {
    let replica = ReplicaConfig { hold: HoldMode::Piggyback, ..ReplicaConfig::default() };
    let mut rig = StoreRig::with(switches, replica, StoreConfig::default());
    rig.acquire(ms(0), 0, ROW);
    rig.events[0].clear();
    rig
}

/// Writes a value with outputs of the same number, and returns the request.
fn write(rig: &mut StoreRig, now: Time, number: u8) -> StoreMessage {
    rig.replicas[0].write_with_outputs(now, &ROW, value(number), outputs(number));
    rig.take(0).remove(0)
}

fn receive(rig: &mut StoreRig, now: Time, messages: &[(Peer, StoreMessage)]) -> Vec<ReplicaEvent> {
    messages.iter().for_each(|(_, message)| rig.replicas[0].receive(now, NODE, message));
    rig.take(0);
    std::mem::take(&mut rig.events[0])
}

fn returned(seq: u64, number: u8) -> ReplicaEvent {
    ReplicaEvent::OutputsReturned { row: ROW, seq, outputs: outputs(number) }
}

fn acknowledged(seq: u64) -> ReplicaEvent {
    ReplicaEvent::Acknowledged { row: ROW, seq }
}

fn carried(rig: &StoreRig) -> (u64, u64, u64) {
    let CarriedCounts { sent, returned, lost } = rig.replicas[0].counts().carried;
    (sent, returned, lost)
}

#[test]
fn outputs_come_back_once_before_the_acknowledgement() {
    let mut rig = owned(1);
    let request = write(&mut rig, ms(1), 7);
    let replies = rig.deliver(ms(1), 0, request.clone());
    assert_eq!(receive(&mut rig, ms(1), &replies), [returned(1, 7), acknowledged(1)]);
    assert_eq!(receive(&mut rig, ms(1), &replies), []);
    // A copy of the request, before and after a newer write.
    let replies = rig.deliver(ms(2), 0, request.clone());
    assert_eq!(receive(&mut rig, ms(2), &replies), []);
    let newer = write(&mut rig, ms(3), 8);
    let mut replies = rig.deliver(ms(3), 0, newer);
    let repeated = rig.deliver(ms(3), 0, request);
    replies.extend_from_slice(&repeated);
    assert_eq!(repeated[0].1.carried_bytes(), 0, "the store returns outputs once");
    assert_eq!(receive(&mut rig, ms(3), &replies), [returned(2, 8), acknowledged(2)]);
    assert_eq!(carried(&rig), (2, 2, 0));
}

#[test]
fn there_is_room_only_for_a_write_that_is_sent_now() {
    let mut rig = owned(1);
    let room = |rig: &StoreRig, number| rig.replicas[0].room_for_outputs(&ROW, value(number).as_ref());
    assert!(room(&rig, 7) > 1200);
    let request = write(&mut rig, ms(1), 7);
    assert_eq!((room(&rig, 8), room(&rig, 7)), (0, 0), "a write is under way");
    rig.replicas[0].write(ms(1), &ROW, value(9));
    let replies = rig.deliver(ms(1), 0, request);
    assert_eq!(receive(&mut rig, ms(1), &replies), [returned(1, 7), acknowledged(1)]);
    rig.replicas[0].send_again(ms(2), &ROW);
    rig.run(ms(2));
    assert_eq!((room(&rig, 9), room(&rig, 8) > 1200), (0, true), "the row has this value");
    let local = StoreRig::new(1);
    assert_eq!(room(&local, 8), 0);
    rig.replicas[0].tick(ms(10 * LEASE_MS));
    assert_eq!(room(&rig, 8), 0, "the row is lost");
}

#[test]
fn a_lost_request_or_acknowledgement_loses_the_outputs_and_not_the_write() {
    for is_request_lost in [true, false] {
        let mut rig = owned(1);
        let late = write(&mut rig, ms(1), 7);
        let lost = if is_request_lost { Vec::new() } else { rig.deliver(ms(1), 0, late.clone()) };
        rig.replicas[0].tick(ms(20));
        let again = rig.take(0).remove(0);
        assert_eq!(again.carried_bytes(), 0, "a write is sent again without outputs");
        let replies = rig.deliver(ms(20), 0, again);
        assert_eq!(receive(&mut rig, ms(20), &replies), [acknowledged(1)]);
        // The late message arrives now: later outputs may have left.
        let mut replies = lost;
        replies.extend(rig.deliver(ms(21), 0, late));
        assert_eq!(receive(&mut rig, ms(21), &replies), []);
        assert_eq!(carried(&rig), (1, 0, 1));
        let values = rig.node.all_rows().map(|row| row.values.clone()).collect::<Vec<_>>();
        assert_eq!(values, [value(7)]);
    }
}

#[test]
fn an_acknowledgement_of_a_newer_write_means_that_the_outputs_are_lost() {
    let mut rig = owned(1);
    let late = write(&mut rig, ms(1), 7);
    rig.replicas[0].write(ms(2), &ROW, value(8));
    rig.replicas[0].tick(ms(20));
    let newest = rig.take(0).remove(0);
    let replies = rig.deliver(ms(20), 0, newest);
    assert_eq!(receive(&mut rig, ms(20), &replies), [acknowledged(2)]);
    let replies = rig.deliver(ms(21), 0, late);
    assert_eq!((receive(&mut rig, ms(21), &replies), carried(&rig)), (vec![], (1, 0, 1)));
}

#[test]
fn only_acknowledgements_of_the_current_epoch_and_incarnation_count() {
    let mut rig = owned(1);
    let request = write(&mut rig, ms(1), 7);
    let replies = rig.deliver(ms(1), 0, request);
    // The lease ends with the acknowledgement under way; the switch gets the row again, in another epoch.
    rig.replicas[0].tick(ms(LEASE_MS));
    rig.take(0);
    let StoreMessage::Reply(Reply { owner, body: ReplyBody::Acked { row, epoch, seq, outputs } }) = &replies[0].1
    else {
        panic!("{replies:?}")
    };
    let other = |epoch, owner| {
        let body = ReplyBody::Acked { row: *row, epoch, seq: *seq, outputs: outputs.clone() };
        [(Peer::Switch(SwitchId(0)), StoreMessage::Reply(Reply { owner, body }))]
    };
    rig.events[0].clear();
    assert_eq!(receive(&mut rig, ms(LEASE_MS), &other(epoch + 1, *owner)), []);
    let former = OwnerId { incarnation: 99, ..*owner };
    assert_eq!(receive(&mut rig, ms(LEASE_MS), &other(*epoch, former)), []);
    assert_eq!(receive(&mut rig, ms(LEASE_MS), &other(*epoch, *owner)), [returned(1, 7), acknowledged(1)]);
}

#[test]
fn outputs_of_a_write_of_an_ended_epoch_do_not_come_back() {
    let mut rig = owned(2);
    let late = write(&mut rig, ms(1), 7);
    rig.replicas[1].acquire(ms(2 * LEASE_MS), ROW);
    rig.run_until(ms(2 * LEASE_MS), ms(2 * LEASE_MS));
    // The write that was sent again is stale.
    assert_eq!(rig.events[0].last(), Some(&ReplicaEvent::Abandoned { row: ROW, seq: 1 }));
    rig.events[0].clear();
    let replies = rig.deliver(ms(2 * LEASE_MS), 0, late);
    assert_eq!(replies.iter().map(|(_, message)| message.carried_bytes()).sum::<usize>(), 0);
    assert_eq!((receive(&mut rig, ms(2 * LEASE_MS), &replies), carried(&rig)), (vec![], (1, 0, 1)));
}

/// The first nodes of a chain, with the messages that they send.
struct Nodes {
    nodes: Vec<StoreNode>,
    owner: OwnerId,
    /// Disk records, if there are disks. [`Nodes::persist`] makes them durable.
    records: Vec<StoreRecord>,
}

impl Nodes {
    fn new(length: u32, config: StoreConfig) -> Nodes {
        let member = |node| ChainMember { node: NodeId(node), life: 1 };
        let members: Vec<ChainMember> = (0..length).map(member).collect();
        let layout = Arc::new(StoreLayout::new(1, vec![ShardChain { members: members.clone(), learner: None }]));
        let node = |me: &ChainMember| StoreNode::founding(config, *me, 1, Time::ZERO, &layout);
        let mut nodes: Vec<StoreNode> = members.iter().map(node).collect();
        // Each predecessor learns the state of its successor.
        let mut started = Nodes {
            owner: OwnerId { switch: SwitchId(1), incarnation: 1 },
            records: Vec::new(),
            nodes: std::mem::take(&mut nodes),
        };
        (0..2 * length).for_each(|_| _ = started.settle(Time::ZERO));
        let renewal = RequestBody::Renew { shard: ShardId(0), nonce: 1 };
        let ask = RequestBody::Acquire {
            row: ROW,
            ask: 1,
            if_missing: IfMissing::Grant,
            idle_ms: 0,
            access: resilient::RowAccess::Write,
        };
        for body in [renewal, ask] {
            started.request(body);
            (0..2 * length).for_each(|_| _ = started.settle(Time::ZERO));
        }
        started
    }

    fn request(&mut self, body: RequestBody) {
        let request = Request { layout: 1, owner: self.owner, body };
        self.nodes[0].receive(Time::ZERO, Peer::Switch(self.owner.switch), StoreMessage::Request(request));
    }

    fn write(&mut self, seq: u64) {
        self.request(RequestBody::Write { row: ROW, epoch: 1, seq, values: value(7), outputs: Some(outputs(7)) });
    }

    /// Collects the messages of a node.
    fn take(&mut self, at: usize, now: Time) -> Vec<(Peer, StoreMessage)> {
        self.nodes[at].flush(now);
        let mut messages = Vec::new();
        for event in self.nodes[at].take_events() {
            match event {
                StoreEvent::Send { to, message } => messages.push((to, message)),
                StoreEvent::Persist { record, .. } => self.records.push(record),
            }
        }
        messages
    }

    fn persist(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.persisted(u64::MAX));
    }

    /// Delivers the messages between nodes once, and returns the replies.
    fn settle(&mut self, now: Time) -> Vec<ReplyBody> {
        let mut replies = Vec::new();
        for at in 0..self.nodes.len() {
            self.persist();
            for (to, message) in self.take(at, now) {
                match (to, message) {
                    (Peer::Node(to), message) => {
                        self.nodes[to.0 as usize].receive(now, Peer::Node(NodeId(at as u32)), message);
                    }
                    (_, StoreMessage::Reply(reply)) => replies.push(reply.body),
                    _ => {}
                }
            }
        }
        replies
    }
}

fn operations(messages: &[(Peer, StoreMessage)]) -> Vec<Operation> {
    let of = |(_, message): &(Peer, StoreMessage)| match message {
        StoreMessage::Forward(Forward { operations, .. }) => operations.clone(),
        _ => Vec::new(),
    };
    messages.iter().flat_map(of).collect()
}

#[test]
fn outputs_pass_the_whole_chain_and_only_the_tail_returns_them() {
    for length in 1..=3 {
        let mut nodes = Nodes::new(length, StoreConfig::default());
        nodes.write(1);
        for at in 0..length as usize - 1 {
            let messages = nodes.take(at, Time::ZERO);
            assert!(messages.iter().all(|(to, _)| matches!(to, Peer::Node(_))), "{messages:?}");
            assert_eq!(operations(&messages).iter().map(Operation::carried_bytes).collect::<Vec<_>>(), [100]);
            let from = Peer::Node(NodeId(at as u32));
            for (to, message) in messages {
                nodes.nodes[to.node().unwrap().0 as usize].receive(Time::ZERO, from, message);
            }
        }
        let replies = nodes.settle(Time::ZERO);
        assert_eq!(replies, [ReplyBody::Acked { row: ROW, epoch: 1, seq: 1, outputs: Some(outputs(7)) }]);
        let reports = nodes.nodes.iter().map(|node| node.shard_reports()[0].carried);
        assert!(reports.into_iter().all(|carried| (carried.writes, carried.dropped) == (1, 0)));
    }
}

#[test]
fn a_node_forgets_outputs_when_it_has_sent_them_on() {
    let mut nodes = Nodes::new(3, StoreConfig::default());
    nodes.write(1);
    assert_eq!(operations(&nodes.take(0, Time::ZERO))[0].carried_bytes(), 100);
    // The message is lost. The next one has only the write.
    let later = ms(LEASE_MS / 2);
    nodes.nodes[0].tick(later);
    let again = operations(&nodes.take(0, later));
    assert_eq!(again.iter().map(|it| (it.row().copied(), it.carried_bytes())).collect::<Vec<_>>(), [(Some(ROW), 0)]);
}

#[test]
fn memory_for_outputs_is_bounded_and_the_writes_count() {
    let config = StoreConfig { max_carried_bytes: 250, ..StoreConfig::default() };
    let mut nodes = Nodes::new(2, config);
    // Nothing is forwarded between these requests.
    (1..=5).for_each(|seq| nodes.write(seq));
    let carried = nodes.nodes[0].shard_reports()[0].carried;
    assert_eq!((carried.writes, carried.dropped), (2, 3));
    let carried: Vec<usize> = operations(&nodes.take(0, Time::ZERO)).iter().map(Operation::carried_bytes).collect();
    assert_eq!(carried, [100, 100, 0, 0, 0]);
    // Memory is free again.
    nodes.write(6);
    assert_eq!(operations(&nodes.take(0, Time::ZERO))[0].carried_bytes(), 100);
}

#[test]
fn disks_never_have_outputs_and_messages_that_wait_for_them_count_as_memory() {
    let config = StoreConfig { max_carried_bytes: 250, is_durable: true, ..StoreConfig::default() };
    for length in [1, 2] {
        let mut nodes = Nodes::new(length, config);
        nodes.records.clear();
        (1..=4).for_each(|seq| {
            nodes.write(seq);
            assert_eq!(nodes.take(0, Time::ZERO), [], "the disk is not ready");
        });
        let carried = nodes.nodes[0].shard_reports()[0].carried;
        assert_eq!((carried.writes, carried.dropped), (2, 2));
        assert_eq!(nodes.records.len(), 4);
        for record in &nodes.records {
            let StoreRecord::Shard { change: ShardChange::Applied { kept, .. }, .. } = record else {
                panic!("{record:?}")
            };
            assert!(kept.iter().all(|operation| operation.carried_bytes() == 0), "{kept:?}");
        }
        nodes.persist();
        let messages = nodes.take(0, Time::ZERO);
        assert_eq!(messages.iter().map(|(_, message)| message.carried_bytes()).sum::<usize>(), 200);
        nodes.write(5);
        assert_eq!(nodes.nodes[0].shard_reports()[0].carried.dropped, 2, "there is memory again");
    }
}

#[test]
fn another_row_has_outputs_of_its_own() {
    let mut rig = owned(1);
    let other = RowId::of_index(1, 1);
    rig.acquire(ms(1), 0, other);
    rig.events[0].clear();
    rig.replicas[0].write_with_outputs(ms(2), &ROW, value(1), outputs(1));
    rig.replicas[0].write_with_outputs(ms(2), &other, value(2), outputs(2));
    rig.run(ms(2));
    let events = std::mem::take(&mut rig.events[0]);
    let of_other = [
        ReplicaEvent::OutputsReturned { row: other, seq: 1, outputs: outputs(2) },
        ReplicaEvent::Acknowledged { row: other, seq: 1 },
    ];
    assert_eq!(events, [returned(1, 1), acknowledged(1)].into_iter().chain(of_other).collect::<Vec<_>>());
}
