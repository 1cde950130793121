//! Writes messages.

use crate::carried::CarriedOutputs;
use crate::holders::{RowHolders, RowReader};
use crate::layout::{ChainMember, StoreLayout};
use crate::message::{
    Content, CopyChunk, CreatedRow, Forward, GroupStatus, NodeStatus, Operation, OwnerId, Progress, RowRecord,
    ShardStatus, StatusRequest, StoreMessage,
};
use crate::row::{RowId, RowValues};

use super::compact::{CompactWriter, MessageContext};
use super::{NO_VALUES, WRITE_WITH_OUTPUTS, kind};

pub(crate) struct MessageWriter<'b>(pub &'b mut Vec<u8>);

impl MessageWriter<'_> {
    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub fn u16(&mut self, value: u16) {
        self.0.extend(value.to_be_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.0.extend(value.to_be_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.0.extend(value.to_be_bytes());
    }

    /// Writes a number in groups of 7 bits, the lowest first; the last one has no high bit.
    pub(super) fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8);
    }

    pub fn row(&mut self, row: &RowId) {
        self.u64(row.group());
        self.key(row);
    }

    pub(super) fn key(&mut self, row: &RowId) {
        self.u8(row.key().len() as u8);
        self.0.extend(row.key());
    }

    fn values(&mut self, values: Option<&RowValues>) {
        match values {
            None => self.u16(NO_VALUES),
            Some(values) => {
                self.u16(values.bytes().len() as u16);
                self.0.extend(values.bytes());
            }
        }
    }

    pub(super) fn outputs(&mut self, outputs: Option<&CarriedOutputs>) {
        if let Some(outputs) = outputs {
            self.u16(outputs.bytes().len() as u16);
            self.0.extend(outputs.bytes());
        }
    }

    pub(super) fn owner(&mut self, owner: OwnerId) {
        self.u32(owner.switch.0);
        self.u64(owner.incarnation);
    }

    fn member(&mut self, member: ChainMember) {
        self.u32(member.node.0);
        self.u64(member.life);
    }

    /// Writes a message after those that left this context.
    pub(super) fn message(&mut self, message: &StoreMessage, context: &mut MessageContext) {
        match message {
            StoreMessage::Request(request) => CompactWriter { bytes: self, context }.request(request),
            StoreMessage::Reply(reply) => CompactWriter { bytes: self, context }.reply(reply),
            StoreMessage::Forward(forward) => {
                self.u8(kind::FORWARD);
                self.forward(forward);
            }
            StoreMessage::Progress(Progress { layout, shard, content, applied, stable, is_active }) => {
                self.u8(kind::PROGRESS);
                self.u64(*layout);
                self.u16(shard.0);
                self.content(*content);
                self.u64(*applied);
                self.u64(*stable);
                self.u8(u8::from(*is_active));
            }
            StoreMessage::Layout(layout) => {
                self.u8(kind::LAYOUT);
                self.layout(layout);
            }
            StoreMessage::LayoutRequest(epoch) => {
                self.u8(kind::LAYOUT_REQUEST);
                self.u64(*epoch);
            }
            StoreMessage::StatusRequest(StatusRequest { number, layout }) => {
                self.u8(kind::STATUS_REQUEST);
                self.u64(*number);
                self.u64(*layout);
            }
            StoreMessage::Status(status) => {
                self.u8(kind::STATUS);
                self.status(status);
            }
        }
    }

    pub fn content(&mut self, content: Content) {
        match content {
            Content::Empty => self.u8(0),
            Content::Copying { copy, position } => {
                self.u8(1);
                self.u64(copy);
                self.u64(position);
            }
            Content::Complete => self.u8(2),
        }
    }

    fn forward(&mut self, forward: &Forward) {
        let Forward { layout, shard, base, floor, first, operations, chunk } = forward;
        self.u64(*layout);
        self.u16(shard.0);
        self.u64(*base);
        self.u8(u8::from(floor.is_some()));
        floor.iter().for_each(|floor| self.u64(*floor));
        self.u64(*first);
        self.u16(operations.len() as u16);
        operations.iter().for_each(|operation| self.operation(operation));
        self.u8(u8::from(chunk.is_some()));
        if let Some(CopyChunk { copy, position, next, at, is_last, epoch_floor, rows }) = chunk {
            self.u64(*copy);
            self.u64(*position);
            self.u64(*next);
            self.u64(*at);
            self.u8(u8::from(*is_last));
            self.u64(*epoch_floor);
            self.u16(rows.len() as u16);
            rows.iter().for_each(|row| self.row_state(row));
        }
    }

    pub fn operation(&mut self, operation: &Operation) {
        match operation {
            Operation::Renew { owner, nonce } => {
                self.u8(0);
                self.owner(*owner);
                self.u64(*nonce);
            }
            Operation::Grant { owner, row, ask, epoch, created, idle_ms, is_shared } => {
                self.u8(1);
                self.owner(*owner);
                self.row(row);
                self.u64(*ask);
                self.u64(*epoch);
                self.u8(u8::from(created.is_some()));
                if let Some(CreatedRow { values, number }) = created {
                    self.values(Some(values));
                    self.u8(u8::from(number.is_some()));
                    number.iter().for_each(|number| self.row(number));
                }
                self.u32(*idle_ms);
                self.u8(u8::from(*is_shared));
            }
            Operation::Miss { owner, row, ask } => {
                self.u8(4);
                self.owner(*owner);
                self.row(row);
                self.u64(*ask);
            }
            Operation::Write { owner, row, epoch, seq, values, outputs } => {
                self.u8(if outputs.is_some() { WRITE_WITH_OUTPUTS } else { 2 });
                self.owner(*owner);
                self.row(row);
                self.u64(*epoch);
                self.u64(*seq);
                self.values(values.as_ref());
                self.outputs(outputs.as_ref());
            }
            Operation::Release { owner, row, epoch } => {
                self.u8(3);
                self.owner(*owner);
                self.row(row);
                self.u64(*epoch);
            }
            Operation::Remove { row, partner, epoch } => {
                self.u8(5);
                self.row(row);
                self.u8(u8::from(partner.is_some()));
                partner.iter().for_each(|partner| self.row(partner));
                self.u64(*epoch);
            }
        }
    }

    pub fn row_state(&mut self, state: &RowRecord) {
        let RowRecord { row, holders, ask, epoch, seq, values, idle_ms } = state;
        self.row(row);
        self.holders(holders);
        self.u64(*ask);
        self.u64(*epoch);
        self.u64(*seq);
        self.values(values.as_ref());
        self.u32(*idle_ms);
    }

    fn holders(&mut self, holders: &RowHolders) {
        match holders {
            RowHolders::Nobody => self.u8(0),
            RowHolders::Owner(owner) => {
                self.u8(1);
                self.owner(*owner);
            }
            RowHolders::Readers(readers) => {
                self.u8(2);
                self.u8(readers.len() as u8);
                for RowReader { owner, ask, epoch } in readers {
                    self.owner(*owner);
                    self.u64(*ask);
                    self.u64(*epoch);
                }
            }
        }
    }

    pub fn layout(&mut self, layout: &StoreLayout) {
        self.u64(layout.epoch());
        self.u16(layout.chains().len() as u16);
        for chain in layout.chains() {
            self.u8(chain.members.len() as u8);
            chain.members.iter().for_each(|member| self.member(*member));
            self.u8(u8::from(chain.learner.is_some()));
            chain.learner.iter().for_each(|member| self.member(*member));
        }
    }

    fn status(&mut self, status: &NodeStatus) {
        let NodeStatus { number, life, layout, shards, groups } = status;
        self.u64(*number);
        self.u64(*life);
        self.u64(*layout);
        self.u16(shards.len() as u16);
        for ShardStatus { shard, is_active, is_complete, rows, log, pending } in shards {
            self.u16(shard.0);
            self.u8(u8::from(*is_active));
            self.u8(u8::from(*is_complete));
            self.u64(*rows);
            self.u64(*log);
            self.u64(*pending);
        }
        self.u16(groups.len() as u16);
        for GroupStatus { group, rows, range } in groups {
            self.u64(*group);
            self.u64(*rows);
            self.u8(u8::from(range.is_some()));
            if let Some((first, last)) = range {
                self.u64(*first);
                self.u64(*last);
            }
        }
    }
}
