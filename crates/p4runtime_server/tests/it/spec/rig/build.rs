//! Messages in short notation: names become ids by a P4Info.

use compiler::Source;
use diagnostics::{Diagnostics, SourceMap};
use p4runtime_proto::config::{P4Info, Preamble};
use p4runtime_proto::v1;
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::field_match::{self, FieldMatchType};
use p4runtime_proto::v1::table_action;

/// Splits 128 bits into two halves.
pub fn uint128(number: u128) -> v1::Uint128 {
    v1::Uint128 { high: (number >> 64) as u64, low: number as u64 }
}

/// Encodes a number as short as possible.
pub fn bytes(number: u64) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count().min(7);
    bytes[zeros..].to_vec()
}

/// Compiles a program. Returns it with its P4Info, or `None` if it has errors.
pub fn compile(source: &str) -> Option<(ir::Program, P4Info)> {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let source = Source::new("program.p4", source);
    let compiled = compiler::compile(&source, &v1model::V1Model, &mut map, &mut diagnostics)?;
    Some((compiled.ir, compiled.p4info))
}

/// Returns the config of a program: its source and its P4Info, which is empty if the program has errors.
pub fn config(source: &str) -> v1::ForwardingPipelineConfig {
    let p4info = Some(compile(source).map(|(_, info)| info).unwrap_or_default());
    v1::ForwardingPipelineConfig { p4info, p4_device_config: source.as_bytes().to_vec(), ..Default::default() }
}

/// Returns the id of the object with this name or a name that ends with it after a dot.
#[track_caller]
pub fn id(info: &P4Info, name: &str) -> u32 {
    let digests = info.digests.iter().map(|of| &of.preamble);
    let preambles = (info.tables.iter().map(|of| &of.preamble))
        .chain(info.actions.iter().map(|of| &of.preamble))
        .chain(info.action_profiles.iter().map(|of| &of.preamble))
        .chain(info.counters.iter().map(|of| &of.preamble))
        .chain(info.meters.iter().map(|of| &of.preamble))
        .chain(info.registers.iter().map(|of| &of.preamble))
        .chain(info.value_sets.iter().map(|of| &of.preamble))
        .chain(digests)
        .flatten();
    let ends = |preamble: &&Preamble| preamble.name == name || preamble.name.ends_with(&format!(".{name}"));
    preambles.into_iter().find(ends).unwrap_or_else(|| panic!("P4Info has no `{name}`")).id
}

/// Returns an empty entry of a table.
pub fn entry(info: &P4Info, table: &str) -> v1::TableEntry {
    v1::TableEntry { table_id: id(info, table), ..Default::default() }
}

/// Returns a call of an action with arguments in the order of its parameters.
pub fn call(info: &P4Info, action: &str, arguments: &[u64]) -> v1::Action {
    let argument = |(at, value): (usize, &u64)| v1::action::Param { param_id: at as u32 + 1, value: bytes(*value) };
    v1::Action { action_id: id(info, action), params: arguments.iter().enumerate().map(argument).collect() }
}

/// Methods for chaining: `entry(…).exact(1, 7).does(call(…))`.
pub trait Build: Sized {
    fn field(self, field_id: u32, kind: FieldMatchType) -> Self;
    fn exact(self, field: u32, value: u64) -> Self {
        self.field(field, FieldMatchType::Exact(field_match::Exact { value: bytes(value) }))
    }
    fn lpm(self, field: u32, value: u64, prefix_len: i32) -> Self {
        self.field(field, FieldMatchType::Lpm(field_match::Lpm { value: bytes(value), prefix_len }))
    }
    fn ternary(self, field: u32, value: u64, mask: u64) -> Self {
        self.field(field, FieldMatchType::Ternary(field_match::Ternary { value: bytes(value), mask: bytes(mask) }))
    }
    fn range(self, field: u32, low: u64, high: u64) -> Self {
        self.field(field, FieldMatchType::Range(field_match::Range { low: bytes(low), high: bytes(high) }))
    }
    fn optional(self, field: u32, value: u64) -> Self {
        self.field(field, FieldMatchType::Optional(field_match::Optional { value: bytes(value) }))
    }
    fn priority(self, priority: i32) -> Self;
    fn action(self, kind: table_action::Type) -> Self;
    fn does(self, action: v1::Action) -> Self {
        self.action(table_action::Type::Action(action))
    }
    fn default_action(self) -> Self;
}

