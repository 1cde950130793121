//! Builds the status of a batch from the results of its elements (specification 12.3 and 13.3).
//!
//! A status has one detail for each element, in order, as long as all of them fit into a trailer. In a longer batch,
//! only the elements that failed by themselves have details, the first of them first, and each names its index:
//!
//! ```text
//!   3 updates:     OK | NOT_FOUND "table t: it does not exist" | OK
//!   300 updates:   INVALID_ARGUMENT "[207]: there is no table 7"
//! ```

use p4runtime_proto::v1;

use crate::status::{Code, ERROR_TYPE, Refusal, Status, cut};
use crate::trailer;

/// Maximum size of the elements of the details, in bytes. They are sent in the trailer, a third longer, beside the
/// message, which is sent twice.
const MAX_DETAIL_BYTES: usize = 17 << 8;
/// Bytes of the details that are reserved for messages rather than for codes of further elements.
const TEXT_BYTES: usize = 3 << 8;
/// Maximum size of the status's message: in bytes, and in bytes as it is sent.
const MAX_MESSAGE_BYTES: usize = 640;
const MAX_ENCODED_MESSAGE: usize = 1 << 10;
/// Maximum length of one reason among several, in bytes.
const MAX_REASON_BYTES: usize = 160;
/// Sizes of an element of the details that is OK, and of one with a code, in bytes.
const OK_BYTES: usize = 2 + 2 + ERROR_TYPE.len();
const CODE_BYTES: usize = OK_BYTES + 2 + 2;
/// Additional bytes of an element with a message.
const MESSAGE_BYTES: usize = 6;

/// An element that failed, and its index.
type FailedElement<'a> = (usize, &'a Refusal);

/// Whether an element failed by itself, and was not skipped or undone because another one failed.
fn is_cause((_, refusal): &FailedElement<'_>) -> bool {
    refusal.code != Code::Aborted
}

impl Status {
    /// Returns the status of a batch: `Ok` if every element succeeded, else `UNKNOWN` with the errors.
    pub fn of_batch(what: &str, results: &[Result<(), Refusal>]) -> Result<(), Status> {
        let failures = || results.iter().enumerate().filter_map(|(at, result)| Some((at, result.as_ref().err()?)));
        let (failed, causes) = (failures().count(), failures().filter(is_cause).count());
        let all_failures = causes == 0;
        let causes = || failures().filter(move |failure| all_failures || is_cause(failure));
        let Some((_, first)) = causes().next() else { return Ok(()) };
        let bare = |result: &Result<(), Refusal>| if result.is_ok() { OK_BYTES } else { CODE_BYTES };
        let fits = results.iter().map(bare).sum::<usize>() <= MAX_DETAIL_BYTES - TEXT_BYTES;
        let details = if fits { details_of_all(results) } else { details_of_causes(causes()) };
        let mut message = match results.len() {
            1 => first.message.clone(),
            all if fits => format!("{failed} of {all} {what} failed; the first: {}", first.message),
            all => {
                let undone = match failed - causes().count() {
                    0 => String::new(),
                    undone => format!(", {undone} of them because another failed"),
                };
                let shown = details.len();
                let head =
                    format!("{failed} of {all} {what} failed{undone}; the details name {shown} of them by index");
                with_reasons(head, causes())
            }
        };
        cut(&mut message, MAX_MESSAGE_BYTES);
        trailer::cut_encoded(&mut message, MAX_ENCODED_MESSAGE);
        Err(Status { code: Code::Unknown, message, details })
    }
}

/// Returns a detail for each element, in order. Elements that failed by themselves take the room for messages first.
fn details_of_all(results: &[Result<(), Refusal>]) -> Vec<v1::Error> {
    let code = |result: &Result<(), Refusal>| result.as_ref().err().map_or(0, |refusal| refusal.code as i32);
    let mut details: Vec<_> =
        results.iter().map(|result| v1::Error { canonical_code: code(result), ..Default::default() }).collect();
    let used: usize = results.iter().map(|result| if result.is_ok() { OK_BYTES } else { CODE_BYTES }).sum();
    let mut left = MAX_DETAIL_BYTES.saturating_sub(used);
    let failures = || results.iter().enumerate().filter_map(|(at, result)| Some((at, result.as_ref().err()?)));
    let (causes, others) = (failures().filter(is_cause), failures().filter(|failure| !is_cause(failure)));
    for (number, (at, refusal)) in causes.chain(others).enumerate() {
        let mut message = refusal.message.clone();
        if number == 0 {
            cut(&mut message, left.saturating_sub(MESSAGE_BYTES));
        }
        if let Some(rest) = left.checked_sub(message.len() + MESSAGE_BYTES) {
            left = rest;
            details[at].message = message;
        }
    }
    details
}

/// Returns details of as many of these elements as fit. Each message begins with the index.
fn details_of_causes<'a>(causes: impl Iterator<Item = FailedElement<'a>>) -> Vec<v1::Error> {
    let mut left = MAX_DETAIL_BYTES;
    let mut details = Vec::new();
    for (at, refusal) in causes {
        let mut message = format!("[{at}]: {}", refusal.message);
        let most = if details.is_empty() { left - CODE_BYTES - MESSAGE_BYTES } else { MAX_REASON_BYTES };
        cut(&mut message, most);
        let Some(rest) = left.checked_sub(CODE_BYTES + MESSAGE_BYTES + message.len()) else { break };
        left = rest;
        details.push(v1::Error { canonical_code: refusal.code as i32, message, ..Default::default() });
    }
    details
}

