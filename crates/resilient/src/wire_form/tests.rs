//! Random messages, and damaged ones.

use std::sync::Arc;

use rng::SplitMix64;

use super::*;
use crate::layout::{ChainMember, NodeId, ShardChain, ShardId, StoreLayout, SwitchId};
use crate::message::{
    Content, CopyChunk, Forward, Operation, OwnerId, Progress, Reply, ReplyBody, Request, RequestBody, RowState,
};
use crate::row::{RowId, RowValues};

/// Draws parts of messages.
struct Random(SplitMix64);

impl Random {
    fn number(&mut self) -> u64 {
        let bits = self.0.below(64);
        self.0.next_u64() >> bits
    }

    fn row(&mut self) -> RowId {
        let key: Vec<u8> = (0..self.0.below(41)).map(|_| self.0.next_u64() as u8).collect();
        RowId::new(self.number() as u16, &key).expect("the key is short enough")
    }

    fn values(&mut self) -> Option<RowValues> {
        let length = [0, 1, 4, 16, 17, 1024][self.0.below(6) as usize];
        let bytes: Vec<u8> = (0..length).map(|_| self.0.next_u64() as u8).collect();
        (self.0.below(4) > 0).then(|| RowValues::new(&bytes).expect("the values are short enough"))
    }

    fn owner(&mut self) -> OwnerId {
        OwnerId { switch: SwitchId(self.number() as u32), incarnation: self.number() }
    }

    fn member(&mut self) -> ChainMember {
        ChainMember { node: NodeId(self.number() as u32), life: self.number() }
    }

    fn list<T>(&mut self, most: u64, make: impl Fn(&mut Self) -> T) -> Vec<T> {
        (0..self.0.below(most)).map(|_| make(self)).collect()
    }

    fn option<T>(&mut self, make: impl Fn(&mut Self) -> T) -> Option<T> {
        (self.0.below(2) > 0).then(|| make(self))
    }

    fn shard(&mut self) -> ShardId {
        ShardId(self.number() as u16)
    }

    fn request(&mut self) -> RequestBody {
        let (row, epoch) = (self.row(), self.number());
        match self.0.below(4) {
            0 => RequestBody::Renew { shard: self.shard(), nonce: self.number() },
            1 => RequestBody::Acquire { row, ask: self.number() },
            2 => RequestBody::Write { row, epoch, seq: self.number(), values: self.values() },
            _ => RequestBody::Release { row, epoch },
        }
    }

    fn reply(&mut self) -> ReplyBody {
        let (row, epoch) = (self.row(), self.number());
        use RefusalReason::{ReplicaFull, RowContended, ShardContended, StoreFull, TooManyAsks};
        let reasons = [ReplicaFull, TooManyAsks, RowContended, ShardContended, StoreFull];
        match self.0.below(7) {
            0 => ReplyBody::Renewed { shard: self.shard(), nonce: self.number() },
            1 => {
                let (ask, seq, values) = (self.number(), self.number(), self.values());
                ReplyBody::Granted { row, ask, epoch, seq, values }
            }
            2 => ReplyBody::Refused { row, ask: self.number(), reason: reasons[self.0.below(5) as usize] },
            3 => ReplyBody::Recall { row, epoch },
            4 => ReplyBody::Acked { row, epoch, seq: self.number() },
            5 => ReplyBody::Stale { row, epoch },
            _ => ReplyBody::Released { row, epoch },
        }
    }

    fn operation(&mut self) -> Operation {
        let (owner, row, epoch) = (self.owner(), self.row(), self.number());
        match self.0.below(4) {
            0 => Operation::Renew { owner, nonce: epoch },
            1 => Operation::Grant { owner, row, ask: self.number(), epoch },
            2 => Operation::Write { owner, row, epoch, seq: self.number(), values: self.values() },
            _ => Operation::Release { owner, row, epoch },
        }
    }

    fn row_state(&mut self) -> RowState {
        let (row, owner, values) = (self.row(), self.option(Self::owner), self.values());
        RowState { row, owner, ask: self.number(), epoch: self.number(), seq: self.number(), values }
    }

