//! Defines the command line of `triplane subscribe`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use subscribe::{TargetCapabilities, Wide};

pub use super::live::args::{AddArgs, RemoveArgs, ServeArgs, ServiceArgs, TlsArgs};

pub const AFTER_HELP: &str = "\
Examples:
  triplane subscribe check   feed.p4 rules.sub          report errors in the rules
  triplane subscribe program feed.p4 -o feed-tables.p4  the P4 program that matches rules
  triplane subscribe compile feed.p4 rules.sub -o feed.json --program feed-tables.p4
  triplane run feed-tables.p4 --entries feed.json --port 1=eth1 --port 2=eth2

FORMAT is a P4 program of headers and a parser. Its annotations declare what rules can
test: fields (@query_field, @query_field_exact, @query_field_lpm), and state from earlier
messages (@query_aggregate, @query_counter). Rules are text:

  stock == \"GOOGL\" and price > 50 : fwd(1, 2)
  stock in {\"AAPL\", \"MSFT\"} or shares >= 1000 : fwd(3); to_controller

docs/subscriptions-reference.md describes the whole language.";

/// `triplane subscribe`.
#[derive(Args, Debug)]
pub struct SubscribeArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub command: SubscribeCommand,
}

/// The subcommands of `triplane subscribe`.
#[derive(Subcommand, Debug)]
pub enum SubscribeCommand {
    /// Report every error in rules, and rules that can never match.
    Check(RulesArgs),
    /// Generate the program that matches rules: the format's parser, tables for each field, actions. Rules can be added
    /// and removed later; the rules given here determine the order in which its tables match the fields.
    Program(ProgramArgs),
    /// Compile rules into the entries of that program's tables.
    Compile(CompileArgs),
    /// Explain which rules a message matches and why, and why others do not match.
    Explain(ExplainArgs),
    /// Compile rules that deliver to the hosts of a network into the entries of each of its switches.
    Network(NetworkArgs),
    /// Compare two sets of rules or entries: report whether they deliver every message in the same way, and if not,
    /// show a message for which they differ.
    ///
    /// Exit codes: 0 equivalent; 1 different; 2 a usage error, or an error in the rules or entries; 3 a system error.
    Diff(DiffArgs),
    /// Keep a running switch up to date with the rules of a watched file, and with those that clients add and remove.
    Serve(Box<ServeArgs>),
    /// Add rules to a running switch, through the service; print their IDs once they are in effect.
    Add(AddArgs),
    /// Remove rules that were added.
    Remove(RemoveArgs),
    /// List the service's rules.
    List(ServiceArgs),
    /// Show the service's status, and each change to it.
    Watch(ServiceArgs),
}

/// A message format.
#[derive(Args, Debug)]
pub struct FormatArgs {
    /// The P4 program with the annotated headers and the parser.
    #[arg(value_name = "FORMAT", value_hint = ValueHint::FilePath)]
    pub format: PathBuf,
    /// Also search this directory for included files.
    #[arg(short = 'I', long = "include", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub include: Vec<PathBuf>,
    /// Define a preprocessor macro.
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    pub define: Vec<String>,
    /// Fields whose tables come first, in this order; program and entries must use the same order. By default it is
    /// chosen for the rules if the program is generated for them, and follows the annotations otherwise.
    #[arg(long, value_name = "FIELD,FIELD", value_delimiter = ',')]
    pub order: Vec<String>,
    /// Use the order of this program, which was generated from the same format, and deliver as it does (see --bitmaps
    /// and --groups).
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::FilePath, conflicts_with = "order")]
    pub order_of: Option<PathBuf>,
    /// Maximum memory of the diagrams: 512M, 2G. It limits the diagrams, not the process: entries, their text and rules
    /// need more. By default 4G, or half of the available memory (of the machine, of the control group, or within
    /// `ulimit -v`) if that is less.
    #[arg(long, value_name = "SIZE", value_parser = super::memory::size)]
    pub memory: Option<u64>,
}

