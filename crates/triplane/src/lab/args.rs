//! Defines the command line of `triplane lab`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueHint};

use crate::kernel::KernelMode;
use crate::memory::args::MemoryServeArgs;

pub const AFTER_HELP: &str = "\
A network of P4 switches on this machine, from one file:
  triplane lab new fat-tree --k 4 > lab.toml   generate a topology
  triplane lab check lab.toml                  report every error in it
  triplane lab sim lab.toml                    run it in virtual time: which hosts reach which
  triplane lab sim lab.toml --scenario load.toml --out results --plot
  triplane lab sim lab.toml --scenario faults.toml --seeds 1000
  triplane lab up lab.toml                     run it live, with namespaces as hosts
  triplane lab run lab.toml --scenario faults.toml
  triplane lab exec h1 ping -c 3 10.0.0.2
  triplane lab pcap s1:1 | tcpdump -r -
  triplane lab down

Privileges: none are needed where unprivileged user namespaces are available. Otherwise:
  sudo setcap cap_sys_admin,cap_net_admin,cap_net_raw+ep triplane
Kernel ports (--kernel) need root, or also cap_bpf and cap_perfmon, outside of user
namespaces. With --isolate each switch is a process that gives up all capabilities once its
ports are open.

The topology.json files of the public P4 tutorials are read unchanged; pass their
program with --program basic.p4. docs/lab.md describes both file formats.";

/// `triplane lab`
#[derive(Args, Debug)]
pub struct LabArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub command: LabCommand,
}

/// The subcommands of `triplane lab`.
#[derive(Subcommand, Debug)]
pub enum LabCommand {
    /// Print a lab.toml for a network of a standard shape.
    New(NewArgs),
    /// Report every error in a topology, its programs and entries.
    Check(CheckArgs),
    /// Simulate a network in virtual time: exact, repeatable, faster than real time.
    Sim(Box<SimArgs>),
    /// Start a network of namespaces and links, with real hosts and real programs. Needs root, or user namespaces.
    Up(UpArgs),
    /// Start a network, play a scenario on it in real time, and tear it down.
    Run(Box<RunArgs>),
    /// Play a scenario on a network that is up; `run` starts this.
    #[command(hide = true)]
    Play(Box<RunArgs>),
    /// Tear down a running network completely.
    Down(DownArgs),
    /// Run a command on a host.
    Exec(ExecArgs),
    /// Start a shell on a host.
    Shell(ShellArgs),
    /// Show the state of a network.
    Status {
        /// The network.
        #[command(flatten)]
        lab: NameArgs,
        /// Print the state as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Crash a switch, a store or a memory server: it stops, and its state is lost. Neighbours of a switch see their
    /// ports go down.
    Fail(NodeArgs),
    /// Restart a crashed switch in its initial state, a store, or a memory server with empty memory.
    Heal(NodeArgs),
    /// Suspend the process of a store, of a memory server or, with --isolate, of a switch (SIGSTOP).
    Suspend(NodeArgs),
    /// Let a suspended process continue.
    Resume(NodeArgs),
    /// Set a link down or up.
    Link(LinkArgs),
    /// Capture the frames that pass through a switch port, to a file or a pipe.
    Pcap(PcapArgs),
    /// Exit with an error that gives the reason if no live network can be created here.
    #[command(hide = true)]
    Allowed,
    /// Run the daemon of a network; `up` starts this.
    #[command(hide = true)]
    Daemon(DaemonArgs),
    /// Run one switch of a network; `daemon` starts this.
    #[command(hide = true)]
    Switch(SwitchMainArgs),
    /// Run one store of a network; `daemon` starts this.
    #[command(hide = true)]
    Store(StoreMainArgs),
    /// Run the operator of a network's stores; `daemon` starts this.
    #[command(hide = true)]
    Operator(OperatorMainArgs),
    /// Run the shim of a host; `daemon` starts this.
    #[command(hide = true)]
    Shim(ShimMainArgs),
    /// Run one memory server of a network; `daemon` starts this.
    #[command(hide = true)]
    Memory(MemoryServeArgs),
}

/// `triplane lab up`
#[derive(Args, Debug, Clone)]
pub struct UpArgs {
    /// The network to start.
    #[command(flatten)]
    pub live: LiveArgs,
    /// Name of the network; by default the name of its topology file without the extension, or of its directory if that
    /// is lab or topology.
    #[arg(long)]
    pub name: Option<String>,
}

/// `triplane lab run`
#[derive(Args, Debug, Clone)]
pub struct RunArgs {
    /// The network to start.
    #[command(flatten)]
    pub up: UpArgs,
    /// The scenario: traffic, faults and expectations; without it, all hosts ping each other.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub scenario: Option<PathBuf>,
    /// Print the results as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of a live network.
#[derive(Args, Debug, Clone)]
pub struct LiveArgs {
    /// The topology.
    #[command(flatten)]
    pub topology: TopologyArgs,
    /// Seed of link losses and of the programs' random numbers; by default that of the scenario, if one runs, or 1.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Use the interpreter instead of machine code.
    #[arg(long)]
    pub interpret: bool,
    /// Run the programs of the switches in the kernel, at ports whose links have no rate, delay or errors; by default,
    /// `kernel` in the topology says which switches do.
    #[arg(long, value_name = "MODE")]
    pub kernel: Option<KernelMode>,
    /// Run every switch in its own process, so that a crash does not affect the others.
    #[arg(long)]
    pub isolate: bool,
    /// Serve P4Runtime for every switch: the first at 127.0.0.1:50051 or at this address, the others at the following
    /// ports; device IDs start at 0. A topology can also request this for single switches.
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "", value_parser = first_address)]
    pub p4runtime: Option<std::net::SocketAddr>,
}

