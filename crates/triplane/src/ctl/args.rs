//! What `triplane ctl` is told.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// Examples, behind the help of the command.
pub const AFTER_HELP: &str = "\
Entries are written as they are printed:
  triplane ctl insert ipv4_lpm 'hdr.ipv4.dst=10.0.0.0/8 -> forward(mac=02:00:00:00:00:01, port=2)'
  triplane ctl insert acl 'ip.src=10.0.0.1&&&255.0.0.255, l4.port=1..1023, priority=10 -> drop()'
  triplane ctl modify ipv4_lpm 'default -> no_route()'
  triplane ctl delete ipv4_lpm hdr.ipv4.dst=10.0.0.0/8
Names may be shortened to what stands behind a dot. exact, optional: VALUE; lpm: VALUE/LENGTH;
ternary: VALUE&&&MASK; range: LOW..HIGH; what may be left out matches everything. Values are
numbers (10, 0xa, 0b1010), MAC, IPv4 and IPv6 addresses. timeout=SECONDS sets an idle timeout;
tables with a profile take member(ID), group(ID) or an action.

Exit codes: 0 well; 1 what was asked for makes no sense, or the switch refused it;
2 a mistake on the command line; 3 no server answers.";

/// `triplane ctl`
#[derive(Args, Debug)]
pub struct CtlArgs {
    /// Where and as whom.
    #[command(flatten)]
    pub server: ServerArgs,

    /// What to do.
    #[command(subcommand)]
    pub command: CtlCommand,
}

/// A P4Runtime server and how to speak to it.
#[derive(Args, Debug)]
pub struct ServerArgs {
    /// The P4Runtime server: ADDRESS:PORT.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9559", global = true)]
    pub addr: String,

    /// The device to speak to.
    #[arg(long, value_name = "N", default_value_t = 1, global = true)]
    pub device_id: u64,

    /// Write as the controller with this election id, and take the place of one with a lower one. Without it, writes
    /// are made while no other controller is primary.
    #[arg(long, value_name = "N", global = true)]
    pub election_id: Option<u128>,

    /// Speak TLS, to a server in whose certificate this authority signed (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, global = true)]
    pub tls_ca: Option<PathBuf>,

    /// The certificate to show to a server that asks for one (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, global = true)]
    pub tls_cert: Option<PathBuf>,

    /// The key that belongs to it (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, global = true)]
    pub tls_key: Option<PathBuf>,

    /// The name in the server's certificate, if it is not the one in --addr.
    #[arg(long, value_name = "NAME", global = true)]
    pub tls_name: Option<String>,

    /// Print JSON.
    #[arg(long, global = true)]
    pub json: bool,
}

/// What there is to do.
#[derive(Subcommand, Debug)]
pub enum CtlCommand {
    /// List the tables: keys, actions, how full they are.
    Tables,
    /// List the entries of a table, or of all.
    Entries {
        /// The table.
        table: Option<String>,
    },
    /// Insert an entry.
    Insert(EntryArgs),
    /// Change the action of an entry, or a table's default action.
    Modify(EntryArgs),
    /// Delete an entry.
    Delete(EntryArgs),
    /// List what counters have counted.
    Counters {
        /// The counter, or the table of a direct one.
        name: Option<String>,
    },
    /// List the cells of a register array that are not 0, or one cell.
    Registers {
        /// The register array.
        name: String,
        /// The cell.
        index: Option<i64>,
    },
    /// List clone sessions and multicast groups.
    Sessions,
    /// Print what the switch tells its controller, a line each: digests, packets, idle entries, who is primary.
    Watch,
}

/// A table and an entry.
#[derive(Args, Debug)]
pub struct EntryArgs {
    /// The table.
    pub table: String,
    /// KEY=VALUE ... -> ACTION(PARAMETER=VALUE, ...)
    #[arg(value_name = "ENTRY", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub entry: Vec<String>,
}
