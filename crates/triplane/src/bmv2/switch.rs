//! Stands in for `simple_switch_grpc` and `simple_switch`: translates their options to a run of `triplane run`.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Command, FromArgMatches};

use super::options::{self, Ignored, NO_THRIFT, Refused, Takes};
use super::{Refusal, Tool};
use crate::cli::{RunArgs, RunProfile};
use crate::control::ControlArgs;
use crate::kernel::KernelMode;
use crate::load::ProgramArgs;
use crate::output::{Failure, NoteStream, Output};

/// The address on which BMv2 serves P4Runtime by default: every client that reaches the machine reaches it.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 9559);

/// Number of queues of a port.
const MAX_QUEUES: u32 = 8;

/// Options without a meaning here.
const IGNORED: &[Ignored] = &[
    Ignored { name: "thrift-port", takes: Takes::Value },
    Ignored { name: "nanolog", takes: Takes::Value },
    Ignored { name: "notifications-addr", takes: Takes::Value },
    Ignored { name: "debugger", takes: Takes::Nothing },
    Ignored { name: "debugger-addr", takes: Takes::Value },
    Ignored { name: "log-flush", takes: Takes::Nothing },
    Ignored { name: "log-file-max-size", takes: Takes::Value },
    Ignored { name: "log-file-max-files", takes: Takes::Value },
    Ignored { name: "dump-packet-data", takes: Takes::Value },
    Ignored { name: "max-port-count", takes: Takes::Value },
    Ignored { name: "disable-swap", takes: Takes::Nothing },
    Ignored { name: "enable-swap", takes: Takes::Nothing },
    Ignored { name: "max-mc-groups", takes: Takes::Value },
    Ignored { name: "max-l1-entries", takes: Takes::Value },
    Ignored { name: "max-l2-entries", takes: Takes::Value },
];

/// Options whose effect would be missed.
const REFUSED: &[Refused] = &[
    Refused {
        name: "use-files",
        takes: Takes::Value,
        why: "use `triplane run PROG.json --port N=IN.pcap:OUT.pcap`, which runs captures to their end",
    },
    Refused { name: "packet-in", takes: Takes::Value, why: "packets arrive on interfaces (-i) only" },
    Refused { name: "restore-state", takes: Takes::Value, why: "use `triplane run --p4runtime --state-dir DIR`" },
    Refused { name: "dp-grpc-server-addr", takes: Takes::Value, why: "packets arrive on interfaces (-i) only" },
    Refused {
        name: "load-modules",
        takes: Takes::Value,
        why: "externs of your own cannot be loaded; docs/v1model.md lists those that Triplane has",
    },
];

/// The options of `simple_switch_grpc` that have an effect. Those of its target, after `--`, are among them.
#[derive(Args, Debug)]
struct SwitchArgs {
    /// The program: the .json file that p4c or p4c-bm2-ss wrote (these are links to Triplane), a .p4 or a .tpl file.
    #[arg(value_name = "PROG.json")]
    program: Option<PathBuf>,

    /// Start without a program, and wait for a controller to set one.
    #[arg(long)]
    no_p4: bool,

    /// Attach a network interface as a port; may be repeated.
    #[arg(short, long = "interface", value_name = "PORT@IFACE", value_parser = interface)]
    interfaces: Vec<(u16, String)>,

    /// The P4Runtime device ID.
    #[arg(long, value_name = "N", default_value_t = 0)]
    device_id: u64,

    /// Write the frames of each interface to IFACE_in.pcap and IFACE_out.pcap in a directory, by default the current
    /// one.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = ".")]
    pcap: Option<PathBuf>,

    /// Log to standard output instead of standard error.
    #[arg(long, conflicts_with = "log_file")]
    log_console: bool,

    /// Log to FILE.txt.
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,

    /// Least important messages to log: trace, debug, info, warn, error or off. Packets are not logged.
    #[arg(short = 'L', long, value_name = "LEVEL", default_value = "trace", hide_possible_values = true)]
    log_level: LogLevel,

    /// After `--`: serve P4Runtime on this address [default: 0.0.0.0:9559, for every client that reaches the machine].
    #[arg(long, value_name = "ADDR:PORT", value_parser = address, help_heading = "Target options")]
    grpc_server_addr: Option<SocketAddr>,

    /// After `--`: serve over TLS.
    #[arg(long, requires = "grpc_server_cert", requires = "grpc_server_key", help_heading = "Target options")]
    grpc_server_ssl: bool,

