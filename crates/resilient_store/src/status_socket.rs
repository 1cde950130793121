//! Answers users on a Unix domain socket, which only the operator's user can use.
//!
//! A request is a line of JSON, and so is its answer. The number of connections, their time and the length of a request
//! are bounded, and none of them makes the operator wait.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::durable_file::beside;
use crate::operator_status::{OperatorRequest, OperatorResponse};

/// Maximum length of a request, in bytes.
const MAX_REQUEST: usize = 4096;

/// Maximum length of a response, in bytes.
const MAX_RESPONSE: u64 = 1 << 20;

/// Maximum number of connections.
const MAX_CONNECTIONS: usize = 16;

/// Maximum time of a connection.
const CONNECTION_TIME: Duration = Duration::from_secs(2);

/// Maximum time for which a client waits.
const CLIENT_TIME: Duration = Duration::from_secs(5);

/// Interval at which a client asks for the progress of a change.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Reason that an operator cannot be asked.
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
    #[error("no operator of the layout {0} runs on this machine")]
    NotRunning(PathBuf),
    /// The answer is not one of an operator.
    #[error("{0} did not answer as an operator does")]
    Malformed(PathBuf),
}

/// The socket of an operator, beside its layout file.
#[derive(Debug)]
pub struct StatusSocket {
    listener: UnixListener,
    path: PathBuf,
    connections: Vec<Connection>,
}

#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    received: Vec<u8>,
    since: Instant,
}

impl StatusSocket {
    /// Listens beside a layout file. The caller has the lock of that file, so nobody else listens there.
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub fn open(layout: &Path) -> Result<StatusSocket, StatusError> {
        let path = beside(layout, ".sock");
        let open = || -> io::Result<UnixListener> {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let listener = UnixListener::bind(&path)?;
            listener.set_nonblocking(true)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
            // Clients that connected before the permissions were set are sent away.
            while listener.accept().is_ok() {}
            Ok(listener)
        };
        let listener = open().map_err(|source| StatusError::Io { path: path.clone(), source })?;
        Ok(StatusSocket { listener, path, connections: Vec::new() })
    }

    /// Answers the requests that are there.
    pub(crate) fn serve(&mut self, mut answer: impl FnMut(OperatorRequest) -> OperatorResponse) {
        while self.connections.len() < MAX_CONNECTIONS {
            let Ok((stream, _)) = self.listener.accept() else { break };
            if stream.set_nonblocking(true).is_ok() {
                self.connections.push(Connection { stream, received: Vec::new(), since: Instant::now() });
            }
        }
        self.connections.retain_mut(|connection| {
            let Some(line) = connection.receive() else { return connection.is_open() };
            let response = match serde_json::from_slice(&line) {
                Ok(request) => answer(request),
                Err(error) => OperatorResponse::Refused(format!("malformed request: {error}")),
            };
            let mut text = serde_json::to_vec(&response).expect("a response has names and numbers only");
            text.push(b'\n');
            // A client that does not read gets a part of it.
            _ = connection.stream.write_all(&text);
            false
        });
    }
}

impl Drop for StatusSocket {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.path);
    }
}

impl Connection {
    /// Returns the request, once it is complete.
    fn receive(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; MAX_REQUEST];
        while self.received.len() < MAX_REQUEST {
            match self.stream.read(&mut buffer[..MAX_REQUEST - self.received.len()]) {
                Ok(0) => {
                    self.since = self.since.checked_sub(CONNECTION_TIME).unwrap_or(self.since);
                    break;
                }
                Ok(length) => self.received.extend(&buffer[..length]),
                Err(_) => break,
            }
        }
        let end = self.received.iter().position(|byte| *byte == b'\n')?;
        Some(self.received[..end].to_vec())
    }

    fn is_open(&self) -> bool {
        self.received.len() < MAX_REQUEST && self.since.elapsed() < CONNECTION_TIME
    }
}

/// Sends a request to the operator of a layout file, and returns its answer.
///
/// # Errors
/// If no operator runs, or it does not answer.
pub fn ask_operator(layout: &Path, request: &OperatorRequest) -> Result<OperatorResponse, StatusError> {
    let path = beside(layout, ".sock");
    let mut stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Err(StatusError::NotRunning(layout.to_owned()));
        }
        Err(source) => return Err(StatusError::Io { path, source }),
    };
    let mut ask = || -> io::Result<Vec<u8>> {
        stream.set_read_timeout(Some(CLIENT_TIME))?;
        stream.set_write_timeout(Some(CLIENT_TIME))?;
        let mut line = serde_json::to_vec(request).expect("a request has names only");
        line.push(b'\n');
        stream.write_all(&line)?;
        let mut answer = Vec::new();
        BufReader::new((&stream).take(MAX_RESPONSE)).read_until(b'\n', &mut answer)?;
        Ok(answer)
    };
    let answer = ask().map_err(|source| StatusError::Io { path: path.clone(), source })?;
    serde_json::from_slice(&answer).map_err(|_| StatusError::Malformed(path))
}

/// Waits for a moment, and asks the operator of a layout file for the status.
///
/// # Errors
/// If no operator runs, or it does not answer.
pub fn next_status(layout: &Path) -> Result<OperatorResponse, StatusError> {
    std::thread::sleep(PROGRESS_INTERVAL);
    ask_operator(layout, &OperatorRequest::Status)
}
