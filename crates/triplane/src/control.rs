//! Starts the P4Runtime server of a running switch from its options.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueHint};
use p4runtime_server::store::Store;
use p4runtime_server::{
    BoundServer, KeptArrays, Listening, NotificationSender, OperationHook, Pipeline, RunChannels, Server, Settings, Tls,
};
use switch::BuildError;
use v1model::{CPU_PORT, Switch};

use crate::authorize::{self, UserFile};
use crate::load::ARCHITECTURE;
use crate::output::{Failure, Output};
use crate::state::State;
use crate::tls_files;

/// The port that IANA assigned to P4Runtime.
const P4RUNTIME_PORT: u16 = 9559;
/// The loopback address, which only this machine can reach.
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The options of a switch's control plane.
#[derive(Args, Debug, Clone)]
pub struct ControlArgs {
    /// Serve P4Runtime, on 127.0.0.1:9559 or on this address: ADDRESS:PORT, or PORT alone for this machine only.
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "", value_parser = address, help_heading = "P4Runtime")]
    pub p4runtime: Option<SocketAddr>,

    /// The P4Runtime device ID that controllers use.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "P4Runtime")]
    pub device_id: u64,

    /// The CPU port: the port number of packets to and from the controller. From 0 to 510, or up to 65534 where the
    /// program declares wider ports.
    #[arg(long, value_name = "N", default_value_t = CPU_PORT, value_parser = cpu_port, help_heading = "P4Runtime")]
    pub cpu_port: u32,

    /// Keep the pipeline and what controllers write in this directory, and restore both at the next start.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "p4runtime", help_heading = "P4Runtime")]
    pub state_dir: Option<PathBuf>,

    /// Also keep registers, counters, or both. What controllers write to them is kept before the call returns; what
    /// packets write, at an interval and at the end.
    #[arg(long, value_name = "WHAT,...", value_delimiter = ',', requires = "state_dir", help_heading = "P4Runtime")]
    pub keep: Vec<Keep>,

    /// Interval at which changes by packets are kept with --keep.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = keep_interval, requires = "keep", help_heading = "P4Runtime")]
    pub keep_interval: Duration,

    /// Serve over TLS with this certificate (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_key", requires = "p4runtime", help_heading = "P4Runtime")]
    pub tls_cert: Option<PathBuf>,

    /// The private key of the certificate (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert", help_heading = "P4Runtime")]
    pub tls_key: Option<PathBuf>,

    /// Accept only clients whose certificate is signed by this CA (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert", help_heading = "P4Runtime")]
    pub tls_ca: Option<PathBuf>,

    /// Limit users, by the names in their certificates, to the rights in this file (TOML). Others are denied. Requires
    /// --tls-ca; changes take effect at the next start.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "p4runtime", help_heading = "P4Runtime")]
    pub authorize: Option<PathBuf>,
}

/// The arrays that `--keep` keeps.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Registers.
    Registers,
    /// Counters of arrays and of entries.
    Counters,
}

impl ControlArgs {
    /// Returns the arrays whose elements are kept.
    fn kept_arrays(&self) -> KeptArrays {
        KeptArrays { registers: self.keep.contains(&Keep::Registers), counters: self.keep.contains(&Keep::Counters) }
    }
}

/// Parses the value of `--keep-interval`.
fn keep_interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.01..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "expected seconds, from 0.01 to 86400".to_owned())
}

/// A P4Runtime server beside a switch.
pub struct Served {
    /// The server; it stops when this is dropped.
    pub listening: Listening,
    /// The sink of the switch's notifications.
    pub sink: NotificationSender,
    /// The hook that runs the server's operations.
    pub hook: OperationHook,
}

/// The files that a P4Runtime server needs: its certificates, and its users.
pub struct ControlFiles {
    tls: Option<Tls>,
    users: Option<UserFile>,
}

impl ControlFiles {
    /// Prints a warning for every right to an object that the program does not have.
    pub fn warn_of_unmatched(&self, pipeline: &Pipeline, output: &Output) {
        if let Some(users) = &self.users {
            users.warn_of_unmatched(&pipeline.object_names(), output);
        }
    }
}

/// The address of a P4Runtime server that does not run yet, and its files.
pub struct BoundControl {
    bound: BoundServer,
    files: ControlFiles,
}

/// Reads the server's files. Mistakes in them are reported before anything is opened.
pub fn read_files(args: &ControlArgs, output: &Output) -> Result<ControlFiles, Failure> {
    let users = authorize::users(args.authorize.as_deref(), &args.tls_ca, output)?;
    Ok(ControlFiles { tls: tls([&args.tls_cert, &args.tls_key, &args.tls_ca])?, users })
}

/// Binds the server's address, before the process gives up its privileges.
pub fn bind(args: &ControlArgs, files: ControlFiles) -> Result<BoundControl, Failure> {
    let address = args.p4runtime.unwrap_or(SocketAddr::new(HERE, P4RUNTIME_PORT));
    Ok(BoundControl { bound: p4runtime_server::bind(address).map_err(anyhow::Error::from)?, files })
}

