//! Defines the arguments of `triplane store`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueHint};

/// Text below the help of `triplane store`.
pub const AFTER_HELP: &str = "\
State that a program marks with @resilient survives the switch it runs on: it is
replicated to stores, and another switch continues where a dead one stopped.

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

Operators on several machines keep the layout in etcd, so that one of them is enough
(in builds with the feature `etcd`, as by default):
    [operators.x]                        (in place of [operator])
    address = \"192.0.2.1:7001\"

  triplane store operate --cluster cluster.toml --operator x --etcd https://etcd1:2379 --etcd-ca ca.pem
  triplane store status --cluster cluster.toml

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
#[command(group(ArgGroup::new("keeper").required(true)))]
pub struct OperateArgs {
    /// The file that lists the stores and switches, with a section for the operator.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub cluster: PathBuf,

    /// The file that keeps the layout: which stores form the chain. It must survive this command. It is created when
    /// the chain begins.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, group = "keeper")]
    pub layout: Option<PathBuf>,

    /// Keeps the layout in etcd.
    #[cfg(feature = "etcd")]
    #[command(flatten)]
    pub etcd: EtcdArgs,

    /// The operator's name in the cluster file. Required if the file lists several operators.
    #[arg(long, value_name = "NAME")]
    pub operator: Option<String>,

    /// Listen for `store status`, `drain` and `replace` on this Unix socket. By default it is FILE.sock beside the
    /// layout file, or with --etcd beside the cluster file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub socket: Option<PathBuf>,

    /// Print the privileges that remain after everything is open: capabilities, and files restricted by Landlock.
    #[arg(long)]
    pub show_privileges: bool,
}

/// The place of an operator's socket.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub struct OperatorArgs {
    /// The layout file of the operator, which runs on this machine.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub layout: Option<PathBuf>,

    /// The cluster file of the operator, which runs on this machine and keeps the layout in etcd.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub cluster: Option<PathBuf>,

    /// The socket of the operator, as given to it with --socket.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub socket: Option<PathBuf>,
}

/// The arguments that concern etcd.
#[cfg(feature = "etcd")]
#[derive(Args, Debug, Default)]
pub struct EtcdArgs {
    /// Keep the layout in the etcd cluster with these servers, so that operators on several machines share it.
    #[arg(long, value_name = "URL,…", value_delimiter = ',', group = "keeper", value_hint = ValueHint::Url)]
    pub etcd: Vec<String>,

    /// The prefix of the keys in etcd. It must be unique to this cluster.
    #[arg(long, value_name = "PREFIX", default_value = "/triplane", requires = "etcd")]
    pub etcd_prefix: String,

    /// The certificate of the CA that signed those of the etcd servers.
    #[arg(long, value_name = "FILE", requires = "etcd", value_hint = ValueHint::FilePath)]
    pub etcd_ca: Option<PathBuf>,

    /// The certificate that this operator presents to etcd.
    #[arg(long, value_name = "FILE", requires_all = ["etcd_key", "etcd_ca"], value_hint = ValueHint::FilePath)]
    pub etcd_cert: Option<PathBuf>,

    /// The private key of the certificate.
    #[arg(long, value_name = "FILE", requires = "etcd_cert", value_hint = ValueHint::FilePath)]
    pub etcd_key: Option<PathBuf>,

    /// The user of etcd, if it requires one.
    #[arg(long, value_name = "NAME", requires_all = ["etcd", "etcd_password_file"])]
    pub etcd_user: Option<String>,

    /// The file with the user's password in one line. Only its owner may read it.
    #[arg(long, value_name = "FILE", requires = "etcd_user", value_hint = ValueHint::FilePath)]
    pub etcd_password_file: Option<PathBuf>,

    /// Allow http:// to other machines. Anyone on the path can then change the layout and read the password.
    #[arg(long, requires = "etcd")]
    pub etcd_plaintext: bool,
}

/// The arguments of `triplane store status`.
#[derive(Args, Debug)]
pub struct StatusArgs {
    #[command(flatten)]
    pub operator: OperatorArgs,

    /// The program whose group names are shown. Stores know groups by number only.
    #[arg(long, value_name = "PROG.p4", value_hint = ValueHint::FilePath)]
    pub program: Option<PathBuf>,

    /// Print the status as JSON.
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `triplane store drain`.
#[derive(Args, Debug)]
pub struct DrainArgs {
    /// The store's name in the cluster file.
    pub name: String,

    #[command(flatten)]
    pub operator: OperatorArgs,

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

    #[command(flatten)]
    pub operator: OperatorArgs,
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

    /// Serve the store's counters for Prometheus over HTTP: ADDRESS:PORT, or PORT alone for this machine only.
    #[arg(long, value_name = "ADDR", value_parser = crate::metrics::address)]
    pub metrics: Option<std::net::SocketAddr>,

    /// Print the privileges that remain after everything is open: capabilities, and files restricted by Landlock.
    #[arg(long)]
    pub show_privileges: bool,

    /// Print the summary as JSON.
    #[arg(long)]
    pub json: bool,
}
