//! The format of messages in datagrams, between the header and the tag of [`crate::sealed`].
//!
//! ```text
//!   datagram:  header | message | message | ... | tag
//!   request:   kind, 8 bits | owner | layout | row | rest
//!   reply:     kind, 8 bits | owner | row | rest
//!   others:    kind, 8 bits | body
//! ```
//!
//! A switch sends and receives little else than requests and replies, so these omit fields that repeat those of the
//! message before. The highest bits of their kind say which: 0x20 the owner of the message before, or the switch at an
//! end of the datagram; 0x40 the layout of the request before; 0x80 the group of the row before. Their other numbers
//! have 7 bits a byte, the lowest first; the high bit of a byte is set if another one follows. A row is its group (64
//! bits), the length of its key and the key. Values are their length plus 1 and their bytes; 0 is none. Outputs are
//! their length (16 bits) and their bytes; their presence is part of the kind.
//!
//! In other messages, numbers are big-endian and have their full length. Values are their length (16 bits) and their
//! bytes, with 0xffff as the length of none. If any message is malformed, the datagram is refused.

mod compact;
mod read;
mod write;

use std::collections::BTreeMap;

use crate::message::{OwnerId, RefusalReason, StoreMessage};
use crate::row::{RowId, RowValues};
use crate::sealed::{HEADER_BYTES, TAG_BYTES};
use compact::MessageContext;
pub(crate) use read::MessageReader;
pub(crate) use write::MessageWriter;

/// Maximum length of a datagram with several messages, in bytes. With all headers it fits an MTU of 1500 bytes.
pub const MAX_PAYLOAD: usize = 1400;

/// Maximum number of shards in a layout that is sent.
const MAX_SHARDS: usize = 1024;

/// Maximum number of nodes of a chain.
const MAX_CHAIN: usize = 16;

/// The length that stands for no values.
const NO_VALUES: u16 = u16::MAX;

/// The kind of an operation that writes, with outputs.
const WRITE_WITH_OUTPUTS: u8 = 0x82;

/// Bytes of a datagram with one operation for a successor, in addition to row, values and outputs: header and tag, the
/// message without operations, and the operation.
const FORWARD_BYTES: usize = HEADER_BYTES + TAG_BYTES + 39 + 42;

/// Bytes that are not messages of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedMessage;

type Read<T> = Result<T, MalformedMessage>;

/// A datagram that is being written. It has room for the header, and is not sealed yet.
#[derive(Debug)]
pub struct DatagramWriter {
    bytes: Vec<u8>,
    context: MessageContext,
}

impl DatagramWriter {
    /// Creates a datagram without messages. If the header names a switch as an end, messages about it are shorter.
    pub fn new(switch: Option<OwnerId>) -> DatagramWriter {
        DatagramWriter { bytes: vec![0; HEADER_BYTES], context: MessageContext::of_header(switch) }
    }

    /// Appends a message. Returns false, and appends nothing, if the datagram would be longer than `most` bytes.
    pub fn append(&mut self, message: &StoreMessage, most: usize) -> bool {
        let (length, context) = (self.bytes.len(), self.context);
        MessageWriter(&mut self.bytes).message(message, &mut self.context);
        let fits = self.bytes.len() <= most;
        if !fits {
            self.bytes.truncate(length);
            self.context = context;
        }
        fits
    }

    /// Returns the datagram.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Returns datagrams with these messages, not sealed yet: those for one receiver in order, with as many in each
/// datagram as [`MAX_PAYLOAD`] bytes hold. A longer message has a datagram of its own. Receivers are in the
/// order of their first messages, so an operation for the next store does not wait for a report. `switch_towards`
/// returns the switch that the header of a datagram for this receiver names as an end.
pub fn datagrams<R: Copy + Ord>(
    messages: &[(R, StoreMessage)],
    switch_towards: impl Fn(R) -> Option<OwnerId>,
) -> Vec<(R, Vec<u8>)> {
    let mut places: BTreeMap<R, usize> = BTreeMap::new();
    let mut by_receiver: Vec<(R, Vec<DatagramWriter>)> = Vec::new();
    for (to, message) in messages {
        let place = *places.entry(*to).or_insert_with(|| {
            by_receiver.push((*to, Vec::new()));
            by_receiver.len() - 1
        });
        let (_, datagrams) = &mut by_receiver[place];
        if !datagrams.last_mut().is_some_and(|last| last.append(message, MAX_PAYLOAD - TAG_BYTES)) {
            let mut datagram = DatagramWriter::new(switch_towards(*to));
            datagram.append(message, usize::MAX);
            datagrams.push(datagram);
        }
    }
    let of_one = |(to, datagrams): (R, Vec<DatagramWriter>)| {
        datagrams.into_iter().map(move |datagram| (to, datagram.into_bytes()))
    };
    by_receiver.into_iter().flat_map(of_one).collect()
}

/// Returns a datagram with one message, not sealed yet.
pub fn datagram(message: &StoreMessage) -> Vec<u8> {
    let mut datagram = DatagramWriter::new(None);
    datagram.append(message, usize::MAX);
    datagram.into_bytes()
}

/// Returns the length of the outputs that can travel with a write, in bytes, so that none of its messages is longer
/// than a datagram of `max_datagram` bytes. The longest is that between two nodes.
pub fn room_for_outputs(row: &RowId, values: Option<&RowValues>, max_datagram: usize) -> usize {
    let values = values.map_or(0, |values| values.bytes().len());
    max_datagram.min(MAX_PAYLOAD).saturating_sub(FORWARD_BYTES + row.key().len() + values)
}

/// Reads the messages between a datagram's header and its tag. `switch` is the switch that the header names as an end.
///
/// # Errors
/// If any message is malformed.
pub fn read_messages(bytes: &[u8], switch: Option<OwnerId>) -> Read<Vec<StoreMessage>> {
    let mut reader = MessageReader(bytes);
    let mut context = MessageContext::of_header(switch);
    let mut messages = Vec::new();
    while !reader.0.is_empty() {
        messages.push(reader.message(&mut context)?);
    }
    Ok(messages)
}

/// Kinds of messages. Those of requests and replies leave room for three flags.
mod kind {
    pub const FORWARD: u8 = 3;
    pub const PROGRESS: u8 = 4;
    pub const LAYOUT: u8 = 5;
    pub const LAYOUT_REQUEST: u8 = 6;
    pub const STATUS_REQUEST: u8 = 7;
    pub const STATUS: u8 = 8;

    pub const RENEW: u8 = 9;
    pub const ACQUIRE: u8 = 10;
    pub const WRITE: u8 = 11;
    pub const WRITE_WITH_OUTPUTS: u8 = 12;
    pub const RELEASE: u8 = 13;

    pub const RENEWED: u8 = 16;
    pub const GRANTED: u8 = 17;
    pub const REFUSED: u8 = 18;
    pub const RECALL: u8 = 19;
    pub const ACKED: u8 = 20;
    pub const ACKED_WITH_OUTPUTS: u8 = 21;
    pub const STALE: u8 = 22;
    pub const RELEASED: u8 = 23;
    pub const PROBE: u8 = 24;
}

fn reason_number(reason: RefusalReason) -> u8 {
    match reason {
        RefusalReason::ReplicaFull => 0,
        RefusalReason::TooManyAsks => 1,
        RefusalReason::RowContended => 2,
        RefusalReason::ShardContended => 3,
        RefusalReason::StoreFull => 4,
        RefusalReason::NoSuchRow => 5,
        RefusalReason::PoolExhausted => 6,
    }
}

#[cfg(test)]
mod tests;
