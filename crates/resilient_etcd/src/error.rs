//! Classifies calls to etcd that fail or return no usable response.

use std::error::Error;
use std::time::Duration;

use credentials::HandshakeFailure;
use tonic::{Code, Status};

/// A call without a usable answer. It is not known whether it was executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdError {
    /// No connection can be made, or it ended.
    #[error("etcd at {address} cannot be reached: {reason}")]
    Unreachable {
        /// `HOST:PORT` of the server.
        address: String,
        /// The cause.
        reason: String,
    },
    /// The TLS handshake failed.
    #[error("etcd at {address} cannot be reached: {failure}")]
    Handshake {
        /// `HOST:PORT` of the server.
        address: String,
        /// The cause.
        failure: HandshakeFailure,
    },
    /// The server did not answer in time.
    #[error("etcd at {address} does not answer within {} s", after.as_secs())]
    Timeout {
        /// `HOST:PORT` of the server.
        address: String,
        /// Time after which the call was abandoned.
        after: Duration,
    },
    /// The server answered with an error.
    #[error("etcd at {address} refuses: {message}{}", remedy(*code, message))]
    Refused {
        /// `HOST:PORT` of the server.
        address: String,
        /// Code of the error.
        code: Code,
        /// The server's message.
        message: String,
    },
    /// The answer is not a valid one of etcd.
    #[error("the response from {address} is not a valid etcd response: {reason}")]
    Malformed {
        /// `HOST:PORT` of the server.
        address: String,
        /// The reason.
        reason: &'static str,
    },
}

impl EtcdError {
    /// Returns the error that ended a call. `guess` follows the error of a connection that ended: a server that expects
    /// TLS, or a certificate, ends it without a reason.
    pub(crate) fn of_status(address: &str, (has_identity, guess): (bool, &str), status: &Status) -> EtcdError {
        if let Some(failure) = HandshakeFailure::of(status) {
            return EtcdError::of_handshake(address, has_identity, failure);
        }
        let address = address.to_owned();
        // Created by the local transport: the server sent no answer.
        if let Some(source) = status.source() {
            return EtcdError::Unreachable { address, reason: root_cause(source) + guess };
        }
        EtcdError::Refused { address, code: status.code(), message: shown(status.message()) }
    }

    /// Returns the error that ended an attempt to connect.
    pub(crate) fn of_connection(address: &str, has_identity: bool, error: &tonic::transport::Error) -> EtcdError {
        match HandshakeFailure::of(error) {
            Some(failure) => EtcdError::of_handshake(address, has_identity, failure),
            None => EtcdError::Unreachable { address: address.to_owned(), reason: root_cause(error) },
        }
    }

    fn of_handshake(address: &str, has_identity: bool, failure: HandshakeFailure) -> EtcdError {
        let failure = if has_identity { failure } else { failure.without_certificate() };
        EtcdError::Handshake { address: address.to_owned(), failure }
    }

    /// Whether the server no longer accepts the token, or not for the current state of its users.
    pub(crate) fn is_of_token(&self) -> bool {
        matches!(self, EtcdError::Refused { code: Code::Unauthenticated | Code::InvalidArgument, .. })
    }
}

/// Maximum length of a server's message in an error, in characters.
const MAX_WORDS: usize = 200;

/// Returns a server's message, which may contain any characters, as part of a line.
fn shown(words: &str) -> String {
    words.chars().take(MAX_WORDS).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

fn remedy(code: Code, message: &str) -> &'static str {
    match code {
        Code::InvalidArgument if message.contains("user name is empty") => "; it requires a user and a password",
        Code::FailedPrecondition if message.contains("authentication is not enabled") => {
            "; connect without a user, or enable it"
        }
        Code::PermissionDenied => "; let the user read and write this key",
        _ => "",
    }
}

fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    shown(&cause.to_string())
}
