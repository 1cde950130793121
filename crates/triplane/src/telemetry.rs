//! The options of `triplane run` for tiny packet programs and INT, and the sender of INT reports.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use ports::PortSpec;
use runtime::NotificationSink;
use switch::{Notification, PortId};
use tpp::AccessRights;
use tpp_host::ReportSocket;
use v1model::{EXECUTIONS_PER_SECOND, INT_MTU, IntSettings, TinySettings};
use wire::int::Marker;

use crate::output::{Failure, Output};

/// Tiny packet programs and INT.
#[derive(Args, Clone, Debug)]
pub struct TelemetryArgs {
    /// Execute tiny packet programs, as the switch with this number. Programs only read unless --tpp-writes is given.
    #[arg(long, value_name = "NUMBER")]
    pub tpp: Option<u32>,

    /// Let tiny packet programs write the words of applications.
    #[arg(long, requires = "tpp")]
    pub tpp_writes: bool,

    /// Let tiny packet programs write the registers of the P4 program, too, to 32 bits.
    #[arg(long, requires = "tpp")]
    pub tpp_register_writes: bool,

    /// Maximum number of tiny packet programs executed a second for the packets of each port. Others are forwarded
    /// without execution.
    #[arg(long, value_name = "COUNT", requires = "tpp", default_value_t = EXECUTIONS_PER_SECOND,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub tpp_limit: u32,

    /// Take tiny packet programs out of packets that leave by this port, after their execution, for hosts without
    /// `triplane tpp shim`; may be repeated.
    #[arg(long, value_name = "PORT", requires = "tpp", value_delimiter = ',')]
    pub tpp_strip: Vec<u16>,

    /// Drop packets that arrive at this port with a tiny packet program, for hosts that are not trusted; may be
    /// repeated.
    #[arg(long, value_name = "PORT", requires = "tpp", value_delimiter = ',')]
    pub tpp_refuse: Vec<u16>,

    /// Add the metadata of this switch to packets that carry INT (INT-MD 2.1), as the node with this number.
    #[arg(long, value_name = "NUMBER")]
    pub int: Option<u32>,

    /// The marker of packets that carry INT: udp:PORT, the UDP destination port, or dscp:VALUE, in UDP and TCP.
    #[arg(long, value_name = "MARKER", requires = "int", default_value_t)]
    pub int_marker: Marker,

    /// Remove INT from packets that leave by this port, and report it; may be repeated.
    #[arg(long, value_name = "PORT", requires = "int", value_delimiter = ',')]
    pub int_sink: Vec<u16>,

    /// Maximum length of an IP packet with the metadata of this switch, in bytes. Longer ones are marked instead.
    #[arg(long, value_name = "BYTES", requires = "int", default_value_t = INT_MTU, value_parser = int_mtu)]
    pub int_mtu: u16,

    /// Maximum number of packets a second, for packets with INT that arrived on the same port, that get metadata or are
    /// reported. Others are forwarded without.
    #[arg(long, value_name = "COUNT", requires = "int", default_value_t = EXECUTIONS_PER_SECOND,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub int_limit: u32,

    /// Send the reports of --int-sink to a collector, as UDP datagrams (Telemetry Report 2.0).
    #[arg(long, value_name = "ADDRESS:PORT", requires = "int_sink", value_parser = collector)]
    pub int_report: Option<SocketAddr>,
}

/// Least MTU of IPv4 (RFC 791), in bytes: shorter packets have no room for metadata.
const LEAST_MTU: u16 = 68;

/// Parses the MTU of packets with INT.
fn int_mtu(text: &str) -> Result<u16, String> {
    text.parse().ok().filter(|mtu| *mtu >= LEAST_MTU).ok_or_else(|| {
        format!(
            "expected bytes from {LEAST_MTU} to 65535, the least MTU of the links behind the ports, such as {INT_MTU}: no \
             packet would get metadata with less"
        )
    })
}

fn port_set(ports: &[u16]) -> BTreeSet<PortId> {
    ports.iter().map(|port| PortId(u32::from(*port))).collect()
}

