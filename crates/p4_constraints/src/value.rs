//! Reads the values of an entry for restrictions.

use std::fmt;

use num_bigint::{BigInt, Sign};
use num_traits::{One, Zero};
use p4runtime_proto::v1::field_match::FieldMatchType;

/// Match kind of a key. A parameter of an action is a plain number.
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
    /// Returns the parts of a key with this match kind.
    pub(crate) fn parts(self) -> &'static [KeyPart] {
        match self {
            MatchKind::Exact => &[KeyPart::Value],
            MatchKind::Ternary | MatchKind::Optional => &[KeyPart::Value, KeyPart::Mask],
            MatchKind::Lpm => &[KeyPart::Value, KeyPart::PrefixLength],
            MatchKind::Range => &[KeyPart::Low, KeyPart::High],
            MatchKind::Parameter => &[],
        }
    }

    /// Returns its name in P4.
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
pub(crate) enum KeyPart {
    Value,
    Mask,
    PrefixLength,
    Low,
    High,
}

impl KeyPart {
    /// Returns its name after `::`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            KeyPart::Value => "value",
            KeyPart::Mask => "mask",
            KeyPart::PrefixLength => "prefix_length",
            KeyPart::Low => "low",
            KeyPart::High => "high",
        }
    }
}

/// A key or a parameter that restrictions may name.
#[derive(Clone, Debug)]
pub(crate) struct KeySpec {
    /// Id in entries.
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) kind: MatchKind,
    /// Width in bits. Keys that are strings to the control plane have width 0: every number beside them is 0. `None`
    /// for fields that restrictions cannot read: matches of other kinds, and parameters that are strings.
    pub(crate) width: Option<u32>,
}

impl KeySpec {
    /// Whether it is a string to the control plane (`@p4runtime_translation` with `string`).
    pub(crate) fn is_string(&self) -> bool {
        self.width == Some(0)
    }
}

/// The value of an entry for one key, or of an action for one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MatchValue {
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

/// Returns the number with all of its `width` bits set.
pub(crate) fn ones(width: u32) -> BigInt {
    (BigInt::one() << width) - 1
}

/// Converts an unsigned number, most significant byte first. A string is the number of its bytes.
pub(crate) fn number(bytes: &[u8]) -> BigInt {
    BigInt::from_bytes_be(Sign::Plus, bytes)
}

impl MatchValue {
    /// Formats the match of a key that is a string: its bytes as text.
    pub(crate) fn as_string(&self) -> String {
        let bytes = match self.part(KeyPart::Value) {
            zero if zero.is_zero() => Vec::new(),
            value => value.to_bytes_be().1,
        };
        format!("{:?}", String::from_utf8_lossy(&bytes))
    }

    /// Returns the meaning of an omitted key (P4Runtime specification, section on match formats): it matches
    /// everything.
    pub(crate) fn left_out(kind: MatchKind, width: u32) -> MatchValue {
        match kind {
            MatchKind::Exact | MatchKind::Parameter => MatchValue::Number(BigInt::zero()),
            MatchKind::Ternary | MatchKind::Optional => {
                MatchValue::Masked { value: BigInt::zero(), mask: BigInt::zero() }
            }
            MatchKind::Lpm => MatchValue::Prefix { value: BigInt::zero(), length: BigInt::zero() },
            MatchKind::Range => MatchValue::Range { low: BigInt::zero(), high: ones(width) },
        }
    }

    /// Returns the match of exactly this number.
    pub(crate) fn exactly(kind: MatchKind, width: u32, number: BigInt) -> MatchValue {
        match kind {
            MatchKind::Exact | MatchKind::Parameter => MatchValue::Number(number),
            MatchKind::Ternary | MatchKind::Optional => MatchValue::Masked { value: number, mask: ones(width) },
            MatchKind::Lpm => MatchValue::Prefix { value: number, length: width.into() },
            MatchKind::Range => MatchValue::Range { low: number.clone(), high: number },
        }
    }

    /// Converts the match of a message for a key of this kind; `None` if it is a match of another kind.
    pub(crate) fn read(field: &FieldMatchType, kind: MatchKind, width: u32) -> Option<MatchValue> {
        Some(match (field, kind) {
            (FieldMatchType::Exact(exact), MatchKind::Exact) => MatchValue::Number(number(&exact.value)),
            (FieldMatchType::Ternary(ternary), MatchKind::Ternary) => {
                MatchValue::Masked { value: number(&ternary.value), mask: number(&ternary.mask) }
            }
            (FieldMatchType::Lpm(lpm), MatchKind::Lpm) => {
                MatchValue::Prefix { value: number(&lpm.value), length: lpm.prefix_len.into() }
            }
            (FieldMatchType::Range(range), MatchKind::Range) => {
                MatchValue::Range { low: number(&range.low), high: number(&range.high) }
            }
            (FieldMatchType::Optional(optional), MatchKind::Optional) => {
                MatchValue::exactly(kind, width, number(&optional.value))
            }
            _ => return None,
        })
    }

    /// Returns one of its parts. Parts that it does not have are 0; the type check rejects expressions that read them.
    pub(crate) fn part(&self, part: KeyPart) -> BigInt {
        match (self, part) {
            (
                MatchValue::Number(value) | MatchValue::Masked { value, .. } | MatchValue::Prefix { value, .. },
                KeyPart::Value,
            ) => value.clone(),
            (MatchValue::Masked { mask, .. }, KeyPart::Mask) => mask.clone(),
            (MatchValue::Prefix { length, .. }, KeyPart::PrefixLength) => length.clone(),
            (MatchValue::Range { low, .. }, KeyPart::Low) => low.clone(),
            (MatchValue::Range { high, .. }, KeyPart::High) => high.clone(),
            _ => BigInt::zero(),
        }
    }
}

/// Formats the match as P4 writes sets: `0x1`, `0x10 &&& 0xf0`, `0xa000000/8`, `0x1..0x9`.
impl fmt::Display for MatchValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MatchValue::Number(value) => write!(f, "{value:#x}"),
            MatchValue::Masked { value, mask } => write!(f, "{value:#x} &&& {mask:#x}"),
            MatchValue::Prefix { value, length } => write!(f, "{value:#x}/{length}"),
            MatchValue::Range { low, high } => write!(f, "{low:#x}..{high:#x}"),
        }
    }
}