/// Reason that a controller cannot set another pipeline on a switch with `--memory`.
pub const FIXED_BY_MEMORY: &str =
    "the program of a switch with tables in the memory of servers is not replaced while it runs";
/// Reason that a controller cannot set another pipeline on a switch with `--store`.
pub const FIXED_BY_STORES: &str = "the program of a switch whose state is in stores is not replaced while it runs";

/// Starts a server for a switch that is about to run. The stored state is written to the switch. Without a pipeline,
/// the server waits for one from a controller. `fixed_reason` is the reason that controllers cannot set another one, if
/// there is one.
pub fn serve(
    args: &ControlArgs,
    BoundControl { bound, files: ControlFiles { tls, users } }: BoundControl,
    pipeline: Option<Pipeline>,
    state: Option<State>,
    switch: &mut Switch,
    fixed_reason: Option<&'static str>,
    output: &Output,
) -> Result<Served, Failure> {
    let config = switch.config().clone();
    let settings = Settings {
        device_id: args.device_id,
        kept_arrays: args.kept_arrays(),
        keep_interval: args.keep_interval,
        policy: users.map(|users| users.policy),
        ..Settings::new(ARCHITECTURE, config.ports.iter().map(|port| port.0), config.cpu_port.map(|port| port.0))
    };
    // A commit does not wait for machine code: the run compiles the program while the interpreter forwards.
    let builder = p4runtime_server::switch_builder(move |program| -> Result<Switch, BuildError> {
        if let Some(reason) = fixed_reason {
            return Err(reason.into());
        }
        config.check_ports(&program)?;
        Ok(Switch::deferred(program, config.clone())?)
    });
    let channels = RunChannels::new(builder.clone()).context("cannot create a socket pair")?;
    let server = Server::new(settings);
    let server = match (&state, pipeline) {
        (Some(state), pipeline) => state.restore(server, pipeline, switch, &builder, output)?,
        (None, Some(pipeline)) => server.with_pipeline(pipeline, switch),
        (None, None) => server,
    };
    let store = state.map(|state| Box::new(state.store) as Box<dyn Store>);
    let secure = tls.is_some();
    let listening = p4runtime_server::listen_bound(server, channels.handle, channels.notifications, bound, tls, store);
    let listening = listening.map_err(anyhow::Error::from)?;
    let address = listening.address();
    output.note(&match (secure, address.ip().is_loopback()) {
        (true, _) => {
            let users = args.authorize.as_ref().map_or(String::new(), |file| format!(", users of {}", file.display()));
            format!("P4Runtime on {address}, over TLS{users}, device {}", args.device_id)
        }
        (false, true) => {
            format!("P4Runtime on {address}, without TLS, reachable from this machine only, device {}", args.device_id)
        }
        (false, false) => format!(
            "P4Runtime on {address}, device {}, without TLS: any client that reaches this address controls the switch",
            args.device_id
        ),
    });
    Ok(Served { listening, sink: channels.notifier, hook: channels.hook })
}

/// Parses the value of a `--cpu-port`. The program decides which ports there are.
pub fn cpu_port(text: &str) -> Result<u32, String> {
    let port = text.parse().ok().filter(|port| *port <= u32::from(v1model::WIDEST_PORT));
    port.ok_or_else(|| format!("expected a port from 0 to {}", v1model::WIDEST_PORT))
}

/// Parses the value of a `--cpu-port` for programs with ports of nine bits.
pub fn nine_bit_cpu_port(text: &str) -> Result<u32, String> {
    let port = text.parse().ok().filter(|port| *port < v1model::DROP_PORT);
    port.ok_or_else(|| "expected a port from 0 to 510 (511 means drop)".to_owned())
}

/// Parses the value of `--p4runtime`.
fn address(text: &str) -> Result<SocketAddr, String> {
    address_or(text, P4RUNTIME_PORT)
}

/// Parses an address and a port; either may be left out.
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
    found.ok_or_else(|| {
        "expected ADDRESS:PORT or PORT; to use the default address, put --p4runtime after the program".to_owned()
    })
}

/// Reads the files of a server's `--tls-cert`, `--tls-key` and `--tls-ca`.
///
/// # Errors
/// If a file is not what it should be.
pub fn tls([certificate, key, authority]: [&Option<PathBuf>; 3]) -> Result<Option<Tls>, Failure> {
    let (Some(certificate), Some(key)) = (certificate, key) else { return Ok(None) };
    let (certificate, key) = tls_files::identity(certificate, key)?;
    let authority = authority.as_deref().map(tls_files::authority).transpose()?;
    Ok(Some(Tls {
        certificate: certificate.into_bytes(),
        key: key.into_bytes(),
        client_authority: authority.map(String::into_bytes),
    }))
}
