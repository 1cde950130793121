//! The P4Runtime server beside a switch that runs: its options, and the hook that runs its operations.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::{Args, ValueHint};
use ir::Program;
use p4runtime_server::store::Store;
use p4runtime_server::{
    DataPlane, DataPlaneChannels, DataPlaneHandle, Listening, NotificationReceiver, NotificationSender,
    OperationReceiver, Pipeline, Server, Settings, Tls,
};
use runtime::{Hook, HookContext, NotificationSink, Waker};
use switch::{Notification, PacketSwitch};
use v1model::{CPU_PORT, Switch};

use crate::load::{self, ARCHITECTURE, Pem};
use crate::output::{Failure, Output};
use crate::state::State;

/// The port that IANA gave P4Runtime.
const P4RUNTIME_PORT: u16 = 9559;
/// Nobody else reaches this.
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// What a switch is told of its control plane.
#[derive(Args, Debug, Clone)]
pub struct ControlArgs {
    /// Serve P4Runtime, on 127.0.0.1:9559 or on this address: ADDRESS:PORT, or PORT alone for this machine only.
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "", value_parser = address, help_heading = "P4Runtime")]
    pub p4runtime: Option<SocketAddr>,

    /// The device id that controllers ask for.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "P4Runtime", value_parser = clap::value_parser!(u64).range(1..))]
    pub device_id: u64,

    /// The port number of packets to and from the controller.
    #[arg(long, value_name = "N", default_value_t = CPU_PORT, help_heading = "P4Runtime")]
    pub cpu_port: u32,

    /// Keep the pipeline and what controllers write in this directory, and go on with it at the next start.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "p4runtime", help_heading = "P4Runtime")]
    pub state_dir: Option<PathBuf>,

    /// Serve over TLS with this certificate (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_key", requires = "p4runtime", help_heading = "P4Runtime")]
    pub tls_cert: Option<PathBuf>,

    /// The key that belongs to the certificate (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert", help_heading = "P4Runtime")]
    pub tls_key: Option<PathBuf>,

    /// Let only clients in whose certificate this authority signed (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert", help_heading = "P4Runtime")]
    pub tls_ca: Option<PathBuf>,
}

/// A server beside a switch.
pub struct Served {
    /// The server; it stops when this is dropped.
    pub listening: Listening,
    /// The sink of the switch's notifications.
    pub sink: ServerSink,
    /// The hook that runs the server's operations.
    pub hook: OperationHook,
}

/// The channels between a server and a switch.
pub struct Channels {
    /// The server's end of the channel to the switch.
    pub handle: DataPlaneHandle,
    /// The switch's end of the channel to the server.
    pub sink: ServerSink,
    /// The server's end of the channel from the switch.
    pub notifications: NotificationReceiver,
}

/// Passes a switch's notifications to a P4Runtime server.
#[derive(Clone)]
pub struct ServerSink(NotificationSender);

impl NotificationSink for ServerSink {
    fn receive(&self, program: &Arc<Program>, notifications: &[Notification]) {
        self.0.send(program, notifications.to_vec());
    }
}

/// Runs the operations of a P4Runtime server on the switch, between two batches of packets.
pub struct OperationHook {
    operations: OperationReceiver,
    /// Armed while no operation waits.
    waker: Waker,
    /// Whether the last poll left operations in the queue.
    has_more: bool,
}

