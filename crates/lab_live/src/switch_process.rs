//! Supervises a switch that runs in a process of its own.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use ports::namespace::Namespace;
use serde_json::Value;

use crate::LabError;
use crate::child_process::{self, ChildProcess};
use crate::connection::{self, DeadlineStream};
use crate::controller;
use crate::error::failed_to;
use crate::neighbours::Neighbours;
use crate::protocol::{LabRequest, LabResponse};
use crate::relaunch::{self, ProcessArguments, ProcessRole};
use crate::request_error::{ProcessFailure, RequestError};
use crate::run_directory::ProcessTable;
use crate::switch_status::{PortStatus, SwitchStatus};
use crate::switch_thread::SwitchCommand;

/// Interval at which the process is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Maximum time in which the process responds.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(3);

/// A switch and its process.
pub struct SwitchProcess {
    /// Name of the switch.
    name: String,
    /// Name of the lab.
    lab: String,
    arguments: Arc<dyn ProcessArguments>,
    table: Arc<ProcessTable>,
    socket: PathBuf,
    log: PathBuf,
    /// The socket for controllers.
    listener: Option<TcpListener>,
    process: Option<ChildProcess>,
    /// The reason for which there is no process, unless a crash was requested.
    why: Option<String>,
    /// The settings of the ports; a new process gets them again.
    ports: BTreeMap<u32, PortSettings>,
    neighbours: Neighbours,
    /// The interfaces of links to hosts, in the daemon's namespace.
    host_interfaces: Vec<String>,
    /// Whether the kernel may go on forwarding while the process is suspended, unless the process forbids it.
    has_kernel_ports: bool,
}

/// The settings of a port that requests changed.
#[derive(Clone, Copy)]
struct PortSettings {
    up: bool,
    far_end_runs: bool,
    by_ns: u64,
}

impl SwitchProcess {
    /// Returns a switch without a process.
    pub fn new(
        (lab, name): (&str, &str),
        arguments: Arc<dyn ProcessArguments>,
        table: Arc<ProcessTable>,
        (socket, log): (PathBuf, PathBuf),
        listener: Option<TcpListener>,
        ports: impl Iterator<Item = u32>,
        (neighbours, host_interfaces, has_kernel_ports): (Neighbours, Vec<String>, bool),
    ) -> SwitchProcess {
        let ports = ports.map(|port| (port, PortSettings { up: true, far_end_runs: true, by_ns: 0 })).collect();
        SwitchProcess {
            lab: lab.to_owned(),
            name: name.to_owned(),
            arguments,
            table,
            socket,
            log,
            listener,
            process: None,
            why: None,
            ports,
            neighbours,
            host_interfaces,
            has_kernel_ports,
        }
    }

    /// Starts the process without waiting until it is ready.
    pub fn start(&mut self) -> Result<(), LabError> {
        // The previous process may have left its socket.
        let _ = std::fs::remove_file(&self.socket);
        let stdin = match &self.listener {
            Some(listener) => Stdio::from(OwnedFd::from(listener.try_clone().map_err(failed_to("share a socket"))?)),
            None => Stdio::null(),
        };
        let role = ProcessRole::Switch { lab: &self.lab, switch: &self.name };
        let mut command = relaunch::command(&*self.arguments, role);
        command.stdin(stdin);
        self.process = Some(ChildProcess::start(command, &self.name, &self.log, &self.table)?);
        self.why = None;
        Ok(())
    }

