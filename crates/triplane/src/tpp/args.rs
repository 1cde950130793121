//! Defines the arguments of `triplane tpp`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// Text below the help of `triplane tpp`.
pub const AFTER_HELP: &str = "\
A program for five hops, burst.tpp:

  .word 16
  .hops 5
  PUSH [Switch:ID]
  PUSH [PacketMetadata:OutputPort]
  PUSH [Queue:QueueOccupancy]

  triplane tpp check burst.tpp              what it reads and writes, and what it costs
  triplane tpp asm burst.tpp -o burst.bin   its bytes
  triplane tpp dis burst.bin                text again; also the programs of a capture
  triplane tpp map Queue                    the names of switch memory
  triplane tpp map --lua > tpp.lua          a dissector: tshark -X lua_script:tpp.lua
  triplane tpp echo 10.0.2.2                on the host that receives programs
  triplane tpp run burst.tpp 10.0.2.2       what each switch wrote
  triplane tpp run burst.tpp 10.0.2.2 10.0.3.3 --switch 1,2   only on these switches
  triplane tpp ping 10.0.2.2                the queues on the path
  triplane tpp trace 10.0.2.2               its switches, ports and latencies
  triplane tpp top                          the queues of a live lab whose hosts have shims
  triplane tpp shim eth0 --insert 'burst.tpp tcp port 5201 one-in 10'   in the packets of applications

docs/tpp.md is the guide and the reference.";

/// Tiny packet programs.
#[derive(Args, Debug)]
pub struct TppArgs {
    #[command(subcommand)]
    pub command: TppCommand,
}

/// The commands of `triplane tpp`.
#[derive(Subcommand, Debug)]
pub enum TppCommand {
    /// Assemble a program.
    Asm(AsmArgs),
    /// Disassemble a program, or the programs of a capture with the words that switches wrote.
    Dis(DisArgs),
    /// Analyse a program: its read and write sets, its cost, and what a policy forbids.
    Check(CheckArgs),
    /// List the map of switch memory, or write it as Markdown or as a Wireshark dissector.
    Map(MapArgs),
    /// Send a program to hosts that run `triplane tpp echo`, and print what the switches wrote.
    Run(RunArgs),
    /// Send a program repeatedly, and print the queues on the path.
    Ping(PingArgs),
    /// Print the switches on the path, with ports, queues and latencies.
    Trace(TraceArgs),
    /// Show the queues of a live lab, port by port, as the programs in the packets of its hosts see them.
    Top(TopArgs),
    /// Insert programs into the packets of this host's applications, and collect those that arrive, until Ctrl-C.
    Shim(ShimArgs),
    /// Send programs that arrive here back to their senders, until Ctrl-C.
    Echo(EchoArgs),
}

/// The destination of a program.
#[derive(Args, Debug)]
pub struct TargetArgs {
    /// The host that echoes the program: a name or an address.
    #[arg(value_name = "HOST")]
    pub host: String,

    /// Time after which a program without an echo is lost, in seconds. `trace` sends it up to three times, and waits
    /// twice as long each time.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    pub timeout: f64,

    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `triplane tpp run`.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// A program in assembly language, as bytes or as hexadecimal digits. Text may have up to 64 instructions and
    /// memory for 127 hops: it is split into several packets.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// The hosts that echo the program: names or addresses.
    #[arg(value_name = "HOST", required = true, num_args = 1..)]
    pub hosts: Vec<String>,

    /// Execute the program on these switches only, each on its own. They are on the way to each host.
    #[arg(long, value_name = "ID", value_delimiter = ',', value_parser = switch_id)]
    pub switch: Vec<u32>,

    /// Let the first switch that reaches the end of the program send it back, as `.reflect` does.
    #[arg(long)]
    pub reflect: bool,

    /// Maximum number of times that a packet is sent until its echo comes.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub tries: u32,

    /// Time after which a packet without an echo is sent again, in seconds. It doubles with each try, up to 8 s or this
    /// time if it is longer.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    pub timeout: f64,

    /// Time for all hosts and switches, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    pub deadline: f64,

    /// Nobody else stores the new values of the program's CSTOREs: a word that has the new value is a success.
    #[arg(long)]
    pub own_values: bool,

    /// Print JSON.
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub program: ProgramOption,
}

/// The arguments of `triplane tpp ping`.
#[derive(Args, Debug)]
pub struct PingArgs {
    #[command(flatten)]
    pub target: TargetArgs,

    /// Stop after this number of programs; 0 for Ctrl-C alone.
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    pub count: u64,

    /// Time from one program to the next, in seconds.
    #[arg(short, long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    pub interval: f64,

    /// Number of switches for which a program has memory.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=MAX_HOPS))]
    pub hops: u8,
}

/// The arguments of `triplane tpp trace`.
#[derive(Args, Debug)]
pub struct TraceArgs {
    #[command(flatten)]
    pub target: TargetArgs,

    /// Number of switches for which the program has memory. It takes a packet for each 23 of them.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=127))]
    pub hops: u8,
}

/// The arguments of `triplane tpp top`.
#[derive(Args, Debug)]
pub struct TopArgs {
    /// The lab; optional if only one is running.
    #[arg(long, value_name = "NAME")]
    pub lab: Option<String>,

