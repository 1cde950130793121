//! Manages run directories: each lab has one, with its processes, its hosts' namespaces, its socket and its logs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::RawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::connection::{self, DeadlineStream};
use crate::error::failed_to;
use crate::host_namespace::NamespaceIdentity;
use crate::host_processes;
use crate::process_identity::ProcessIdentity;
use crate::protocol::{LabRequest, LabResponse};

use crate::LabError;

/// Maximum time in which a daemon ends, before it is killed.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(8);

/// Interval at which a connection is tried again while the daemon's queue of connections is full.
const CONNECT_INTERVAL: Duration = Duration::from_millis(10);

/// The file that describes a lab, and its name while it is written.
const DESCRIPTION: &str = "lab.json";
const PARTIAL_DESCRIPTION: &str = "lab.half";

/// A lab as its run directory describes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunDirectory {
    /// Name of the lab.
    pub name: String,
    /// The daemon.
    #[serde(flatten)]
    pub(crate) daemon: ProcessIdentity,
    /// Whether the start is complete.
    #[serde(rename = "stands")]
    is_ready: bool,
    /// Descriptors of the hosts' namespaces in the daemon, by host.
    hosts: BTreeMap<String, RawFd>,
    /// Identities of the hosts' namespaces.
    #[serde(default)]
    namespaces: Vec<NamespaceIdentity>,
    /// Processes of stores, of their operator, and of switches that are isolated, by name.
    switches: BTreeMap<String, ProcessIdentity>,
}

/// Refuses a directory of another user, one that others can write to, and a symbolic link, which anybody can create in
/// /tmp.
fn expect_private_directory(directory: &Path) -> Result<(), LabError> {
    let found = std::fs::symlink_metadata(directory);
    let found = found.map_err(failed_to(format!("stat {}", directory.display())))?;
    if !found.is_dir() {
        return Err(LabError::NotADirectory(directory.to_owned()));
    }
    let user = std::fs::metadata("/proc/self").map(|metadata| metadata.uid()).ok();
    if Some(found.uid()) != user {
        return Err(LabError::ForeignDirectory(directory.to_owned()));
    }
    if found.mode() & 0o022 != 0 {
        return Err(LabError::SharedDirectory(directory.to_owned()));
    }
    Ok(())
}

/// The processes of the lab that this process is the daemon of. Changes are written to the run directory.
pub struct ProcessTable(Mutex<RunDirectory>);

impl ProcessTable {
    /// Notes that the start is complete.
    pub fn set_ready(&self, hosts: BTreeMap<String, RawFd>) -> Result<(), LabError> {
        self.change(|lab| (lab.is_ready, lab.hosts) = (true, hosts))
    }

    /// Notes the namespaces of the hosts, in which processes may outlive a crash of the daemon.
    pub fn set_namespaces(&self, namespaces: Vec<NamespaceIdentity>) -> Result<(), LabError> {
        self.change(|lab| lab.namespaces = namespaces)
    }

    /// Records the process of a switch, a store or the operator.
    pub fn add(&self, node: &str, pid: u32) -> Result<(), LabError> {
        self.change(|lab| {
            lab.switches.insert(node.to_owned(), ProcessIdentity::of(pid));
        })
    }

    /// Whether the run directory still describes this lab. A user may have removed it and started another lab.
    pub fn is_listed(&self) -> bool {
        let lab = self.0.lock().expect("nobody panics with it");
        RunDirectory::read(&lab.name).is_some_and(|listed| listed.daemon == lab.daemon)
    }

    /// Returns the token of the lab's programs ([`RunDirectory::token`]).
    pub(crate) fn token(&self) -> String {
        self.0.lock().expect("nobody panics with it").token()
    }

    /// Returns the processes of a lab that is not on disk.
    #[cfg(test)]
    pub fn unwritten() -> ProcessTable {
        let (name, daemon) = ("unwritten".to_owned(), ProcessIdentity::of(std::process::id()));
        ProcessTable(Mutex::new(RunDirectory::new(name, daemon)))
    }

