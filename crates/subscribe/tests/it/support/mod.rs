//! A format with small fields, random rules over it as text, and random messages.

use diagnostics::{Diagnostics, SourceMap};
use rng::SplitMix64;
use subscribe::{
    ActionDeclaration, ColumnLayout, CompileOptions, Counter, FieldDeclaration, Match, Message, MessageFormat,
    NoIncludes, Padding, Parameter, Rule, Subscriptions, TargetCapabilities, ValueKind, Wide, Window, parse,
};

/// Two headers and metadata, with every match kind and fields so small that all cases occur.
pub fn format() -> MessageFormat {
    let mut format = MessageFormat::new();
    let order = format.header("add_order").expect("new");
    let trade = format.header("trade").expect("new");
    let mut field = |name: &str, width, kind, matching, header| {
        let field = FieldDeclaration { name: name.to_owned(), width, kind, matching, header };
        format.field(field).expect("a new field of a right width");
    };
    let text = ValueKind::Text(Padding::SPACES);
    field("add_order.price", 5, ValueKind::Unsigned, Match::Range, Some(order));
    field("add_order.stock", 24, text, Match::Exact, Some(order));
    field("add_order.shares", 4, ValueKind::Unsigned, Match::Any, Some(order));
    field("trade.dst", 6, ValueKind::Unsigned, Match::Lpm, Some(trade));
    field("trade.price", 4, ValueKind::Unsigned, Match::Any, Some(trade));
    field("meta.port", 3, ValueKind::Unsigned, Match::Exact, None);
    let window = Some(Window::Packets(100));
    format.counter(Counter { name: "seen".to_owned(), width: 3, window }).expect("new");
    let parameters = vec![Parameter { name: "class".to_owned(), width: 4 }];
    format.action(ActionDeclaration { name: "mark".to_owned(), parameters }).expect("new");
    format.slots = 64;
    format.slot_width = 4;
    format
}

/// Returns the same format with codes for three fields that rules can test for ranges or prefixes.
pub fn compressed() -> MessageFormat {
    let mut format = format();
    for (name, bits) in [("add_order.price", 4), ("shares", 3), ("dst", 5)] {
        match format.subject(name).expect("a field") {
            subscribe::Subject::Field(id) => format.compress(id, bits).expect("fewer bits"),
            other => panic!("{other:?}"),
        }
    }
    format
}

/// Returns options for every kind of target.
pub fn targets() -> Vec<CompileOptions> {
    let target = |wide, exact_beside, has_ranges| CompileOptions {
        target: TargetCapabilities { wide, exact_beside, has_ranges, ..TargetCapabilities::default() },
        ..CompileOptions::default()
    };
    vec![
        target(Wide::Range, true, true),
        target(Wide::Range, false, true),
        target(Wide::Lpm, true, false),
        target(Wide::Ternary, false, false),
        target(Wide::Ternary, true, false),
    ]
}

fn one<'a>(rng: &mut SplitMix64, list: &[&'a str]) -> &'a str {
    list[rng.below(list.len() as u64) as usize]
}

const STOCKS: [&str; 5] = ["A", "B", "\"C D\"", "GO", "\"\""];

/// Returns a random test as text.
pub fn test(rng: &mut SplitMix64) -> String {
    let n = |rng: &mut SplitMix64, end: u64| rng.below(end);
    match rng.below(12) {
        0 => format!("valid({})", one(rng, &["add_order", "trade"])),
        1 => format!("{}.isValid()", one(rng, &["add_order", "trade"])),
        2 => format!("stock {} {}", one(rng, &["==", "!=", "≠"]), one(rng, &STOCKS)),
        3 => {
            let of = (0..1 + rng.below(3)).map(|_| one(rng, &STOCKS)).collect::<Vec<_>>().join(", ");
            format!("stock {} {{{of}}}", one(rng, &["in", "not in", "∈"]))
        }
        4 => {
            let length = rng.below(7) as u32;
            let value = rng.below(64) & (63 << (6 - length));
            format!("trade.dst {} {value}/{length}", one(rng, &["==", "in", "!="]))
        }
        5 => format!("port {} {}", one(rng, &["==", "!="]), n(rng, 8)),
        6 => format!("seen {} {}", one(rng, &["<", ">=", "=="]), n(rng, 8)),
        7 => {
            let of =
                one(rng, &["avg(add_order.price)", "count()", "max(trade.price by stock)", "sum(shares) by dst, port"]);
            format!("{of} {} {}", one(rng, &["<", ">=", "=="]), n(rng, 16))
        }
        8 => {
            let (a, b) = (n(rng, 32), n(rng, 32));
            format!("add_order.price in {}..{}", a.min(b), a.max(b))
        }
        9 => format!("{} {} shares", n(rng, 16), one(rng, &["<", "<=", ">", ">=", "==", "!="])),
        10 => format!("trade.price {} {}", one(rng, &["<", "≤", ">", "≥", "==", "!="]), n(rng, 16)),
        _ => format!("add_order.price {} {}", one(rng, &["<", "<=", ">", ">=", "==", "!="]), n(rng, 32)),
    }
}

