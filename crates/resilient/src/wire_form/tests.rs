//! Random messages, and damaged ones.

use std::sync::Arc;

use rng::SplitMix64;
use switch::Time;

use super::*;
use crate::carried::CarriedOutputs;
use crate::holders::{RowAccess, RowHolders, RowReader};
use crate::layout::{ChainMember, NodeId, OperatorId, ShardChain, ShardId, StoreLayout, SwitchId};
use crate::message::{
    Content, CopyChunk, CreatedRow, Forward, GroupStatus, IfMissing, NodeStatus, NumberPool, Operation, OwnerId, Peer,
    Progress, Reply, ReplyBody, Request, RequestBody, RowRecord, ShardStatus, StatusRequest,
};
use crate::replica::{ReplicaConfig, StateReplica};
use crate::row::{RowId, RowValues};
use crate::store::{StoreConfig, StoreNode};

/// Draws parts of messages.
struct Random {
    rng: SplitMix64,
    /// Whether most numbers are small, and most rows are few, as those that a machine knows.
    is_likely: bool,
}

impl Random {
    fn new(seed: u64) -> Random {
        Random { rng: SplitMix64::new(seed), is_likely: false }
    }

    fn number(&mut self) -> u64 {
        if self.is_likely && self.rng.below(8) > 0 {
            return self.rng.below(4);
        }
        let bits = self.rng.below(64);
        self.rng.next_u64() >> bits
    }

    fn row(&mut self) -> RowId {
        if self.is_likely && self.rng.below(8) > 0 {
            return RowId::of_index(0, self.rng.below(3) as u32);
        }
        let key: Vec<u8> = (0..self.rng.below(40)).map(|_| self.rng.next_u64() as u8).collect();
        RowId::new(self.number(), &key).expect("the key is short enough")
    }

    fn values(&mut self) -> Option<RowValues> {
        let length = [0, 1, 4, 16, 17, 1024][self.rng.below(6) as usize];
        let bytes: Vec<u8> = (0..length).map(|_| self.rng.next_u64() as u8).collect();
        (self.rng.below(4) > 0).then(|| RowValues::new(&bytes).expect("the values are short enough"))
    }

    fn outputs(&mut self) -> Option<CarriedOutputs> {
        let length = [1, 64, 700, MAX_PAYLOAD][self.rng.below(4) as usize];
        let bytes: Vec<u8> = (0..length).map(|_| self.rng.next_u64() as u8).collect();
        (self.rng.below(3) == 0).then(|| CarriedOutputs::new(&bytes).expect("the outputs are short enough"))
    }

    fn owner(&mut self) -> OwnerId {
        OwnerId { switch: SwitchId(self.number() as u32), incarnation: self.number() }
    }

    fn member(&mut self) -> ChainMember {
        ChainMember { node: NodeId(self.number() as u32), life: self.number() }
    }

    fn list<T>(&mut self, most: u64, make: impl Fn(&mut Self) -> T) -> Vec<T> {
        (0..self.rng.below(most)).map(|_| make(self)).collect()
    }

    fn option<T>(&mut self, make: impl Fn(&mut Self) -> T) -> Option<T> {
        (self.rng.below(2) > 0).then(|| make(self))
    }

    fn shard(&mut self) -> ShardId {
        ShardId(self.number() as u16)
    }

    fn request(&mut self) -> RequestBody {
        let (row, epoch) = (self.row(), self.number());
        match self.rng.below(4) {
            0 => RequestBody::Renew { shard: self.shard(), nonce: self.number() },
            1 => {
                let access = [RowAccess::Read, RowAccess::ReadFirst, RowAccess::Write][self.rng.below(3) as usize];
                let (ask, if_missing) = (self.number(), self.if_missing());
                RequestBody::Acquire { row, ask, if_missing, idle_ms: epoch as u32, access }
            }
            2 => RequestBody::Write { row, epoch, seq: self.number(), values: self.values(), outputs: self.outputs() },
            _ => RequestBody::Release { row, epoch, is_idle: self.rng.below(2) > 0 },
        }
    }

