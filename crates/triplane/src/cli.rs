//! Defines the grammar of the command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueHint};

use crate::kernel::KernelMode;
use crate::load::ProgramArgs;
use crate::output::Color;

const AFTER_HELP: &str = "\
First steps:
  triplane demo                    two hosts, a P4 router, real packets
  triplane check router.p4         report every error in a program
  triplane run router.p4 --entries e.json --port 1=eth1 --port 2=eth2
  triplane run router.p4 --entries e.json --port 1=in.pcap:out.pcap
  triplane trace router.p4 --entries e.json --port 1 --packet in.pcap

Exit codes: 0 success; 1 an error in a program, entries file or packet;
2 a usage error; 3 a system error, such as a missing interface or permission.";

const RUN_AFTER_HELP: &str = "\
Ports:
  --port 1=eth1                a network interface (needs CAP_NET_RAW)
  --port 1=xdp:eth1            the same through AF_XDP: faster, and frames bypass
                               the kernel's network stack (also needs
                               CAP_NET_ADMIN and CAP_BPF); falls back to AF_PACKET
  --port 1=xdp:eth1,generic    in generic (SKB) mode, not in the driver
  --port 1=xdp:eth1,copy       in copy mode, even if the driver supports zero-copy
  --port 1=xdp:eth1,busy_poll=50
                               busy-polls the device for up to 50 us instead of
                               waiting for interrupts; uses a full core
  --port 1=kernel:eth1         runs the program in the kernel, at XDP; packets that
                               need more take AF_XDP (also needs CAP_PERFMON)
  --port 1=kernel:eth1,gpl     the same for a program with a GPL-compatible licence,
                               which may see VLAN tags that were stripped from frames
  --port 1=tap:p4tap           a TAP device created for this run
  --port 1=in.pcap:out.pcap    reads one capture and writes another; either side
                               may be omitted: 1=in.pcap: or 1=:out.pcap

With capture ports only, frames are received in timestamp order, the switch's
clock follows their timestamps, and the run ends after the last frame. Otherwise
Ctrl-C ends it. In both cases a summary reports the packets received, sent and
dropped, by reason.

Privileges: root is not needed. Grant the command what its ports need to be opened:
  sudo setcap cap_net_raw+ep triplane                             interfaces
  sudo setcap cap_net_raw,cap_net_admin,cap_bpf+ep triplane       also xdp: and tap:
  sudo setcap cap_net_raw,cap_net_admin,cap_bpf,cap_perfmon+ep triplane  kernel:
Once everything is open, the switch gives up all capabilities, also root's, and
opens no other files than those of --state-dir (Landlock). docs/deployment.md has
the table of capabilities and a systemd unit.

