//! Reasons for refusing a request. They are part of the protocol, so they are facts and no causes.

use lab::Topology;
use serde::{Deserialize, Serialize};

/// The reason that the daemon or the process of a switch refused a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum RequestError {
    /// The topology has no switch of this name.
    #[error("there is no switch `{name}`; the switches are {}", .switches.join(", "))]
    NoSwitch {
        /// Requested name.
        name: String,
        /// Names of all switches.
        switches: Vec<String>,
    },
    /// The topology has no switch and no store of this name, but it has stores.
    #[error(
        "there is no switch or store `{name}`; the switches are {}, and the stores {}",
        .switches.join(", "), .stores.join(", ")
    )]
    NoSwitchOrStore {
        /// Requested name.
        name: String,
        /// Names of all switches.
        switches: Vec<String>,
        /// Names of all stores, and of their operator.
        stores: Vec<String>,
    },
    /// No switch or memory server has this name.
    #[error(
        "there is no switch or memory server `{name}`; the switches are {}, and the memory servers {}",
        .switches.join(", "), .servers.join(", ")
    )]
    NoSwitchOrMemoryServer {
        /// Requested name.
        name: String,
        /// Names of all switches.
        switches: Vec<String>,
        /// Names of all memory servers.
        servers: Vec<String>,
    },
    /// The switch runs in a thread of the daemon, which cannot be suspended alone.
    #[error("`{0}` has no process of its own, so it cannot be suspended")]
    NoProcess(String),
    /// A process cannot be suspended or resumed.
    #[error("{0}")]
    Signal(String),
    /// The topology has no host or switch of this name.
    #[error("there is no host or switch `{0}`")]
    NoNode(String),
    /// The topology has no host of this name, or its host is not linked to a switch.
    #[error("no switch leads to a host `{0}`")]
    NoHost(String),
    /// No link joins two nodes.
    #[error("there is no link between `{one}` and `{other}`")]
    NoLink {
        /// Name of a host or switch.
        one: String,
        /// Name of another.
        other: String,
    },
    /// A switch does not have this port.
    #[error("`{switch}` has no port {port}")]
    NoPort {
        /// Name of the switch.
        switch: String,
        /// Requested port number.
        port: u32,
    },
    /// The text does not name a switch and a port.
    #[error("`{0}` is not a switch port: write s1:2")]
    NotAPort(String),
    /// The switch has ended, and so does the lab.
    #[error("`{0}` has exited")]
    SwitchEnded(String),
    /// The switch did not carry out a command in time.
    #[error("`{0}` did not respond")]
    Timeout(String),
    /// The switch has crashed.
    #[error("`{0}` has crashed; restart it with: triplane lab heal {0}")]
    Crashed(String),
    /// The switch or store did not restart.
    #[error("{}", .why.as_deref().unwrap_or("it did not start"))]
    NotStarted {
        /// The reason, if it is known.
        why: Option<String>,
    },
    /// A request to the process of a switch failed.
    #[error("`{switch}` {failure}")]
    Process {
        /// Name of the switch.
        switch: String,
        /// The failure.
        failure: ProcessFailure,
    },
    /// The switch has a process of its own, and only that process can capture its frames.
    #[error("the process of `{0}` serves its captures, not the daemon")]
    CapturedByProcess(String),
    /// The lab has as many captures as it may have.
    #[error("{0} captures run already; end one of them")]
    TooManyCaptures(usize),
    /// The request is for the process of a switch.
    #[error("the daemon does not handle this request")]
    NotForDaemon,
    /// The request is for the daemon.
    #[error("the switch process does not handle this request")]
    OnlyForDaemon,
    /// The line is not a request.
    #[error("invalid request: {0}")]
    NotARequest(String),
}

impl RequestError {
    /// Returns the error of a request for a switch that the topology does not have.
    pub(crate) fn no_switch(name: &str, topology: &Topology) -> RequestError {
        let switches = topology.switches.iter().map(|switch| switch.name.clone()).collect();
        RequestError::NoSwitch { name: name.to_owned(), switches }
    }
}

/// The reason that a request to the process of a switch failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessFailure {
    /// The sockets of the process are closed.
    #[error("cannot be reached")]
    Closed,
    /// The process does not respond; it may be stopped.
    #[error("did not respond; it may be stopped")]
    Silent,
    /// The process refuses the request.
    #[error("rejected the request: {0}")]
    Refused(Box<RequestError>),
}
