//! What `triplane subscribe` can be told.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use subscribe::{TargetCapabilities, Wide};

pub use super::live::args::{AddArgs, RemoveArgs, ServeArgs, ServiceArgs, TlsArgs};

pub const AFTER_HELP: &str = "\
Examples:
  triplane subscribe check   feed.p4 rules.sub          what is wrong with rules
  triplane subscribe program feed.p4 -o feed-tables.p4  the P4 program that matches rules
  triplane subscribe compile feed.p4 rules.sub -o feed.json --program feed-tables.p4
  triplane run feed-tables.p4 --entries feed.json --port 1=eth1 --port 2=eth2

FORMAT is a P4 program of headers and a parser, whose annotations say what rules may
ask for: @query_field, @query_field_exact, @query_field_lpm, and of messages before:
@query_aggregate, @query_counter. Rules are text:

  stock == \"GOOGL\" and price > 50 : fwd(1, 2)
  stock in {\"AAPL\", \"MSFT\"} or shares >= 1000 : fwd(3); to_controller

docs/subscriptions-reference.md has the whole language.";

/// `triplane subscribe`.
#[derive(Args, Debug)]
pub struct SubscribeArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: SubscribeCommand,
}

/// What `triplane subscribe` does.
#[derive(Subcommand, Debug)]
pub enum SubscribeCommand {
    /// Report every mistake in rules, and rules that can never match.
    Check(RulesArgs),
    /// Write the program that matches rules: the format's parser, tables for each field, actions. Rules may come and go later;
    /// those that are named here say in which order its tables ask for the fields.
    Program(ProgramArgs),
    /// Compile rules into the entries of that program's tables.
    Compile(CompileArgs),
    /// Say which rules a message matches and why, and why others do not.
    Explain(ExplainArgs),
    /// Compile rules that deliver to hosts of a whole network into the entries of each of its switches.
    Network(NetworkArgs),
    /// Say whether two sets of rules, or of entries, do the same with every message, and if not, show one that tells them apart.
    ///
    /// Exit codes: 0 they do the same; 1 they differ; 2 a mistake on the command line, or in what is to be compared; 3 the
    /// environment refused.
    Diff(DiffArgs),
    /// Keep a running switch by the rules of a file that is watched, and by those that are added and removed meanwhile.
    Serve(Box<ServeArgs>),
    /// Add rules to a running switch, by the service; prints their ids once the switch delivers by them.
    Add(AddArgs),
    /// Take rules away that were added.
    Remove(RemoveArgs),
    /// List the rules of the service.
    List(ServiceArgs),
    /// Show how the service stands, and each change of that.
    Watch(ServiceArgs),
}

/// A message format.
#[derive(Args, Debug)]
pub struct FormatArgs {
    /// The P4 program with the annotated headers and the parser.
    #[arg(value_name = "FORMAT", value_hint = ValueHint::FilePath)]
    pub format: PathBuf,
    /// Look for included files here too.
    #[arg(short = 'I', long = "include", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub include: Vec<PathBuf>,
    /// Define a macro for the preprocessor.
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    pub define: Vec<String>,
    /// Fields whose tables come first, in this order; program and entries have to agree on it.
    /// Without it the order suits the rules where the program is made for them, and follows the annotations where it is not.
    #[arg(long, value_name = "FIELD,FIELD", value_delimiter = ',')]
    pub order: Vec<String>,
    /// Take the order of this program, which was made of the same format before.
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::FilePath, conflicts_with = "order")]
    pub order_of: Option<PathBuf>,
    /// Memory that diagrams may take: 512M, 2G. It bounds these, not the process: entries, their text and rules come on top. Without
    /// it 4G, or half of what there is (memory, its limit for the control group, `ulimit -v`) if that is less.
    #[arg(long, value_name = "SIZE", value_parser = super::memory::size)]
    pub memory: Option<u64>,
}

/// A format and rules.
#[derive(Args, Debug)]
pub struct RulesArgs {
    /// The format.
    #[command(flatten)]
    pub format: FormatArgs,
    /// Files of rules.
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
    /// The directory to write to: `switch.p4`, entries for each switch, and `lab.toml` with all of them.
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: PathBuf,
    /// What switches pass up: what a host above wants, or everything, which takes fewer entries and more traffic.
    #[arg(long, value_enum, default_value = "exact")]
    pub upward: Upward,
    /// Let messages take the shortest paths over this switch, as a tree, instead of all switches of layers.
    #[arg(long, value_name = "SWITCH")]
    pub root: Option<String>,
}

/// What switches pass up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Upward {
    /// What a host above wants.
    Exact,
    /// Everything.
    Everything,
}

