//! Binds P4Info's objects to the program's, by name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use diagnostics::{Diagnostics, SourceMap};
use ir::{ActionId, MatchKind, ProfileId, Program, TableId};
use p4runtime_proto::config::{self, P4Info};

use super::{
    ActionSchema, ArraySchema, ControllerHeader, DataType, DigestSchema, FieldSchema, ProfileSchema, RegisterSchema,
    Schema, TableSchema, Translated, ValueEncoding, ValueSetSchema,
};

/// Returns all preambles.
pub(super) fn preambles(info: &P4Info) -> impl Iterator<Item = &config::Preamble> {
    let others = (info.actions.iter().map(|it| &it.preamble))
        .chain(info.direct_counters.iter().map(|it| &it.preamble))
        .chain(info.direct_meters.iter().map(|it| &it.preamble))
        .chain(info.controller_packet_metadata.iter().map(|it| &it.preamble));
    readable_preambles(info).chain(others.flatten())
}

/// Returns the preambles of what clients read and write: everything but actions, packet headers, and counters and
/// meters of entries, which belong to their tables.
pub(super) fn readable_preambles(info: &P4Info) -> impl Iterator<Item = &config::Preamble> {
    let all = (info.tables.iter().map(|it| &it.preamble))
        .chain(info.action_profiles.iter().map(|it| &it.preamble))
        .chain(info.counters.iter().map(|it| &it.preamble))
        .chain(info.meters.iter().map(|it| &it.preamble))
        .chain(info.value_sets.iter().map(|it| &it.preamble))
        .chain(info.registers.iter().map(|it| &it.preamble))
        .chain(info.digests.iter().map(|it| &it.preamble));
    all.flatten()
}

fn id_of(preamble: &Option<config::Preamble>) -> u32 {
    #[cfg(test)]
    crate::steps::count();
    preamble.as_ref().map_or(0, |preamble| preamble.id)
}

fn name_of(preamble: &Option<config::Preamble>) -> &str {
    #[cfg(test)]
    crate::steps::count();
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

/// Indexes objects of the program by name. Of several with the same name, the first counts.
fn by_name<'a, T>(all: impl DoubleEndedIterator<Item = (&'a str, T)>) -> BTreeMap<&'a str, T> {
    all.rev().collect()
}

/// The objects that tables refer to.
struct TableContext<'a> {
    /// Tables of the program by name.
    tables: BTreeMap<&'a str, TableId>,
    /// Ids of the direct counters.
    counters: BTreeSet<u32>,
    /// Ids of the direct meters.
    meters: BTreeSet<u32>,
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
        let of_program = by_name(program.actions.iter().map(|(ir, action)| (&*action.name, ir)));
        let actions = by_id(&info.actions, |it| {
            let ir = of_program.get(name_of(&it.preamble)).copied();
            Some((id_of(&it.preamble), action(&program, ir, &types, it)))
        });
        let context = TableContext {
            tables: by_name(program.tables.iter().map(|(ir, table)| (&*table.name, ir))),
            counters: info.direct_counters.iter().map(|it| id_of(&it.preamble)).collect(),
            meters: info.direct_meters.iter().map(|it| id_of(&it.preamble)).collect(),
        };
        let tables = by_id(&info.tables, |it| Some((id_of(&it.preamble), table(&program, &context, &types, it)?)));
        // Of the tables with the same profile, the first has its actions.
        let table_of: BTreeMap<u32, &TableSchema> =
            tables.values().rev().filter_map(|table| Some((table.profile?, table))).collect();
        let of_program = by_name(program.profiles.iter().map(|(ir, profile)| (&*profile.name, ir)));
        let profiles = by_id(&info.action_profiles, |it| {
            let ir = *of_program.get(name_of(&it.preamble))?;
            Some((id_of(&it.preamble), profile(ir, &table_of, it)))
        });
        let of_program = by_name(program.counters.iter().map(|(ir, counter)| (&*counter.name, (ir, counter))));
        let counters = by_id(&info.counters, |it| {
            let (ir, counter) = *of_program.get(name_of(&it.preamble))?;
            Some((id_of(&it.preamble), array(&it.preamble, ir, counter.size?)))
        });
        let of_program = by_name(program.meters.iter().map(|(ir, meter)| (&*meter.name, (ir, meter))));
        let meters = by_id(&info.meters, |it| {
            let (ir, meter) = *of_program.get(name_of(&it.preamble))?;
            Some((id_of(&it.preamble), array(&it.preamble, ir, meter.size?)))
        });
        let of_program = by_name(program.registers.iter().map(|(ir, register)| (&*register.name, (ir, register))));
        let registers = by_id(&info.registers, |it| {
            let (ir, register) = *of_program.get(name_of(&it.preamble))?;
            let ty = it.type_spec.as_ref().and_then(|spec| DataType::of(spec, info.type_info.as_ref()));
            let ty = ty.filter(|ty| ty.width() == u64::from(register.width));
            let array = array(&it.preamble, ir, register.size);
            Some((id_of(&it.preamble), RegisterSchema { array, ty }))
        });
        let of_program = by_name(program.value_sets.iter().map(|(ir, set)| (&*set.name, (ir, set))));
        let value_sets = by_id(&info.value_sets, |it| {
            let (ir, set) = *of_program.get(name_of(&it.preamble))?;
            let field =
                |(described, (_, width, kind)): (_, &(String, u32, MatchKind))| field(&types, described, *width, *kind);
            let fields = it.r#match.iter().zip(&set.fields).map(field).collect();
            let name = name_of(&it.preamble).to_owned();
            Some((id_of(&it.preamble), ValueSetSchema { id: id_of(&it.preamble), name, ir, fields, size: set.size }))
        });
        let digests = by_id(&info.digests, |it| {
            let ty = it.type_spec.as_ref().and_then(|spec| DataType::of(spec, info.type_info.as_ref()));
            let digest = DigestSchema { id: id_of(&it.preamble), name: name_of(&it.preamble).to_owned(), ty };
            Some((digest.id, digest))
        });
        let described = by_name(digests.values().map(|digest| (&*digest.name, digest.id)));
        let digest_ids =
            program.digests.iter().filter_map(|(ir, digest)| Some((ir, *described.get(&*digest.name)?))).collect();
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