    /// After `--`: the CA of clients (PEM).
    #[arg(long, value_name = "FILE", help_heading = "Target options")]
    grpc_server_cacert: Option<PathBuf>,

    /// After `--`: the server's certificate (PEM).
    #[arg(long, value_name = "FILE", help_heading = "Target options")]
    grpc_server_cert: Option<PathBuf>,

    /// After `--`: the server's key (PEM).
    #[arg(long, value_name = "FILE", help_heading = "Target options")]
    grpc_server_key: Option<PathBuf>,

    /// After `--`: accept only clients with a certificate of the CA.
    #[arg(long, requires = "grpc_server_cacert", help_heading = "Target options")]
    grpc_server_with_client_auth: bool,

    /// After `--`: the port of packets to and from the controller; without it there is none.
    #[arg(long, value_name = "N", value_parser = cpu_port, help_heading = "Target options")]
    cpu_port: Option<u32>,

    /// After `--`: the port that means drop: the largest that the program's ports can name, 511 for 9 bits.
    #[arg(long, value_name = "N", help_heading = "Target options")]
    drop_port: Option<u32>,

    /// After `--`: number of priority queues of a port, up to 8; there are always 8.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Target options")]
    priority_queues: Option<u32>,

    /// Print the version.
    #[arg(short, long)]
    version: bool,

    /// Print the version of BMv2's JSON that is read: none, since p4c is Triplane here too.
    #[arg(long)]
    json_version: bool,
}

/// The importance of a message.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LogLevel {
    /// Everything.
    Trace,
    /// Nearly everything.
    Debug,
    /// What people want to know.
    Info,
    /// What may be wrong.
    Warn,
    /// What is wrong.
    Error,
    /// Nothing.
    Off,
}

/// Runs a switch until it is asked to end.
pub fn run(tool: Tool, words: &[OsString], output: &Output) -> Result<(), Refusal> {
    let command = SwitchArgs::augment_args(Command::new(tool.name()))
        .about("Runs a program on network interfaces, with the options of BMv2. docs/bmv2.md has the whole list.")
        .disable_version_flag(true)
        .infer_long_args(true)
        .max_term_width(100);
    let command = options::add(command, IGNORED, REFUSED);
    let matches = command.try_get_matches_from(normalized(tool, words))?;
    let args = SwitchArgs::from_arg_matches(&matches)?;
    if args.version || args.json_version {
        let version = if args.version { concat!("triplane ", env!("CARGO_PKG_VERSION")) } else { "0.0" };
        return Ok(output.print(&format!("{version}\n"))?);
    }
    options::check(&matches, REFUSED)?;
    if let Some(note) = options::note(&matches, IGNORED) {
        let thrift = options::is_given(&matches, "thrift-port");
        output.note(&if thrift { format!("{note}; {NO_THRIFT}") } else { note });
    }
    let output = output.with_notes(notes(&args)?);
    Ok(crate::commands::run::run(&to_run(tool, args, &output)?, &output)?)
}

/// Returns the words as clap reads them: without `--`, since every option has one meaning on both sides of it, and with
/// the directory of `--pcap` attached.
fn normalized(tool: Tool, words: &[OsString]) -> Vec<OsString> {
    let mut normalized = vec![OsString::from(tool.name())];
    let mut words = words.iter().filter(|word| *word != "--").peekable();
    while let Some(word) = words.next() {
        let mut word = word.clone();
        if word == "--pcap"
            && let Some(directory) = words.next_if(|next| Path::new(next).is_dir())
        {
            word.push("=");
            word.push(directory);
        }
        normalized.push(word);
    }
    normalized
}

/// Returns the place for notes. Notes have the level `info`. As BMv2 does, this appends `.txt` to the name of
/// `--log-file`.
fn notes(args: &SwitchArgs) -> Result<NoteStream, Failure> {
    if args.log_level > LogLevel::Info {
        return Ok(NoteStream::Nowhere);
    }
    let Some(path) = &args.log_file else {
        return Ok(if args.log_console { NoteStream::Stdout } else { NoteStream::Stderr });
    };
    let mut name = path.clone().into_os_string();
    name.push(".txt");
    let file = std::fs::File::create(&name).with_context(|| format!("cannot write {}", Path::new(&name).display()))?;
    Ok(NoteStream::to_log(file))
}