/// A format and rules.
#[derive(Args, Debug)]
pub struct RulesArgs {
    /// The format.
    #[command(flatten)]
    pub format: FormatArgs,
    /// Rules files.
    #[arg(value_name = "RULES", required = true, value_hint = ValueHint::FilePath)]
    pub rules: Vec<PathBuf>,
}

/// `triplane subscribe network`.
#[derive(Args, Debug)]
pub struct NetworkArgs {
    /// Format and rules; `fwd` takes hosts: `fwd(h1, h2)`.
    #[command(flatten)]
    pub rules: RulesArgs,
    /// The shape.
    #[command(flatten)]
    pub shape: ShapeArgs,
    /// The topology: hosts, switches, links.
    #[arg(long, value_name = "LAB.toml", value_hint = ValueHint::FilePath)]
    pub lab: PathBuf,
    /// Output directory for `switch.p4`, entries for each switch, and `lab.toml` with all of them.
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: PathBuf,
    /// Messages that switches send upward: those that a host above subscribes to, or all, which takes fewer entries but
    /// causes more traffic.
    #[arg(long, value_enum, default_value = "exact")]
    pub upward: Upward,
    /// Route messages in a shortest-path tree rooted at this switch, instead of over all switches of the layers.
    #[arg(long, value_name = "SWITCH")]
    pub root: Option<String>,
}

/// Messages that switches pass up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Upward {
    /// Messages that a host above subscribes to.
    Exact,
    /// All messages.
    Everything,
}

/// `triplane subscribe explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// Format and rules.
    #[command(flatten)]
    pub rules: RulesArgs,
    /// The message: fields with their values, and names of headers; all other fields and headers are absent. If a field
    /// occurs in several headers and rules test the header, name the header as well.
    #[arg(long, value_name = "FIELD=VALUE,HEADER", value_delimiter = ',', required_unless_present = "packet")]
    pub message: Vec<String>,
    /// A packet: hexadecimal digits, or a capture file (all its packets, in order). It is parsed as by a switch, and
    /// each of its messages is explained; later messages see the state that earlier ones changed.
    #[arg(long, value_name = "HEX|PCAP", value_hint = ValueHint::FilePath, conflicts_with = "message")]
    pub packet: Option<String>,
    /// Stop after this number of packets of the capture.
    #[arg(long, value_name = "N", requires = "packet")]
    pub count: Option<u64>,
    /// State from earlier messages: an aggregate's value for this message's key (`avg(price) by stock=600000`), or a
    /// counter's value. By default there were no earlier messages.
    #[arg(long, value_name = "AGGREGATE=VALUE")]
    pub state: Vec<String>,
    /// Number of non-matching rules to show, starting with those that came closest to matching.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub others: usize,
    /// Print JSON: one object for the message, or one line per packet.
    #[arg(long)]
    pub json: bool,
}

/// `triplane subscribe diff`.
#[derive(Args, Debug)]
pub struct DiffArgs {
    /// The format.
    #[command(flatten)]
    pub format: FormatArgs,
    /// The first side: a rules file; or entries, as written by `subscribe compile`; or `@ADDRESS:PORT`, the P4Runtime
    /// server of a switch.
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    pub first: PathBuf,
    /// The second side, in the same forms.
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    pub second: PathBuf,
    /// The controller's port, to compare rules with entries.
    #[arg(long, value_name = "PORT", default_value_t = v1model::CPU_PORT.into(), value_parser = crate::control::nine_bit_cpu_port)]
    pub cpu_port: u32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// P4Runtime device ID of the switch to read.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Switch")]
    pub device_id: u64,
    /// TLS.
    #[command(flatten, next_help_heading = "Switch")]
    pub tls: TlsArgs,
}

