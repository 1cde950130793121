//! A trivial switch and ports in memory.

mod cable;
mod repeater;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use runtime::{PortDrivers, RunConfig, RunReport};
use switch::{PacketSwitch, PortId};

pub use cable::{Cable, MemoryPort, cable};
pub use repeater::{Program, Repeater, program};

/// Time after which a live test is stopped although it has not reached its end.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Runs `config` live until `body` returns.
pub fn run_while<S: PacketSwitch, T>(config: RunConfig<S>, body: impl FnOnce() -> T) -> (RunReport<S>, T) {
    let stop = AtomicBool::new(false);
    let config = RunConfig { limit: Some(TEST_TIMEOUT), ..config };
    std::thread::scope(|scope| {
        let run = scope.spawn(|| config.run_live(&stop).expect("there are descriptors"));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let report = run.join().expect("the run does not panic");
        (report, result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
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