/// Appends indices and reasons as far as they fit: `. Failed: [17]: it is there already; [40]: ...; and 3 more`.
fn with_reasons<'a>(mut message: String, causes: impl Iterator<Item = FailedElement<'a>>) -> String {
    const MORE: &str = "; and 1000000 more";
    message.push_str(". Failed: ");
    let mut rest = causes.enumerate();
    while let Some((number, (at, refusal))) = rest.next() {
        let mut reason = refusal.message.clone();
        cut(&mut reason, MAX_REASON_BYTES);
        let separator = if number == 0 { "" } else { "; " };
        let named = format!("{separator}[{at}]: {reason}");
        let length = message.len() + named.len() + MORE.len();
        let encoded = trailer::encoded_len(&message) + trailer::encoded_len(&named) + trailer::encoded_len(MORE);
        if number > 0 && (length > MAX_MESSAGE_BYTES || encoded > MAX_ENCODED_MESSAGE) {
            message.push_str(&format!("; and {} more", rest.count() + 1));
            break;
        }
        message.push_str(&named);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undone() -> Result<(), Refusal> {
        Err(Refusal::new(Code::Aborted, "not applied, since another update of the batch failed"))
    }

    /// Returns an atomic batch that failed because of the update at `at`.
    fn rolled_back(all: usize, at: usize, message: &str) -> Vec<Result<(), Refusal>> {
        let mut results = vec![undone(); all];
        results[at] = Err(Refusal::invalid(message));
        results
    }

    #[test]
    fn a_status_fits_into_a_trailer_whatever_the_batch() {
        let texts = ["no ".repeat(1000), "\u{20ac}".repeat(1000), "x".repeat(3000), "no".to_owned()];
        for text in &texts {
            let failed = || Err(Refusal::invalid(text));
            for (all, every) in [(1, 1), (3, 1), (50, 2), (91, 1), (92, 1), (120, 3), (1_000, 1), (100_000, 99_991)] {
                for passed in [Ok(()), undone()] {
                    let result = |at| if at % every == 0 { failed() } else { passed.clone() };
                    let results: Vec<_> = (1..=all).map(result).collect();
                    let status = Status::of_batch("updates", &results).expect_err("some failed");
                    assert!(!status.details.is_empty() && status.message.len() > 1);
                    let bytes = trailer::tests::bytes_sent(status);
                    assert!(bytes < 8 << 10, "{all}, {every}: {bytes} bytes");
                }
            }
        }
    }

    #[test]
    fn a_short_batch_has_a_detail_for_each_update() {
        let results = rolled_back(3, 1, "there is no such table");
        let status = Status::of_batch("updates", &results).expect_err("all failed");
        assert_eq!(status.message, "3 of 3 updates failed; the first: there is no such table");
        let codes: Vec<_> = status.details.iter().map(|detail| detail.canonical_code).collect();
        assert_eq!(codes, [Code::Aborted as i32, Code::InvalidArgument as i32, Code::Aborted as i32]);
        assert_eq!(status.details[1].message, "there is no such table");
    }

    #[test]
    fn the_cause_of_a_rollback_is_in_the_details_wherever_it_is() {
        let text = "there is no such table, and this is a long sentence that says so";
        for all in [1, 2, 50, 90, 91, 92, 200, 5_000] {
            for at in [0, all / 2, all - 1] {
                let status = Status::of_batch("updates", &rolled_back(all, at, text)).expect_err("all failed");
                let (detail, expected) = if status.details.len() == all {
                    (&status.details[at], text.to_owned())
                } else {
                    (&status.details[0], format!("[{at}]: {text}"))
                };
                assert_eq!(detail.canonical_code, Code::InvalidArgument as i32, "{at} of {all}");
                assert_eq!(detail.message, expected, "{at} of {all}");
                assert!(status.message.contains(text), "{at} of {all}: {}", status.message);
            }
        }
    }

    #[test]
    fn a_long_batch_has_details_of_the_updates_that_failed_by_themselves() {
        let mut results = vec![Ok(()); 5_000];
        for at in [700, 4_999] {
            results[at] = Err(Refusal::invalid(format!("there is no {at}")));
        }
        let status = Status::of_batch("updates", &results).expect_err("two failed");
        let named: Vec<_> = status.details.iter().map(|detail| detail.message.as_str()).collect();
        assert_eq!(named, ["[700]: there is no 700", "[4999]: there is no 4999"]);
        let expected = "2 of 5000 updates failed; the details name 2 of them by index. \
                        Failed: [700]: there is no 700; [4999]: there is no 4999";
        assert_eq!(status.message, expected);
        let status = Status::of_batch("updates", &rolled_back(300, 207, "no")).expect_err("all failed");
        let expected = "300 of 300 updates failed, 299 of them because another failed; the details name 1 of them by \
                        index. Failed: [207]: no";
        assert_eq!(status.message, expected);
    }

    #[test]
    fn as_many_failures_are_named_as_fit() {
        let results = vec![Err(Refusal::invalid("it already exists; use MODIFY to change it")); 5_000];
        let status = Status::of_batch("updates", &results).expect_err("all failed");
        assert!(status.details.len() > 20, "{}", status.details.len());
        assert!(status.message.ends_with(" more"), "{}", status.message);
        assert_eq!(status.details[3].message, "[3]: it already exists; use MODIFY to change it");
    }
}
