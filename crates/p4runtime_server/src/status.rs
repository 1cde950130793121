//! Builds status codes and error details (specification chapter 10).

use engine::EntryError;
use p4runtime_proto::bytestring::BytestringError;
use p4runtime_proto::prost::Message;
use p4runtime_proto::{google, v1};

/// Canonical codes (`google.rpc.Code`) that a P4Runtime server uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
#[allow(missing_docs, reason = "the names are google.rpc.Code's, which says what they mean")]
pub enum Code {
    Ok = 0,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
}

/// An error of one update, request or stream message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The canonical code.
    pub code: Code,
    /// The mistake, and what would be right.
    pub message: String,
}

/// A number that does not fit is out of range (specification 8.4).
impl From<BytestringError> for Refusal {
    fn from(error: BytestringError) -> Refusal {
        Refusal::new(Code::OutOfRange, error.to_string())
    }
}

impl Refusal {
    /// Returns a refusal with this code.
    pub fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into() }
    }

    /// Returns a refusal for an invalid request.
    pub fn invalid(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::InvalidArgument, message)
    }

    /// Returns a refusal for an entity that does not exist.
    pub fn not_found(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::NotFound, message)
    }

    /// Returns a refusal for an operation that is not permitted, or not to this client.
    pub fn denied(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::PermissionDenied, message)
    }

    /// Returns a refusal for an operation that this server does not implement.
    pub fn unimplemented(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::Unimplemented, message)
    }

    /// Prefixes the message with its subject.
    #[must_use]
    pub fn about(self, subject: &str) -> Refusal {
        Refusal { message: format!("{subject}: {}", self.message), ..self }
    }

    /// Drops the message if enough earlier elements have one: a batch may have a million elements, and no more
    /// messages than these reach the client.
    #[must_use]
    pub(crate) fn unless_many(self, failed: usize) -> Refusal {
        /// Number of messages kept, more than fit into a status.
        const WITH_WORDS: usize = 256;
        if failed > WITH_WORDS { Refusal::new(self.code, "") } else { self }
    }

    /// Converts an error of the engine. `subject` is the entity in the controller's names.
    pub fn from_engine_error(error: &EntryError, subject: &str) -> Refusal {
        let code = match error {
            EntryError::ConstEntries(_)
            | EntryError::RowEntries(_)
            | EntryError::RowRegister(_)
            | EntryError::ConstEntry(_)
            | EntryError::ConstDefault(_)
            | EntryError::DefaultOnly(_)
            | EntryError::TableOnly(_) => Code::PermissionDenied,
            EntryError::NoSuchMember(_) | EntryError::NoSuchGroup(_) | EntryError::NotFound => Code::NotFound,
            EntryError::Duplicate => Code::AlreadyExists,
            EntryError::Full(_) | EntryError::NoCells(..) => Code::ResourceExhausted,
            EntryError::InUse(_) => Code::FailedPrecondition,
            EntryError::BeyondEnd { .. } => Code::OutOfRange,
            _ => Code::InvalidArgument,
        };
        let what = match error {
            EntryError::ConstEntries(_) => "its entries are constant".to_owned(),
            EntryError::RowEntries(_) => "its entries are made by the stores of resilient state".to_owned(),
            EntryError::RowRegister(_) => "its values are resilient state, which only packets write".to_owned(),
            EntryError::ConstEntry(_) => "this entry is constant".to_owned(),
            EntryError::ConstDefault(_) => "its default action is constant".to_owned(),
            EntryError::Keyless(_) => "it has no key and therefore no entries, only a default action".to_owned(),
            EntryError::DefaultOnly(_) => "this action may be used only as the default action".to_owned(),
            EntryError::TableOnly(_) => "this action may not be used as the default action".to_owned(),
            EntryError::NotFound => format!("{} does not exist", noun(subject)),
            EntryError::Duplicate => format!("{} already exists; use MODIFY to change it", noun(subject)),
            other => other.to_string(),
        };
        Refusal::new(code, format!("{subject}: {what}"))
    }
}

/// Returns the noun for the entity of an update. The subject of an update to a table, or to its direct counter or
/// meter, names the table and not the entry, so "it" would be the table.
fn noun(subject: &str) -> &'static str {
    if subject.contains("table ") { "the entry" } else { "it" }
}

/// The type of the elements of the details.
pub(crate) const ERROR_TYPE: &str = "type.googleapis.com/p4.v1.Error";

/// The status of a call that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The canonical code.
    pub code: Code,
    /// The error message.
    pub message: String,
    /// Errors of the batch's elements, if they were processed ([`Status::of_batch`]).
    pub details: Vec<v1::Error>,
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Status {
        Status { code: refusal.code, message: refusal.message, details: Vec::new() }
    }
}

impl Status {
    /// Encodes the `google.rpc.Status` that is sent beside code and message. Empty if there are no details.
    pub fn detail_bytes(&self) -> Vec<u8> {
        if self.details.is_empty() {
            return Vec::new();
        }
        let any =
            |error: &v1::Error| prost_types::Any { type_url: ERROR_TYPE.to_owned(), value: error.encode_to_vec() };
        let status = google::rpc::Status {
            code: self.code as i32,
            message: self.message.clone(),
            details: self.details.iter().map(any).collect(),
        };
        status.encode_to_vec()
    }
}

/// Truncates a text to `bytes` at most.
pub(crate) fn cut(text: &mut String, bytes: usize) {
    const ELLIPSIS: &str = "...";
    if text.len() > bytes {
        let end = (0..=bytes - ELLIPSIS.len()).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str(ELLIPSIS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_do_not_fit_are_out_of_range() {
        use p4runtime_proto::bytestring::{parse, parse_signed};
        for error in [parse(&[], 8), parse(&[1, 0x63], 8), parse_signed(&[0, 0x9d], 8)] {
            let refusal = Refusal::from(error.expect_err("it does not fit"));
            assert_eq!(refusal.code, Code::OutOfRange, "{refusal}");
        }
    }

    #[test]
    fn an_entry_that_is_missing_is_not_its_table() {
        let message = |error, subject| Refusal::from_engine_error(&error, subject).message;
        for (error, subject, expected) in [
            (EntryError::NotFound, "table t", "table t: the entry does not exist"),
            (EntryError::Duplicate, "table t", "table t: the entry already exists; use MODIFY to change it"),
            (EntryError::NotFound, "direct meter of table t", "direct meter of table t: the entry does not exist"),
            (EntryError::NotFound, "action profile p, member 3", "action profile p, member 3: it does not exist"),
        ] {
            assert_eq!(message(error, subject), expected);
        }
    }
}