    /// Waits until the process runs its switch.
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
                Ok(SwitchCommand::Stop) | Err(RecvTimeoutError::Disconnected) => return self.end(),
                Ok(command) => self.carry_out(command),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.check();
            if let (None, Some(listener)) = (&self.process, &self.listener) {
                controller::reject_all(listener);
            }
        }
    }

    /// Checks whether the process has ended.
    fn check(&mut self) {
        if let Some(cause) = self.process.as_mut().and_then(ChildProcess::end_cause) {
            self.process = None;
            self.why = Some(cause);
            self.set_light(false);
        }
    }

    fn carry_out(&mut self, command: SwitchCommand) {
        match command {
            SwitchCommand::Fail(true) => {
                self.kill();
                self.why = None;
            }
            SwitchCommand::Fail(false) if self.process.is_some() => {}
            SwitchCommand::Fail(false) => self.restart(),
            SwitchCommand::Link { port, up, done } => {
                self.ports.entry(port).and_modify(|settings| settings.up = up);
                // The receiver may have been dropped.
                let _ = done.send(self.change_port(&LabRequest::Port { port, up }));
            }
            SwitchCommand::FarEnd { port, runs } => {
                self.ports.entry(port).and_modify(|settings| settings.far_end_runs = runs);
                // A process that does not respond gets the state when it continues or restarts.
                let _ = self.request(&LabRequest::FarEnd { port, runs });
            }
            SwitchCommand::Suspend { is_suspended, done } => {
                let _ = done.send(self.suspend(is_suspended));
            }
            SwitchCommand::Slow { port, by_ns, done } => {
                self.ports.entry(port).and_modify(|settings| settings.by_ns = by_ns);
                let _ = done.send(self.change_port(&LabRequest::Slow { port, by_ns }));
            }
            SwitchCommand::Status(to) => {
                // The receiver may have been dropped.
                let _ = to.send(self.status());
            }
            SwitchCommand::Capture { done, .. } => {
                let _ = done.send(Err(RequestError::CapturedByProcess(self.name.clone())));
            }
            // The supervisor itself sends it to the process.
            SwitchCommand::Hold { .. } | SwitchCommand::Stop => {}
        }
    }

    /// Sends a request that changes a port. A process that has ended gets the change when it starts again.
    fn change_port(&mut self, request: &LabRequest) -> Result<(), RequestError> {
        match self.request(request) {
            Ok(_) => Ok(()),
            Err(ProcessFailure::Closed) if self.has_ended() => Ok(()),
            Err(failure) => Err(RequestError::Process { switch: self.name.clone(), failure }),
        }
    }

    /// Restarts the process with the settings of its ports.
    fn restart(&mut self) {
        // The process opens its interfaces.
        self.set_interfaces_up(true);
        if let Err(failure) = self.start().and_then(|()| self.wait_until_ready()).and_then(|()| self.restore_ports()) {
            self.kill();
            self.why = Some(failure.sentence());
            return;
        }
        self.neighbours.show(true);
    }

    /// Suspends the process, or lets it continue and sends the changes that it has missed.
    fn suspend(&mut self, is_suspended: bool) -> Result<(), RequestError> {
        self.check();
        if self.has_kernel_ports && is_suspended {
            // A process that does not respond is suspended all the same.
            let _ = self.request(&LabRequest::Hold { is_held: true });
        }
        let Some(process) = &self.process else { return Err(RequestError::Crashed(self.name.clone())) };
        process.suspend(is_suspended).map_err(|error| RequestError::Signal(error.sentence()))?;
        if !is_suspended {
            let hold = self.has_kernel_ports.then_some(LabRequest::Hold { is_held: false });
            let far_ends = self.ports.iter();
            let far_ends = far_ends.map(|(&port, settings)| LabRequest::FarEnd { port, runs: settings.far_end_runs });
            for request in far_ends.chain(hold) {
                let switch = self.name.clone();
                self.request(&request).map_err(|failure| RequestError::Process { switch, failure })?;
            }
        }
        Ok(())
    }

    /// Shows the neighbours and hosts whether the switch runs.
    fn set_light(&self, runs: bool) {
        self.neighbours.show(runs);
        self.set_interfaces_up(runs);
    }

    /// Sets the interfaces to hosts up or down: a host whose switch has ended sees no carrier.
    fn set_interfaces_up(&self, up: bool) {
        let Ok(own) = Namespace::current() else { return };
        for interface in &self.host_interfaces {
            // The lab may be ending.
            let _ = if up { own.set_up(interface) } else { own.set_down(interface) };
        }
    }

    /// Sends the settings of the ports to a new process.
    fn restore_ports(&self) -> Result<(), LabError> {
        let send = |request| self.request(&request).map_err(LabError::NotRestored);
        for (&port, settings) in &self.ports {
            if !settings.up {
                send(LabRequest::Port { port, up: false })?;
            }
            if !settings.far_end_runs {
                send(LabRequest::FarEnd { port, runs: false })?;
            }
            if settings.by_ns > 0 {
                send(LabRequest::Slow { port, by_ns: settings.by_ns })?;
            }
        }
        Ok(())
    }

    /// Waits for the end of a process whose sockets are closed; false if it still runs.
    fn has_ended(&mut self) -> bool {
        let begin = Instant::now();
        while self.process.is_some() && begin.elapsed() < RESPONSE_TIMEOUT {
            self.check();
            std::thread::sleep(Duration::from_millis(1));
        }
        self.process.is_none()
    }

    fn status(&mut self) -> SwitchStatus {
        let pid = self.process.as_ref().map(|process| process.child.id());
        let why = match self.request(&LabRequest::Status) {
            Ok(response) => match serde_json::from_value(response) {
                Ok(status) => return SwitchStatus { pid, ..status },
                Err(error) => format!("invalid response: {error}"),
            },
            Err(ProcessFailure::Closed) if self.has_ended() => String::new(),
            Err(failure) => format!("it {failure}"),
        };
        let ended = self.process.is_none();
        let (why, pid) = if ended { (self.why.clone(), None) } else { (Some(why), pid) };
        let ports = self.ports.iter().map(|(port, settings)| PortStatus {
            port: *port,
            up: settings.up && settings.far_end_runs,
            ..Default::default()
        });
        SwitchStatus { failed: true, why, pid, ports: ports.collect(), ..SwitchStatus::default() }
    }

    /// Sends a request to the process and returns the response.
    fn request(&self, request: &LabRequest) -> Result<Value, ProcessFailure> {
        if self.process.as_ref().is_some_and(ChildProcess::is_stopped) {
            return Err(ProcessFailure::Silent);
        }
        let exchange = || -> std::io::Result<String> {
            let stream = connection::connect(&self.socket)?;
            let mut stream = DeadlineStream::new(&stream, RESPONSE_TIMEOUT);
            stream.write_all(request.line().as_bytes())?;
            let mut response = String::new();
            BufReader::new(stream).read_line(&mut response)?;
            Ok(response)
        };
        match exchange() {
            Ok(response) => LabResponse::read(&response).map_err(|error| match error {
                LabError::Refused(why) => ProcessFailure::Refused(Box::new(why)),
                // The process ended before its response was complete.
                _ => ProcessFailure::Closed,
            }),
            Err(error) if connection::is_timeout(&error) => Err(ProcessFailure::Silent),
            Err(_) => Err(ProcessFailure::Closed),
        }
    }

    fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
            self.set_light(false);
        }
    }

    /// Ends the process.
    fn end(mut self) {
        self.process.take().into_iter().for_each(ChildProcess::end);
    }
}