/// Returns a random condition as text.
pub fn condition(rng: &mut SplitMix64, depth: u32) -> String {
    if depth == 0 || rng.percent(30) {
        return test(rng);
    }
    match rng.below(5) {
        0 => format!("{} ({})", one(rng, &["not", "!", "¬"]), condition(rng, depth - 1)),
        1 | 2 => {
            let word = one(rng, &["and", "&&", "∧"]);
            format!("({}) {word} ({})", condition(rng, depth - 1), condition(rng, depth - 1))
        }
        3 => {
            let word = one(rng, &["or", "||", "∨"]);
            format!("({}) {word} {}", condition(rng, depth - 1), test(rng))
        }
        _ => format!("{} and {} and {}", test(rng), test(rng), test(rng)),
    }
}

/// Returns a random rule as text.
pub fn rule(rng: &mut SplitMix64) -> String {
    let action = match rng.below(9) {
        0 => "drop".to_owned(),
        1 => "to_controller; fwd(3)".to_owned(),
        2 => "seen <- seen + 1".to_owned(),
        3 => one(rng, &["seen <- max(seen, shares); fwd(1)", "seen <- shares * 2", "seen += 3 - seen"]).to_owned(),
        4 => "mark(7)".to_owned(),
        5 => format!("fwd({}, {})", rng.below(6), rng.below(6)),
        _ => format!("fwd({})", rng.below(6)),
    };
    format!("{} : {action}", condition(rng, 2))
}

/// Returns a random rule without aggregates as text.
pub fn plain_rule(rng: &mut SplitMix64) -> String {
    loop {
        let text = rule(rng);
        if !["avg", "count", "sum(", "max(trade"].iter().any(|function| text.contains(function)) {
            return text;
        }
    }
}

/// Parses rules from a text without mistakes.
pub fn rules(text: &str, format: &MessageFormat) -> Vec<Rule> {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let rules = parse(&mut map, "test.rules", text, format, &mut NoIncludes, &mut diagnostics);
    assert!(diagnostics.is_empty(), "{}", diagnostics.render(&map, false));
    rules
}

/// Returns a random message.
pub fn message(rng: &mut SplitMix64, format: &MessageFormat) -> Message {
    let mut message = Message::empty(format);
    message.valid.iter_mut().for_each(|valid| *valid = rng.percent(75));
    for (field, value) in format.fields().iter().zip(&mut message.fields) {
        *value = u128::from(rng.next_u64()) & field.max();
        if field.name == "add_order.stock" {
            *value = u128::from(rng.pick(&[
                (2, 0x41_2020u64),
                (2, 0x42_2020),
                (1, 0x43_2044),
                (2, 0x47_4f20),
                (1, 0x20_2020),
                (1, 7),
            ]));
        }
    }
    message.counters.iter_mut().for_each(|value| *value = u128::from(rng.below(8)));
    message.slots.iter_mut().for_each(|value| *value = rng.percent(80).then(|| u128::from(rng.below(16))));
    message
}

/// Creates an empty set of rules in the default order.
pub fn empty(format: &MessageFormat, options: CompileOptions) -> Subscriptions {
    Subscriptions::new(format.clone(), ColumnLayout::sensible(format, &[]), options)
}
