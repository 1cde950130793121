//! A generated program on a switch, told updates and sent single messages.

use std::sync::Arc;

use compiler::Source;
use diagnostics::{Diagnostics, FileId, SourceMap};
use ir::Program;
use subscribe::{Layout, NoIncludes, Rule};
use subscribe_p4::entries::{Entity, Update};
use subscribe_p4::{Format, Options, Rules};
use switch::{Device, Frame, MirrorSession, MulticastGroup, Time};
use v1model::{Config, Executor};

use crate::support::checked::checked;
use crate::support::entry;

/// Where packets come in.
const IN: u32 = 3;

/// A format, and the program that is made of it.
pub struct Made {
    pub format: Format,
    pub rules: Rules,
    pub options: Options,
    program: Arc<Program>,
    ports: u32,
}

impl Made {
    /// For a switch of so many ports, with so many messages a pass; `change` does something to the program's text.
    pub fn new(text: &str, ports: u32, messages_per_pass: Option<u32>, change: impl FnOnce(String) -> String) -> Made {
        let (typed, map) = checked("format.p4", text);
        let mut diagnostics = Diagnostics::new();
        let format = subscribe_p4::read(&typed, FileId(0), &map, &mut diagnostics);
        let format = format.unwrap_or_else(|| panic!("{}", diagnostics.render(&map, false)));
        let rules = subscribe_p4::rules(&format).expect("names differ");
        let options = Options { messages_per_pass, ..Options::default() };
        let layout = Layout::sensible(&rules.format, &[]);
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

pub struct Switch {
    switch: v1model::Switch,
}

impl Switch {
    pub fn new(made: &Made, executor: Executor) -> Switch {
        let config = Config { executor, ..Config::with_ports(made.ports) };
        let mut switch = v1model::Switch::new(made.program.clone(), config).expect("a v1model program");
        // The clock of a program begins with the first frame.
        switch.step(Time::ZERO, &mut Vec::new(), &mut Vec::new());
        Switch { switch }
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
            other => panic!("nothing else comes with the first entries: {other:?}"),
        }
    }

    /// The ports that a message at a time goes to, ascending.
    pub fn message(&mut self, micros: u64, bytes: Vec<u8>) -> Vec<u32> {
        let mut ports: Vec<u32> = self.packet(micros, bytes).iter().map(|(port, _)| *port).collect();
        ports.sort_unstable();
        ports
    }

    /// What leaves of a packet at a time.
    pub fn packet(&mut self, micros: u64, bytes: Vec<u8>) -> Vec<(u32, Vec<u8>)> {
        let mut out = Vec::new();
        self.switch.step(Time::from_us(micros), &mut vec![Frame::new(IN, bytes)], &mut out);
        out.into_iter().map(|frame| (frame.port.0, frame.data)).collect()
    }

    /// So many workers, for threads of their own; this is what they share.
    pub fn workers(&mut self, count: u32) -> Vec<v1model::Switch> {
        self.switch.workers(count)
    }

    /// A cell of a register.
    pub fn register(&self, name: &str, index: u64) -> u128 {
        let program = self.switch.program();
        let name = format!("Subscriptions.{name}");
        let (id, _) = program.registers.iter().find(|(_, register)| register.name == name).expect("the register");
        self.switch.objects().register(id, index).expect("the cell").low_u128()
    }
}
