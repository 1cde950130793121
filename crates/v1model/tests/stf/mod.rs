//! The simple test format of p4c (STF): packets in, packets expected, entries, groups and sessions in a line each.
//! Written against its files; commands that only read are skipped.

use std::collections::{BTreeMap, HashMap};

use bits::Bits;
use engine::TableEntry;
use ir::{ActionId, Key, KeyValue, MatchKind, Program, TableId};
use num_bigint::BigUint;
use switch::{Device, Frame, MirrorSession, MulticastGroup, Replica, Time};
use v1model::Switch;

/// A script that runs.
pub struct Stf {
    switch: Switch,
    traced: bool,
    now: Time,
    /// Multicast nodes by handle: replica id and ports.
    nodes: Vec<(u16, Vec<u32>)>,
    groups: BTreeMap<u32, Vec<usize>>,
    received: HashMap<u32, Vec<Vec<u8>>>,
    expected: HashMap<u32, Vec<Option<String>>>,
    order: i32,
}

impl Stf {
    /// A script for this switch; `traced` if each packet is to be traced, which must not make a difference.
    pub fn new(switch: Switch, traced: bool) -> Stf {
        Stf {
            switch,
            traced,
            now: Time::ZERO,
            nodes: Vec::new(),
            groups: BTreeMap::new(),
            received: HashMap::new(),
            expected: HashMap::new(),
            order: 0,
        }
    }

