//! Packets of `testdata/kinds.p4`: random bytes, with the values that rules can test.

use rng::SplitMix64;

/// Notation of a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldNotation {
    Number,
    Text,
    Mac,
    Ipv4,
    Ipv6,
}

/// Match kind of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Values,
    Prefixes,
    Ranges,
}

/// A field as the format declares it. The declaration is repeated here so that the format's reader is tested, too.
pub struct Field {
    pub name: &'static str,
    /// Headers that may contain it.
    pub headers: &'static [usize],
    pub width: u32,
    pub kind: FieldNotation,
    pub asked: Asked,
}

pub const HEADERS: [&str; 6] = ["ethernet", "ipv4", "ipv6", "kind", "order", "trade"];
const ETHERNET: usize = 0;
const IPV4: usize = 1;
const IPV6: usize = 2;
const KIND: usize = 3;
const ORDER: usize = 4;
const TRADE: usize = 5;

const fn field(name: &'static str, headers: &'static [usize], width: u32, kind: FieldNotation, asked: Asked) -> Field {
    Field { name, headers, width, kind, asked }
}

/// Fields in packet order; `shares`, which two headers have, is listed once.
pub const FIELDS: [Field; 17] = [
    field("mac", &[ETHERNET], 48, FieldNotation::Mac, Asked::Values),
    field("maker", &[ETHERNET], 48, FieldNotation::Mac, Asked::Ranges),
    field("type", &[ETHERNET], 16, FieldNotation::Number, Asked::Values),
    field("src4", &[IPV4], 32, FieldNotation::Ipv4, Asked::Prefixes),
    field("dst4", &[IPV4], 32, FieldNotation::Ipv4, Asked::Ranges),
    field("src6", &[IPV6], 128, FieldNotation::Ipv6, Asked::Prefixes),
    field("dst6", &[IPV6], 128, FieldNotation::Ipv6, Asked::Ranges),
    field("kind", &[KIND], 8, FieldNotation::Number, Asked::Values),
    field("urgent", &[ORDER], 1, FieldNotation::Number, Asked::Values),
    field("level", &[ORDER], 3, FieldNotation::Number, Asked::Ranges),
    field("weight", &[ORDER], 12, FieldNotation::Number, Asked::Ranges),
    field("shares", &[ORDER, TRADE], 24, FieldNotation::Number, Asked::Ranges),
    field("name", &[ORDER], 64, FieldNotation::Text, Asked::Values),
    field("port", &[ORDER], 16, FieldNotation::Number, Asked::Prefixes),
    field("large", &[TRADE], 100, FieldNotation::Number, Asked::Ranges),
    field("bit", &[TRADE], 1, FieldNotation::Number, Asked::Ranges),
    field("odd", &[TRADE], 3, FieldNotation::Number, Asked::Values),
];

/// Texts that rules use.
pub const NAMES: [&str; 4] = ["A", "BB", "GOOGL", "X1234567"];

pub fn text(of: &str) -> u128 {
    of.bytes().chain(std::iter::repeat(b' ')).take(8).fold(0, |value, byte| value << 8 | u128::from(byte))
}

/// Returns the largest value of a field.
pub fn max(width: u32) -> u128 {
    u128::MAX >> (128 - width)
}

/// Returns a value for rules and packets. Values are few, so that all combinations occur, and include the bounds of the
/// domain.
pub fn value(rng: &mut SplitMix64, field: &Field) -> u128 {
    let max = max(field.width);
    match (field.name, field.kind) {
        ("type", _) => rng.pick(&[(2, 0x800), (2, 0x86dd), (1, 5)]),
        ("kind", _) => rng.pick(&[(2, 1), (2, 2), (1, 7)]),
        (_, FieldNotation::Text) => text(NAMES[rng.below(4) as usize]),
        _ => {
            let near = [0, 1, 2, 5, max / 2, max / 2 + 1, max - 1, max, max / 3, max / 3 + 1];
            near[rng.below(near.len() as u64) as usize] & max
        }
    }
}

/// A packet as rules see it.
#[derive(Clone, Debug)]
pub struct Packet {
    pub valid: [bool; 6],
    pub values: [u128; 17],
    pub bytes: Vec<u8>,
}

impl Packet {
    pub fn random(rng: &mut SplitMix64) -> Packet {
        let mut values = [0; 17];
        for (value, field) in values.iter_mut().zip(&FIELDS) {
            *value = self::value(rng, field);
            // Includes values that no rule tests.
            if field.kind != FieldNotation::Text
                && field.width > 3
                && rng.percent(20)
                && !["type", "kind"].contains(&field.name)
            {
                *value ^= 1 << rng.below(field.width.into());
            }
        }
        let of = |name: &str| values[FIELDS.iter().position(|field| field.name == name).expect("a field")];
        let (etype, kind) = (of("type"), of("kind"));
        let valid = [true, etype == 0x800, etype == 0x86dd, true, kind == 1, kind == 2];
        let mut bits = Vec::new();
        for header in (0..HEADERS.len()).filter(|header| valid[*header]) {
            let mut shown: Vec<(u128, u32)> = FIELDS
                .iter()
                .zip(values)
                .filter(|(field, _)| field.headers.contains(&header))
                .map(|(field, value)| (value, field.width))
                .collect();
            // Space for the mark.
            shown.extend((header == KIND).then_some((0, 8)));
            let each =
                shown.into_iter().flat_map(|(value, width)| (0..width).rev().map(move |at| value >> at & 1 == 1));
            bits.extend(each);
        }
        assert_eq!(bits.len() % 8, 0, "headers are whole bytes");
        let byte = |bits: &[bool]| bits.iter().fold(0u8, |byte, bit| byte << 1 | u8::from(*bit));
        let mut bytes: Vec<u8> = bits.chunks(8).map(byte).collect();
        bytes.extend(b"payload");
        Packet { valid, values, bytes }
    }

    /// Returns the bytes after `mark` has written to them.
    pub fn marked(&self, mark: u8) -> Vec<u8> {
        let at = 14 + 8 * usize::from(self.valid[IPV4]) + 32 * usize::from(self.valid[IPV6]) + 1;
        let mut bytes = self.bytes.clone();
        bytes[at] = mark;
        bytes
    }
}
