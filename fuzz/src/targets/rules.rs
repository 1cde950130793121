//! Rule files of packet subscriptions: either findings, or rules that print and read back the same, and whose tables do
//! what the rules say; also for a program that computes certain aggregates and no others.

use diagnostics::{Diagnostics, SourceMap};
use subscribe::{
    ActionDeclaration, ColumnLayout, CompileOptions, ComputedAggregate, Condition, Counter, Difference,
    FieldDeclaration, Limits, MAX_LINKED_KEY_FIELDS, Match, Memory, Message, MessageFormat, NoIncludes, Padding,
    Parameter, Rule, Subscriptions, TargetCapabilities as Tables, ValueKind, Wide, Window,
};

use super::{FuzzTarget, Reached};
use crate::random::Random;
use crate::worker;

/// Every sort of rule once.
const SEEDS: &str = r#"stock == "GOOGL" and price > 50 : fwd(1, 2); to_controller
rule large: shares >= 10_000 or not (stock in {AAPL, "MSFT", ""}) : fwd(3)
(stock != GOOGL) ∧ avg(price by stock over 100ms) > 60 && seen < 7 : seen <- seen + 1; answer(3, 0x10)
dst == 10.0.0.0/8 || src in {10.0.0.1, 192.168.0.0/16, 10.9.0.0..10.9.1.3} : drop
six ∈ fe80::/10 and mac == 00:11:22:33:44:55 : seen <- max(seen, shares); fwd(7)
valid(order) and !ipv4.isValid() and count() over 50 packets <= 9 : to_controller() 50 < price : fwd(0)
true : drop  // all
/* none */ false : seen -= price
stock in {A, "B"} and avg(price) by stock < 5 and shares > 3 : fwd(1)
sum(shares) by src, stock > 10 and src == 10.0.0.1 and stock == A : seen += price
min(price over 1s) != 7 or count() == 50 : fwd(2)
count(stock by src over 7 packets)
"#;

/// Rule files.
pub struct Rules {
    format: MessageFormat,
    /// The same format, of a program that computes some aggregates.
    computing: MessageFormat,
    inputs: Vec<Vec<u8>>,
}

/// Fields of every kind.
fn format() -> MessageFormat {
    let mut format = MessageFormat::new();
    let order = format.header("order").ok();
    let ipv4 = format.header("ipv4").ok();
    let mut field = |name: &str, width, kind, matching, header| {
        let field = FieldDeclaration { name: name.to_owned(), width, kind, matching, header };
        format.field(field).expect("a new field of a right width");
    };
    field("order.stock", 64, ValueKind::Text(Padding::SPACES), Match::Exact, order);
    field("order.price", 32, ValueKind::Unsigned, Match::Range, order);
    field("order.shares", 32, ValueKind::Unsigned, Match::Any, order);
    field("ipv4.dst", 32, ValueKind::Ipv4, Match::Lpm, ipv4);
    field("ipv4.src", 32, ValueKind::Ipv4, Match::Any, ipv4);
    field("six", 128, ValueKind::Ipv6, Match::Any, None);
    field("mac", 48, ValueKind::Mac, Match::Any, None);
    let window = Some(Window::Micros(100));
    format.counter(Counter { name: "seen".to_owned(), width: 32, window }).expect("a new counter");
    let parameters = ["class", "weight"].map(|name| Parameter { name: name.to_owned(), width: 8 }).into();
    format.action(ActionDeclaration { name: "answer".to_owned(), parameters }).expect("a new action");
    format
}

/// Aggregates that the program computes, each with its numbers of slots and of keys.
const COMPUTED: [(&str, u16, u32); 4] = [
    ("avg(price) by stock over 100ms", 2, 3),
    ("count() over 50 packets", 1, 1),
    ("sum(shares) by src, stock over 5 s", 1, 2),
    ("min(price over 1s)", 1, 1),
];

fn computing() -> MessageFormat {
    let mut format = format();
    for (text, slots, keys) in COMPUTED {
        let aggregate = subscribe::aggregate(&mut SourceMap::new(), text, &format, &mut Diagnostics::new());
        assert!(aggregate.is_some(), "{text}");
        format.compute(ComputedAggregate { aggregate, slots, keys });
    }
    // Two linked slots.
    for keys in [1, 5] {
        format.compute(ComputedAggregate { aggregate: None, slots: 1, keys });
    }
    format
}

