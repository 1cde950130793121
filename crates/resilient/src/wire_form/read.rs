//! Reads messages. Everything that a message names is there, or it is malformed.

use std::sync::Arc;

use crate::carried::CarriedOutputs;
use crate::holders::{MAX_READERS, RowAccess, RowHolders, RowReader};
use crate::layout::{ChainMember, NodeId, ShardChain, ShardId, StoreLayout, SwitchId};
use crate::message::{
    Content, CopyChunk, CreatedRow, Forward, GroupStatus, IfMissing, NodeStatus, NumberPool, Operation, OwnerId,
    Progress, RefusalReason, Reply, ReplyBody, Request, RequestBody, RowRecord, ShardStatus, StatusRequest,
    StoreMessage,
};
use crate::row::{RowId, RowValues};

use super::{
    ACKED_WITH_OUTPUTS, MAX_CHAIN, MAX_SHARDS, MalformedMessage, NO_VALUES, Read, WITH_OUTPUTS, WRITE_WITH_OUTPUTS,
    kind, reason_number,
};

pub(crate) struct MessageReader<'b>(pub &'b [u8]);

impl MessageReader<'_> {
    fn bytes(&mut self, count: usize) -> Read<&[u8]> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(MalformedMessage)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(MalformedMessage)?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub fn u8(&mut self) -> Read<u8> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub fn u16(&mut self) -> Read<u16> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    fn u32(&mut self) -> Read<u32> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Read<u64> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub fn flag(&mut self) -> Read<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(MalformedMessage),
        }
    }

    fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<Option<T>> {
        if self.flag()? { read(self).map(Some) } else { Ok(None) }
    }

    /// Reads this many items. Memory grows with the bytes that are there, not with the number.
    fn list<T>(&mut self, count: usize, mut read: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        (0..count).map(|_| read(self)).collect()
    }

    pub fn row(&mut self) -> Read<RowId> {
        let (group, length) = (self.u64()?, self.u8()?);
        RowId::new(group, self.bytes(usize::from(length))?).ok_or(MalformedMessage)
    }

    fn values(&mut self) -> Read<Option<RowValues>> {
        match self.u16()? {
            NO_VALUES => Ok(None),
            length => RowValues::new(self.bytes(usize::from(length))?).map(Some).ok_or(MalformedMessage),
        }
    }

    /// Reads the outputs of a message whose kind indicates them.
    fn outputs(&mut self, kind: u8) -> Read<Option<CarriedOutputs>> {
        if kind & WITH_OUTPUTS == 0 {
            return Ok(None);
        }
        let length = usize::from(self.u16()?);
        CarriedOutputs::new(self.bytes(length)?).map(Some).ok_or(MalformedMessage)
    }

    fn owner(&mut self) -> Read<OwnerId> {
        Ok(OwnerId { switch: SwitchId(self.u32()?), incarnation: self.u64()? })
    }

    fn member(&mut self) -> Read<ChainMember> {
        Ok(ChainMember { node: NodeId(self.u32()?), life: self.u64()? })
    }

    pub fn message(&mut self, kind: u8) -> Read<StoreMessage> {
        Ok(match kind {
            kind::REQUEST => {
                let (layout, owner) = (self.u64()?, self.owner()?);
                StoreMessage::Request(Request { layout, owner, body: self.request()? })
            }
            kind::REPLY => StoreMessage::Reply(Reply { owner: self.owner()?, body: self.reply()? }),
            kind::FORWARD => StoreMessage::Forward(self.forward()?),
            kind::PROGRESS => StoreMessage::Progress(Progress {
                layout: self.u64()?,
                shard: ShardId(self.u16()?),
                content: self.content()?,
                applied: self.u64()?,
                stable: self.u64()?,
                is_active: self.flag()?,
            }),
            kind::LAYOUT => StoreMessage::Layout(Arc::new(self.layout()?)),
            kind::LAYOUT_REQUEST => StoreMessage::LayoutRequest(self.u64()?),
            kind::STATUS_REQUEST => {
                StoreMessage::StatusRequest(StatusRequest { number: self.u64()?, layout: self.u64()? })
            }
            kind::STATUS => StoreMessage::Status(self.status()?),
            _ => return Err(MalformedMessage),
        })
    }

    pub fn content(&mut self) -> Read<Content> {
        Ok(match self.u8()? {
            0 => Content::Empty,
            1 => Content::Copying { copy: self.u64()?, position: self.u64()? },
            2 => Content::Complete,
            _ => return Err(MalformedMessage),
        })
    }

    fn request(&mut self) -> Read<RequestBody> {
        Ok(match self.u8()? {
            0 => RequestBody::Renew { shard: ShardId(self.u16()?), nonce: self.u64()? },
            1 => {
                let (row, ask, if_missing) = (self.row()?, self.u64()?, self.if_missing()?);
                RequestBody::Acquire { row, ask, if_missing, idle_ms: self.u32()?, access: self.access()? }
            }
            kind @ (2 | WRITE_WITH_OUTPUTS) => RequestBody::Write {
                row: self.row()?,
                epoch: self.u64()?,
                seq: self.u64()?,
                values: self.values()?,
                outputs: self.outputs(kind)?,
            },
            3 => RequestBody::Release { row: self.row()?, epoch: self.u64()?, is_idle: self.flag()? },
            _ => return Err(MalformedMessage),
        })
    }

    fn access(&mut self) -> Read<RowAccess> {
        Ok(match self.u8()? {
            0 => RowAccess::Read,
            1 => RowAccess::ReadFirst,
            2 => RowAccess::Write,
            _ => return Err(MalformedMessage),
        })
    }

    fn if_missing(&mut self) -> Read<IfMissing> {
        Ok(match self.u8()? {
            0 => IfMissing::Grant,
            1 => IfMissing::Refuse,
            2 => IfMissing::Create(self.values()?.ok_or(MalformedMessage)?),
            kind @ (3 | 4) => IfMissing::Allocate(NumberPool {
                first: self.u64()?,
                last: self.u64()?,
                bytes: self.u8()?,
                is_shared: kind == 4,
            }),
            _ => return Err(MalformedMessage),
        })
    }

    fn reply(&mut self) -> Read<ReplyBody> {
        Ok(match self.u8()? {
            0 => ReplyBody::Renewed { shard: ShardId(self.u16()?), nonce: self.u64()? },
            1 => ReplyBody::Granted {
                row: self.row()?,
                ask: self.u64()?,
                epoch: self.u64()?,
                seq: self.u64()?,
                values: self.values()?,
                is_shared: self.flag()?,
            },
            2 => ReplyBody::Refused { row: self.row()?, ask: self.u64()?, reason: self.reason()? },
            3 => ReplyBody::Recall { row: self.row()?, epoch: self.u64()? },
            kind @ (4 | ACKED_WITH_OUTPUTS) => ReplyBody::Acked {
                row: self.row()?,
                epoch: self.u64()?,
                seq: self.u64()?,
                outputs: self.outputs(kind)?,
            },
            5 => ReplyBody::Stale { row: self.row()?, epoch: self.u64()? },
            6 => ReplyBody::Released { row: self.row()?, epoch: self.u64()? },
            7 => ReplyBody::Probe { row: self.row()?, epoch: self.u64()? },
            _ => return Err(MalformedMessage),
        })
    }

    fn reason(&mut self) -> Read<RefusalReason> {
        use RefusalReason::{
            NoSuchRow, PoolExhausted, ReplicaFull, RowContended, ShardContended, StoreFull, TooManyAsks,
        };
        let all = [ReplicaFull, TooManyAsks, RowContended, ShardContended, StoreFull, NoSuchRow, PoolExhausted];
        let number = self.u8()?;
        all.into_iter().find(|reason| reason_number(*reason) == number).ok_or(MalformedMessage)
    }

    fn forward(&mut self) -> Read<Forward> {
        let (layout, shard) = (self.u64()?, ShardId(self.u16()?));
        let (base, floor, first) = (self.u64()?, self.option(Self::u64)?, self.u64()?);
        let count = usize::from(self.u16()?);
        let operations = self.list(count, Self::operation)?;
        let chunk = self.option(|reader| {
            let (copy, position, next) = (reader.u64()?, reader.u64()?, reader.u64()?);
            let (at, is_last, epoch_floor) = (reader.u64()?, reader.flag()?, reader.u64()?);
            let count = usize::from(reader.u16()?);
            let rows = reader.list(count, Self::row_state)?;
            Ok(CopyChunk { copy, position, next, at, is_last, epoch_floor, rows })
        })?;
        Ok(Forward { layout, shard, base, floor, first, operations, chunk })
    }

    pub fn operation(&mut self) -> Read<Operation> {
        let kind = self.u8()?;
        if kind == 5 {
            let (row, partner) = (self.row()?, self.option(Self::row)?);
            return Ok(Operation::Remove { row, partner, epoch: self.u64()? });
        }
        let owner = self.owner()?;
        Ok(match kind {
            0 => Operation::Renew { owner, nonce: self.u64()? },
            1 => {
                let (row, ask, epoch) = (self.row()?, self.u64()?, self.u64()?);
                let created = self.option(|reader| {
                    let values = reader.values()?.ok_or(MalformedMessage)?;
                    Ok(CreatedRow { values, number: reader.option(Self::row)? })
                })?;
                Operation::Grant { owner, row, ask, epoch, created, idle_ms: self.u32()?, is_shared: self.flag()? }
            }
            2 | WRITE_WITH_OUTPUTS => {
                let (row, epoch, seq, values) = (self.row()?, self.u64()?, self.u64()?, self.values()?);
                Operation::Write { owner, row, epoch, seq, values, outputs: self.outputs(kind)? }
            }
            3 => Operation::Release { owner, row: self.row()?, epoch: self.u64()? },
            4 => Operation::Miss { owner, row: self.row()?, ask: self.u64()? },
            _ => return Err(MalformedMessage),
        })
    }

    fn holders(&mut self) -> Read<RowHolders> {
        Ok(match self.u8()? {
            0 => RowHolders::Nobody,
            1 => RowHolders::Owner(self.owner()?),
            2 => {
                let count = usize::from(self.u8()?);
                if !(1..=MAX_READERS).contains(&count) {
                    return Err(MalformedMessage);
                }
                RowHolders::Readers(self.list(count, Self::reader)?.into())
            }
            _ => return Err(MalformedMessage),
        })
    }

    fn reader(&mut self) -> Read<RowReader> {
        Ok(RowReader { owner: self.owner()?, ask: self.u64()?, epoch: self.u64()? })
    }

    pub fn row_state(&mut self) -> Read<RowRecord> {
        Ok(RowRecord {
            row: self.row()?,
            holders: self.holders()?,
            ask: self.u64()?,
            epoch: self.u64()?,
            seq: self.u64()?,
            values: self.values()?,
            idle_ms: self.u32()?,
        })
    }

    pub fn layout(&mut self) -> Read<StoreLayout> {
        let (epoch, count) = (self.u64()?, usize::from(self.u16()?));
        if count > MAX_SHARDS {
            return Err(MalformedMessage);
        }
        let chains = self.list(count, |reader| {
            let count = usize::from(reader.u8()?);
            if count > MAX_CHAIN {
                return Err(MalformedMessage);
            }
            Ok(ShardChain { members: reader.list(count, Self::member)?, learner: reader.option(Self::member)? })
        })?;
        Ok(StoreLayout::new(epoch, chains))
    }

    fn status(&mut self) -> Read<NodeStatus> {
        let (number, life, layout) = (self.u64()?, self.u64()?, self.u64()?);
        let count = usize::from(self.u16()?);
        let shards = self.list(count, Self::shard_status)?;
        let count = usize::from(self.u16()?);
        Ok(NodeStatus { number, life, layout, shards, groups: self.list(count, Self::group_status)? })
    }

    fn group_status(&mut self) -> Read<GroupStatus> {
        let (group, rows) = (self.u64()?, self.u64()?);
        let range = if self.flag()? { Some((self.u64()?, self.u64()?)) } else { None };
        Ok(GroupStatus { group, rows, range })
    }

    fn shard_status(&mut self) -> Read<ShardStatus> {
        Ok(ShardStatus {
            shard: ShardId(self.u16()?),
            is_active: self.flag()?,
            is_complete: self.flag()?,
            rows: self.u64()?,
            log: self.u64()?,
            pending: self.u64()?,
        })
    }
}