    fn if_missing(&mut self) -> IfMissing {
        match self.rng.below(4) {
            0 => IfMissing::Grant,
            1 => IfMissing::Refuse,
            2 => IfMissing::Create(self.values().unwrap_or_default()),
            _ => IfMissing::Allocate(NumberPool {
                first: self.number(),
                last: self.number(),
                bytes: self.rng.below(10) as u8,
                is_shared: self.rng.below(2) > 0,
            }),
        }
    }

    fn created(&mut self) -> CreatedRow {
        CreatedRow { values: self.values().unwrap_or_default(), number: self.option(Self::row) }
    }

    fn reply(&mut self) -> ReplyBody {
        let (row, epoch) = (self.row(), self.number());
        use RefusalReason::{
            NoSuchRow, PoolExhausted, ReplicaFull, RowContended, ShardContended, StoreFull, TooManyAsks,
        };
        let reasons = [ReplicaFull, TooManyAsks, RowContended, ShardContended, StoreFull, NoSuchRow, PoolExhausted];
        match self.rng.below(8) {
            0 => ReplyBody::Renewed { shard: self.shard(), nonce: self.number() },
            1 => {
                let (ask, seq, values) = (self.number(), self.number(), self.values());
                ReplyBody::Granted { row, ask, epoch, seq, values, is_shared: self.rng.below(2) > 0 }
            }
            2 => ReplyBody::Refused { row, ask: self.number(), reason: reasons[self.rng.below(7) as usize] },
            3 => ReplyBody::Recall { row, epoch },
            4 => ReplyBody::Acked { row, epoch, seq: self.number(), outputs: self.outputs() },
            5 => ReplyBody::Stale { row, epoch },
            6 => ReplyBody::Released { row, epoch },
            _ => ReplyBody::Probe { row, epoch },
        }
    }

    fn operation(&mut self) -> Operation {
        let (owner, row, epoch) = (self.owner(), self.row(), self.number());
        match self.rng.below(6) {
            0 => Operation::Renew { owner, nonce: epoch },
            1 => {
                let (ask, created, idle_ms) = (self.number(), self.option(Self::created), self.number() as u32);
                Operation::Grant { owner, row, ask, epoch, created, idle_ms, is_shared: self.rng.below(2) > 0 }
            }
            2 => Operation::Miss { owner, row, ask: self.number() },
            3 => Operation::Write {
                owner,
                row,
                epoch,
                seq: self.number(),
                values: self.values(),
                outputs: self.outputs(),
            },
            4 => Operation::Release { owner, row, epoch },
            _ => Operation::Remove { row, partner: self.option(Self::row), epoch },
        }
    }

    fn holders(&mut self) -> RowHolders {
        let mut holders = self.option(Self::owner).map_or(RowHolders::Nobody, RowHolders::Owner);
        for _ in 0..self.rng.below(4).saturating_sub(1) {
            let (owner, ask, epoch) = (self.owner(), self.number(), self.number());
            holders.add_reader(RowReader { owner, ask, epoch });
        }
        holders
    }

    fn row_state(&mut self) -> RowRecord {
        let (row, holders, values) = (self.row(), self.holders(), self.values());
        let (ask, epoch, seq) = (self.number(), self.number(), self.number());
        RowRecord { row, holders, ask, epoch, seq, values, idle_ms: self.number() as u32 }
    }

    fn chunk(&mut self) -> CopyChunk {
        let (copy, position, next, at) = (self.number(), self.number(), self.number(), self.number());
        let (is_last, epoch_floor) = (self.rng.below(2) > 0, self.number());
        CopyChunk { copy, position, next, at, is_last, epoch_floor, rows: self.list(4, Self::row_state) }
    }

    fn forward(&mut self) -> Forward {
        let (layout, base, floor, first) = (self.number(), self.number(), self.option(Self::number), self.number());
        let operations = self.list(4, Self::operation);
        Forward { layout, shard: self.shard(), base, floor, first, operations, chunk: self.option(Self::chunk) }
    }

