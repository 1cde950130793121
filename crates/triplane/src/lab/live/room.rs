//! Where a running network is found: a directory for each, with its process, its hosts and its socket.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::RawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use serde::{Deserialize, Serialize};

use super::process::Process;
use super::protocol::{Answer, Request};
use super::residents;
use crate::output::Failure;

/// How long a network may take to end before its process is killed.
const PATIENCE: Duration = Duration::from_secs(8);

/// The file in which a network's directory tells of it, and its name while it is written.
const ABOUT: &str = "lab.json";
const HALF: &str = "lab.half";

/// A network, as its directory tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Room {
    /// The network's name.
    pub name: String,
    /// The process that holds it.
    #[serde(flatten)]
    pub holder: Process,
    /// Whether it stands; it is still being made if not.
    pub stands: bool,
    /// The descriptors of the hosts' namespaces in that process.
    pub hosts: BTreeMap<String, RawFd>,
    /// The processes of switches that have one of their own.
    pub switches: BTreeMap<String, Process>,
}

/// Refuses a directory of labs that belongs to someone else, or that others can write to; or a link, which in /tmp anybody
/// can have made.
fn private(directory: &Path) -> Result<(), Failure> {
    let found = std::fs::symlink_metadata(directory);
    let found = found.with_context(|| format!("cannot look at {}", directory.display()))?;
    if !found.is_dir() {
        return Err(anyhow!("{} is no directory, and labs need one", directory.display()).into());
    }
    let user = std::fs::metadata("/proc/self").map(|metadata| metadata.uid()).ok();
    if Some(found.uid()) != user {
        return Err(anyhow!("{} belongs to someone else", directory.display()).into());
    }
    if found.mode() & 0o022 != 0 {
        let why = "others can write to it, and what is in it names processes to end";
        return Err(anyhow!("{} cannot hold labs: {why}; take a directory of your own", directory.display()).into());
    }
    Ok(())
}

/// What a network that is being made, or stands, tells of itself.
pub struct Roster(Mutex<Room>);

impl Roster {
    /// Tells everyone that the network stands.
    pub fn open(&self, hosts: BTreeMap<String, RawFd>) -> Result<(), Failure> {
        self.change(|room| (room.stands, room.hosts) = (true, hosts))
    }

    /// Notes the process of a switch.
    pub fn enter(&self, switch: &str, pid: u32) -> Result<(), Failure> {
        self.change(|room| {
            room.switches.insert(switch.to_owned(), Process::of(pid));
        })
    }

    /// Whether the directory still tells of this network: someone may have removed it, and have started another one.
    pub fn is_listed(&self) -> bool {
        let room = self.0.lock().expect("nobody panics with it");
        Room::read(&room.name).is_some_and(|listed| listed.holder == room.holder)
    }

    /// What tells the network's programs from others ([`Room::token`]).
    pub fn token(&self) -> String {
        self.0.lock().expect("nobody panics with it").token()
    }

    fn change(&self, change: impl FnOnce(&mut Room)) -> Result<(), Failure> {
        let mut room = self.0.lock().expect("nobody panics with it");
        change(&mut room);
        room.write()
    }
}

/// The variable that says where networks of this user are found, if it is somewhere else than usual.
pub const DIRECTORY: &str = "TRIPLANE_LAB_DIR";

/// The directory of all networks of this user. It is found once: in a user namespace everybody is root.
pub fn directory() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| std::env::var_os(DIRECTORY).map_or_else(usual_directory, PathBuf::from))
}

