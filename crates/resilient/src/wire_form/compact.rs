//! The format of requests and replies, which are most messages of a switch. A message omits fields that have the same
//! value in the message before it.

use crate::holders::RowAccess;
use crate::layout::ShardId;
use crate::message::{
    IfMissing, NumberPool, OwnerId, RefusalReason, Reply, ReplyBody, Request, RequestBody, StoreMessage,
};
use crate::row::{RowId, RowValues};

use super::{MalformedMessage, MessageReader, MessageWriter, Read, kind, reason_number};

/// The bit of a message whose owner is that of the message before it. Of the first message, it is the switch at an end
/// of the datagram.
const SAME_OWNER: u8 = 0x20;

/// The bit of a request with the layout of the request before it.
const SAME_LAYOUT: u8 = 0x40;

/// The bit of a message whose row has the group of the row before it.
const SAME_GROUP: u8 = 0x80;

const FLAGS: u8 = SAME_OWNER | SAME_LAYOUT | SAME_GROUP;

/// The latest values of the fields that a message may omit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MessageContext {
    owner: Option<OwnerId>,
    layout: Option<u64>,
    group: Option<u64>,
}

impl MessageContext {
    /// Returns the context of the first message of a datagram, which has this switch at one of its ends.
    pub fn of_header(switch: Option<OwnerId>) -> MessageContext {
        MessageContext { owner: switch, ..MessageContext::default() }
    }
}

/// Returns the kind of a request. It includes whether outputs follow.
fn request_kind(body: &RequestBody) -> u8 {
    match body {
        RequestBody::Renew { .. } => kind::RENEW,
        RequestBody::Acquire { .. } => kind::ACQUIRE,
        RequestBody::Write { outputs: None, .. } => kind::WRITE,
        RequestBody::Write { outputs: Some(_), .. } => kind::WRITE_WITH_OUTPUTS,
        RequestBody::Release { .. } => kind::RELEASE,
    }
}

fn reply_kind(body: &ReplyBody) -> u8 {
    match body {
        ReplyBody::Renewed { .. } => kind::RENEWED,
        ReplyBody::Granted { .. } => kind::GRANTED,
        ReplyBody::Refused { .. } => kind::REFUSED,
        ReplyBody::Recall { .. } => kind::RECALL,
        ReplyBody::Acked { outputs: None, .. } => kind::ACKED,
        ReplyBody::Acked { outputs: Some(_), .. } => kind::ACKED_WITH_OUTPUTS,
        ReplyBody::Stale { .. } => kind::STALE,
        ReplyBody::Released { .. } => kind::RELEASED,
        ReplyBody::Probe { .. } => kind::PROBE,
    }
}

/// Writes requests and replies.
pub(super) struct CompactWriter<'w, 'b> {
    pub bytes: &'w mut MessageWriter<'b>,
    pub context: &'w mut MessageContext,
}

impl CompactWriter<'_, '_> {
    pub fn request(&mut self, Request { layout, owner, body }: &Request) {
        let same_layout = self.context.layout.replace(*layout) == Some(*layout);
        self.head(request_kind(body) | flag(SAME_LAYOUT, same_layout), *owner, body.row());
        if !same_layout {
            self.bytes.varint(*layout);
        }
        self.row(body.row());
        match body {
            RequestBody::Renew { shard, nonce } => self.shard_and_nonce(*shard, *nonce),
            RequestBody::Acquire { ask, if_missing, idle_ms, access, .. } => {
                self.bytes.varint(*ask);
                self.if_missing(if_missing);
                self.bytes.varint(u64::from(*idle_ms));
                self.bytes.u8(match access {
                    RowAccess::Read => 0,
                    RowAccess::ReadFirst => 1,
                    RowAccess::Write => 2,
                });
            }
            RequestBody::Write { epoch, seq, values, outputs, .. } => {
                self.bytes.varint(*epoch);
                self.bytes.varint(*seq);
                self.values(values.as_ref());
                self.bytes.outputs(outputs.as_ref());
            }
            RequestBody::Release { epoch, is_idle, .. } => {
                self.bytes.varint(*epoch);
                self.bytes.u8(u8::from(*is_idle));
            }
        }
    }

