//! The demo: two hosts, a P4 router between them, and what can be seen of it.
//!
//! ```text
//!   h1 10.0.1.1 ──── [1] router [2] ──── h2 10.0.2.2
//! ```
//!
//! Where the kernel allows user namespaces, the hosts are real ones: namespaces with the kernel's own TCP/IP stack, and
//! the router's ports are AF_PACKET sockets on veth links. Elsewhere the same packets come from capture files.

mod account;
mod live;
mod network;
mod offline;
mod traffic;
mod witness;

pub use account::Account;
pub use live::live;
pub use network::Network;
pub use offline::offline;

use std::sync::Arc;

use switch::PortId;
use v1model::{Config, Switch};

use crate::load::Loader;
use crate::output::{Failure, Output};

const PROGRAM: &str = include_str!("../../../../examples/router/router.p4");
const ENTRIES: &str = include_str!("../../../../examples/router/entries.json");

/// Where the program and its entries are found in the repository.
const PROGRAM_NAME: &str = "examples/router/router.p4";
const ENTRIES_NAME: &str = "examples/router/entries.json";

/// The example router as pipeline IR.
fn router(output: &Output) -> Result<(Loader, Arc<ir::Program>), Failure> {
    let mut loader = Loader::builtin(PROGRAM_NAME, PROGRAM);
    let program = loader.program(output)?;
    Ok((loader, program))
}

/// A switch that runs the example router with its entries, on ports 1 and 2.
fn switch(output: &Output) -> Result<Switch, Failure> {
    let (mut loader, program) = router(output)?;
    let config = Config { ports: vec![PortId(1), PortId(2)], seed: 1, ..Config::default() };
    let mut switch = Switch::new(program, config).map_err(|error| Failure::Input(error.to_string()))?;
    loader.apply_text(ENTRIES_NAME, ENTRIES, &mut switch, output)?;
    Ok(switch)
}
