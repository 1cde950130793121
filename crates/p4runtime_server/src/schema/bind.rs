//! Binding of P4Info's objects to the program's, by name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use diagnostics::{Diagnostics, SourceMap};
use ir::{MatchKind, Program};
use p4runtime_proto::config::{self, P4Info};

use super::{
    ActionSchema, ArraySchema, ControllerHeader, DataType, DigestSchema, FieldSchema, ProfileSchema, RegisterSchema,
    Schema, TableSchema, Translated, ValueEncoding, ValueSetSchema,
};

/// Returns all preambles.
pub(super) fn preambles(info: &P4Info) -> impl Iterator<Item = &config::Preamble> {
    let all = (info.tables.iter().map(|it| &it.preamble))
        .chain(info.actions.iter().map(|it| &it.preamble))
        .chain(info.action_profiles.iter().map(|it| &it.preamble))
        .chain(info.counters.iter().map(|it| &it.preamble))
        .chain(info.direct_counters.iter().map(|it| &it.preamble))
        .chain(info.meters.iter().map(|it| &it.preamble))
        .chain(info.direct_meters.iter().map(|it| &it.preamble))
        .chain(info.controller_packet_metadata.iter().map(|it| &it.preamble))
        .chain(info.value_sets.iter().map(|it| &it.preamble))
        .chain(info.registers.iter().map(|it| &it.preamble))
        .chain(info.digests.iter().map(|it| &it.preamble));
    all.flatten()
}

fn id_of(preamble: &Option<config::Preamble>) -> u32 {
    preamble.as_ref().map_or(0, |preamble| preamble.id)
}

fn name_of(preamble: &Option<config::Preamble>) -> &str {
    preamble.as_ref().map_or("", |preamble| &preamble.name)
}

/// Returns the encoding of values of a named type.
fn sdn(types: &SharedTranslator, type_name: &Option<config::P4NamedType>) -> ValueEncoding {
    match type_name.as_ref().and_then(|name| Translated::of(types, &name.name)) {
        Some(translated) => ValueEncoding::Translated(translated),
        None => ValueEncoding::Plain,
    }
}

/// The translated types, shared with their values.
type SharedTranslator = Arc<Mutex<crate::translation::ValueTranslator>>;

fn field(types: &SharedTranslator, described: &config::MatchField, width: u32, kind: MatchKind) -> FieldSchema {
    let sdn = sdn(types, &described.type_name);
    FieldSchema { id: described.id, name: described.name.clone(), width, kind, sdn }
}

/// Indexes the elements that exist in the program by their id.
fn by_id<'a, T: 'a, B>(all: &'a [T], bind: impl Fn(&'a T) -> Option<(u32, B)>) -> BTreeMap<u32, B> {
    all.iter().filter_map(bind).collect()
}

impl Schema {
    /// Binds a P4Info to its program. Objects that the program never uses, and therefore does not contain, are left
    /// out.
    pub fn new(program: Arc<Program>, info: P4Info) -> Schema {
        let types: SharedTranslator = Arc::new(Mutex::new(crate::translation::ValueTranslator::new(&info)));
        // Mistakes in annotations are reported when the program is compiled.
        let (mut map, mut ignored) = (SourceMap::new(), Diagnostics::new());
        let checker = p4_constraints::Checker::new(&info, &mut map, &mut ignored);
        let references = p4_constraints::References::new(&info, &mut map, &mut ignored);
        let actions = by_id(&info.actions, |it| Some((id_of(&it.preamble), action(&program, &types, it))));
        let tables = by_id(&info.tables, |it| Some((id_of(&it.preamble), table(&program, &info, &types, it)?)));
        let profiles = by_id(&info.action_profiles, |it| Some((id_of(&it.preamble), profile(&program, &tables, it)?)));
        let counters = by_id(&info.counters, |it| {
            let (ir, counter) = program.counters.iter().find(|(_, c)| c.name == name_of(&it.preamble))?;
            Some((id_of(&it.preamble), array(&it.preamble, ir, counter.size?)))
        });
        let meters = by_id(&info.meters, |it| {
            let (ir, meter) = program.meters.iter().find(|(_, m)| m.name == name_of(&it.preamble))?;
            Some((id_of(&it.preamble), array(&it.preamble, ir, meter.size?)))
        });
        let registers = by_id(&info.registers, |it| {
            let (ir, register) = program.registers.iter().find(|(_, r)| r.name == name_of(&it.preamble))?;
            let ty = it.type_spec.as_ref().and_then(|spec| DataType::of(spec, info.type_info.as_ref()));
            let ty = ty.filter(|ty| ty.width() == u64::from(register.width));
            let array = array(&it.preamble, ir, register.size);
            Some((id_of(&it.preamble), RegisterSchema { array, ty }))
        });
        let value_sets = by_id(&info.value_sets, |it| {
            let (ir, set) = program.value_sets.iter().find(|(_, set)| set.name == name_of(&it.preamble))?;
            let field =
                |(described, (_, width, kind)): (_, &(String, u32, MatchKind))| field(&types, described, *width, *kind);
            let fields = it.r#match.iter().zip(&set.fields).map(field).collect();
            let name = name_of(&it.preamble).to_owned();
            Some((id_of(&it.preamble), ValueSetSchema { id: id_of(&it.preamble), name, ir, fields, size: set.size }))
        });
        let mut digest_ids = BTreeMap::new();
        let digests = by_id(&info.digests, |it| {
            let ty = it.type_spec.as_ref().and_then(|spec| DataType::of(spec, info.type_info.as_ref()));
            let digest = DigestSchema { id: id_of(&it.preamble), name: name_of(&it.preamble).to_owned(), ty };
            Some((digest.id, digest))
        });
        for (ir, digest) in &program.digests {
            if let Some(described) = digests.values().find(|described| described.name == digest.name) {
                digest_ids.insert(ir, described.id);
            }
        }
        let header =
            |name: &str| ControllerHeader::of(&program, &info, name, |metadata| sdn(&types, &metadata.type_name));
        Schema {
            checker,
            references,
            table_ids: tables.values().map(|table| (table.ir, table.id)).collect(),
            action_ids: actions.values().filter_map(|action| Some((action.ir?, action.id))).collect(),
            packet_in: header("packet_in"),
            packet_out: header("packet_out"),
            digest_ids,
            tables,
            actions,
            profiles,
            counters,
            meters,
            registers,
            value_sets,
            digests,
            program,
            info,
        }
    }
}

