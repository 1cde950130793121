//! Supervises the process of a store of resilient state, of the operator of the stores, or of a memory server.
//!
//! The process runs in the namespace of its node, from where it reaches the switches over its link.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use lab::Size;
use ports::namespace::Namespace;

use crate::LabError;
use crate::child_process::{self, ChildProcess};
use crate::host_namespace::INTERFACE;
use crate::relaunch::{self, ProcessArguments, ProcessRole};
use crate::request_error::RequestError;
use crate::run_directory::{ProcessTable, RunDirectory};
use crate::switch_status::SwitchStatus;
use crate::switch_thread::SwitchCommand;

/// Interval at which the process is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The kind of a process that serves switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberKind {
    /// A store.
    Store {
        /// Whether it keeps its rows on disk.
        is_durable: bool,
    },
    /// The operator of the stores.
    Operator,
    /// A memory server.
    Memory {
        /// Its address.
        address: Ipv4Addr,
        /// The memory that it lends.
        size: Size,
    },
}

/// A store, the operator or a memory server, and its process.
pub struct MemberProcess {
    name: String,
    lab: String,
    kind: MemberKind,
    namespace: Arc<Namespace>,
    arguments: Arc<dyn ProcessArguments>,
    table: Arc<ProcessTable>,
    log: PathBuf,
    process: Option<ChildProcess>,
    /// The reason for which there is no process, unless a crash was requested.
    why: Option<String>,
}

impl MemberProcess {
    /// Returns a member without a process.
    pub fn new(
        (lab, name, kind): (&str, &str, MemberKind),
        namespace: Arc<Namespace>,
        arguments: Arc<dyn ProcessArguments>,
        table: Arc<ProcessTable>,
    ) -> MemberProcess {
        MemberProcess {
            name: name.to_owned(),
            lab: lab.to_owned(),
            kind,
            namespace,
            arguments,
            table,
            log: RunDirectory::log(lab, name),
            process: None,
            why: None,
        }
    }

    /// Starts the process without waiting until it is ready.
    pub fn start(&mut self) -> Result<(), LabError> {
        let role = match self.kind {
            MemberKind::Store { is_durable } => ProcessRole::Store { lab: &self.lab, store: &self.name, is_durable },
            MemberKind::Operator => ProcessRole::Operator { lab: &self.lab },
            MemberKind::Memory { address, size } => {
                ProcessRole::MemoryServer { interface: INTERFACE, address, memory: size }
            }
        };
        let mut command = relaunch::command_in(&self.namespace, &*self.arguments, role)?;
        command.stdin(Stdio::null());
        self.process = Some(ChildProcess::start(command, &self.name, &self.log, &self.table)?);
        self.why = None;
        Ok(())
    }

    /// Waits until the process serves.
    pub fn wait_until_ready(&mut self) -> Result<(), LabError> {
        let Some(process) = &mut self.process else { return Ok(()) };
        if process.wait_until_ready()? {
            return Ok(());
        }
        self.kill();
        Err(LabError::NotStarted { node: self.name.clone(), stderr: child_process::error_in(&self.log) })
    }

    /// Supervises the process until a command ends it or all senders of commands are dropped.
    pub fn supervise(mut self, commands: &Receiver<SwitchCommand>) {
        loop {
            match commands.recv_timeout(CHECK_INTERVAL) {
                Ok(SwitchCommand::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    return self.process.take().into_iter().for_each(ChildProcess::end);
                }
                Ok(command) => self.carry_out(command),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.check();
        }
    }

    /// Checks whether the process has ended.
    fn check(&mut self) {
        if let Some(cause) = self.process.as_mut().and_then(ChildProcess::end_cause) {
            self.process = None;
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            let error = log.lines().find_map(|line| line.strip_prefix("error: "));
            self.why = Some(error.map_or(cause.clone(), |error| format!("{cause}: {error}")));
        }
    }

    fn carry_out(&mut self, command: SwitchCommand) {
        match command {
            SwitchCommand::Fail(true) => {
                self.kill();
                self.why = None;
            }
            SwitchCommand::Fail(false) if self.process.is_some() => {}
            SwitchCommand::Fail(false) => {
                if let Err(failure) = self.start().and_then(|()| self.wait_until_ready()) {
                    self.kill();
                    self.why = Some(failure.sentence());
                }
            }
            SwitchCommand::Suspend { is_suspended, done } => {
                let _ = done.send(self.suspend(is_suspended));
            }
            SwitchCommand::Status(to) => {
                self.check();
                // The receiver may have been dropped.
                let _ = to.send(self.status());
            }
            SwitchCommand::Link { done, .. }
            | SwitchCommand::Slow { done, .. }
            | SwitchCommand::Hold { done, .. }
            | SwitchCommand::Capture { done, .. } => {
                let _ = done.send(Err(RequestError::OnlyForDaemon));
            }
            SwitchCommand::FarEnd { .. } | SwitchCommand::Stop => {}
        }
    }

    fn suspend(&mut self, is_suspended: bool) -> Result<(), RequestError> {
        self.check();
        let Some(process) = &self.process else { return Err(RequestError::Crashed(self.name.clone())) };
        process.suspend(is_suspended).map_err(|error| RequestError::Signal(error.sentence()))
    }

    fn status(&self) -> SwitchStatus {
        SwitchStatus {
            failed: self.process.is_none(),
            is_suspended: self.process.as_ref().is_some_and(ChildProcess::is_stopped),
            why: self.why.clone(),
            pid: self.process.as_ref().map(|process| process.identity.pid),
            ..SwitchStatus::default()
        }
    }

    fn kill(&mut self) {
        self.process.take().into_iter().for_each(ChildProcess::kill);
    }
}

impl Drop for MemberProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
