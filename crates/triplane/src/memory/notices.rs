//! Reports when memory servers stop and resume answering.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use elastic_switch::ElasticSwitch;
use rdma::setup::ConnectRefusal;
use runtime::{Hook, HookContext};
use switch::{RowSwitch, Time};

use crate::output::Output;

/// Interval at which the servers are looked at.
const INTERVAL_NS: u64 = 200_000_000;
/// Time from the start of a run after which a server that has not answered is reported.
const START_NS: u64 = 3_000_000_000;

/// A hook that prints a note for each server that answers, or does not any more.
pub struct ServerNotices {
    output: Output,
    next_at: Time,
    /// Whether each server was reported as answering.
    reported: BTreeMap<Ipv4Addr, bool>,
}

impl ServerNotices {
    /// Creates the hook.
    pub fn new(output: &Output) -> ServerNotices {
        ServerNotices { output: *output, next_at: Time::ZERO, reported: BTreeMap::new() }
    }
}

/// Returns the note about a server.
fn note(server: Ipv4Addr, answers: bool, refusal: Option<ConnectRefusal>, others: usize) -> String {
    if let (false, Some(refusal)) = (answers, refusal) {
        return format!("memory server {server} refuses memory: {refusal}");
    }
    match (answers, others) {
        (true, _) => format!("memory server {server} answers"),
        (false, 0) => format!(
            "memory server {server} does not answer, and neither does any other: packets that need a READ are dropped"
        ),
        (false, _) => format!("memory server {server} does not answer; lookups go to the others"),
    }
}

impl<S: RowSwitch> Hook<ElasticSwitch<S>> for ServerNotices {
    fn poll(&mut self, context: &mut HookContext<'_, ElasticSwitch<S>>) {
        if context.now < self.next_at {
            return;
        }
        self.next_at = context.now.after_ns(INTERVAL_NS);
        let servers = context.switch.server_counts();
        let answering = servers.iter().filter(|server| server.connections > 0).count();
        for server in servers {
            let answers = server.connections > 0;
            let is_starting = !answers && context.now < Time::from_ns(START_NS);
            let before = self.reported.get(&server.address).copied();
            if before != Some(answers) && !(is_starting && before.is_none()) {
                self.reported.insert(server.address, answers);
                self.output.note(&note(server.address, answers, server.refusal, answering));
            }
        }
    }

    /// Servers that do not answer send nothing that would wake the loop.
    fn next_deadline(&self) -> Option<Time> {
        Some(self.next_at)
    }
}
