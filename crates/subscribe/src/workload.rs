//! Generates seeded rule sets for benchmarks and tests. Equal seeds give equal rules.

use std::fmt::Write;

use rng::SplitMix64;

use crate::Message;
use crate::format::{FieldDeclaration, FieldId, Match, MessageFormat, Padding, ValueKind};

/// Rules as text with their format.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The vocabulary of the rules.
    pub format: MessageFormat,
    /// The rules, one per line.
    pub text: String,
}

/// Number of symbols in [`paper`].
pub const SYMBOLS: u64 = 100;
/// Number of hosts in [`paper`], at ports 1 to this.
pub const HOSTS: u64 = 200;
/// Largest threshold in [`paper`]; thresholds start at 1.
pub const THRESHOLDS: u64 = 1000;

fn field(format: &mut MessageFormat, name: &str, width: u32, kind: ValueKind, matching: Match) {
    let header = format.header_named("add_order").ok();
    let field = FieldDeclaration { name: format!("add_order.{name}"), width, kind, matching, header };
    format.field(field).expect("a new field of a right width");
}

/// Returns the format of an ITCH Add Order message: `stock` with exact match, `shares` and `price` with any.
pub fn itch() -> MessageFormat {
    let mut format = MessageFormat::new();
    format.header("add_order").expect("the first");
    field(&mut format, "shares", 32, ValueKind::Unsigned, Match::Any);
    field(&mut format, "stock", 64, ValueKind::Text(Padding::SPACES), Match::Exact);
    field(&mut format, "price", 32, ValueKind::Unsigned, Match::Any);
    format
}

/// Returns a symbol of [`paper`].
fn symbol(number: u64) -> String {
    format!("SYM{number:03}")
}

/// Returns one rule of the paper's workload, with this number of symbols: `stock == S and price > P : fwd(H)`, each
/// uniformly distributed.
pub fn rule(rng: &mut SplitMix64, symbols: u64) -> String {
    let (stock, price, host) = (symbol(rng.below(symbols)), 1 + rng.below(THRESHOLDS), 1 + rng.below(HOSTS));
    format!("stock == {stock} and price > {price} : fwd({host})")
}

/// Returns the workload of the paper's compiler measurements (section 4): symbols, thresholds and hosts are uniformly
/// distributed.
pub fn paper(seed: u64, rules: usize) -> Workload {
    with_symbols(seed, rules, SYMBOLS)
}

/// Returns the rules of [`paper`] with another number of symbols, up to 100,000.
pub fn with_symbols(seed: u64, rules: usize, symbols: u64) -> Workload {
    let mut rng = SplitMix64::new(seed);
    let text = lines((0..rules).map(|_| rule(&mut rng, symbols)));
    Workload { format: itch(), text }
}

/// Returns a message for [`paper`] rules. In one of ten cases its symbol has no rules.
pub fn paper_message(format: &MessageFormat, rng: &mut SplitMix64) -> Message {
    let mut message = Message::empty(format);
    let text = symbol(rng.below(SYMBOLS) + if rng.percent(10) { SYMBOLS } else { 0 });
    let stock =
        text.bytes().chain(std::iter::repeat(b' ')).take(8).fold(0, |value, byte| value << 8 | u128::from(byte));
    message.set(format, FieldId(0), u128::from(1 + rng.below(1000)));
    message.set(format, FieldId(1), stock);
    message.set(format, FieldId(2), u128::from(rng.below(THRESHOLDS + THRESHOLDS / 10)));
    message
}

/// Parameters of [`siena`], named as in Carzaniga and Wolf's synthetic benchmark for content-based networks.
#[derive(Clone, Debug)]
pub struct Siena {
    /// Number of subscriptions.
    pub subscriptions: usize,
    /// Predicates in each subscription.
    pub predicates: usize,
    /// Number of attributes, each of 16 bits; every other one is also tested for ranges.
    pub attributes: usize,
    /// Distinct values of an attribute.
    pub values: u64,
    /// Skew of attributes and values: exponent of Zipf's law.
    pub skew: f64,
    /// Percentages of `==`, `<` and `>` among predicates on numbers; the rest are `!=`.
    pub operators: [u64; 3],
    /// Number of ports.
    pub hosts: u64,
}

