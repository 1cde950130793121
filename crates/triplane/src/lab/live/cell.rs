//! A switch in a process of its own, as the holder sees it: started, told, found to be gone, killed, started again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use serde_json::Value;

use super::super::args::HoldArgs;
use super::controlled;
use super::protocol::{Answer, Request};
use super::room::Roster;
use super::station::{Order, PortStatus, Status};
use super::{solo, start};
use crate::output::Failure;

/// How often the process is looked after.
const LOOK: Duration = Duration::from_millis(20);

/// How long a process may take to begin: it compiles its program.
const BEGIN: Duration = Duration::from_secs(60);

/// How long a process may take to answer, to end by itself, or to be gone when its sockets are.
const PATIENCE: Duration = Duration::from_secs(3);

/// A switch and its process.
pub struct Cell {
    /// The switch's name.
    name: String,
    args: Arc<HoldArgs>,
    roster: Arc<Roster>,
    socket: PathBuf,
    log: PathBuf,
    /// Where controllers connect.
    listener: Option<TcpListener>,
    process: Option<Process>,
    /// Why there is no process, if nobody asked for that.
    why: Option<String>,
    /// What the ports were told, for the next process.
    ports: BTreeMap<u32, Told>,
}

/// What a port was told.
#[derive(Clone, Copy)]
struct Told {
    up: bool,
    by_ns: u64,
}

/// Why a process did not do what it was asked.
enum Unanswered {
    /// Its sockets are closed.
    Closed,
    /// It says nothing: it may be stopped.
    Silent,
    /// It says why.
    Refused(String),
}

impl Unanswered {
    fn sentence(&self) -> String {
        match self {
            Unanswered::Closed => "cannot be reached".to_owned(),
            Unanswered::Silent => "does not answer; it may be stopped".to_owned(),
            Unanswered::Refused(why) => format!("refuses: {why}"),
        }
    }
}

struct Process {
    child: Child,
    /// The process ends when this is closed.
    life: UnixStream,
}

impl Cell {
    /// A switch that is not there yet.
    pub fn new(
        name: &str,
        args: Arc<HoldArgs>,
        roster: Arc<Roster>,
        (socket, log): (PathBuf, PathBuf),
        listener: Option<TcpListener>,
        ports: impl Iterator<Item = u32>,
    ) -> Cell {
        let ports = ports.map(|port| (port, Told { up: true, by_ns: 0 })).collect();
        Cell { name: name.to_owned(), args, roster, socket, log, listener, process: None, why: None, ports }
    }

    /// Starts the process, which then takes its time.
    pub fn begin(&mut self) -> Result<(), Failure> {
        // The last one's socket.
        let _ = std::fs::remove_file(&self.socket);
        let (life, its) = UnixStream::pair().context("cannot make a pair of sockets")?;
        let stdin = match &self.listener {
            Some(listener) => Stdio::from(OwnedFd::from(listener.try_clone().context("cannot share a socket")?)),
            None => Stdio::null(),
        };
        let log = File::create(&self.log).with_context(|| format!("cannot write {}", self.log.display()))?;
        let mut command =
            start::process("solo", &self.args.name, &["--switch".into(), (&self.name).into()], &self.args.live);
        command.stdin(stdin).stdout(OwnedFd::from(its)).stderr(log).process_group(0);
        let mut child = command.spawn().with_context(|| format!("cannot start a process for `{}`", self.name))?;
        self.roster.enter(&self.name, child.id()).inspect_err(|_| {
            // One that nobody knows of must not run.
            let _ = child.kill();
            let _ = child.wait();
        })?;
        self.process = Some(Process { child, life });
        self.why = None;
        Ok(())
    }

    /// Waits until the process runs its switch.
    pub fn wait(&mut self) -> Result<(), Failure> {
        let Some(process) = &mut self.process else { return Ok(()) };
        let mut line = String::new();
        process.life.set_read_timeout(Some(BEGIN)).context("cannot wait for a process")?;
        let _ = BufReader::new((&process.life).take(64)).read_line(&mut line);
        if line.trim() == solo::READY {
            return Ok(());
        }
        self.kill();
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let said = said.trim().trim_start_matches("error: ");
        Err(anyhow!("`{}` did not start{}{said}", self.name, if said.is_empty() { "" } else { ": " }).into())
    }

