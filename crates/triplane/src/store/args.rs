//! Defines the arguments of `triplane store`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// Text below the help of `triplane store`.
pub const AFTER_HELP: &str = "\
State that a program marks with @resilient survives the switch it runs on: it is
replicated to stores, and another switch goes on where a dead one stopped.

  cluster.toml:
    lease = \"1s\"
    key_file = \"cluster.key\"
    [stores.a]
    address = \"127.0.0.1:7101\"
    [switches.s1]
    address = \"127.0.0.1:7201\"

  triplane store key cluster.key
  triplane store run a --cluster cluster.toml --state-dir /var/lib/triplane/a --durable
  triplane run prog.p4 --port 1=eth1 --port 2=eth2 --store cluster.toml --switch s1

All members need identical cluster files and the same key. Without a key_file, all
addresses must be of the loopback interface.

With an operator, stores that die are removed from the chain, spare ones join, and
those that return join again. Add to cluster.toml:
    chain = 3                            (at the top)
    [operator]
    address = \"127.0.0.1:7001\"

  triplane store operate --cluster cluster.toml --layout layout.json
  triplane store status --layout layout.json

docs/resilient.md is the guide.";

/// Stores of resilient state.
#[derive(Args, Debug)]
pub struct StoreArgs {
    #[command(subcommand)]
    pub command: StoreCommand,
}

/// The commands of `triplane store`.
#[derive(Subcommand, Debug)]
pub enum StoreCommand {
    /// Run a store of a cluster until Ctrl-C.
    Run(StoreRunArgs),
    /// Create a file with a random key, which the members of a cluster share.
    Key(StoreKeyArgs),
    /// Run the operator of a cluster until Ctrl-C: it removes stores that die from the chain, and adds others.
    Operate(OperateArgs),
    /// Show the stores of a cluster, as its operator knows them.
    Status(StatusArgs),
    /// Let a store leave the chain. A spare store joins first, if there is one.
    Drain(DrainArgs),
    /// Replace a store of the chain by a spare one.
    Replace(ReplaceArgs),
}

/// The arguments of `triplane store key`.
#[derive(Args, Debug)]
pub struct StoreKeyArgs {
    /// The file to create. Only its owner may read it.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

/// The arguments of `triplane store operate`.
#[derive(Args, Debug)]
pub struct OperateArgs {
    /// The file that lists the stores and switches, with a section for the operator.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub cluster: PathBuf,

    /// The file that keeps the layout: which stores form the chain. It must survive this command. It is created when
    /// the chain begins.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub layout: PathBuf,

    /// Print the privileges that remain after everything is open: capabilities, and files restricted by Landlock.
    #[arg(long)]
    pub show_privileges: bool,
}

/// The arguments of `triplane store status`.
#[derive(Args, Debug)]
pub struct StatusArgs {
    /// The layout file of the operator, which runs on this machine.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub layout: PathBuf,

    /// Print the status as JSON.
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `triplane store drain`.
#[derive(Args, Debug)]
pub struct DrainArgs {
    /// The store's name in the cluster file.
    pub name: String,

    /// The layout file of the operator, which runs on this machine.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub layout: PathBuf,

    /// Let a store that was drained or replaced join the chain again.
    #[arg(long)]
    pub cancel: bool,
}

/// The arguments of `triplane store replace`.
#[derive(Args, Debug)]
pub struct ReplaceArgs {
    /// The name of a store of the chain.
    pub name: String,

    /// The store that takes its place. Any spare store if omitted.
    #[arg(long, value_name = "NAME")]
    pub with: Option<String>,

    /// The layout file of the operator, which runs on this machine.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub layout: PathBuf,
}

/// The arguments of `triplane store run`.
#[derive(Args, Debug)]
pub struct StoreRunArgs {
    /// The store's name in the cluster file.
    pub name: String,

    /// The file that lists the stores and switches.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub cluster: PathBuf,

    /// The store's directory. It remembers that the store has lived, and has the rows of a durable store.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub state_dir: PathBuf,

    /// Keep the rows on disk, in the state directory: nothing is acknowledged before it is written, and a store that
    /// starts again has its rows. Without this, a store that stops has lost them.
    #[arg(long)]
    pub durable: bool,

    /// Start without rows after the store has stopped: all replicated state is lost. Only for the single store of a
    /// cluster without an operator.
    #[arg(long)]
    pub forget: bool,

    /// Print the privileges that remain after everything is open: capabilities, and files restricted by Landlock.
    #[arg(long)]
    pub show_privileges: bool,

    /// Print the summary as JSON.
    #[arg(long)]
    pub json: bool,
}
