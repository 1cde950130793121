//! The generated program with the entries of compiled rules, as machine code in batches, as a switch runs it.

use std::collections::BTreeMap;
use std::sync::Arc;

use compiler::Source;
use diagnostics::{Diagnostics, FileId, SourceMap};
use engine::{Now, Objects};
use ir::Program;
use jit::{NativeProgram, Plan, Speed, Step, Unit, UnitOutcome};
use subscribe::{ColumnLayout, NoIncludes, Subscriptions};
use subscribe_p4::entries::{Entity, Installer, Update};
use subscribe_p4::{ProgramFormat, ProgramOptions, RuleFormat};

use crate::checked::checked;
use crate::entry;

/// Number of messages per batch.
pub const BATCH: usize = jit::BATCH;
/// Answer for a message without destination; other answers are a group number, or [`PORT`] and a port number.
pub const NOWHERE: u32 = 0;
/// The bit that distinguishes ports from groups.
pub const PORT: u32 = 1 << 31;

/// v1model's drop port.
const DROP_PORT: u64 = 511;

/// A format as a program, with the vocabulary of its rules.
pub struct Case {
    text: String,
    format: ProgramFormat,
    pub rules: RuleFormat,
    layout: ColumnLayout,
}

/// A program with entries, ready to run.
pub struct RuleSwitch {
    compiled: NativeProgram,
    objects: Objects,
    packet: jit::Packet,
    /// Ports of groups.
    groups: BTreeMap<u32, Vec<u32>>,
}

impl Case {
    /// Reads a format.
    pub fn new(text: &str) -> Case {
        let (typed, map) = checked("format.p4", text);
        let mut diagnostics = Diagnostics::new();
        let format = subscribe_p4::read(&typed, FileId(0), &map, &mut diagnostics);
        let format = format.unwrap_or_else(|| panic!("{}", diagnostics.render(&map, false)));
        let rules = subscribe_p4::rule_format(&format).expect("names differ");
        let layout = ColumnLayout::sensible(&rules.format, &[]);
        Case { text: text.to_owned(), format, rules, layout }
    }

    /// Compiles rules.
    pub fn compile(&self, text: &str) -> Subscriptions {
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let rules = subscribe::parse(&mut map, "rules", text, &self.rules.format, &mut NoIncludes, &mut diagnostics);
        assert!(diagnostics.is_empty(), "{}", diagnostics.render(&map, false));
        let options = subscribe::CompileOptions {
            target: ProgramOptions::default().target,
            ..subscribe::CompileOptions::default()
        };
        let mut all = Subscriptions::new(self.rules.format.clone(), self.layout.clone(), options);
        all.change(&[], rules).expect("it fits");
        all
    }

    /// Creates the switch for compiled rules.
    pub fn switch(&self, rules: &Subscriptions) -> RuleSwitch {
        let options = ProgramOptions::default();
        let text = subscribe_p4::program(&self.text, &self.format, &self.rules, &self.layout, &options);
        let source = Source::new("program.p4", &text);
        let program = Arc::new(compiler::expect_program(&source, &v1model::V1Model).ir);
        let mut objects = Objects::new(&program);
        let mut installer = Installer::new(&self.format, &self.rules, &self.layout, &options, 510);
        let mut groups = BTreeMap::new();
        for update in installer.install(&rules.tables()).expect("groups suffice") {
            match update {
                Update::Insert(Entity::Table(entry)) => {
                    let (table, entry) = entry::entry(&program, &entry);
                    objects.insert(table, entry).expect("the entry fits");
                }
                Update::Insert(Entity::Group(id, ports)) => drop(groups.insert(id, ports)),
                other => panic!("nothing else comes with the first entries: {other:?}"),
            }
        }
        let compiled = NativeProgram::new(&program, &plan(&program), Speed::Run).expect("it compiles");
        let packet = compiled.packet(Vec::new());
        RuleSwitch { compiled, objects, packet, groups }
    }
}

/// Processing of a packet in a switch up to the point at which it is copied to its ports.
fn plan(program: &Program) -> Plan {
    let slot = |name: &str| program.slot_named(&format!("standard_metadata.{name}"));
    let body = |role: &str| Step::Run(program.blocks[role]);
    let mut steps: Vec<Step> = slot("packet_length").map(Step::LengthTo).into_iter().collect();
    steps.push(body("parser"));
    steps.extend(slot("parser_error").map(Step::ErrorTo));
    // Processing of a dropped packet ends here; only its results are kept.
    let done = slot("egress_port").expect("a v1model program");
    steps.extend([body("verify_checksum"), body("ingress"), Step::Set(done, 0), Step::DropIf(done, 0)]);
    let results = ["mcast_grp", "egress_spec"].map(|name| slot(name).expect("a v1model program")).to_vec();
    Plan {
        units: vec![Unit { steps, fresh: true, results: Some(results.clone()), ..Unit::default() }],
        visible: Some(results),
        given: slot("ingress_port").into_iter().collect(),
        deparser: None,
    }
}

impl RuleSwitch {
    /// Runs up to [`BATCH`] messages. Returns the answer for each.
    pub fn run(&mut self, batch: &mut [Vec<u8>], answers: &mut [u32]) {
        let mut packets = self.compiled.batch(0, &mut self.packet);
        packets.extend(batch.iter_mut().map(|buffer| (&mut buffer[..], 0)));
        let mut next = 0;
        while next < answers.len() {
            let jit::Progress { done, stopped } = packets.run(&mut self.objects, Now { ns: 0 });
            assert!(!stopped, "nothing stops a message");
            next = done.end;
            for (answer, ended) in answers[done.clone()].iter_mut().zip(packets.finished_all(done)) {
                debug_assert!(matches!(ended.outcome(), UnitOutcome::Stopped(_)));
                *answer = match (ended.result(0), ended.result(1)) {
                    (0, DROP_PORT) => NOWHERE,
                    (0, port) => PORT | port as u32,
                    (group, _) => group as u32,
                };
            }
        }
    }

    /// Returns the ports of an answer.
    pub fn ports(&self, answer: u32) -> Vec<u32> {
        match answer {
            NOWHERE => Vec::new(),
            port if port & PORT != 0 => vec![port & !PORT],
            group => self.groups[&group].clone(),
        }
    }
}
