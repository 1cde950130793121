//! Runs the demo: two hosts, a P4 router between them, and a report on their traffic.
//!
//! ```text
//!   h1 10.0.1.1 ──── [1] router [2] ──── h2 10.0.2.2
//! ```
//!
//! If the kernel allows user namespaces, the hosts are real: namespaces with the kernel's own TCP/IP stack, and the
//! router's ports are AF_PACKET sockets on veth links. Otherwise the same packets come from capture files.
//!
//! [`market`] is part two: market data.

mod live;
pub mod market;
mod network;
mod offline;
mod pings;
mod recording;
mod report;

pub use live::live;
pub use network::Network;
pub use offline::offline;
pub use report::DemoReport;

use std::sync::Arc;

use switch::PortId;
use v1model::{Config, Switch};
use wire::{ethernet, icmpv4, ipv4};

use crate::load::Loader;
use crate::output::{Failure, Output};

const PROGRAM: &str = include_str!("../../../../examples/router/router.p4");
const ENTRIES: &str = include_str!("../../../../examples/router/entries.json");

/// Paths of the program and its entries in the repository.
const PROGRAM_NAME: &str = "examples/router/router.p4";
const ENTRIES_NAME: &str = "examples/router/entries.json";

/// Compiles the example router to pipeline IR.
fn router(output: &Output) -> Result<(Loader, Arc<ir::Program>), Failure> {
    let mut loader = Loader::builtin(PROGRAM_NAME, PROGRAM);
    let program = loader.program(output)?;
    Ok((loader, program))
}

/// Builds a switch that runs the example router with its entries, on ports 1 and 2.
fn switch(output: &Output) -> Result<Switch, Failure> {
    let (mut loader, program) = router(output)?;
    let config = Config { ports: vec![PortId(1), PortId(2)], seed: 1, ..Config::default() };
    let mut switch = Switch::new(program, config).map_err(|error| Failure::Input(error.to_string()))?;
    loader.apply_text(ENTRIES_NAME, ENTRIES, &mut switch, output)?;
    Ok(switch)
}

/// Parses the ICMP message in an IPv4 frame, and returns it with the frame's time to live.
fn echo(frame: &[u8]) -> Option<(icmpv4::Repr, u8)> {
    let frame = ethernet::Packet::new_checked(frame).ok()?;
    if frame.ethertype() != ethernet::IPV4 {
        return None;
    }
    let packet = ipv4::Packet::new_checked(frame.payload()).ok()?;
    if packet.protocol() != ipv4::ICMP {
        return None;
    }
    let message = icmpv4::Packet::new_checked(packet.payload()).ok()?;
    Some((icmpv4::Repr::parse(&message), packet.ttl()))
}