impl Rules {
    pub fn new() -> Rules {
        let lines = SEEDS.lines().map(|line| line.as_bytes().to_vec());
        Rules { format: format(), computing: computing(), inputs: lines.chain([SEEDS.as_bytes().to_vec()]).collect() }
    }

    fn parse(&self, text: &str, map: &mut SourceMap, diagnostics: &mut Diagnostics) -> Vec<Rule> {
        subscribe::parse(map, "fuzz.rules", text, &self.format, &mut NoIncludes, diagnostics)
    }

    /// Asserts that a printed rule reads back as a rule that prints the same.
    fn reads_back(&self, rule: &Rule) {
        let text = rule.shown(&self.format).to_string();
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let again = self.parse(&text, &mut map, &mut diagnostics);
        assert!(diagnostics.is_empty(), "a printed rule does not read back:\n{}", diagnostics.render(&map, false));
        let again: Vec<String> = again.iter().map(|rule| rule.shown(&self.format).to_string()).collect();
        assert_eq!(again, [text], "a printed rule reads back as another");
    }

    /// Compiles the rules for two targets, one step at a time and all at once; the tables do what the rules say.
    fn compile(&self, rules: &[Rule], random: &mut Random, reached: &mut Reached) {
        let limits = Limits { nodes: 20_000, bytes: 64 << 20, steps: 2_000_000, ..Limits::default() };
        let layout = ColumnLayout::sensible(&self.format, rules);
        let ranges = CompileOptions { limits, ..CompileOptions::default() };
        let prefixes =
            CompileOptions { target: Tables { wide: Wide::Ternary, has_ranges: false, ..ranges.target }, ..ranges };
        let mut one = Subscriptions::new(self.format.clone(), layout.clone(), ranges);
        let refused = one.change(&[], rules.to_vec()).err();
        reached.add(refused.as_ref().map(std::mem::discriminant));
        if let Some(refused) = refused {
            assert!(!refused.diagnostic(&SourceMap::new()).message.is_empty());
            return;
        }
        let stats = one.stats();
        reached.add(((stats.nodes + 1).ilog2(), stats.groups.min(3), stats.leaves.min(8)));
        reached.add(stats.stages.iter().map(|stage| stage.exact.min(1) + stage.wide.min(1) * 2).collect::<Vec<_>>());
        let useless = (
            one.lint_never_matches(&Condition::Always).len().min(4),
            one.lint_covered(&Condition::Always).found.len().min(4),
        );
        reached.add((useless, one.dot(500).is_some()));
        let tables = one.tables();
        for _ in 0..20 {
            let message = self.message(rules, random);
            let expected = one.evaluate(&message);
            assert_eq!(one.evaluate_diagram(&message), expected, "the diagram differs: {message:?}");
            let mut found = tables.run(&self.format, &layout, &message);
            found.group = None;
            assert_eq!(found, expected, "the tables differ: {message:?}");
            one.explain(&message, 3);
        }
        let mut other = Subscriptions::new(self.format.clone(), layout.clone(), prefixes);
        for rule in rules {
            if other.change(&[], vec![rule.clone()]).is_err() {
                return;
            }
        }
        let same = subscribe::difference(&tables, &other.tables(), &self.format, &layout, &Condition::Always, limits);
        let none: Option<Difference> = None;
        assert!(same.is_err() || same == Ok(none), "ranges and prefixes differ: {same:?}");
    }

