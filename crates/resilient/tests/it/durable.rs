//! Tests the disk of a node: the writes of a transaction, and the state after a restart.

use std::sync::Arc;

use resilient::message::{Forward, IfMissing, NumberPool, Operation, ReplyBody, Request, RequestBody};
use resilient::simulation::NodeDisk;
use resilient::store::{EntryChange, GroupCommit, StoreRecord, StoreRecovery};
use resilient::{
    ChainMember, NodeId, OwnerId, Peer, RowAccess, RowId, ShardChain, ShardId, StoreConfig, StoreEvent, StoreLayout,
    StoreMessage, StoreNode, SwitchId, expiry_ns,
};
use rng::SplitMix64;
use switch::Time;

use crate::rig::value;

const LEASE_NS: u64 = 1_000_000_000;
const RETRANSMIT_NS: u64 = 10_000_000;
const ROWS: u64 = 7;

fn config() -> StoreConfig {
    StoreConfig { lease_ns: LEASE_NS, retransmit_ns: RETRANSMIT_NS, is_durable: true, ..StoreConfig::default() }
}

fn member(node: u32) -> ChainMember {
    ChainMember { node: NodeId(node), life: 1 }
}

fn owner(switch: u32) -> OwnerId {
    OwnerId { switch: SwitchId(switch), incarnation: 1 }
}

fn request(switch: u32, body: RequestBody) -> StoreMessage {
    StoreMessage::Request(Request { layout: 1, owner: owner(switch), body })
}

/// A chain of two nodes with disks whose messages arrive at once.
struct DurableChain {
    nodes: Vec<StoreNode>,
    disks: Vec<NodeDisk>,
    /// The records of the head.
    records: Vec<(u64, StoreRecord)>,
    replies: Vec<ReplyBody>,
}

impl DurableChain {
    fn new(length: u32) -> DurableChain {
        let members: Vec<ChainMember> = (0..length).map(member).collect();
        let chain = ShardChain { members: members.clone(), learner: None };
        let layout = Arc::new(StoreLayout::new(1, vec![chain]));
        let node = |me: &ChainMember| StoreNode::founding(config(), *me, 1, Time::ZERO, &layout);
        let nodes = members.iter().map(node).collect();
        let disks = members.iter().map(|_| NodeDisk::default()).collect();
        let mut chain = DurableChain { nodes, disks, records: Vec::new(), replies: Vec::new() };
        chain.run(Time::ZERO);
        chain
    }

    fn request(&mut self, now: Time, switch: u32, body: RequestBody) {
        self.nodes[0].receive(now, Peer::Switch(SwitchId(switch)), request(switch, body));
        self.run(now);
    }

    /// Lets disks write, and messages arrive, until nothing is left.
    fn run(&mut self, now: Time) {
        let mut is_idle = false;
        while !std::mem::replace(&mut is_idle, true) {
            for index in 0..self.nodes.len() {
                self.nodes[index].flush(now);
                let events: Vec<StoreEvent> = self.nodes[index].take_events().collect();
                for event in events {
                    is_idle = false;
                    match event {
                        StoreEvent::Persist { number, record } => {
                            self.disks[index].write(number, record.clone());
                            self.disks[index].sync(number);
                            self.nodes[index].persisted(number);
                            if index == 0 {
                                self.records.push((number, record));
                            }
                        }
                        StoreEvent::Send { to: Peer::Node(node), message } => {
                            self.nodes[node.0 as usize].receive(now, Peer::Node(NodeId(index as u32)), message);
                        }
                        StoreEvent::Send { message: StoreMessage::Reply(reply), .. } => self.replies.push(reply.body),
                        StoreEvent::Send { .. } => {}
                    }
                }
            }
        }
    }

    /// Restarts all nodes from their disks.
    fn restart(&mut self, now: Time) {
        for (index, disk) in self.disks.iter_mut().enumerate() {
            self.nodes[index] = disk.recover(config(), member(index as u32), 2, now);
        }
        self.run(now);
    }

    /// Makes random requests of two switches.
    fn make_requests(&mut self, random: &mut SplitMix64, count: u64) {
        let mut now = Time::ZERO;
        for number in 1..=count {
            now = now.after_ns(random.below(2_000_000));
            let (switch, row) = (1 + random.below(2) as u32, RowId::of_index(1, random.below(ROWS) as u32));
            let (epoch, seq) = (1 + random.below(3), number);
            let body = match random.below(8) {
                0 => RequestBody::Renew { shard: ShardId(0), nonce: number },
                1 | 2 => RequestBody::Acquire {
                    row,
                    ask: number,
                    if_missing: IfMissing::Grant,
                    idle_ms: 0,
                    access: RowAccess::Write,
                },
                3 => RequestBody::Release { row, epoch, is_idle: false },
                4 => RequestBody::Write { row, epoch, seq, values: None, outputs: None },
                _ => RequestBody::Write { row, epoch, seq, values: value(number as u8), outputs: None },
            };
            self.request(now, switch, body);
        }
    }
}

