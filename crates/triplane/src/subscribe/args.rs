//! Command line of `triplane subscribe`.

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
    /// The subcommand.
    #[command(subcommand)]
    pub command: SubscribeCommand,
}

/// The subcommands of `triplane subscribe`.
#[derive(Subcommand, Debug)]
pub enum SubscribeCommand {
    /// Report every mistake in rules, and rules that can never match.
    Check(RulesArgs),
    /// Write the program that matches rules: the format's parser, tables for each field, actions. Rules can be added
    /// and removed later; the rules named here determine the order in which its tables match the fields.
    Program(ProgramArgs),
    /// Compile rules into the entries of that program's tables.
    Compile(CompileArgs),
    /// Say which rules a message matches and why, and why others do not match.
    Explain(ExplainArgs),
    /// Compile rules that deliver to hosts of a whole network into the entries of each of its switches.
    Network(NetworkArgs),
    /// Say whether two sets of rules, or of entries, do the same with every message, and if not, show a message for
    /// which they differ.
    ///
    /// Exit codes: 0 they do the same; 1 they differ; 2 a mistake on the command line, or in what is to be compared; 3
    /// the environment refused.
    Diff(DiffArgs),
    /// Keep a running switch at the rules of a file, which is watched, and at those that clients add and remove
    /// meanwhile.
    Serve(Box<ServeArgs>),
    /// Add rules to a running switch, through the service; print their ids once the switch delivers by them.
    Add(AddArgs),
    /// Remove rules that were added.
    Remove(RemoveArgs),
    /// List the rules of the service.
    List(ServiceArgs),
    /// Show the status of the service, and each change of it.
    Watch(ServiceArgs),
}

/// A message format.
#[derive(Args, Debug)]
pub struct FormatArgs {
    /// The P4 program with the annotated headers and the parser.
    #[arg(value_name = "FORMAT", value_hint = ValueHint::FilePath)]
    pub format: PathBuf,
    /// Search this directory for included files too.
    #[arg(short = 'I', long = "include", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub include: Vec<PathBuf>,
    /// Define a macro for the preprocessor.
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    pub define: Vec<String>,
    /// Fields whose tables come first, in this order; program and entries have to agree on it. Without it the order
    /// suits the rules if the program is made for them, and follows the annotations otherwise.
    #[arg(long, value_name = "FIELD,FIELD", value_delimiter = ',')]
    pub order: Vec<String>,
    /// Use the order of this program, which was made from the same format before.
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::FilePath, conflicts_with = "order")]
    pub order_of: Option<PathBuf>,
    /// Memory that diagrams may take: 512M, 2G. It bounds the diagrams, not the process: entries, their text and rules
    /// come on top. Without it 4G, or half of the available memory (of the machine, of the limit for the control group,
    /// of `ulimit -v`) if that is less.
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
    /// Output directory for `switch.p4`, entries for each switch, and `lab.toml` with all of them.
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: PathBuf,
    /// Messages that switches pass up: those that a host above wants, or everything, which takes fewer entries and more
    /// traffic.
    #[arg(long, value_enum, default_value = "exact")]
    pub upward: Upward,
    /// Route messages along the shortest paths over this switch, as a tree, instead of all switches of layers.
    #[arg(long, value_name = "SWITCH")]
    pub root: Option<String>,
}

/// Messages that switches pass up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Upward {
    /// Messages that a host above wants.
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
    /// The message: fields with their values, and headers by their names; fields and headers that are not named are
    /// absent. A field that may stand in several headers does not say in which one it is: name the header too if rules
    /// ask for it.
    #[arg(long, value_name = "FIELD=VALUE,HEADER", value_delimiter = ',', required_unless_present = "packet")]
    pub message: Vec<String>,
    /// A packet: hexadecimal digits, or a capture file (every packet of it, in order). It is parsed as a switch parses
    /// it, and each of its messages is explained; later messages see the state that earlier ones changed.
    #[arg(long, value_name = "HEX|PCAP", value_hint = ValueHint::FilePath, conflicts_with = "message")]
    pub packet: Option<String>,
    /// Stop after this number of packets of the capture.
    #[arg(long, value_name = "N", requires = "packet")]
    pub count: Option<u64>,
    /// State from earlier messages: an aggregate's value for this message's key (`avg(price) by stock=600000`), or a
    /// counter's. Without it there was no message before.
    #[arg(long, value_name = "AGGREGATE=VALUE")]
    pub state: Vec<String>,
    /// Number of rules without a match to show, those that nearly matched first.
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
    /// The first side: a file of rules; or entries, as `subscribe compile` writes them; or `@ADDRESS:PORT`, the switch
    /// whose P4Runtime server answers there.
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    pub first: PathBuf,
    /// The second side, in the same forms.
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    pub second: PathBuf,
    /// The port at which the controller gets packets, for a comparison of rules with entries.
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

/// Options for the shape of the program.
#[derive(Args, Debug)]
pub struct ShapeArgs {
    /// Match kind for ranges in the target's tables: ranges as they are, or prefixes, as ternary or as lpm entries
    /// (some tens for a range of 32 bits at worst). Fields of `@query_field_lpm` have lpm tables in any case. Program
    /// and entries have to agree on it.
    #[arg(long, value_enum, value_name = "KIND", default_value = "range", help_heading = "Target")]
    pub ranges: Ranges,
    /// Give each field an exact table beside its table of ranges or prefixes, for the single values that rules ask for:
    /// exact entries cost a switch less. It is one lookup more for software. Program and entries have to agree on it.
    #[arg(long, help_heading = "Target")]
    pub exact_tables: bool,
    /// Maximum number of messages of a packet that are matched in one pass; the others are recirculated. With 1 every
    /// table is applied in one place only, as BMv2 requires. By default, as many as the format's stack has.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub messages_per_pass: Option<u32>,
}

/// Encoding of value ranges in table entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ranges {
    /// As they are.
    Range,
    /// As prefixes, by masks; priorities decide among several matches.
    Ternary,
    /// As prefixes; the longest match wins.
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
    /// Files of example rules: the order of the fields is chosen to suit them.
    #[arg(value_name = "RULES", value_hint = ValueHint::FilePath)]
    pub rules: Vec<PathBuf>,
    /// The shape.
    #[command(flatten)]
    pub shape: ShapeArgs,
    /// Output file; by default the program is printed.
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
    /// Output file; by default the entries are printed.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Write the program too, with the order of fields that suits the rules. Without this the entries are for a program
    /// that was made without rules, unless --order or --order-of says otherwise.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub program: Option<PathBuf>,
    /// Report the number of entries of each table, the number that these rules take in tables of other kinds, and the
    /// size of the diagram.
    #[arg(long)]
    pub stats: bool,
    /// Draw the diagram for graphviz: nodes test fields, and a solid line is a test that holds.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub dot: Option<PathBuf>,
    /// The port at which the controller gets packets.
    #[arg(long, value_name = "PORT", default_value_t = v1model::CPU_PORT.into(), value_parser = cpu_port)]
    pub cpu_port: u32,
}

/// Parses the value of `--cpu-port`.
pub fn cpu_port(text: &str) -> Result<u32, String> {
    let port = text.parse().ok().filter(|port| *port < v1model::DROP_PORT);
    port.ok_or_else(|| "ports have 9 bits, and 511 stands for dropping: write a port from 0 to 510".to_owned())
}