/// Parses the address of a collector.
fn collector(text: &str) -> Result<SocketAddr, String> {
    let expected = "expected an IP address and a UDP port, such as 192.0.2.9:32766 or [2001:db8::9]:32766";
    let port = text.rsplit_once(':').map_or("32766", |(_, port)| port);
    // Addresses of IPv6 have brackets, and more colons.
    let is_name = text.contains(char::is_alphabetic) && text.matches(':').count() < 2 && !text.starts_with('[');
    let address: Result<SocketAddr, _> = text.parse();
    match address {
        Ok(address) if address.port() == 0 || address.ip().is_unspecified() => {
            Err(format!("{expected}; no collector receives at {address}"))
        }
        Ok(address) => Ok(address),
        Err(_) if is_name => {
            Err(format!("{expected}; names are not resolved: `getent hosts NAME` prints an address for ADDRESS:{port}"))
        }
        Err(_) => Err(expected.to_owned()),
    }
}

impl Default for TelemetryArgs {
    /// Returns the options of a switch with neither.
    fn default() -> Self {
        TelemetryArgs {
            tpp: None,
            tpp_writes: false,
            tpp_register_writes: false,
            tpp_limit: EXECUTIONS_PER_SECOND,
            tpp_strip: Vec::new(),
            tpp_refuse: Vec::new(),
            int: None,
            int_marker: Marker::default(),
            int_sink: Vec::new(),
            int_mtu: INT_MTU,
            int_limit: EXECUTIONS_PER_SECOND,
            int_report: None,
        }
    }
}

impl TelemetryArgs {
    /// Returns the settings of tiny packet programs.
    pub fn tiny_programs(&self) -> Option<TinySettings> {
        let (executions_per_second, settings) = (self.tpp_limit, TinySettings::new(self.tpp?, self.tpp_writes));
        let rights = if self.tpp_register_writes { AccessRights::all() } else { settings.rights };
        let [stripping, refusing] = [&self.tpp_strip, &self.tpp_refuse].map(|ports| port_set(ports));
        Some(TinySettings { executions_per_second, rights, stripping, refusing, ..settings })
    }

    /// Returns the settings of INT.
    pub fn int(&self) -> Option<IntSettings> {
        let (sinks, mtu, packets_per_second) = (port_set(&self.int_sink), self.int_mtu, self.int_limit);
        self.int.map(|number| IntSettings {
            mtu,
            packets_per_second,
            sinks,
            ..IntSettings::new(number, self.int_marker)
        })
    }

    /// Refuses numbers and ports that contradict each other.
    pub fn check(&self, specs: &[PortSpec]) -> Result<(), Failure> {
        if let (Some(tpp), Some(int)) = (self.tpp, self.int)
            && tpp != int
        {
            let message = format!("--tpp {tpp} and --int {int} give the switch two numbers; use one for both");
            return Err(Failure::Usage(message));
        }
        let is_missing = |port: &&u16| !specs.iter().any(|spec| spec.number == **port);
        let named =
            [("--int-sink", &self.int_sink), ("--tpp-strip", &self.tpp_strip), ("--tpp-refuse", &self.tpp_refuse)];
        match named.into_iter().find_map(|(option, ports)| Some((option, ports.iter().find(is_missing)?))) {
            Some((option, port)) => {
                let ports: Vec<String> = specs.iter().map(|spec| spec.number.to_string()).collect();
                let known = ports.join(", ");
                Err(Failure::Usage(format!("{option} names port {port}, which no --port has; the ports are {known}")))
            }
            None => Ok(()),
        }
    }

    /// Notes that nobody receives the reports of sinks. `has_log` says that notifications are written to a file.
    pub fn note_lost_reports(&self, has_log: bool, output: &Output) {
        if !self.int_sink.is_empty() && self.int_report.is_none() && !has_log {
            output.note(
                "--int-sink removes INT from packets, and nobody receives its reports: add --int-report ADDRESS:PORT or \
                 --notifications FILE",
            );
        }
    }

    /// Opens the socket to the collector.
    pub fn reports(&self) -> Result<Option<Arc<dyn NotificationSink>>, Failure> {
        let Some(address) = self.int_report else { return Ok(None) };
        let socket = ReportSocket::open(address).map_err(|error| Failure::Environment(error.into()))?;
        Ok(Some(Arc::new(ReportSink(socket))))
    }
}

/// Sends INT reports to a collector.
struct ReportSink(ReportSocket);

impl NotificationSink for ReportSink {
    fn receive(&self, _: &Arc<ir::Program>, notifications: &[Notification]) {
        for notification in notifications {
            if let Notification::IntReport { report, .. } = notification {
                self.0.send(report);
            }
        }
    }
}
