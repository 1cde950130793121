//! Runs the live demo: the router runs on AF_PACKET ports, and the hosts' own network stacks make the traffic.

use std::net::SocketAddrV4;
use std::time::Duration;

use anyhow::Context;
use ports::namespace::StreamTransfer;
use ports::{AfPacketPort, Port};
use runtime::{PortDrivers, RunConfig};
use switch::PortId;

use super::network::{H2, INTERFACES, Network, UNREACHABLE};
use super::pings::{self, Pings};
use super::recording::{RecordedFrames, RecordingPort};
use super::report::{DemoReport, Mode};
use crate::output::{Failure, Output};

/// Maximum duration of the whole demo.
const LIMIT: Duration = Duration::from_secs(120);

const PINGS: u16 = 5;
const LOST: u32 = 3;
const TCP_PORT: u16 = 5001;
/// The port of the discard service (RFC 863).
const DISCARD_PORT: u16 = 9;

/// Duration of the TCP transfer.
const TRANSFER: Duration = Duration::from_millis(1500);

/// Timeout of each operation of the TCP transfer.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(20);

/// Runs the demo in `network`.
pub fn live(network: Network, output: &Output) -> Result<DemoReport, Failure> {
    let switch = super::switch(output)?;
    let memory = RecordedFrames::default();
    let mut ports = Vec::new();
    for (at, interface) in INTERFACES.into_iter().enumerate() {
        let port = at as u32 + 1;
        let driver: Box<dyn Port> = Box::new(AfPacketPort::open(interface)?);
        let recording_port = RecordingPort { driver, port, memory: memory.clone() };
        ports.push(PortDrivers::single(PortId(port), recording_port));
    }
    let router =
        v1model_runtime::spawn_live(RunConfig { limit: Some(LIMIT), ..RunConfig::new(switch, ports) }, "router");
    let router = router.context("cannot start the router's thread")?;
    let traffic = exchange(&network);
    let report = router.stop().context("cannot run the router")?;
    let (pings, transfer, unrouted) = traffic?;
    DemoReport::new(Mode::Live, pings, Some(transfer), unrouted, &memory.frames(), &report, output)
}

/// Generates the hosts' traffic while the router runs.
fn exchange(network: &Network) -> Result<(Pings, StreamTransfer, u32), Failure> {
    let Network { h1, h2, .. } = network;
    let pings = pings::ping(h1, H2, PINGS).context("pinging from h1")?;
    h1.send_datagrams(SocketAddrV4::new(UNREACHABLE, DISCARD_PORT), b"is anybody there?", LOST)
        .context("sending from h1")?;
    let transfer = h1.transfer_stream(h2, SocketAddrV4::new(H2, TCP_PORT), TRANSFER, TRANSFER_TIMEOUT);
    let transfer = transfer.map_err(anyhow::Error::from)?;
    Ok((pings, transfer, LOST))
}