Entries (JSON, as in the public P4 tutorials' sN-runtime.json):
  { \"table_entries\": [
      { \"table\": \"MyIngress.ipv4_lpm\",
        \"match\": { \"hdr.ipv4.dstAddr\": [\"10.0.1.1\", 32] },
        \"action_name\": \"MyIngress.ipv4_forward\",
        \"action_params\": { \"dstAddr\": \"08:00:00:00:01:11\", \"port\": 1 } },
      { \"table\": \"MyIngress.ipv4_lpm\", \"default_action\": true,
        \"action_name\": \"MyIngress.drop\" } ] }
  exact, optional: value    lpm: [value, length]    ternary: [value, mask]
  range: [low, high]        the largest \"priority\" wins

An entries file can also set action profiles and selectors, value sets, multicast
groups, mirror sessions, registers, meters, queues (rates and depths) and custom
CRCs: docs/v1model.md describes every section.";

const CHECK_AFTER_HELP: &str = "\
A program for v1model includes its architecture and ends with the package `main`, which
names the six blocks of the program:
  #include <v1model.p4>
  ...
  V1Switch(MyParser(), MyVerifyChecksum(), MyIngress(), MyEgress(), MyComputeChecksum(),
           MyDeparser()) main;
A file without `main` is checked as a library. It cannot run; programs include it.";

const BUILD_AFTER_HELP: &str = "\
  triplane build router.p4 -o router.tpl --p4info-out router.p4info.txtpb
  triplane run router.tpl --port 1=eth1 --port 2=eth2

run, trace, bench, check, stf, p4info, dump --ir, and P4Runtime (as the device config)
accept the file in place of a program. It holds the compiled program, its P4Info and
its source positions, and needs no other file. A file from another version of Triplane
may have to be rebuilt; an error message then says so.";

const COMPLETIONS_AFTER_HELP: &str = "\
  eval \"$(triplane completions bash)\"            in ~/.bashrc; for zsh the same in ~/.zshrc
  triplane completions fish | source               in ~/.config/fish/config.fish

After `triplane ctl`, bash, zsh and fish complete tables, fields, actions and other
names from the switch at --addr, and wait at most 0.3 s for it.";

const SHIMS_AFTER_HELP: &str = "\
  triplane shims ~/shims && export PATH=~/shims:$PATH
  p4c-bm2-ss --p4runtime-files router.p4info.txtpb -o router.json router.p4
  simple_switch_grpc -i 1@eth1 -i 2@eth2 router.json -- --grpc-server-addr 0.0.0.0:9559

The links are simple_switch_grpc, simple_switch, p4c, p4c-bm2-ss and simple_switch_CLI
(which only says that there is no Thrift server). Files of others are not replaced.
docs/bmv2.md lists the options.";

fn bench_after_help() -> String {
    let width = traffic_gen::KEYS.iter().map(|(word, _)| word.len()).max().unwrap_or(0);
    let words = traffic_gen::KEYS.iter().map(|(word, what)| format!("  {word:width$}  {what}\n"));
    format!(
        "Traffic, for example udp,size=64,flows=10000,dst=10.0.0.0/16,zipf=0.99,ports=1-4:\n{}
The program runs on one core, in memory, in batches of 32 packets. Dropping packets
is fast, so first check how many were forwarded.

Live:
  triplane bench --live gen:sink --traffic udp,flows=1000,dst=10.0.0.0/16
  triplane bench router.p4 --entries e.json --live gen:sink --port 1=eth1 --port 2=eth2",
        words.collect::<String>()
    )
}

/// Runs P4_16 programs on Linux: checks them, runs them on real interfaces or packet captures, and traces packets step
/// by step.
#[derive(Parser, Debug)]
#[command(name = "triplane", version, after_help = AFTER_HELP, max_term_width = 100)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,

    /// Colours: by default when the output is a terminal.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    pub color: Color,
}

/// The subcommands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Demonstrate Triplane with real traffic: a network, a P4 router, a market data feed. Needs no privileges.
    Demo(DemoArgs),
    /// Run a program on interfaces, TAP devices or packet captures.
    #[command(after_help = RUN_AFTER_HELP, mut_arg("program", |program| program.required(false)))]
    Run(Box<RunArgs>),
    /// Inspect and change a running switch over P4Runtime: tables, entries, counters.
    #[command(after_help = crate::ctl::args::AFTER_HELP)]
    Ctl(crate::ctl::args::CtlArgs),
    /// Report every error in a program.
    #[command(after_help = CHECK_AFTER_HELP)]
    Check(CheckArgs),
    /// Compile a program into one file that runs without its source.
    #[command(after_help = BUILD_AFTER_HELP)]
    Build(BuildArgs),
    /// Measure how fast a program is with your entries and traffic, and where the time goes.
    #[command(after_help = bench_after_help(), mut_arg("program", |program| program.required(false)))]
    Bench(Box<BenchArgs>),
    /// Run networks of switches and hosts, described in one file.
    #[command(after_help = crate::lab::args::AFTER_HELP)]
    Lab(crate::lab::args::LabArgs),
    /// Keep the state of switches, so that it survives them: stores for programs with @resilient.
    #[command(after_help = crate::store::args::AFTER_HELP)]
    Store(crate::store::args::StoreArgs),
    /// Lend memory to switches, for tables with @elastic; list, add and remove the memory servers of a switch.
    #[command(after_help = crate::memory::args::AFTER_HELP)]
    Memory(crate::memory::args::MemoryArgs),
    /// List the rows of @resilient state at a running switch, or move them away from it.
    #[command(after_help = crate::rows::args::AFTER_HELP)]
    Resilient(crate::rows::args::ResilientArgs),
    /// Filter packets by the content of their messages: rules are compiled into the tables of a P4 program.
    #[command(after_help = crate::subscribe::args::AFTER_HELP)]
    Subscribe(crate::subscribe::args::SubscribeArgs),
    /// Assemble, check, send and echo tiny packet programs, which read the state of switches on a packet's path.
    #[command(after_help = crate::tpp::args::AFTER_HELP)]
    Tpp(crate::tpp::args::TppArgs),
    /// Publish a synthetic market data feed, or receive one: gaps, filters, latency.
    #[command(after_help = crate::market::args::AFTER_HELP)]
    Market(crate::market::args::MarketArgs),
    /// Print an intermediate form of a program: tokens, types or pipeline IR.
    Dump(DumpArgs),
    /// Show what happens to a packet, step by step.
    Trace(TraceArgs),
    /// Run packet tests (STF) on a program: packets in, expected packets out.
    Stf(StfArgs),
    /// Print a program's P4Info, its description for control planes (P4Runtime specification 1.5).
    #[command(name = "p4info")]
    P4Info(P4InfoArgs),
    /// Make links to this command under the names of BMv2's tools, which it then stands in for.
    #[command(after_help = SHIMS_AFTER_HELP)]
    Shims(ShimsArgs),
    /// Run a program with the options of BMv2's simple_switch_grpc.
    #[command(alias = "simple_switch_grpc", disable_help_flag = true)]
    SimpleSwitchGrpc(ToolArgs),
    /// Run a program with the options of BMv2's simple_switch, which has no P4Runtime by default.
    #[command(alias = "simple_switch", disable_help_flag = true)]
    SimpleSwitch(ToolArgs),
    /// Compile a program with the options of p4c.
    #[command(name = "p4c", disable_help_flag = true)]
    P4c(ToolArgs),
    /// Compile a program with the options of p4c-bm2-ss.
    #[command(name = "p4c-bm2-ss", disable_help_flag = true)]
    P4cBm2Ss(ToolArgs),
    /// Print a shell completion script; for bash, zsh and fish it also completes names from the running switch.
    #[command(after_help = COMPLETIONS_AFTER_HELP)]
    Completions {
        /// bash, zsh, fish, elvish or powershell.
        shell: clap_complete::Shell,
    },
}

/// The arguments of a tool that this command stands in for.
#[derive(Args, Debug)]
pub struct ToolArgs {
    /// The options of the tool; `--help` lists them.
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

/// `triplane shims`
#[derive(Args, Debug)]
pub struct ShimsArgs {
    /// The directory for the links, to be put in front of PATH.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub directory: PathBuf,
}

/// `triplane demo`
#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Use packet captures even if network namespaces are available.
    #[arg(long)]
    pub offline: bool,
    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `triplane run`
#[derive(Args, Debug)]
pub struct RunArgs {
    /// The program; optional with `--p4runtime`, where a controller can set it or `--state-dir` may hold one.
    #[command(flatten)]
    pub program: Option<ProgramArgs>,

    /// A port: NUMBER=INTERFACE, NUMBER=xdp:INTERFACE[,SETTING...], NUMBER=kernel:INTERFACE[,SETTING...],
    /// NUMBER=tap:NAME, or NUMBER=IN.pcap:OUT.pcap (either file may be omitted).
    #[arg(short, long = "port", value_name = "N=WHAT", required = true)]
    pub ports: Vec<String>,

    /// Table entries and other control plane state, as JSON; may be repeated.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub entries: Vec<PathBuf>,

    /// Seed of the program's random numbers.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Stop after this time (by default, live ports run until Ctrl-C).
    #[arg(long, value_name = "SECONDS")]
    pub duration: Option<f64>,

    /// Number of forwarding threads, or `auto` for one per core. All frames of a flow take the same thread.
    #[arg(long, value_name = "N", default_value = "1", value_parser = workers)]
    pub workers: usize,

    /// Use the interpreter instead of machine code.
    #[arg(long)]
    pub interpret: bool,

    /// When to run the program in the kernel on kernel: ports.
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    pub kernel: KernelMode,

    /// Write notifications (digests, packets to the CPU port, idle timeouts, INT reports) to a file, one JSON object a
    /// line.
    #[arg(long = "notifications", alias = "messages", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub messages: Option<PathBuf>,

    /// The control plane.
    #[command(flatten)]
    pub control: crate::control::ControlArgs,

    /// Serve the switch's counters for Prometheus over HTTP: ADDRESS:PORT, or PORT alone for this machine only.
    #[arg(long, value_name = "ADDR", value_parser = crate::metrics::address)]
    pub metrics: Option<std::net::SocketAddr>,

    /// Replicate the program's @resilient state to the stores of this cluster file. Requires one worker and live ports.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "switch")]
    pub store: Option<PathBuf>,

    /// The name of this switch in the cluster file.
    #[arg(long, value_name = "NAME", requires = "store")]
    pub switch: Option<String>,

    /// Put the entries of @elastic tables into the memory of a server, given with the port that leads to it; may be
    /// repeated. With several servers, each entry is on two. Requires one worker and live ports.
    #[arg(long, value_name = "ADDRESS@PORT", conflicts_with = "store")]
    pub memory: Vec<crate::memory::args::ServerArg>,

    /// The address of this switch among the memory servers.
    #[arg(long, value_name = "ADDRESS", requires = "memory", default_value = "198.19.0.1")]
    pub memory_address: std::net::Ipv4Addr,

    /// Maximum rate on each link to a memory server, in each direction, such as 8Gbps: READs and the traffic of others
    /// that passes the switch. READs beyond it go to the other server of the entry; if that link is at the rate, too,
    /// the packet is dropped. No limit by default.
    #[arg(long, value_name = "RATE", requires = "memory")]
    pub memory_rate: Option<lab::Rate>,

    /// Answer `triplane resilient` (with --store) or `triplane memory` (with --memory) on a Unix socket with this name,
    /// which only the user of this command can open.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub socket: Option<PathBuf>,

    /// Tiny packet programs and INT.
    #[command(flatten)]
    pub telemetry: crate::telemetry::TelemetryArgs,

    /// Print the privileges that remain after everything is open: capabilities, and files restricted by Landlock.
    #[arg(long)]
    pub show_privileges: bool,

    /// Print the summary as JSON.
    #[arg(long)]
    pub json: bool,

    /// The behaviour of the run.
    #[arg(skip)]
    pub profile: RunProfile,
}

/// The behaviour of a run.
#[derive(Clone, Debug, Default)]
pub enum RunProfile {
    /// That of `triplane run`.
    #[default]
    Triplane,
    /// That of BMv2: it prints the lines for which scripts wait.
    Bmv2 {
        /// The directory for the frames of each interface.
        recordings: Option<PathBuf>,
        /// Whether there is a CPU port.
        has_cpu_port: bool,
        /// The port that has to mean drop, if the command line says it.
        drop_port: Option<u32>,
    },
}

impl RunProfile {
    /// Whether the run behaves like one of BMv2.
    pub fn is_bmv2(&self) -> bool {
        matches!(self, RunProfile::Bmv2 { .. })
    }

    /// Returns the directory for the frames of each interface.
    pub fn recordings(&self) -> Option<&Path> {
        match self {
            RunProfile::Triplane => None,
            RunProfile::Bmv2 { recordings, .. } => recordings.as_deref(),
        }
    }

    /// Whether the switch has a CPU port.
    pub fn has_cpu_port(&self) -> bool {
        match self {
            RunProfile::Triplane => true,
            RunProfile::Bmv2 { has_cpu_port, .. } => *has_cpu_port,
        }
    }
}

/// Maximum number of workers.
const MAX_WORKERS: usize = 64;

fn workers(text: &str) -> Result<usize, String> {
    if text == "auto" {
        return Ok(std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_WORKERS)));
    }
    let number = text.parse().ok().filter(|number| (1..=MAX_WORKERS).contains(number));
    number.ok_or_else(|| format!("expected a number from 1 to {MAX_WORKERS}, or `auto` for one per core"))
}

/// `triplane check`
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// The program.
    #[command(flatten)]
    pub program: ProgramArgs,

    /// An entries file to check against the program; may be repeated, for files that are used together.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub entries: Vec<PathBuf>,

    /// Also report which packets the kernel could process, and which lines of the program prevent it.
    #[arg(long)]
    pub kernel: bool,

    /// Print the diagnostics as JSON, for editors.
    #[arg(long)]
    pub json: bool,
}