fn action(
    program: &Program,
    ir: Option<ActionId>,
    types: &SharedTranslator,
    described: &config::Action,
) -> ActionSchema {
    let name = name_of(&described.preamble).to_owned();
    let param = |(at, param): (usize, &config::action::Param)| {
        let slot = ir.and_then(|ir| program.actions[ir].params.get(at)).map(|param| param.slot);
        let width = slot.map_or(param.bitwidth as u32, |slot| program.slots[slot].width);
        let sdn = sdn(types, &param.type_name);
        FieldSchema { id: param.id, name: param.name.clone(), width, kind: MatchKind::Exact, sdn }
    };
    let params = described.params.iter().enumerate().map(param).collect();
    ActionSchema { id: id_of(&described.preamble), name, ir, params }
}

fn table(
    program: &Program,
    context: &TableContext<'_>,
    types: &SharedTranslator,
    described: &config::Table,
) -> Option<TableSchema> {
    let name = name_of(&described.preamble);
    let ir = *context.tables.get(name)?;
    let table = &program.tables[ir];
    let keys = table.keys.iter().filter(|key| key.kind != MatchKind::Selector);
    let direct = |ids: &BTreeSet<u32>| described.direct_resource_ids.iter().copied().find(|id| ids.contains(id));
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
        counter: direct(&context.counters),
        meter: direct(&context.meters),
        idle_timeout: table.idle_timeout,
        constant: table.const_entries,
        has_constants: table.const_entries || table.entries.iter().any(|entry| entry.constant),
    })
}

/// Binds a profile. `table_of` has a table of each profile by the profile's id.
fn profile(ir: ProfileId, table_of: &BTreeMap<u32, &TableSchema>, described: &config::ActionProfile) -> ProfileSchema {
    use config::action_profile::SelectorSizeSemantics;
    let id = id_of(&described.preamble);
    let actions = table_of.get(&id).map(|table| table.actions.clone());
    let (counts_members, max_member_weight) = match &described.selector_size_semantics {
        Some(SelectorSizeSemantics::SumOfMembers(members)) => (true, members.max_member_weight),
        _ => (false, 0),
    };
    ProfileSchema {
        id,
        name: name_of(&described.preamble).to_owned(),
        ir,
        selector: described.with_selector,
        actions: actions.unwrap_or_default(),
        max_group_size: described.max_group_size,
        max_member_weight,
        counts_members,
        weights_disallowed: described.weights_disallowed,
    }
}

#[cfg(test)]
mod tests {
    use p4runtime_proto::config::{ActionProfile, Counter, DirectCounter, DirectMeter, Preamble};

    use super::*;
    use crate::steps;

    fn preamble(kind: u32, number: u32) -> Option<Preamble> {
        Some(Preamble { id: kind << 24 | number, name: format!("object.{kind}.{number}"), ..Default::default() })
    }

    /// Binds `n` counters, and a table that names `n` objects which do not exist as its direct resources.
    fn bind(n: u32) {
        let mut program = Program::default();
        for at in 1..=n {
            let name = format!("object.5.{at}");
            program.counters.push(ir::Counter {
                name,
                unit: ir::Unit::Packets,
                size: Some(1),
                annotations: Vec::new(),
            });
        }
        let table = config::Table {
            preamble: preamble(2, 1),
            direct_resource_ids: (1..=n).map(|number| 9 << 24 | number).collect(),
            ..Default::default()
        };
        program.tables.push(ir::Table::new(name_of(&table.preamble)));
        let each = 1..=n;
        let info = P4Info {
            tables: vec![table],
            counters: each.clone().map(|at| Counter { preamble: preamble(5, at), ..Default::default() }).collect(),
            action_profiles: each
                .clone()
                .map(|at| ActionProfile { preamble: preamble(6, at), ..Default::default() })
                .collect(),
            direct_counters: each
                .clone()
                .map(|at| DirectCounter { preamble: preamble(3, at), ..Default::default() })
                .collect(),
            direct_meters: each.map(|at| DirectMeter { preamble: preamble(4, at), ..Default::default() }).collect(),
            ..Default::default()
        };
        let schema = Schema::new(Arc::new(program), info);
        assert_eq!((schema.tables.len(), schema.counters.len() as u32), (1, n));
    }

    #[test]
    fn twice_the_references_take_twice_the_steps() {
        let (once, twice) = (steps::of(|| bind(500)), steps::of(|| bind(1000)));
        assert!(once > 500 && twice < 3 * once, "{once} steps, then {twice}");
    }
}