impl LiveArgs {
    /// Returns the seed of everything random.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }
}

/// Parses the value of `--p4runtime`.
fn first_address(text: &str) -> Result<std::net::SocketAddr, String> {
    let address = crate::control::address_or(text, lab_live::DEFAULT_CONTROLLER_PORT).map_err(|_| {
        "expected ADDRESS:PORT or PORT; to use the default address, put --p4runtime after the topology".to_owned()
    })?;
    match address.port() {
        0 => Err("the port must be from 1 to 65535: the switches use it and the following ports".to_owned()),
        _ => Ok(address),
    }
}

/// `triplane lab daemon`
#[derive(Args, Debug)]
pub struct DaemonArgs {
    /// The network.
    #[command(flatten)]
    pub live: LiveArgs,
    /// Name of the network.
    #[arg(long)]
    pub name: String,
    /// End at the end of standard input, which comes when the process that started this one ends.
    #[arg(long)]
    pub bound: bool,
}

/// `triplane lab switch`
#[derive(Args, Debug)]
pub struct SwitchMainArgs {
    /// The network.
    #[command(flatten)]
    pub daemon: DaemonArgs,
    /// The switch.
    #[arg(long)]
    pub switch: String,
}

/// `triplane lab shim`
#[derive(Args, Debug)]
pub struct ShimMainArgs {
    /// The network.
    #[command(flatten)]
    pub daemon: DaemonArgs,
    /// The host.
    #[arg(long)]
    pub host: String,
}

/// `triplane lab store`
#[derive(Args, Debug)]
pub struct StoreMainArgs {
    /// Name of the network.
    #[arg(long)]
    pub name: String,
    /// The store.
    #[arg(long)]
    pub store: String,
    /// Keep the rows on disk.
    #[arg(long)]
    pub durable: bool,
}

/// `triplane lab operator`
#[derive(Args, Debug)]
pub struct OperatorMainArgs {
    /// Name of the network.
    #[arg(long)]
    pub name: String,
}

/// Selects a network that is up.
#[derive(Args, Debug)]
pub struct NameArgs {
    /// The network's name; optional if only one is running.
    #[arg(long, value_name = "NAME")]
    pub lab: Option<String>,
}

/// `triplane lab down`
#[derive(Args, Debug)]
pub struct DownArgs {
    /// The network.
    #[command(flatten)]
    pub lab: NameArgs,
    /// The network's name, as --lab.
    #[arg(value_name = "LAB", conflicts_with = "lab")]
    pub name: Option<String>,
    /// Tear down all running networks.
    #[arg(long, conflicts_with_all = ["lab", "name"])]
    pub all: bool,
}

impl DownArgs {
    /// Returns the name of the selected network, if one is given.
    pub fn name(&self) -> Option<&str> {
        self.lab.lab.as_deref().or(self.name.as_deref())
    }
}

/// `triplane lab exec`
#[derive(Args, Debug)]
pub struct ExecArgs {
    /// The network.
    #[command(flatten)]
    pub lab: NameArgs,
    /// The host.
    pub host: String,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
}

/// `triplane lab shell`
#[derive(Args, Debug)]
pub struct ShellArgs {
    /// The network.
    #[command(flatten)]
    pub lab: NameArgs,
    /// The host.
    pub host: String,
}

/// `triplane lab fail`, `triplane lab heal`, `triplane lab suspend`, `triplane lab resume`
#[derive(Args, Debug)]
pub struct NodeArgs {
    /// The network.
    #[command(flatten)]
    pub lab: NameArgs,
    /// The switch, the store, the memory server, or `operator`.
    pub node: String,
}

/// `triplane lab link`
#[derive(Args, Debug)]
pub struct LinkArgs {
    /// The network.
    #[command(flatten)]
    pub lab: NameArgs,
    /// The new state of the link.
    pub state: LinkState,
    /// The host or switch at one end.
    pub one: String,
    /// The host or switch at the other end.
    pub other: String,
}

/// The state of a link.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// The link carries frames.
    Up,
    /// The link carries nothing.
    Down,
}

