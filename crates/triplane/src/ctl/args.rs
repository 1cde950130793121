//! Command line of `triplane ctl`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use crate::dial::{Dial, OPTIONS};

/// Examples, printed after the help of the command.
pub const AFTER_HELP: &str = "\
Entries are written as they are printed:
  triplane ctl insert ipv4_lpm 'hdr.ipv4.dst=10.0.0.0/8 -> forward(mac=02:00:00:00:00:01, port=2)'
  triplane ctl insert acl 'ip.src=10.0.0.1&&&255.0.0.255, l4.port=1..1023, priority=10 -> drop()'
  triplane ctl modify ipv4_lpm 'default -> no_route()'
  triplane ctl delete ipv4_lpm hdr.ipv4.dst=10.0.0.0/8
Names may be shortened to what stands behind a dot. exact, optional: VALUE; lpm: VALUE/LENGTH;
ternary: VALUE&&&MASK; range: LOW..HIGH; what may be left out matches everything. Values are
numbers (10, 0xa, 0b1010), MAC, IPv4 and IPv6 addresses. timeout=SECONDS sets an idle timeout.

Tables with an action profile take member(ID), group(ID), or actions: a(1) weight 2 | b(). To
fill the profile, and what packets are copied to:
  triplane ctl insert ecmp 'member 1 -> forward(mac=02:00:00:00:00:01, port=2)'
  triplane ctl insert ecmp 'group 7 -> 1 weight 3, 2 watch 4, max_size=8'
  triplane ctl insert multicast '1 -> 1, 2, 3 instance 7 backup 4'
  triplane ctl insert clone '5 -> 3, class=1, truncate=128'
What is there from the start, and only gets other values:
  triplane ctl set flows 3 12                   a cell of a register array; `all` for every cell
  triplane ctl set rx_counter 3 packets=0 bytes=0
  triplane ctl set limiter 3 cir=1000 cburst=100 pir=2000 pburst=200     or: none
  triplane ctl set ipv4_lpm hdr.ipv4.dst=10.0.0.0/8 packets=0    direct counters and meters
  triplane ctl set allowed 'port=80 | port=443'                  a value set

Completion of names from the switch that runs: triplane completions --help.

Exit codes: 0 well; 1 what was asked for makes no sense, or the switch refused it;
2 a mistake on the command line; 3 no server answers.";

/// `triplane ctl`
#[derive(Args, Debug)]
pub struct CtlArgs {
    /// The server, and the identity of the client.
    #[command(flatten)]
    pub server: ServerArgs,

    /// The subcommand.
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

impl ServerArgs {
    /// Returns the options that say where the server is.
    pub fn dial(&self) -> Dial<'_> {
        Dial {
            addr: &self.addr,
            tls_ca: self.tls_ca.as_deref(),
            tls_cert: self.tls_cert.as_deref(),
            tls_key: self.tls_key.as_deref(),
            tls_name: self.tls_name.as_deref(),
            options: OPTIONS,
        }
    }
}

/// The subcommands.
#[derive(Subcommand, Debug)]
pub enum CtlCommand {
    /// List the tables: keys, actions, how full they are.
    Tables,
    /// List the entries of a table, or of all.
    Entries {
        /// The table.
        table: Option<String>,
    },
    /// Insert an entry of a table, a member or group of an action profile, a clone session or a multicast group.
    Insert(EntryArgs),
    /// Change what such a thing does, or a table's default action; `default` alone gives the program's own back.
    Modify(EntryArgs),
    /// Delete such an object.
    Delete(EntryArgs),
    /// Write cells of registers, counters and meters, or the members of a value set.
    Set(SetArgs),
    /// List the members and groups of action profiles.
    Profiles {
        /// The action profile.
        name: Option<String>,
    },
    /// List the rates of meters that have any.
    Meters {
        /// The meter, or the table of a direct one.
        name: Option<String>,
    },
    /// List the members of value sets.
    ValueSets {
        /// The value set.
        name: Option<String>,
    },
    /// List the values of counters.
    Counters {
        /// The counter, or the table of a direct one.
        name: Option<String>,
    },
    /// List the cells of a register array that are not 0, or one cell.
    Registers {
        /// The register array; without it, all.
        name: Option<String>,
        /// The cell.
        index: Option<i64>,
    },
    /// List clone sessions and multicast groups.
    Sessions,
    /// Print the events that the switch sends to its controller, a line each: digests, packets, idle entries, the
    /// primary.
    Watch,
}

/// An object with cells or values, and its new values.
#[derive(Args, Debug)]
pub struct SetArgs {
    /// A register, counter, meter or value set, or the table of a direct counter or meter.
    pub name: String,
    /// INDEX VALUE ..., or for a table KEY=VALUE ..., or for a value set its members.
    #[arg(value_name = "VALUE", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub value: Vec<String>,
}

/// A table or another object with entries, and an entry.
#[derive(Args, Debug)]
pub struct EntryArgs {
    /// A table or an action profile, or the word `multicast` or `clone`.
    #[arg(value_name = "WHERE")]
    pub table: String,
    /// KEY=VALUE ... -> ACTION(PARAMETER=VALUE, ...), or another of the forms below.
    #[arg(value_name = "ENTRY", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub entry: Vec<String>,
}
