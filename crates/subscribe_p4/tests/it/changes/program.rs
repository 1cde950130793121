//! Model of a generated program's tables, with random rules and messages.

use std::collections::BTreeMap;
use std::path::Path;

use diagnostics::{Diagnostics, FileId, SourceMap};
use rng::SplitMix64;
use subscribe::{ColumnLayout, Match, Message, NoIncludes, Rule, StageKey, TargetCapabilities, ValueKind, Wide};
use subscribe_p4::format::HeaderId;
use subscribe_p4::possible::Values;
use subscribe_p4::{ProgramFormat, RuleFormat};

use crate::changes::target::{ModelSwitch, Outcome};
use crate::support::checked::checked;

pub const REPORTS: &str = "testdata/reports.p4";
/// With counters and aggregates.
pub const METER: &str = "testdata/meter.p4";
/// The same format without aggregates of its own.
pub const METER_ANY: &str = "meter.p4, aggregates by rules";
/// With codes for values.
pub const CODED: &str = "testdata/coded.p4";
pub const FEED: &str = "../../examples/market-data/feed.p4";
pub const CPU_PORT: u32 = 510;

pub struct TestProgram {
    pub format: ProgramFormat,
    pub rules: RuleFormat,
}

/// Values of rules and messages; they are few, so that all combinations occur.
const VALUES: u64 = 12;

/// Aggregates of the meter's fields that its format does not declare.
const LINKED: [&str; 5] = [
    "avg(value) by unit",
    "max(weight) over 9 packets",
    "count(weight) by site, unit over 2ms",
    "ewma(large) over 8 packets",
    "min(value) by site over previous 9ms",
];

