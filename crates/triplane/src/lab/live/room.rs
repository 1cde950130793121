//! Where a running network is found: a directory for each, with its process, its hosts and its socket.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::RawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use serde::{Deserialize, Serialize};

use super::protocol::{Answer, Request};
use crate::output::Failure;

/// How long a network may take to end before its process is killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// A running network, as its directory tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Room {
    /// The network's name.
    pub name: String,
    /// The process that holds it.
    pub pid: u32,
    /// When that process began (proc(5), field 22 of stat), so that another of the same number is not taken for it.
    pub began: u64,
    /// The descriptors of the hosts' namespaces in that process.
    pub hosts: BTreeMap<String, RawFd>,
}

/// The directory of all networks of this user.
fn directory() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_dir());
    // Who owns the own process is who runs it.
    let user = std::fs::metadata("/proc/self").map_or(0, |metadata| metadata.uid());
    match (user, runtime) {
        (0, _) => PathBuf::from("/run/triplane-lab"),
        (_, Some(runtime)) => runtime.join("triplane-lab"),
        (user, None) => std::env::temp_dir().join(format!("triplane-lab-{user}")),
    }
}

/// The name of a network: the one that was asked for, or its file's.
pub fn name(topology: &Path, asked: Option<&str>) -> Result<String, Failure> {
    let stem = topology.file_stem().and_then(|stem| stem.to_str()).unwrap_or("lab");
    let name = asked.unwrap_or(stem);
    let fits = name.len() <= 32
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    match fits {
        true => Ok(name.to_owned()),
        false => Err(Failure::Usage(format!(
            "`{name}` is no name for a lab: give one with --name, of letters, digits, _ - ."
        ))),
    }
}

/// When a process began; `None` if there is none of this number.
fn began(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // One that has ended and waits to be reaped has no namespaces any more.
    std::fs::read_link(format!("/proc/{pid}/ns/net")).ok()?;
    // The name may have spaces and parentheses; fields count from behind it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    fields.nth(19)?.parse().ok()
}

impl Room {
    /// The directory of a network.
    fn path(name: &str) -> PathBuf {
        directory().join(name)
    }

    /// The socket of a network.
    pub fn socket(name: &str) -> PathBuf {
        Self::path(name).join("socket")
    }

    /// Makes the directory of a network that this process holds. What a crashed one of the same name left there is
    /// removed.
    pub fn prepare(name: &str) -> Result<(), Failure> {
        let all = directory();
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&all)
            .with_context(|| format!("cannot make {}", all.display()))?;
        let owner = std::fs::metadata(&all).map(|metadata| metadata.uid()).ok();
        let user = std::fs::metadata("/proc/self").map(|metadata| metadata.uid()).ok();
        if owner != user {
            return Err(anyhow!("{} belongs to someone else", all.display()).into());
        }
        let path = Self::path(name);
        if Self::find(name)?.is_none() && path.exists() {
            std::fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("cannot make {}", path.display()))?;
        Ok(())
    }

    /// Tells everyone that the network stands.
    pub fn open(name: &str, hosts: BTreeMap<String, RawFd>) -> Result<(), Failure> {
        let pid = std::process::id();
        let room = Room { name: name.to_owned(), pid, began: began(pid).unwrap_or(0), hosts };
        let path = Self::path(name).join("lab.json");
        let text = serde_json::to_string_pretty(&room).context("cannot describe the lab")?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(())
    }

    /// Removes what tells of a network.
    pub fn close(name: &str) {
        // A directory that cannot be removed is found to be stale by the next one of the name.
        let _ = std::fs::remove_dir_all(Self::path(name));
    }

    /// The running network of this name.
    pub fn find(name: &str) -> Result<Option<Room>, Failure> {
        let path = Self::path(name).join("lab.json");
        let Ok(text) = std::fs::read_to_string(&path) else { return Ok(None) };
        let Ok(room) = serde_json::from_str::<Room>(&text) else { return Ok(None) };
        Ok((began(room.pid) == Some(room.began)).then_some(room))
    }

    /// All running networks of this user.
    pub fn all() -> Result<Vec<Room>, Failure> {
        let Ok(entries) = std::fs::read_dir(directory()) else { return Ok(Vec::new()) };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names.iter().filter_map(|name| Self::find(name).transpose()).collect()
    }

    /// The network of this name, or the only one that runs.
    pub fn choose(name: Option<&str>) -> Result<Room, Failure> {
        let mut rooms = Self::all()?;
        let names: Vec<&str> = rooms.iter().map(|room| room.name.as_str()).collect();
        let up = if names.is_empty() { "no lab is up".to_owned() } else { format!("up: {}", names.join(", ")) };
        match name {
            Some(name) => {
                let found = rooms.into_iter().find(|room| room.name == name);
                found.ok_or_else(|| Failure::Usage(format!("there is no lab `{name}`; {up}")))
            }
            None if rooms.len() == 1 => Ok(rooms.remove(0)),
            None if rooms.is_empty() => {
                Err(Failure::Usage("no lab is up; start one with: triplane lab up lab.toml".to_owned()))
            }
            None => Err(Failure::Usage(format!("several labs are up; say which with --lab ({up})"))),
        }
    }

    /// Says something to the holder; the answer comes by the stream.
    pub fn connect(&self, request: &Request) -> Result<UnixStream, Failure> {
        let path = Self::socket(&self.name);
        let mut stream = UnixStream::connect(&path).with_context(|| format!("cannot reach the lab `{}`", self.name))?;
        let line = serde_json::to_string(request).context("cannot write the request")? + "\n";
        stream.write_all(line.as_bytes()).context("cannot reach the lab")?;
        Ok(stream)
    }

    /// Ends the network, by asking its process, and by ending that if it does not answer.
    pub fn end(&self) -> Result<(), Failure> {
        if let Ok(stream) = self.connect(&Request::Down) {
            let mut answer = String::new();
            let _ = stream.set_read_timeout(Some(PATIENCE));
            let heard = std::io::BufRead::read_line(&mut std::io::BufReader::new(stream), &mut answer);
            if heard.is_ok() {
                Answer::read(&answer)?;
            }
        }
        let asked = Instant::now();
        while began(self.pid) == Some(self.began) {
            if asked.elapsed() > PATIENCE {
                let kill = std::process::Command::new("kill").args(["-9", &self.pid.to_string()]).status();
                kill.with_context(|| format!("cannot end process {}", self.pid))?;
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Self::close(&self.name);
        Ok(())
    }
}
