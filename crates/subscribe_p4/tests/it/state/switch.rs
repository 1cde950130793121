//! A generated program on a switch that receives updates and single messages.

use std::sync::Arc;

use compiler::Source;
use diagnostics::{Diagnostics, FileId, SourceMap};
use ir::Program;
use subscribe::{ColumnLayout, NoIncludes, Rule};
use subscribe_p4::entries::{Entity, Update};
use subscribe_p4::{ProgramFormat, ProgramOptions, RuleFormat};
use switch::{Device, Frame, MirrorSession, MulticastGroup, Time};
use v1model::{Config, Executor};

use crate::support::checked::checked;
use crate::support::entry;

/// Ingress port of packets.
const IN: u32 = 3;

/// A format with the program generated from it.
pub struct Made {
    pub format: ProgramFormat,
    pub rules: RuleFormat,
    pub options: ProgramOptions,
    program: Arc<Program>,
    ports: u32,
}

impl Made {
    /// Generates a program for a switch with this number of ports and messages per pass; `change` modifies its text.
    pub fn new(text: &str, ports: u32, messages_per_pass: Option<u32>, change: impl FnOnce(String) -> String) -> Made {
        let options = ProgramOptions { messages_per_pass, ..ProgramOptions::default() };
        Made::with(text, ports, options, change)
    }

    /// Generates a program with these options.
    pub fn with(text: &str, ports: u32, options: ProgramOptions, change: impl FnOnce(String) -> String) -> Made {
        let (typed, map) = checked("format.p4", text);
        let mut diagnostics = Diagnostics::new();
        let format = subscribe_p4::read(&typed, FileId(0), &map, &mut diagnostics);
        let format = format.unwrap_or_else(|| panic!("{}", diagnostics.render(&map, false)));
        let rules = subscribe_p4::rule_format(&format).expect("names differ");
        let layout = ColumnLayout::sensible(&rules.format, &[]);
        let text = change(subscribe_p4::program(text, &format, &rules, &layout, &options));
        let source = Source::new("program.p4", &text);
        let program = Arc::new(compiler::expect_program(&source, &v1model::V1Model).ir);
        Made { format, rules, options, program, ports }
    }

    pub fn parse(&self, text: &str) -> Vec<Rule> {
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let rules = subscribe::parse(&mut map, "rules", text, &self.rules.format, &mut NoIncludes, &mut diagnostics);
        assert!(diagnostics.is_empty(), "{}", diagnostics.render(&map, false));
        rules
    }
}

pub struct TestSwitch {
    switch: v1model::Switch,
}

impl TestSwitch {
    pub fn new(made: &Made, executor: Executor) -> TestSwitch {
        let config = Config { executor, ..Config::with_ports(made.ports) };
        let mut switch = v1model::Switch::new(made.program.clone(), config).expect("a v1model program");
        // The clock of a program starts with the first frame.
        switch.step(Time::ZERO, &mut Vec::new(), &mut Vec::new());
        TestSwitch { switch }
    }

    pub fn apply(&mut self, update: &Update) {
        match update {
            Update::Insert(Entity::Session(id, port)) => {
                assert!(self.switch.set_mirror_session(*id, Some(MirrorSession::to_port(*port))));
            }
            Update::Insert(Entity::Table(entry)) => {
                let (table, entry) = entry::entry(self.switch.program(), entry);
                self.switch.objects_mut().insert(table, entry).expect("the entry fits");
            }
            Update::Insert(Entity::Group(id, ports)) | Update::Modify(Entity::Group(id, ports)) => {
                assert!(self.switch.set_multicast_group(*id, Some(MulticastGroup::of_ports(ports.iter().copied()))));
            }
            Update::Modify(Entity::Table(entry)) => {
                let (table, entry) = entry::entry(self.switch.program(), entry);
                self.switch.objects_mut().modify(table, entry).expect("the entry is there");
            }
            Update::Delete(Entity::Table(entry)) => {
                let (table, entry) = entry::entry(self.switch.program(), entry);
                self.switch.objects_mut().delete(table, &entry.keys, entry.priority).expect("the entry is there");
            }
            Update::Delete(Entity::Group(id, _)) => assert!(self.switch.set_multicast_group(*id, None)),
            other => panic!("sessions stay: {other:?}"),
        }
    }

    /// Returns the destination ports, ascending, of a message at a given time.
    pub fn message(&mut self, micros: u64, bytes: Vec<u8>) -> Vec<u32> {
        let mut ports: Vec<u32> = self.packet(micros, bytes).iter().map(|(port, _)| *port).collect();
        ports.sort_unstable();
        ports
    }

    /// Returns the outgoing packets at a given time.
    pub fn packet(&mut self, micros: u64, bytes: Vec<u8>) -> Vec<(u32, Vec<u8>)> {
        let mut out = Vec::new();
        self.switch.step(Time::from_us(micros), &mut vec![Frame::new(IN, bytes)], &mut out);
        out.into_iter().map(|frame| (frame.port.0, frame.data)).collect()
    }

    /// Returns workers for separate threads, which share the switch's state.
    pub fn workers(&mut self, count: u32) -> Vec<v1model::Switch> {
        self.switch.workers(count)
    }

    /// Reads a cell of a register.
    pub fn register(&self, name: &str, index: u64) -> u128 {
        let program = self.switch.program();
        let name = format!("Subscriptions.{name}");
        let (id, _) = program.registers.iter().find(|(_, register)| register.name == name).expect("the register");
        self.switch.objects().register(id, index).expect("the cell").low_u128()
    }
}
