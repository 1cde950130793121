//! What is answered when something cannot be done (specification chapter 10).

use engine::EntryError;
use p4runtime_proto::prost::Message;
use p4runtime_proto::{google, v1};

/// Canonical codes (`google.rpc.Code`), as far as a server of P4Runtime uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
#[allow(missing_docs, reason = "the names are google.rpc.Code's, which says what they mean")]
pub enum Code {
    Ok = 0,
    Unknown = 2,
    InvalidArgument = 3,
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

/// Why one update, request or stream message is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The canonical code.
    pub code: Code,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl Refusal {
    /// A refusal with this code.
    pub fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into() }
    }

    /// What is asked for makes no sense.
    pub fn invalid(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::InvalidArgument, message)
    }

    /// Something that is named is not there.
    pub fn not_found(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::NotFound, message)
    }

    /// Something that may not be changed, or not by this client.
    pub fn denied(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::PermissionDenied, message)
    }

    /// Something that this server does not do.
    pub fn unimplemented(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::Unimplemented, message)
    }

    /// The same with what it is about in front.
    #[must_use]
    pub fn about(self, subject: &str) -> Refusal {
        Refusal { message: format!("{subject}: {}", self.message), ..self }
    }

    /// What the engine says, with its canonical code; `subject` is what was written, in the controller's names.
    pub fn of_engine(error: &EntryError, subject: &str) -> Refusal {
        let code = match error {
            EntryError::ConstEntries(_)
            | EntryError::ConstDefault(_)
            | EntryError::DefaultOnly(_)
            | EntryError::TableOnly(_) => Code::PermissionDenied,
            EntryError::NoSuchMember(_) | EntryError::NoSuchGroup(_) | EntryError::NotFound => Code::NotFound,
            EntryError::Duplicate => Code::AlreadyExists,
            EntryError::Full(_) => Code::ResourceExhausted,
            EntryError::InUse(_) => Code::FailedPrecondition,
            EntryError::BeyondEnd { .. } => Code::OutOfRange,
            _ => Code::InvalidArgument,
        };
        let what = match error {
            EntryError::ConstEntries(_) => "its entries are constant".to_owned(),
            EntryError::ConstDefault(_) => "its default action is constant".to_owned(),
            EntryError::Keyless(_) => "it has no key and so no entries, only a default action".to_owned(),
            EntryError::DefaultOnly(_) => "this action may be used as the default action only".to_owned(),
            EntryError::TableOnly(_) => "this action may not be used as the default action".to_owned(),
            EntryError::NotFound => "there is none to modify, delete or read".to_owned(),
            EntryError::Duplicate => "it is there already; MODIFY changes it".to_owned(),
            other => other.to_string(),
        };
        Refusal::new(code, format!("{subject}: {what}"))
    }
}

/// Bytes of words that a status carries for single updates; what is beyond keeps its code and loses its words. All of it
/// travels in the trailer of the answer, for which clients have 8 to 16 KiB unless they ask for more, and without room
/// they see nothing at all (specification, "gRPC Metadata Maximum Size").
const MAX_DETAIL_BYTES: usize = 4 << 10;

/// How a whole call ends when it does not end well.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The canonical code.
    pub code: Code,
    /// What happened.
    pub message: String,
    /// One for each update of a batch, if its updates were looked at.
    pub details: Vec<v1::Error>,
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Status {
        Status { code: refusal.code, message: refusal.message, details: Vec::new() }
    }
}

impl Status {
    /// The status of a batch: nothing if all went well, else `UNKNOWN` with an error for each element (12.3).
    pub fn of_batch(what: &str, results: &[Result<(), Refusal>]) -> Result<(), Status> {
        let failed = results.iter().filter(|result| result.is_err()).count();
        let Some(first) = results.iter().find_map(|result| result.as_ref().err()) else { return Ok(()) };
        let mut left = MAX_DETAIL_BYTES;
        let mut detail = |result: &Result<(), Refusal>| match result {
            Ok(()) => v1::Error::default(),
            Err(refusal) => {
                let message = if refusal.message.len() <= left { refusal.message.clone() } else { String::new() };
                left -= message.len();
                v1::Error { canonical_code: refusal.code as i32, message, ..Default::default() }
            }
        };
        let details = results.iter().map(&mut detail).collect();
        let message = match results.len() {
            1 => first.message.clone(),
            all => format!("{failed} of {all} {what} failed; the first: {}", first.message),
        };
        Err(Status { code: Code::Unknown, message, details })
    }

    /// The bytes of `google.rpc.Status` that travel beside code and message; empty if there are no details.
    pub fn detail_bytes(&self) -> Vec<u8> {
        if self.details.is_empty() {
            return Vec::new();
        }
        let any = |error: &v1::Error| prost_types::Any {
            type_url: "type.googleapis.com/p4.v1.Error".to_owned(),
            value: error.encode_to_vec(),
        };
        let status = google::rpc::Status {
            code: self.code as i32,
            message: self.message.clone(),
            details: self.details.iter().map(any).collect(),
        };
        status.encode_to_vec()
    }
}
