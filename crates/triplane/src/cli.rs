//! The grammar of the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};

use crate::load::ProgramArgs;
use crate::output::Color;

const AFTER_HELP: &str = "\
First steps:
  triplane demo                    two hosts, a P4 router, real packets
  triplane check router.p4         every mistake in a program
  triplane run router.p4 --entries e.json --port 1=eth1 --port 2=eth2
  triplane run router.p4 --entries e.json --port 1=in.pcap:out.pcap
  triplane trace router.p4 --entries e.json --port 1 --packet in.pcap

Exit codes: 0 well; 1 a mistake in a program, entries file or packet;
2 a mistake on the command line; 3 the environment refused.";

const RUN_AFTER_HELP: &str = "\
Ports:
  --port 1=eth1                a network interface (needs CAP_NET_RAW)
  --port 1=xdp:eth1            the same, faster, and taken away from the kernel's
                               own stack (needs CAP_NET_ADMIN and CAP_BPF too);
                               AF_PACKET where that cannot be had
  --port 1=xdp:eth1,generic    before the stack, not in the interface's driver
  --port 1=xdp:eth1,copy       copied even if the driver could do without
  --port 1=xdp:eth1,busy_poll=50
                               polls the device for up to 50 us instead of
                               having it interrupt; takes a core
  --port 1=tap:p4tap           a TAP device made for this run
  --port 1=in.pcap:out.pcap    from one capture into another; either side
                               may be left out: 1=in.pcap: or 1=:out.pcap

With captures only, frames enter in the order of their times, the switch's
clock is theirs, and the run ends with them. Otherwise Ctrl-C ends it. Either
way a summary tells what came, left and was dropped, by reason.

