//! Hosts: namespaces with one interface, and what they do when they start.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use lab::Host;
use ports::namespace::{Namespace, NamespaceError};

use super::residents::VARIABLE;

/// A command that runs so long before the next may is told of.
const LONG: Duration = Duration::from_secs(5);

/// Of what a command says, so much is told, in bytes.
const MAX_SAID: u64 = 2048;

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

    /// What /proc calls its namespace.
    pub fn identity(&self) -> Option<OsString> {
        self.namespace.enter(|| std::fs::read_link("/proc/thread-self/ns/net")).ok()?.ok().map(Into::into)
    }

    /// Runs the host's commands. Those that only say what the topology says too are left out. What failed is told, and what
    /// does not come to an end. When `ended` says so, what runs is ended and what is left is left out. What they say goes to
    /// `log`, which what they leave running may keep open; by the `token` in its environment that is found when the network is
    /// gone.
    pub fn run_commands(
        &self,
        host: &Host,
        log: &Path,
        token: &str,
        ended: &dyn Fn() -> bool,
        tell: &mut dyn FnMut(&str),
    ) {
        let known = |command: &&String| {
            let words: Vec<&str> = command.split_whitespace().collect();
            matches!(words[..], ["route", "add", "default", "gw", ..] | ["arp", "-i", _, "-s", ..])
        };
        for command in host.commands.iter().filter(|command| !known(command)).take_while(|_| !ended()) {
            let name = &self.name;
            let mut long = || tell(&format!("{name}: `{command}` still runs; if it is to stay, let it end with `&`"));
            match self.run(command, log, token, ended, &mut long) {
                Ok(None) => {}
                Ok(Some(said)) => tell(&format!("{name}: `{command}` failed: {said}")),
                Err(error) => tell(&format!("{name}: `{command}` failed: {error}")),
            }
        }
    }

    /// Runs a command to its end, or to the moment in which it is not wanted any more. What it said, if it failed.
    fn run(
        &self,
        command: &str,
        log: &Path,
        token: &str,
        ended: &dyn Fn() -> bool,
        long: &mut dyn FnMut(),
    ) -> Result<Option<String>, anyhow::Error> {
        let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut shell = self.namespace.command("/bin/sh")?;
        shell.args(["-c", command]).env(VARIABLE, token).env("TRIPLANE_HOST", &self.name);
        shell.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let mut child = shell.spawn().context("cannot start /bin/sh")?;
        let (began, mut told) = (Instant::now(), false);
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if !told && began.elapsed() >= LONG {
                told = true;
                long();
            }
            if ended() {
                // It may have ended by itself.
                let _ = child.kill();
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        if status.success() {
            return Ok(None);
        }
        let mut said = Vec::new();
        File::open(log)?.take(MAX_SAID).read_to_end(&mut said)?;
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        Ok(Some(if said.is_empty() { status.to_string() } else { said }))
    }
}
