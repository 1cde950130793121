//! Runs one program, its entries and packets through the reference evaluator, the interpreter and machine code.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use compiler::Source;
use diagnostics::{Diagnostics, Severity, SourceMap};
use p4_reference::{Reference, Stop};
use switch::{Device, Frame, PortId, Time};
use v1model::{Config, Executor, Switch, V1Model};

use crate::traffic;

/// Number of packets of a program.
pub const PACKETS: u64 = 12;

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All executors agree on all packets that have a defined result.
    Agrees {
        /// Packets compared.
        packets: u64,
        /// Whether the comparison ended early at a packet without a defined result.
        unspecified: bool,
    },
    /// The compiler refuses the program: its first error.
    Refused(String),
    /// The evaluator does not model the program.
    Unsupported(String),
    /// The executors disagree, or one of them or the compiler panics.
    Differs(String),
}

/// Bytes and ports of the packets that left, and register contents.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Observation {
    sent: Vec<(u32, Vec<u8>)>,
}

fn hex(data: &[u8]) -> String {
    data.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn describe(observation: &Observation) -> String {
    if observation.sent.is_empty() {
        return "dropped".to_owned();
    }
    let one = |(port, data): &(u32, Vec<u8>)| format!("port {port}: {}", hex(data));
    observation.sent.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Compares all executors on a program. `machine_code` includes the JIT compiler.
pub fn compare(text: &str, seed: u64, machine_code: bool) -> Verdict {
    match catch_unwind(AssertUnwindSafe(|| compare_inner(text, seed, machine_code))) {
        Ok(verdict) => verdict,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Verdict::Differs(format!("panic: {}", text.unwrap_or_default()))
        }
    }
}

fn first_error(map: &SourceMap, diagnostics: &Diagnostics) -> String {
    match diagnostics.iter().find(|diagnostic| diagnostic.severity == Severity::Error) {
        Some(error) => {
            let line = map.position(error.primary.span).line;
            format!("{}: {} (line {line})", error.code, error.message)
        }
        None => "no error".to_owned(),
    }
}

fn compare_inner(text: &str, seed: u64, machine_code: bool) -> Verdict {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let source = Source::new("program.p4", text);
    let Some(typed) = compiler::check(&source, &V1Model, &mut map, &mut diagnostics) else {
        return Verdict::Refused(first_error(&map, &diagnostics));
    };
    let Some(compiled) = compiler::compile_checked(&typed, &V1Model, &mut map, &mut diagnostics) else {
        return Verdict::Refused(first_error(&map, &diagnostics));
    };
    let Some(mut reference) = Reference::new(&typed) else {
        return Verdict::Unsupported("`main` is not a V1Switch".to_owned());
    };
    let program = Arc::new(compiled.ir);
    let entries = traffic::entries(&program, seed);
    let mut names = vec!["interpreter"];
    let mut switches = vec![switch(&program, Executor::Interpreter)];
    if machine_code {
        names.push("machine code");
        switches.push(switch(&program, Executor::Jit));
    }
    for (table, entry) in &entries.tables {
        let accepted: Vec<bool> =
            switches.iter_mut().map(|switch| switch.objects_mut().insert(*table, entry.clone()).is_ok()).collect();
        if accepted[0]
            && let Some(entry) = traffic::reference_entry(&program, entry)
        {
            let name = program.tables[*table].name.clone();
            reference.control_plane.tables.entry(name).or_default().entries.push(entry);
        }
    }
    for (set, member) in &entries.value_sets {
        let accepted: Vec<bool> = switches
            .iter_mut()
            .map(|switch| switch.objects_mut().insert_value_set_member(*set, member.clone()).is_ok())
            .collect();
        if accepted[0] {
            let name = program.value_sets[*set].name.clone();
            let member = member.iter().map(traffic::key_match).collect();
            reference.control_plane.value_sets.entry(name).or_default().push(member);
        }
    }
    for number in 0..PACKETS {
        let data = traffic::packet(seed, number);
        let port = (number % 4) as u32;
        let expected = match reference.packet(port, &data, 0) {
            Ok(outcome) => Observation { sent: outcome.sent.into_iter().map(|sent| (sent.port, sent.data)).collect() },
            Err(Stop::Unsupported(what)) => return Verdict::Unsupported(what),
            // Registers may differ from here on.
            Err(_) => return Verdict::Agrees { packets: number, unspecified: true },
        };
        for (switch, name) in switches.iter_mut().zip(&names) {
            let mut output = Vec::new();
            switch.step(Time::ZERO, &mut vec![Frame::new(port, data.clone())], &mut output);
            let got = Observation { sent: output.into_iter().map(|frame| (frame.port.0, frame.data)).collect() };
            if got != expected {
                let mut text = format!("packet {number} on port {port}: {}\n", hex(&data));
                let _ = writeln!(text, "{:<14}{}", "reference", describe(&expected));
                let _ = writeln!(text, "{name:<14}{}", describe(&got));
                return Verdict::Differs(text);
            }
        }
        for (switch, name) in switches.iter().zip(&names) {
            if let Some(difference) = registers(&program, &reference, switch) {
                return Verdict::Differs(format!(
                    "packet {number} on port {port}: {}\n{name}: {difference}\n",
                    hex(&data)
                ));
            }
        }
    }
    Verdict::Agrees { packets: PACKETS, unspecified: false }
}

fn switch(program: &Arc<ir::Program>, executor: Executor) -> Switch {
    let ports = (0..v1model::DROP_PORT).map(PortId).collect();
    let config = Config { ports, cpu_port: None, executor, min_frame: 0, ..Config::default() };
    Switch::new(program.clone(), config).expect("a program for v1model")
}

/// Returns the first difference between registers.
fn registers(program: &ir::Program, reference: &Reference<'_>, switch: &Switch) -> Option<String> {
    for (id, register) in &program.registers {
        for index in 0..register.size.min(64) {
            let got = switch.objects().register(id, index).ok()?;
            let want = reference.register(&register.name, index);
            let want = want.map_or_else(|| bits::Bits::zero(register.width).to_big(), |value| value.bits);
            if got.to_big() != want {
                return Some(format!("{}[{index}] is {}, the reference has {want}", register.name, got.to_big()));
            }
        }
    }
    None
}
