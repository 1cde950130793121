//! A format of small fields, random rules about it as text, and random messages.

#![allow(dead_code, reason = "each test uses a part of this")]

use diagnostics::{Diagnostics, SourceMap};
use rng::Dice;
use subscribe::{
    ActionDeclaration, Counter, Field, Format, Kind, Layout, Match, Message, NoIncludes, Options, Padding, Parameter,
    Rule, Subscriptions, Target, Wide, Window, parse,
};

/// Two headers and metadata; every way to match, in fields so small that everything happens.
pub fn format() -> Format {
    let mut format = Format::new();
    let order = format.header("add_order").expect("new");
    let trade = format.header("trade").expect("new");
    let mut field = |name: &str, width, kind, matching, header| {
        let field = Field { name: name.to_owned(), width, kind, matching, header };
        format.field(field).expect("a new field of a right width");
    };
    let text = Kind::Text(Padding::SPACES);
    field("add_order.price", 5, Kind::Unsigned, Match::Range, Some(order));
    field("add_order.stock", 24, text, Match::Exact, Some(order));
    field("add_order.shares", 4, Kind::Unsigned, Match::Any, Some(order));
    field("trade.dst", 6, Kind::Unsigned, Match::Lpm, Some(trade));
    field("trade.price", 4, Kind::Unsigned, Match::Any, Some(trade));
    field("meta.port", 3, Kind::Unsigned, Match::Exact, None);
    let window = Some(Window::Packets(100));
    format.counter(Counter { name: "seen".to_owned(), width: 3, window }).expect("new");
    let parameters = vec![Parameter { name: "class".to_owned(), width: 4 }];
    format.action(ActionDeclaration { name: "mark".to_owned(), parameters }).expect("new");
    format.slots = 64;
    format.slot_width = 4;
    format
}

/// That, with codes for three fields that rules may ask ranges or prefixes of.
pub fn compressed() -> Format {
    let mut format = format();
    for (name, bits) in [("add_order.price", 4), ("shares", 3), ("dst", 5)] {
        match format.subject(name).expect("a field") {
            subscribe::Subject::Field(id) => format.compress(id, bits).expect("fewer bits"),
            other => panic!("{other:?}"),
        }
    }
    format
}

/// A set of options for each target there is.
pub fn targets() -> Vec<Options> {
    let target = |wide, exact_beside, has_ranges| Options {
        target: Target { wide, exact_beside, has_ranges, ..Target::default() },
        ..Options::default()
    };
    vec![
        target(Wide::Range, true, true),
        target(Wide::Range, false, true),
        target(Wide::Lpm, true, false),
        target(Wide::Ternary, false, false),
        target(Wide::Ternary, true, false),
    ]
}

fn one<'a>(dice: &mut Dice, list: &[&'a str]) -> &'a str {
    list[dice.below(list.len() as u64) as usize]
}

const STOCKS: [&str; 5] = ["A", "B", "\"C D\"", "GO", "\"\""];

/// A test as text; without aggregates if the rule has an action that may run once only.
pub fn test(dice: &mut Dice) -> String {
    let n = |dice: &mut Dice, end: u64| dice.below(end);
    match dice.below(12) {
        0 => format!("valid({})", one(dice, &["add_order", "trade"])),
        1 => format!("{}.isValid()", one(dice, &["add_order", "trade"])),
        2 => format!("stock {} {}", one(dice, &["==", "!=", "≠"]), one(dice, &STOCKS)),
        3 => {
            let of = (0..1 + dice.below(3)).map(|_| one(dice, &STOCKS)).collect::<Vec<_>>().join(", ");
            format!("stock {} {{{of}}}", one(dice, &["in", "not in", "∈"]))
        }
        4 => {
            let length = dice.below(7) as u32;
            let value = dice.below(64) & (63 << (6 - length));
            format!("trade.dst {} {value}/{length}", one(dice, &["==", "in", "!="]))
        }
        5 => format!("port {} {}", one(dice, &["==", "!="]), n(dice, 8)),
        6 => format!("seen {} {}", one(dice, &["<", ">=", "=="]), n(dice, 8)),
        7 => {
            let of = one(
                dice,
                &["avg(add_order.price)", "count()", "max(trade.price by stock)", "sum(shares) by dst, port"],
            );
            format!("{of} {} {}", one(dice, &["<", ">=", "=="]), n(dice, 16))
        }
        8 => {
            let (a, b) = (n(dice, 32), n(dice, 32));
            format!("add_order.price in {}..{}", a.min(b), a.max(b))
        }
        9 => format!("{} {} shares", n(dice, 16), one(dice, &["<", "<=", ">", ">=", "==", "!="])),
        10 => format!("trade.price {} {}", one(dice, &["<", "≤", ">", "≥", "==", "!="]), n(dice, 16)),
        _ => format!("add_order.price {} {}", one(dice, &["<", "<=", ">", ">=", "==", "!="]), n(dice, 32)),
    }
}