fn array<Id>(preamble: &Option<config::Preamble>, ir: Id, size: u64) -> ArraySchema<Id> {
    ArraySchema { id: id_of(preamble), name: name_of(preamble).to_owned(), ir, size }
}

fn action(program: &Program, types: &SharedTranslator, described: &config::Action) -> ActionSchema {
    let name = name_of(&described.preamble).to_owned();
    let found = program.actions.iter().find(|(_, action)| action.name == name);
    let param = |(at, param): (usize, &config::action::Param)| {
        let slot = found.and_then(|(_, action)| action.params.get(at)).map(|param| param.slot);
        let width = slot.map_or(param.bitwidth as u32, |slot| program.slots[slot].width);
        let sdn = sdn(types, &param.type_name);
        FieldSchema { id: param.id, name: param.name.clone(), width, kind: MatchKind::Exact, sdn }
    };
    let params = described.params.iter().enumerate().map(param).collect();
    ActionSchema { id: id_of(&described.preamble), name, ir: found.map(|(id, _)| id), params }
}

fn table(program: &Program, info: &P4Info, types: &SharedTranslator, described: &config::Table) -> Option<TableSchema> {
    let name = name_of(&described.preamble);
    let ir = program.table_named(name)?;
    let table = &program.tables[ir];
    let keys = table.keys.iter().filter(|key| key.kind != MatchKind::Selector);
    let direct = |ids: &dyn Fn(u32) -> bool| described.direct_resource_ids.iter().copied().find(|id| ids(*id));
    Some(TableSchema {
        id: id_of(&described.preamble),
        name: name.to_owned(),
        ir,
        fields: described
            .match_fields
            .iter()
            .zip(keys)
            .map(|(it, key)| field(types, it, key.width, key.kind))
            .collect(),
        actions: described.action_refs.iter().map(|action| action.id).collect(),
        profile: Some(described.implementation_id).filter(|id| *id != 0),
        counter: direct(&|id| info.direct_counters.iter().any(|it| id_of(&it.preamble) == id)),
        meter: direct(&|id| info.direct_meters.iter().any(|it| id_of(&it.preamble) == id)),
        idle_timeout: table.idle_timeout,
        constant: table.const_entries,
        has_constants: table.const_entries || table.entries.iter().any(|entry| entry.constant),
    })
}

fn profile(
    program: &Program,
    tables: &BTreeMap<u32, TableSchema>,
    described: &config::ActionProfile,
) -> Option<ProfileSchema> {
    use config::action_profile::SelectorSizeSemantics;
    let name = name_of(&described.preamble);
    let (ir, _) = program.profiles.iter().find(|(_, profile)| profile.name == name)?;
    let id = id_of(&described.preamble);
    let actions = tables.values().find(|table| table.profile == Some(id)).map(|table| table.actions.clone());
    let (counts_members, max_member_weight) = match &described.selector_size_semantics {
        Some(SelectorSizeSemantics::SumOfMembers(members)) => (true, members.max_member_weight),
        _ => (false, 0),
    };
    Some(ProfileSchema {
        id,
        name: name.to_owned(),
        ir,
        selector: described.with_selector,
        actions: actions.unwrap_or_default(),
        max_group_size: described.max_group_size,
        max_member_weight,
        counts_members,
        weights_disallowed: described.weights_disallowed,
    })
}