    fn progress(&mut self) -> Progress {
        let content = match self.rng.below(3) {
            0 => Content::Empty,
            1 => Content::Copying { copy: self.number(), position: self.number() },
            _ => Content::Complete,
        };
        let (layout, applied, stable) = (self.number(), self.number(), self.number());
        Progress { layout, shard: self.shard(), content, applied, stable, is_active: self.rng.below(2) > 0 }
    }

    fn layout(&mut self) -> StoreLayout {
        let chain = |random: &mut Self| ShardChain {
            members: random.list(6, Self::member),
            learner: random.option(Self::member),
        };
        StoreLayout::new(self.number(), self.list(5, chain))
    }

    fn shard_status(&mut self) -> ShardStatus {
        let (is_active, is_complete) = (self.rng.below(2) > 0, self.rng.below(2) > 0);
        let (rows, log, pending) = (self.number(), self.number(), self.number());
        ShardStatus { shard: self.shard(), is_active, is_complete, rows, log, pending }
    }

    fn status(&mut self) -> NodeStatus {
        let (number, life, layout) = (self.number(), self.number(), self.number());
        let (shards, groups) = (self.list(4, Self::shard_status), self.list(4, Self::group_status));
        NodeStatus { number, life, layout, shards, groups }
    }

    fn group_status(&mut self) -> GroupStatus {
        let range = (self.rng.below(2) > 0).then(|| (self.number(), self.number()));
        GroupStatus { group: self.number(), rows: self.number(), range }
    }

    fn message(&mut self) -> StoreMessage {
        match self.rng.below(8) {
            0 => {
                let (layout, owner) = (self.number(), self.owner());
                StoreMessage::Request(Request { layout, owner, body: self.request() })
            }
            1 => StoreMessage::Reply(Reply { owner: self.owner(), body: self.reply() }),
            2 => StoreMessage::Forward(self.forward()),
            3 => StoreMessage::Progress(self.progress()),
            4 => StoreMessage::Layout(Arc::new(self.layout())),
            5 => StoreMessage::Status(self.status()),
            6 => StoreMessage::StatusRequest(StatusRequest { number: self.number(), layout: self.number() }),
            _ => StoreMessage::LayoutRequest(self.number()),
        }
    }
}

/// Returns the form of messages in a datagram with this switch at an end, without header and tag.
fn written(messages: &[StoreMessage], switch: Option<OwnerId>) -> Vec<u8> {
    let mut datagram = DatagramWriter::new(switch);
    assert!(messages.iter().all(|message| datagram.append(message, usize::MAX)));
    datagram.into_bytes().split_off(HEADER_BYTES)
}

#[test]
fn messages_round_trip() {
    let mut random = Random::new(1);
    for _ in 0..2_000 {
        let messages = random.list(5, Random::message);
        let switch = random.option(Random::owner);
        assert_eq!(read_messages(&written(&messages, switch), switch), Ok(messages));
    }
}

#[test]
fn a_datagram_is_filled_up_to_its_limit() {
    let message = StoreMessage::LayoutRequest(7);
    let mut datagram = DatagramWriter::new(None);
    let appended = (0..9).filter(|_| datagram.append(&message, HEADER_BYTES + 30)).count();
    let bytes = datagram.into_bytes();
    assert_eq!((appended, bytes.len()), (3, HEADER_BYTES + 3 * 9));
    assert_eq!(read_messages(&bytes[HEADER_BYTES..], None).map(|messages| messages.len()), Ok(3));
}

#[test]
fn receivers_are_in_the_order_of_their_first_messages() {
    let message = StoreMessage::LayoutRequest(1);
    let to = [3, 1, 3, 2, 1].map(|receiver| (receiver, message.clone()));
    let receivers: Vec<i32> = datagrams(&to, |_| None).into_iter().map(|(receiver, _)| receiver).collect();
    assert_eq!(receivers, [3, 1, 2]);
}

