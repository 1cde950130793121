//! Runs `triplane memory`, and connects `triplane run` to memory servers.

pub mod args;
mod notices;
mod servers;

use std::net::Ipv4Addr;

use ::privileges::KeptAccess;
use elastic_switch::{ElasticConfig, ElasticError, ElasticSwitch, MemoryServerPort, ServerCounts, SwitchAddress};
use lab_live::DaemonConnection;
use memory_server::{MemoryServer, ServeError};
use ports::{PortKind, PortSpec};
use rdma::{MemoryNodeConfig, NumberSource, RequesterConfig};
use resilient_store::random_number;
use switch::PortId;
use v1model::Switch;

use crate::output::{Failure, Output, grouped};
use crate::{privileges, signals};
pub use notices::ServerNotices;

use args::{MemoryArgs, MemoryCommand, MemoryServeArgs, ServerArg};

/// Time without progress after which READs are sent again, in nanoseconds. A server on a busy machine may be slow.
const TIMEOUT_NS: u64 = 20_000_000;

/// The kernel's cryptographic generator.
struct KernelRandom;

impl NumberSource for KernelRandom {
    fn next_u64(&mut self) -> u64 {
        random_number()
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        match error {
            ServeError::Port(error) => error.into(),
            error => Failure::Environment(error.into()),
        }
    }
}

/// Runs a command of `triplane memory`.
pub fn run(args: &MemoryArgs, output: &Output) -> Result<(), Failure> {
    match &args.command {
        MemoryCommand::Serve(args) => serve(args, output),
        MemoryCommand::List(args) => servers::list(&args.switch, output),
        MemoryCommand::Add(args) => servers::add(args, output),
        MemoryCommand::Remove(args) => servers::remove(args, output),
    }
}

/// Opens the port of a memory server.
fn open(args: &MemoryServeArgs) -> Result<MemoryServer, Failure> {
    let spec =
        PortSpec::parse(&format!("1={}", args.port), u16::MAX).map_err(|error| Failure::Usage(error.to_string()))?;
    if matches!(spec.kind, PortKind::Pcap { .. }) {
        return Err(Failure::Usage(
            "memory serve requires a live port; captures are not processed in real time".to_owned(),
        ));
    }
    let port = spec.open()?;
    let config = MemoryNodeConfig {
        mac: SwitchAddress::of(args.address).mac,
        address: args.address,
        bytes: args.memory.bytes(),
        connections: args.connections.into(),
    };
    Ok(MemoryServer::new(port, config, Box::new(KernelRandom)))
}

/// Lends memory until Ctrl-C, and prints what was done.
fn serve(args: &MemoryServeArgs, output: &Output) -> Result<(), Failure> {
    let mut server = open(args)?;
    privileges::restrict(&KeptAccess::default(), args.show_privileges, output)?;
    let stop = signals::stop_on_signals()?;
    let bytes = grouped(args.memory.bytes());
    let name = server.port();
    output.note(&format!("lending {bytes} bytes as {} on {name}; press Ctrl-C to stop", args.address));
    server.serve(&stop)?;
    let (counts, (connections, lent)) = (server.node().counts(), server.node().lent());
    output.print(&format!(
        "{} READs, {} WRITEs, {} repeated; {connections} connections with {} bytes, {} refused\n",
        grouped(counts.reads),
        grouped(counts.writes),
        grouped(counts.duplicates),
        grouped(lent),
        grouped(server.node().refused()),
    ))
}

/// Runs the hidden `triplane lab memory`: the process of one memory server.
pub fn run_lab_server(args: &MemoryServeArgs, output: &Output) -> Result<(), Failure> {
    let mut daemon = DaemonConnection::from_stdout()?;
    let mut server = open(args)?;
    privileges::restrict(&KeptAccess::default(), false, output)?;
    let stop = signals::stop_on_signals()?;
    daemon.report_ready()?;
    Ok(server.serve(&stop)?)
}

/// Adapts the settings of a switch with tables in the memory of servers to real time.
pub fn set_live_times(config: &mut ElasticConfig) {
    config.requester = RequesterConfig { timeout_ns: TIMEOUT_NS, ..RequesterConfig::default() };
    config.retry_ns = 5 * TIMEOUT_NS;
}

