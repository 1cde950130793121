//! Random restrictions and entries: the checker agrees with a slow, independent evaluator, and no text makes it panic.

use diagnostics::{Diagnostics, SourceMap};
use p4_constraints::Checker;
use p4runtime_proto::config::match_field::{Match, MatchType};
use p4runtime_proto::config::{MatchField, P4Info, Preamble, Table};
use p4runtime_proto::v1::field_match::{self, FieldMatchType};
use p4runtime_proto::v1::{FieldMatch, TableEntry};
use rng::SplitMix64;

struct Random(SplitMix64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }
}

const WIDTH: u32 = 4;
const KEYS: [(&str, MatchType); 5] = [
    ("e", MatchType::Exact),
    ("h.t", MatchType::Ternary),
    ("h.l", MatchType::Lpm),
    ("r", MatchType::Range),
    ("o", MatchType::Optional),
];

fn program(restriction: &str) -> P4Info {
    let field = |(at, (name, kind)): (usize, &(&str, MatchType))| MatchField {
        id: at as u32 + 1,
        name: (*name).to_owned(),
        bitwidth: WIDTH as i32,
        r#match: Some(Match::MatchType((*kind).into())),
        ..MatchField::default()
    };
    let annotations = vec![format!("@entry_restriction(\"{restriction}\")")];
    let preamble = Some(Preamble { id: 1, name: "t".to_owned(), annotations, ..Preamble::default() });
    let match_fields = KEYS.iter().enumerate().map(field).collect();
    P4Info { tables: vec![Table { preamble, match_fields, ..Table::default() }], ..P4Info::default() }
}

/// An entry as the slow evaluator reads it: for each key, its two parts.
struct RandomEntry {
    parts: [(i64, i64); 5],
    priority: i64,
}

fn entry(random: &mut Random) -> RandomEntry {
    let mut nibble = || random.below(16) as i64;
    let (e, mask, length, low) = (nibble(), nibble(), nibble() % 5, nibble());
    let prefix = 0xf & !((1 << (4 - length)) - 1);
    let parts = [
        (e, 0),
        (nibble() & mask, mask),
        (nibble() & prefix, length),
        (low, low.max(nibble())),
        if nibble() < 8 { (0, 0) } else { (nibble(), 15) },
    ];
    RandomEntry { parts, priority: nibble() }
}