#[test]
fn malformed_datagrams_are_refused_without_panic() {
    let mut random = Random::new(2);
    let mut refused = 0;
    for _ in 0..20_000 {
        let mut bytes = datagram(&random.message()).split_off(HEADER_BYTES);
        assert!(read_messages(&bytes[..bytes.len() - 1], None).is_err(), "a part of a message is none");
        for _ in 0..=random.rng.below(3) {
            let at = random.rng.below(bytes.len() as u64) as usize;
            match random.rng.below(3) {
                0 => bytes[at] ^= 1 << random.rng.below(8),
                1 => bytes.truncate(at),
                _ => bytes.insert(at, random.rng.next_u64() as u8),
            }
            if bytes.is_empty() {
                break;
            }
        }
        match read_messages(&bytes, None) {
            Err(MalformedMessage) => refused += 1,
            // The parsed messages are complete: written again, they are the same.
            Ok(messages) => assert_eq!(read_messages(&written(&messages, None), None), Ok(messages)),
        }
    }
    assert!(refused > 5_000, "{refused}");
    // Kinds that are not used, a flag without meaning, and an owner, a layout and a group that no message had.
    let writes = written(&[write_of(RowId::of_index(1, 1), 1)], None);
    let owner_and_layout = &writes[1..14];
    for bytes in [
        &b"\x00"[..],
        b"\x0e\x00",
        b"\x1f\x00",
        b"\x87\x00\x00\x00\x00\x00\x00\x00\x00",
        b"\x2b\x01",
        &[&[0x4b], owner_and_layout].concat(),
        &[&[0x8b], owner_and_layout, &[4, 0, 0, 0, 1, 1, 1, 0]].concat(),
        &[&[0x89], owner_and_layout, &[0; 9]].concat(),
    ] {
        assert_eq!(read_messages(bytes, None), Err(MalformedMessage), "{bytes:x?}");
    }
    // Numbers that are longer than 64 bits.
    for last in [0x02, 0x81] {
        let layout = [&[0xff; 9][..], &[last, 0]].concat();
        assert_eq!(
            read_messages(&[&[0x09], &owner_and_layout[..12], &layout[..], &[0; 9]].concat(), None),
            Err(MalformedMessage)
        );
    }
    // A count that promises more than is there takes no memory.
    let many = [&b"\x05"[..], &[0; 8], &[0xff, 0xff], &[0; 2]].concat();
    assert_eq!(read_messages(&many, None), Err(MalformedMessage));
}

/// Returns a write of 8 bytes by the first switch.
fn write_of(row: RowId, seq: u64) -> StoreMessage {
    let owner = OwnerId { switch: SwitchId(1), incarnation: 7 };
    let body = RequestBody::Write { row, epoch: 1, seq, values: RowValues::new(&[1; 8]), outputs: None };
    StoreMessage::Request(Request { layout: 1, owner, body })
}

#[test]
fn messages_omit_fields_of_the_message_before() {
    let owner = OwnerId { switch: SwitchId(1), incarnation: 7 };
    let switch = Some(owner);
    let lengths = |messages: &[StoreMessage], switch| {
        (1..=messages.len()).map(|count| written(&messages[..count], switch).len()).collect::<Vec<_>>()
    };
    // A kind, the owner, the layout, the group, the key, epoch, number and values.
    let one = 1 + 12 + 1 + 8 + 5 + 1 + 1 + 9;
    let rows = [(1, 1), (1, 2), (2, 3)].map(|(group, index)| write_of(RowId::of_index(group, index), 1));
    let next = one - 12 - 1 - 8;
    assert_eq!(lengths(&rows, None), [one, one + next, one + next + next + 8]);
    assert_eq!(lengths(&rows, switch), [one - 12, one - 12 + next, one - 12 + next + next + 8]);
    // Another owner is written, and so is one after it.
    let stranger = OwnerId { switch: SwitchId(1), incarnation: 8 };
    let acked = |owner| {
        let row = RowId::of_index(1, 1);
        StoreMessage::Reply(Reply { owner, body: ReplyBody::Acked { row, epoch: 1, seq: 300, outputs: None } })
    };
    let (first, again) = (1 + 8 + 5 + 1 + 2, 1 + 5 + 1 + 2);
    let expected = [first, first + again, first + 2 * again + 12, first + 3 * again + 24];
    assert_eq!(lengths(&[acked(owner), acked(owner), acked(stranger), acked(owner)], switch), expected);
}