    /// The rules over time, each added by itself, where certain aggregates are computed.
    fn remember(&self, text: &str, random: &mut Random, reached: &mut Reached) {
        let format = &self.computing;
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let rules = subscribe::parse(&mut map, "fuzz.rules", text, format, &mut NoIncludes, &mut diagnostics);
        reached.findings(&map, &diagnostics);
        let limits = Limits { nodes: 20_000, bytes: 64 << 20, steps: 2_000_000, ..Limits::default() };
        let target = Tables { one_update: true, ..Tables::default() };
        let options = CompileOptions { limits, target, ..CompileOptions::default() };
        let mut all = Subscriptions::new(format.clone(), ColumnLayout::sensible(format, &[]), options);
        let (mut memory, mut ids) = (Memory::new(format), Vec::new());
        for rule in rules.iter().take(30) {
            let before = all.tables();
            match all.change(&[], vec![rule.clone()]) {
                Ok(applied) => {
                    memory.assign(&applied.slots);
                    ids.extend(applied.added);
                }
                Err(refused) => {
                    reached.add(std::mem::discriminant(&refused));
                    assert!(!refused.diagnostic(&map).message.is_empty());
                    assert_eq!(all.tables(), before, "a refusal changes nothing");
                }
            }
        }
        let places = all.tables().key_cells;
        for (at, place) in places.iter().enumerate() {
            let computed = &format.computed()[usize::from(place.computed)];
            let parts = computed.aggregate.as_ref().map_or(MAX_LINKED_KEY_FIELDS, |aggregate| aggregate.by.len());
            assert!(place.index < computed.keys && place.key.len() == parts, "{place:?}");
            let same = |other: &subscribe::KeyCell| (other.computed, other.index) == (place.computed, place.index);
            assert!(!places[at + 1..].iter().any(same), "two keys in one place: {places:?}");
        }
        reached.add((places.len().min(4), all.slots().len()));
        for micros in (0..20).map(|at| at * 30_000) {
            let mut message = self.message(&rules, random);
            memory.fill(format, &mut message, micros);
            let expected = all.evaluate(&message);
            assert_eq!(all.evaluate_diagram(&message), expected, "the diagram differs: {message:?}");
            memory.update(format, &message, &expected, micros);
        }
        all.change(&ids, Vec::new()).expect("less always fits");
        assert_eq!(all.tables(), subscribe::Tables::default(), "without rules nothing is left");
    }

    /// Asserts that an aggregate, as programs declare it, prints as text that reads back the same.
    fn declares(&self, text: &str, reached: &mut Reached) {
        let read =
            |text: &str| subscribe::aggregate(&mut SourceMap::new(), text, &self.format, &mut Diagnostics::new());
        let Some(aggregate) = read(text) else { return };
        let shown = aggregate.shown(&self.format).to_string();
        assert_eq!(read(&shown), Some(aggregate), "`{shown}` reads back as another");
        reached.add(shown.split('(').next().map(str::to_owned));
    }

    /// A message with values that the rules mention, and others near them.
    fn message(&self, rules: &[Rule], random: &mut Random) -> Message {
        let mut message = Message::empty(&self.format);
        message.valid.iter_mut().for_each(|valid| *valid = !random.one_in(4));
        for rule in rules {
            let mut waiting = vec![&rule.condition];
            while let Some(condition) = waiting.pop() {
                match condition {
                    subscribe::Condition::Not(inner) => waiting.push(inner),
                    subscribe::Condition::All(list) | subscribe::Condition::Any(list) => waiting.extend(list),
                    subscribe::Condition::Test(test) if !test.values.is_empty() && random.one_in(2) => {
                        let (first, last) = *random.pick(test.values.list());
                        let value = *random.pick(&[first, last, first.wrapping_sub(1), last.wrapping_add(1)]);
                        let value = value & subscribe::max_of(self.format.width(test.subject));
                        match test.subject {
                            subscribe::Subject::Field(id) => message.fields[usize::from(id.0)] = value,
                            subscribe::Subject::Counter(id) => message.counters[usize::from(id.0)] = value,
                            subscribe::Subject::Aggregate(_) => message.slots.fill(Some(value)),
                        }
                    }
                    _ => {}
                }
            }
        }
        message
    }
}

impl FuzzTarget for Rules {
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
        let rules = self.parse(&text, &mut map, &mut diagnostics);
        reached.findings(&map, &diagnostics);
        for rule in rules.iter().take(200) {
            self.reads_back(rule);
            let shape: String = rule.shown(&self.format).to_string();
            reached
                .add(shape.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| word.len() > 1).collect::<Vec<_>>());
        }
        let mut random = Random::new(input.len() as u64);
        self.compile(&rules[..rules.len().min(30)], &mut random, &mut reached);
        self.remember(&text, &mut random, &mut reached);
        text.lines().take(20).for_each(|line| self.declares(line, &mut reached));
        reached.list()
    }

    fn keep(&mut self, input: Vec<u8>) {
        worker::remember(&mut self.inputs, input);
    }
}
