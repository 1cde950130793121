//! Echo requests from one host to others, and what comes back.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use ports::namespace::Echoes;
use switch::Time;

use super::clock::Clock;
use super::tally::Tally;

/// How often it is looked whether the scenario is over.
const LOOK: Duration = Duration::from_millis(50);

/// Whom a host pings: the flow, the identifier that answers come back with, the address.
#[derive(Clone, Copy)]
pub struct Target {
    pub flow: u32,
    pub identifier: u16,
    pub address: Ipv4Addr,
}

/// How many requests everybody is sent, and when.
#[derive(Clone, Copy)]
pub struct Times {
    pub count: u32,
    pub start: u64,
    pub interval: u64,
}

/// Sends requests, each at its time, whether or not the last was answered.
pub fn send(socket: &Echoes, targets: &[Target], times: Times, clock: &Clock) -> Tally {
    let mut tally = Tally::default();
    for number in 0..times.count {
        if !clock.wait_until(times.start + u64::from(number) * times.interval) {
            break;
        }
        for target in targets {
            let stamp = clock.now().as_ns().to_be_bytes();
            // No route and no answer come to the same.
            let _ = socket.request(target.address, target.identifier, number as u16, &stamp);
            tally.flow(target.flow).sent += 1;
        }
    }
    tally
}

/// Takes the answers, until the scenario is over.
pub fn receive(socket: &Arc<Echoes>, targets: &[Target], clock: &Clock) -> std::io::Result<Tally> {
    let mut tally = Tally::default();
    while !clock.is_over() {
        let Some(echo) = socket.answer(LOOK)? else { continue };
        let now = clock.now();
        let sent = targets.iter().find(|target| (target.identifier, target.address) == (echo.identifier, echo.from));
        let (Some(target), Ok(stamp)) = (sent, <[u8; 8]>::try_from(&echo.data[..])) else { continue };
        if clock.is_over() {
            break;
        }
        let measured = tally.flow(target.flow);
        measured.received += 1;
        measured.arrived(now, echo.data.len() as u64);
        measured.took(now.since_ns(Time::from_ns(u64::from_be_bytes(stamp))));
    }
    Ok(tally)
}
