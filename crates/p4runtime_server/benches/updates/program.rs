//! The program, and entries for its tables.

use compiler::Source;
use p4runtime_proto::config::P4Info;
use p4runtime_proto::v1;
use v1::field_match::{Exact, FieldMatchType, Lpm, Ternary};
use v1::table_action::Type as Target;

/// The program of all measurements but that of kept arrays.
pub const UPDATES: &str = include_str!("updates.p4");

/// Returns a program and its P4Info.
pub fn compile(source: &str) -> (ir::Program, P4Info) {
    let compiled = compiler::expect_program(&Source::new("program.p4", source), &v1model::V1Model);
    (compiled.ir, compiled.p4info)
}

/// A table and its entries.
#[derive(Clone, Copy)]
pub struct TableFill {
    /// The word that chooses it.
    pub name: &'static str,
    /// Description of the entries.
    pub entries: &'static str,
    table: &'static str,
    key: fn(u64) -> Vec<FieldMatchType>,
    has_priority: bool,
}

pub const EXACT: TableFill = TableFill {
    name: "exact",
    entries: "48-bit addresses, as random as a hash; an action with 57 bits of arguments",
    table: "I.exact_table",
    key: |number| vec![FieldMatchType::Exact(Exact { value: bytes(station(number)) })],
    has_priority: false,
};

pub const LPM: TableFill = TableFill {
    name: "lpm",
    entries: "IPv4 prefixes, one in eight /22 and the others /24; an action with 57 bits of arguments",
    table: "I.lpm_table",
    key: |number| {
        let (address, length) = prefix(number);
        vec![FieldMatchType::Lpm(Lpm { value: bytes(address.into()), prefix_len: length as i32 })]
    },
    has_priority: false,
};

pub const TERNARY: TableFill = TableFill {
    name: "ternary",
    entries: "pairs of IPv4 addresses under 32 pairs of masks, with 1024 priorities; an action without arguments",
    table: "I.ternary_table",
    key: pair,
    has_priority: true,
};

impl TableFill {
    /// Returns the entry with this number. Numbers below 2^21 have different keys.
    pub fn entry(&self, info: &P4Info, number: u64) -> v1::TableEntry {
        let table = info.tables.iter().find(|table| table.preamble.as_ref().is_some_and(|it| it.name == self.table));
        let table = table.expect("the program has the table");
        let action = info
            .actions
            .iter()
            .find(|action| action.preamble.as_ref().is_some_and(|it| it.id == table.action_refs[0].id));
        let argument = |param: &p4runtime_proto::config::action::Param| v1::action::Param {
            param_id: param.id,
            value: bytes(if param.bitwidth < 16 { 2 } else { 0x0200_0000_0000 | number }),
        };
        let action = action.expect("the table has actions");
        let call =
            v1::Action { action_id: table.action_refs[0].id, params: action.params.iter().map(argument).collect() };
        let given = (self.key)(number)
            .into_iter()
            .zip(&table.match_fields)
            .map(|(given, field)| v1::FieldMatch { field_id: field.id, field_match_type: Some(given) });
        v1::TableEntry {
            table_id: table.preamble.as_ref().map_or(0, |preamble| preamble.id),
            r#match: given.collect(),
            action: Some(v1::TableAction { r#type: Some(Target::Action(call)) }),
            priority: if self.has_priority { 1 + (mix(number) % 1024) as i32 } else { 0 },
            ..Default::default()
        }
    }
}

/// Returns the address of a station.
pub fn station(number: u64) -> u64 {
    // An odd factor has an inverse, so no two stations share an address.
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4b) & 0xffff_ffff_ffff;
    mixed ^ mixed >> 24
}

/// Returns a prefix: its first address and its length.
pub fn prefix(number: u64) -> (u32, u32) {
    let length = if number.is_multiple_of(8) { 22 } else { 24 };
    let network = number.wrapping_mul(0x9e37_79b1) & ((1 << length) - 1);
    ((network as u32) << (32 - length), length)
}

fn pair(number: u64) -> Vec<FieldMatchType> {
    let (masks, at) = (number % 32, number / 32);
    let (source_length, target_length) = (16 + 2 * (masks % 8) as u32, 8 * (masks / 8) as u32);
    let source = (at.wrapping_mul(0x9e35) as u32) << 16 | mix(number) as u32 >> 16;
    let ternary = |value: u32, length: u32| {
        let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
        FieldMatchType::Ternary(Ternary { value: bytes((value & mask).into()), mask: bytes(mask.into()) })
    };
    let target = (target_length > 0).then(|| ternary(mix(at) as u32, target_length));
    [Some(ternary(source, source_length)), target].into_iter().flatten().collect()
}

fn mix(number: u64) -> u64 {
    rng::SplitMix64::new(number).next_u64()
}

/// Encodes a number as short as possible.
fn bytes(number: u64) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    bytes[(number.leading_zeros() as usize / 8).min(7)..].to_vec()
}