/// Translates the options to those of `triplane run`.
fn to_run(tool: Tool, args: SwitchArgs, output: &Output) -> Result<RunArgs, Failure> {
    let program = program(&args, output)?;
    if let Some(directory) = args.pcap.as_ref().filter(|directory| !directory.is_dir()) {
        return Err(Failure::Usage(format!("the directory {} of --pcap does not exist", directory.display())));
    }
    if let Some(port) = args.drop_port.filter(|port| program.is_none() && *port != v1model::DROP_PORT) {
        return Err(Failure::Usage(format!(
            "--drop-port {port} is not supported without a program: the largest number of a program's ports means \
             drop, which is 511 for 9 bits"
        )));
    }
    if let Some(queues) = args.priority_queues.filter(|queues| *queues > MAX_QUEUES) {
        return Err(Failure::Usage(format!("--priority-queues {queues} is not supported: a port has {MAX_QUEUES}")));
    }
    let is_served = tool == Tool::SimpleSwitchGrpc || args.grpc_server_addr.is_some();
    let is_secure = args.grpc_server_ssl;
    if !is_secure && (args.grpc_server_cert.is_some() || args.grpc_server_cacert.is_some()) {
        output.note("certificates are ignored without --grpc-server-ssl");
    }
    Ok(RunArgs {
        program,
        ports: args.interfaces.iter().map(|(port, interface)| format!("{port}=af_packet:{interface}")).collect(),
        entries: Vec::new(),
        seed: 1,
        duration: None,
        workers: 1,
        interpret: false,
        kernel: KernelMode::Off,
        messages: None,
        control: ControlArgs {
            p4runtime: is_served.then(|| args.grpc_server_addr.unwrap_or(DEFAULT_ADDRESS)),
            device_id: args.device_id,
            cpu_port: args.cpu_port.unwrap_or(v1model::CPU_PORT),
            state_dir: None,
            keep: Vec::new(),
            keep_interval: Duration::from_secs(1),
            authorize: None,
            tls_cert: args.grpc_server_cert.filter(|_| is_secure),
            tls_key: args.grpc_server_key.filter(|_| is_secure),
            tls_ca: args.grpc_server_cacert.filter(|_| is_secure && args.grpc_server_with_client_auth),
        },
        metrics: None,
        memory: Vec::new(),
        memory_address: std::net::Ipv4Addr::UNSPECIFIED,
        memory_rate: None,
        socket: None,
        store: None,
        switch: None,
        telemetry: crate::telemetry::TelemetryArgs::default(),
        show_privileges: false,
        json: false,
        profile: RunProfile::Bmv2 {
            recordings: args.pcap,
            has_cpu_port: args.cpu_port.is_some(),
            drop_port: args.drop_port,
        },
    })
}

/// Returns the program to start with; `None` with `--no-p4`.
fn program(args: &SwitchArgs, output: &Output) -> Result<Option<ProgramArgs>, Failure> {
    match &args.program {
        Some(path) if args.no_p4 => {
            output.note(&format!("{} is ignored, because of --no-p4", path.display()));
            Ok(None)
        }
        Some(path) => Ok(Some(ProgramArgs { program: path.clone(), include: vec![], define: vec![], allow: vec![] })),
        None if args.no_p4 => Ok(None),
        None => {
            Err(Failure::Usage("a program is required (PROG.json), or --no-p4 to wait for a controller".to_owned()))
        }
    }
}

/// Parses the value of `--interface`.
fn interface(text: &str) -> Result<(u16, String), String> {
    let parsed = text.split_once('@').and_then(|(port, name)| Some((port.parse().ok()?, name)));
    match parsed {
        Some((port, name)) if !name.is_empty() => Ok((port, name.to_owned())),
        _ => Err("expected PORT@IFACE, such as 1@eth1".to_owned()),
    }
}

/// Parses the value of `--cpu-port`. BMv2 takes 0 for "none" and refuses it.
fn cpu_port(text: &str) -> Result<u32, String> {
    match crate::control::cpu_port(text)? {
        0 => Err("0 is not a valid CPU port".to_owned()),
        port => Ok(port),
    }
}

/// Parses the value of `--grpc-server-addr`: ADDRESS:PORT.
fn address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().ok().and_then(|mut all| all.next());
    found.ok_or_else(|| "expected ADDRESS:PORT, such as 0.0.0.0:9559".to_owned())
}