/// `triplane lab pcap`
#[derive(Args, Debug)]
pub struct PcapArgs {
    /// The network.
    #[command(flatten)]
    pub lab: NameArgs,
    /// The port, for example s1:2.
    pub port: String,
    /// The output file; - for standard output, to pipe into tcpdump or Wireshark.
    #[arg(default_value = "-", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

/// `triplane lab new`
#[derive(Args, Debug)]
pub struct NewArgs {
    /// The shape.
    #[command(subcommand)]
    pub kind: NewKind,
    /// Rate of the links, for example 1Gbps; or unlimited.
    #[arg(long, global = true)]
    pub rate: Option<LinkRate>,
    /// Delay of the links, for example 10us.
    #[arg(long, global = true)]
    pub delay: Option<lab::Delay>,
    /// Queue capacity at each end of a link, in frames.
    #[arg(long, global = true, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub queue: Option<u32>,
}

/// Rate of links; `None` for links without serialisation time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkRate(pub Option<lab::Rate>);

impl FromStr for LinkRate {
    type Err = lab::NotAQuantity;

    fn from_str(text: &str) -> Result<LinkRate, lab::NotAQuantity> {
        Ok(LinkRate(if text == lab::UNLIMITED { None } else { Some(text.parse()?) }))
    }
}

/// Shapes of networks.
#[derive(Subcommand, Debug)]
pub enum NewKind {
    /// Switches in a line.
    Line {
        /// Number of switches.
        #[arg(long, default_value_t = 3)]
        switches: u32,
        /// Hosts on each switch.
        #[arg(long, default_value_t = 1)]
        hosts: u32,
    },
    /// Switches in a ring.
    Ring {
        /// Number of switches.
        #[arg(long, default_value_t = 4)]
        switches: u32,
        /// Hosts on each switch.
        #[arg(long, default_value_t = 1)]
        hosts: u32,
    },
    /// One switch and its hosts.
    Star {
        /// Number of hosts.
        #[arg(long, default_value_t = 4)]
        hosts: u32,
    },
    /// Every leaf connected to every spine.
    LeafSpine {
        /// Number of leaves.
        #[arg(long, default_value_t = 4)]
        leaves: u32,
        /// Number of spines.
        #[arg(long, default_value_t = 2)]
        spines: u32,
        /// Hosts on each leaf.
        #[arg(long, default_value_t = 2)]
        hosts: u32,
    },
    /// The fat tree of k-port switches.
    FatTree {
        /// Number of ports of a switch; even.
        #[arg(long, default_value_t = 4)]
        k: u32,
    },
    /// Two switches and a link between them.
    Dumbbell {
        /// Hosts on each side.
        #[arg(long, default_value_t = 2)]
        hosts: u32,
        /// Rate of the link in the middle.
        #[arg(long)]
        middle_rate: Option<LinkRate>,
        /// Delay of the link in the middle.
        #[arg(long)]
        middle_delay: Option<lab::Delay>,
    },
    /// A random tree with additional links.
    Random {
        /// Number of switches.
        #[arg(long, default_value_t = 6)]
        switches: u32,
        /// Number of links in addition to the tree.
        #[arg(long, default_value_t = 3)]
        extra: u32,
        /// Hosts on each switch.
        #[arg(long, default_value_t = 1)]
        hosts: u32,
        /// Seed of the random links.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

/// A topology and the program that its switches run.
#[derive(Args, Debug, Clone)]
pub struct TopologyArgs {
    /// A lab.toml, or a topology.json of the public P4 tutorials.
    #[arg(value_name = "LAB", value_hint = ValueHint::FilePath)]
    pub topology: PathBuf,
    /// The program of switches for which the topology specifies none.
    #[arg(long, value_name = "PROG.p4", value_hint = ValueHint::FilePath)]
    pub program: Option<PathBuf>,
    /// Also search this directory for files that the programs include; may be repeated.
    #[arg(short = 'I', long = "include", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub include: Vec<PathBuf>,
    /// Define a preprocessor macro in every program: NAME or NAME=VALUE.
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    pub define: Vec<String>,
}

/// `triplane lab check`
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// The topology.
    #[command(flatten)]
    pub topology: TopologyArgs,
}

/// `triplane lab sim`
#[derive(Args, Debug)]
pub struct SimArgs {
    /// The topology.
    #[command(flatten)]
    pub topology: TopologyArgs,
    /// The scenario: traffic, faults and expectations; without it, all hosts ping each other.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub scenario: Option<PathBuf>,
    /// Seed of all random numbers, instead of the scenario's seed.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Run this many seeds, starting at --seed, and report those that do not meet the scenario's expectations.
    #[arg(long, value_name = "N", conflicts_with_all = ["out", "plot"])]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub seeds: Option<u64>,
    /// Number of threads; it does not affect the results.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub threads: u16,
    /// Write time series (CSV) and the scenario's captures to this directory.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Plot throughput, queues and latencies, as SVG and PNG, next to the time series.
    #[arg(long, requires = "out")]
    pub plot: bool,
    /// Draw what happens when the first switch with @resilient state crashes, as SVG: requests, grants, the end of the
    /// lease, the gap in the answers.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "seeds")]
    pub timeline: Option<PathBuf>,
    /// Use the interpreter instead of machine code.
    #[arg(long)]
    pub interpret: bool,
    /// Print the results as JSON.
    #[arg(long)]
    pub json: bool,
}
