//! Answers users of a switch about its memory servers, and adds and removes servers, on a Unix domain socket.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use elastic_switch::{ElasticSwitch, MemoryServerPort, ServerCounts, ServerState};
use resilient_store::{AskError, LocalSocket, ask};
use runtime::{Hook, HookContext};
use serde::{Deserialize, Serialize};
use switch::{PortId, RowSwitch, Time};

/// Minimum interval between two polls of connections.
const INTERVAL_NS: u64 = 1_000_000;

/// Interval at which a client asks for the progress of a change.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// A request to a switch: a line of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum MemoryRequest {
    /// Asks for the servers.
    List,
    /// Adds a server.
    Add {
        /// Its address.
        address: Ipv4Addr,
        /// The port that leads to it.
        port: u32,
    },
    /// Removes a server.
    Remove {
        /// Its address.
        address: Ipv4Addr,
    },
}

/// The answer of a switch: a line of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryResponse {
    /// The servers, after the change if one was requested.
    Servers(ListedServers),
    /// The reason for which the request was refused.
    Refused(String),
}

/// The memory servers of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedServers {
    /// The servers.
    pub servers: Vec<ServerStatus>,
    /// Whether servers join or leave.
    pub is_changing: bool,
}

/// A memory server of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Its address.
    pub address: Ipv4Addr,
    /// The port that leads to it.
    pub port: u32,
    /// `joining`, `serving` or `leaving`.
    pub state: String,
    /// Whether it answers: at least one connection is open.
    pub answers: bool,
    /// The reason for which it refuses memory.
    pub refusal: Option<String>,
    /// Entries in its complete copies, estimated.
    pub entries: u64,
    /// Bytes of its copies.
    pub bytes: u64,
    /// Bytes that are still to be written.
    pub missing_bytes: u64,
    /// READs of tables.
    pub reads: u64,
}

/// The reason for which a switch cannot be queried.
#[derive(Debug, thiserror::Error)]
pub enum MemorySocketError {
    /// The socket cannot be used.
    #[error("cannot use the socket {path}: {source}")]
    Io {
        /// The socket.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// No switch listens.
    #[error("no switch listens on {0}")]
    NotRunning(PathBuf),
    /// The answer is not a valid one of a switch.
    #[error("{0} did not answer like a switch with memory servers")]
    Malformed(PathBuf),
}

/// The socket of a switch.
#[derive(Debug)]
pub struct MemorySocket {
    socket: LocalSocket,
    /// Time before which nothing is done.
    next: Time,
}

impl MemorySocket {
    /// Listens at a path.
    ///
    /// # Errors
    /// If the socket cannot be created.
    pub fn open(path: &Path) -> Result<MemorySocket, MemorySocketError> {
        let failed = |source| MemorySocketError::Io { path: path.to_owned(), source };
        Ok(MemorySocket { socket: LocalSocket::open(path).map_err(failed)?, next: Time::ZERO })
    }
}

/// Sends a request to a switch, and returns its answer.
///
/// # Errors
/// If no switch listens, or it does not answer.
pub fn ask_switch(path: &Path, request: &MemoryRequest) -> Result<MemoryResponse, MemorySocketError> {
    let path = path.to_owned();
    ask(&path, request).map_err(|error| match error {
        AskError::NotRunning => MemorySocketError::NotRunning(path),
        AskError::Io(source) => MemorySocketError::Io { path, source },
        AskError::Malformed => MemorySocketError::Malformed(path),
    })
}

/// Waits for an interval, and asks a switch for its servers.
///
/// # Errors
/// As [`ask_switch`].
pub fn next_servers(path: &Path) -> Result<MemoryResponse, MemorySocketError> {
    std::thread::sleep(PROGRESS_INTERVAL);
    ask_switch(path, &MemoryRequest::List)
}

impl<S: RowSwitch> Hook<ElasticSwitch<S>> for MemorySocket {
    fn poll(&mut self, context: &mut HookContext<'_, ElasticSwitch<S>>) {
        if context.now < self.next {
            return;
        }
        self.next = context.now.after_ns(INTERVAL_NS);
        let switch = &mut *context.switch;
        self.socket.serve(|request| request.map_or_else(MemoryResponse::Refused, |request| answer(switch, &request)));
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.socket.fd())
    }

    fn next_deadline(&self) -> Option<Time> {
        self.socket.is_connected().then_some(self.next)
    }
}

/// Answers a request.
fn answer<S: RowSwitch>(switch: &mut ElasticSwitch<S>, request: &MemoryRequest) -> MemoryResponse {
    let changed = match *request {
        MemoryRequest::List => Ok(()),
        MemoryRequest::Add { address, port } => switch.add_server(MemoryServerPort { address, port: PortId(port) }),
        MemoryRequest::Remove { address } => switch.remove_server(address),
    };
    match changed {
        Ok(()) => MemoryResponse::Servers(ListedServers {
            servers: switch.server_counts().iter().map(status).collect(),
            is_changing: switch.is_changing_servers(),
        }),
        Err(error) => MemoryResponse::Refused(error.to_string()),
    }
}

fn status(counts: &ServerCounts) -> ServerStatus {
    let state = match counts.state {
        ServerState::Joining => "joining",
        ServerState::Serving => "serving",
        ServerState::Leaving => "leaving",
    };
    ServerStatus {
        address: counts.address,
        port: counts.port,
        state: state.to_owned(),
        answers: counts.connections > 0,
        refusal: counts.refusal.map(|refusal| refusal.to_string()),
        entries: counts.entries,
        bytes: counts.held_bytes,
        missing_bytes: counts.missing_bytes,
        reads: counts.reads,
    }
}
