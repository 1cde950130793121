//! Every v1model program with a packet test (`.stf`) beside it in the directories in `TRIPLANE_P4_CORPUS` must do with
//! packets what the test says. Skipped when the variable is not set; `TRIPLANE_STF_REPORT` names a file to write the
//! failures to. Tests with commands that are not understood here are skipped and counted.

mod pipeline;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use engine::{ActionCall, TableEntry};
use ir::{KeyValue, MatchKind};
use switch::{Device, Frame, MirrorSession, MulticastGroup, Replica, Time};

/// What became of a test.
enum Outcome {
    Passed,
    Skipped(String),
    Failed(String),
}

fn number(text: &str) -> Option<u128> {
    match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16).ok(),
        None => match text.strip_prefix("0b") {
            Some(digits) => u128::from_str_radix(digits, 2).ok(),
            None => text.parse().ok(),
        },
    }
}

/// `1234` or `0x12**`: value and mask.
fn masked(text: &str, width: u32) -> Option<(bits::Bits, bits::Bits)> {
    let (digits, radix_bits) = match (text.strip_prefix("0x"), text.strip_prefix("0b")) {
        (Some(digits), _) => (digits, 4),
        (_, Some(digits)) => (digits, 1),
        _ => return Some((bits::Bits::new(number(text)?, width), bits::Bits::ones(width))),
    };
    let (mut value, mut mask) = (0u128, 0u128);
    for digit in digits.chars() {
        value <<= radix_bits;
        mask <<= radix_bits;
        if digit != '*' {
            value |= u128::from(digit.to_digit(1 << radix_bits)?);
            mask |= (1 << radix_bits) - 1;
        }
    }
    Some((bits::Bits::new(value, width), bits::Bits::new(mask, width)))
}

fn key_value(key: &ir::Key, given: Option<&str>) -> Option<KeyValue> {
    let width = key.width;
    Some(match (key.kind, given) {
        (MatchKind::Exact, Some(text)) => KeyValue::Exact(bits::Bits::new(number(text)?, width)),
        (MatchKind::Optional, Some(text)) => KeyValue::Exact(bits::Bits::new(number(text)?, width)),
        (MatchKind::Optional, None) => KeyValue::Any,
        (MatchKind::Lpm, Some(text)) => match text.split_once('/') {
            Some((value, length)) => {
                let length: u32 = length.parse().ok()?;
                let mask = bits::Bits::ones(width).shl(width.checked_sub(length)?);
                KeyValue::Lpm(bits::Bits::new(number(value)?, width).and(&mask), length)
            }
            None => {
                let (value, mask) = masked(text, width)?;
                let length = (0..width).take_while(|i| mask.bit(width - 1 - i)).count() as u32;
                KeyValue::Lpm(value.and(&mask), length)
            }
        },
        (MatchKind::Lpm, None) => KeyValue::Lpm(bits::Bits::zero(width), 0),
        (MatchKind::Ternary, Some(text)) => {
            let (value, mask) = masked(text, width)?;
            KeyValue::Ternary(value.and(&mask), mask)
        }
        (MatchKind::Ternary, None) => KeyValue::Ternary(bits::Bits::zero(width), bits::Bits::zero(width)),
        (MatchKind::Range, Some(text)) => {
            let (low, high) = text.split_once("..").or_else(|| text.split_once("->")).unwrap_or((text, text));
            KeyValue::Range(bits::Bits::new(number(low)?, width), bits::Bits::new(number(high)?, width))
        }
        (MatchKind::Range, None) => KeyValue::Range(bits::Bits::zero(width), bits::Bits::ones(width)),
        _ => return None,
    })
}

/// A name in a test may leave out what is before its last parts.
fn names(full: &str, written: &str) -> bool {
    let plain = |name: &str| name.replace("$valid$", "isValid()").replace(['.', '_', '$', '[', ']'], "");
    let written_indices = written.contains('$') && plain(full).ends_with(&plain(written));
    full == written || full.ends_with(&format!(".{written}")) || plain(full) == plain(written) || written_indices
}

fn call(program: &ir::Program, table: &ir::Table, text: &str) -> Option<(ir::ActionId, Vec<bits::Bits>)> {
    let (name, rest) = text.split_once('(')?;
    let args: BTreeMap<&str, &str> = rest
        .trim_end()
        .strip_suffix(')')?
        .split(',')
        .filter(|arg| !arg.trim().is_empty())
        .map(|arg| arg.trim().split_once(':'))
        .collect::<Option<_>>()?;
    let action = table.actions.iter().find(|action| names(&program.actions[action.action].name, name.trim()))?;
    let params = &program.actions[action.action].params;
    let arg = |param: &ir::ActionParam| {
        Some(bits::Bits::new(number(args.get(param.name.as_str())?)?, program.slots[param.slot].width))
    };
    Some((action.action, params.iter().map(arg).collect::<Option<_>>()?))
}