fn usual_directory() -> PathBuf {
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

impl Room {
    /// The directory of a network.
    fn path(name: &str) -> PathBuf {
        directory().join(name)
    }

    /// The socket of a network.
    pub fn socket(name: &str) -> PathBuf {
        Self::path(name).join("socket")
    }

    /// The socket of the process of a switch, by its place in the topology.
    pub fn switch_socket(name: &str, switch: usize) -> PathBuf {
        Self::path(name).join(format!("{switch}.socket"))
    }

    /// Where what a host's commands or the process of a switch say is written.
    pub fn log(name: &str, node: &str) -> PathBuf {
        Self::path(name).join(format!("{node}.log"))
    }

    /// Makes the directory of a network that this process holds, and says in it that it does. What a crashed one of the
    /// same name left is removed.
    pub fn prepare(name: &str) -> Result<Roster, Failure> {
        let all = directory();
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(all);
        made.with_context(|| format!("cannot make {}", all.display()))?;
        private(all)?;
        // Of two that come at the same time one has to wait, and sees the other's room.
        let lock = all.join(".lock");
        let locked = File::create(&lock).and_then(|file| file.lock().map(|()| file));
        let _locked = locked.with_context(|| format!("cannot lock {}", lock.display()))?;
        if let Some(room) = Self::find(name)? {
            return Err(room.is_up_already());
        }
        Self::sweep(name)?;
        let path = Self::path(name);
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("cannot make {}", path.display()))?;
        let holder = Process::of(std::process::id());
        let room =
            Room { name: name.to_owned(), holder, stands: false, hosts: BTreeMap::new(), switches: BTreeMap::new() };
        room.write().inspect_err(|_| Self::close(name))?;
        Ok(Roster(Mutex::new(room)))
    }

    /// What tells that a network of this name cannot be started.
    pub fn is_up_already(&self) -> Failure {
        let Room { name, holder, .. } = self;
        let how = if self.stands { "is up already" } else { "is being started already" };
        Failure::Usage(format!(
            "the lab `{name}` {how} (process {}); end it with: triplane lab down {name}",
            holder.pid
        ))
    }

    /// Writes what it tells, as a whole or not at all.
    fn write(&self) -> Result<(), Failure> {
        let folder = Self::path(&self.name);
        let (path, half) = (folder.join(ABOUT), folder.join(HALF));
        let text = serde_json::to_string_pretty(self).context("cannot describe the lab")?;
        let written = std::fs::write(&half, text).and_then(|()| std::fs::rename(&half, &path));
        written.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(())
    }

    /// Removes what tells of the network that this process holds.
    pub fn close(name: &str) {
        let own = Process::of(std::process::id());
        if Self::read(name).is_some_and(|room| room.holder != own) {
            return;
        }
        // A directory that cannot be removed is found to be stale by the next one of the name.
        let _ = std::fs::remove_dir_all(Self::path(name));
    }

    /// Ends and removes what is left of a network that was not ended properly. What is no network's directory is refused:
    /// somebody may have named one where he keeps other things.
    pub fn sweep(name: &str) -> Result<(), Failure> {
        let path = Self::path(name);
        let Ok(about) = std::fs::symlink_metadata(&path) else { return Ok(()) };
        let is_empty = || std::fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_none());
        if !about.is_dir() || !Self::is_room(name) && !is_empty() {
            let shown = path.display();
            return Err(anyhow!(
                "{shown} is in the way, and is not the directory of a lab: move it, or take another --name"
            )
            .into());
        }
        if let Some(room) = Self::read(name) {
            for switch in room.switches.values() {
                switch.signal("-KILL")?;
            }
            residents::end_of_gone(&room.token());
        }
        std::fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        Ok(())
    }

    /// Whether there is the directory of a network of this name, as far as one gets that is being made.
    fn is_room(name: &str) -> bool {
        let path = Self::path(name);
        let is_there = |file: &str| std::fs::symlink_metadata(path.join(file)).is_ok_and(|about| about.is_file());
        is_there(ABOUT) || is_there(HALF)
    }

    /// What tells programs of this network from those of any other, also of an earlier one of the same name.
    pub fn token(&self) -> String {
        format!("{}/{}.{}", self.name, self.holder.pid, self.holder.began)
    }

    fn read(name: &str) -> Option<Room> {
        serde_json::from_str(&std::fs::read_to_string(Self::path(name).join(ABOUT)).ok()?).ok()
    }

    /// The network of this name, if its process runs.
    pub fn find(name: &str) -> Result<Option<Room>, Failure> {
        Self::expect_private()?;
        Ok(Self::read(name).filter(|room| room.holder.is_there()))
    }

    /// Fails if others can write where networks are found: what is there names processes, and is not to be believed then.
    fn expect_private() -> Result<(), Failure> {
        match std::fs::symlink_metadata(directory()) {
            Ok(_) => private(directory()),
            Err(_) => Ok(()),
        }
    }

    /// The names of all networks of this user, also of those that crashed.
    pub fn names() -> Result<Vec<String>, Failure> {
        Self::expect_private()?;
        let Ok(entries) = std::fs::read_dir(directory()) else { return Ok(Vec::new()) };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.') && Self::is_room(name)).collect();
        names.sort();
        Ok(names)
    }

    /// The names of networks whose process ended without tidying up.
    pub fn crashed() -> Result<Vec<String>, Failure> {
        let is_gone = |name: &String| Self::read(name).is_none_or(|room| !room.holder.is_there());
        Ok(Self::names()?.into_iter().filter(is_gone).collect())
    }

    /// All running networks of this user.
    pub fn all() -> Result<Vec<Room>, Failure> {
        Self::names()?.iter().filter_map(|name| Self::find(name).transpose()).collect()
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

    /// Fails if nobody will answer: the holder is gone, or stopped.
    pub fn expect_answer(&self) -> Result<(), Failure> {
        let Room { name, holder, .. } = self;
        if !holder.is_there() {
            return Err(self.is_gone());
        }
        match holder.is_stopped() {
            true => Err(anyhow!(
                "the lab `{name}` is stopped: its process {pid} goes on with `kill -CONT {pid}`, or end the lab with: \
                 triplane lab down {name}",
                pid = holder.pid
            )
            .into()),
            false => Ok(()),
        }
    }

    fn is_gone(&self) -> Failure {
        Failure::Usage(format!("there is no lab `{}`: its process was ended", self.name))
    }

    /// Says something to the holder; the answer comes by the stream.
    pub fn connect(&self, request: &Request) -> Result<UnixStream, Failure> {
        // So many may wait to be heard by one that is stopped that connecting waits too.
        self.expect_answer()?;
        let path = Self::socket(&self.name);
        let mut stream = match UnixStream::connect(&path) {
            Ok(stream) => stream,
            // A process that was killed closes its sockets some time before it is gone.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused && self.holder.is_gone_soon() => {
                return Err(self.is_gone());
            }
            Err(error) => Err(error).with_context(|| format!("cannot reach the lab `{}`", self.name))?,
        };
        stream.write_all(request.line().as_bytes()).context("cannot reach the lab")?;
        Ok(stream)
    }

    /// Ends the network, by asking its process, and by ending that if it does not answer.
    pub fn end(&self) -> Result<(), Failure> {
        if self.holder.is_stopped() {
            // It would not hear of it.
            self.holder.signal("-KILL")?;
        }
        match self.connect(&Request::Down) {
            Ok(stream) => {
                let mut answer = String::new();
                let _ = stream.set_read_timeout(Some(PATIENCE));
                let heard = std::io::BufRead::read_line(&mut std::io::BufReader::new(stream), &mut answer);
                if heard.is_ok() {
                    Answer::read(&answer)?;
                }
            }
            // It is still being made and does not listen yet, or has ended.
            Err(_) => self.holder.signal("-TERM")?,
        }
        let asked = Instant::now();
        while self.holder.is_there() && asked.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.holder.signal("-KILL")?;
        self.holder.is_gone_soon();
        // Whatever it could not end itself.
        Self::sweep(&self.name)
    }
}
