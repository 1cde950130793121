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
            | EntryError::ConstEntry(_)
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

/// Maximum size of a status's details, in bytes. They are sent in the trailer, where they are a third longer, and
/// clients accept trailers of 8 to 16 KiB by default. A client does not see a longer trailer at all, not even its
/// code (specification, "gRPC Metadata Maximum Size").
const MAX_DETAIL_BYTES: usize = 9 << 9;
/// Bytes of the details that are reserved for messages rather than for codes of further elements.
const WORDS: usize = 1 << 10;
/// Maximum size of a message without details, in bytes.
pub(crate) const MAX_STATUS_BYTES: usize = (6 << 10) + 64;
/// Maximum size of a status's message, in bytes. It is sent twice: beside the details and in them.
const MAX_MESSAGE_BYTES: usize = 640;
/// Sizes of an element of the details that is OK, and of one with a code, in bytes.
const OK_BYTES: usize = 2 + 2 + ERROR_TYPE.len();
const CODE_BYTES: usize = OK_BYTES + 2 + 2;
/// Additional bytes of an element with a message.
const WORDS_BYTES: usize = 6;
/// The type of the elements.
const ERROR_TYPE: &str = "type.googleapis.com/p4.v1.Error";

/// The status of a call that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The canonical code.
    pub code: Code,
    /// The error message.
    pub message: String,
    /// Errors of the batch's elements, if they were processed, for as many of the first as fit.
    pub details: Vec<v1::Error>,
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Status {
        Status { code: refusal.code, message: refusal.message, details: Vec::new() }
    }
}

impl Status {
    /// Returns the status of a batch: `Ok` if every element succeeded, else `UNKNOWN` with an error for each element
    /// (12.3). If the errors do not fit into the response, only the first elements have details, and the message
    /// names as many failed elements as fit.
    pub fn of_batch(what: &str, results: &[Result<(), Refusal>]) -> Result<(), Status> {
        let failed = || results.iter().filter_map(|result| result.as_ref().err());
        // Updates that were skipped because of another failure are named last.
        let is_cause = |refusal: &&Refusal| refusal.code != Code::Aborted;
        let Some(first) = failed().find(is_cause).or_else(|| failed().next()) else { return Ok(()) };
        let failures = failed().count();
        let mut left = MAX_DETAIL_BYTES - WORDS;
        let bare = |result: &Result<(), Refusal>| if result.is_ok() { OK_BYTES } else { CODE_BYTES };
        let fits = |result: &&Result<(), Refusal>| match left.checked_sub(bare(result)) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        };
        let shown = results.iter().take_while(fits).count();
        left += WORDS;
        let mut detail = |result: &Result<(), Refusal>| match result {
            Ok(()) => v1::Error::default(),
            Err(refusal) => {
                let rest = left.checked_sub(refusal.message.len() + WORDS_BYTES);
                let message = if rest.is_some() { refusal.message.clone() } else { String::new() };
                left = rest.unwrap_or(left);
                v1::Error { canonical_code: refusal.code as i32, message, ..Default::default() }
            }
        };
        let details = results[..shown].iter().map(&mut detail).collect();
        let all = results.len();
        let mut message = match all {
            1 => first.message.clone(),
            all if shown == all => format!("{failures} of {all} {what} failed; the first: {}", first.message),
            all => {
                format!("{failures} of {all} {what} failed; only the first {shown} have details. Failed: ")
            }
        };
        if shown < all {
            name_failures(&mut message, results, failures);
        }
        cut(&mut message, MAX_MESSAGE_BYTES);
        Err(Status { code: Code::Unknown, message, details })
    }

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

/// Appends the failed elements and their reasons as far as they fit: `[17]: it is there already; [40]: ...; and 3
/// more`.
fn name_failures(message: &mut String, results: &[Result<(), Refusal>], failures: usize) {
    /// Maximum length of one reason, in bytes.
    const MAX_REASON_BYTES: usize = 160;
    const MORE: &str = "; and 1000000 more";
    for (number, (at, refusal)) in
        results.iter().enumerate().filter_map(|(at, result)| Some((at, result.as_ref().err()?))).enumerate()
    {
        let mut reason = refusal.message.clone();
        cut(&mut reason, MAX_REASON_BYTES);
        let separator = if number == 0 { "" } else { "; " };
        let named = format!("{separator}[{at}]: {reason}");
        if message.len() + named.len() + MORE.len() > MAX_MESSAGE_BYTES {
            message.push_str(&format!("; and {} more", failures - number));
            return;
        }
        message.push_str(&named);
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

    /// Returns the size of the largest trailer: both texts, and the names and numbers of fields.
    fn bytes_sent(status: &Status) -> usize {
        let encoded = |bytes: usize| bytes.div_ceil(3) * 4;
        status.message.len() + encoded(status.detail_bytes().len()) + 256
    }

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

    #[test]
    fn a_status_fits_into_a_trailer_whatever_the_batch() {
        let long = || Err(Refusal::invalid("no ".repeat(1000)));
        for (all, every) in [(1, 1), (3, 1), (50, 2), (120, 3), (1_000, 1), (1_000_000, 999_983)] {
            let results: Vec<_> = (1..=all).map(|at| if at % every == 0 { long() } else { Ok(()) }).collect();
            let status = Status::of_batch("updates", &results).expect_err("some failed");
            assert!(bytes_sent(&status) < 8 << 10, "{all}, {every}: {} bytes", bytes_sent(&status));
            for (detail, result) in status.details.iter().zip(&results) {
                assert_eq!(detail.canonical_code == 0, result.is_ok());
            }
        }
    }

    #[test]
    fn the_first_update_that_failed_by_itself_is_named_first() {
        let undone = || Err(Refusal::new(Code::Aborted, "not applied, since another update of the batch failed"));
        let results = [undone(), Err(Refusal::invalid("there is no such table")), undone()];
        let status = Status::of_batch("updates", &results).expect_err("all failed");
        assert_eq!(status.message, "3 of 3 updates failed; the first: there is no such table");
    }

    #[test]
    fn what_has_no_details_is_named_in_the_message() {
        let mut results = vec![Ok(()); 5_000];
        for at in [700, 4_999] {
            results[at] = Err(Refusal::invalid(format!("there is no {at}")));
        }
        let status = Status::of_batch("updates", &results).expect_err("two failed");
        assert!(status.details.len() > 90 && status.details.len() < 700, "{}", status.details.len());
        let expected = format!(
            "2 of 5000 updates failed; only the first {} have details. \
             Failed: [700]: there is no 700; [4999]: there is no 4999",
            status.details.len()
        );
        assert_eq!(status.message, expected);
        (0..5_000).for_each(|at| results[at] = Err(Refusal::invalid("it already exists; use MODIFY to change it")));
        let status = Status::of_batch("updates", &results).expect_err("all failed");
        assert!(status.message.ends_with(" more"), "{}", status.message);
        assert_eq!(status.details[0].message, "it already exists; use MODIFY to change it");
    }
}
