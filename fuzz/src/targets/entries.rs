//! Entries files against the router: either findings, or entries that a switch takes.

use std::sync::Arc;

use diagnostics::{Diagnostics, FileId, SourceMap};

use super::text::{Format, Texts};
use super::{Reached, frontend};
use crate::corpus;
use crate::round_clock::compiling;

/// Entries files for the router.
pub struct EntriesFile {
    program: Arc<::ir::Program>,
}

/// Mutations of the repository's JSON files.
pub fn target() -> Texts<EntriesFile> {
    let path = corpus::root().join("examples/router/router.p4");
    let text = std::fs::read_to_string(path).expect("the router is in the repository");
    let compiled = frontend::compile(&text);
    let program = compiled.program.unwrap_or_else(|| {
        panic!("the router does not compile:\n{}", compiled.diagnostics.render(&compiled.map, false))
    });
    Texts::new(EntriesFile { program: Arc::new(program) }, corpus::contents(".json"))
}

impl Format for EntriesFile {
    type Value = ::entries_file::Entries;

    fn file_name(&self) -> &'static str {
        "entries.json"
    }

    fn read(&self, map: &SourceMap, file: FileId, diagnostics: &mut Diagnostics) -> Option<::entries_file::Entries> {
        ::entries_file::parse(map, file, &self.program, v1model::MAX_PORT.into(), diagnostics)
    }

    fn hold(&self, entries: ::entries_file::Entries, reached: &mut Reached) {
        let counts = [entries.tables.len(), entries.defaults.len(), entries.groups.len(), entries.mirrors.len()];
        reached.add(counts.map(|count| count.min(3)));
        self.apply(&entries);
    }
}

impl EntriesFile {
    /// Asserts that a switch accepts every entry that the reader accepted; only a full table may refuse one.
    fn apply(&self, entries: &::entries_file::Entries) {
        let config = v1model::Config::with_ports(4);
        let mut switch = compiling(|| v1model::Switch::new(self.program.clone(), config)).expect("a router");
        let call = |call: &::entries_file::ActionInvocation| engine::ActionCall {
            action: call.action,
            args: call.args.clone(),
        };
        for entry in &entries.tables {
            let ::entries_file::EntryAction::Action(action) = &entry.target else {
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
        let replicas = |replicas: &[::entries_file::Replica]| {
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
                ..Default::default()
            };
            assert!(
                switch.set_mirror_session(mirror.id, Some(session)),
                "the reader let session {} through",
                mirror.id
            );
        }
    }
}
