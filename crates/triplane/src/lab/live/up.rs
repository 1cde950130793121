//! Starting a network: everything is checked, the holder is started, and then it is waited for.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use v1model::Executor;

use super::super::args::UpArgs;
use super::super::endpoints::Served;
use super::super::network::{Live, Network, Wanted};
use super::holder;
use super::room::{self, Room};
use super::start::{own, process};
use crate::output::{Failure, Output};

/// How often it is looked whether somebody pressed Ctrl-C.
const LOOK: Duration = Duration::from_millis(20);

/// How long the holder may take to undo what it began.
const UNDO: Duration = Duration::from_secs(10);

/// `triplane lab up`: checks everything, starts the holder, and waits until the network stands.
pub fn up(args: &UpArgs, output: &Output) -> Result<(), Failure> {
    let network = check(args, output)?;
    let Started { name, took, .. } = start(args, Life::Own, output)?;
    output.print(&format!("lab {name}: {} up in {:.2} s\n", network.describe(), took.as_secs_f64()))?;
    for (switch, served) in network.topology.switches.iter().zip(&network.endpoints) {
        if let Some(served) = served {
            let Served { address, device_id } = served;
            output.print(&format!("{}: P4Runtime on {address}, device {device_id}\n", switch.name))?;
        }
    }
    let first = network.topology.hosts.first().map_or("h1", |host| host.name.as_str());
    output.note(&format!("try: triplane lab exec {first} ip addr; triplane lab status; triplane lab down"));
    Ok(())
}

/// Reads the network and everything that it names, and tells what is wrong with it, before anything is made.
pub fn check(args: &UpArgs, output: &Output) -> Result<Network, Failure> {
    let live = Live { p4runtime: args.live.p4runtime, only: None };
    let wanted = Wanted { executor: Executor::Interpreter, live: Some(live) };
    let network = Network::load_for(&args.live.topology, &wanted, output);
    // Where there are mistakes, whoever mends them should know this too; where there are none, the start tells it.
    if let (Err(_), Some(obstacle)) = (&network, obstacle()) {
        output.note(&format!("besides, no network can be made here: {obstacle}"));
    }
    network
}

/// Why this user can make no networks; another process tries it.
fn obstacle() -> Option<String> {
    let tried = own().args(["lab", "allowed"]).stdin(Stdio::null()).output().ok()?;
    if tried.status.success() { None } else { Some(said(&tried.stderr)) }
}

/// What a process of ours said when it failed.
fn said(stderr: &[u8]) -> String {
    let said = String::from_utf8_lossy(stderr).trim().to_owned();
    said.strip_prefix("error: ").unwrap_or(&said).to_owned()
}

/// How long a network stays up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// Until somebody ends it.
    Own,
    /// No longer than this process.
    Ours,
}

/// A network that stands.
pub struct Started {
    /// What it is called.
    pub name: String,
    /// How long the start took.
    pub took: Duration,
    /// One whose life is ours ends when this is dropped.
    pub life: Option<ChildStdin>,
}

/// Starts a network that was checked.
pub fn start(args: &UpArgs, life: Life, output: &Output) -> Result<Started, Failure> {
    let live = &args.live;
    let name = room::name(&live.topology.topology, args.name.as_deref())?;
    if let Some(room) = Room::find(&name)? {
        return Err(room.is_up_already());
    }
    let began = Instant::now();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot listen for Ctrl-C")?;
    }
    let (tied, stdin): (&[OsString], Stdio) = match life {
        Life::Own => (&[], Stdio::null()),
        Life::Ours => (&["--tied".into()], Stdio::piped()),
    };
    let mut command = process("hold", &name, tied, live);
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().context("cannot start the process that holds the network")?;
    let said = last_line(&mut child, &stop, output);
    if said.as_deref() != Some(holder::READY) {
        return Err(undone(child, said.is_none(), output));
    }
    Ok(Started { name, took: began.elapsed(), life: child.stdin.take() })
}

/// The last line that the holder says while it starts; empty if it ends without a word. Its notes are passed on. `None`
/// if somebody pressed Ctrl-C before.
fn last_line(child: &mut Child, stop: &AtomicBool, output: &Output) -> Option<String> {
    let stdout = child.stdout.take()?;
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        // Nobody may be waiting any more.
        while lines.next().is_some_and(|line| sender.send(line.clone()).is_ok() && line.starts_with(holder::NOTE)) {}
    });
    loop {
        match lines.recv_timeout(LOOK) {
            Ok(line) => match line.strip_prefix(holder::NOTE) {
                Some(note) => output.note(note),
                None => return Some(line),
            },
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => return None,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Some(String::new()),
        }
    }
}

/// Why there is no network; what was begun has been undone when this returns.
fn undone(mut child: Child, stopped: bool, output: &Output) -> Failure {
    if stopped {
        let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        let asked = Instant::now();
        while matches!(child.try_wait(), Ok(None)) && asked.elapsed() < UNDO {
            std::thread::sleep(LOOK);
        }
        // With the process all that it made is gone.
        let _ = child.kill();
        let _ = child.wait();
        output.note("stopped; nothing is left of it");
        return Failure::Environment(anyhow!("the network was not started"));
    }
    match child.wait_with_output() {
        Ok(done) => {
            let said = said(&done.stderr);
            anyhow!("{}", if said.is_empty() { "the network did not start".to_owned() } else { said }).into()
        }
        Err(error) => anyhow::Error::from(error).context("cannot wait for the holder").into(),
    }
}
