//! Generated programs on switches with changing entries.

use std::sync::Arc;

use compiler::Source;
use diagnostics::{Diagnostics, FileId, SourceMap};
use ir::Program;
use subscribe::{ColumnLayout, NoIncludes};
use subscribe_p4::entries::{Entity, Update};
use subscribe_p4::{ProgramFormat, ProgramOptions, RuleFormat};
use switch::{Device, Frame, MulticastGroup, Notification, Time};
use v1model::{Config, Executor};

use crate::support::checked::checked;
use crate::support::entry;

/// Ingress port of packets.
const IN: u32 = 7;
/// Number of ports of the switch.
const PORTS: u32 = 8;

/// A format with its analysis.
pub struct Read {
    text: String,
    pub format: ProgramFormat,
    pub rules: RuleFormat,
}

impl Read {
    pub fn new(text: &str) -> Read {
        let (typed, map) = checked("format.p4", text);
        let mut diagnostics = Diagnostics::new();
        let format = subscribe_p4::read(&typed, FileId(0), &map, &mut diagnostics);
        let format = format.unwrap_or_else(|| panic!("{}", diagnostics.render(&map, false)));
        let rules = subscribe_p4::rule_format(&format).expect("names differ");
        Read { text: text.to_owned(), format, rules }
    }

    /// Generates the program; `change` modifies its text.
    pub fn program(
        &self,
        layout: &ColumnLayout,
        options: &ProgramOptions,
        change: impl FnOnce(String) -> String,
    ) -> Arc<Program> {
        let text = change(subscribe_p4::program(&self.text, &self.format, &self.rules, layout, options));
        let source = Source::new("program.p4", &text);
        Arc::new(compiler::expect_program(&source, &v1model::V1Model).ir)
    }

    pub fn parse(&self, text: &str) -> Vec<subscribe::Rule> {
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let rules = subscribe::parse(&mut map, "rules", text, &self.rules.format, &mut NoIncludes, &mut diagnostics);
        assert!(!diagnostics.has_errors(), "{}", diagnostics.render(&map, false));
        rules
    }
}

pub struct TestSwitch(v1model::Switch);

impl TestSwitch {
    pub fn new(program: &Arc<Program>, executor: Executor) -> TestSwitch {
        let config = Config { executor, ..Config::with_ports(PORTS) };
        TestSwitch(v1model::Switch::new(program.clone(), config).expect("a v1model program"))
    }

    pub fn apply(&mut self, update: &Update) {
        let (Update::Insert(entity) | Update::Modify(entity) | Update::Delete(entity)) = update;
        match entity {
            Entity::Table(entry) => {
                let (table, entry) = entry::entry(self.0.program(), entry);
                let objects = self.0.objects_mut();
                let done = match update {
                    Update::Insert(_) => objects.insert(table, entry),
                    Update::Modify(_) => objects.modify(table, entry),
                    Update::Delete(_) => objects.delete(table, &entry.keys, entry.priority),
                };
                done.unwrap_or_else(|error| panic!("{update:?}: {error:?}"));
            }
            Entity::Group(id, ports) => {
                let group = MulticastGroup::of_ports(ports.iter().copied());
                let group = (!matches!(update, Update::Delete(_))).then_some(group);
                assert!(self.0.set_multicast_group(*id, group));
            }
            Entity::Session(..) => panic!("the format has one message a packet"),
        }
    }

    /// Returns the outgoing packets by port; `controller` stands for the controller.
    pub fn packet(&mut self, bytes: &[u8], controller: u32) -> Vec<(u32, Vec<u8>)> {
        let mut out = Vec::new();
        self.0.step(Time::ZERO, &mut vec![Frame::new(IN, bytes.to_vec())], &mut out);
        let told = self.0.take_notifications().into_iter().filter_map(|notification| match notification {
            Notification::PacketIn { data, .. } => Some((controller, data)),
            _ => None,
        });
        let mut all: Vec<(u32, Vec<u8>)> =
            out.into_iter().map(|frame| (frame.port.0, frame.data)).chain(told).collect();
        all.sort();
        all
    }

    /// Returns the number of entries of all tables.
    pub fn entries(&self) -> usize {
        let program = self.0.program().clone();
        program.tables.keys().map(|table| self.0.objects().entries(table).count()).sum()
    }
}