#[test]
fn messages_that_nobody_sends_leave_the_machines_standing() {
    let [one, two, three] = [1, 2, 3].map(|node| ChainMember { node: NodeId(node), life: 1 });
    let alone = ShardChain { members: vec![one], learner: None };
    let chain = ShardChain { members: vec![two, one, three], learner: None };
    let learns = ShardChain { members: vec![two], learner: Some(one) };
    for seed in 0..200 {
        let mut random = Random { is_likely: true, ..Random::new(seed) };
        let layout = Arc::new(StoreLayout::new(1, vec![[&alone, &chain, &learns][seed as usize % 3].clone()]));
        let config = StoreConfig { is_durable: seed % 2 > 0, max_rows: 8, max_log: 8, ..StoreConfig::default() };
        let mut node = StoreNode::founding(config, one, seed, Time::ZERO, &layout);
        let mut replica = StateReplica::new(ReplicaConfig::default(), Arc::clone(&layout), SwitchId(1), 1);
        let mut now = Time::ZERO;
        for _ in 0..300 {
            now = now.after_ns(random.rng.below(20_000_000));
            let from = match random.rng.below(3) {
                0 => Peer::Switch(SwitchId(random.rng.below(3) as u32)),
                1 => Peer::Operator(OperatorId::ONLY),
                _ => Peer::Node(NodeId(random.rng.below(4) as u32)),
            };
            let row = random.row();
            match random.rng.below(4) {
                0 => replica.acquire(now, row),
                1 if replica.is_owned(now, &row) => _ = replica.write(now, &row, random.values()),
                _ => replica.unpin(now, &row),
            }
            let message = random.message();
            replica.receive(now, NodeId(random.rng.below(4) as u32), &message);
            replica.tick(now);
            replica.take_events().for_each(drop);
            node.receive(now, from, message);
            node.flush(now);
            node.tick(now);
            node.take_events().for_each(drop);
            node.persisted(random.number());
        }
    }
}

#[test]
fn outputs_with_all_the_room_make_the_longest_message_a_full_datagram() {
    let owner = OwnerId { switch: SwitchId(1), incarnation: 1 };
    for (key, values) in [(0, None), (4, Some(8)), (39, Some(200))] {
        let row = RowId::new(1, &[7; 39][..key]).unwrap();
        let values = values.map(|length| RowValues::new(&[1; 1024][..length]).unwrap());
        let room = room_for_outputs(&row, values.as_ref(), MAX_PAYLOAD);
        let outputs = CarriedOutputs::new(&vec![9; room]);
        let body = RequestBody::Write { row, epoch: 1, seq: 1, values: values.clone(), outputs: outputs.clone() };
        let request = StoreMessage::Request(Request { layout: 1, owner, body });
        let operations = vec![Operation::Write { owner, row, epoch: 1, seq: 1, values, outputs: outputs.clone() }];
        let (layout, shard, base, floor, first, chunk) = (1, ShardId(0), 1, Some(1), 1, None);
        let forward = StoreMessage::Forward(Forward { layout, shard, base, floor, first, operations, chunk });
        let body = ReplyBody::Acked { row, epoch: 1, seq: 1, outputs };
        let reply = StoreMessage::Reply(Reply { owner, body });
        let lengths = [&request, &forward, &reply].map(|message| datagram(message).len() + TAG_BYTES);
        assert_eq!(lengths.iter().max(), Some(&MAX_PAYLOAD), "{lengths:?}");
        assert_eq!(lengths[1], MAX_PAYLOAD);
    }
    let long = RowValues::new(&[1; 1024]);
    let row = RowId::new(1, &[7; 39]).unwrap();
    assert_eq!(room_for_outputs(&row, long.as_ref(), MAX_PAYLOAD), 1400 - 129 - 39 - 1024);
    assert_eq!(room_for_outputs(&row, long.as_ref(), 1000), 0);
}