impl Build for v1::TableEntry {
    fn field(mut self, field_id: u32, kind: FieldMatchType) -> Self {
        self.r#match.push(v1::FieldMatch { field_id, field_match_type: Some(kind) });
        self
    }
    fn priority(self, priority: i32) -> Self {
        v1::TableEntry { priority, ..self }
    }
    fn action(self, kind: table_action::Type) -> Self {
        v1::TableEntry { action: Some(v1::TableAction { r#type: Some(kind) }), ..self }
    }
    fn default_action(self) -> Self {
        v1::TableEntry { is_default_action: true, ..self }
    }
}

/// Types that can be written and read.
pub trait IntoEntity {
    fn entity(self) -> v1::Entity;
}

impl<T: Into<Wrapped>> IntoEntity for T {
    fn entity(self) -> v1::Entity {
        v1::Entity { entity: Some(self.into().0) }
    }
}

/// A message as an entity.
pub struct Wrapped(pub Kind);

macro_rules! entities {
    ($($message:ident => $kind:ident),* $(,)?) => {
        $(impl From<v1::$message> for Wrapped {
            fn from(message: v1::$message) -> Wrapped {
                Wrapped(Kind::$kind(message))
            }
        })*
    };
}

entities! {
    TableEntry => TableEntry,
    ActionProfileMember => ActionProfileMember,
    ActionProfileGroup => ActionProfileGroup,
    MeterEntry => MeterEntry,
    DirectMeterEntry => DirectMeterEntry,
    CounterEntry => CounterEntry,
    DirectCounterEntry => DirectCounterEntry,
    PacketReplicationEngineEntry => PacketReplicationEngineEntry,
    ValueSetEntry => ValueSetEntry,
    RegisterEntry => RegisterEntry,
    DigestEntry => DigestEntry,
    ExternEntry => ExternEntry,
}

/// A multicast group or a clone session, as an entity.
impl From<v1::MulticastGroupEntry> for Wrapped {
    fn from(group: v1::MulticastGroupEntry) -> Wrapped {
        let kind = v1::packet_replication_engine_entry::Type::MulticastGroupEntry(group);
        v1::PacketReplicationEngineEntry { r#type: Some(kind) }.into()
    }
}

impl From<v1::CloneSessionEntry> for Wrapped {
    fn from(session: v1::CloneSessionEntry) -> Wrapped {
        let kind = v1::packet_replication_engine_entry::Type::CloneSessionEntry(session);
        v1::PacketReplicationEngineEntry { r#type: Some(kind) }.into()
    }
}

/// Returns a frame with [`super::EVERY`]'s `data_t`.
pub fn data(a: u16, b: u16, c: u32, d: u8, e: u8) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(a.to_be_bytes());
    out.extend(b.to_be_bytes());
    out.extend(c.to_be_bytes());
    out.extend([d, e]);
    out.extend([0x55; 54]);
    out
}

/// Inserts until the table is full. Returns its capacity: at least the size in the program, and bounded. Batches are
/// small, since all errors of a batch are sent in the trailer of its response.
#[track_caller]
pub fn fill(rig: &super::Rig, insert: impl Fn(u64) -> v1::Update) -> u64 {
    const BATCH: u64 = 32;
    for batch in 0..1_000 {
        let first = batch * BATCH;
        if let Err(failed) = rig.write((first..first + BATCH).map(&insert).collect()) {
            let codes = failed.codes();
            let fits = codes.iter().take_while(|code| **code == super::Code::Ok).count();
            assert!(codes[fits..].iter().all(|code| *code == super::Code::ResourceExhausted), "{codes:?}");
            return first + fits as u64;
        }
    }
    panic!("there is room without end");
}
