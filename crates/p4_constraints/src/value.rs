//! What an entry holds, as restrictions see it.

use std::fmt;

use num_bigint::{BigInt, Sign};
use num_traits::{One, Zero};
use p4runtime_proto::v1::field_match::FieldMatchType;

/// How a key is matched. A parameter of an action is a number, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatchKind {
    Exact,
    Ternary,
    Lpm,
    Range,
    Optional,
    Parameter,
}

impl MatchKind {
    /// The parts of a key that is matched so.
    pub(crate) fn parts(self) -> &'static [Part] {
        match self {
            MatchKind::Exact => &[Part::Value],
            MatchKind::Ternary | MatchKind::Optional => &[Part::Value, Part::Mask],
            MatchKind::Lpm => &[Part::Value, Part::PrefixLength],
            MatchKind::Range => &[Part::Low, Part::High],
            MatchKind::Parameter => &[],
        }
    }

    /// The name it has in P4.
    pub(crate) fn name(self) -> &'static str {
        match self {
            MatchKind::Exact => "exact",
            MatchKind::Ternary => "ternary",
            MatchKind::Lpm => "lpm",
            MatchKind::Range => "range",
            MatchKind::Optional => "optional",
            MatchKind::Parameter => "parameter",
        }
    }
}

/// A part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Value,
    Mask,
    PrefixLength,
    Low,
    High,
}

impl Part {
    /// The name it has behind `::`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::Value => "value",
            Part::Mask => "mask",
            Part::PrefixLength => "prefix_length",
            Part::Low => "low",
            Part::High => "high",
        }
    }
}

/// A key or a parameter that restrictions may name.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// The id that entries use.
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) kind: MatchKind,
    /// How many bits; `None` for what restrictions cannot speak of: texts and matches of other kinds.
    pub(crate) width: Option<u32>,
}

/// What an entry matches on, or gives to an action, for one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Matched {
    /// Exact matches and parameters.
    Number(BigInt),
    /// Ternary and optional matches.
    Masked {
        value: BigInt,
        mask: BigInt,
    },
    Prefix {
        value: BigInt,
        length: BigInt,
    },
    Range {
        low: BigInt,
        high: BigInt,
    },
}

/// The number with all of its `width` bits set.
pub(crate) fn ones(width: u32) -> BigInt {
    (BigInt::one() << width) - 1
}

/// An unsigned number, most significant byte first.
pub(crate) fn number(bytes: &[u8]) -> BigInt {
    BigInt::from_bytes_be(Sign::Plus, bytes)
}

impl Matched {
    /// What leaving a key out means (P4Runtime specification, section on match formats): it matches everything.
    pub(crate) fn left_out(kind: MatchKind, width: u32) -> Matched {
        match kind {
            MatchKind::Exact | MatchKind::Parameter => Matched::Number(BigInt::zero()),
            MatchKind::Ternary | MatchKind::Optional => Matched::Masked { value: BigInt::zero(), mask: BigInt::zero() },
            MatchKind::Lpm => Matched::Prefix { value: BigInt::zero(), length: BigInt::zero() },
            MatchKind::Range => Matched::Range { low: BigInt::zero(), high: ones(width) },
        }
    }

    /// The match of exactly this number.
    pub(crate) fn exactly(kind: MatchKind, width: u32, number: BigInt) -> Matched {
        match kind {
            MatchKind::Exact | MatchKind::Parameter => Matched::Number(number),
            MatchKind::Ternary | MatchKind::Optional => Matched::Masked { value: number, mask: ones(width) },
            MatchKind::Lpm => Matched::Prefix { value: number, length: width.into() },
            MatchKind::Range => Matched::Range { low: number.clone(), high: number },
        }
    }

    /// What a message says of a key of this kind; `None` if it is a match of another kind.
    pub(crate) fn read(field: &FieldMatchType, kind: MatchKind, width: u32) -> Option<Matched> {
        Some(match (field, kind) {
            (FieldMatchType::Exact(exact), MatchKind::Exact) => Matched::Number(number(&exact.value)),
            (FieldMatchType::Ternary(ternary), MatchKind::Ternary) => {
                Matched::Masked { value: number(&ternary.value), mask: number(&ternary.mask) }
            }
            (FieldMatchType::Lpm(lpm), MatchKind::Lpm) => {
                Matched::Prefix { value: number(&lpm.value), length: lpm.prefix_len.into() }
            }
            (FieldMatchType::Range(range), MatchKind::Range) => {
                Matched::Range { low: number(&range.low), high: number(&range.high) }
            }
            (FieldMatchType::Optional(optional), MatchKind::Optional) => {
                Matched::exactly(kind, width, number(&optional.value))
            }
            _ => return None,
        })
    }

    /// One part of it. Parts that it does not have are 0; the check refuses to ask for them.
    pub(crate) fn part(&self, part: Part) -> BigInt {
        match (self, part) {
            (Matched::Number(value) | Matched::Masked { value, .. } | Matched::Prefix { value, .. }, Part::Value) => {
                value.clone()
            }
            (Matched::Masked { mask, .. }, Part::Mask) => mask.clone(),
            (Matched::Prefix { length, .. }, Part::PrefixLength) => length.clone(),
            (Matched::Range { low, .. }, Part::Low) => low.clone(),
            (Matched::Range { high, .. }, Part::High) => high.clone(),
            _ => BigInt::zero(),
        }
    }
}

/// As P4 writes sets: `0x1`, `0x10 &&& 0xf0`, `0xa000000/8`, `0x1..0x9`.
impl fmt::Display for Matched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Matched::Number(value) => write!(f, "{value:#x}"),
            Matched::Masked { value, mask } => write!(f, "{value:#x} &&& {mask:#x}"),
            Matched::Prefix { value, length } => write!(f, "{value:#x}/{length}"),
            Matched::Range { low, high } => write!(f, "{low:#x}..{high:#x}"),
        }
    }
}
