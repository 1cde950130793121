//! Sets of rules from a seed: the same for the same. For benchmarks and tests.

use std::fmt::Write;

use rng::SplitMix64;

use crate::Message;
use crate::format::{Field, FieldId, Format, Kind, Match, Padding};

/// Rules as text, and what they speak of.
#[derive(Clone, Debug)]
pub struct Workload {
    /// What the rules speak of.
    pub format: Format,
    /// The rules, one a line.
    pub text: String,
}

/// The symbols of [`paper`].
pub const SYMBOLS: u64 = 100;
/// The hosts of [`paper`]: ports 1 to this.
pub const HOSTS: u64 = 200;
/// The thresholds of [`paper`]: 1 to this.
pub const THRESHOLDS: u64 = 1000;

fn field(format: &mut Format, name: &str, width: u32, kind: Kind, matching: Match) {
    let header = format.header_named("add_order").ok();
    let field = Field { name: format!("add_order.{name}"), width, kind, matching, header };
    format.field(field).expect("a new field of a right width");
}

/// What rules say of an Add Order message: `stock` exactly, `shares` and `price` any way.
pub fn itch() -> Format {
    let mut format = Format::new();
    format.header("add_order").expect("the first");
    field(&mut format, "shares", 32, Kind::Unsigned, Match::Any);
    field(&mut format, "stock", 64, Kind::Text(Padding::SPACES), Match::Exact);
    field(&mut format, "price", 32, Kind::Unsigned, Match::Any);
    format
}

/// A symbol of [`paper`].
fn symbol(number: u64) -> String {
    format!("SYM{number:03}")
}

/// One rule of the paper's workload: `stock == S and price > P : fwd(H)`, each evenly distributed.
pub fn paper_rule(rng: &mut SplitMix64) -> String {
    let (stock, price, host) = (symbol(rng.below(SYMBOLS)), 1 + rng.below(THRESHOLDS), 1 + rng.below(HOSTS));
    format!("stock == {stock} and price > {price} : fwd({host})")
}

/// The workload that the paper measures its compiler with (section 4): symbols, thresholds and hosts evenly distributed.
pub fn paper(seed: u64, rules: usize) -> Workload {
    let mut rng = SplitMix64::new(seed);
    let text = lines((0..rules).map(|_| paper_rule(&mut rng)));
    Workload { format: itch(), text }
}

/// A message that rules of [`paper`] may be about, of a symbol that has rules or, one in ten times, of one that has none.
pub fn paper_message(format: &Format, rng: &mut SplitMix64) -> Message {
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
    /// Subscriptions.
    pub subscriptions: usize,
    /// Predicates in each.
    pub predicates: usize,
    /// Attributes there are, in numbers of 16 bits; every other one is asked for ranges too.
    pub attributes: usize,
    /// Different values of an attribute.
    pub values: u64,
    /// How unequal attributes and values are: exponent of Zipf's law.
    pub skew: f64,
    /// In a hundred predicates on numbers: `==`, `<`, `>`; the rest are `!=`.
    pub operators: [u64; 3],
    /// Ports.
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

/// Conjunctions over random attributes. Attributes of one subscription differ; attributes and values follow Zipf's law.
pub fn siena(seed: u64, of: &Siena) -> Workload {
    let mut format = Format::new();
    format.header("add_order").expect("the first");
    for at in 0..of.attributes {
        let matching = if at % 2 == 0 { Match::Exact } else { Match::Any };
        field(&mut format, &format!("a{at}"), 16, Kind::Unsigned, matching);
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

/// Rules without a field to tell them apart by value: a range in each of three fields, as wide as a part in
/// `selectivity` of its values.
pub fn ranges(seed: u64, rules: usize, selectivity: u64) -> Workload {
    let mut format = Format::new();
    format.header("add_order").expect("the first");
    for name in ["x", "y", "z"] {
        field(&mut format, name, 16, Kind::Unsigned, Match::Any);
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

/// Numbers from 0 whose frequency falls as a power of their rank.
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
