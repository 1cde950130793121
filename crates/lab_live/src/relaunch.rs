//! Starts the processes of a lab: this program again, with other arguments.

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::process::Command;

use lab::Size;
use ports::namespace::Namespace;

use crate::LabError;
use crate::run_directory;

/// The running program. The link works even if the file has been replaced since.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// The role of a process in a lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessRole<'a> {
    /// Calls [`crate::check_permission`] and ends.
    PermissionCheck,
    /// Calls [`crate::run_daemon`].
    Daemon {
        /// Name of the lab.
        lab: &'a str,
        /// Whether the lab ends when standard input does ([`crate::DaemonSettings::is_bound`]).
        is_bound: bool,
    },
    /// Calls [`crate::switch_main()`].
    Switch {
        /// Name of the lab.
        lab: &'a str,
        /// Name of the switch.
        switch: &'a str,
    },
    /// Runs a store of resilient state, in its namespace, with the files in [`crate::RunDirectory::cluster`].
    Store {
        /// Name of the lab.
        lab: &'a str,
        /// Name of the store.
        store: &'a str,
        /// Whether it keeps its rows on disk.
        is_durable: bool,
    },
    /// Runs the operator of the stores in the same way.
    Operator {
        /// Name of the lab.
        lab: &'a str,
    },
    /// Lends memory to switches, in its namespace.
    MemoryServer {
        /// The interface that leads to its switch.
        interface: &'a str,
        /// Its address, which the kernel does not have.
        address: Ipv4Addr,
        /// The memory that it lends.
        memory: Size,
    },
    /// Runs the shim of a host, in its namespace.
    Shim {
        /// Name of the lab.
        lab: &'a str,
        /// Name of the host.
        host: &'a str,
    },
    /// Calls [`crate::traffic::TrafficProcess::enter`] and plays the scenario.
    Traffic {
        /// Name of the lab.
        lab: &'a str,
    },
}

/// The command line of the processes of one lab.
pub trait ProcessArguments: Send + Sync {
    /// Returns the arguments that start this program in a role.
    fn arguments(&self, role: ProcessRole<'_>) -> Vec<OsString>;
}

/// Returns a command that starts this program in a role.
pub(crate) fn command(arguments: &dyn ProcessArguments, role: ProcessRole<'_>) -> Command {
    complete(Command::new(OWN_PROGRAM), arguments, role)
}

/// Returns a command that starts this program in a role, in a namespace.
pub(crate) fn command_in(
    namespace: &Namespace,
    arguments: &dyn ProcessArguments,
    role: ProcessRole<'_>,
) -> Result<Command, LabError> {
    Ok(complete(namespace.command(OWN_PROGRAM)?, arguments, role))
}

/// Adds the arguments and the environment of a role to a command.
fn complete(mut command: Command, arguments: &dyn ProcessArguments, role: ProcessRole<'_>) -> Command {
    // In a user namespace the process seems to be root's and would look for root's run directories.
    command.arg0("triplane").env(run_directory::DIRECTORY_VARIABLE, run_directory::directory());
    command.args(arguments.arguments(role));
    command
}
