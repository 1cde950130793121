//! Reads messages. Everything that a message names is there, or it is malformed.

use std::sync::Arc;

use crate::carried::CarriedOutputs;
use crate::holders::{MAX_READERS, RowHolders, RowReader};
use crate::layout::{ChainMember, NodeId, ShardChain, ShardId, StoreLayout, SwitchId};
use crate::message::{
    Content, CopyChunk, CreatedRow, Forward, GroupStatus, NodeStatus, Operation, OwnerId, Progress, RowRecord,
    ShardStatus, StatusRequest, StoreMessage,
};
use crate::row::{RowId, RowValues};

use super::compact::{CompactReader, MessageContext};
use super::{MAX_CHAIN, MAX_SHARDS, MalformedMessage, NO_VALUES, Read, WRITE_WITH_OUTPUTS, kind};

pub(crate) struct MessageReader<'b>(pub &'b [u8]);

impl MessageReader<'_> {
    pub(super) fn bytes(&mut self, count: usize) -> Read<&[u8]> {
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

    /// Reads a number in groups of 7 bits, the lowest first.
    pub(super) fn varint(&mut self) -> Read<u64> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            value |= bits << shift;
            if bits << shift >> shift != bits {
                return Err(MalformedMessage);
            }
            if byte <= 0x7f {
                return Ok(value);
            }
        }
        Err(MalformedMessage)
    }

    pub fn row(&mut self) -> Read<RowId> {
        let group = self.u64()?;
        self.key_of(group)
    }

    /// Reads the key of a row of this group.
    pub(super) fn key_of(&mut self, group: u64) -> Read<RowId> {
        let length = usize::from(self.u8()?);
        RowId::new(group, self.bytes(length)?).ok_or(MalformedMessage)
    }

    fn values(&mut self) -> Read<Option<RowValues>> {
        match self.u16()? {
            NO_VALUES => Ok(None),
            length => RowValues::new(self.bytes(usize::from(length))?).map(Some).ok_or(MalformedMessage),
        }
    }

    /// Reads the outputs of a message, if its kind indicates them.
    pub(super) fn outputs(&mut self, are_there: bool) -> Read<Option<CarriedOutputs>> {
        if !are_there {
            return Ok(None);
        }
        let length = usize::from(self.u16()?);
        CarriedOutputs::new(self.bytes(length)?).map(Some).ok_or(MalformedMessage)
    }

    pub(super) fn owner(&mut self) -> Read<OwnerId> {
        Ok(OwnerId { switch: SwitchId(self.u32()?), incarnation: self.u64()? })
    }

    fn member(&mut self) -> Read<ChainMember> {
        Ok(ChainMember { node: NodeId(self.u32()?), life: self.u64()? })
    }

    /// Reads a message after those that left this context.
    pub(super) fn message(&mut self, context: &mut MessageContext) -> Read<StoreMessage> {
        let kind = self.u8()?;
        if let Some(message) = (CompactReader { bytes: self, context }).message(kind)? {
            return Ok(message);
        }
        Ok(match kind {
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
                Operation::Write { owner, row, epoch, seq, values, outputs: self.outputs(kind == WRITE_WITH_OUTPUTS)? }
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