/// A condition as text.
pub fn condition(dice: &mut Dice, depth: u32) -> String {
    if depth == 0 || dice.percent(30) {
        return test(dice);
    }
    match dice.below(5) {
        0 => format!("{} ({})", one(dice, &["not", "!", "¬"]), condition(dice, depth - 1)),
        1 | 2 => {
            let word = one(dice, &["and", "&&", "∧"]);
            format!("({}) {word} ({})", condition(dice, depth - 1), condition(dice, depth - 1))
        }
        3 => {
            let word = one(dice, &["or", "||", "∨"]);
            format!("({}) {word} {}", condition(dice, depth - 1), test(dice))
        }
        _ => format!("{} and {} and {}", test(dice), test(dice), test(dice)),
    }
}

/// A rule as text.
pub fn rule(dice: &mut Dice) -> String {
    let action = match dice.below(9) {
        0 => "drop".to_owned(),
        1 => "to_controller; fwd(3)".to_owned(),
        2 => "seen <- seen + 1".to_owned(),
        3 => "seen <- max(seen, shares); fwd(1)".to_owned(),
        4 => "mark(7)".to_owned(),
        5 => format!("fwd({}, {})", dice.below(6), dice.below(6)),
        _ => format!("fwd({})", dice.below(6)),
    };
    format!("{} : {action}", condition(dice, 2))
}

/// A rule as text, without aggregates.
pub fn plain_rule(dice: &mut Dice) -> String {
    loop {
        let text = rule(dice);
        if !["avg", "count", "sum(", "max(trade"].iter().any(|function| text.contains(function)) {
            return text;
        }
    }
}

/// Rules of a text without mistakes.
pub fn rules(text: &str, format: &Format) -> Vec<Rule> {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let rules = parse(&mut map, "test.rules", text, format, &mut NoIncludes, &mut diagnostics);
    assert!(diagnostics.is_empty(), "{}", diagnostics.render(&map, false));
    rules
}

/// A random message.
pub fn message(dice: &mut Dice, format: &Format) -> Message {
    let mut message = Message::empty(format);
    message.valid.iter_mut().for_each(|valid| *valid = dice.percent(75));
    for (field, value) in format.fields().iter().zip(&mut message.fields) {
        *value = u128::from(dice.word()) & field.max();
        if field.name == "add_order.stock" {
            *value = u128::from(dice.pick(&[
                (2, 0x41_2020u64),
                (2, 0x42_2020),
                (1, 0x43_2044),
                (2, 0x47_4f20),
                (1, 0x20_2020),
                (1, 7),
            ]));
        }
    }
    message.counters.iter_mut().for_each(|value| *value = u128::from(dice.below(8)));
    message.slots.iter_mut().for_each(|value| *value = u128::from(dice.below(16)));
    message
}

/// Subscriptions without rules, in the sensible order.
pub fn empty(format: &Format, options: Options) -> Subscriptions {
    Subscriptions::new(format.clone(), Layout::sensible(format, &[]), options)
}
