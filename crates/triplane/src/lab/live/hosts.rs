//! Hosts: namespaces with one interface, and what they do when they start.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Stdio;

use lab::Host;
use ports::namespace::{Namespace, NamespaceError};

/// A host that stands.
pub struct Standing {
    pub name: String,
    pub namespace: Namespace,
}

/// The interface that every host has.
pub const INTERFACE: &str = "eth0";

impl Standing {
    /// Makes a host's namespace.
    pub fn new(host: &Host) -> Result<Standing, NamespaceError> {
        let namespace = Namespace::new(&host.name)?;
        namespace.disable_ipv6()?;
        Ok(Standing { name: host.name.clone(), namespace })
    }

    /// Gives the interface, whose link is there and up, its addresses and routes.
    pub fn configure(&self, host: &Host) -> Result<(), NamespaceError> {
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

    /// Runs the host's commands. Those that only say what the topology says too are left out. Returns what failed.
    pub fn run_commands(&self, host: &Host) -> Vec<String> {
        let known = |command: &&String| {
            let words: Vec<&str> = command.split_whitespace().collect();
            matches!(words[..], ["route", "add", "default", "gw", ..] | ["arp", "-i", _, "-s", ..])
        };
        let mut failed = Vec::new();
        for command in host.commands.iter().filter(|command| !known(command)) {
            let run = self.namespace.command("/bin/sh").and_then(|mut shell| {
                shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
                let done = shell.output();
                done.map_err(|source| NamespaceError::System {
                    what: "starting /bin/sh".to_owned(),
                    namespace: self.name.clone(),
                    source,
                })
            });
            match run {
                Ok(done) if done.status.success() => {}
                Ok(done) => {
                    let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
                    failed.push(format!("{}: `{command}` failed: {said}", self.name));
                }
                Err(error) => failed.push(format!("{}: `{command}` failed: {error}", self.name)),
            }
        }
        failed
    }
}
