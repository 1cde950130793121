//! Runs live labs: a topology as network namespaces, veth pairs and switches on this machine.
//!
//! ```text
//!  start ──> daemon: namespaces, links, a thread per switch <── socket ── client: status, crashes, links, captures
//!              ├ keeps the hosts' namespaces open <── /proc/PID/fd ── exec_in_host
//!              ├ with `isolate`, a process per switch instead of a thread: switch_main
//!              ├ a process per store of resilient state, one for their operator, one per memory server, and one for
//!              │ the shim of each host
//!              └ is found by its run directory
//!  traffic ──> a thread per sender and receiver in the hosts' namespaces; reports faults to the daemon
//! ```
//!
//! [`start()`] starts a lab, [`RunDirectory`] finds the labs that run, and [`client`] talks to their daemons.
//! [`traffic`] plays a scenario in real time. The processes of a lab are this program again: [`ProcessArguments`] has
//! the command line of each [`ProcessRole`], and each calls one function of this crate.
//!
//! Invariants:
//! - Namespaces have no names and live as long as the daemon, so the kernel removes everything when it ends, however it
//!   ends.
//! - Links have the same `Cable` as simulated links. A frame is delayed, lost and queued where it leaves a switch, or
//!   where it comes from a host.
//! - When a switch crashes or its process ends, its neighbours see their ports go down, as at a loss of carrier.
//! - Sockets for controllers are opened before the daemon enters its namespace, and outlive a switch that crashes.
//! - No client of a socket delays the others or occupies the daemon for long: connections, captures and times are
//!   bounded.
//! - A run directory that another user could write to is refused: it names processes to kill.
//!
//! The crate knows no architecture and no P4: the caller provides the switches ([`LiveNetwork`]). It prints nothing.

#![forbid(unsafe_code)]

mod capture;
mod child_process;
pub mod client;
mod connection;
mod controller;
mod daemon;
mod endpoints;
mod error;
mod host_namespace;
mod host_processes;
pub mod kernel_part;
mod link_direction;
mod live_network;
mod member_process;
mod neighbours;
mod process_identity;
mod protocol;
mod relaunch;
mod request_error;
mod run_directory;
mod semaphore;
mod server;
mod shim_process;
mod socket;
mod start;
mod switch_main;
mod switch_port;
mod switch_process;
mod switch_status;
mod switch_thread;
#[cfg(test)]
mod test_network;
pub mod traffic;
mod veth_links;

pub use daemon::{DaemonSettings, check_permission, run_daemon};
pub use endpoints::{ControllerEndpoint, DEFAULT_CONTROLLER_PORT, assign_endpoints};
pub use error::LabError;
pub use host_processes::exec_in_host;
pub use live_network::{LiveNetwork, SwitchExtensions};
pub use member_process::MemberKind;
pub use protocol::LabRequest;
pub use relaunch::{ProcessArguments, ProcessRole};
pub use request_error::{ProcessFailure, RequestError};
pub use run_directory::{RunDirectory, lab_name};
pub use start::{LabLifetime, StartedLab, obstacle, start};
pub use switch_main::{DaemonConnection, DaemonReports, switch_main};
