//! Creates the namespace of a host: its interface, and the commands that it runs at the start.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lab::Host;
use ports::namespace::{Namespace, NamespaceError};
use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::error::failed_to;
use crate::host_processes::LAB_TOKEN_VARIABLE;

/// Duration after which a running command is reported.
const LONG_COMMAND: Duration = Duration::from_secs(5);

/// Maximum size of a failed command's output in a report, in bytes.
const MAX_REPORTED_OUTPUT: u64 = 2048;

/// A host: a network namespace with one interface.
pub struct HostNamespace {
    /// Name of the host.
    pub name: String,
    /// Its namespace.
    pub namespace: Arc<Namespace>,
}

/// The identity of a namespace, by which it is recognized after the daemon has exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceIdentity {
    /// The inode number. Another namespace may get it when this one is gone.
    pub number: u64,
    /// The cookie, which no other namespace gets; `None` if the kernel is older than 5.14.
    pub cookie: Option<u64>,
}

/// Name of the interface of every host.
pub const INTERFACE: &str = "eth0";

impl HostNamespace {
    /// Creates the namespace of a host.
    pub fn new(host: &Host) -> Result<HostNamespace, NamespaceError> {
        let namespace = Namespace::new(&host.name)?;
        namespace.disable_ipv6()?;
        Ok(HostNamespace { name: host.name.clone(), namespace: Arc::new(namespace) })
    }

    /// Sets the addresses, neighbours and routes of the interface, whose link must be up. The kernel of a memory server
    /// has no address, so that it does not answer for the server.
    pub fn configure(&self, host: &Host) -> Result<(), NamespaceError> {
        if host.memory.is_some() {
            return Ok(());
        }
        if let Some((address, bits)) = host.address {
            self.namespace.add_address(INTERFACE, IpAddr::V4(address), bits)?;
        }
        for (address, mac) in &host.neighbours {
            self.namespace.add_neighbour(INTERFACE, IpAddr::V4(*address), mac.0)?;
        }
        if let Some(gateway) = host.gateway {
            self.namespace.add_route(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0, IpAddr::V4(gateway))?;
        }
        Ok(())
    }

    /// Returns the identity of the namespace.
    pub fn identity(&self) -> Result<NamespaceIdentity, NamespaceError> {
        Ok(NamespaceIdentity { number: self.namespace.number()?, cookie: self.namespace.cookie().ok() })
    }

    /// Runs the host's commands one after the other, without those that repeat the topology. Reports commands that fail
    /// or do not end. Once `ended` returns true, kills the running command and skips the others.
    ///
    /// The output goes to `log`, which background programs may keep open. The environment has `token`, by which
    /// programs are found after the daemon has exited if namespaces have no cookies.
    pub fn run_commands(
        &self,
        host: &Host,
        log: &Path,
        token: &str,
        ended: &dyn Fn() -> bool,
        report: &mut dyn FnMut(&str),
    ) {
        let is_repeated = |command: &&String| {
            let words: Vec<&str> = command.split_whitespace().collect();
            matches!(words[..], ["route", "add", "default", "gw", ..] | ["arp", "-i", _, "-s", ..])
        };
        for command in host.commands.iter().filter(|command| !is_repeated(command)).take_while(|_| !ended()) {
            let name = &self.name;
            let mut report_long =
                || report(&format!("{name}: `{command}` is still running; append `&` to run it in the background"));
            match self.run(command, log, token, ended, &mut report_long) {
                Ok(None) => {}
                Ok(Some(output)) => report(&format!("{name}: `{command}` failed: {output}")),
                Err(error) => report(&format!("{name}: `{command}` failed: {}", error.sentence())),
            }
        }
    }

    /// Runs a command until it ends or `ended` returns true. Returns its output if it failed; `None` if not.
    fn run(
        &self,
        command: &str,
        log: &Path,
        token: &str,
        ended: &dyn Fn() -> bool,
        report_long: &mut dyn FnMut(),
    ) -> Result<Option<String>, LabError> {
        // Background programs of earlier commands may write to it as well.
        let opened = File::options().create(true).append(true).open(log);
        let file = opened.map_err(failed_to(format!("write {}", log.display())))?;
        let begin = file.metadata().map_err(failed_to(format!("read {}", log.display())))?.len();
        let mut shell = self.namespace.command("/bin/sh")?;
        shell.args(["-c", command]).env(LAB_TOKEN_VARIABLE, token).env("TRIPLANE_HOST", &self.name);
        let duplicate = file.try_clone().map_err(failed_to("share a file"))?;
        shell.stdin(Stdio::null()).stdout(duplicate).stderr(file);
        let mut child = shell.spawn().map_err(failed_to("start /bin/sh"))?;
        let (began, mut reported) = (Instant::now(), false);
        let status = loop {
            if let Some(status) = child.try_wait().map_err(failed_to("wait for /bin/sh"))? {
                break status;
            }
            if !reported && began.elapsed() >= LONG_COMMAND {
                reported = true;
                report_long();
            }
            if ended() {
                // The command may have ended by itself.
                let _ = child.kill();
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        if status.success() {
            return Ok(None);
        }
        let mut output = Vec::new();
        let read = File::open(log).and_then(|mut file| {
            file.seek(SeekFrom::Start(begin))?;
            file.take(MAX_REPORTED_OUTPUT).read_to_end(&mut output)
        });
        read.map_err(failed_to(format!("read {}", log.display())))?;
        let output = String::from_utf8_lossy(&output).trim().to_owned();
        Ok(Some(if output.is_empty() { status.to_string() } else { output }))
    }
}
