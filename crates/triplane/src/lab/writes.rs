//! Changes entries and memory servers while a network is simulated, as a controller would.

use std::collections::BTreeMap;
use std::path::Path;

use diagnostics::{Diagnostic, Diagnostics, SourceMap};
use elastic_switch::MemoryServerPort;
use entries_file::Entries;
use lab::scenario::{Scenario, ServerChange, Write};
use lab::sim::WriteRefusal;
use lab::{Delay, Topology};
use switch::{PortId, SwitchControl};
use v1model_runtime::simulated::{ScenarioServer, ScenarioWrites};

use super::network::{Network, reason};
use crate::load;
use crate::output::{Failure, Output};

/// The changes of a scenario, in the scenario's order.
#[derive(Default)]
pub struct Writes {
    changes: Vec<Change>,
    /// Memory servers that a switch does not use at the start, as the scenario adds them.
    joining: Vec<(usize, MemoryServerPort)>,
}

struct Change {
    delete: Entries,
    insert: Entries,
    server: Option<ScenarioServer>,
}

/// Returns the place of a memory server of a switch.
fn place(topology: &Topology, switch: usize, host: usize) -> MemoryServerPort {
    let servers = topology.memory_servers(switch);
    let (port, _) = servers.iter().find(|(_, server)| *server == host).expect("the scenario was checked");
    let (address, _) = topology.hosts[host].address.expect("memory servers have addresses");
    MemoryServerPort { address, port: PortId(*port) }
}

/// Returns the memory servers whose first change in a scenario is that they join.
fn joining(topology: &Topology, scenario: &Scenario) -> Vec<(usize, MemoryServerPort)> {
    let mut first: BTreeMap<(usize, usize), (Delay, bool)> = BTreeMap::new();
    for write in &scenario.writes {
        let Some(change) = write.server else { continue };
        let (ServerChange::Add(host) | ServerChange::Remove(host)) = change;
        let own = (write.at, matches!(change, ServerChange::Add(_)));
        let known = first.entry((write.switch, host)).or_insert(own);
        if own.0 < known.0 {
            *known = own;
        }
    }
    let added = first.into_iter().filter(|(_, (_, is_added))| *is_added);
    added.map(|((switch, host), _)| (switch, place(topology, switch, host))).collect()
}

impl Writes {
    /// Reads the files that a scenario names, which lie beside the scenario's own file. Checks them against the
    /// programs, and tries every change on switches in their initial state. Diagnostics have been printed when this
    /// returns.
    pub fn load(
        network: &Network,
        scenario: &Scenario,
        file: Option<&Path>,
        map: &mut SourceMap,
        output: &Output,
    ) -> Result<Writes, Failure> {
        let folder = file.and_then(Path::parent).unwrap_or(Path::new(""));
        let mut diagnostics = Diagnostics::new();
        let mut changes = Vec::new();
        for write in &scenario.writes {
            let mut read = |name: &Option<String>| -> Entries {
                let Some(name) = name else { return Entries::default() };
                let path = folder.join(name);
                let text = match load::read_regular(&path, entries_file::MAX_FILE_BYTES) {
                    Ok(text) => text,
                    Err(failure) => {
                        diagnostics.push(Diagnostic::error("writes", write.span, reason(&failure)));
                        return Entries::default();
                    }
                };
                let file = map.add(&path.display().to_string(), text.as_str());
                let found = crate::entries::parse(map, file, network.program(write.switch), &mut diagnostics);
                found.unwrap_or_default()
            };
            let (delete, insert) = (read(&write.delete), read(&write.entries));
            let others = Entries { tables: Vec::new(), ..delete.clone() };
            if others != Entries::default() {
                let message = "only table entries can be deleted, but this file has other sections";
                diagnostics.push(Diagnostic::error("writes", write.span, message));
            }
            let place = |host| place(&network.topology, write.switch, host);
            let server = write.server.map(|change| match change {
                ServerChange::Add(host) => ScenarioServer::Add(place(host)),
                ServerChange::Remove(host) => ScenarioServer::Remove(place(host)),
            });
            changes.push(Change { delete, insert, server });
        }
        let writes = Writes { changes, joining: joining(&network.topology, scenario) };
        for write in scenario.writes.iter().filter(|write| write.server.is_some()) {
            let message = if !network.remote_tables.has(write.switch) {
                "the program of this switch has no @elastic table, so it uses no memory server"
            } else if writes.joining(write.switch).len() == network.topology.memory_servers(write.switch).len() {
                "all memory servers of this switch join, so it has none at the start"
            } else {
                continue;
            };
            diagnostics.push(Diagnostic::error("writes", write.span, message));
        }
        if !diagnostics.has_errors() {
            writes.rehearse(network, scenario, &mut diagnostics);
        }
        output.diagnostics(map, &diagnostics);
        match diagnostics.error_count() {
            0 => Ok(writes),
            count => Err(Failure::Input(load::mistakes(count))),
        }
    }

    /// Returns the memory servers that a switch does not use at the start.
    pub fn joining(&self, switch: usize) -> Vec<MemoryServerPort> {
        self.joining.iter().filter(|(of, _)| *of == switch).map(|(_, place)| *place).collect()
    }

    /// Makes all changes of entries in order of time, on switches that receive no other input.
    fn rehearse(&self, network: &Network, scenario: &Scenario, diagnostics: &mut Diagnostics) {
        let mut order: Vec<(usize, &Write)> = scenario.writes.iter().enumerate().collect();
        order.sort_by_key(|(_, write)| (write.switch, write.at));
        for writes in order.chunk_by(|(_, one), (_, other)| one.switch == other.switch) {
            let mut switch = network.switch(writes[0].1.switch, scenario.seed);
            for (number, write) in writes {
                if let Err(why) = self.apply(*number, &mut switch) {
                    diagnostics.push(Diagnostic::error("writes", write.span, why));
                }
            }
        }
    }
}

impl ScenarioWrites for Writes {
    fn apply(&self, number: usize, switch: &mut dyn SwitchControl) -> Result<(), String> {
        let Change { delete, insert, .. } = &self.changes[number];
        let mut refused = Vec::new();
        for entry in &delete.tables {
            if let Err(error) = switch.objects_mut().delete(entry.table, &entry.keys, entry.priority) {
                refused.push(format!(
                    "cannot delete an entry of `{}`: {error}",
                    switch.program().tables[entry.table].name
                ));
            }
        }
        let mut diagnostics = Diagnostics::new();
        entries_file::apply(switch, insert, &mut diagnostics);
        refused.extend(diagnostics.iter().map(|finding| finding.message.clone()));
        if refused.is_empty() { Ok(()) } else { Err(refused.join("; ")) }
    }

    fn server(&self, number: usize) -> Option<ScenarioServer> {
        self.changes[number].server
    }
}

/// Formats the changes that switches rejected.
pub fn refused(
    topology: &Topology,
    scenario: &Scenario,
    refused: &[(switch::Time, usize, WriteRefusal)],
) -> Vec<String> {
    let one = |(at, number, why): &(switch::Time, usize, WriteRefusal)| {
        let name = &topology.switches[scenario.writes[*number].switch].name;
        format!("at {at}, `{name}` rejected a write: {why}")
    };
    refused.iter().map(one).collect()
}
