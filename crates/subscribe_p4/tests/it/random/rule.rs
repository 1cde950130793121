//! Random rules: their text, and separately their meaning.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use rng::SplitMix64;

use crate::random::packet::{Asked, FIELDS, Field, FieldNotation, HEADERS, NAMES, Packet, max, text, value};

/// Meaning of a condition.
pub enum Meaning {
    Constant(bool),
    Valid(usize),
    /// The field (by number) is present, and in one of the ranges (or, if not `is`, in none).
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

/// A rule as text, with its condition and actions.
pub struct Rule {
    pub text: String,
    pub when: Meaning,
    pub ports: BTreeSet<u32>,
    pub mark: Option<u8>,
}

fn one(rng: &mut SplitMix64, list: &[&'static str]) -> &'static str {
    list[rng.below(list.len() as u64) as usize]
}

/// Returns a constant of a field in one of its notations.
fn constant(rng: &mut SplitMix64, field: &Field, value: u128) -> String {
    match field.kind {
        FieldNotation::Mac => {
            value.to_be_bytes()[10..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
        }
        FieldNotation::Ipv4 => Ipv4Addr::from(value as u32).to_string(),
        FieldNotation::Ipv6 => Ipv6Addr::from(value).to_string(),
        FieldNotation::Text => {
            let name = NAMES.iter().find(|name| text(name) == value).expect("one of the texts");
            if rng.percent(50) { (*name).to_owned() } else { format!("\"{name}\"") }
        }
        FieldNotation::Number => match rng.below(3) {
            0 => format!("{value:#x}"),
            1 => format!("{value:#b}"),
            _ => value.to_string(),
        },
    }
}

fn test(rng: &mut SplitMix64) -> (String, Meaning) {
    if rng.percent(8) {
        let at = rng.below(HEADERS.len() as u64) as usize;
        let name = HEADERS[at];
        return (
            if rng.percent(50) { format!("valid({name})") } else { format!("{name}.isValid()") },
            Meaning::Valid(at),
        );
    }
    let at = rng.below(FIELDS.len() as u64) as usize;
    let field = &FIELDS[at];
    let (name, max) = (field.name, max(field.width));
    let wanted = value(rng, field);
    let shown = constant(rng, field, wanted);
    let is = |word: &str| !word.contains('!') && !word.contains("not") && !word.contains('≠');
    match field.asked {
        Asked::Prefixes if rng.percent(80) => {
            let length = rng.pick(&[(1, 0), (3, field.width / 2), (2, field.width - 1), (2, field.width), (1, 3)]);
            let below = if length == 0 { max } else { max >> (length - 1) >> 1 };
            let first = wanted & !below;
            let word = one(rng, &["in", "not in", "==", "!="]);
            let text = format!("{name} {word} {}/{length}", constant(rng, field, first));
            (text, Meaning::In(at, vec![(first, first | below)], is(word)))
        }
        Asked::Ranges if rng.percent(30) => {
            let other = value(rng, field);
            let (first, last) = (wanted.min(other), wanted.max(other));
            let word = one(rng, &["in", "not in", "∈"]);
            let text = format!("{name} {word} {}..{}", constant(rng, field, first), constant(rng, field, last));
            (text, Meaning::In(at, vec![(first, last)], is(word)))
        }
        Asked::Ranges if rng.percent(60) => {
            let (word, turned, stretch) = match rng.below(4) {
                0 => ("<", ">", (wanted > 0).then(|| (0, wanted - 1))),
                1 => (one(rng, &["<=", "≤"]), ">=", Some((0, wanted))),
                2 => (">", "<", (wanted < max).then(|| (wanted + 1, max))),
                _ => (one(rng, &[">=", "≥"]), "<=", Some((wanted, max))),
            };
            let is_turned = field.kind != FieldNotation::Text && rng.percent(25);
            let text = if is_turned { format!("{shown} {turned} {name}") } else { format!("{name} {word} {shown}") };
            (text, Meaning::In(at, stretch.into_iter().collect(), true))
        }
        _ if rng.percent(30) => {
            let others: Vec<u128> = (0..rng.below(3)).map(|_| value(rng, field)).collect();
            let word = one(rng, &["in", "not in"]);
            let all: Vec<u128> = [vec![wanted], others].concat();
            let shown: Vec<String> = all.iter().map(|value| constant(rng, field, *value)).collect();
            let stretches = all.iter().map(|value| (*value, *value)).collect();
            (format!("{name} {word} {{{}}}", shown.join(", ")), Meaning::In(at, stretches, is(word)))
        }
        _ => {
            let word = one(rng, &["==", "==", "!=", "≠"]);
            (format!("{name} {word} {shown}"), Meaning::In(at, vec![(wanted, wanted)], is(word)))
        }
    }
}

fn condition(rng: &mut SplitMix64, depth: u32) -> (String, Meaning) {
    if depth == 0 || rng.percent(30) {
        return match rng.below(40) {
            0 => ("true".to_owned(), Meaning::Constant(true)),
            1 => ("false".to_owned(), Meaning::Constant(false)),
            _ => test(rng),
        };
    }
    if rng.percent(20) {
        let (text, of) = condition(rng, depth - 1);
        return (format!("{}({text})", one(rng, &["not ", "!", "¬"])), Meaning::Not(Box::new(of)));
    }
    let ((left, one_side), (right, other)) = (condition(rng, depth - 1), condition(rng, depth - 1));
    let sides = Box::new([one_side, other]);
    if rng.percent(55) {
        (format!("({left}) {} ({right})", one(rng, &["and", "&&", "∧"])), Meaning::Both(sides))
    } else {
        (format!("({left}) {} ({right})", one(rng, &["or", "||", "∨"])), Meaning::Either(sides))
    }
}

impl Rule {
    /// Returns a rule that delivers to some of `ports` ports, numbered from 1, or to `controller`.
    pub fn random(rng: &mut SplitMix64, ports: u32, controller: u32) -> Rule {
        let depth = rng.below(4) as u32;
        let (condition, when) = condition(rng, depth);
        let to: Vec<u32> = (0..1 + rng.below(3)).map(|_| 1 + rng.below(ports.into()) as u32).collect();
        let shown = to.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let mut rule = Rule { text: String::new(), when, ports: to.iter().copied().collect(), mark: None };
        let actions = match rng.below(12) {
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
                rule.mark = Some(1 + rng.below(3) as u8);
                format!("mark({}); fwd({shown})", rule.mark.unwrap_or(0))
            }
            4 => format!("fwd({shown}); drop"),
            _ => format!("fwd({shown})"),
        };
        rule.text = format!("{condition} : {actions}");
        rule
    }
}