    /// Looks after the process until it is told to stop, or nobody is left to tell it.
    pub fn run(mut self, orders: &Receiver<Order>) {
        loop {
            match orders.recv_timeout(LOOK) {
                Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => return self.end(),
                Ok(order) => self.obey(order),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.look();
            if let (None, Some(listener)) = (&self.process, &self.listener) {
                controlled::turn_away(listener);
            }
        }
    }

    /// Sees whether the process has ended.
    fn look(&mut self) {
        if let Some(process) = &mut self.process
            && let Ok(Some(status)) = process.child.try_wait()
        {
            self.process = None;
            self.why = Some(cause(status));
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Fail(true) => {
                self.kill();
                self.why = None;
            }
            Order::Fail(false) if self.process.is_some() => {}
            Order::Fail(false) => self.again(),
            Order::Link { port, up, done } => {
                self.ports.entry(port).and_modify(|told| told.up = up);
                // Whoever wants to know may be gone.
                let _ = done.send(self.pass_on(&Request::Port { port, up }));
            }
            Order::Slow { port, by_ns, done } => {
                self.ports.entry(port).and_modify(|told| told.by_ns = by_ns);
                let _ = done.send(self.pass_on(&Request::Slow { port, by_ns }));
            }
            Order::Status(to) => {
                // Whoever asked may be gone.
                let _ = to.send(self.status());
            }
            // Captures are the process's own.
            Order::Capture { .. } | Order::Stop => {}
        }
    }

    /// Tells the process something that holds for its ports. One that is gone is told when it is there again.
    fn pass_on(&mut self, request: &Request) -> Result<(), String> {
        match self.ask(request) {
            Ok(_) => Ok(()),
            Err(Unanswered::Closed) if self.has_ended() => Ok(()),
            Err(unanswered) => Err(format!("`{}` {}", self.name, unanswered.sentence())),
        }
    }

    /// Starts the process anew; what its ports were told holds.
    fn again(&mut self) {
        if let Err(failure) = self.begin().and_then(|()| self.wait()).and_then(|()| self.remind()) {
            self.kill();
            self.why = failure.sentence();
        }
    }

    /// Tells a new process what the ports were told.
    fn remind(&self) -> Result<(), Failure> {
        let ask = |request| self.ask(&request).map_err(|unanswered| anyhow!("{}", unanswered.sentence()));
        for (&port, told) in &self.ports {
            if !told.up {
                ask(Request::Port { port, up: false })?;
            }
            if told.by_ns > 0 {
                ask(Request::Slow { port, by_ns: told.by_ns })?;
            }
        }
        Ok(())
    }

    /// Waits for the end of a process whose sockets are closed, which comes a moment later; false if it does not.
    fn has_ended(&mut self) -> bool {
        let asked = Instant::now();
        while self.process.is_some() && asked.elapsed() < PATIENCE {
            self.look();
            std::thread::sleep(Duration::from_millis(1));
        }
        self.process.is_none()
    }

    fn status(&mut self) -> Status {
        let pid = self.process.as_ref().map(|process| process.child.id());
        let why = match self.ask(&Request::Status) {
            Ok(answer) => match serde_json::from_value(answer) {
                Ok(status) => return Status { pid, ..status },
                Err(error) => format!("its answer makes no sense: {error}"),
            },
            Err(Unanswered::Closed) if self.has_ended() => String::new(),
            Err(unanswered) => format!("it {}", unanswered.sentence()),
        };
        let ended = self.process.is_none();
        let (why, pid) = if ended { (self.why.clone(), None) } else { (Some(why), pid) };
        let ports = self.ports.iter().map(|(port, told)| PortStatus { port: *port, up: told.up, ..Default::default() });
        Status { failed: true, why, pid, ports: ports.collect(), counters: Vec::new() }
    }

    fn ask(&self, request: &Request) -> Result<Value, Unanswered> {
        let ask = || -> std::io::Result<String> {
            let mut stream = UnixStream::connect(&self.socket)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(request.line().as_bytes())?;
            let mut answer = String::new();
            BufReader::new(stream).read_line(&mut answer)?;
            Ok(answer)
        };
        match ask() {
            Ok(answer) if answer.is_empty() => Err(Unanswered::Closed),
            Ok(answer) => {
                Answer::read(&answer).map_err(|failure| Unanswered::Refused(failure.sentence().unwrap_or_default()))
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                Err(Unanswered::Silent)
            }
            Err(_) => Err(Unanswered::Closed),
        }
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // It may have ended by itself.
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }

    /// Ends the process: by itself when its life is closed, else by force.
    fn end(mut self) {
        let Some(Process { mut child, life }) = self.process.take() else { return };
        drop(life);
        let asked = Instant::now();
        while asked.elapsed() < PATIENCE {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How a process came to its end.
fn cause(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("its process was ended by signal {signal}"),
        (None, code) => format!("its process ended with code {}", code.unwrap_or(0)),
    }
}
