//! Defines the arguments of `triplane resilient`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// Text below the help of `triplane resilient`.
pub const AFTER_HELP: &str = "\
The commands talk to a running switch on a Unix socket, which only its user can open:

  triplane run prog.p4 --port 1=eth1 --store cluster.toml --switch s1 --socket s1.sock
  triplane resilient rows --socket s1.sock --group keys --key 7
  triplane resilient move --socket s1.sock --away 30

`triplane check PROG.p4` lists the groups of a program. docs/resilient.md is the guide.";

/// Rows of resilient state at a running switch.
#[derive(Args, Debug)]
pub struct ResilientArgs {
    #[command(subcommand)]
    pub command: ResilientCommand,
}

/// The commands of `triplane resilient`.
#[derive(Subcommand, Debug)]
pub enum ResilientCommand {
    /// List the rows that a running switch owns, asks for or gives back.
    Rows(RowsArgs),
    /// Make a running switch release its rows, so that another switch can take them over at once. No state is lost.
    Move(MoveArgs),
}

/// The arguments of `triplane resilient rows`.
#[derive(Args, Debug)]
pub struct RowsArgs {
    /// The socket of the switch: that of `triplane run --socket`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub socket: PathBuf,

    /// Only the rows of this group.
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,

    /// Only the row with this key, as it is printed: 10.0.0.1,80. A trailing * matches every key with this prefix.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub key: String,

    /// Maximum number of rows.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub limit: u32,

    /// Print the rows as JSON.
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `triplane resilient move`.
#[derive(Args, Debug)]
pub struct MoveArgs {
    /// The socket of the switch: that of `triplane run --socket`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub socket: PathBuf,

    /// Only the rows of this group.
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,

    /// For this time, drop packets that need such a row (`resilient.away`). Without it, the switch asks for a row again
    /// as soon as a packet needs it. A later move ends it.
    #[arg(long, value_name = "SECONDS")]
    pub away: Option<f64>,

    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
}