#[test]
fn a_removed_row_leaves_the_disks_and_its_epochs_do_not_return() {
    let mut chain = DurableChain::new(2);
    let row = RowId::of_index(2, 1);
    let pool = NumberPool { first: 1, last: 9, bytes: 2, is_shared: false };
    let acquire = |ask| RequestBody::Acquire {
        row,
        ask,
        if_missing: IfMissing::Allocate(pool),
        idle_ms: 1000,
        access: RowAccess::Write,
    };
    chain.request(Time::ZERO, 1, RequestBody::Renew { shard: ShardId(0), nonce: 1 });
    (1..=3).for_each(|ask| chain.request(Time::ZERO, 1, acquire(ask)));
    assert!(chain.disks.iter().all(|disk| disk.rows().count() == 2), "a row and its number");
    chain.request(Time::ZERO, 1, RequestBody::Release { row, epoch: 3, is_idle: true });
    assert!(chain.disks.iter().all(|disk| disk.rows().count() == 0));
    chain.restart(Time::ZERO);
    assert!(chain.nodes.iter().all(|node| node.rows(ShardId(0)) == 0));
    chain.request(Time::ZERO, 1, acquire(4));
    let granted = chain.replies.iter().filter_map(|reply| match reply {
        ReplyBody::Granted { ask, epoch, .. } => Some((*ask, *epoch)),
        _ => None,
    });
    assert_eq!(granted.collect::<Vec<_>>(), [(1, 1), (2, 2), (3, 3), (4, 4)]);
}

/// Commits records in transactions of random lengths.
fn committed(random: &mut SplitMix64, records: &[(u64, StoreRecord)], longest: u64) -> NodeDisk {
    let mut disk = NodeDisk::default();
    records.iter().for_each(|(number, record)| disk.write(*number, record.clone()));
    let mut number = 0;
    while disk.writing() > 0 {
        number += 1 + random.below(longest);
        disk.sync(number);
    }
    disk
}

#[test]
fn a_disk_has_the_same_rows_whatever_shares_a_transaction() {
    let mut random = SplitMix64::new(3);
    for length in [1, 2] {
        let mut chain = DurableChain::new(length);
        chain.make_requests(&mut random, 400);
        for _ in 0..50 {
            let cut = random.below(chain.records.len() as u64 + 1) as usize;
            let single = committed(&mut random, &chain.records[..cut], 1);
            let grouped = committed(&mut random, &chain.records[..cut], 100);
            let without_operations = |disk: &NodeDisk| -> Vec<(Vec<u8>, Vec<u8>)> {
                let entries = disk.entries().iter().filter(|(key, _)| key[0] != 4);
                entries.map(|(key, value)| (key.clone(), value.clone())).collect()
            };
            assert_eq!(without_operations(&single), without_operations(&grouped));
            let nodes = [single, grouped].map(|mut disk| disk.recover(config(), member(0), 2, Time::ZERO));
            assert_eq!(format!("{:?}", nodes[0]), format!("{:?}", nodes[1]));
        }
    }
}

#[test]
fn a_disk_grows_with_the_rows_and_not_with_the_writes() {
    let mut random = SplitMix64::new(4);
    for length in [1, 2] {
        let mut chain = DurableChain::new(length);
        chain.make_requests(&mut random, 5000);
        assert_eq!(chain.nodes[0].rows(ShardId(0)), ROWS as usize);
        // The layout, the shard, the rows, and operations that the last one did not trim yet.
        let entries = chain.disks.iter().map(|disk| disk.entries().len()).max();
        assert!(entries.is_some_and(|entries| entries <= 2 + ROWS as usize + 3), "{entries:?}");
    }
}

