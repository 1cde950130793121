//! Defines the errors of live labs.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use p4runtime_server::ListenError;
use ports::PortError;
use ports::namespace::NamespaceError;

use crate::request_error::{ProcessFailure, RequestError};

/// The reason that an operation on a live lab failed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The process of a switch cannot give up its privileges.
    #[error(transparent)]
    Privileges(#[from] privileges::PrivilegeError),
    /// The name cannot be the name of a lab.
    #[error("`{0}` cannot be the name of a lab: use letters, digits, `_`, `-` and `.`")]
    InvalidName(String),
    /// A lab of this name runs or starts.
    #[error(
        "the lab `{name}` {} (process {pid}); stop it with: triplane lab down {name}; start another \
         with: triplane lab up --name NAME",
        if *is_ready { "is already up" } else { "is already starting" }
    )]
    AlreadyUp {
        /// Name of the lab.
        name: String,
        /// Process id of its daemon.
        pid: u32,
        /// Whether it has finished its start.
        is_ready: bool,
    },
    /// No lab of this name runs.
    #[error("there is no lab `{name}`; {}", running_labs(.running))]
    NotFound {
        /// Name of the lab.
        name: String,
        /// Names of the labs that run.
        running: Vec<String>,
    },
    /// No lab runs.
    #[error("no lab is up; start one with: triplane lab up lab.toml")]
    NoneUp,
    /// Several labs run, and none of them was selected.
    #[error("several labs are up; choose one with --lab ({})", running_labs(.0))]
    Ambiguous(Vec<String>),
    /// The daemon of the lab has ended.
    #[error("there is no lab `{0}`: its process has exited")]
    Ended(String),
    /// The topology has no host of this name.
    #[error("there is no host `{name}`; the hosts are {}", .hosts.join(", "))]
    NoHost {
        /// Requested name.
        name: String,
        /// Names of all hosts.
        hosts: Vec<String>,
    },
    /// A program that was to run on a host is not installed on this machine.
    #[error("`{0}` is not installed; the hosts of a lab run the programs of this machine")]
    NotInstalled(String),
    /// The daemon refused a request, or a process was started for a switch that does not exist.
    #[error(transparent)]
    Refused(#[from] RequestError),
    /// A call of the operating system failed.
    #[error("cannot {action}")]
    System {
        /// Attempted operation, as a verb phrase.
        action: String,
        /// The cause.
        source: io::Error,
    },
    /// An operation on a network namespace failed.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// An interface cannot be used as a port.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The P4Runtime server of a switch cannot start.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The P4Runtime address of a switch cannot be bound.
    #[error("cannot serve P4Runtime at {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The path for the run directories of labs is not a directory.
    #[error("{} is not a directory, but must hold the run directories of labs", .0.display())]
    NotADirectory(PathBuf),
    /// Another user owns the directory for the run directories of labs.
    #[error("{} belongs to another user", .0.display())]
    ForeignDirectory(PathBuf),
    /// Other users can write to the directory for the run directories of labs. Its files name processes to kill.
    #[error(
        "{} cannot hold labs: other users can write to it, and its files name processes to kill; choose a directory \
         that only you can write to",
        .0.display()
    )]
    SharedDirectory(PathBuf),
    /// The path of a lab's run directory is taken by something else.
    #[error("{} exists but is not the run directory of a lab: move it, or choose another lab name", .0.display())]
    NotARunDirectory(PathBuf),
    /// The daemon is stopped (SIGSTOP).
    #[error(
        "the lab `{name}` is suspended: resume its process with `kill -CONT {pid}`, or stop the lab with: triplane lab \
         down {name}"
    )]
    Stopped {
        /// Name of the lab.
        name: String,
        /// Process id of its daemon.
        pid: u32,
    },
    /// The daemon closed the connection without a response.
    #[error("the lab's daemon closed the connection without a response; it may have exited")]
    NoResponse,
    /// The daemon did not respond in time.
    #[error("the lab `{name}` has not responded for {seconds} s")]
    ResponseTimeout {
        /// Name of the lab.
        name: String,
        /// The timeout, in seconds.
        seconds: u64,
    },
    /// The user interrupted the start of a lab. Everything that was created has been removed.
    #[error("the network was not started")]
    Interrupted,
    /// The daemon was asked to end while it started.
    #[error("the lab was stopped while it was starting")]
    EndedWhileStarting,
    /// The daemon could not start the lab.
    #[error("{}", if .0.is_empty() { "the network did not start" } else { .0.as_str() })]
    DaemonFailed(String),
    /// The process that started the lab has ended.
    #[error("the process that started the lab has exited")]
    ParentExited(#[source] io::Error),
    /// The process of a switch, a store or the operator ended while it started.
    #[error("`{node}` did not start{}{stderr}", if stderr.is_empty() { "" } else { ": " })]
    NotStarted {
        /// Name of the node.
        node: String,
        /// Its standard error.
        stderr: String,
    },
    /// The program of a switch cannot run in the kernel although it must.
    #[error("`{switch}` cannot run its program in the kernel: {reason}")]
    NotInKernel {
        /// Name of the switch.
        switch: String,
        /// The reason.
        reason: String,
    },
    /// The thread of a switch panicked.
    #[error("the thread of a switch panicked; this is a bug")]
    SwitchPanicked,
    /// The settings of the ports could not be restored in a new process of a switch.
    #[error("cannot restore the settings of its ports: the switch {0}")]
    NotRestored(ProcessFailure),
    /// The files that the stores of a lab share with its switches cannot be written or read.
    #[error("cannot prepare the stores: {0}")]
    Cluster(String),
    /// A kind of traffic cannot be sent.
    #[error("`{traffic}` from {host} cannot be sent")]
    Traffic {
        /// Name of the traffic in the scenario.
        traffic: String,
        /// Name of the sending host.
        host: String,
        /// The cause.
        source: Box<LabError>,
    },
    /// A sender or receiver failed during the scenario.
    #[error("the traffic of {host} failed")]
    TrafficThread {
        /// Name of its host.
        host: String,
        /// The cause.
        source: io::Error,
    },
    /// The thread of a sender or receiver panicked.
    #[error("the thread of a sender or receiver panicked; this is a bug")]
    TrafficPanicked,
}

