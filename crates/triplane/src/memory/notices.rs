//! Reports when memory servers stop and resume answering, and when they have joined or left.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use elastic_switch::{ElasticSwitch, ServerCounts, ServerState};
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
    /// The membership of each server at the last look, if there was one.
    states: Option<BTreeMap<Ipv4Addr, ServerState>>,
}

impl ServerNotices {
    /// Creates the hook.
    pub fn new(output: &Output) -> ServerNotices {
        ServerNotices { output: *output, next_at: Time::ZERO, reported: BTreeMap::new(), states: None }
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

/// Returns the note about a server whose membership was `before` and is `after` now, if it has joined or left. A whole
/// change may have passed meanwhile.
fn membership_note(server: Ipv4Addr, before: Option<ServerState>, after: Option<ServerState>) -> Option<String> {
    match (before, after) {
        (None | Some(ServerState::Joining), Some(ServerState::Serving)) => {
            Some(format!("memory server {server} has joined: it has its share of the tables"))
        }
        (Some(ServerState::Serving | ServerState::Leaving), None) => Some(format!("memory server {server} has left")),
        _ => None,
    }
}

impl ServerNotices {
    fn report_membership(&mut self, servers: &[ServerCounts]) {
        let states: BTreeMap<Ipv4Addr, ServerState> = servers.iter().map(|it| (it.address, it.state)).collect();
        if let Some(before) = &self.states {
            let known: BTreeSet<&Ipv4Addr> = before.keys().chain(states.keys()).collect();
            for server in known {
                let note = membership_note(*server, before.get(server).copied(), states.get(server).copied());
                note.into_iter().for_each(|note| self.output.note(&note));
            }
        }
        self.reported.retain(|server, _| states.contains_key(server));
        self.states = Some(states);
    }
}

impl<S: RowSwitch> Hook<ElasticSwitch<S>> for ServerNotices {
    fn poll(&mut self, context: &mut HookContext<'_, ElasticSwitch<S>>) {
        if context.now < self.next_at {
            return;
        }
        self.next_at = context.now.after_ns(INTERVAL_NS);
        let servers = context.switch.server_counts();
        // Those that join have no entries yet.
        let has_entries = |server: &&ServerCounts| server.connections > 0 && server.state != ServerState::Joining;
        let answering = servers.iter().filter(has_entries).count();
        for server in &servers {
            let answers = server.connections > 0;
            // `triplane memory add` shows that a server which joins does not answer.
            let is_joining = server.state == ServerState::Joining;
            let is_starting = !answers && (is_joining || context.now < Time::from_ns(START_NS));
            let before = self.reported.get(&server.address).copied();
            if before != Some(answers) && !(is_starting && before.is_none()) {
                self.reported.insert(server.address, answers);
                self.output.note(&note(server.address, answers, server.refusal, answering));
            }
        }
        self.report_membership(&servers);
    }

    /// Servers that do not answer send nothing that would wake the loop.
    fn next_deadline(&self) -> Option<Time> {
        Some(self.next_at)
    }
}