    /// Runs a script and compares what left with what it expects.
    pub fn run(&mut self, text: &str) -> Result<(), String> {
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                self.command(line).map_err(|error| format!("line {}: {error}", number + 1))?;
            }
        }
        self.compare()
    }

    fn command(&mut self, line: &str) -> Result<(), String> {
        let (verb, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let numbers: Vec<u32> = rest.split_whitespace().map_while(|word| word.parse().ok()).collect();
        match verb {
            "packet" => {
                let (port, data) = port_and_data(rest)?;
                let data = unhex(&data).ok_or("not hexadecimal")?;
                self.now = self.now.after_ns(1_000_000);
                let mut output = Vec::new();
                let frame = Frame::new(port, data);
                if self.traced {
                    let trace = self.switch.trace(self.now, frame, &mut output);
                    if trace.render().is_empty() || !trace.to_json().is_object() {
                        return Err("nothing was traced".into());
                    }
                } else {
                    self.switch.step(self.now, &mut vec![frame], &mut output);
                }
                for frame in output {
                    self.received.entry(frame.port.0).or_default().push(frame.data);
                }
            }
            "expect" => {
                let (port, data) = port_and_data(rest)?;
                let data = (!data.is_empty()).then_some(data);
                self.expected.entry(port).or_default().push(data);
            }
            "add" => self.add(rest)?,
            "setdefault" => {
                let (table, rest) = rest.split_once(char::is_whitespace).ok_or("no action")?;
                let table = self.table(table)?;
                let (action, args) = self.action(table, rest)?;
                let call = engine::ActionCall { action, args };
                self.switch.objects_mut().set_default_action(table, call).map_err(|error| error.to_string())?;
            }
            "mc_mgrp_create" => {
                self.groups.insert(*numbers.first().ok_or("no group")?, Vec::new());
            }
            "mc_node_create" => {
                let (rid, ports) = numbers.split_first().ok_or("no node")?;
                self.nodes.push((*rid as u16, ports.to_vec()));
            }
            "mc_node_associate" => {
                let [group, node] = numbers[..] else { return Err("no group and node".into()) };
                self.groups.entry(group).or_default().push(node as usize);
                let nodes = self.groups[&group].iter().filter_map(|node| self.nodes.get(*node));
                let replicas = nodes.flat_map(|(rid, ports)| ports.iter().map(|port| Replica::new(*port, *rid)));
                let replicas = replicas.collect();
                self.switch.set_multicast_group(group, Some(MulticastGroup { replicas }));
            }
            "mirroring_add" => {
                let [session, port] = numbers[..] else { return Err("no session and port".into()) };
                self.switch.set_mirror_session(session, Some(MirrorSession::to_port(port)));
            }
            "mirroring_add_mc" => {
                let [session, group] = numbers[..] else { return Err("no session and group".into()) };
                self.switch.set_mirror_session(session, Some(MirrorSession::to_group(group)));
            }
            "register_write" => {
                let words: Vec<&str> = rest.split_whitespace().collect();
                let [name, index, value] = words[..] else { return Err("no register, index, value".into()) };
                let register =
                    self.switch.program().registers.iter().find(|(_, register)| register.name.ends_with(name));
                let (id, width) = register.map(|(id, register)| (id, register.width)).ok_or("no such register")?;
                let (index, value) = (index.parse().map_err(|_| "index")?, value.parse().map_err(|_| "value")?);
                let written = self.switch.objects_mut().set_register(id, index, Bits::new(value, width));
                written.map_err(|error| error.to_string())?;
            }
            "register_reset" => {
                let register =
                    self.switch.program().registers.iter().find(|(_, register)| register.name.ends_with(rest));
                let (id, width) = register.map(|(id, register)| (id, register.width)).ok_or("no such register")?;
                let written = self.switch.objects_mut().fill_register(id, Bits::zero(width));
                written.map_err(|error| error.to_string())?;
            }
            "wait" => self.now = self.now.after_ns(1_000_000_000),
            "register_read" | "mirroring_get" | "meter_get_rates" | "counter_read" => {}
            other => return Err(format!("`{other}` is not supported")),
        }
        Ok(())
    }

    /// `add TABLE [PRIORITY] KEY:VALUE ... ACTION(ARG:VALUE, ...)`
    fn add(&mut self, rest: &str) -> Result<(), String> {
        let (head, action) = match rest.find('(') {
            Some(bracket) => {
                let start = rest[..bracket].trim_end().rfind(char::is_whitespace).ok_or("no action")?;
                rest.split_at(start)
            }
            None => return Err("no action".into()),
        };
        let mut words = head.split_whitespace().peekable();
        let table = self.table(words.next().ok_or("no table")?)?;
        let priority = words.next_if(|word| !word.contains(':')).and_then(|word| word.parse::<i32>().ok());
        let given: Vec<(&str, &str)> = words.filter_map(|word| word.split_once(':')).collect();
        let (action, args) = self.action(table, action.trim())?;
        let keys = &self.switch.program().tables[table].keys;
        let keys: Vec<&Key> = keys.iter().filter(|key| key.kind != MatchKind::Selector).collect();
        let mut values = vec![None; keys.len()];
        for (name, value) in given {
            let at = keys.iter().position(|key| is_name(&key.name, name)).ok_or(format!("no key `{name}`"))?;
            values[at] = Some(key_value(keys[at], value).ok_or(format!("no value `{value}`"))?);
        }
        let missing = |(value, key): (Option<KeyValue>, &&Key)| match (value, key.kind) {
            (Some(value), _) => value,
            (None, MatchKind::Exact) => KeyValue::Exact(Bits::zero(key.width)),
            (None, _) => KeyValue::Any,
        };
        let values: Vec<KeyValue> = values.into_iter().zip(&keys).map(missing).collect();
        let ordered = keys.iter().any(|key| !matches!(key.kind, MatchKind::Exact | MatchKind::Lpm));
        self.order += 1;
        // The largest priority wins; of equal ones the first.
        let priority = if ordered { (priority.unwrap_or(0) + 1) * 10_000 - self.order } else { 0 };
        let entry = TableEntry::new(values, priority, action, args);
        self.switch.objects_mut().insert(table, entry).map_err(|error| error.to_string())
    }

    fn table(&self, name: &str) -> Result<TableId, String> {
        let program = self.switch.program();
        let mut tables = program.tables.iter().filter(|(_, table)| is_name(&table.name, name));
        tables.next().map(|(id, _)| id).ok_or(format!("no table `{name}`"))
    }

    fn action(&self, table: TableId, text: &str) -> Result<(ActionId, Vec<Bits>), String> {
        let program: &Program = self.switch.program();
        let (name, args) = text.split_once('(').ok_or("no arguments")?;
        let args = args.split_once(')').ok_or("no closing bracket")?.0;
        let actions = program.tables[table].actions.iter().map(|action| action.action);
        let action = actions.into_iter().find(|id| is_name(&program.actions[*id].name, name.trim()));
        let action = action.ok_or(format!("no action `{name}`"))?;
        let mut values = Vec::new();
        for param in &program.actions[action].params {
            let given = args.split(',').filter_map(|arg| arg.split_once(':'));
            let value = given.into_iter().find(|(name, _)| name.trim() == param.name).map(|(_, value)| value.trim());
            let width = program.slots[param.slot].width;
            let value = value.and_then(number).ok_or(format!("no argument `{}`", param.name))?;
            values.push(Bits::from_big(&value, width));
        }
        Ok((action, values))
    }

    fn compare(&mut self) -> Result<(), String> {
        let mut ports: Vec<u32> = self.expected.keys().chain(self.received.keys()).copied().collect();
        ports.sort_unstable();
        ports.dedup();
        for port in ports {
            let expected = self.expected.remove(&port).unwrap_or_default();
            let received = self.received.remove(&port).unwrap_or_default();
            if expected.contains(&None) {
                continue;
            }
            if expected.len() != received.len() {
                return Err(format!("port {port}: {} packets expected, {} left", expected.len(), received.len()));
            }
            for (at, (expected, received)) in expected.iter().flatten().zip(&received).enumerate() {
                if !fits(expected, received) {
                    return Err(format!(
                        "port {port}, packet {at}:\n  expected {expected}\n  got      {}",
                        hex(received)
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Whether a control-plane name is meant by a name of the format, which may leave out what is in front.
fn is_name(full: &str, given: &str) -> bool {
    let plain = |name: &str| name.replace('$', "").replace(['[', ']'], "").replace("isValid()", "valid");
    let (full, given) = (plain(full), plain(given));
    full == given || full.ends_with(&format!(".{given}")) || full.replace('.', "_") == given.replace('.', "_")
}

fn port_and_data(rest: &str) -> Result<(u32, String), String> {
    let (port, data) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let port = port.parse().map_err(|_| format!("`{port}` is no port"))?;
    Ok((port, data.split_whitespace().collect::<String>().to_lowercase()))
}

/// `*` fits any digit; behind `$` nothing may come, else anything may.
fn fits(expected: &str, received: &[u8]) -> bool {
    let got = hex(received);
    let (expected, exact) = match expected.strip_suffix('$') {
        Some(expected) => (expected, true),
        None => (expected, false),
    };
    let digits = expected.chars().zip(got.chars()).all(|(expected, got)| expected == '*' || expected == got);
    digits && expected.len() <= got.len() && (!exact || expected.len() == got.len())
}

/// A number in any of the format's bases.
fn number(text: &str) -> Option<BigUint> {
    let (digits, base) = match text.get(..2) {
        Some("0x") => (&text[2..], 16),
        Some("0b") => (&text[2..], 2),
        Some("0o") => (&text[2..], 8),
        _ => (text, 10),
    };
    BigUint::parse_bytes(digits.as_bytes(), base)
}

/// A key's value: `value`, `value/prefix`, `value&&&mask`, digits with `*`.
fn key_value(key: &Key, text: &str) -> Option<KeyValue> {
    let bits = |value: BigUint| Bits::from_big(&value, key.width);
    let masked = |value: &str, mask: &str| {
        let (value, mask) = (bits(number(value)?), bits(number(mask)?));
        Some((value.and(&mask), mask))
    };
    if let Some((value, len)) = text.split_once('/') {
        let len: u32 = len.parse().ok().filter(|len| *len <= key.width)?;
        let mask = Bits::ones(key.width).shl(key.width - len);
        return Some(KeyValue::Lpm(bits(number(value)?).and(&mask), len));
    }
    let (value, mask) = match text.split_once("&&&") {
        Some((value, mask)) => masked(value, mask)?,
        None if text.contains('*') => {
            let (one, base) = if text.starts_with("0b") { ('1', "0b") } else { ('f', "0x") };
            let digits = text.get(2..)?;
            let mask: String = digits.chars().map(|c| if c == '*' { '0' } else { one }).collect();
            masked(&format!("{base}{}", digits.replace('*', "0")), &format!("{base}{mask}"))?
        }
        None => (bits(number(text)?), Bits::ones(key.width)),
    };
    Some(match key.kind {
        MatchKind::Ternary => KeyValue::Ternary(value, mask),
        MatchKind::Lpm => {
            let len = (0..key.width).filter(|bit| mask.bit(*bit)).count() as u32;
            KeyValue::Lpm(value, len)
        }
        MatchKind::Range => KeyValue::Range(value.clone(), value),
        _ => KeyValue::Exact(value),
    })
}

fn hex(data: &[u8]) -> String {
    data.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(pair).collect()
}
