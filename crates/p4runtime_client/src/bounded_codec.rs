//! Encodes requests and decodes answers, and refuses answers that would take too much memory.
//!
//! Two bytes of a message can become hundreds in memory, so the limit of a message's size bounds its memory only to
//! gigabytes. The decoder therefore computes the memory before it decodes ([`footprint`]).

use std::marker::PhantomData;

use p4runtime_proto::footprint;
use p4runtime_proto::prost::bytes::Buf;
use p4runtime_proto::prost::{Message, Name};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Maximum memory that decoded answers take, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Maximum for one message, except those of reads: a pipeline configuration, or a message of a stream.
    pub answer: u64,
    /// Maximum for one message of a read.
    pub read_message: u64,
    /// Maximum for all messages of a read together.
    pub read: u64,
}

impl Default for MemoryLimits {
    /// Returns 256 MiB, as for the P4Info of a compiled program, 1 GiB, and 8 GiB, that of some million entries.
    fn default() -> MemoryLimits {
        MemoryLimits { answer: 256 << 20, read_message: 1 << 30, read: 8 << 30 }
    }
}

/// Limits of one call.
#[derive(Clone, Copy, Debug)]
pub struct DecodedLimits {
    /// Maximum for one message.
    pub message: u64,
    /// Maximum for all messages together; `None` for a stream without end, whose messages are not kept.
    pub call: Option<u64>,
}

/// A codec for one call with requests of type `T` and answers of type `U`.
pub struct BoundedCodec<T, U> {
    limits: DecodedLimits,
    messages: PhantomData<(T, U)>,
}

impl<T, U> BoundedCodec<T, U> {
    /// Returns a codec with these limits.
    pub fn new(limits: DecodedLimits) -> BoundedCodec<T, U> {
        BoundedCodec { limits, messages: PhantomData }
    }
}

impl<T, U> Codec for BoundedCodec<T, U>
where
    T: Message + 'static,
    U: Message + Name + Default + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = RequestEncoder<T>;
    type Decoder = AnswerDecoder<U>;

    fn encoder(&mut self) -> RequestEncoder<T> {
        RequestEncoder(PhantomData)
    }

    fn decoder(&mut self) -> AnswerDecoder<U> {
        AnswerDecoder { limits: self.limits, answers: PhantomData }
    }
}

/// Encodes requests.
pub struct RequestEncoder<T>(PhantomData<T>);

impl<T: Message> Encoder for RequestEncoder<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, request: T, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        request.encode(buffer).map_err(|error| Status::internal(error.to_string()))
    }
}

/// Decodes the answers to one call.
pub struct AnswerDecoder<U> {
    /// What further answers may take.
    limits: DecodedLimits,
    answers: PhantomData<U>,
}

impl<U: Message + Name + Default> Decoder for AnswerDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        let DecodedLimits { message, call } = self.limits;
        let limit = call.unwrap_or(u64::MAX).min(message);
        // The buffer is contiguous and holds one message.
        let bytes = footprint::bytes_of::<U>(buffer.chunk(), limit);
        if bytes > limit {
            let mib = limit >> 20;
            return Err(Status::out_of_range(format!("the answer would take more than {mib} MiB of memory")));
        }
        self.limits.call = call.map(|call| call - bytes);
        U::decode(buffer).map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use p4runtime_proto::v1::{self, entity, field_match, table_action};

    use super::*;

    /// Returns a message of a read with this number of common entries.
    fn entries(count: usize) -> Vec<u8> {
        let exact = field_match::Exact { value: vec![10, 0, 0, 1] };
        let key = v1::FieldMatch { field_id: 1, field_match_type: Some(field_match::FieldMatchType::Exact(exact)) };
        let param = |param_id| v1::action::Param { param_id, value: vec![1, 2, 3, 4, 5, 6] };
        let action = v1::Action { action_id: 0x0100_0001, params: vec![param(1), param(2)] };
        let entry = v1::TableEntry {
            table_id: 0x0200_0001,
            r#match: vec![key],
            action: Some(v1::TableAction { r#type: Some(table_action::Type::Action(action)) }),
            ..Default::default()
        };
        let entity = v1::Entity { entity: Some(entity::Entity::TableEntry(entry)) };
        v1::ReadResponse { entities: vec![entity; count] }.encode_to_vec()
    }

    #[test]
    fn tables_of_common_size_are_read() {
        let memory = |count| footprint::bytes_of::<v1::ReadResponse>(&entries(count), u64::MAX);
        let limits = MemoryLimits::default();
        assert!(memory(500_000) <= limits.read_message, "{}", memory(500_000));
        assert!(limits.read / memory(1 << 14) * (1 << 14) >= 4_000_000, "{}", memory(1 << 14));
    }
}
