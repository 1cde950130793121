//! Changes entries while a network is simulated, as a controller would make them.

use std::path::Path;

use diagnostics::{Diagnostic, Diagnostics, SourceMap};
use entries_file::Entries;
use lab::Topology;
use lab::scenario::{Scenario, Write};
use lab::sim::WriteRefusal;
use switch::SwitchControl;
use v1model_runtime::simulated::ScenarioWrites;

use super::network::{Network, reason};
use crate::load;
use crate::output::{Failure, Output};

/// The changes of a scenario, in the scenario's order.
#[derive(Default)]
pub struct Writes(Vec<Change>);

struct Change {
    delete: Entries,
    insert: Entries,
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
            changes.push(Change { delete, insert });
        }
        let writes = Writes(changes);
        if !diagnostics.has_errors() {
            writes.rehearse(network, scenario, &mut diagnostics);
        }
        output.diagnostics(map, &diagnostics);
        match diagnostics.error_count() {
            0 => Ok(writes),
            count => Err(Failure::Input(load::mistakes(count))),
        }
    }

    /// Makes all changes in order of time, on switches that receive no other input.
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
        let Change { delete, insert } = &self.0[number];
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