#[test]
fn a_row_is_another_switchs_when_a_restarted_store_has_waited_for_a_whole_lease() {
    let mut chain = DurableChain::new(1);
    let (row, shard) = (RowId::of_index(1, 1), ShardId(0));
    let granted = |chain: &DurableChain| {
        chain.replies.iter().filter(|reply| matches!(reply, ReplyBody::Granted { ask: 2, .. })).count()
    };
    chain.request(Time::ZERO, 1, RequestBody::Renew { shard, nonce: 1 });
    chain.request(
        Time::ZERO,
        1,
        RequestBody::Acquire { row, ask: 1, if_missing: IfMissing::Grant, idle_ms: 0, access: RowAccess::Write },
    );
    chain.request(Time::ZERO, 1, RequestBody::Write { row, epoch: 1, seq: 1, values: value(7), outputs: None });
    // The clock of a process starts at zero. The lease of switch 1 may have been renewed just before.
    chain.restart(Time::ZERO);
    chain.request(Time::ZERO, 2, RequestBody::Renew { shard, nonce: 1 });
    let expiry = Time::from_ns(expiry_ns(LEASE_NS, config().drift_ppm));
    chain.request(Time::from_ns(expiry.as_ns() - 1), 2, RequestBody::Renew { shard, nonce: 2 });
    chain.request(
        Time::from_ns(expiry.as_ns() - 1),
        2,
        RequestBody::Acquire { row, ask: 2, if_missing: IfMissing::Grant, idle_ms: 0, access: RowAccess::Write },
    );
    assert_eq!(granted(&chain), 0);
    chain.request(
        expiry,
        2,
        RequestBody::Acquire { row, ask: 2, if_missing: IfMissing::Grant, idle_ms: 0, access: RowAccess::Write },
    );
    let last = ReplyBody::Granted { row, ask: 2, epoch: 2, seq: 1, values: value(7), is_shared: false };
    assert_eq!(chain.replies.last(), Some(&last));
}

#[test]
fn a_successor_gets_the_operations_that_only_the_disk_of_its_predecessor_has() {
    let mut chain = DurableChain::new(2);
    let (row, shard) = (RowId::of_index(1, 1), ShardId(0));
    let now = Time::from_ms(1);
    chain.request(now, 1, RequestBody::Renew { shard, nonce: 1 });
    chain.request(
        now,
        1,
        RequestBody::Acquire { row, ask: 1, if_missing: IfMissing::Grant, idle_ms: 0, access: RowAccess::Write },
    );
    // The head stops when the write is on its disk, before it has forwarded it.
    let write = RequestBody::Write { row, epoch: 1, seq: 1, values: value(7), outputs: None };
    chain.nodes[0].receive(now, Peer::Switch(SwitchId(1)), request(1, write));
    for event in chain.nodes[0].take_events().collect::<Vec<_>>() {
        let StoreEvent::Persist { number, record } = event else { panic!("{event:?} leaves before the disk has it") };
        chain.disks[0].write(number, record);
        chain.disks[0].sync(number);
    }
    chain.replies.clear();
    chain.nodes[0] = chain.disks[0].recover(config(), member(0), 2, now);
    chain.run(now);
    for node in 0..2 {
        chain.nodes[node].tick(now.after_ns(RETRANSMIT_NS));
    }
    chain.run(now.after_ns(RETRANSMIT_NS));
    assert_eq!(chain.replies, [ReplyBody::Acked { row, epoch: 1, seq: 1, outputs: None }]);
}

#[test]
fn entries_that_no_node_wrote_are_refused_or_leave_a_node_that_runs() {
    let mut random = SplitMix64::new(5);
    let mut chain = DurableChain::new(2);
    chain.make_requests(&mut random, 100);
    // Operations that the other node has not reported stay on disk.
    chain.nodes.truncate(1);
    let write = RequestBody::Renew { shard: ShardId(0), nonce: 9 };
    chain.nodes[0].receive(Time::from_ms(1), Peer::Switch(SwitchId(1)), request(1, write));
    for event in chain.nodes[0].take_events().collect::<Vec<_>>() {
        let StoreEvent::Persist { number, record } = event else { continue };
        chain.disks[0].write(number, record);
        chain.disks[0].sync(number);
    }
    let entries: Vec<_> = chain.disks[0].entries().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    assert!(entries.iter().any(|(key, _)| key[0] == 4));
    let mut refused = 0;
    for _ in 0..5000 {
        let mut entries = entries.clone();
        let at = random.below(entries.len() as u64) as usize;
        let (key, value) = &mut entries[at];
        let bytes = if random.percent(30) { key } else { value };
        match random.below(3) {
            0 => bytes.truncate(random.below(bytes.len() as u64 + 1) as usize),
            1 => bytes.push(random.below(256) as u8),
            _ if bytes.is_empty() => {}
            _ => {
                let at = random.below(bytes.len() as u64) as usize;
                let any = random.next_u64() as u8;
                bytes[at] = random.pick(&[(1, 0), (1, 0xff), (1, any)]);
            }
        }
        let mut recovery = StoreRecovery::new(config(), member(0), 1, Time::ZERO);
        let is_read = entries.iter().all(|(key, value)| recovery.entry(key, value).is_ok());
        let Some((mut node, _)) = is_read.then(|| recovery.finish().ok()).flatten() else {
            refused += 1;
            continue;
        };
        node.tick(Time::from_ms(1));
        node.receive(
            Time::from_ms(1),
            Peer::Switch(SwitchId(1)),
            request(
                1,
                RequestBody::Acquire {
                    row: RowId::empty(1),
                    ask: 1,
                    if_missing: IfMissing::Grant,
                    idle_ms: 0,
                    access: RowAccess::Write,
                },
            ),
        );
        node.flush(Time::from_ms(1));
        node.take_events().for_each(drop);
    }
    assert!((1000..5000).contains(&refused), "{refused}");
}

