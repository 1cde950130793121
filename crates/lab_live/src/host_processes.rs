//! Runs commands on hosts, and terminates the processes there when the lab ends.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::error::failed_to;
use crate::host_namespace::HostNamespace;
use crate::process_identity::ProcessIdentity;
use crate::{LabError, RunDirectory};

/// Maximum time between SIGTERM and SIGKILL.
const TERM_GRACE_PERIOD: Duration = Duration::from_millis(500);

/// Environment variable set for every process started on a host. It identifies the lab ([`RunDirectory::token`]).
pub(crate) const LAB_TOKEN_VARIABLE: &str = "TRIPLANE_LAB";

/// Replaces this process with a command in a host's namespace. If `command` is empty, runs the user's shell.
///
/// # Errors
/// Returns an error if there is no such host or the command cannot be run.
pub fn exec_in_host(lab: &RunDirectory, host: &str, command: &[String]) -> Result<Infallible, LabError> {
    ports::namespace::join(lab.daemon.pid, lab.host_descriptor(host)?)?;
    let shell = std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned());
    let words = if command.is_empty() { vec![shell] } else { command.to_vec() };
    let error = Command::new(&words[0])
        .args(&words[1..])
        .env("PS1", format!("{host}@{}$ ", lab.name))
        .env("TRIPLANE_HOST", host)
        .env(LAB_TOKEN_VARIABLE, lab.token())
        .exec();
    Err(failed_to(format!("run `{}`", words[0]))(error))
}

/// Terminates every process in the namespaces of these hosts.
pub fn terminate_in_namespaces(hosts: &[HostNamespace]) {
    let namespaces: BTreeSet<_> = hosts.iter().filter_map(HostNamespace::identity).collect();
    terminate(&|process| {
        std::fs::read_link(process.join("ns/net")).is_ok_and(|link| namespaces.contains(&link.into_os_string()))
    });
}

/// Terminates every process that was started on a host of a lab whose daemon has exited.
pub fn terminate_by_token(token: &str) {
    let assignment = format!("{LAB_TOKEN_VARIABLE}={token}");
    terminate(&|process| {
        let environment = std::fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == assignment.as_bytes())
    });
}

/// Terminates the selected processes: SIGTERM, and SIGKILL after [`TERM_GRACE_PERIOD`].
fn terminate(is_selected: &dyn Fn(&Path) -> bool) {
    let mut remaining = processes(is_selected);
    signal(Signal::TERM, &remaining);
    let begin = Instant::now();
    while !remaining.is_empty() && begin.elapsed() < TERM_GRACE_PERIOD {
        std::thread::sleep(Duration::from_millis(10));
        remaining = processes(is_selected);
    }
    signal(Signal::KILL, &remaining);
}

/// Returns the processes whose directory in /proc is selected.
fn processes(is_selected: &dyn Fn(&Path) -> bool) -> Vec<ProcessIdentity> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbered = entries.flatten().filter_map(|entry| {
        // The identity is read first: if another process gets the id meanwhile, it gets no signal.
        let process = ProcessIdentity::of(entry.file_name().to_str()?.parse().ok()?);
        Some((process, entry.path()))
    });
    numbered.filter(|(_, path)| is_selected(path)).map(|(process, _)| process).collect()
}

/// Sends a signal to processes. It is no error if one has ended.
fn signal(signal: Signal, processes: &[ProcessIdentity]) {
    for process in processes {
        let _ = process.signal(signal);
    }
}
