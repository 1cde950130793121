//! Random rules: their text, and what they mean, said apart from each other.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use rng::Dice;

use crate::random::packet::{Asked, FIELDS, Field, HEADERS, Kind, NAMES, Packet, max, text, value};

/// What a condition means.
pub enum Meaning {
    Constant(bool),
    Valid(usize),
    /// The field (by number) is there, and in one of the stretches (or, if not `is`, in none).
    In(usize, Vec<(u128, u128)>, bool),
    Not(Box<Meaning>),
    Both(Box<[Meaning; 2]>),
    Either(Box<[Meaning; 2]>),
}

impl Meaning {
    pub fn holds(&self, packet: &Packet) -> bool {
        match self {
            Meaning::Constant(holds) => *holds,
            Meaning::Valid(header) => packet.valid[*header],
            Meaning::In(at, stretches, is) => {
                let is_there = FIELDS[*at].headers.iter().any(|header| packet.valid[*header]);
                let value = packet.values[*at];
                is_there && stretches.iter().any(|(first, last)| (first..=last).contains(&&value)) == *is
            }
            Meaning::Not(of) => !of.holds(packet),
            Meaning::Both(of) => of.iter().all(|of| of.holds(packet)),
            Meaning::Either(of) => of.iter().any(|of| of.holds(packet)),
        }
    }
}

/// A rule as text, when it matches and what it does then.
pub struct Rule {
    pub text: String,
    pub when: Meaning,
    pub ports: BTreeSet<u32>,
    pub mark: Option<u8>,
}

fn one(dice: &mut Dice, list: &[&'static str]) -> &'static str {
    list[dice.below(list.len() as u64) as usize]
}

/// A constant of a field, in one of the ways in which it may be written.
fn constant(dice: &mut Dice, field: &Field, value: u128) -> String {
    match field.kind {
        Kind::Mac => value.to_be_bytes()[10..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"),
        Kind::Ipv4 => Ipv4Addr::from(value as u32).to_string(),
        Kind::Ipv6 => Ipv6Addr::from(value).to_string(),
        Kind::Text => {
            let name = NAMES.iter().find(|name| text(name) == value).expect("one of the texts");
            if dice.percent(50) { (*name).to_owned() } else { format!("\"{name}\"") }
        }
        Kind::Number => match dice.below(3) {
            0 => format!("{value:#x}"),
            1 => format!("{value:#b}"),
            _ => value.to_string(),
        },
    }
}

fn test(dice: &mut Dice) -> (String, Meaning) {
    if dice.percent(8) {
        let at = dice.below(HEADERS.len() as u64) as usize;
        let name = HEADERS[at];
        return (
            if dice.percent(50) { format!("valid({name})") } else { format!("{name}.isValid()") },
            Meaning::Valid(at),
        );
    }
    let at = dice.below(FIELDS.len() as u64) as usize;
    let field = &FIELDS[at];
    let (name, max) = (field.name, max(field.width));
    let wanted = value(dice, field);
    let shown = constant(dice, field, wanted);
    let is = |word: &str| !word.contains('!') && !word.contains("not") && !word.contains('≠');
    match field.asked {
        Asked::Prefixes if dice.percent(80) => {
            let length = dice.pick(&[(1, 0), (3, field.width / 2), (2, field.width - 1), (2, field.width), (1, 3)]);
            let below = if length == 0 { max } else { max >> (length - 1) >> 1 };
            let first = wanted & !below;
            let word = one(dice, &["in", "not in", "==", "!="]);
            let text = format!("{name} {word} {}/{length}", constant(dice, field, first));
            (text, Meaning::In(at, vec![(first, first | below)], is(word)))
        }
        Asked::Ranges if dice.percent(30) => {
            let other = value(dice, field);
            let (first, last) = (wanted.min(other), wanted.max(other));
            let word = one(dice, &["in", "not in", "∈"]);
            let text = format!("{name} {word} {}..{}", constant(dice, field, first), constant(dice, field, last));
            (text, Meaning::In(at, vec![(first, last)], is(word)))
        }
        Asked::Ranges if dice.percent(60) => {
            let (word, turned, stretch) = match dice.below(4) {
                0 => ("<", ">", (wanted > 0).then(|| (0, wanted - 1))),
                1 => (one(dice, &["<=", "≤"]), ">=", Some((0, wanted))),
                2 => (">", "<", (wanted < max).then(|| (wanted + 1, max))),
                _ => (one(dice, &[">=", "≥"]), "<=", Some((wanted, max))),
            };
            let is_turned = field.kind != Kind::Text && dice.percent(25);
            let text = if is_turned { format!("{shown} {turned} {name}") } else { format!("{name} {word} {shown}") };
            (text, Meaning::In(at, stretch.into_iter().collect(), true))
        }
        _ if dice.percent(30) => {
            let others: Vec<u128> = (0..dice.below(3)).map(|_| value(dice, field)).collect();
            let word = one(dice, &["in", "not in"]);
            let all: Vec<u128> = [vec![wanted], others].concat();
            let shown: Vec<String> = all.iter().map(|value| constant(dice, field, *value)).collect();
            let stretches = all.iter().map(|value| (*value, *value)).collect();
            (format!("{name} {word} {{{}}}", shown.join(", ")), Meaning::In(at, stretches, is(word)))
        }
        _ => {
            let word = one(dice, &["==", "==", "!=", "≠"]);
            (format!("{name} {word} {shown}"), Meaning::In(at, vec![(wanted, wanted)], is(word)))
        }
    }
}

fn condition(dice: &mut Dice, depth: u32) -> (String, Meaning) {
    if depth == 0 || dice.percent(30) {
        return match dice.below(40) {
            0 => ("true".to_owned(), Meaning::Constant(true)),
            1 => ("false".to_owned(), Meaning::Constant(false)),
            _ => test(dice),
        };
    }
    if dice.percent(20) {
        let (text, of) = condition(dice, depth - 1);
        return (format!("{}({text})", one(dice, &["not ", "!", "¬"])), Meaning::Not(Box::new(of)));
    }
    let ((left, one_side), (right, other)) = (condition(dice, depth - 1), condition(dice, depth - 1));
    let sides = Box::new([one_side, other]);
    match dice.percent(55) {
        true => (format!("({left}) {} ({right})", one(dice, &["and", "&&", "∧"])), Meaning::Both(sides)),
        false => (format!("({left}) {} ({right})", one(dice, &["or", "||", "∨"])), Meaning::Either(sides)),
    }
}

impl Rule {
    /// One that delivers to some of so many ports from 1 on, or to `controller`.
    pub fn random(dice: &mut Dice, ports: u32, controller: u32) -> Rule {
        let depth = dice.below(4) as u32;
        let (condition, when) = condition(dice, depth);
        let to: Vec<u32> = (0..1 + dice.below(3)).map(|_| 1 + dice.below(ports.into()) as u32).collect();
        let shown = to.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let mut rule = Rule { text: String::new(), when, ports: to.iter().copied().collect(), mark: None };
        let actions = match dice.below(12) {
            0 => {
                rule.ports.clear();
                "drop".to_owned()
            }
            1 => {
                rule.ports = [controller].into();
                "to_controller".to_owned()
            }
            2 => {
                rule.ports.insert(controller);
                format!("fwd({shown}); to_controller")
            }
            3 => {
                rule.mark = Some(1 + dice.below(3) as u8);
                format!("mark({}); fwd({shown})", rule.mark.unwrap_or(0))
            }
            4 => format!("fwd({shown}); drop"),
            _ => format!("fwd({shown})"),
        };
        rule.text = format!("{condition} : {actions}");
        rule
    }
}
