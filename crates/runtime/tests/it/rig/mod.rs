//! A trivial switch and ports in memory.

mod cable;
mod repeater;

use std::time::Duration;

use runtime::{PortDrivers, RunConfig, RunReport};
use switch::{PacketSwitch, PortId};

pub use cable::{Cable, cable};
pub use repeater::{FATAL, Repeater, program};

/// Time after which a live test is stopped although it has not reached its end.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Runs `config` live until `body` returns.
pub fn run_while<S: PacketSwitch, T>(config: RunConfig<S>, body: impl FnOnce() -> T) -> (RunReport<S>, T) {
    let config = RunConfig { limit: Some(TEST_TIMEOUT), ..config };
    let running = config.spawn_live("switch").expect("a thread can be started");
    let result = body();
    (running.stop().expect("there are descriptors"), result)
}

/// Ports 1 and 2 of a switch, one driver each, and the other ends of their cables.
pub fn two_ports() -> (Vec<PortDrivers>, [Cable; 2]) {
    let (first, first_cable) = cable();
    let (second, second_cable) = cable();
    let ports = vec![PortDrivers::single(PortId(1), first), PortDrivers::single(PortId(2), second)];
    (ports, [first_cable, second_cable])
}

/// A frame of flow `flow`, whose byte 12 is `mark`.
pub fn frame(flow: u16, mark: u8) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[4..6].copy_from_slice(&flow.to_be_bytes());
    frame[12] = mark;
    frame
}
