//! The format of messages in datagrams, between the header and the tag of [`crate::sealed`].
//!
//! ```text
//!   datagram:  header | message | message | ... | tag
//!   message:   length of the body, 16 bits | kind, 8 bits | body
//! ```
//!
//! Numbers are big-endian. A row is its group (64 bits), the length of its key and the key; values are their length and
//! their bytes, with 0xffff as the length of none. A write or acknowledgement with the bit 0x80 in its kind ends with
//! outputs: their length (16 bits) and their bytes. If any message is malformed, the datagram is refused.

mod read;
mod write;

use std::collections::BTreeMap;

use crate::message::{RefusalReason, StoreMessage};
use crate::row::{RowId, RowValues};
use crate::sealed::{HEADER_BYTES, TAG_BYTES};
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

/// The bit in the kind of a write or acknowledgement with outputs.
const WITH_OUTPUTS: u8 = 0x80;

/// The kind of a write with outputs, as a request and as an operation.
const WRITE_WITH_OUTPUTS: u8 = 2 | WITH_OUTPUTS;

/// The kind of an acknowledgement with outputs.
const ACKED_WITH_OUTPUTS: u8 = 4 | WITH_OUTPUTS;

/// Bytes of a datagram with one operation for a successor, in addition to row, values and outputs: header and tag, the
/// message without operations, and the operation.
const FORWARD_BYTES: usize = HEADER_BYTES + TAG_BYTES + 41 + 42;

/// Bytes that are not messages of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedMessage;

type Read<T> = Result<T, MalformedMessage>;

/// Creates a datagram, with room for the header.
pub fn begin_datagram(datagram: &mut Vec<u8>) {
    datagram.clear();
    datagram.resize(HEADER_BYTES, 0);
}

/// Appends a message to a datagram. Returns false, and appends nothing, if the datagram would be longer than `most`
/// bytes.
pub fn append_message(datagram: &mut Vec<u8>, message: &StoreMessage, most: usize) -> bool {
    let start = datagram.len();
    let mut writer = MessageWriter(datagram);
    writer.u16(0);
    writer.message(message);
    let length = datagram.len() - start - 3;
    match u16::try_from(length) {
        Ok(length) if datagram.len() <= most => {
            datagram[start..start + 2].copy_from_slice(&length.to_be_bytes());
            true
        }
        _ => {
            datagram.truncate(start);
            false
        }
    }
}

/// Returns datagrams with these messages, not sealed yet: those for one receiver in order, with as many in each
/// datagram as [`MAX_PAYLOAD`] bytes hold. A longer message has a datagram of its own. Receivers are in the
/// order of their first messages, so an operation for the next store does not wait for a report.
pub fn datagrams<R: Copy + Ord>(messages: &[(R, StoreMessage)]) -> Vec<(R, Vec<u8>)> {
    let mut places: BTreeMap<R, usize> = BTreeMap::new();
    let mut by_receiver: Vec<(R, Vec<Vec<u8>>)> = Vec::new();
    for (to, message) in messages {
        let place = *places.entry(*to).or_insert_with(|| {
            by_receiver.push((*to, Vec::new()));
            by_receiver.len() - 1
        });
        let (_, datagrams) = &mut by_receiver[place];
        if !datagrams.last_mut().is_some_and(|last| append_message(last, message, MAX_PAYLOAD - TAG_BYTES)) {
            datagrams.push(datagram(message));
        }
    }
    let of_one = |(to, datagrams): (R, Vec<Vec<u8>>)| datagrams.into_iter().map(move |datagram| (to, datagram));
    by_receiver.into_iter().flat_map(of_one).collect()
}

/// Returns a datagram with one message, not sealed yet.
pub fn datagram(message: &StoreMessage) -> Vec<u8> {
    let mut bytes = Vec::new();
    begin_datagram(&mut bytes);
    let fits = append_message(&mut bytes, message, usize::MAX);
    debug_assert!(fits, "the machines keep their messages short");
    bytes
}

/// Returns the length of the outputs that can travel with a write, in bytes, so that none of its messages is longer
/// than a datagram of `max_datagram` bytes. The longest is that between two nodes.
pub fn room_for_outputs(row: &RowId, values: Option<&RowValues>, max_datagram: usize) -> usize {
    let values = values.map_or(0, |values| values.bytes().len());
    max_datagram.min(MAX_PAYLOAD).saturating_sub(FORWARD_BYTES + row.key().len() + values)
}

/// Reads the messages between a datagram's header and its tag.
///
/// # Errors
/// If any message is malformed.
pub fn read_messages(bytes: &[u8]) -> Read<Vec<StoreMessage>> {
    let mut rest = bytes;
    let mut messages = Vec::new();
    while !rest.is_empty() {
        let (head, after) = rest.split_first_chunk::<3>().ok_or(MalformedMessage)?;
        let length = usize::from(u16::from_be_bytes([head[0], head[1]]));
        let (body, after) = after.split_at_checked(length).ok_or(MalformedMessage)?;
        let mut reader = MessageReader(body);
        messages.push(reader.message(head[2])?);
        if !reader.0.is_empty() {
            return Err(MalformedMessage);
        }
        rest = after;
    }
    Ok(messages)
}

mod kind {
    pub const REQUEST: u8 = 1;
    pub const REPLY: u8 = 2;
    pub const FORWARD: u8 = 3;
    pub const PROGRESS: u8 = 4;
    pub const LAYOUT: u8 = 5;
    pub const LAYOUT_REQUEST: u8 = 6;
    pub const STATUS_REQUEST: u8 = 7;
    pub const STATUS: u8 = 8;
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