fn add(switch: &mut v1model::Switch, words: &[&str], line: &str) -> Result<(), String> {
    let program = switch.program().clone();
    let found = program.tables.iter().find(|(_, table)| names(&table.name, words[1]));
    let (id, table) = found.ok_or_else(|| format!("no table {}", words[1]))?;
    let open = line.find('(').ok_or("no action")?;
    let action_start = line[..open].rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let mut keys: BTreeMap<&str, &str> = BTreeMap::new();
    let mut priority = 0;
    for word in line[..action_start].split_whitespace().skip(2) {
        match word.rsplit_once(':') {
            Some((key, value)) => {
                keys.insert(key, value);
            }
            None => priority = word.parse().map_err(|_| format!("what is {word}?"))?,
        }
    }
    let mut values = Vec::new();
    for key in table.keys.iter().filter(|key| key.kind != MatchKind::Selector) {
        let given = keys.iter().find(|(name, _)| names(&key.name, name)).map(|(_, value)| *value);
        values.push(key_value(key, given).ok_or_else(|| format!("key {}", key.name))?);
    }
    let (action, args) = call(&program, table, &line[action_start..]).ok_or("action not understood")?;
    let ranked =
        table.keys.iter().any(|key| matches!(key.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional));
    let priority = if ranked { priority + 1 } else { 0 };
    switch.objects_mut().insert(id, TableEntry::new(values, priority, action, args)).map_err(|error| error.to_string())
}

/// Multicast groups and mirror sessions, as BMv2's command line makes them.
#[derive(Default)]
struct Replication {
    /// Instance and ports of each node.
    nodes: Vec<(u16, Vec<u32>)>,
    groups: BTreeMap<u32, Vec<Replica>>,
}

impl Replication {
    fn command(&mut self, switch: &mut v1model::Switch, words: &[&str]) -> Option<()> {
        let numbers: Vec<u32> = words[1..].iter().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        match (words[0], &numbers[..]) {
            ("mc_mgrp_create", [group]) => {
                self.groups.insert(*group, Vec::new());
            }
            ("mc_node_create", [instance, ports @ ..]) => self.nodes.push((*instance as u16, ports.to_vec())),
            ("mc_node_associate", [group, node]) => {
                let (instance, ports) = self.nodes.get(*node as usize)?.clone();
                let replicas = self.groups.get_mut(group)?;
                replicas.extend(ports.into_iter().map(|port| Replica::new(port, instance)));
                let made = MulticastGroup { replicas: replicas.clone() };
                switch.set_multicast_group(*group, Some(made)).then_some(())?;
            }
            ("mirroring_add", [session, port]) => {
                let made = MirrorSession { replicas: vec![Replica::new(*port, 0)], group: None, max_bytes: None };
                switch.set_mirror_session(*session, Some(made)).then_some(())?;
            }
            ("mirroring_add_mc", [session, group]) => {
                let made = MirrorSession { replicas: Vec::new(), group: Some(*group), max_bytes: None };
                switch.set_mirror_session(*session, Some(made)).then_some(())?;
            }
            _ => return None,
        }
        Some(())
    }
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digits: String = digits.split_whitespace().collect();
    (0..digits.len() / 2).map(|i| u8::from_str_radix(digits.get(2 * i..2 * i + 2)?, 16).ok()).collect()
}

fn agrees(expected: &str, got: &[u8]) -> bool {
    let expected: String = expected.split_whitespace().collect();
    let (expected, exact) = match expected.strip_suffix('$') {
        Some(rest) => (rest.to_owned(), true),
        None => (expected, false),
    };
    let got: String = got.iter().map(|byte| format!("{byte:02x}")).collect();
    if got.len() < expected.len() || exact && got.len() != expected.len() {
        return false;
    }
    expected.to_lowercase().chars().zip(got.chars()).all(|(want, got)| want == '*' || want == got)
}