    /// Stop after this number of tables; 0 for Ctrl-C alone.
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    pub count: u64,

    /// Time from one table to the next, in seconds.
    #[arg(short, long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    pub interval: f64,

    /// Print JSON, an object a line.
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `triplane tpp echo`.
#[derive(Args, Debug)]
pub struct EchoArgs {
    /// The address of this host at which programs arrive; 0.0.0.0 for all.
    #[arg(value_name = "ADDRESS")]
    pub address: IpAddr,
}

/// The arguments of `triplane tpp shim`.
#[derive(Args, Debug)]
pub struct ShimArgs {
    /// The interface whose IPv4 packets get programs.
    #[arg(value_name = "INTERFACE")]
    pub wire: String,

    /// Insert a program into packets of this host: `FILE [from PREFIX] [to PREFIX] [tcp|udp|icmp|protocol N]
    /// [source-port N] [port N] [one-in N] [priority N]`. Every destination that matches must run a shim: others drop
    /// the packets. The first rule that matches and samples decides. The program is collected from all packets that
    /// arrive.
    #[arg(long, value_name = "RULE")]
    pub insert: Vec<String>,

    /// A file of such rules, one a line; `#` begins a comment. Files of programs are relative to it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub rules: Option<PathBuf>,

    /// Collect a program from packets that arrive: `FILE` and the conditions of a rule.
    #[arg(long, value_name = "RULE")]
    pub collect: Vec<String>,

    /// Name of the device to which the host's routes lead while the shim runs.
    #[arg(long, value_name = "NAME", default_value = "tpp0")]
    pub device: String,

    /// Refuse programs that this policy does not permit to their application (`.app`): lines of `APPLICATION read|write
    /// ADDRESS`, `… FIRST .. LAST` or `… all`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub policy: Option<PathBuf>,

    /// Print each program that arrives, and not only the sums.
    #[arg(long)]
    pub lines: bool,

    /// Print JSON: an object for each program with `--lines`, and one with the sums at the end.
    #[arg(long)]
    pub json: bool,

    /// Print which privileges remain once everything is open.
    #[arg(long)]
    pub show_privileges: bool,

    #[command(flatten)]
    pub program: ProgramOption,
}

/// Maximum number of hops for which a program of `ping` has memory: 20 bytes each, of 510 with header and instructions.
pub const MAX_HOPS: i64 = 23;

/// Parses a time in seconds, from 1 ms to an hour.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.001..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "expected seconds, from 0.001 to 3600".to_owned())
}

/// Parses the number of a switch.
fn switch_id(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| {
        "expected the number of a switch, such as 2: that of `triplane run --tpp`, or its place in the file of a lab, \
         from 1; `triplane tpp trace HOST` lists the switches on the path"
            .to_owned()
    })
}

/// The P4 program whose registers and fields have names.
#[derive(Args, Debug)]
pub struct ProgramOption {
    /// The P4 program of the switches: its registers are `Register:NAME[INDEX]`, its fields `Field:NAME`.
    #[arg(long, value_name = "PROG.p4", value_hint = ValueHint::FilePath)]
    pub program: Option<PathBuf>,
}

/// The arguments of `triplane tpp asm`.
#[derive(Args, Debug)]
pub struct AsmArgs {
    /// The program in assembly language.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    #[command(flatten)]
    pub program: ProgramOption,

    /// Write the bytes to this file.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Print the bytes and their meaning as JSON.
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `triplane tpp dis`.
#[derive(Args, Debug)]
pub struct DisArgs {
    /// A program as bytes or as hexadecimal digits, or a capture (pcap, pcapng).
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    #[command(flatten)]
    pub program: ProgramOption,

    /// Print the programs as JSON.
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `triplane tpp check`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// A program in assembly language, as bytes or as hexadecimal digits.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    #[command(flatten)]
    pub program: ProgramOption,

    /// The access policy: lines of `APPLICATION read|write ADDRESS`, `… FIRST .. LAST` or `… all`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "application")]
    pub policy: Option<PathBuf>,

    /// The application that sends the program.
    #[arg(long, value_name = "N", requires = "policy")]
    pub application: Option<u64>,

    /// Check for a network in which writes are disabled.
    #[arg(long)]
    pub no_writes: bool,

    /// Print the analysis as JSON.
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `triplane tpp map`.
#[derive(Args, Debug)]
pub struct MapArgs {
    /// Namespaces, such as `Queue`; all by default.
    #[arg(value_name = "NAMESPACE")]
    pub namespaces: Vec<String>,

    #[command(flatten)]
    pub program: ProgramOption,

    /// Print Markdown.
    #[arg(long, conflicts_with_all = ["lua", "json", "int"])]
    pub markdown: bool,

    /// Print a Wireshark dissector in Lua.
    #[arg(long, conflicts_with_all = ["json", "int", "namespaces"])]
    pub lua: bool,

    /// Print the fields of INT 2.1 metadata that have the same values.
    #[arg(long, conflicts_with_all = ["json", "namespaces"])]
    pub int: bool,

    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
