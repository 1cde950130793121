//! Reads and writes messages as text, JSON and binary.

use std::sync::LazyLock;

use prost::{Message, Name};
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, ReflectMessage};

use crate::{footprint, text};

/// An encoding of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFormat {
    /// Protobuf's text format.
    Text,
    /// The JSON mapping of proto3.
    Json,
    /// The wire format.
    Binary,
}

impl MessageFormat {
    /// Encodes a message.
    pub fn write<M: Message + Name>(self, message: &M) -> Vec<u8> {
        match self {
            MessageFormat::Text => to_text(message).into_bytes(),
            MessageFormat::Json => to_json(message).into_bytes(),
            MessageFormat::Binary => to_bytes(message),
        }
    }
}

/// An error from decoding a message.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The input is not protobuf text, or of another message.
    #[error("not a {1} in protobuf's text format: {0}")]
    Text(#[source] Box<prost_reflect::text_format::ParseError>, String),
    /// The input is not JSON, or of another message.
    #[error("not a {1} in JSON: {0}")]
    Json(#[source] serde_json::Error, String),
    /// The input is not a protobuf message.
    #[error("not a {1} in protobuf's wire format: {0}")]
    Binary(#[source] prost::DecodeError, String),
    /// The message would take too much memory.
    #[error("a {message} that would take more than {} MiB of memory", limit >> 20)]
    TooLarge {
        /// The name of its type.
        message: String,
        /// Maximum size of the decoded message, in bytes.
        limit: u64,
    },
}

pub(crate) static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(include_bytes!("generated/descriptors.bin").as_slice())
        .expect("the generator wrote the descriptors")
});

fn descriptor<M: Name>() -> MessageDescriptor {
    POOL.get_message_by_name(&M::full_name()).expect("every generated type has a descriptor")
}

fn dynamic<M: Message + Name>(message: &M) -> DynamicMessage {
    let mut dynamic = DynamicMessage::new(descriptor::<M>());
    dynamic.transcode_from(message).expect("a generated type and its descriptor agree");
    dynamic
}

/// Encodes a message in protobuf's text format, with the two comment lines that name its type, like other tools.
pub fn to_text<M: Message + Name>(message: &M) -> String {
    let dynamic = dynamic(message);
    let file = dynamic.descriptor().parent_file().name().to_owned();
    format!("# proto-file: {file}\n# proto-message: {}\n\n{}", M::full_name(), text::print(&dynamic))
}

/// Encodes a message as indented JSON, with field names in lowerCamelCase.
pub fn to_json<M: Message + Name>(message: &M) -> String {
    let mut text = serde_json::to_string_pretty(&dynamic(message)).expect("every message of P4Runtime has a JSON form");
    text.push('\n');
    text
}

/// Encodes a message in protobuf's wire format.
pub fn to_bytes<M: Message>(message: &M) -> Vec<u8> {
    message.encode_to_vec()
}

/// Decodes a message from protobuf's text format.
pub fn from_text<M: Message + Name + Default>(text: &str) -> Result<M, FormatError> {
    let dynamic = DynamicMessage::parse_text_format(descriptor::<M>(), text)
        .map_err(|error| FormatError::Text(Box::new(error), M::full_name()))?;
    transcode(&dynamic)
}

/// Decodes a message from JSON.
pub fn from_json<M: Message + Name + Default>(text: &str) -> Result<M, FormatError> {
    let json = |error| FormatError::Json(error, M::full_name());
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let dynamic = DynamicMessage::deserialize(descriptor::<M>(), &mut deserializer).map_err(json)?;
    deserializer.end().map_err(json)?;
    transcode(&dynamic)
}

/// Decodes a message from protobuf's wire format, unless its [footprint](footprint::bytes_of) exceeds `limit` bytes.
pub fn from_bytes<M: Message + Name + Default>(bytes: &[u8], limit: u64) -> Result<M, FormatError> {
    if footprint::bytes_of::<M>(bytes, limit) > limit {
        return Err(FormatError::TooLarge { message: M::full_name(), limit });
    }
    M::decode(bytes).map_err(|error| FormatError::Binary(error, M::full_name()))
}

fn transcode<M: Message + Name + Default>(dynamic: &DynamicMessage) -> Result<M, FormatError> {
    dynamic.transcode_to().map_err(|error| FormatError::Binary(error, M::full_name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{P4Info, PkgInfo, Preamble, Table};

    fn sample() -> P4Info {
        let preamble = Preamble {
            id: 0x0200_0001,
            name: "c.\u{e9}\"\n".to_owned(),
            annotations: vec!["@a".to_owned(), "@b(\"x\")".to_owned()],
            ..Default::default()
        };
        let mut info = P4Info { pkg_info: Some(PkgInfo::default()), ..Default::default() };
        info.tables.push(Table { preamble: Some(preamble), size: -1, ..Default::default() });
        let types = info.type_info.get_or_insert_default();
        types.enums.insert("E".to_owned(), Default::default());
        types.enums.insert("D".to_owned(), Default::default());
        info
    }

    #[test]
    fn text_is_written_a_field_a_line() {
        let expected = r#"# proto-file: p4/config/v1/p4info.proto
# proto-message: p4.config.v1.P4Info

pkg_info {
}
tables {
  preamble {
    id: 33554433
    name: "c.\303\251\"\n"
    annotations: "@a"
    annotations: "@b(\"x\")"
  }
  size: -1
}
type_info {
  enums {
    key: "D"
    value {
    }
  }
  enums {
    key: "E"
    value {
    }
  }
}
"#;
        assert_eq!(to_text(&sample()), expected);
    }

    #[test]
    fn every_form_reads_back() {
        let info = sample();
        assert_eq!(from_text::<P4Info>(&to_text(&info)).unwrap(), info);
        assert_eq!(from_json::<P4Info>(&to_json(&info)).unwrap(), info);
        assert_eq!(from_bytes::<P4Info>(&to_bytes(&info), 1 << 20).unwrap(), info);
    }

    #[test]
    fn malformed_messages_are_refused() {
        let text = from_text::<P4Info>("tables { size: \"big\" }").unwrap_err();
        assert!(text.to_string().starts_with("not a p4.config.v1.P4Info in protobuf's text format"), "{text}");
        assert!(from_json::<P4Info>("{\"tables\": 1}").is_err());
        assert!(from_json::<P4Info>("{} {}").is_err());
        assert!(from_bytes::<P4Info>(&[0xff], 1 << 20).is_err());
    }
}