impl TestProgram {
    pub fn read(path: &str) -> TestProgram {
        let read = |path: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path));
        if path != METER_ANY {
            return TestProgram::of(&read(path).expect("the format"));
        }
        let text = read(METER).expect("the format");
        let others: Vec<&str> = text.lines().filter(|line| !line.starts_with("@query_aggregate")).collect();
        let any = "@query_aggregate(\"any\", 64, 3)\n@query_counter(total)";
        TestProgram::of(&others.join("\n").replace("@query_counter(total)", any))
    }

    fn of(text: &str) -> TestProgram {
        let (typed, map) = checked("format.p4", text);
        let mut diagnostics = Diagnostics::new();
        let format = subscribe_p4::read(&typed, FileId(0), &map, &mut diagnostics).expect("the format is right");
        let rules = subscribe_p4::rule_format(&format).expect("the format is right");
        TestProgram { format, rules }
    }

    pub fn has_codes(&self) -> bool {
        self.format.fields.iter().any(|field| field.codes.is_some())
    }

    pub fn parse(&self, text: &str) -> Vec<Rule> {
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let rules = subscribe::parse(&mut map, "rules", text, &self.rules.format, &mut NoIncludes, &mut diagnostics);
        assert!(!diagnostics.has_errors(), "{}", diagnostics.render(&map, false));
        rules
    }

    /// Returns a test of a counter or an aggregate.
    fn random_memory(&self, rng: &mut SplitMix64) -> String {
        let format = &self.rules.format;
        let computed = rng.below(format.computed().len() as u64 + 1) as usize;
        let subject = match format.computed().get(computed) {
            Some(computed) => match &computed.aggregate {
                Some(aggregate) => aggregate.shown(format).to_string(),
                None => LINKED[rng.below(LINKED.len() as u64) as usize].to_owned(),
            },
            None => format.counters()[0].name.clone(),
        };
        format!("{subject} {} {}", if rng.percent(50) { "<" } else { ">=" }, rng.below(VALUES))
    }

    fn random_test(&self, rng: &mut SplitMix64) -> String {
        if !self.format.aggregates.is_empty() && rng.percent(40) {
            return self.random_memory(rng);
        }
        let fields = self.rules.format.fields();
        let field = &fields[rng.below(fields.len() as u64) as usize];
        let name = field.name.rsplit_once('.').map_or(&*field.name, |(_, name)| name);
        let one = |rng: &mut SplitMix64, list: &[&'static str]| list[rng.below(list.len() as u64) as usize];
        if rng.percent(10) {
            let headers = &self.format.headers;
            let known = &headers.iter().filter(|header| self.rules.format.header_named(&header.name).is_ok());
            let names: Vec<&str> = known.clone().map(|header| header.name.as_str()).collect();
            return format!("valid({})", names[rng.below(names.len() as u64) as usize]);
        }
        match (field.kind, field.matching) {
            (ValueKind::Text(_), _) => {
                format!("{name} {} \"{}\"", one(rng, &["==", "!="]), one(rng, &["A", "B", "C"]))
            }
            (_, Match::Lpm) => {
                let length = 28 + rng.below(4) as u32;
                let value = rng.below(VALUES) >> (32 - length) << (32 - length);
                format!("{name} {} 0.0.0.{value}/{length}", one(rng, &["in", "not in"]))
            }
            (_, Match::Exact) => format!("{name} {} {}", one(rng, &["==", "!="]), rng.below(VALUES)),
            _ if rng.percent(30) => {
                let first = rng.below(VALUES);
                format!("{name} in {first}..{}", first + rng.below(4))
            }
            _ => format!("{name} {} {}", one(rng, &["<", "<=", ">", ">=", "==", "!="]), rng.below(VALUES)),
        }
    }

    pub fn random_rule(&self, rng: &mut SplitMix64) -> String {
        let mut condition = self.random_test(rng);
        for _ in 0..rng.below(3) {
            let word = if rng.percent(70) { "and" } else { "or" };
            let not = if rng.percent(15) { "not " } else { "" };
            condition = format!("({condition}) {word} {not}({})", self.random_test(rng));
        }
        // Some rules match all messages, so that no table of a field is looked up.
        if rng.percent(4) {
            condition = "true".to_owned();
        }
        let action = match rng.below(8) {
            0 | 1 if !self.format.counters.is_empty() => format!("total += 1; fwd({})", rng.below(4)),
            0 => "to_controller".to_owned(),
            1 => format!("fwd({}); to_controller", rng.below(4)),
            2 if !self.format.actions.is_empty() && condition != "true" => "mark(7)".to_owned(),
            3 => format!("fwd({}, {})", rng.below(4), rng.below(4)),
            _ => format!("fwd({})", rng.below(4)),
        };
        format!("{condition} : {action}")
    }

    /// Returns a random message with one header.
    pub fn random_message(&self, rng: &mut SplitMix64) -> Message {
        let there = rng.below(self.format.headers.len() as u64) as usize;
        self.message(rng, &|header| header == there)
    }

    /// Returns a message as the parser finds it in packets.
    pub fn possible_message(&self, rng: &mut SplitMix64) -> Message {
        let possible = &self.format.possible;
        let packets = possible.packets.as_ref().expect("the parser is understood");
        let given = &packets[rng.below(packets.len() as u64) as usize];
        let kinds: Vec<(&HeaderId, &Values)> = possible.messages.iter().flatten().collect();
        let kind = (!kinds.is_empty()).then(|| kinds[rng.below(kinds.len() as u64) as usize]);
        let is_kind = |header: usize| kind.is_some_and(|(kind, _)| kind.0 == header);
        let mut message =
            self.message(rng, &|header| is_kind(header) || given.valid.get(&HeaderId(header)) == Some(&true));
        for (field, value) in self.format.fields.iter().zip(&mut message.fields) {
            for source in &field.sources {
                let of_kind = kind.filter(|_| is_kind(source.header.0)).map(|(_, values)| values);
                let values = of_kind.or(given.values.get(&source.header)).and_then(|of| of.get(&source.member));
                if let Some(values) = values.filter(|values| !values.contains(*value)) {
                    let (first, last) = values.list()[rng.below(values.list().len() as u64) as usize];
                    *value = first + u128::from(rng.below(8)).min(last - first);
                }
            }
        }
        message
    }

    fn message(&self, rng: &mut SplitMix64, is_there: &dyn Fn(usize) -> bool) -> Message {
        let format = &self.rules.format;
        let mut message = Message::empty(format);
        // A combined header is valid if one of its headers is.
        for (valid, of) in message.valid.iter_mut().zip(&self.rules.headers) {
            *valid = of.iter().any(|header| is_there(header.0));
        }
        let valid = message.valid.clone();
        for (field, value) in format.fields().iter().zip(&mut message.fields) {
            if field.header.is_none_or(|header| valid[usize::from(header.0)]) {
                *value = match field.kind {
                    ValueKind::Text(_) => {
                        let letter = b"ABCD"[rng.below(4) as usize];
                        let text = std::iter::once(letter).chain(std::iter::repeat(b' '));
                        text.take(field.width as usize / 8).fold(0, |value, byte| value << 8 | u128::from(byte))
                    }
                    _ => u128::from(rng.below(VALUES + 2)),
                };
            }
        }
        for value in &mut message.counters {
            *value = u128::from(rng.below(VALUES + 2));
        }
        for value in &mut message.slots {
            *value = Some(rng.below(VALUES + 2).into());
        }
        message
    }

    /// Returns the delivery of a message by the program's tables. `at` returns the switch in which a table is looked
    /// up.
    pub fn run<'a>(
        &self,
        target: TargetCapabilities,
        message: &Message,
        at: &mut dyn FnMut(String) -> &'a ModelSwitch,
    ) -> Outcome {
        let format = &self.rules.format;
        let layout = ColumnLayout::sensible(format, &[]);
        let (mut state, mut carried) = (0, None);
        let mut look = |table: String, mut values: BTreeMap<String, u128>, state: u128| {
            values.insert("state".to_owned(), state);
            let switch = at(table.clone());
            switch.look_up(&table, &values).map(|entry| (entry.action.clone(), entry.params.clone(), switch))
        };
        for (number, stage) in subscribe::stages(format, &layout, &target).iter().enumerate() {
            let found = match &stage.column {
                StageKey::Validity => {
                    let name = |of: &Vec<HeaderId>| {
                        let names: Vec<&str> = of.iter().map(|id| self.format.headers[id.0].name.as_str()).collect();
                        format!("{}_valid", names.join("_or_"))
                    };
                    let named = self.rules.headers.iter().map(name);
                    let values = named.zip(message.valid.iter().map(|valid| u128::from(*valid))).collect();
                    look("validity".to_owned(), values, state)
                }
                StageKey::Column(key) => {
                    let name = key.name(format);
                    let parts = name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                    let name = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("_");
                    let kind = |wide| match wide {
                        Wide::Range => "range",
                        Wide::Lpm => "lpm",
                        Wide::Ternary => "ternary",
                    };
                    let wide = stage.wide.map(kind);
                    let mut value = BTreeMap::from([("value".to_owned(), message.column(format, *key))]);
                    if stage.codes.is_some() {
                        let table = match stage.code_table {
                            Wide::Range => format!("{name}_codes"),
                            wide => format!("{name}_codes_{}", kind(wide)),
                        };
                        let code = look(table, value.clone(), state);
                        value.insert("value".to_owned(), code.map_or(0, |(_, params, _)| params[0].2));
                    }
                    let parts = [stage.exact.then_some("exact"), wide, Some("rest")];
                    parts
                        .into_iter()
                        .flatten()
                        .find_map(|part| look(format!("{name}_{part}_{number}"), value.clone(), state))
                }
            };
            let Some((action, params, _)) = found else { continue };
            match action.as_str() {
                "Subscriptions.to_state" => state = params[0].2,
                _ => carried = Some((action, params)),
            }
        }
        let mut outcome = Outcome::default();
        let leaf = look("leaf".to_owned(), BTreeMap::new(), state).map(|(action, params, _)| (action, params));
        assert!(carried.is_none() || leaf.is_none(), "where a message goes is said once");
        let leaf = carried.or(leaf);
        let mut asked = |table: String| {
            look(table, BTreeMap::new(), state)
                .map(|(_, params, _)| params.iter().map(|(_, _, value)| *value).collect())
        };
        if !self.format.aggregates.is_empty() {
            outcome.counts = asked("counts".to_owned());
        }
        outcome.updates = self.format.counters.iter().map(|one| asked(format!("update_{}", one.name))).collect();
        if let Some((action, params)) = leaf {
            outcome.ports = match action.as_str() {
                "Subscriptions.to_port" => vec![params[0].2 as u32],
                _ => at("group".to_owned()).groups[&(params[0].2 as u32)].clone(),
            };
            outcome.ports.sort_unstable();
        }
        for action in &self.format.actions {
            let mut values = BTreeMap::new();
            values.insert("state".to_owned(), state);
            let table = format!("do_{}", action.name);
            if let Some(entry) = at(table.clone()).look_up(&table, &values) {
                outcome.calls.push(entry.params.iter().map(|(_, _, value)| *value).collect());
            }
        }
        outcome
    }
}
