//! Fits a status into the trailers of a gRPC response.
//!
//! The message is sent percent-encoded (`grpc-message`) and the details in base64 (`grpc-status-details-bin`, where the
//! message is repeated). Clients accept 8 KiB of trailers by default. Of a longer trailer they see nothing, not even
//! the code (specification, "gRPC Metadata Maximum Size").

use p4runtime_proto::v1;

use crate::status::{ERROR_TYPE, Status, cut};

/// Maximum size of a status in the trailers, in bytes: the 8 KiB without the other fields and their names.
const MAX_STATUS_BYTES: usize = (8 << 10) - 512;
/// Maximum length of a message as it is sent, in bytes.
const MAX_ENCODED_MESSAGE: usize = 4 << 10;
/// Maximum length as it is sent of a message that continues in the details, in bytes.
const MAX_ENCODED_START: usize = 3 << 10;
/// The end of a message that continues in the details.
const CONTINUED: &str = "\n... (continued in the details of the status)";
/// Bytes of the details around two texts.
const DETAIL_BYTES: usize = 32 + ERROR_TYPE.len();

/// Returns the length of a character in `grpc-message`, in bytes. Of the characters of ASCII, gRPC demands that only
/// `%` and those that are not printable are encoded; `tonic` encodes these too.
fn encoded_char(character: char) -> usize {
    let is_plain = character.is_ascii_graphic() && !"\"#%<>`?{}".contains(character);
    if is_plain { 1 } else { 3 * character.len_utf8() }
}

/// Returns the length of a text in `grpc-message`, in bytes.
pub(crate) fn encoded_len(text: &str) -> usize {
    text.chars().map(encoded_char).sum()
}

/// Returns the end of the longest start of a text that takes `bytes` at most in `grpc-message`.
fn end_within(text: &str, bytes: usize) -> usize {
    let mut left = bytes;
    for (at, character) in text.char_indices() {
        match left.checked_sub(encoded_char(character)) {
            Some(rest) => left = rest,
            None => return at,
        }
    }
    text.len()
}

/// Truncates a text so that it takes `bytes` at most in `grpc-message`.
pub(crate) fn cut_encoded(text: &mut String, bytes: usize) {
    const ELLIPSIS: &str = "...";
    if encoded_len(text) > bytes {
        text.truncate(end_within(text, bytes - ELLIPSIS.len()));
        text.push_str(ELLIPSIS);
    }
}

/// Moves what is too long for `grpc-message` to the details, as one `p4.v1.Error`, as far as it fits there.
pub(crate) fn fit(mut status: Status) -> Status {
    if encoded_len(&status.message) <= MAX_ENCODED_MESSAGE {
        return status;
    }
    let end = end_within(&status.message, MAX_ENCODED_START - encoded_len(CONTINUED));
    // Lines stay whole unless they are very long.
    let end = status.message[..end].rfind('\n').filter(|line| *line > end / 2).unwrap_or(end);
    let rest = status.message.split_off(end);
    let mut rest = rest.trim_start_matches('\n').to_owned();
    status.message.push_str(CONTINUED);
    let room = (MAX_STATUS_BYTES - encoded_len(&status.message)) / 4 * 3;
    cut(&mut rest, room - status.message.len() - DETAIL_BYTES);
    status.details = vec![v1::Error { canonical_code: status.code as i32, message: rest, ..Default::default() }];
    status
}

#[cfg(test)]
pub(crate) mod tests {
    use tonic::codegen::http::HeaderMap;

    use super::*;
    use crate::status::Refusal;

    /// Returns the size of the trailers of a status, as HTTP/2 counts it.
    pub(crate) fn bytes_sent(status: Status) -> usize {
        /// Bytes that HTTP/2 counts for a field beside its name and value (RFC 9113, 6.5.2).
        const FIELD_BYTES: usize = 32;
        let mut fields = HeaderMap::new();
        tonic::Status::from(status).add_header(&mut fields).expect("a status is valid as header fields");
        fields.iter().map(|(name, value)| name.as_str().len() + value.len() + FIELD_BYTES).sum()
    }

    /// Returns `grpc-message` as it is sent, and the texts that a client sees.
    fn seen(text: &str) -> (String, String, Vec<String>) {
        let status = fit(Refusal::invalid(text).into());
        let mut fields = HeaderMap::new();
        tonic::Status::from(status.clone()).add_header(&mut fields).expect("a status is valid as header fields");
        let sent = fields["grpc-message"].to_str().expect("it is encoded").to_owned();
        (sent, status.message, status.details.into_iter().map(|detail| detail.message).collect())
    }

    #[test]
    fn encoded_lengths_are_those_of_grpc() {
        for text in
            ["plain", "a b\tc\n", "100 % \"quoted\" <x> {y} `z` #1?", "\u{e9}\u{20ac}\u{1f600}", "[17]: it's ~/^|\\"]
        {
            assert_eq!(encoded_len(text), seen(text).0.len(), "{text}");
        }
    }

    #[test]
    fn the_rest_of_a_long_message_is_in_the_details() {
        let report: String = (0..200).map(|at| format!("error: `x{at}` is not declared {{here}}\n  ^^^^^\n")).collect();
        let (sent, message, details) = seen(&report);
        assert!(sent.len() <= 4 << 10, "{}", sent.len());
        let start = message.strip_suffix(CONTINUED).expect("it says that there is more");
        let [rest] = &details[..] else { panic!("{details:?}") };
        let whole = format!("{start}\n{}", rest.trim_end_matches('.'));
        assert!(report.starts_with(&whole), "{whole}");
        assert!(whole.len() > 3_000, "{} bytes of the report are sent", whole.len());
    }

    #[test]
    fn every_message_fits() {
        for text in ["x", " ", "\n", "\u{20ac}", "ab c", "a\u{1f600}"] {
            for count in [1, 1_000, 1_366, 3_000, 4_096, 4_097, 5_000, 200_000] {
                let text = text.repeat(count);
                let (sent, ..) = seen(&text);
                assert!(sent.len() <= 4 << 10, "{count}: {}", sent.len());
                let bytes = bytes_sent(Refusal::invalid(text).into());
                assert!(bytes < 8 << 10, "{count}: {bytes} bytes");
            }
        }
    }
}
