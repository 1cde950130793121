//! Entries files against the router: either findings, or entries that a switch takes.

use std::sync::Arc;

use source::{Diagnostics, SourceMap};

use super::{Reached, Target, frontend};
use crate::random::Random;
use crate::{corpus, worker};

/// Entries files.
pub struct EntriesFile {
    program: Arc<::ir::Program>,
    inputs: Vec<Vec<u8>>,
}

impl EntriesFile {
    pub fn new() -> EntriesFile {
        let path = corpus::root().join("examples/router/router.p4");
        let text = std::fs::read_to_string(path).expect("the router is in the repository");
        let compiled = frontend::compile(&text);
        let program = compiled.program.unwrap_or_else(|| {
            panic!("the router does not compile:\n{}", compiled.diagnostics.render(&compiled.map, false))
        });
        EntriesFile { program: Arc::new(program), inputs: corpus::contents(".json") }
    }
}

impl Target for EntriesFile {
    fn seeds(&self) -> Vec<Vec<u8>> {
        self.inputs.clone()
    }

    fn generate(&mut self, random: &mut Random) -> Vec<u8> {
        worker::mutated(&self.inputs, random)
    }

    fn run(&mut self, input: &[u8]) -> Vec<u64> {
        let mut reached = Reached::default();
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let text = String::from_utf8_lossy(input);
        let file = map.add("entries.json", text.as_ref());
        let entries = ::entries::parse(&map, file, &self.program, &mut diagnostics);
        assert_eq!(entries.is_none(), diagnostics.has_errors(), "entries are given if and only if there is no mistake");
        reached.findings(&map, &diagnostics);
        if let Some(entries) = entries {
            let counts = [entries.tables.len(), entries.defaults.len(), entries.groups.len(), entries.mirrors.len()];
            reached.add(counts.map(|count| count.min(3)));
            self.apply(&entries);
        }
        reached.list()
    }

    fn keep(&mut self, input: Vec<u8>) {
        worker::remember(&mut self.inputs, input);
    }
}

impl EntriesFile {
    /// What the reader let through, a switch takes; only a full table may refuse.
    fn apply(&self, entries: &::entries::Entries) {
        let mut switch = v1model::Switch::new(self.program.clone(), v1model::Config::with_ports(4)).expect("a router");
        let call = |call: &::entries::Call| engine::ActionCall { action: call.action, args: call.args.clone() };
        for entry in &entries.tables {
            let ::entries::Target::Action(action) = &entry.target else {
                panic!("no table of the router has an action profile, and yet an entry names {:?}", entry.target)
            };
            let call = call(action);
            let written = engine::TableEntry::new(entry.keys.clone(), entry.priority, call.action, call.args);
            match switch.objects_mut().insert(entry.table, written) {
                Ok(()) | Err(engine::EntryError::Full(_)) => {}
                Err(error) => panic!("the reader let an entry through that the switch refuses: {error}"),
            }
        }
        for (table, action, _) in &entries.defaults {
            let result = switch.objects_mut().set_default_action(*table, call(action));
            result.expect("the reader let the default action through");
        }
        let replicas = |replicas: &[::entries::Replica]| {
            replicas.iter().map(|replica| ::switch::Replica::new(replica.port, replica.instance as u16)).collect()
        };
        for group in &entries.groups {
            let made = ::switch::MulticastGroup { replicas: replicas(&group.replicas) };
            assert!(switch.set_multicast_group(group.id, Some(made)), "the reader let group {} through", group.id);
        }
        for mirror in &entries.mirrors {
            let session = ::switch::MirrorSession {
                replicas: replicas(&mirror.replicas),
                group: mirror.group,
                max_bytes: mirror.truncate,
            };
            assert!(
                switch.set_mirror_session(mirror.id, Some(session)),
                "the reader let session {} through",
                mirror.id
            );
        }
    }
}