/// Options for the shape of the program.
#[derive(Args, Debug)]
pub struct ShapeArgs {
    /// Match kind for ranges in the target's tables: range, or prefixes as ternary or lpm entries (several tens for a
    /// 32-bit range in the worst case). Fields with `@query_field_lpm` always have lpm tables. Program and entries must
    /// use the same kind.
    #[arg(long, value_enum, value_name = "KIND", default_value = "range", help_heading = "Target")]
    pub ranges: Ranges,
    /// Give each field an exact table in addition to its table of ranges or prefixes, for the single values that rules
    /// test: exact entries cost a switch less, but software needs one more lookup. Program and entries must agree.
    #[arg(long, help_heading = "Target")]
    pub exact_tables: bool,
    /// Maximum number of messages of a packet that are matched in one pass; the others are recirculated. With 1, every
    /// table is applied in one place only, as BMv2 requires. By default, the size of the format's header stack.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub messages_per_pass: Option<u32>,
    /// Minimum number of ports, from 0 on, of the bitmaps that entries deliver to. By default 63, or more if the
    /// program is generated for rules that name more. Bitmaps have a multiple of 64 bits; program and entries must
    /// agree.
    #[arg(long, value_name = "PORTS", help_heading = "Target",
          value_parser = clap::value_parser!(u32).range(1..=511))]
    pub bitmaps: Option<u32>,
    /// Deliver to multicast groups instead of bitmaps of ports, as required by BMv2 and other targets. A packet whose
    /// messages have different subscribers then leaves as several packets, and the number of different sets of ports is
    /// limited. Program and entries must agree.
    #[arg(long, help_heading = "Target", conflicts_with = "bitmaps")]
    pub groups: bool,
}

/// Encoding of value ranges in table entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ranges {
    /// As range entries.
    Range,
    /// As prefixes in ternary entries; priorities decide among several matches.
    Ternary,
    /// As prefixes in lpm entries; the longest match wins.
    Lpm,
}

impl ShapeArgs {
    /// Returns the capabilities of the program's tables for these options.
    pub fn target(&self) -> TargetCapabilities {
        target(self.ranges, self.exact_tables)
    }
}

/// Returns the capabilities of a program's tables for these choices.
pub fn target(ranges: Ranges, exact_beside: bool) -> TargetCapabilities {
    let wide = match ranges {
        Ranges::Range => Wide::Range,
        Ranges::Ternary => Wide::Ternary,
        Ranges::Lpm => Wide::Lpm,
    };
    let target = subscribe_p4::ProgramOptions::default().target;
    TargetCapabilities { wide, has_ranges: ranges == Ranges::Range, exact_beside, ..target }
}

/// Formats the choices of tables as command line options.
pub fn flags(ranges: Ranges, exact: bool) -> String {
    let name = ranges.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    format!("--ranges {name}{}", if exact { " --exact-tables" } else { "" })
}

/// `triplane subscribe program`.
#[derive(Args, Debug)]
pub struct ProgramArgs {
    /// The format.
    #[command(flatten)]
    pub format: FormatArgs,
    /// Files of example rules: the field order is chosen for them.
    #[arg(value_name = "RULES", value_hint = ValueHint::FilePath)]
    pub rules: Vec<PathBuf>,
    /// The shape.
    #[command(flatten)]
    pub shape: ShapeArgs,
    /// Output file; by default the program is written to standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// `triplane subscribe compile`.
#[derive(Args, Debug)]
pub struct CompileArgs {
    /// Format and rules.
    #[command(flatten)]
    pub rules: RulesArgs,
    /// The shape.
    #[command(flatten)]
    pub shape: ShapeArgs,
    /// Output file; by default the entries are written to standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Also write the program, with a field order chosen for the rules. Without this option the entries are for a
    /// program that was generated without rules, unless --order or --order-of is given.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub program: Option<PathBuf>,
    /// Report the number of entries of each table, the number that these rules would need with other match kinds, and
    /// the size of the diagram.
    #[arg(long)]
    pub stats: bool,
    /// Write the diagram for Graphviz: nodes test fields, and a solid line is a test that holds.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub dot: Option<PathBuf>,
    /// The controller's port.
    #[arg(long, value_name = "PORT", default_value_t = v1model::CPU_PORT.into(), value_parser = crate::control::nine_bit_cpu_port)]
    pub cpu_port: u32,
}
