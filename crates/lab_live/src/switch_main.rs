//! Runs the process of one switch: `lab up --isolate`.
//!
//! It runs in the daemon's namespace, finds its ports there by their names, and serves the daemon's requests on a
//! socket of its own. Its standard output is one end of a socket pair. When the daemon ends, the other end is closed,
//! and the process ends too.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use privileges::KeptAccess;
use rustix::net::{SendFlags, send};
use serde_json::Value;

use crate::LabError;
use crate::capture;
use crate::child_process::READY;
use crate::controller::ControllerListener;
use crate::error::failed_to;
use crate::live_network::LiveNetwork;
use crate::neighbours::Neighbours;
use crate::protocol::LabRequest;
use crate::request_error::RequestError;
use crate::run_directory::RunDirectory;
use crate::socket::{self, RequestOutcome, SocketLimits};
use crate::switch_thread::{SwitchCommand, SwitchThread};
use crate::veth_links;

/// The socket to the daemon of a lab, held by the process of a switch, store, operator, memory server or shim.
pub struct DaemonConnection(UnixStream);

/// Reports to the daemon of a lab, which never wait for it.
pub struct DaemonReports {
    stream: UnixStream,
    /// The rest of the last report, for which the socket had no room.
    pending: Vec<u8>,
}

impl DaemonReports {
    /// Sends a report. It is lost if the daemon has not taken the one before.
    pub fn send(&mut self, report: &Value) {
        if self.pending.is_empty() {
            self.pending = format!("{report}\n").into_bytes();
        }
        // The thread that watches the socket ends the process when the daemon ends.
        if let Ok(sent) = send(&self.stream, &self.pending, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            self.pending.drain(..sent);
        }
    }
}

impl DaemonConnection {
    /// Takes the socket that the daemon passed as standard output. From now on, the process ends when the daemon does.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be used as a socket.
    pub fn from_stdout() -> Result<DaemonConnection, LabError> {
        let daemon =
            std::io::stdout().as_fd().try_clone_to_owned().map_err(failed_to("use the socket to the daemon"))?;
        let daemon = UnixStream::from(daemon);
        let mut life = daemon.try_clone().map_err(failed_to("share a socket"))?;
        std::thread::spawn(move || {
            // The restriction of `switch_main` comes later, and does not reach this thread.
            privileges::restrict_idle_thread();
            // Nothing is ever written to it: this returns when the daemon ends.
            let _ = life.read(&mut [0]);
            std::process::exit(0);
        });
        Ok(DaemonConnection(daemon))
    }

    /// Reports to the daemon that the process is ready.
    ///
    /// # Errors
    /// Returns an error if the daemon has ended.
    pub fn report_ready(&mut self) -> Result<(), LabError> {
        self.0.write_all(format!("{READY}\n").as_bytes()).map_err(failed_to("reach the daemon"))
    }

    /// Returns the reports to the daemon of a process that is ready.
    pub fn into_reports(self) -> DaemonReports {
        DaemonReports { stream: self.0, pending: Vec::new() }
    }
}

/// Runs a switch until the daemon ends or asks for the end.
///
/// # Errors
/// Returns an error if the switch cannot start.
pub fn switch_main<N: LiveNetwork + ?Sized>(
    mut daemon: DaemonConnection,
    network: Arc<N>,
    lab: &str,
    switch: &str,
    seed: u64,
) -> Result<(), LabError> {
    let switches = &network.topology().switches;
    let at = switches.iter().position(|known| known.name == switch);
    let at = at.ok_or_else(|| RequestError::no_switch(switch, network.topology()))?;
    let listener = match network.endpoint(at) {
        Some(endpoint) => {
            let listener = std::io::stdin().as_fd().try_clone_to_owned();
            let listener = listener.map_err(failed_to("use the socket for controllers"))?;
            Some(ControllerListener::new(TcpListener::from(listener), Arc::clone(&network), at, seed, endpoint))
        }
        None => None,
    };
    if !network.topology().stores().is_empty() {
        network.read_cluster(&RunDirectory::cluster(lab))?;
    }
    let start = Instant::now();
    let ports = veth_links::switch_ports(network.topology(), at, &network.kernel_plan(at), seed)?;
    let socket = socket::listen(&RunDirectory::switch_socket(lab, at))?;
    let (commands, receiver) = channel();
    let around = Neighbours::default();
    // Everything is open now. The switch, and the threads that parse packets and serve controllers, start without
    // privileges; but loading a program into the kernel needs some.
    let has_kernel_ports = !network.kernel_plan(at).ports.is_empty();
    let restrict = || privileges::restrict_thread(&KeptAccess::default());
    if !has_kernel_ports {
        restrict()?;
    }
    let mut thread = SwitchThread::new((network, at, seed), listener, around, ports, receiver, start)?;
    if has_kernel_ports {
        restrict()?;
    }
    thread.start_services();
    let thread = std::thread::Builder::new().name(switch.to_owned()).spawn(move || thread.run());
    let thread = thread.map_err(failed_to("start a switch"))?;
    daemon.report_ready()?;
    let (name, to_switch) = (switch.to_owned(), commands.clone());
    let handle = move |request: &LabRequest| handle(request, (&name, &to_switch), start);
    socket::serve(&socket, SocketLimits::default(), || thread.is_finished(), handle);
    // The switch may have ended already.
    let _ = commands.send(SwitchCommand::Stop);
    thread.join().map_err(|_| LabError::SwitchPanicked)
}

/// Handles a request of the daemon.
fn handle(request: &LabRequest, (name, commands): (&str, &Sender<SwitchCommand>), start: Instant) -> RequestOutcome {
    let result = match *request {
        LabRequest::Port { port, up } => {
            socket::carry_out((name, commands), |done| SwitchCommand::Link { port, up, done })
        }
        LabRequest::FarEnd { port, runs } => {
            // The switch may have ended already.
            let _ = commands.send(SwitchCommand::FarEnd { port, runs });
            Ok(())
        }
        LabRequest::Slow { port, by_ns } => {
            socket::carry_out((name, commands), |done| SwitchCommand::Slow { port, by_ns, done })
        }
        LabRequest::Hold { is_held } => {
            socket::carry_out((name, commands), |done| SwitchCommand::Hold { is_held, done })
        }
        LabRequest::CapturePort { port } => {
            let (name, commands) = (name.to_owned(), commands.clone());
            let run = move |stream: &UnixStream| capture::run((&name, &commands), port, start, stream);
            return RequestOutcome::Capture(Box::new(run));
        }
        LabRequest::Status => {
            let (to, status) = channel();
            let sent = commands.send(SwitchCommand::Status(to)).is_ok();
            let status = sent.then(|| status.recv_timeout(socket::COMMAND_TIMEOUT).ok()).flatten();
            let status = status.and_then(|status| serde_json::to_value(status).ok());
            return RequestOutcome::Response(status.ok_or_else(|| RequestError::Timeout(name.to_owned())));
        }
        _ => return RequestOutcome::Response(Err(RequestError::OnlyForDaemon)),
    };
    RequestOutcome::Response(result.map(|()| Value::Null))
}
