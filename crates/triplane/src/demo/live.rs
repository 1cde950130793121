//! The live demo: the router runs in a thread, and the hosts' own network stacks make the traffic.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context, anyhow};
use ports::{AfPacketPort, Port};
use runtime::{PortDrivers, RunConfig};
use switch::PortId;

use super::account::{Account, Mode};
use super::network::{H2, INTERFACES, NOWHERE, Network};
use super::traffic::{self, Transfer};
use super::witness::{Memory, Witness};
use crate::output::{Failure, Output};

/// Maximum duration of the whole demo.
const LIMIT: Duration = Duration::from_secs(30);

const PINGS: u16 = 5;
const LOST: u32 = 3;
const TCP_PORT: u16 = 5001;

/// Runs the demo in `network`.
pub fn live(network: Network, output: &Output) -> Result<Account, Failure> {
    let switch = super::switch(output)?;
    let memory = Memory::default();
    let mut ports = Vec::new();
    for (at, interface) in INTERFACES.into_iter().enumerate() {
        let port = at as u32 + 1;
        let driver: Box<dyn Port> = Box::new(AfPacketPort::open(interface)?);
        let witness = Witness { driver, port, memory: memory.clone() };
        ports.push(PortDrivers::single(PortId(port), witness));
    }
    let router = RunConfig { limit: Some(LIMIT), ..RunConfig::new(switch, ports) }.spawn_live("router");
    let router = router.context("cannot start the router's thread")?;
    let traffic = exchange(&network);
    let report = router.stop().context("cannot run the router")?;
    let (pings, transfer, unrouted) = traffic?;
    Account::new(Mode::Live, pings, Some(transfer), unrouted, &memory.frames(), &report, output)
}

/// Generates the hosts' traffic while the router runs.
fn exchange(network: &Network) -> Result<(traffic::Pings, Transfer, u32), Failure> {
    let pings = traffic::ping(&network.h1, H2, PINGS).context("pinging from h1")?;
    let unrouted = network.h1.enter(|| traffic::send_nowhere(NOWHERE, LOST)).context("entering h1")?;
    let unrouted = unrouted.context("sending from h1")?;
    let listener = network.h2.enter(|| TcpListener::bind((H2, TCP_PORT))).context("entering h2")?;
    let listener = listener.context("listening in h2")?;
    let transfer = std::thread::scope(|scope| -> anyhow::Result<Transfer> {
        // A socket belongs to the namespace in which it was opened; only the connecting socket has to be opened in h1.
        let sender = scope.spawn(|| network.h1.enter(|| traffic::send_stream(TCP_PORT)));
        let received = if pings.received > 0 { traffic::receive_stream(&listener) } else { Ok(Transfer::default()) };
        let sent = sender.join().map_err(|_| anyhow!("the sender panicked; this is a bug"))?;
        let sent = sent.context("entering h1")?.context("sending a TCP stream from h1")?;
        let mut transfer = received.context("receiving a TCP stream in h2")?;
        transfer.intact &= transfer.bytes == sent;
        Ok(transfer)
    })?;
    Ok((pings, transfer, unrouted))
}
