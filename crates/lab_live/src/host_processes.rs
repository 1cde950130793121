//! Runs commands on hosts, and terminates the processes there when the lab ends.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ports::namespace::Namespace;
use rustix::process::Signal;

use crate::error::failed_to;
use crate::host_namespace::{HostNamespace, NamespaceIdentity};
use crate::process_identity::ProcessIdentity;
use crate::{LabError, RunDirectory};

/// Maximum time between SIGTERM and SIGKILL.
const TERM_GRACE_PERIOD: Duration = Duration::from_millis(500);

/// Interval at which processes that were signalled are looked for again.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Maximum number of times that SIGKILL is sent.
const MAX_KILL_ROUNDS: usize = 100;

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
    let program = words[0].clone();
    Err(match error.kind() {
        io::ErrorKind::NotFound => LabError::NotInstalled(program),
        _ => failed_to(format!("run `{program}`"))(error),
    })
}

/// Terminates every process in the namespaces of these hosts.
pub fn terminate_in_namespaces(hosts: &[HostNamespace]) {
    terminate(&hosts.iter().map(|host| &*host.namespace).collect::<Vec<_>>(), &|_| true);
}

/// Terminates every process in the namespaces of a lab whose daemon has exited.
pub fn terminate_remaining(namespaces: &[NamespaceIdentity], token: &str) {
    let open = open_namespaces(namespaces);
    let namespaces = |has_cookie: bool| -> Vec<&Namespace> {
        let selected = open.iter().filter(|(_, identity)| identity.cookie.is_some() == has_cookie);
        selected.map(|(namespace, _)| namespace).collect()
    };
    terminate(&namespaces(true), &|_| true);
    // Without its cookie, a namespace that got the number later cannot be distinguished.
    let assignment = format!("{LAB_TOKEN_VARIABLE}={token}");
    terminate(&namespaces(false), &|process| {
        let environment = std::fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == assignment.as_bytes())
    });
}

/// Opens those of the namespaces that still have processes. While they are open, nothing else gets their numbers.
fn open_namespaces(identities: &[NamespaceIdentity]) -> Vec<(Namespace, NamespaceIdentity)> {
    let mut checked: Vec<(Namespace, NamespaceIdentity)> = Vec::new();
    let has_number = |number| identities.iter().any(|identity| identity.number == number);
    for (process, _) in processes() {
        let Ok(namespace) = Namespace::of_process(process.pid) else { continue };
        let Ok(number) = namespace.number() else { continue };
        if has_number(number) && checked.iter().all(|(_, identity)| identity.number != number) {
            let identity = NamespaceIdentity { number, cookie: namespace.cookie().ok() };
            checked.push((namespace, identity));
        }
    }
    checked.retain(|(_, identity)| identities.contains(identity));
    checked
}

/// Terminates the selected processes in namespaces that are open: SIGTERM, and SIGKILL after [`TERM_GRACE_PERIOD`].
fn terminate(namespaces: &[&Namespace], is_selected: &dyn Fn(&Path) -> bool) {
    let numbers: BTreeSet<u64> = namespaces.iter().filter_map(|namespace| namespace.number().ok()).collect();
    let remaining = || -> Vec<ProcessIdentity> {
        let is_inside = |path: &Path| {
            std::fs::metadata(path.join("ns/net")).is_ok_and(|metadata| numbers.contains(&metadata.ino()))
        };
        let inside = processes().into_iter().filter(|(_, path)| is_inside(path) && is_selected(path));
        inside.map(|(process, _)| process).collect()
    };
    if numbers.is_empty() {
        return;
    }
    signal(Signal::TERM, &remaining());
    let begin = Instant::now();
    while !remaining().is_empty() && begin.elapsed() < TERM_GRACE_PERIOD {
        std::thread::sleep(CHECK_INTERVAL);
    }
    // A process may have started another since.
    for _ in 0..MAX_KILL_ROUNDS {
        let killed = remaining();
        if killed.is_empty() {
            return;
        }
        signal(Signal::KILL, &killed);
        std::thread::sleep(CHECK_INTERVAL);
    }
}

/// Returns all processes with their directories in /proc.
fn processes() -> Vec<(ProcessIdentity, PathBuf)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbered = entries.flatten().filter_map(|entry| {
        // The identity is read first: if another process gets the id meanwhile, it gets no signal.
        let process = ProcessIdentity::of(entry.file_name().to_str()?.parse().ok()?);
        Some((process, entry.path()))
    });
    numbered.collect()
}

/// Sends a signal to processes. It is no error if one has ended.
fn signal(signal: Signal, processes: &[ProcessIdentity]) {
    for process in processes {
        let _ = process.signal(signal);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;

    use super::*;

    #[test]
    fn only_a_namespace_with_the_recorded_cookie_is_a_labs() {
        let Ok(namespace) = Namespace::new("h1") else { return testing::skip("needs root") };
        let mut command = namespace.command("cat").unwrap();
        let number = namespace.number().unwrap();
        let Ok(cookie) = namespace.cookie() else { return testing::skip("needs Linux 5.14") };
        let mut child = command.env_clear().stdin(Stdio::piped()).spawn().unwrap();
        // An earlier namespace had the number that this one got.
        let earlier = NamespaceIdentity { number, cookie: Some(cookie - 1) };
        let unknown = NamespaceIdentity { number, cookie: None };
        assert!(open_namespaces(&[earlier, unknown]).is_empty());
        terminate_remaining(&[earlier, unknown], "token");
        assert!(child.try_wait().unwrap().is_none(), "it is not the lab's");

        terminate_remaining(&[NamespaceIdentity { number, cookie: Some(cookie) }], "token");
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::TERM.as_raw()), "its environment does not matter");
    }
}