    pub fn reply(&mut self, Reply { owner, body }: &Reply) {
        let row = body.row();
        self.head(reply_kind(body), *owner, row);
        self.row(row);
        match body {
            ReplyBody::Renewed { shard, nonce } => self.shard_and_nonce(*shard, *nonce),
            ReplyBody::Granted { ask, epoch, seq, values, is_shared, .. } => {
                self.bytes.varint(*ask);
                self.bytes.varint(*epoch);
                self.bytes.varint(*seq);
                self.values(values.as_ref());
                self.bytes.u8(u8::from(*is_shared));
            }
            ReplyBody::Refused { ask, reason, .. } => {
                self.bytes.varint(*ask);
                self.bytes.u8(reason_number(*reason));
            }
            ReplyBody::Acked { epoch, seq, outputs, .. } => {
                self.bytes.varint(*epoch);
                self.bytes.varint(*seq);
                self.bytes.outputs(outputs.as_ref());
            }
            ReplyBody::Recall { epoch, .. }
            | ReplyBody::Stale { epoch, .. }
            | ReplyBody::Released { epoch, .. }
            | ReplyBody::Probe { epoch, .. } => self.bytes.varint(*epoch),
        }
    }

    /// Writes the kind with its flags, and the owner if it differs from the context.
    fn head(&mut self, kind: u8, owner: OwnerId, row: Option<&RowId>) {
        let same_owner = self.context.owner.replace(owner) == Some(owner);
        let same_group = row.is_some_and(|row| self.context.group == Some(row.group()));
        self.bytes.u8(kind | flag(SAME_OWNER, same_owner) | flag(SAME_GROUP, same_group));
        if !same_owner {
            self.bytes.owner(owner);
        }
    }

    /// Writes the rest of a row, behind a head with its flags.
    fn row(&mut self, row: Option<&RowId>) {
        let Some(row) = row else { return };
        if self.context.group.replace(row.group()) != Some(row.group()) {
            self.bytes.u64(row.group());
        }
        self.bytes.key(row);
    }

    fn shard_and_nonce(&mut self, shard: ShardId, nonce: u64) {
        self.bytes.varint(u64::from(shard.0));
        self.bytes.u64(nonce);
    }

    /// Writes the length of values plus 1, and the values; 0 for none.
    fn values(&mut self, values: Option<&RowValues>) {
        let Some(values) = values else { return self.bytes.varint(0) };
        self.bytes.varint(values.bytes().len() as u64 + 1);
        self.bytes.0.extend(values.bytes());
    }

    fn if_missing(&mut self, if_missing: &IfMissing) {
        match if_missing {
            IfMissing::Grant => self.bytes.u8(0),
            IfMissing::Refuse => self.bytes.u8(1),
            IfMissing::Create(values) => {
                self.bytes.u8(2);
                self.values(Some(values));
            }
            IfMissing::Allocate(NumberPool { first, last, bytes, is_shared }) => {
                self.bytes.u8(if *is_shared { 4 } else { 3 });
                self.bytes.varint(*first);
                self.bytes.varint(*last);
                self.bytes.u8(*bytes);
            }
        }
    }
}

fn flag(flag: u8, is_set: bool) -> u8 {
    if is_set { flag } else { 0 }
}

/// Reads requests and replies.
pub(super) struct CompactReader<'r, 'b> {
    pub bytes: &'r mut MessageReader<'b>,
    pub context: &'r mut MessageContext,
}

impl CompactReader<'_, '_> {
    /// Reads a request or reply of this kind; `None` if it is another kind of message.
    pub fn message(&mut self, kind: u8) -> Read<Option<StoreMessage>> {
        let flags = kind & FLAGS;
        let kind = kind & !FLAGS;
        let (is_request, is_reply) = ((kind::RENEW..=kind::RELEASE).contains(&kind), kind >= kind::RENEWED);
        if !is_request && !is_reply {
            return if flags == 0 { Ok(None) } else { Err(MalformedMessage) };
        }
        let has_row = kind != kind::RENEW && kind != kind::RENEWED;
        if (flags & SAME_LAYOUT != 0 && is_reply) || (flags & SAME_GROUP != 0 && !has_row) {
            return Err(MalformedMessage);
        }
        if flags & SAME_OWNER == 0 {
            self.context.owner = Some(self.bytes.owner()?);
        }
        let owner = self.context.owner.ok_or(MalformedMessage)?;
        if is_reply {
            let row = self.row(has_row, flags)?;
            return Ok(Some(StoreMessage::Reply(Reply { owner, body: self.reply(kind, row)? })));
        }
        if flags & SAME_LAYOUT == 0 {
            self.context.layout = Some(self.bytes.varint()?);
        }
        let layout = self.context.layout.ok_or(MalformedMessage)?;
        let row = self.row(has_row, flags)?;
        Ok(Some(StoreMessage::Request(Request { layout, owner, body: self.request(kind, row)? })))
    }

