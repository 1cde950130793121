//! An XDP program that another compiler made: `xdp=FILE[:SECTION]` names an object file, and `entries=COMMAND` a shell
//! command that fills its tables. iproute2 loads it for the interface from the source.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::network::Network;

/// The section of a program without a name for it.
const SECTION: &str = "xdp";

/// The user's object file.
pub struct XdpObject {
    file: PathBuf,
    section: String,
    entries: Option<String>,
}

/// An attached program.
pub struct AttachedObject {
    /// Detaches it.
    off: Command,
}

impl XdpObject {
    /// Returns the object that an argument names.
    pub fn new(named: &str, entries: Option<String>) -> XdpObject {
        let (file, section) = match named.rsplit_once(':') {
            Some((file, section)) if !Path::new(named).exists() => (file, section),
            _ => (named, SECTION),
        };
        XdpObject { file: file.into(), section: section.to_owned(), entries }
    }

    /// Attaches the program to `r1`, and runs the user's command in the same namespace.
    pub fn attach(&self, network: &Network) -> Result<AttachedObject, Box<dyn Error>> {
        let ip = |program: &[&str]| -> Result<Command, Box<dyn Error>> {
            let mut command = network.router.command("ip")?;
            command.args(["link", "set", "dev", "r1", "xdpdrv"]).args(program);
            Ok(command)
        };
        if !self.file.exists() {
            return Err(format!("there is no file {}", self.file.display()).into());
        }
        let file = self.file.display().to_string();
        done(&mut ip(&["object", &file, "section", &self.section])?, "iproute2 does not load it")?;
        let attached = AttachedObject { off: ip(&["off"])? };
        if let Some(entries) = &self.entries {
            let filled =
                done(network.router.command("sh")?.args(["-c", entries]), "the command for its entries failed");
            if let Err(error) = filled {
                attached.detach()?;
                return Err(error);
            }
        }
        Ok(attached)
    }
}

impl AttachedObject {
    pub fn detach(mut self) -> Result<(), Box<dyn Error>> {
        done(&mut self.off, "iproute2 does not detach it")
    }
}

/// Runs a command to its end.
fn done(command: &mut Command, failure: &str) -> Result<(), Box<dyn Error>> {
    let output = command.output().map_err(|error| format!("{failure}: {error}"))?;
    let message = String::from_utf8_lossy(&output.stderr);
    match message.trim() {
        _ if output.status.success() => Ok(()),
        "" => Err(format!("{failure}: {}", output.status).into()),
        message => Err(format!("{failure}: {message}").into()),
    }
}
