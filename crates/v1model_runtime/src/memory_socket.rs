//! Answers users of a switch about its memory servers, and adds and removes servers, on a Unix domain socket.

use std::net::Ipv4Addr;
use std::os::fd::RawFd;
use std::path::Path;

use elastic_switch::{ElasticSwitch, MemoryServerPort, ServerCounts, ServerState};
use local_socket::{LocalSocket, Peer, SocketError, ask, ask_again};
use runtime::{Hook, HookContext};
use serde::{Deserialize, Serialize};
use switch::{PortId, RowSwitch, Time};

/// Minimum interval between two polls of connections.
const INTERVAL_NS: u64 = 1_000_000;

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

/// The switch, as errors name it.
const SWITCH: Peer = Peer { name: "switch", described: "a switch with memory servers" };

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
    pub fn open(path: &Path) -> Result<MemorySocket, SocketError> {
        Ok(MemorySocket { socket: LocalSocket::open(path)?, next: Time::ZERO })
    }
}

/// Sends a request to a switch, and returns its answer.
///
/// # Errors
/// If no switch listens, or it does not answer.
pub fn ask_switch(path: &Path, request: &MemoryRequest) -> Result<MemoryResponse, SocketError> {
    ask(path, request, SWITCH)
}

/// Waits for an interval, and asks a switch for its servers.
///
/// # Errors
/// As [`ask_switch`].
pub fn next_servers(path: &Path) -> Result<MemoryResponse, SocketError> {
    ask_again(path, &MemoryRequest::List, SWITCH)
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
