//! Defines the arguments of `triplane memory`, and those of `triplane run` for tables in the memory of servers.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueHint};
use lab::Size;

/// Text below the help of `triplane memory`.
pub const AFTER_HELP: &str = "\
The entries of a table that a program marks with @elastic lie in the memory of servers.
Each lookup is one RDMA READ (RoCEv2). A server has addresses of its own, which are
not configured in its kernel:

  triplane memory serve --port eth1 --address 10.9.0.1 --memory 1GiB
  triplane run prog.p4 --port 1=eth1 --port 3=eth3 --memory 10.9.0.1@3

Servers join and leave a running switch. It listens on a Unix socket, which only its
user can open:

  triplane run prog.p4 --port 1=eth1 --port 3=eth3 --memory 10.9.0.1@3 --socket s1.sock
  triplane memory add 10.9.0.2@3 --socket s1.sock
  triplane memory remove 10.9.0.1 --socket s1.sock
  triplane memory list --socket s1.sock

Nothing is authenticated or encrypted: connect switches and servers by a network that
you trust. docs/elastic.md is the guide.";

/// Servers for tables with @elastic.
#[derive(Args, Debug)]
pub struct MemoryArgs {
    #[command(subcommand)]
    pub command: MemoryCommand,
}

/// The commands of `triplane memory`.
#[derive(Subcommand, Debug)]
pub enum MemoryCommand {
    /// Lend memory to switches until Ctrl-C.
    Serve(MemoryServeArgs),
    /// List the memory servers of a running switch.
    List(MemoryListArgs),
    /// Add a memory server to a running switch, and wait until it has its share of the tables.
    Add(MemoryAddArgs),
    /// Remove a memory server from a running switch, and wait until the others have its share. No packet is lost.
    Remove(MemoryRemoveArgs),
}

/// Arguments of `triplane memory list`.
#[derive(Args, Debug)]
pub struct MemoryListArgs {
    #[command(flatten)]
    pub switch: MemorySwitchArgs,
}

/// Arguments of `triplane memory add`.
#[derive(Args, Debug)]
pub struct MemoryAddArgs {
    /// The address of the server, and the port of the switch that leads to it.
    #[arg(value_name = "ADDRESS@PORT")]
    pub server: ServerArg,

    #[command(flatten)]
    pub switch: MemorySwitchArgs,
}

/// Arguments of `triplane memory remove`.
#[derive(Args, Debug)]
pub struct MemoryRemoveArgs {
    /// The address of the server.
    pub address: Ipv4Addr,

    #[command(flatten)]
    pub switch: MemorySwitchArgs,
}

/// The place of a switch's socket, and the form of its answer.
#[derive(Args, Debug)]
pub struct MemorySwitchArgs {
    /// The socket of the switch: that of `triplane run --socket`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub socket: PathBuf,

    /// Print the servers as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `triplane memory serve`.
#[derive(Args, Debug)]
pub struct MemoryServeArgs {
    /// The interface: INTERFACE, xdp:INTERFACE[,SETTING...], or tap:NAME, as for `triplane run`.
    #[arg(long, value_name = "WHAT")]
    pub port: String,

    /// The IPv4 address of the server, which no other host has, nor this one.
    #[arg(long, value_name = "ADDRESS")]
    pub address: Ipv4Addr,

    /// Memory to lend, such as 64MiB or 1GiB.
    #[arg(long, value_name = "SIZE")]
    pub memory: Size,

    /// Maximum number of connections; each switch has one for each of its tables, and two while servers join or leave.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub connections: u16,

    /// Print the privileges that remain after everything is open: capabilities, and files restricted by Landlock.
    #[arg(long)]
    pub show_privileges: bool,
}

/// A memory server and the port that leads to it, such as `10.9.0.1@3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerArg {
    pub address: Ipv4Addr,
    pub port: u32,
}

impl FromStr for ServerArg {
    type Err = String;

    fn from_str(text: &str) -> Result<ServerArg, String> {
        let parts = text.split_once('@').and_then(|(address, port)| Some((address.parse().ok()?, port.parse().ok()?)));
        let (address, port) = parts.ok_or("expected ADDRESS@PORT, such as 10.9.0.1@3")?;
        Ok(ServerArg { address, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_parsed() {
        assert_eq!("10.9.0.1@3".parse(), Ok(ServerArg { address: Ipv4Addr::new(10, 9, 0, 1), port: 3 }));
        assert!("10.9.0.1".parse::<ServerArg>().is_err() && "x@3".parse::<ServerArg>().is_err());
    }
}
