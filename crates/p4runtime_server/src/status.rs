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

    /// The same without words if so many before it have theirs that nobody is told any more: a batch may have a million.
    #[must_use]
    pub(crate) fn unless_many(self, failed: usize) -> Refusal {
        /// More than a status has room for.
        const WITH_WORDS: usize = 256;
        if failed > WITH_WORDS { Refusal::new(self.code, "") } else { self }
    }

    /// What the engine says, with its canonical code; `subject` is what was written, in the controller's names.
    pub fn of_engine(error: &EntryError, subject: &str) -> Refusal {
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

/// Bytes that the details of a status may take. They travel in the trailer of the answer, a third longer there, for which
/// clients have 8 to 16 KiB unless they ask for more; what is longer they do not see at all, not even the code
/// (specification, "gRPC Metadata Maximum Size").
const MAX_DETAIL_BYTES: usize = 9 << 9;
/// Of these, so many are for words, and so not for the codes of further elements.
const WORDS: usize = 1 << 10;
/// Bytes that a message may take where there are no details.
pub(crate) const MAX_STATUS_BYTES: usize = (6 << 10) + 64;
/// Bytes that the message of a status may take, which travels twice: beside the details and in them.
const MAX_MESSAGE_BYTES: usize = 640;
/// Bytes of an element of the details that says no more than OK, and of one with a code.
const OK_BYTES: usize = 2 + 2 + ERROR_TYPE.len();
const CODE_BYTES: usize = OK_BYTES + 2 + 2;
/// What else a message takes.
const WORDS_BYTES: usize = 6;
/// The type of the elements.
const ERROR_TYPE: &str = "type.googleapis.com/p4.v1.Error";

/// How a whole call ends when it does not end well.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The canonical code.
    pub code: Code,
    /// What happened.
    pub message: String,
    /// One for each update of a batch, if its updates were looked at; for as many of the first as the answer has room for.
    pub details: Vec<v1::Error>,
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Status {
        Status { code: refusal.code, message: refusal.message, details: Vec::new() }
    }
}

impl Status {
    /// The status of a batch: nothing if all went well, else `UNKNOWN` with an error for each element (12.3). Of a batch
    /// whose errors are more than an answer has room for, the first elements have details, and the message names those
    /// that failed, as far as it goes.
    pub fn of_batch(what: &str, results: &[Result<(), Refusal>]) -> Result<(), Status> {
        let failed = || results.iter().filter_map(|result| result.as_ref().err());
        // What was only not done because of another failure is not what the caller has to know first.
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
        let told = results.iter().take_while(fits).count();
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
        let details = results[..told].iter().map(&mut detail).collect();
        let all = results.len();
        let mut message = match all {
            1 => first.message.clone(),
            all if told == all => format!("{failures} of {all} {what} failed; the first: {}", first.message),
            all => {
                format!(
                    "{failures} of {all} {what} failed; there is room for the details of the first {told}. Failed: "
                )
            }
        };
        if told < all {
            name_failures(&mut message, results, failures);
        }
        cut(&mut message, MAX_MESSAGE_BYTES);
        Err(Status { code: Code::Unknown, message, details })
    }

    /// The bytes of `google.rpc.Status` that travel beside code and message; empty if there are no details.
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

/// Adds which elements failed, and why, as many as there is room for: `[17]: it is there already; [40]: ...; and 3 more`.
fn name_failures(message: &mut String, results: &[Result<(), Refusal>], failures: usize) {
    /// Of one reason.
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

/// Cuts a text that is longer.
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

    /// What the largest trailer takes on its way: both texts, and names and numbers of fields beside them.
    fn bytes_sent(status: &Status) -> usize {
        let encoded = |bytes: usize| bytes.div_ceil(3) * 4;
        status.message.len() + encoded(status.detail_bytes().len()) + 256
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
    fn the_first_that_failed_by_itself_is_told_first() {
        let undone = || Err(Refusal::new(Code::Aborted, "not done, since another update of the batch failed"));
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
        let told = format!(
            "2 of 5000 updates failed; there is room for the details of the first {}. \
             Failed: [700]: there is no 700; [4999]: there is no 4999",
            status.details.len()
        );
        assert_eq!(status.message, told);
        (0..5_000).for_each(|at| results[at] = Err(Refusal::invalid("it is there already; MODIFY changes it")));
        let status = Status::of_batch("updates", &results).expect_err("all failed");
        assert!(status.message.ends_with(" more"), "{}", status.message);
        assert_eq!(status.details[0].message, "it is there already; MODIFY changes it");
    }
}
