//! Answers users of an operator on a Unix domain socket beside its layout file, which only the operator's user can use.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::durable_file::{self, beside};
use crate::local_socket::{AskError, LocalSocket, ask};
use crate::operator_status::{OperatorRequest, OperatorResponse};

/// Interval at which a client asks for the progress of a change.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// The reason for which an operator cannot be queried.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The socket cannot be used.
    #[error("cannot use {path}: {source}")]
    Io {
        /// The socket.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// No operator listens.
    #[error("no operator of this machine listens on {0}")]
    NotRunning(PathBuf),
    /// Another operator listens.
    #[error("another operator listens on {0}")]
    InUse(PathBuf),
    /// The answer is not a valid one of an operator.
    #[error("{0} did not answer like an operator")]
    Malformed(PathBuf),
}

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
        let failed = |source| StatusError::Io { path: path.to_owned(), source };
        let lock = durable_file::lock(&beside(path, ".lock")).map_err(failed)?;
        let lock = lock.ok_or_else(|| StatusError::InUse(path.to_owned()))?;
        let socket = LocalSocket::open(path).map_err(failed)?;
        Ok(StatusSocket { socket, _lock: lock })
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
pub fn ask_operator(path: &Path, request: &OperatorRequest) -> Result<OperatorResponse, StatusError> {
    ask(path, request).map_err(|error| match error {
        AskError::NotRunning => StatusError::NotRunning(path.to_owned()),
        AskError::Io(source) => StatusError::Io { path: path.to_owned(), source },
        AskError::Malformed => StatusError::Malformed(path.to_owned()),
    })
}

/// Waits for an interval, and asks the operator that listens on a socket for the status.
///
/// # Errors
/// If no operator runs, or it does not answer.
pub fn next_status(path: &Path) -> Result<OperatorResponse, StatusError> {
    std::thread::sleep(PROGRESS_INTERVAL);
    ask_operator(path, &OperatorRequest::Status)
}