    /// Reads the rest of a row; a row without a name if the message has none.
    fn row(&mut self, has_row: bool, flags: u8) -> Read<RowId> {
        if !has_row {
            return Ok(RowId::empty(0));
        }
        if flags & SAME_GROUP == 0 {
            self.context.group = Some(self.bytes.u64()?);
        }
        self.bytes.key_of(self.context.group.ok_or(MalformedMessage)?)
    }

    fn request(&mut self, kind: u8, row: RowId) -> Read<RequestBody> {
        Ok(match kind {
            kind::RENEW => RequestBody::Renew { shard: self.shard()?, nonce: self.bytes.u64()? },
            kind::ACQUIRE => {
                let (ask, if_missing) = (self.bytes.varint()?, self.if_missing()?);
                let idle_ms = u32::try_from(self.bytes.varint()?).map_err(|_| MalformedMessage)?;
                RequestBody::Acquire { row, ask, if_missing, idle_ms, access: self.access()? }
            }
            kind::WRITE | kind::WRITE_WITH_OUTPUTS => {
                let (epoch, seq, values) = (self.bytes.varint()?, self.bytes.varint()?, self.values()?);
                let outputs = self.bytes.outputs(kind == kind::WRITE_WITH_OUTPUTS)?;
                RequestBody::Write { row, epoch, seq, values, outputs }
            }
            kind::RELEASE => RequestBody::Release { row, epoch: self.bytes.varint()?, is_idle: self.bytes.flag()? },
            _ => return Err(MalformedMessage),
        })
    }

    fn reply(&mut self, kind: u8, row: RowId) -> Read<ReplyBody> {
        Ok(match kind {
            kind::RENEWED => ReplyBody::Renewed { shard: self.shard()?, nonce: self.bytes.u64()? },
            kind::GRANTED => ReplyBody::Granted {
                row,
                ask: self.bytes.varint()?,
                epoch: self.bytes.varint()?,
                seq: self.bytes.varint()?,
                values: self.values()?,
                is_shared: self.bytes.flag()?,
            },
            kind::REFUSED => ReplyBody::Refused { row, ask: self.bytes.varint()?, reason: self.reason()? },
            kind::RECALL => ReplyBody::Recall { row, epoch: self.bytes.varint()? },
            kind::ACKED | kind::ACKED_WITH_OUTPUTS => {
                let (epoch, seq) = (self.bytes.varint()?, self.bytes.varint()?);
                ReplyBody::Acked { row, epoch, seq, outputs: self.bytes.outputs(kind == kind::ACKED_WITH_OUTPUTS)? }
            }
            kind::STALE => ReplyBody::Stale { row, epoch: self.bytes.varint()? },
            kind::RELEASED => ReplyBody::Released { row, epoch: self.bytes.varint()? },
            kind::PROBE => ReplyBody::Probe { row, epoch: self.bytes.varint()? },
            _ => return Err(MalformedMessage),
        })
    }

    fn shard(&mut self) -> Read<ShardId> {
        u16::try_from(self.bytes.varint()?).map(ShardId).map_err(|_| MalformedMessage)
    }

    fn values(&mut self) -> Read<Option<RowValues>> {
        let Some(length) = self.bytes.varint()?.checked_sub(1) else { return Ok(None) };
        let length = usize::try_from(length).map_err(|_| MalformedMessage)?;
        RowValues::new(self.bytes.bytes(length)?).map(Some).ok_or(MalformedMessage)
    }

    fn access(&mut self) -> Read<RowAccess> {
        Ok(match self.bytes.u8()? {
            0 => RowAccess::Read,
            1 => RowAccess::ReadFirst,
            2 => RowAccess::Write,
            _ => return Err(MalformedMessage),
        })
    }

    fn if_missing(&mut self) -> Read<IfMissing> {
        Ok(match self.bytes.u8()? {
            0 => IfMissing::Grant,
            1 => IfMissing::Refuse,
            2 => IfMissing::Create(self.values()?.ok_or(MalformedMessage)?),
            kind @ (3 | 4) => IfMissing::Allocate(NumberPool {
                first: self.bytes.varint()?,
                last: self.bytes.varint()?,
                bytes: self.bytes.u8()?,
                is_shared: kind == 4,
            }),
            _ => return Err(MalformedMessage),
        })
    }

    fn reason(&mut self) -> Read<RefusalReason> {
        use RefusalReason::{
            NoSuchRow, PoolExhausted, ReplicaFull, RowContended, ShardContended, StoreFull, TooManyAsks,
        };
        let all = [ReplicaFull, TooManyAsks, RowContended, ShardContended, StoreFull, NoSuchRow, PoolExhausted];
        let number = self.bytes.u8()?;
        all.into_iter().find(|reason| reason_number(*reason) == number).ok_or(MalformedMessage)
    }
}