/// `triplane build`
#[derive(Args, Debug)]
pub struct BuildArgs {
    /// The program.
    #[command(flatten)]
    pub program: ProgramArgs,

    /// The output file; by default the program's name with the extension .tpl.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Also write the program's P4Info: as JSON or binary if the name ends in .json or .bin, otherwise as text.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub p4info_out: Option<PathBuf>,
}

/// `triplane bench`
#[derive(Args, Debug)]
pub struct BenchArgs {
    /// The program.
    #[command(flatten)]
    pub program: Option<ProgramArgs>,

    /// Table entries and other control plane state, as JSON; may be repeated.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub entries: Vec<PathBuf>,

    /// Traffic to send: a specification (below) or a capture, whose frames are repeated. By default, frames match the
    /// entries of the program's tables.
    #[arg(short, long, value_name = "SPEC|PCAP", value_hint = ValueHint::FilePath)]
    pub traffic: Option<String>,

    /// Number of packets to measure, rounded up to whole batches in each of seven rounds.
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    pub packets: Option<u64>,

    /// Duration of the measurement, in seconds.
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    pub seconds: f64,

    /// Use the interpreter instead of machine code.
    #[arg(long)]
    pub interpret: bool,

    /// Also measure this executor, in alternating rounds, and report the ratio.
    #[arg(long, value_name = "WHAT")]
    pub against: Option<Against>,