fn running_labs(names: &[String]) -> String {
    if names.is_empty() { "no lab is up".to_owned() } else { format!("up: {}", names.join(", ")) }
}

impl LabError {
    /// Whether the command line asked for something impossible, as opposed to a failure of the environment.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            LabError::InvalidName(_)
                | LabError::AlreadyUp { .. }
                | LabError::NotFound { .. }
                | LabError::NoneUp
                | LabError::Ambiguous(_)
                | LabError::Ended(_)
                | LabError::NoHost { .. }
                | LabError::Refused(_)
        )
    }

    /// Returns the message and those of its causes that it does not contain already, in one sentence.
    pub fn sentence(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            let message = cause.to_string();
            if !text.contains(&message) {
                text = format!("{text}: {message}");
            }
            source = cause.source();
        }
        text
    }
}

/// Returns a function that adds the attempted operation to an I/O error: `.map_err(failed_to("open a socket"))`.
pub(crate) fn failed_to(action: impl Into<String>) -> impl FnOnce(io::Error) -> LabError {
    move |source| LabError::System { action: action.into(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_every_cause_once() {
        let cause = || io::Error::other("permission denied");
        let listen = LabError::Bind { address: ([127, 0, 0, 1], 50051).into(), source: cause() };
        assert!(listen.sentence().ends_with("at 127.0.0.1:50051: permission denied"), "{}", listen.sentence());
        let nested = LabError::Traffic {
            traffic: "load".to_owned(),
            host: "h1".to_owned(),
            source: Box::new(failed_to("receive on port 5000 of h2")(cause())),
        };
        let expected = "`load` from h1 cannot be sent: cannot receive on port 5000 of h2: permission denied";
        assert_eq!(nested.sentence(), expected);
        assert_eq!(failed_to("permission denied")(cause()).sentence(), "cannot permission denied");
    }

    #[test]
    fn only_mistakes_in_the_command_line_are_usage_errors() {
        assert!(LabError::NotFound { name: "a".to_owned(), running: Vec::new() }.is_usage());
        assert!(!LabError::NoResponse.is_usage());
    }
}
