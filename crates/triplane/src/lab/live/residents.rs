//! Programs that people started on hosts: when the network ends, so do they.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::hosts::Standing;

/// How long a program has between the request to end and its end by force.
const PATIENCE: Duration = Duration::from_millis(500);

/// The variable that every program started by `lab exec` has, with what tells the network.
pub const VARIABLE: &str = "TRIPLANE_LAB";

/// Ends every process within these hosts.
pub fn end(hosts: &[Standing]) {
    let namespaces: BTreeSet<_> = hosts.iter().filter_map(Standing::identity).collect();
    end_all(&|process| {
        std::fs::read_link(process.join("ns/net")).is_ok_and(|link| namespaces.contains(&link.into_os_string()))
    });
}

/// Ends every process that a network started which is gone itself.
pub fn end_of_gone(token: &str) {
    let mark = format!("{VARIABLE}={token}");
    end_all(&|process| {
        let environment = std::fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    });
}

fn end_all(is_meant: &dyn Fn(&Path) -> bool) {
    let mut left = found(is_meant);
    signal("-TERM", &left);
    let asked = Instant::now();
    while !left.is_empty() && asked.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
        left = found(is_meant);
    }
    signal("-KILL", &left);
}

fn found(is_meant: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbered = processes.flatten().filter_map(|entry| {
        let number = entry.file_name().into_string().ok()?;
        number.bytes().all(|byte| byte.is_ascii_digit()).then(|| (number, entry.path()))
    });
    numbered.filter(|(_, path)| is_meant(path)).map(|(number, _)| number).collect()
}

/// Sends a signal to processes. One that is gone meanwhile is no error.
fn signal(signal: &str, processes: &[String]) {
    if !processes.is_empty() {
        let _ = Command::new("kill").arg(signal).args(processes).stderr(Stdio::null()).status();
    }
}