    fn change(&self, change: impl FnOnce(&mut RunDirectory)) -> Result<(), LabError> {
        let mut lab = self.0.lock().expect("nobody panics with it");
        change(&mut lab);
        lab.write()
    }
}

/// Environment variable with the directory for the run directories of this user.
pub const DIRECTORY_VARIABLE: &str = "TRIPLANE_LAB_DIR";

static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();

/// Returns the directory for the run directories of this user. It is computed once, since in a user namespace every
/// user seems to be root.
pub fn directory() -> &'static Path {
    DIRECTORY.get_or_init(|| std::env::var_os(DIRECTORY_VARIABLE).map_or_else(default_directory, PathBuf::from))
}

fn default_directory() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_dir());
    // The owner of /proc/self is the user of this process.
    let user = std::fs::metadata("/proc/self").map_or(0, |metadata| metadata.uid());
    match (user, runtime) {
        (0, _) => PathBuf::from("/run/triplane-lab"),
        (_, Some(runtime)) => runtime.join("triplane-lab"),
        (user, None) => std::env::temp_dir().join(format!("triplane-lab-{user}")),
    }
}

/// Names of topology files that do not distinguish labs, without their extension.
const COMMON_STEMS: [&str; 2] = ["lab", "topology"];

/// Returns the name of a lab: the given one, or that of its topology's file without the extension. A file that is
/// named as most are (`lab.toml`) gives the lab the name of its directory.
///
/// # Errors
/// Returns an error if the name has other characters than letters, digits and `_-.`, or is too long.
pub fn lab_name(topology: &Path, given: Option<&str>) -> Result<String, LabError> {
    let stem = topology.file_stem().and_then(|stem| stem.to_str()).unwrap_or("lab");
    let directory = directory_name(topology).filter(|name| COMMON_STEMS.contains(&stem) && is_lab_name(name));
    let name = given.map(str::to_owned).or(directory).unwrap_or_else(|| stem.to_owned());
    if is_lab_name(&name) { Ok(name) } else { Err(LabError::InvalidName(name)) }
}