fn run(program: ir::Program, stf: &str) -> Outcome {
    let config = v1model::Config::with_ports(500);
    let mut switch = match v1model::Switch::new(Arc::new(program), config) {
        Ok(switch) => switch,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let mut sent: BTreeMap<u32, VecDeque<Vec<u8>>> = BTreeMap::new();
    let mut wanted: Vec<(u32, String)> = Vec::new();
    let mut replication = Replication::default();
    let mut now = 1_000;
    for line in stf.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(first) = words.first() else { continue };
        match *first {
            "packet" => {
                let (Some(port), Some(data)) =
                    (words.get(1).and_then(|port| port.parse().ok()), bytes(&words[2..].concat()))
                else {
                    return Outcome::Skipped(line.to_owned());
                };
                now += 1_000_000;
                let mut out = Vec::new();
                switch.step(Time::from_ns(now), &mut vec![Frame::new(port, data)], &mut out);
                for _ in 0..4 {
                    now += 1_000_000;
                    switch.step(Time::from_ns(now), &mut Vec::new(), &mut out);
                }
                for frame in out {
                    sent.entry(frame.port.0).or_default().push_back(frame.data);
                }
            }
            "expect" => match words.get(1).and_then(|port| port.parse().ok()) {
                Some(port) => wanted.push((port, words[2..].concat())),
                None => return Outcome::Skipped(line.to_owned()),
            },
            "add" if words.len() > 2 => {
                if let Err(error) = add(&mut switch, &words, line) {
                    return Outcome::Skipped(format!("{line}: {error}"));
                }
            }
            "setdefault" => {
                let program = switch.program().clone();
                let found = program.tables.iter().find(|(_, table)| names(&table.name, words[1]));
                let called = found.and_then(|(id, table)| Some((id, call(&program, table, &words[2..].concat())?)));
                let Some((id, (action, args))) = called else { return Outcome::Skipped(line.to_owned()) };
                if switch.objects_mut().set_default_action(id, ActionCall { action, args }).is_err() {
                    return Outcome::Skipped(line.to_owned());
                }
            }
            "wait" | "mirroring_get" | "meter_get_rates" => {}
            _ => {
                if replication.command(&mut switch, &words).is_none() {
                    return Outcome::Skipped(line.to_owned());
                }
            }
        }
    }
    let mut wrong = String::new();
    for (port, data) in wanted {
        match sent.entry(port).or_default().pop_front() {
            Some(got) if agrees(&data, &got) => {}
            Some(got) => {
                let got: String = got.iter().map(|byte| format!("{byte:02x}")).collect();
                let _ = writeln!(wrong, "port {port}: wanted {data}\n             got {got}");
            }
            None => {
                let _ = writeln!(wrong, "port {port}: wanted {data}, nothing came");
            }
        }
    }
    for (port, frames) in sent.iter().filter(|(_, frames)| !frames.is_empty()) {
        let _ = writeln!(wrong, "port {port}: {} unexpected packets", frames.len());
    }
    if wrong.is_empty() { Outcome::Passed } else { Outcome::Failed(wrong) }
}

#[test]
fn packets_fare_as_the_packet_tests_say() {
    let Some(dirs) = std::env::var_os("TRIPLANE_P4_CORPUS") else {
        eprintln!("skipped: TRIPLANE_P4_CORPUS is not set");
        return;
    };
    let (mut passed, mut skipped, mut failed) = (0, 0, 0);
    let mut report = String::new();
    for dir in std::env::split_paths(&dirs) {
        let mut paths: Vec<_> = fs::read_dir(&dir).unwrap().flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths.iter().filter(|path| path.extension().is_some_and(|ext| ext == "stf")) {
            let source = path.with_extension("p4");
            let Ok(text) = fs::read(&source) else { continue };
            let text = String::from_utf8_lossy(&text).into_owned();
            let folder = source.parent().unwrap_or(Path::new("")).to_path_buf();
            if !text.contains("V1Switch") && !text.contains("skeleton") {
                continue;
            }
            let compiled = pipeline::compile(&source.display().to_string(), &text, &[&folder]);
            let stf = fs::read_to_string(path).unwrap_or_default();
            let outcome = match compiled.program {
                Some(program) => run(program, &stf),
                None => Outcome::Skipped(format!("{}: {}", compiled.stage, compiled.findings)),
            };
            match outcome {
                Outcome::Passed => passed += 1,
                Outcome::Skipped(why) => {
                    skipped += 1;
                    let _ = writeln!(report, "=== skipped {}\n{why}", path.display());
                }
                Outcome::Failed(why) => {
                    failed += 1;
                    let _ = writeln!(report, "=== failed {}\n{why}", path.display());
                }
            }
        }
    }
    eprintln!("passed {passed}, failed {failed}, skipped {skipped}");
    if let Some(to) = std::env::var_os("TRIPLANE_STF_REPORT") {
        fs::write(to, report).unwrap();
    }
    assert_eq!(failed, 0, "{failed} packet tests fail");
}