/// `triplane subscribe explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// Format and rules.
    #[command(flatten)]
    pub rules: RulesArgs,
    /// The message: fields with their values, and headers by their names; what is not named is not there. A field that
    /// may stand in several headers says nothing of which: name the header too where rules ask for it.
    #[arg(long, value_name = "FIELD=VALUE,HEADER", value_delimiter = ',', required_unless_present = "packet")]
    pub message: Vec<String>,
    /// A packet: hexadecimal digits, or a capture file (every packet of it, in order). It is parsed as a switch does it, and
    /// each of its messages is explained; what they change, the next ones see.
    #[arg(long, value_name = "HEX|PCAP", value_hint = ValueHint::FilePath, conflicts_with = "message")]
    pub packet: Option<String>,
    /// Stop after so many packets of the capture.
    #[arg(long, value_name = "N", requires = "packet")]
    pub count: Option<u64>,
    /// What was before: an aggregate's value for this message's key (`avg(price) by stock=600000`), or a counter's. Without it
    /// there was no message before.
    #[arg(long, value_name = "AGGREGATE=VALUE")]
    pub state: Vec<String>,
    /// Show so many of the rules that do not match, those that nearly did first.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub others: usize,
    /// Print JSON: an object for the message, or a line for each packet.
    #[arg(long)]
    pub json: bool,
}

/// `triplane subscribe diff`.
#[derive(Args, Debug)]
pub struct DiffArgs {
    /// The format.
    #[command(flatten)]
    pub format: FormatArgs,
    /// One side: a file of rules; or entries, as `subscribe compile` writes them; or `@ADDRESS:PORT`, the switch whose P4Runtime
    /// server answers there.
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    pub first: PathBuf,
    /// The other.
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    pub second: PathBuf,
    /// The port at which the controller gets packets: where rules and entries are compared.
    #[arg(long, value_name = "PORT", default_value_t = v1model::CPU_PORT.into(), value_parser = cpu_port)]
    pub cpu_port: u32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// The device of the switch to read.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Switch")]
    pub device_id: u64,
    /// TLS.
    #[command(flatten, next_help_heading = "Switch")]
    pub tls: TlsArgs,
}

/// How the program is written.
#[derive(Args, Debug)]
pub struct ShapeArgs {
    /// What the target's tables take for ranges: ranges as they are, or prefixes, as ternary or as lpm entries (some tens for a
    /// range of 32 bits at worst). Fields of `@query_field_lpm` have lpm tables in any case. Program and entries have to agree on
    /// it.
    #[arg(long, value_enum, value_name = "KIND", default_value = "range", help_heading = "Target")]
    pub ranges: Ranges,
    /// Give each field beside its table of ranges or prefixes an exact one, for the single values that rules ask for: exact
    /// entries cost a switch less. It is one lookup more for software. Program and entries have to agree on it.
    #[arg(long, help_heading = "Target")]
    pub exact_tables: bool,
    /// Match at most so many messages of a packet in one pass; the others go round. With 1 every table is applied in one
    /// place only, as BMv2 wants it. By default, as many as the format's stack has.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub messages_per_pass: Option<u32>,
}

/// How ranges of values are said in tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ranges {
    /// As they are.
    Range,
    /// As prefixes, by masks; priorities say which counts.
    Ternary,
    /// As prefixes, of which the longest counts.
    Lpm,
}

impl ShapeArgs {
    /// What a program's tables take then.
    pub fn target(&self) -> TargetCapabilities {
        target(self.ranges, self.exact_tables)
    }
}

/// What a program's tables take.
pub fn target(ranges: Ranges, exact_beside: bool) -> TargetCapabilities {
    let wide = match ranges {
        Ranges::Range => Wide::Range,
        Ranges::Ternary => Wide::Ternary,
        Ranges::Lpm => Wide::Lpm,
    };
    let target = subscribe_p4::ProgramOptions::default().target;
    TargetCapabilities { wide, has_ranges: ranges == Ranges::Range, exact_beside, ..target }
}

/// Choices of tables, as they are given.
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
    /// Files of rules such as will be asked: the order of the fields is to suit them.
    #[arg(value_name = "RULES", value_hint = ValueHint::FilePath)]
    pub rules: Vec<PathBuf>,
    /// The shape.
    #[command(flatten)]
    pub shape: ShapeArgs,
    /// Where to write it; by default it is printed.
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
    /// Where to write the entries; by default they are printed.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Write the program too, with the order of fields that suits the rules. Without this the entries are for a program that was
    /// made without rules, unless --order or --order-of says otherwise.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub program: Option<PathBuf>,
    /// Say how many entries each table has, what these rules take in tables of other kinds, and how large the diagram is.
    #[arg(long)]
    pub stats: bool,
    /// Draw the diagram, for graphviz: nodes test fields, a solid line is a test that holds.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub dot: Option<PathBuf>,
    /// The port at which the controller gets packets.
    #[arg(long, value_name = "PORT", default_value_t = v1model::CPU_PORT.into(), value_parser = cpu_port)]
    pub cpu_port: u32,
}

/// The port of `--cpu-port`.
pub fn cpu_port(text: &str) -> Result<u32, String> {
    let port = text.parse().ok().filter(|port| *port < v1model::DROP_PORT);
    port.ok_or_else(|| "ports have 9 bits, and 511 stands for dropping: write a port from 0 to 510".to_owned())
}