fn is_lab_name(name: &str) -> bool {
    name.len() <= 32
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// Returns the name of the directory that a file is in, if it is there and has one.
fn directory_name(file: &Path) -> Option<String> {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    parent.canonicalize().ok()?.file_name()?.to_str().map(str::to_owned)
}

impl RunDirectory {
    /// Returns the description of a lab that is starting.
    fn new(name: String, daemon: ProcessIdentity) -> RunDirectory {
        let (hosts, switches) = (BTreeMap::new(), BTreeMap::new());
        RunDirectory { name, daemon, is_ready: false, hosts, namespaces: Vec::new(), switches }
    }

    /// Returns the run directory of a lab.
    fn path(name: &str) -> PathBuf {
        directory().join(name)
    }

    /// Returns the path of the daemon's socket.
    pub(crate) fn socket(name: &str) -> PathBuf {
        Self::path(name).join("socket")
    }

    /// Returns the path of the socket of a switch's process, by the index of the switch in the topology.
    pub(crate) fn switch_socket(name: &str, switch: usize) -> PathBuf {
        Self::path(name).join(format!("{switch}.socket"))
    }

    /// Returns the path of the log of a host's commands or of a switch's process.
    pub(crate) fn log(name: &str, node: &str) -> PathBuf {
        Self::path(name).join(format!("{node}.log"))
    }

    /// Returns the path of the log of a host's shim. No node has such a name.
    pub(crate) fn shim_log(name: &str, host: &str) -> PathBuf {
        Self::log(name, &format!("{host}+shim"))
    }

    /// Returns the directory of the files that the stores of a lab share with its switches. Only this user can enter
    /// it.
    pub fn cluster(name: &str) -> PathBuf {
        Self::path(name).join("cluster")
    }

    /// Creates a part of a lab's run directory. Only this user can enter it.
    pub(crate) fn create_part(path: &Path) -> Result<(), LabError> {
        let created = std::fs::DirBuilder::new().mode(0o700).create(path);
        created.map_err(failed_to(format!("create {}", path.display())))
    }

    /// Creates the run directory of a lab whose daemon is this process. Removes the remains of a crashed lab of the
    /// same name.
    pub(crate) fn prepare(name: &str) -> Result<ProcessTable, LabError> {
        let all = directory();
        let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(all);
        created.map_err(failed_to(format!("create {}", all.display())))?;
        expect_private_directory(all)?;
        // Of two starts at the same time, the second waits and then finds the first.
        let _locked = Self::lock()?;
        if let Some(lab) = Self::find(name)? {
            return Err(lab.already_up());
        }
        Self::remove_remains(name)?;
        Self::create_part(&Self::path(name))?;
        let lab = RunDirectory::new(name.to_owned(), ProcessIdentity::of(std::process::id()));
        lab.write().inspect_err(|_| Self::remove(name))?;
        Ok(ProcessTable(Mutex::new(lab)))
    }

    /// Locks the directory of run directories until the file is closed. A process that creates or removes a run
    /// directory holds the lock, since a lab of the same name may start at any time.
    fn lock() -> Result<File, LabError> {
        let lock = directory().join(".lock");
        let locked = File::create(&lock).and_then(|file| file.lock().map(|()| file));
        locked.map_err(failed_to(format!("lock {}", lock.display())))
    }

    /// Returns the error of a start under the name of this lab.
    pub(crate) fn already_up(&self) -> LabError {
        LabError::AlreadyUp { name: self.name.clone(), pid: self.daemon.pid, is_ready: self.is_ready }
    }

    /// Writes the description atomically.
    fn write(&self) -> Result<(), LabError> {
        let folder = Self::path(&self.name);
        let (path, partial) = (folder.join(DESCRIPTION), folder.join(PARTIAL_DESCRIPTION));
        let text = serde_json::to_string_pretty(self).expect("a run directory can be serialized");
        let written = std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, &path));
        written.map_err(failed_to(format!("write {}", path.display())))
    }

    /// Removes the run directory of a lab whose daemon is this process.
    pub(crate) fn close(name: &str) {
        let own = ProcessIdentity::of(std::process::id());
        let Ok(_locked) = Self::lock() else { return };
        if Self::read(name).is_some_and(|lab| lab.daemon == own) {
            Self::remove(name);
        }
    }

    fn remove(name: &str) {
        // If this fails, the next lab of the same name removes it.
        let _ = std::fs::remove_dir_all(Self::path(name));
    }

    /// Ends and removes what a crashed lab left behind. Does nothing if a lab of this name runs.
    ///
    /// # Errors
    /// Returns an error if the path is not a run directory: the user may keep other files there.
    pub fn sweep(name: &str) -> Result<(), LabError> {
        Self::sweep_after(name, None)
    }

    /// Ends and removes what the lab with this daemon left behind. Does nothing if another lab of this name runs.
    pub(crate) fn sweep_after(name: &str, daemon: Option<ProcessIdentity>) -> Result<(), LabError> {
        if std::fs::symlink_metadata(Self::path(name)).is_err() {
            return Ok(());
        }
        let _locked = Self::lock()?;
        let is_other = |lab: &RunDirectory| Some(lab.daemon) != daemon && lab.daemon.is_running();
        if Self::read(name).as_ref().is_some_and(is_other) { Ok(()) } else { Self::remove_remains(name) }
    }

    /// Ends and removes what a lab left behind. The caller holds the lock.
    fn remove_remains(name: &str) -> Result<(), LabError> {
        let path = Self::path(name);
        let Ok(metadata) = std::fs::symlink_metadata(&path) else { return Ok(()) };
        let is_empty = || std::fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_none());
        if !metadata.is_dir() || !Self::is_run_directory(name) && !is_empty() {
            return Err(LabError::NotARunDirectory(path));
        }
        if let Some(lab) = Self::read(name) {
            for switch in lab.switches.values() {
                switch.signal(Signal::KILL)?;
            }
            host_processes::terminate_remaining(&lab.namespaces, &lab.token());
        }
        std::fs::remove_dir_all(&path).map_err(failed_to(format!("remove {}", path.display())))
    }

    /// Whether there is a run directory of this name, complete or being created.
    fn is_run_directory(name: &str) -> bool {
        let path = Self::path(name);
        let exists = |file: &str| std::fs::symlink_metadata(path.join(file)).is_ok_and(|metadata| metadata.is_file());
        exists(DESCRIPTION) || exists(PARTIAL_DESCRIPTION)
    }

    /// Returns the token that the programs of this lab have in their environment. It differs from those of earlier labs
    /// of the same name.
    pub(crate) fn token(&self) -> String {
        format!("{}/{}.{}", self.name, self.daemon.pid, self.daemon.start_ticks)
    }

    fn read(name: &str) -> Option<RunDirectory> {
        serde_json::from_str(&std::fs::read_to_string(Self::path(name).join(DESCRIPTION)).ok()?).ok()
    }

    /// Returns the lab of this name if its daemon runs.
    ///
    /// # Errors
    /// Returns an error if others can write to the directory of run directories.
    pub fn find(name: &str) -> Result<Option<RunDirectory>, LabError> {
        Self::expect_private()?;
        Ok(Self::read(name).filter(|lab| lab.daemon.is_running()))
    }

    /// Fails if others can write to the directory of run directories, since its files name processes to signal.
    fn expect_private() -> Result<(), LabError> {
        match std::fs::symlink_metadata(directory()) {
            Ok(_) => expect_private_directory(directory()),
            Err(_) => Ok(()),
        }
    }

    /// Returns the names of all labs of this user, including those that crashed.
    ///
    /// # Errors
    /// Returns an error if others can write to the directory of run directories.
    pub fn names() -> Result<Vec<String>, LabError> {
        Self::expect_private()?;
        let Ok(entries) = std::fs::read_dir(directory()) else { return Ok(Vec::new()) };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> =
            names.filter(|name| !name.starts_with('.') && Self::is_run_directory(name)).collect();
        names.sort();
        Ok(names)
    }

    /// Returns the names of labs that crashed.
    ///
    /// # Errors
    /// Returns an error if others can write to the directory of run directories.
    pub fn crashed() -> Result<Vec<String>, LabError> {
        let has_crashed = |name: &String| Self::read(name).is_none_or(|lab| !lab.daemon.is_running());
        Ok(Self::names()?.into_iter().filter(has_crashed).collect())
    }

    /// Returns all labs of this user that run.
    ///
    /// # Errors
    /// Returns an error if others can write to the directory of run directories.
    pub fn all() -> Result<Vec<RunDirectory>, LabError> {
        Self::names()?.iter().filter_map(|name| Self::find(name).transpose()).collect()
    }

    /// Returns the lab of this name, or without a name the only one that runs.
    ///
    /// # Errors
    /// Returns an error if there is none, or if there are several to choose from.
    pub fn choose(name: Option<&str>) -> Result<RunDirectory, LabError> {
        let mut labs = Self::all()?;
        let names = labs.iter().map(|lab| lab.name.clone()).collect();
        match name {
            Some(name) => {
                let found = labs.into_iter().find(|lab| lab.name == name);
                found.ok_or_else(|| LabError::NotFound { name: name.to_owned(), running: names })
            }
            None if labs.len() == 1 => Ok(labs.remove(0)),
            None if labs.is_empty() => Err(LabError::NoneUp),
            None => Err(LabError::Ambiguous(names)),
        }
    }

    /// Returns the descriptor of a host's namespace in the daemon.
    pub(crate) fn host_descriptor(&self, host: &str) -> Result<RawFd, LabError> {
        let hosts = || self.hosts.keys().cloned().collect();
        self.hosts.get(host).copied().ok_or_else(|| LabError::NoHost { name: host.to_owned(), hosts: hosts() })
    }

    /// Fails if the daemon cannot respond: it has ended or is stopped.
    pub(crate) fn expect_responsive(&self) -> Result<(), LabError> {
        let RunDirectory { name, daemon, .. } = self;
        if !daemon.is_running() {
            return Err(self.ended());
        }
        if daemon.is_stopped() { Err(LabError::Stopped { name: name.clone(), pid: daemon.pid }) } else { Ok(()) }
    }

    fn ended(&self) -> LabError {
        LabError::Ended(self.name.clone())
    }

    /// Sends a request to the daemon, which has `timeout` to accept it. The response comes on the returned stream.
    pub(crate) fn connect(&self, request: &LabRequest, timeout: Duration) -> Result<UnixStream, LabError> {
        let (path, begin) = (Self::socket(&self.name), Instant::now());
        let connected = loop {
            // The queue of a stopped daemon may be full.
            self.expect_responsive()?;
            match connection::connect(&path) {
                Err(error) if connection::is_timeout(&error) && begin.elapsed() < timeout => {
                    std::thread::sleep(CONNECT_INTERVAL);
                }
                connected => break connected,
            }
        };
        let stream = match connected {
            Ok(stream) => stream,
            Err(error) if connection::is_timeout(&error) => {
                return Err(LabError::ResponseTimeout { name: self.name.clone(), seconds: timeout.as_secs() });
            }
            // A killed process closes its sockets some time before it is gone.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused && self.daemon.wait_for_exit() => {
                return Err(self.ended());
            }
            Err(error) => return Err(failed_to(format!("reach the lab `{}`", self.name))(error)),
        };
        let sent = DeadlineStream::new(&stream, timeout).write_all(request.line().as_bytes());
        sent.map_err(failed_to(format!("reach the lab `{}`", self.name)))?;
        Ok(stream)
    }

    /// Asks the daemon to end. Returns whether it has responded.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses.
    fn request_end(&self) -> Result<bool, LabError> {
        let Ok(stream) = self.connect(&LabRequest::Down, SHUTDOWN_TIMEOUT) else { return Ok(false) };
        let (mut response, stream) = (String::new(), DeadlineStream::new(&stream, SHUTDOWN_TIMEOUT));
        // Without a response in time there is an empty line.
        let _ = BufReader::new(stream).read_line(&mut response);
        match LabResponse::read(&response) {
            Err(LabError::NoResponse) => Ok(false),
            response => response.map(|_| true),
        }
    }

    /// Ends the lab: asks its daemon, and kills the daemon if it does not respond.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses, or if its run directory cannot be removed.
    pub fn end(&self) -> Result<(), LabError> {
        if self.daemon.is_stopped() {
            // A stopped process does not respond.
            self.daemon.signal(Signal::KILL)?;
        }
        // A daemon that is starting does not respond yet, but it checks for signals.
        if !(self.is_ready && self.request_end()?) {
            self.daemon.signal(Signal::TERM)?;
        }
        let begin = Instant::now();
        while self.daemon.is_running() && begin.elapsed() < SHUTDOWN_TIMEOUT {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.daemon.signal(Signal::KILL)?;
        self.daemon.wait_for_exit();
        // Removes what the daemon could not end itself.
        Self::sweep_after(&self.name, Some(self.daemon))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_network::TestDirectory;

    #[test]
    fn a_lab_is_named_after_its_file() {
        assert_eq!(lab_name(Path::new("labs/two.toml"), None).ok().as_deref(), Some("two"));
        assert_eq!(lab_name(Path::new("labs/two.toml"), Some("other")).ok().as_deref(), Some("other"));
    }

    #[test]
    fn a_lab_whose_file_has_a_common_name_is_named_after_its_directory() {
        let directory = TestDirectory::new("names");
        for name in ["pod", "not a name"] {
            std::fs::create_dir(directory.path(name)).unwrap();
        }
        let name = |file: &str| lab_name(&directory.path(file), None).unwrap();
        assert_eq!(name("pod/lab.toml"), "pod");
        assert_eq!(name("pod/topology.json"), "pod");
        assert_eq!(name("pod/../pod/lab.toml"), "pod");
        assert_eq!(name("pod/two.toml"), "two");
        assert_eq!(name("not a name/lab.toml"), "lab");
        assert_eq!(lab_name(&directory.path("pod/lab.toml"), Some("other")).unwrap(), "other");
    }

    #[test]
    fn names_that_are_no_file_names_are_refused() {
        for name in ["", "..", "a/b", ".hidden", "-f", "a b", &"a".repeat(33)] {
            let refused = lab_name(Path::new("lab.toml"), Some(name));
            assert!(matches!(refused, Err(LabError::InvalidName(_))), "{name}");
        }
    }

    /// A process that ends with the test.
    fn process() -> std::process::Child {
        let mut command = std::process::Command::new("cat");
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap()
    }

    /// Number of tests that use the directory of run directories.
    static USERS: Mutex<usize> = Mutex::new(0);

    /// The directory of run directories, which all tests share. The last one that drops it removes it.
    struct Labs(PathBuf);

    impl Labs {
        fn new() -> Labs {
            let mut users = USERS.lock().unwrap();
            let path = std::env::temp_dir().join(format!("triplane-lab-test-{}", std::process::id()));
            assert_eq!(DIRECTORY.get_or_init(|| path.clone()), &path);
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path).unwrap();
            *users += 1;
            Labs(path)
        }
    }

    impl Drop for Labs {
        fn drop(&mut self) {
            let mut users = USERS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            *users -= 1;
            if *users == 0 {
                let _ = std::fs::remove_dir_all(&self.0);
            }
        }
    }

    /// Creates the run directory of a lab with this daemon.
    fn lab(name: &str, daemon: ProcessIdentity, is_ready: bool) -> RunDirectory {
        std::fs::DirBuilder::new().mode(0o700).create(RunDirectory::path(name)).unwrap();
        let lab = RunDirectory { is_ready, ..RunDirectory::new(name.to_owned(), daemon) };
        lab.write().unwrap();
        lab
    }

    #[test]
    fn the_end_of_an_earlier_lab_leaves_a_later_one_of_its_name_alone() {
        let (_labs, mut daemon) = (Labs::new(), process());
        let later = ProcessIdentity::of(daemon.id());
        let earlier = ProcessIdentity { start_ticks: later.start_ticks.wrapping_sub(1), ..later };
        let earlier = RunDirectory { daemon: earlier, ..lab("same", later, true) };
        earlier.end().unwrap();
        RunDirectory::sweep("same").unwrap();
        RunDirectory::close("same");
        assert!(RunDirectory::read("same").is_some_and(|lab| lab.daemon == later) && later.is_running());
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        RunDirectory::close("same");
        assert!(RunDirectory::read("same").is_some(), "it is not this process's");
        RunDirectory::sweep("same").unwrap();
        assert!(!RunDirectory::path("same").exists());
    }

    #[test]
    fn a_daemon_that_ends_without_a_response_leaves_nothing() {
        let (_labs, mut daemon) = (Labs::new(), process());
        let lab = lab("silent", ProcessIdentity::of(daemon.id()), true);
        let listener = std::os::unix::net::UnixListener::bind(RunDirectory::socket("silent")).unwrap();
        // Closes the connection at once.
        let accepting = std::thread::spawn(move || listener.accept().map(drop));
        lab.end().unwrap();
        accepting.join().unwrap().unwrap();
        assert!(!RunDirectory::path("silent").exists());
        daemon.wait().unwrap();
    }
}