    /// Send frames on interface A and count them on B: measures the highest rate without loss, and the latency, of the
    /// device that forwards between them. A may be xdp:NAME. Needs root.
    #[arg(help_heading = "Live", long, value_name = "A:B", conflicts_with_all = ["packets", "seconds", "against"])]
    pub live: Option<String>,

    /// With --live: run the program on this port, as `triplane run` does; may be repeated. Without ports, another
    /// device must forward.
    #[arg(help_heading = "Live", short, long = "port", value_name = "N=WHAT", requires_all = ["live", "program"])]
    pub ports: Vec<String>,

    /// With --live: duration of a trial.
    #[arg(help_heading = "Live", long, value_name = "S", default_value_t = 1.0, requires = "live")]
    pub trial: f64,

    /// With --live: maximum frame loss, in percent.
    #[arg(help_heading = "Live", long, value_name = "PERCENT", default_value_t = 0.0, requires = "live")]
    pub loss: f64,

    /// Print the results as JSON.
    #[arg(long)]
    pub json: bool,
}

/// The executor that machine code is compared with.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// The interpreter.
    Interpreter,
}

/// `triplane dump`
#[derive(Args, Debug)]
pub struct DumpArgs {
    /// The program.
    #[command(flatten)]
    pub program: ProgramArgs,

