//! Defines the errors of calls, with the facts that a server reports.

use std::time::Duration;

use credentials::HandshakeFailure;
use p4runtime_proto::prost::Message;
use p4runtime_proto::{google, v1};
use tonic::{Code, Status};

/// A call without a usable answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The server did not answer in time. Whether it executed the call is unknown.
    #[error("the server did not answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The connection failed below gRPC. A server that expects TLS and gets none does this at the first call.
    #[error("the connection failed")]
    Transport(#[source] Box<Status>),
    /// The server ended the stream without an error.
    #[error("the server ended the stream")]
    StreamEnded,
    /// The server answered with an error.
    #[error(transparent)]
    Rejected(Rejection),
}

/// An error status that a server sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code:?}: {message}")]
pub struct Rejection {
    /// Status code of the call.
    pub code: Code,
    /// The server's message about the call as a whole. It may be empty.
    pub message: String,
    /// Updates of a write that failed, in ascending order, as far as the server reports them.
    pub updates: Vec<UpdateError>,
}

/// An update of a write that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("update {index}: {code:?}: {message}")]
pub struct UpdateError {
    /// Position of the update in the request, from 0.
    pub index: usize,
    /// Canonical code of the failure. [`Code::Aborted`] marks updates that failed only because of another one.
    pub code: Code,
    /// The server's message about this update. It may be empty.
    pub message: String,
}

impl CallError {
    /// Converts the status that a call ended with.
    pub(crate) fn from_status(status: Status) -> CallError {
        // A status with a source was made by the transport of this side: the server sent no answer.
        if std::error::Error::source(&status).is_some() {
            return CallError::Transport(Box::new(status));
        }
        let details = google::rpc::Status::decode(status.details()).map(|status| status.details).unwrap_or_default();
        CallError::Rejected(Rejection {
            code: status.code(),
            message: status.message().to_owned(),
            updates: failed_updates(&details),
        })
    }

    /// Returns the failure of TLS that ended the connection, if it is known. A server checks the certificate of its
    /// client after the client's part of the handshake, and may close the connection before its reason arrives.
    pub fn handshake_failure(&self) -> Option<HandshakeFailure> {
        match self {
            CallError::Transport(status) => HandshakeFailure::of(&**status),
            _ => None,
        }
    }

    /// Returns the status code that the server sent, if it sent one.
    pub fn code(&self) -> Option<Code> {
        match self {
            CallError::Rejected(rejection) => Some(rejection.code),
            _ => None,
        }
    }
}

impl Rejection {
    /// Returns the first update that failed by itself, and not only because another update of the batch failed.
    pub fn first_cause(&self) -> Option<&UpdateError> {
        self.updates.iter().find(|update| update.code != Code::Aborted)
    }
}

/// Collects the failed updates from the details of a status, which has one `p4.v1.Error` for each update (specification
/// 12.3), or only some that name their index.
fn failed_updates(details: &[prost_types::Any]) -> Vec<UpdateError> {
    let mut failed = Vec::new();
    for (position, detail) in details.iter().enumerate() {
        let Ok(error) = v1::Error::decode(&*detail.value) else { continue };
        if error.canonical_code != 0 {
            let (index, message) = named_index(&error.message).unwrap_or((position, &error.message));
            let (code, message) = (Code::from_i32(error.canonical_code), message.to_owned());
            failed.push(UpdateError { index, code, message });
        }
    }
    failed
}

/// Parses the index at the beginning of a message. Triplane's servers write it if there is no room for the details of
/// every update: `[700]: there is no such table`.
fn named_index(message: &str) -> Option<(usize, &str)> {
    let (number, reason) = message.strip_prefix('[')?.split_once("]: ")?;
    Some((number.parse().ok()?, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejection(message: &str, details: &[(Code, &str)]) -> Rejection {
        let detail = |(code, message): &(Code, &str)| {
            let error =
                v1::Error { canonical_code: *code as i32, message: (*message).to_owned(), ..v1::Error::default() };
            prost_types::Any { type_url: String::new(), value: error.encode_to_vec() }
        };
        let code = Code::Unknown;
        let status = google::rpc::Status {
            code: code as i32,
            message: message.to_owned(),
            details: details.iter().map(detail).collect(),
        };
        let status = Status::with_details(code, message, status.encode_to_vec().into());
        let CallError::Rejected(rejection) = CallError::from_status(status) else { panic!("a server sent it") };
        rejection
    }

    #[test]
    fn failed_updates_are_reported_with_their_positions() {
        let aborted = (Code::Aborted, "another update failed");
        let full = (Code::ResourceExhausted, "the table is full");
        let rejected = rejection("2 of 3 failed", &[aborted, (Code::Ok, ""), full]);
        let updates: Vec<(usize, Code)> = rejected.updates.iter().map(|update| (update.index, update.code)).collect();
        assert_eq!(updates, [(0, Code::Aborted), (2, Code::ResourceExhausted)]);
        let cause = rejected.first_cause().expect("one update failed by itself");
        assert_eq!((cause.index, &*cause.message), (2, "the table is full"));
        assert_eq!(rejection("no", &[]).first_cause(), None);
        assert_eq!(rejection("no", &[aborted]).first_cause(), None);
    }

    #[test]
    fn updates_may_name_their_index() {
        let (full, missing) = (Code::ResourceExhausted, Code::NotFound);
        let rejected = rejection("2 of 900 failed", &[(full, "[700]: it is full"), (missing, "[801]: [x]: none")]);
        let updates: Vec<_> =
            rejected.updates.iter().map(|update| (update.index, update.code, &*update.message)).collect();
        assert_eq!(updates, [(700, full, "it is full"), (801, missing, "[x]: none")]);
        assert_eq!(rejected.first_cause().expect("two failed by themselves").index, 700);
        assert_eq!(rejection("no", &[(full, "[x]: it is full")]).updates[0].index, 0);
    }
}