#[test]
fn a_transaction_without_records_is_none() {
    let mut commit = GroupCommit::default();
    assert!(commit.take().is_none());
    let layout = Arc::new(StoreLayout::new(1, Vec::new()));
    commit.push(1, StoreRecord::Layout { layout, left: vec![ShardId(3)] });
    let batch = commit.take().expect("a record waits");
    assert_eq!((batch.up_to(), batch.records(), batch.rows()), (1, 1, 0));
    let removed = |change: &EntryChange| matches!(change, EntryChange::RemoveAll(key) if key[1..] == [0, 3]);
    assert_eq!(batch.changes().filter(removed).count(), 2);
    assert!(commit.take().is_none());
}

/// Returns the time in milliseconds after which a tail that restarted with a shorter lease, and became the head, grants
/// a row of another switch.
fn granted_by_a_promoted_tail() -> u64 {
    const LONG_NS: u64 = 60_000_000_000;
    let config = StoreConfig { lease_ns: LONG_NS, ..config() };
    let chain = |members| StoreLayout::new(1, vec![ShardChain { members, learner: None }]);
    let mut disk = NodeDisk::default();
    let mut run = |node: &mut StoreNode| {
        let mut sent = Vec::new();
        loop {
            let events: Vec<StoreEvent> = node.take_events().collect();
            if events.is_empty() {
                return sent;
            }
            for event in events {
                match event {
                    StoreEvent::Send { message, .. } => sent.push(message),
                    StoreEvent::Persist { number, record } => disk.write(number, record),
                }
            }
            disk.sync(u64::MAX);
            node.persisted(u64::MAX);
        }
    };
    let layout = Arc::new(chain(vec![member(1), member(2)]));
    let mut node = StoreNode::founding(config, member(2), 1, Time::ZERO, &layout);
    run(&mut node);
    let row = RowId::empty(1);
    let operations = vec![
        Operation::Renew { owner: owner(1), nonce: 1 },
        Operation::Grant { owner: owner(1), row, ask: 1, epoch: 1, created: None, idle_ms: 0, is_shared: false },
    ];
    let shard = ShardId(0);
    let forward = Forward { layout: 1, shard, base: 1, floor: Some(0), first: 1, operations, chunk: None };
    node.receive(Time::ZERO, Peer::Node(NodeId(1)), StoreMessage::Forward(forward));
    node.flush(Time::ZERO);
    run(&mut node);
    // As a server restarts: later by the difference of the leases.
    let config = StoreConfig { lease_ns: LEASE_NS, ..config };
    let drift = config.drift_ppm;
    let start = Time::from_ns(expiry_ns(LONG_NS, drift) - expiry_ns(LEASE_NS, drift));
    let mut node = disk.recover(config, member(2), 2, start);
    let run = |node: &mut StoreNode| {
        let events: Vec<StoreEvent> = node.take_events().collect();
        node.persisted(u64::MAX);
        events.into_iter().chain(node.take_events()).any(|event| format!("{event:?}").contains("Granted"))
    };
    let alone = ShardChain { members: vec![member(2)], learner: None };
    node.set_layout(Time::from_ms(300), &Arc::new(StoreLayout::new(2, vec![alone])));
    for tick in 1..2000 {
        let now = Time::from_ms(100 * tick);
        for body in [
            RequestBody::Renew { shard, nonce: tick },
            RequestBody::Acquire { row, ask: 1, if_missing: IfMissing::Grant, idle_ms: 0, access: RowAccess::Write },
        ] {
            let request = Request { layout: 2, owner: owner(2), body };
            node.receive(now, Peer::Switch(SwitchId(2)), StoreMessage::Request(request));
        }
        node.tick(now);
        if run(&mut node) {
            return now.as_us() / 1000;
        }
    }
    u64::MAX
}

#[test]
fn a_store_that_restarts_honours_its_longest_lease_even_if_it_becomes_the_head_later() {
    let ms = granted_by_a_promoted_tail();
    assert!((60_000..=62_000).contains(&ms), "{ms}");
}
