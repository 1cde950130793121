//! Answers users of this machine on a Unix domain socket, which only one user can open.
//!
//! A request is a line of JSON, and so is its answer. The number of connections, their time and the length of a request
//! are bounded, and no connection makes the server wait.

#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

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

/// A socket with its connections. Dropping it removes its file.
#[derive(Debug)]
pub struct LocalSocket {
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

/// The process that listens on a socket, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name, such as "switch".
    pub name: &'static str,
    /// Its name with what it answers about, such as "a switch with resilient state".
    pub described: &'static str,
}

/// The reason for which a socket cannot be used, or a request got no answer.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The socket cannot be used.
    #[error("cannot use the socket {path}: {source}")]
    Io {
        /// The socket.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// No process listens.
    #[error("no {} listens on {path}", peer.name)]
    NotRunning {
        /// The socket.
        path: PathBuf,
        /// The process that should listen.
        peer: Peer,
    },
    /// The answer is not a valid one.
    #[error("{path} did not answer like {}", peer.described)]
    Malformed {
        /// The socket.
        path: PathBuf,
        /// The process that should listen.
        peer: Peer,
    },
}

impl LocalSocket {
    /// Listens at a path. A socket that a dead process left is replaced; one with a listener, and any other file, is
    /// not.
    ///
    /// # Errors
    /// [`SocketError::Io`], if the socket cannot be created there.
    pub fn open(path: &Path) -> Result<LocalSocket, SocketError> {
        LocalSocket::listen(path).map_err(|source| SocketError::Io { path: path.to_owned(), source })
    }

    fn listen(path: &Path) -> io::Result<LocalSocket> {
        match fs::symlink_metadata(path) {
            Ok(found) if !found.file_type().is_socket() => {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, "another file has this name"));
            }
            Ok(_) if UnixStream::connect(path).is_ok() => {
                return Err(io::Error::new(io::ErrorKind::AddrInUse, "another process listens there"));
            }
            Ok(_) => fs::remove_file(path)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        // Clients that connected before the permissions were set are disconnected.
        while listener.accept().is_ok() {}
        Ok(LocalSocket { listener, path: path.to_owned(), connections: Vec::new() })
    }

    /// Returns the descriptor that is readable when a client connects.
    pub fn fd(&self) -> RawFd {
        self.listener.as_raw_fd()
    }

    /// Whether a client is connected.
    pub fn is_connected(&self) -> bool {
        !self.connections.is_empty()
    }

    /// Answers pending requests. `answer` gets the description of the mistake for a malformed one.
    ///
    /// # Panics
    /// If an answer cannot be JSON, such as a map whose keys are no names.
    pub fn serve<Q: DeserializeOwned, A: Serialize>(&mut self, mut answer: impl FnMut(Result<Q, String>) -> A) {
        while self.connections.len() < MAX_CONNECTIONS {
            let Ok((stream, _)) = self.listener.accept() else { break };
            if stream.set_nonblocking(true).is_ok() {
                self.connections.push(Connection { stream, received: Vec::new(), since: Instant::now() });
            }
        }
        self.connections.retain_mut(|connection| {
            let Some(line) = connection.receive() else { return connection.is_open() };
            let request = serde_json::from_slice(&line).map_err(|error| format!("malformed request: {error}"));
            let mut text = serde_json::to_vec(&answer(request)).expect("a response has names and numbers only");
            text.push(b'\n');
            // A client that does not read gets only a part of the answer.
            _ = connection.stream.write_all(&text);
            false
        });
    }
}

impl Drop for LocalSocket {
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

/// Sends a request to a socket, and returns the answer.
///
/// # Errors
/// If no process listens, or it does not answer.
///
/// # Panics
/// If the request cannot be JSON.
pub fn ask<Q: Serialize, A: DeserializeOwned>(path: &Path, request: &Q, peer: Peer) -> Result<A, SocketError> {
    let failed = |source| SocketError::Io { path: path.to_owned(), source };
    let mut stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Err(SocketError::NotRunning { path: path.to_owned(), peer });
        }
        Err(source) => return Err(failed(source)),
    };
    let mut ask = || -> io::Result<Vec<u8>> {
        stream.set_read_timeout(Some(CLIENT_TIME))?;
        stream.set_write_timeout(Some(CLIENT_TIME))?;
        let mut line = serde_json::to_vec(request).expect("a request has names and numbers only");
        line.push(b'\n');
        stream.write_all(&line)?;
        let mut answer = Vec::new();
        BufReader::new((&stream).take(MAX_RESPONSE)).read_until(b'\n', &mut answer)?;
        Ok(answer)
    };
    let answer = ask().map_err(failed)?;
    serde_json::from_slice(&answer).map_err(|_| SocketError::Malformed { path: path.to_owned(), peer })
}

/// Waits for the interval at which clients ask for the progress of a change, 100 ms, and then does as [`ask`].
///
/// # Errors
/// As [`ask`].
///
/// # Panics
/// As [`ask`].
pub fn ask_again<Q: Serialize, A: DeserializeOwned>(path: &Path, request: &Q, peer: Peer) -> Result<A, SocketError> {
    std::thread::sleep(PROGRESS_INTERVAL);
    ask(path, request, peer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_socket_that_nobody_answers_is_replaced() {
        let directory = std::env::temp_dir().join(format!("triplane-local-socket-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let (path, file) = (directory.join("s"), directory.join("f"));
        let socket = LocalSocket::open(&path).expect("the name is free");
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
        let kind = |path: &Path| match LocalSocket::open(path) {
            Err(SocketError::Io { source, .. }) => source.kind(),
            other => panic!("{other:?}"),
        };
        assert_eq!(kind(&path), io::ErrorKind::AddrInUse);
        drop(socket);
        assert!(!path.exists());
        drop(UnixListener::bind(&path).expect("the name is free"));
        LocalSocket::open(&path).expect("the process that listened is gone");
        fs::write(&file, "text").expect("a file");
        assert_eq!(kind(&file), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&file).expect("it is there"), b"text");
        fs::remove_dir_all(&directory).expect("it is ours");
    }
}
