//! Reads the tiny packet programs of a scenario, and collects their results.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use diagnostics::Span;
use switch::Time;
use toml::de::{DeTable, DeValue};
use tpp::{MemoryMap, TinyProgram};

use super::results::{Results, app, stack};
use super::run::{At, Part, Run};
use super::{CountResult, Traffic, TrafficKind, counts};
use crate::read::document::Reader;
use crate::sim::traffic::{
    ExecutionCounts, LinkCount, Measurement, ProgramClient, ProgramCollector, ProgramLog, ProgramLogger, ProgramSender,
};
use crate::topology::Topology;

/// A tiny packet program in the packets of some traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minion {
    /// The program's file; relative names are relative to the scenario's.
    pub file: String,
    /// The program is in one of this number of packets, on average.
    pub one_in: u32,
    /// What its receivers count on each link.
    pub count: Option<LinkCount>,
    /// Location in the file.
    pub span: Span,
}

/// The tiny packet programs of some traffic, at the end of their paths.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MinionResult {
    /// The program's file.
    pub file: String,
    /// Programs that senders inserted into packets, or sent as datagrams.
    pub inserted: u64,
    /// Packets that were sent without program, because the MTU left no room.
    pub too_long: u64,
    /// Programs that arrived, or were executed.
    pub arrived: u64,
    /// Names of the words of a hop.
    pub words: Vec<String>,
    /// The programs that arrived, in the order of their arrival: at each host the first million, and 64 MiB at most.
    pub packets: Vec<MinionPacket>,
    /// What passed the links, if that is counted.
    pub counts: Option<CountResult>,
    /// The outcomes of requests, if programs were executed reliably.
    pub requests: Option<ExecutionCounts>,
}

/// The words of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinionPacket {
    /// Time of its arrival.
    pub at: Time,
    /// Index of the host that sent the packet, if it is known.
    pub from: Option<usize>,
    /// Index of the host to which it was sent, likewise.
    pub to: Option<usize>,
    /// Status bits that switches set, such as `absent`.
    pub status: wire::tpp::Status,
    /// The words that each switch wrote; one list with all words if they have no names.
    pub hops: Vec<Vec<u32>>,
}

impl Reader<'_> {
    /// Reads the program in the packets of some traffic: the name of its file, or a table.
    pub(super) fn minion(&mut self, table: &DeTable<'_>) -> Option<Minion> {
        let (value, span) = self.get(table, "minion")?;
        match value {
            DeValue::String(file) => Some(Minion { file: file.to_string(), one_in: 1, count: None, span }),
            DeValue::Table(table) => {
                self.known(table, "a minion", &["file", "one_in", "count", "bits", "hash_seed", "every"]);
                let one_in = self.integer(table, "one_in", 1..=u32::MAX).unwrap_or(1);
                let file = self.text(table, "file").map(|(file, _)| file.to_owned());
                if file.is_none() {
                    self.wrong(span, "a minion needs a file: minion = { file = \"burst.tpp\", one_in = 10 }");
                }
                let count = self.link_count(table, span);
                Some(Minion { file: file?, one_in, count, span })
            }
            _ => {
                self.wrong(span, "`minion` must be a file: minion = \"burst.tpp\"");
                None
            }
        }
    }
}

/// Returns the programs of some traffic; `None` if it has none.
pub fn result(run: &Run, topology: &Topology, traffic: &Traffic, parts: &[&Part]) -> Option<MinionResult> {
    let mut logs: Vec<&ProgramLog> = Vec::new();
    let mut result = MinionResult::default();
    let hosts = topology.hosts.iter().enumerate();
    let hosts: BTreeMap<_, _> = hosts.filter_map(|(at, host)| Some((host.address?.0, at))).collect();
    match (&traffic.kind, &traffic.minion) {
        (TrafficKind::Tpp { file, .. }, _) => {
            result.file.clone_from(file);
            let senders = parts.iter().filter_map(|part| app::<ProgramSender>(run, part.sender));
            for sender in senders {
                result.inserted += sender.measured().sent;
                logs.push(sender.programs());
            }
        }
        (TrafficKind::Execute(execution), _) => {
            result.file.clone_from(&execution.file);
            let clients: Vec<&ProgramClient> =
                parts.iter().filter_map(|part| app::<ProgramClient>(run, part.sender)).collect();
            let mut sum = ExecutionCounts::default();
            for client in clients {
                sum.add(&client.counts);
                result.inserted += client.counts.packets;
                result.arrived += client.counts.executed;
                let executed = client.executed.iter().map(|executed| {
                    let ends = (None, executed.to.and_then(|to| hosts.get(&to).copied()));
                    packet(executed.at, ends, &executed.program, &run.memory, &mut result.words)
                });
                result.packets.extend(executed);
            }
            result.requests = Some(sum);
        }
        (_, Some(minion)) => {
            result.file.clone_from(&minion.file);
            let filters: BTreeSet<_> = parts.iter().filter_map(|part| Some((part.from, part.filter?))).collect();
            for (host, filter) in filters {
                let counts = stack(run, host).and_then(|stack| stack.shim.filter_counts(filter)).unwrap_or_default();
                result.inserted += counts.inserted;
                result.too_long += counts.too_long;
            }
            let collectors: BTreeSet<At> = parts.iter().flat_map(|part| part.collectors.iter().copied()).collect();
            result.counts = minion.count.as_ref().map(|count| counts::result(run, count, &collectors));
            logs.extend(collectors.iter().filter_map(|at| Some(app::<ProgramCollector>(run, *at)?.programs())));
        }
        _ => return None,
    }
    let host = |address: Option<Ipv4Addr>| hosts.get(&address?).copied();
    for log in logs {
        result.arrived += log.count;
        let arrived = log.kept.iter().filter_map(|arrived| {
            let ends = (host(arrived.from), host(arrived.to));
            Some(packet(arrived.at, ends, &arrived.program()?, &run.memory, &mut result.words))
        });
        result.packets.extend(arrived);
    }
    result.packets.sort_by_key(|packet| packet.at);
    Some(result)
}

/// Returns the words of a program, and their names once.
fn packet(
    at: Time,
    (from, to): (Option<usize>, Option<usize>),
    program: &TinyProgram,
    map: &MemoryMap,
    words: &mut Vec<String>,
) -> MinionPacket {
    let named = program.words_by_hop(map);
    if words.is_empty() {
        words.extend(named.iter().take(1).flatten().map(|(name, _)| name.clone()));
    }
    let mut hops = Vec::new();
    // The memory of a program that no switch executed has no hops.
    if program.repr.hop > 0 {
        hops.extend(named.into_iter().map(|hop| hop.into_iter().map(|(_, word)| word).collect()));
        hops.extend(program.unnamed_words());
    }
    MinionPacket { at, from, to, status: program.repr.status, hops }
}

impl Results {
    /// Returns the tiny packet programs of each traffic that has some, with the traffic's name.
    pub fn minions(&self) -> impl Iterator<Item = (&str, &MinionResult)> {
        self.traffic.iter().filter_map(|flow| Some((flow.name.as_str(), flow.minion.as_ref()?)))
    }
}