    /// The form to print.
    #[command(flatten)]
    pub what: DumpWhat,
}

/// The forms that `triplane dump` prints.
#[derive(Args, Debug, Clone, Copy)]
#[group(required = true, multiple = false)]
pub struct DumpWhat {
    /// The pipeline IR.
    #[arg(long)]
    pub ir: bool,
    /// The tokens after preprocessing.
    #[arg(long)]
    pub tokens: bool,
    /// Types, headers, parsers, controls and tables as the checker sees them.
    #[arg(long)]
    pub types: bool,
}

/// `triplane p4info`
#[derive(Args, Debug)]
pub struct P4InfoArgs {
    /// The program.
    #[command(flatten)]
    pub program: ProgramArgs,

    /// Output format; by default chosen by the extension of FILE (.json, .bin, .txtpb), otherwise text.
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<InfoFormat>,

    /// Leave out the fields that clients of this version of P4Runtime cannot read, and name them: 1.3, 1.4 or 1.5.
    #[arg(long, value_name = "VERSION", default_value = "1.5", hide_possible_values = true)]
    pub p4runtime_version: InfoVersion,

    /// Write to a file instead of standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// The version of P4Runtime that P4Info is for.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfoVersion {
    /// 1.3 and before.
    #[value(name = "1.3")]
    V1_3,
    /// 1.4 and its release candidates.
    #[value(name = "1.4")]
    V1_4,
    /// 1.5.
    #[value(name = "1.5")]
    V1_5,
}

/// The format of P4Info.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfoFormat {
    /// Protobuf's text format.
    Text,
    /// Protobuf's JSON.
    Json,
    /// Protobuf's wire format.
    Binary,
}

/// `triplane stf`
#[derive(Args, Debug)]
pub struct StfArgs {
    /// The program.
    #[command(flatten)]
    pub program: ProgramArgs,

    /// Packet tests in the P4 community's STF format; each runs on its own switch.
    #[arg(value_name = "TEST.stf", required = true, value_hint = ValueHint::FilePath)]
    pub tests: Vec<PathBuf>,

    /// Show what happens to every packet, step by step.
    #[arg(long)]
    pub trace: bool,

    /// Seed of the program's random numbers.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Print the results as JSON, one object per test.
    #[arg(long)]
    pub json: bool,
}

/// `triplane trace`
#[derive(Args, Debug)]
pub struct TraceArgs {
    /// The program.
    #[command(flatten)]
    pub program: ProgramArgs,

    /// Table entries and other control plane state, as JSON; may be repeated.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub entries: Vec<PathBuf>,

    /// The ingress port of the packet.
    #[arg(short, long, value_name = "N")]
    pub port: u32,

    /// The packet: hexadecimal digits, or a capture file (all its packets, in order).
    #[arg(long, value_name = "HEX|PCAP", value_hint = ValueHint::FilePath)]
    pub packet: String,

    /// Seed of the program's random numbers.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Print the trace as JSON, one object per packet.
    #[arg(long)]
    pub json: bool,
}