/// Starts a server for a switch that is about to run. What was kept is written to it.
pub fn serve(
    args: &ControlArgs,
    pipeline: Pipeline,
    state: Option<State>,
    switch: &mut Switch,
    output: &Output,
) -> Result<Served, Failure> {
    let address = args.p4runtime.unwrap_or(SocketAddr::new(HERE, P4RUNTIME_PORT));
    let tls = tls([&args.tls_cert, &args.tls_key, &args.tls_ca])?;
    let config = switch.config().clone();
    let settings = Settings {
        device_id: args.device_id,
        ..Settings::new(ARCHITECTURE, config.ports.iter().map(|port| port.0), config.cpu_port.map(|port| port.0))
    };
    let builder_output = *output;
    let builder = p4runtime_server::switch_builder(move |program| {
        let switch = Switch::new(program, config.clone())?;
        builder_output.note_if_interpreted(switch.why_interpreted());
        Ok::<_, v1model::LoadError>(switch)
    });
    let (channels, hook) = connect(builder.clone())?;
    let server = Server::new(settings);
    let server = match &state {
        Some(state) => state.restore(server, pipeline, switch, &builder, output),
        None => server.with_pipeline(pipeline, switch),
    };
    let store = state.map(|state| Box::new(state.store) as Box<dyn Store>);
    let secure = tls.is_some();
    let listening =
        p4runtime_server::listen_with_store(server, channels.handle, channels.notifications, address, tls, store);
    let listening = listening.map_err(anyhow::Error::from)?;
    let address = listening.address();
    output.note(&match (secure, address.ip().is_loopback()) {
        (true, _) => format!("P4Runtime on {address}, over TLS, device {}", args.device_id),
        (false, true) => {
            format!("P4Runtime on {address}, without TLS, for this machine only, device {}", args.device_id)
        }
        (false, false) => format!(
            "P4Runtime on {address}, device {}, without TLS: whoever reaches this address controls the switch",
            args.device_id
        ),
    });
    Ok(Served { listening, sink: channels.sink, hook })
}

/// Creates the channels between a server and a switch, and the hook that runs the server's operations.
///
/// # Errors
/// If the process can open no more descriptors.
pub fn connect(builder: p4runtime_server::SwitchBuilder) -> Result<(Channels, OperationHook), Failure> {
    let waker = Waker::new().context("cannot make a pair of sockets")?;
    waker.arm();
    let server_waker = waker.clone();
    let DataPlaneChannels { handle, operations, notifier, notifications } =
        DataPlaneChannels::new(builder, Arc::new(move || server_waker.wake()));
    let hook = OperationHook { operations, waker, has_more: false };
    Ok((Channels { handle, sink: ServerSink(notifier), notifications }, hook))
}

impl OperationHook {
    /// Whether an operation waits.
    pub fn is_due(&self) -> bool {
        self.has_more || !self.waker.is_armed()
    }

    /// Returns the descriptor that is readable when an operation waits.
    pub fn poll_fd(&self) -> RawFd {
        self.waker.fd()
    }
}

impl<S: PacketSwitch> Hook<S> for OperationHook {
    fn poll(&mut self, context: &mut HookContext<'_, S>) {
        if !OperationHook::is_due(self) {
            return;
        }
        // From here on, an operation that is queued makes the hook due again.
        self.waker.disarm();
        self.waker.arm();
        let HookContext { now, switch, output, stop_others, .. } = context;
        self.has_more = self.operations.poll(&mut DataPlane {
            switch: &mut **switch,
            now: *now,
            output,
            stop_others: *stop_others,
        });
    }

    fn is_due(&self) -> bool {
        OperationHook::is_due(self)
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(OperationHook::poll_fd(self))
    }
}

/// What `--p4runtime` says.
fn address(text: &str) -> Result<SocketAddr, String> {
    address_or(text, P4RUNTIME_PORT)
}

/// An address and a port, of which either may be left out.
pub fn address_or(text: &str, port: u16) -> Result<SocketAddr, String> {
    if text.is_empty() {
        return Ok(SocketAddr::new(HERE, port));
    }
    if let Ok(given) = text.trim_start_matches(':').parse::<u16>() {
        return Ok(SocketAddr::new(HERE, given));
    }
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, port));
    }
    let found = text.to_socket_addrs().ok().and_then(|mut all| all.next());
    found.ok_or_else(|| "give ADDRESS:PORT or PORT, or put --p4runtime behind the program".to_owned())
}

/// What `--tls-cert`, `--tls-key` and `--tls-ca` of a server say.
///
/// # Errors
/// If a file is not what it should be.
pub fn tls([certificate, key, authority]: [&Option<PathBuf>; 3]) -> Result<Option<Tls>, Failure> {
    let (Some(certificate), Some(key)) = (certificate, key) else { return Ok(None) };
    let certificates = |path: &PathBuf| load::pem(path, Pem::Certificate).map(String::into_bytes);
    Ok(Some(Tls {
        certificate: certificates(certificate)?,
        key: load::pem(key, Pem::Key)?.into_bytes(),
        client_authority: authority.as_ref().map(certificates).transpose()?,
    }))
}