impl Drop for SwitchProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::sync::mpsc::channel;

    use rustix::process::Signal;

    use super::*;
    use crate::capture;
    use crate::process_identity::ProcessIdentity;
    use crate::test_network::TestDirectory;

    struct NoArguments;

    impl ProcessArguments for NoArguments {
        fn arguments(&self, _: ProcessRole<'_>) -> Vec<OsString> {
            Vec::new()
        }
    }

    /// Returns a switch that has no process yet.
    fn switch(socket: PathBuf) -> SwitchProcess {
        let (arguments, table) = (Arc::new(NoArguments), Arc::new(ProcessTable::unwritten()));
        let files = (socket, PathBuf::from("/nonexistent/log"));
        SwitchProcess::new(("lab", "s1"), arguments, table, files, None, std::iter::once(1), Default::default())
    }

    /// Starts a process without a switch, which is stopped.
    fn stopped_process() -> ChildProcess {
        let child = std::process::Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let identity = ProcessIdentity::of(child.id());
        identity.signal(Signal::STOP).unwrap();
        while !identity.is_stopped() {
            std::thread::yield_now();
        }
        ChildProcess { child, identity, connection: UnixStream::pair().unwrap().0 }
    }

    #[test]
    fn a_capture_is_refused_at_once() {
        let mut process = switch(PathBuf::from("/nonexistent/socket"));
        let ((to, _frames), (done, outcome)) = (capture::channel(), channel());
        process.carry_out(SwitchCommand::Capture { port: 1, to, done });
        let refused = Err(RequestError::CapturedByProcess("s1".to_owned()));
        assert_eq!(outcome.try_recv().expect("a response without a wait"), refused);
    }

    #[test]
    fn a_full_queue_of_connections_is_no_reason_to_wait() {
        let directory = TestDirectory::new("full-queue");
        let path = directory.path("socket");
        let listener = UnixListener::bind(&path).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let _waiting = UnixStream::connect(&path).unwrap();
        assert_eq!(switch(path).request(&LabRequest::Status).err(), Some(ProcessFailure::Silent));
    }

    #[test]
    fn a_stopped_process_is_reported_and_can_be_ended() {
        let directory = TestDirectory::new("stopped-process");
        let path = directory.path("socket");
        // Accepts connections for the process, so that only its state shows that it is stopped.
        let _listener = UnixListener::bind(&path).unwrap();
        let child = stopped_process();
        let identity = child.identity;
        let mut switch = switch(path);
        switch.process = Some(child);
        let status = switch.status();
        assert_eq!((status.failed, status.pid), (true, Some(identity.pid)));
        assert_eq!(status.why.as_deref(), Some("it did not respond; it may be stopped"));
        switch.end();
        assert!(!identity.is_running());
    }
}
