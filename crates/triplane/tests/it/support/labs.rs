//! The directory of a test's live labs.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::network::Network;
use super::{Directory, Done, TEST_TIMEOUT, run, triplane};

/// A directory of labs. Dropping it takes down those that are up.
pub struct Labs(pub Directory);

impl Labs {
    /// Creates the directory. Returns `None`, and skips the test, if no network can be created.
    pub fn new(tools: &[&str]) -> Option<Labs> {
        match Network::obstacle(tools) {
            Some(reason) => {
                testing::skip(&reason);
                None
            }
            None => Some(Labs(Directory::new())),
        }
    }

    /// Returns a `triplane lab` command with these arguments, for the labs of this directory.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = triplane(&[&["lab"], arguments].concat());
        command.env("TRIPLANE_LAB_DIR", self.0.path("labs"));
        command
    }

    /// Runs a `triplane lab` command.
    pub fn lab(&self, arguments: &[&str]) -> Done {
        run(&mut self.command(arguments))
    }

    /// Returns the state of the lab.
    pub fn status(&self) -> Value {
        self.lab(&["status", "--json"]).ok().json()
    }
}

impl Drop for Labs {
    fn drop(&mut self) {
        let _ = self.lab(&["down", "--all"]);
    }
}

/// Whether a process runs, and is not a zombie.
pub fn is_running(process: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, fields)| !fields.trim_start().starts_with('Z'))
}

/// Kills a process.
pub fn kill(process: u64) {
    run(Command::new("sh").args(["-c", &format!("kill -9 {process}")])).ok();
}

/// Waits until a condition holds.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < TEST_TIMEOUT, "there was no {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