/// Wraps a switch of a live network. Its secret and its numbers come from the kernel's generator.
///
/// # Errors
/// If its tables cannot lie in the memory of servers.
pub fn wrap(switch: Switch, config: &ElasticConfig) -> Result<ElasticSwitch<Switch>, ElasticError> {
    ElasticSwitch::new(switch, config, [random_number(), random_number()], Box::new(KernelRandom))
}

/// Puts the tables of a switch into the memory of servers. `own` is the switch's address among them, and `read_rate`
/// the maximum rate of answers on each port.
pub fn connect(
    switch: Switch,
    (own, read_rate): (Ipv4Addr, Option<lab::Rate>),
    servers: &[ServerArg],
) -> Result<ElasticSwitch<Switch>, Failure> {
    wrap(switch, &config(own, read_rate, servers)).map_err(|error| Failure::Usage(error.to_string()))
}

/// Returns the settings of a switch with live ports.
fn config(own: Ipv4Addr, read_rate: Option<lab::Rate>, servers: &[ServerArg]) -> ElasticConfig {
    let place = |server: &ServerArg| MemoryServerPort { address: server.address, port: PortId(server.port) };
    let mut config = ElasticConfig::new(SwitchAddress::of(own), servers.iter().map(place).collect());
    set_live_times(&mut config);
    config.read_rate = read_rate.map(lab::Rate::bps);
    // The queues of links in labs, of 100 frames, would overflow. The links here are interfaces.
    config.requester.max_reads = rdma::MAX_READS;
    config
}

/// Describes the lookups of each table, and the requests to each server, one line each.
pub fn summary(switch: &ElasticSwitch<Switch>) -> String {
    let mut text = String::new();
    for counts in switch.counts() {
        text.push_str(&format!(
            "{}: {} entries; {} keys needed READs, {} were answered by the switch; {} READs, {} WRITEs\n",
            counts.table,
            grouped(counts.entries as u64),
            grouped(counts.lookups.begun),
            grouped(counts.table_counts.local),
            grouped(counts.table_counts.reads),
            grouped(counts.table_counts.writes + counts.table_counts.blocks),
        ));
    }
    for ServerCounts { address, connections, requests, refusal, .. } in switch.server_counts() {
        let (sent, repeated) = (grouped(requests.sent), grouped(requests.repeated));
        let refusal = refusal.map_or_else(String::new, |refusal| format!("; it refuses memory: {refusal}"));
        text.push_str(&format!(
            "memory server {address}: {connections} connections; {sent} packets sent, {repeated} repeated{refusal}\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the state of a SplitMix64 generator whose last number was this one.
    fn splitmix_state(number: u64) -> u64 {
        let unshift = |mut value: u64, shift: u32| {
            let given = value;
            (0..2).for_each(|_| value = given ^ value >> shift);
            value
        };
        let z = unshift(number, 31).wrapping_mul(0x3196_42b2_d24d_8ec3);
        let z = unshift(z, 27).wrapping_mul(0x96de_1b17_3f11_9089);
        unshift(z, 30)
    }

    #[test]
    fn options_become_settings() {
        let own = Ipv4Addr::new(198, 19, 0, 1);
        let servers = ["10.9.0.1@3", "10.9.0.2@4"].map(|text| text.parse::<ServerArg>().expect("it is valid"));
        let limited = config(own, Some("8Mbps".parse().expect("it is a rate")), &servers);
        let places: Vec<_> = limited.servers.iter().map(|server| (server.address.octets()[3], server.port.0)).collect();
        assert_eq!((limited.own, places), (SwitchAddress::of(own), vec![(1, 3), (2, 4)]));
        assert_eq!((limited.read_rate, limited.requester.max_reads), (Some(8_000_000), rdma::MAX_READS));
        assert_eq!(limited.requester.timeout_ns, TIMEOUT_NS);
        assert_eq!(config(own, None, &servers).read_rate, None);
    }

    #[test]
    fn numbers_of_a_live_server_do_not_follow_from_those_before() {
        let mut weak = rng::SplitMix64::new(5);
        let number = weak.next_u64();
        let predicted = |number: u64| rng::SplitMix64::new(splitmix_state(number)).next_u64();
        assert_eq!(predicted(number), weak.next_u64(), "the generator of simulations can be predicted");
        let mut source = KernelRandom;
        assert!((0..100).all(|_| predicted(source.next_u64()) != source.next_u64()));
    }
}