    fn chunk(&mut self) -> CopyChunk {
        let (copy, position, at) = (self.number(), self.number(), self.number());
        CopyChunk { copy, position, at, is_last: self.0.below(2) > 0, rows: self.list(4, Self::row_state) }
    }

    fn forward(&mut self) -> Forward {
        let (layout, base, floor, first) = (self.number(), self.number(), self.option(Self::number), self.number());
        let operations = self.list(4, Self::operation);
        Forward { layout, shard: self.shard(), base, floor, first, operations, chunk: self.option(Self::chunk) }
    }

    fn progress(&mut self) -> Progress {
        let content = match self.0.below(3) {
            0 => Content::Empty,
            1 => Content::Copying { copy: self.number(), position: self.number() },
            _ => Content::Complete,
        };
        let (layout, applied, stable) = (self.number(), self.number(), self.number());
        Progress { layout, shard: self.shard(), content, applied, stable }
    }

    fn layout(&mut self) -> StoreLayout {
        let chain = |random: &mut Self| ShardChain {
            members: random.list(6, Self::member),
            learner: random.option(Self::member),
        };
        StoreLayout::new(self.number(), self.list(5, chain))
    }

    fn message(&mut self) -> StoreMessage {
        match self.0.below(6) {
            0 => {
                let (layout, owner) = (self.number(), self.owner());
                StoreMessage::Request(Request { layout, owner, body: self.request() })
            }
            1 => StoreMessage::Reply(Reply { owner: self.owner(), body: self.reply() }),
            2 => StoreMessage::Forward(self.forward()),
            3 => StoreMessage::Progress(self.progress()),
            4 => StoreMessage::Layout(Arc::new(self.layout())),
            _ => StoreMessage::LayoutRequest(self.number()),
        }
    }
}

#[test]
fn messages_round_trip() {
    let mut random = Random(SplitMix64::new(1));
    for _ in 0..2_000 {
        let messages = random.list(5, Random::message);
        let mut bytes = Vec::new();
        begin_datagram(&mut bytes);
        for message in &messages {
            assert!(append_message(&mut bytes, message, usize::MAX));
        }
        assert_eq!(read_datagram(&bytes), Ok(messages));
    }
}

#[test]
fn a_datagram_is_filled_up_to_its_limit() {
    let message = StoreMessage::LayoutRequest(7);
    let mut bytes = Vec::new();
    begin_datagram(&mut bytes);
    let appended = (0..9).filter(|_| append_message(&mut bytes, &message, 40)).count();
    assert_eq!((appended, bytes.len()), (3, DATAGRAM_HEADER + 3 * 11));
    assert_eq!(read_datagram(&bytes).map(|messages| messages.len()), Ok(3));
}

#[test]
fn malformed_datagrams_are_refused_without_panic() {
    let mut random = Random(SplitMix64::new(2));
    let mut refused = 0;
    for _ in 0..20_000 {
        let mut bytes = datagram(&random.message());
        assert!(read_datagram(&bytes[..bytes.len() - 1]).is_err(), "a part of a message is none");
        for _ in 0..=random.0.below(3) {
            let at = random.0.below(bytes.len() as u64) as usize;
            match random.0.below(3) {
                0 => bytes[at] ^= 1 << random.0.below(8),
                1 => bytes.truncate(at),
                _ => bytes.insert(at, random.0.next_u64() as u8),
            }
            if bytes.is_empty() {
                break;
            }
        }
        match read_datagram(&bytes) {
            Err(MalformedMessage) => refused += 1,
            // What was read is complete: it has this form again.
            Ok(messages) => {
                let mut again = Vec::new();
                begin_datagram(&mut again);
                messages.iter().for_each(|message| _ = append_message(&mut again, message, usize::MAX));
                assert_eq!(again, bytes);
            }
        }
    }
    assert!(refused > 5_000, "{refused}");
    for bytes in [&b""[..], b"T", b"TR", b"TR\x02", b"XX\x01", b"TR\x01\xff\xff\x05"] {
        assert!(read_datagram(bytes).is_err());
    }
    // A count that promises more than is there takes no memory.
    let many = [&b"TR\x01\x00\x0c\x05"[..], &[0; 8], &[0xff, 0xff], &[0; 2]].concat();
    assert_eq!(read_datagram(&many), Err(MalformedMessage));
}