fn message(entry: &RandomEntry) -> TableEntry {
    let byte = |number: i64| vec![number as u8];
    let fields = entry.parts.iter().enumerate().filter_map(|(at, (first, second))| {
        let kind = match KEYS[at].1 {
            MatchType::Exact => FieldMatchType::Exact(field_match::Exact { value: byte(*first) }),
            MatchType::Ternary if *second == 0 => return None,
            MatchType::Ternary => {
                FieldMatchType::Ternary(field_match::Ternary { value: byte(*first), mask: byte(*second) })
            }
            MatchType::Lpm if *second == 0 => return None,
            MatchType::Lpm => FieldMatchType::Lpm(field_match::Lpm { value: byte(*first), prefix_len: *second as i32 }),
            MatchType::Range => FieldMatchType::Range(field_match::Range { low: byte(*first), high: byte(*second) }),
            _ if *second == 0 => return None,
            _ => FieldMatchType::Optional(field_match::Optional { value: byte(*first) }),
        };
        Some(FieldMatch { field_id: at as u32 + 1, field_match_type: Some(kind) })
    });
    TableEntry { table_id: 1, priority: entry.priority as i32, r#match: fields.collect(), ..TableEntry::default() }
}

/// A restriction as text and as a function, generated together.
type Made = (String, Box<dyn Fn(&RandomEntry) -> bool>);

/// A number as text and as a function; `true` if it is an integer, which a field of 4 bits wraps.
type Number = (String, Box<dyn Fn(&RandomEntry) -> i64>, bool);

fn number(random: &mut Random) -> Number {
    match random.below(5) {
        0 => {
            let number = random.below(40) as i64 - 20;
            let text = match random.below(3) {
                0 if number >= 0 => format!("0x{number:x}"),
                1 if number >= 0 => format!("0b{number:b}"),
                _ => number.to_string(),
            };
            (text, Box::new(move |_| number), true)
        }
        1 => ("::priority".to_owned(), Box::new(|entry| entry.priority), true),
        2 => ("-h.l::prefix_length".to_owned(), Box::new(|entry| -entry.parts[2].1), true),
        _ => {
            let (text, key, second) = [
                ("e", 0, false),
                ("e::value", 0, false),
                ("h.t::value", 1, false),
                ("h.t :: mask", 1, true),
                ("h.l::value", 2, false),
                ("r::low", 3, false),
                ("r::high", 3, true),
                ("o::mask", 4, true),
            ][random.below(8) as usize];
            let part = move |entry: &RandomEntry| if second { entry.parts[key].1 } else { entry.parts[key].0 };
            (text.to_owned(), Box::new(part), false)
        }
    }
}

fn compare(random: &mut Random) -> Made {
    if random.below(4) == 0 {
        // A whole key compared with a constant: the match of exactly that number.
        let (key, full) = [(1, 15), (2, 4), (3, 0), (4, 15)][random.below(4) as usize];
        let constant = random.below(16) as i64;
        let text = format!("{} == {constant}", KEYS[key].0);
        let second = move |constant| if key == 3 { constant } else { full };
        return (text, Box::new(move |entry| entry.parts[key] == (constant, second(constant))));
    }
    let ((left, a, left_int), (right, b, right_int)) = (number(random), number(random));
    let wraps = left_int != right_int;
    let wrap = move |number: i64| if wraps { number.rem_euclid(16) } else { number };
    let (sign, holds): (_, fn(i64, i64) -> bool) = [
        ("==", (|a, b| a == b) as fn(i64, i64) -> bool),
        ("!=", |a, b| a != b),
        ("<", |a, b| a < b),
        ("<=", |a, b| a <= b),
        (">", |a, b| a > b),
        (">=", |a, b| a >= b),
    ][random.below(6) as usize];
    (format!("{left} {sign} {right}"), Box::new(move |entry| holds(wrap(a(entry)), wrap(b(entry)))))
}

/// Generates text and function. Parentheses are added wherever the precedence level `inside` requires them, and
/// sometimes elsewhere.
fn made(random: &mut Random, depth: u32, inside: u32) -> Made {
    if depth == 0 || random.below(6) == 0 {
        return match random.below(8) {
            0 => ("true".to_owned(), Box::new(|_| true)),
            1 => ("false".to_owned(), Box::new(|_| false)),
            _ if inside > 5 => {
                let (text, holds) = compare(random);
                (format!("({text})"), holds)
            }
            _ => compare(random),
        };
    }
    let (level, sign) =
        [(1, ";"), (2, "->"), (3, "||"), (4, "&&"), (5, "=="), (5, "!="), (6, "!")][random.below(7) as usize];
    let (text, holds): Made = if sign == "!" {
        let (text, holds) = made(random, depth - 1, 6);
        (format!("!{text}"), Box::new(move |entry| !holds(entry)))
    } else {
        // `->` and comparisons do not chain; the other operators do.
        let below = if matches!(sign, "->" | "==" | "!=") { level + 1 } else { level };
        let ((left, a), (right, b)) = (made(random, depth - 1, below), made(random, depth - 1, below));
        let holds: Box<dyn Fn(&RandomEntry) -> bool> = match sign {
            ";" | "&&" => Box::new(move |entry| a(entry) & b(entry)),
            "||" => Box::new(move |entry| a(entry) | b(entry)),
            "->" => Box::new(move |entry| !a(entry) | b(entry)),
            "==" => Box::new(move |entry| a(entry) == b(entry)),
            _ => Box::new(move |entry| a(entry) != b(entry)),
        };
        let blank = ["", " ", "\n", " // why\n", "/* ; */"][random.below(5) as usize];
        (format!("{left} {sign}{blank}{right}"), holds)
    };
    if level < inside || random.below(8) == 0 { (format!("({text})"), holds) } else { (text, holds) }
}

#[test]
fn the_checker_agrees_with_a_slow_evaluator() {
    let mut random = Random(SplitMix64::new(7));
    let (mut held, mut failed) = (0, 0);
    for round in 0..3_000 {
        let (text, holds) = made(&mut random, 5, 0);
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let checker = Checker::new(&program(&text), &mut map, &mut diagnostics);
        assert!(!diagnostics.has_errors(), "round {round}: {text}\n{}", diagnostics.render(&map, false));
        for _ in 0..10 {
            let entry = entry(&mut random);
            let found = checker.check_entry(&message(&entry));
            assert_eq!(found.is_ok(), holds(&entry), "round {round}: {text}: {:?} {found:?}", entry.parts);
            if found.is_ok() { held += 1 } else { failed += 1 }
        }
    }
    assert!(held > 3_000 && failed > 3_000, "{held} held, {failed} failed: the restrictions say too little");
}

#[test]
fn no_text_makes_it_fall_over() {
    let mut random = Random(SplitMix64::new(11));
    let pieces: Vec<&str> = "e|h.t|h.|::|::mask|::priority|(|)|!|-|->|&&|||;|==|<|0x|0b1|99999999999999999999|'|\\\"|//|/*|*/|\n|true|ipv6('::1')|mac(|é|\\|\u{0}|,"
        .split('|')
        .collect();
    for _ in 0..20_000 {
        let text: String = match random.below(3) {
            0 => (0..random.below(30)).map(|_| pieces[random.below(pieces.len() as u64) as usize]).collect(),
            kind => {
                // A valid restriction with a few characters changed.
                let mut chars: Vec<char> = made(&mut random, 3, 0).0.chars().collect();
                for _ in 0..=kind {
                    let at = random.below(chars.len() as u64) as usize;
                    chars[at] = ['(', ')', ' ', ':', '=', '1', '!', 'é', '\''][random.below(9) as usize];
                }
                chars.into_iter().collect()
            }
        };
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let checker = Checker::new(&program(&text), &mut map, &mut diagnostics);
        let entry = entry(&mut random);
        if let Err(violation) = checker.check_entry(&message(&entry)) {
            assert!(!violation.clause.is_empty(), "{text}");
        }
        diagnostics.render(&map, false);
    }
}
