//! Messages as text, JSON and bytes.

use std::sync::LazyLock;

use prost::{Message, Name};
use prost_reflect::text_format::FormatOptions;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, ReflectMessage};

/// A form a message is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Protobuf's text format.
    Text,
    /// The JSON mapping of proto3.
    Json,
    /// The wire format.
    Binary,
}

impl Format {
    /// A message in this form.
    pub fn write<M: Message + Name>(self, message: &M) -> Vec<u8> {
        match self {
            Format::Text => to_text(message).into_bytes(),
            Format::Json => to_json(message).into_bytes(),
            Format::Binary => to_bytes(message),
        }
    }
}

/// Why something is not the message it should be.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// Not protobuf text, or of another message.
    #[error("not a {1} in protobuf's text format: {0}")]
    Text(#[source] Box<prost_reflect::text_format::ParseError>, String),
    /// Not JSON, or of another message.
    #[error("not a {1} in JSON: {0}")]
    Json(#[source] serde_json::Error, String),
    /// Not a protobuf message.
    #[error("not a {1} in protobuf's wire format: {0}")]
    Binary(#[source] prost::DecodeError, String),
}

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin")).as_slice())
        .expect("the build script wrote the descriptors")
});

fn descriptor<M: Name>() -> MessageDescriptor {
    POOL.get_message_by_name(&M::full_name()).expect("every generated type has a descriptor")
}

fn dynamic<M: Message + Name>(message: &M) -> DynamicMessage {
    let mut dynamic = DynamicMessage::new(descriptor::<M>());
    dynamic.transcode_from(message).expect("a generated type and its descriptor agree");
    dynamic
}

/// A message in protobuf's text format, with the two comment lines that tell its type, as other tools write it.
pub fn to_text<M: Message + Name>(message: &M) -> String {
    let dynamic = dynamic(message);
    let file = dynamic.descriptor().parent_file().name().to_owned();
    let options = FormatOptions::new().pretty(true);
    let body = dynamic.to_text_format_with_options(&options);
    format!("# proto-file: {file}\n# proto-message: {}\n\n{body}\n", M::full_name())
}

/// A message as indented JSON, field names in lowerCamelCase.
pub fn to_json<M: Message + Name>(message: &M) -> String {
    let mut text = serde_json::to_string_pretty(&dynamic(message)).expect("every message of P4Runtime has a JSON form");
    text.push('\n');
    text
}

/// A message in protobuf's wire format.
pub fn to_bytes<M: Message>(message: &M) -> Vec<u8> {
    message.encode_to_vec()
}

/// Reads a message in protobuf's text format.
pub fn from_text<M: Message + Name + Default>(text: &str) -> Result<M, FormatError> {
    let dynamic = DynamicMessage::parse_text_format(descriptor::<M>(), text)
        .map_err(|error| FormatError::Text(Box::new(error), M::full_name()))?;
    transcode(&dynamic)
}

/// Reads a message as JSON.
pub fn from_json<M: Message + Name + Default>(text: &str) -> Result<M, FormatError> {
    let json = |error| FormatError::Json(error, M::full_name());
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let dynamic = DynamicMessage::deserialize(descriptor::<M>(), &mut deserializer).map_err(json)?;
    deserializer.end().map_err(json)?;
    transcode(&dynamic)
}

/// Reads a message in protobuf's wire format.
pub fn from_bytes<M: Message + Name + Default>(bytes: &[u8]) -> Result<M, FormatError> {
    M::decode(bytes).map_err(|error| FormatError::Binary(error, M::full_name()))
}

fn transcode<M: Message + Name + Default>(dynamic: &DynamicMessage) -> Result<M, FormatError> {
    dynamic.transcode_to().map_err(|error| FormatError::Binary(error, M::full_name()))
}
