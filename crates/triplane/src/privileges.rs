//! Gives up privileges once ports, files and sockets are open, and says so to those who ask.

use std::net::SocketAddr;
use std::path::PathBuf;

use privileges::{KeptAccess, PrivilegeError, RestrictionReport};

use crate::output::{Failure, Output};

/// Files and directories from which the C library resolves host names.
const RESOLVER: [&str; 12] = [
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/ld.so.cache",
    "/run/systemd/resolve",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
];

impl From<PrivilegeError> for Failure {
    fn from(error: PrivilegeError) -> Failure {
        Failure::Environment(error.into())
    }
}

/// Restricts this thread and those that it starts, and notes the outcome if that is asked for.
pub fn restrict(kept: &KeptAccess, is_shown: bool, output: &Output) -> Result<(), Failure> {
    note(Some(privileges::restrict_thread(kept)?), is_shown, output);
    Ok(())
}

/// Notes a restriction if that is asked for.
pub fn note(report: Option<RestrictionReport>, is_shown: bool, output: &Output) {
    if let Some(report) = report.filter(|_| is_shown) {
        output.note(&report.to_string());
    }
}

/// Returns the access that a client keeps to connect to a server: that of the resolver, if the server has a name.
pub fn client_access(server: &str) -> KeptAccess {
    let kept = KeptAccess::default().connecting();
    if server.parse::<SocketAddr>().is_ok() || server.parse::<u16>().is_ok() {
        return kept;
    }
    RESOLVER.iter().map(PathBuf::from).fold(kept, KeptAccess::reading)
}