impl Default for Siena {
    fn default() -> Self {
        Siena {
            subscriptions: 1000,
            predicates: 3,
            attributes: 5,
            values: 100,
            skew: 1.0,
            operators: [60, 20, 20],
            hosts: 100,
        }
    }
}

/// Returns conjunctions over random attributes. Attributes of one subscription differ; attributes and values follow
/// Zipf's law.
pub fn siena(seed: u64, of: &Siena) -> Workload {
    let mut format = MessageFormat::new();
    format.header("add_order").expect("the first");
    for at in 0..of.attributes {
        let matching = if at % 2 == 0 { Match::Exact } else { Match::Any };
        field(&mut format, &format!("a{at}"), 16, ValueKind::Unsigned, matching);
    }
    let (attributes, values) = (Zipf::new(of.attributes as u64, of.skew), Zipf::new(of.values, of.skew));
    let mut rng = SplitMix64::new(seed);
    let text = lines((0..of.subscriptions).map(|_| {
        let mut chosen: Vec<u64> = Vec::new();
        while chosen.len() < of.predicates.min(of.attributes) {
            let attribute = attributes.pick(&mut rng);
            if !chosen.contains(&attribute) {
                chosen.push(attribute);
            }
        }
        let mut tests = Vec::new();
        for attribute in chosen {
            let [equal, less, greater] = of.operators;
            let operator =
                rng.pick(&[(equal, "=="), (less, "<"), (greater, ">"), (100 - equal - less - greater, "!=")]);
            let operator = if attribute % 2 == 0 && ["<", ">"].contains(&operator) { "==" } else { operator };
            tests.push(format!("a{attribute} {operator} {}", 1 + values.pick(&mut rng)));
        }
        format!("{} : fwd({})", tests.join(" and "), 1 + rng.below(of.hosts))
    }));
    Workload { format, text }
}

/// Returns rules without a field that separates them by value: a range in each of three fields, each `1/selectivity` of
/// the field's values wide.
pub fn ranges(seed: u64, rules: usize, selectivity: u64) -> Workload {
    let mut format = MessageFormat::new();
    format.header("add_order").expect("the first");
    for name in ["x", "y", "z"] {
        field(&mut format, name, 16, ValueKind::Unsigned, Match::Any);
    }
    let mut rng = SplitMix64::new(seed);
    let text = lines((0..rules).map(|_| {
        let tests: Vec<String> = ["x", "y", "z"]
            .into_iter()
            .map(|name| {
                let width = 0x1_0000 / selectivity;
                let first = rng.below(0x1_0000 - width);
                format!("{name} in {first}..{}", first + width - 1)
            })
            .collect();
        format!("{} : fwd({})", tests.join(" and "), 1 + rng.below(HOSTS))
    }));
    Workload { format, text }
}

fn lines(rules: impl Iterator<Item = String>) -> String {
    rules.fold(String::new(), |mut text, rule| {
        let _ = writeln!(text, "{rule}");
        text
    })
}

/// Zipf distribution over numbers from 0: the frequency falls as a power of the rank.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(count: u64, skew: f64) -> Zipf {
        let mut sum = 0.0;
        Zipf(
            (1..=count.max(1))
                .map(|rank| {
                    sum += (rank as f64).powf(-skew);
                    sum
                })
                .collect(),
        )
    }

    fn pick(&self, rng: &mut SplitMix64) -> u64 {
        let wanted = rng.fraction() * self.0.last().copied().unwrap_or(1.0);
        self.0.partition_point(|upto| *upto <= wanted).min(self.0.len() - 1) as u64
    }
}
