//! Answers users of an operator on a Unix domain socket beside its layout file, which only the operator's user can use.

use std::fs::File;
use std::path::{Path, PathBuf};

use local_socket::{LocalSocket, Peer, SocketError, ask, ask_again};

use crate::durable_file::{self, beside};
use crate::operator_status::{OperatorRequest, OperatorResponse};

/// The reason for which the socket of an operator cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The socket cannot be used, or no operator answers.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// Another operator listens.
    #[error("another operator listens on {0}")]
    InUse(PathBuf),
}

/// The operator, as errors name it.
const OPERATOR: Peer = Peer { name: "operator of this machine", described: "an operator" };

/// The socket of an operator. A lock file excludes other operators on this machine.
#[derive(Debug)]
pub struct StatusSocket {
    socket: LocalSocket,
    _lock: File,
}

impl StatusSocket {
    /// Returns the socket beside a layout file or cluster file.
    pub fn beside(file: &Path) -> PathBuf {
        beside(file, ".sock")
    }

    /// Listens on the socket.
    ///
    /// # Errors
    /// If the socket cannot be created, or another operator listens.
    pub fn open(path: &Path) -> Result<StatusSocket, StatusError> {
        let failed = |source| SocketError::Io { path: path.to_owned(), source };
        let lock = durable_file::lock(&beside(path, ".lock")).map_err(failed)?;
        let lock = lock.ok_or_else(|| StatusError::InUse(path.to_owned()))?;
        Ok(StatusSocket { socket: LocalSocket::open(path)?, _lock: lock })
    }

    /// Answers pending requests.
    pub(crate) fn serve(&mut self, mut answer: impl FnMut(OperatorRequest) -> OperatorResponse) {
        self.socket.serve(|request| request.map_or_else(OperatorResponse::Refused, &mut answer));
    }
}

/// Sends a request to the operator that listens on a socket, and returns its answer.
///
/// # Errors
/// If no operator runs, or it does not answer.
pub fn ask_operator(path: &Path, request: &OperatorRequest) -> Result<OperatorResponse, SocketError> {
    ask(path, request, OPERATOR)
}

/// Waits for an interval, and asks the operator that listens on a socket for the status.
///
/// # Errors
/// If no operator runs, or it does not answer.
pub fn next_status(path: &Path) -> Result<OperatorResponse, SocketError> {
    ask_again(path, &OperatorRequest::Status, OPERATOR)
}