Entries (JSON, as in the public P4 tutorials' sN-runtime.json):
  { \"table_entries\": [
      { \"table\": \"MyIngress.ipv4_lpm\",
        \"match\": { \"hdr.ipv4.dstAddr\": [\"10.0.1.1\", 32] },
        \"action_name\": \"MyIngress.ipv4_forward\",
        \"action_params\": { \"dstAddr\": \"08:00:00:00:01:11\", \"port\": 1 } },
      { \"table\": \"MyIngress.ipv4_lpm\", \"default_action\": true,
        \"action_name\": \"MyIngress.drop\" } ] }
  exact, optional: value    lpm: [value, length]    ternary: [value, mask]
  range: [low, high]        a larger \"priority\" wins

Besides tables it fills action profiles and selectors, value sets, multicast
groups, mirror sessions, registers, meters, queues (rates and depths) and
custom CRCs: docs/v1model.md has every section.";

const BUILD_AFTER_HELP: &str = "\
  triplane build router.p4 -o router.tpl --p4info-out router.p4info.txtpb
  triplane run router.tpl --port 1=eth1 --port 2=eth2

The file is taken wherever a program is: by run, trace, bench, check, stf, p4info,
dump --ir, and by P4Runtime as the device config. It holds what the program does,
its P4Info, and where in the source things stand; it needs no other file. One that
another version of Triplane made may have to be built again; it says so then.";

const COMPLETIONS_AFTER_HELP: &str = "\
  eval \"$(triplane completions bash)\"            in ~/.bashrc; for zsh the same in ~/.zshrc
  triplane completions fish | source               in ~/.config/fish/config.fish

Behind `triplane ctl`, bash, zsh and fish complete tables, fields, actions and other
names from the switch that --addr names, and wait 0.3 s for it at most.";

fn bench_after_help() -> String {
    let width = traffic_gen::KEYS.iter().map(|(word, _)| word.len()).max().unwrap_or(0);
    let words = traffic_gen::KEYS.iter().map(|(word, what)| format!("  {word:width$}  {what}\n"));
    format!(
        "Traffic, for example udp,size=64,flows=10000,dst=10.0.0.0/16,zipf=0.99,ports=1-4:\n{}
The program runs on one core, in memory, in batches of 32 packets. Packets that
are all dropped are fast: look at what was forwarded first.

Live:
  triplane bench --live gen:sink --traffic udp,flows=1000,dst=10.0.0.0/16
  triplane bench router.p4 --entries e.json --live gen:sink --port 1=eth1 --port 2=eth2",
        words.collect::<String>()
    )
}

/// Runs P4_16 programs on Linux: check them, run them on real interfaces or packet captures, and see what happens to
/// a packet step by step.
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
    /// Show Triplane at work: a network, a P4 router, a market data feed; real traffic. Needs no privilege.
    Demo(DemoArgs),
    /// Run a program on interfaces, TAP devices or packet captures.
    #[command(after_help = RUN_AFTER_HELP, mut_arg("program", |program| program.required(false)))]
    Run(RunArgs),
    /// Look at a switch that runs, and change it: tables, entries, counters, over P4Runtime.
    #[command(after_help = crate::ctl::args::AFTER_HELP)]
    Ctl(crate::ctl::args::CtlArgs),
    /// Report every mistake in a program.
    Check(CheckArgs),
    /// Compile a program into one file that runs without its source.
    #[command(after_help = BUILD_AFTER_HELP)]
    Build(BuildArgs),
    /// Measure how fast a program is with your entries and traffic, and where the time goes.
    #[command(after_help = bench_after_help(), mut_arg("program", |program| program.required(false)))]
    Bench(Box<BenchArgs>),
    /// Run whole networks of switches and hosts, from one file.
    #[command(after_help = crate::lab::args::AFTER_HELP)]
    Lab(crate::lab::args::LabArgs),
    /// Filter packets by what is in their messages: rules become the tables of a P4 program.
    #[command(after_help = crate::subscribe::args::AFTER_HELP)]
    Subscribe(crate::subscribe::args::SubscribeArgs),
    /// Publish a made-up market data feed, and receive one: gaps, filters, latency.
    #[command(after_help = crate::market::args::AFTER_HELP)]
    Market(crate::market::args::MarketArgs),
    /// Print what a program becomes: tokens, types or pipeline IR.
    Dump(DumpArgs),
    /// Show what happens to a packet, step by step.
    Trace(TraceArgs),
    /// Run packet tests (STF) on a program: what goes in, and what has to come out.
    Stf(StfArgs),
    /// Print what a control plane has to know of a program: its P4Info (P4Runtime specification 1.5).
    #[command(name = "p4info")]
    P4Info(P4InfoArgs),
    /// Print a completion script for a shell; for bash, zsh and fish with the names of the switch that runs.
    #[command(after_help = COMPLETIONS_AFTER_HELP)]
    Completions {
        /// bash, zsh, fish, elvish or powershell.
        shell: clap_complete::Shell,
    },
}

/// `triplane demo`
#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Use packet captures even where namespaces are allowed.
    #[arg(long)]
    pub offline: bool,
    /// Print the account as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `triplane run`
#[derive(Args, Debug)]
pub struct RunArgs {
    /// The program; not needed if there is one in the directory of `--state-dir`.
    #[command(flatten)]
    pub program: Option<ProgramArgs>,

    /// A port: NUMBER=INTERFACE, NUMBER=xdp:INTERFACE[,SETTING...], NUMBER=tap:NAME, or NUMBER=IN.pcap:OUT.pcap (either
    /// file may be left out).
    #[arg(short, long = "port", value_name = "N=WHAT", required = true)]
    pub ports: Vec<String>,

    /// Table entries and whatever else a control plane writes, as JSON.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub entries: Option<PathBuf>,

    /// The seed of everything random in the program.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Stop after this time (live ports run until Ctrl-C otherwise).
    #[arg(long, value_name = "SECONDS")]
    pub duration: Option<f64>,

    /// Number of forwarding threads, or `auto` for one per core. All frames of a flow take the same thread.
    #[arg(long, value_name = "N", default_value = "1", value_parser = workers)]
    pub workers: usize,

    /// Run on the interpreter, not as machine code.
    #[arg(long)]
    pub interpret: bool,

    /// Write digests, packets to the CPU port and idle entries to a file, a JSON object a line.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub messages: Option<PathBuf>,

    /// The control plane.
    #[command(flatten)]
    pub control: crate::control::ControlArgs,

    /// Serve the switch's counters for Prometheus over HTTP: ADDRESS:PORT, or PORT alone for this machine only.
    #[arg(long, value_name = "ADDR", value_parser = crate::metrics::address)]
    pub metrics: Option<std::net::SocketAddr>,

    /// Print the summary as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Maximum number of workers.
const MAX_WORKERS: usize = 64;

fn workers(text: &str) -> Result<usize, String> {
    if text == "auto" {
        return Ok(std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_WORKERS)));
    }
    let number = text.parse().ok().filter(|number| (1..=MAX_WORKERS).contains(number));
    number.ok_or_else(|| format!("give a number from 1 to {MAX_WORKERS}, or `auto` for one a core"))
}

/// `triplane check`
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// The program.
    #[command(flatten)]
    pub program: ProgramArgs,

    /// An entries file to check against the program.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub entries: Option<PathBuf>,

    /// Print the findings as JSON, for editors.
    #[arg(long)]
    pub json: bool,
}

/// `triplane build`
#[derive(Args, Debug)]
pub struct BuildArgs {
    /// The program.
    #[command(flatten)]
    pub program: ProgramArgs,

    /// The file to write; by default the program's name with the ending .tpl.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Write the program's P4Info too: as JSON or bytes if the name ends in .json or .bin, else as text.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub p4info_out: Option<PathBuf>,
}

/// `triplane bench`
#[derive(Args, Debug)]
pub struct BenchArgs {
    /// The program.
    #[command(flatten)]
    pub program: Option<ProgramArgs>,

    /// Table entries and whatever else a control plane writes, as JSON.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub entries: Option<PathBuf>,

    /// Traffic to send: a line of words (below) or a capture, whose frames come over and over. By default frames
    /// match the entries of the program's tables.
    #[arg(short, long, value_name = "SPEC|PCAP", value_hint = ValueHint::FilePath)]
    pub traffic: Option<String>,

    /// Number of packets to measure, rounded up to whole batches in each of seven rounds.
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    pub packets: Option<u64>,

    /// Duration of the measurement, in seconds.
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    pub seconds: f64,

    /// Run on the interpreter, not as machine code.
    #[arg(long)]
    pub interpret: bool,

    /// Measure this too, in turns, and say how the two compare.
    #[arg(long, value_name = "WHAT")]
    pub against: Option<Against>,

    /// Offer frames to interface A and count them on B: the highest rate without loss, and latency, of whatever
    /// forwards between them. A may be xdp:NAME. Needs root.
    #[arg(help_heading = "Live", long, value_name = "A:B", conflicts_with_all = ["packets", "seconds", "against"])]
    pub live: Option<String>,

    /// With --live: run the program on this port, as `triplane run` does; may be repeated. Without ports, something
    /// else forwards.
    #[arg(help_heading = "Live", short, long = "port", value_name = "N=WHAT", requires_all = ["live", "program"])]
    pub ports: Vec<String>,

    /// With --live: the length of a trial.
    #[arg(help_heading = "Live", long, value_name = "S", default_value_t = 1.0, requires = "live")]
    pub trial: f64,

    /// With --live: how many of a hundred frames may be lost.
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
    /// The tokens behind the preprocessor.
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

    /// Output format; by default from the name of FILE (.json, .bin, .txtpb), or text.
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<InfoFormat>,

    /// Write to a file instead of standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
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

    /// Packet tests in the P4 community's STF format; each runs on a switch of its own.
    #[arg(value_name = "TEST.stf", required = true, value_hint = ValueHint::FilePath)]
    pub tests: Vec<PathBuf>,

    /// Show what happens to every packet, step by step.
    #[arg(long)]
    pub trace: bool,

    /// The seed of everything random in the program.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Print the results as JSON, one object a test.
    #[arg(long)]
    pub json: bool,
}

/// `triplane trace`
#[derive(Args, Debug)]
pub struct TraceArgs {
    /// The program.
    #[command(flatten)]
    pub program: ProgramArgs,

    /// Table entries and whatever else a control plane writes, as JSON.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub entries: Option<PathBuf>,

    /// The port the packet comes in on.
    #[arg(short, long, value_name = "N")]
    pub port: u32,

    /// The packet: hexadecimal digits, or a capture file (every packet of it, in order).
    #[arg(long, value_name = "HEX|PCAP", value_hint = ValueHint::FilePath)]
    pub packet: String,

    /// The seed of everything random in the program.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Print the trace as JSON, one object a packet.
    #[arg(long)]
    pub json: bool,
}
