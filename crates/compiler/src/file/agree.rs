//! Checks that a program and a P4Info describe the same objects.
//!
//! Control planes write by the P4Info, and packets run by the program. After the check these rules hold:
//!
//! 1. Every object has a name and an id other than 0, which no other object has; names are unique within a kind.
//! 2. A table of both has as many match fields as the program has keys (selector keys apart), of the same kinds and
//!    widths; its actions, its profile and its direct counter and meter are those that the program's table has.
//! 3. An action of both has the same parameters, of the same widths.
//! 4. A value set of both has the same fields. A digest of both that can be sent has messages of the program's fields.
//! 5. No type, field or parameter is wider than 65536 bits, no controller header wider than any header may be.
//!
//! A width that `@p4runtime_translation` changes for the controller may differ, and P4Info gives enums none. Objects
//! that only one half has are left to the caller: P4Info omits hidden objects, the program omits unused ones.

use std::collections::{BTreeMap, BTreeSet};

use ir::{MatchKind, Program};
use p4runtime_proto::config::match_field::{Match, MatchType};
use p4runtime_proto::config::p4_new_type_spec::Representation;
use p4runtime_proto::config::{self, MatchField, P4Info, P4NamedType, Preamble};

use super::disagreement::{DifferentPart, Disagreement, WidthOf};
use super::types::{self, PartsLeft};

/// Maximum width of a value, in bits.
const MAX_WIDTH: i32 = 1 << 16;

/// Checks that the two describe the same objects.
///
/// # Errors
/// The first difference.
pub fn agree(program: &Program, info: &P4Info) -> Result<(), Disagreement> {
    let agreement = Agreement::new(program, info);
    agreement.names()?;
    agreement.types()?;
    info.actions.iter().try_for_each(|action| agreement.action(action))?;
    info.tables.iter().try_for_each(|table| agreement.table(table))?;
    info.value_sets.iter().try_for_each(|set| agreement.value_set(set))?;
    info.registers.iter().try_for_each(|register| agreement.register(register))?;
    info.digests.iter().try_for_each(|digest| agreement.digest(digest))?;
    info.controller_packet_metadata.iter().try_for_each(controller_header)
}

/// Checks the width of a value.
pub(crate) fn width(bits: i32, of: WidthOf) -> Result<u32, Disagreement> {
    match u32::try_from(bits) {
        Ok(width) if bits <= MAX_WIDTH => Ok(width),
        _ => Err(Disagreement::Width { of, bits }),
    }
}

fn id(preamble: &Option<Preamble>) -> u32 {
    #[cfg(test)]
    tests::count_step();
    preamble.as_ref().map_or(0, |preamble| preamble.id)
}

fn name(preamble: &Option<Preamble>) -> &str {
    #[cfg(test)]
    tests::count_step();
    preamble.as_ref().map_or("", |preamble| &preamble.name)
}

/// Indexes objects by id.
fn by_id<T>(all: &[T], preamble: impl Fn(&T) -> &Option<Preamble>) -> BTreeMap<u32, &T> {
    all.iter().map(|it| (id(preamble(it)), it)).collect()
}

/// Indexes objects by name. Of several with the same name, the first counts.
fn by_name<'a, T>(all: impl DoubleEndedIterator<Item = (&'a str, T)>) -> BTreeMap<&'a str, T> {
    all.rev().collect()
}

fn differ(kind: &'static str, name: &str, part: DifferentPart) -> Result<(), Disagreement> {
    Err(Disagreement::Part { kind, name: name.to_owned(), part })
}

/// The two, and their objects by what the other names them with. A P4Info may have a million objects and as many
/// references to them.
struct Agreement<'a> {
    program: &'a Program,
    info: &'a P4Info,
    actions: BTreeMap<u32, &'a config::Action>,
    profiles: BTreeMap<u32, &'a config::ActionProfile>,
    direct_counters: BTreeMap<u32, &'a config::DirectCounter>,
    direct_meters: BTreeMap<u32, &'a config::DirectMeter>,
    program_tables: BTreeMap<&'a str, &'a ir::Table>,
    program_actions: BTreeMap<&'a str, &'a ir::Action>,
    program_profiles: BTreeMap<&'a str, ir::ProfileId>,
    program_value_sets: BTreeMap<&'a str, &'a ir::ValueSet>,
    program_digests: BTreeMap<&'a str, &'a ir::Digest>,
    /// Parts of types that may still be looked at.
    parts_left: PartsLeft,
}

impl<'a> Agreement<'a> {
    fn new(program: &'a Program, info: &'a P4Info) -> Agreement<'a> {
        Agreement {
            program,
            info,
            actions: by_id(&info.actions, |it| &it.preamble),
            profiles: by_id(&info.action_profiles, |it| &it.preamble),
            direct_counters: by_id(&info.direct_counters, |it| &it.preamble),
            direct_meters: by_id(&info.direct_meters, |it| &it.preamble),
            program_tables: by_name(program.tables.values().map(|it| (&*it.name, it))),
            program_actions: by_name(program.actions.values().map(|it| (&*it.name, it))),
            program_profiles: by_name(program.profiles.iter().map(|(id, it)| (&*it.name, id))),
            program_value_sets: by_name(program.value_sets.values().map(|it| (&*it.name, it))),
            program_digests: by_name(program.digests.values().map(|it| (&*it.name, it))),
            parts_left: PartsLeft::new(),
        }
    }

    fn names(&self) -> Result<(), Disagreement> {
        let info = self.info;
        let mut ids = BTreeSet::new();
        let mut check = |kind: &'static str, all: Vec<&Option<Preamble>>| {
            let mut names = BTreeSet::new();
            for preamble in all {
                let (id, name) = (id(preamble), name(preamble));
                if id == 0 || !ids.insert(id) || name.is_empty() || !names.insert(name.to_owned()) {
                    return Err(Disagreement::Identity { kind, name: name.to_owned() });
                }
            }
            Ok(())
        };
        check("table", info.tables.iter().map(|it| &it.preamble).collect())?;
        check("action", info.actions.iter().map(|it| &it.preamble).collect())?;
        check("action profile", info.action_profiles.iter().map(|it| &it.preamble).collect())?;
        check("counter", info.counters.iter().map(|it| &it.preamble).collect())?;
        check("direct counter", info.direct_counters.iter().map(|it| &it.preamble).collect())?;
        check("meter", info.meters.iter().map(|it| &it.preamble).collect())?;
        check("direct meter", info.direct_meters.iter().map(|it| &it.preamble).collect())?;
        check("register", info.registers.iter().map(|it| &it.preamble).collect())?;
        check("value set", info.value_sets.iter().map(|it| &it.preamble).collect())?;
        check("digest", info.digests.iter().map(|it| &it.preamble).collect())?;
        check("controller header", info.controller_packet_metadata.iter().map(|it| &it.preamble).collect())
    }

    /// Rule 5, for types that have names.
    fn types(&self) -> Result<(), Disagreement> {
        let Some(types) = &self.info.type_info else { return Ok(()) };
        for (name, new) in &types.new_types {
            if let Some(Representation::TranslatedType(translated)) = &new.representation
                && let Some(config::p4_new_type_translation::SdnType::SdnBitwidth(bits)) = translated.sdn_type
            {
                width(bits, WidthOf::NamedType(name.clone()))?;
            }
        }
        Ok(())
    }

    /// Whether a controller may see values of another width than the program has.
    fn is_translated(&self, named: &Option<P4NamedType>) -> bool {
        let types = self.info.type_info.as_ref();
        let new = named.as_ref().and_then(|named| types?.new_types.get(&named.name));
        new.is_some_and(|new| matches!(new.representation, Some(Representation::TranslatedType(_))))
    }

    fn fits(&self, bits: i32, named: &Option<P4NamedType>, of_program: u32, of: WidthOf) -> Result<bool, Disagreement> {
        let told = width(bits, of)?;
        Ok(told == of_program || told == 0 || self.is_translated(named))
    }

    fn action(&self, action: &config::Action) -> Result<(), Disagreement> {
        let called = name(&action.preamble);
        let ids: BTreeSet<u32> = action.params.iter().map(|param| param.id).collect();
        if ids.len() != action.params.len() {
            return Err(Disagreement::ParameterIds { action: called.to_owned() });
        }
        let Some(found) = self.program_actions.get(called) else {
            return action.params.iter().try_for_each(|param| width(param.bitwidth, WidthOf::Parameter).map(drop));
        };
        if action.params.len() != found.params.len() {
            return differ("action", called, DifferentPart::Parameters);
        }
        for (param, of_program) in action.params.iter().zip(&found.params) {
            let of_program = self.program.slots[of_program.slot].width;
            if !self.fits(param.bitwidth, &param.type_name, of_program, WidthOf::Parameter)? {
                return differ("action", called, DifferentPart::Parameter(param.name.clone()));
            }
        }
        Ok(())
    }

    fn fields<'b>(
        &self,
        fields: &[MatchField],
        of_program: impl ExactSizeIterator<Item = (u32, MatchKind)> + 'b,
        kind: &'static str,
        called: &str,
    ) -> Result<(), Disagreement> {
        let ids: BTreeSet<u32> = fields.iter().map(|field| field.id).collect();
        if fields.len() != of_program.len() || ids.len() != fields.len() {
            return differ(kind, called, DifferentPart::MatchFields);
        }
        for (field, (width, match_kind)) in fields.iter().zip(of_program) {
            let is_of_kind = match &field.r#match {
                Some(Match::MatchType(it)) => MatchType::try_from(*it) == Ok(match_type(match_kind)),
                _ => false,
            };
            if !is_of_kind || !self.fits(field.bitwidth, &field.type_name, width, WidthOf::MatchField)? {
                return differ(kind, called, DifferentPart::MatchField(field.name.clone()));
            }
        }
        Ok(())
    }

    fn table(&self, table: &config::Table) -> Result<(), Disagreement> {
        let called = name(&table.preamble);
        let Some(found) = self.program_tables.get(called) else { return Ok(()) };
        let keys: Vec<_> = found.keys.iter().filter(|key| key.kind != MatchKind::Selector).collect();
        self.fields(&table.match_fields, keys.into_iter().map(|key| (key.width, key.kind)), "table", called)?;

        let of_program: BTreeMap<&str, _> =
            found.actions.iter().map(|it| (self.program.actions[it.action].name.as_str(), it.action)).collect();
        for action in &table.action_refs {
            let action = self.actions.get(&action.id);
            if action.is_none_or(|action| !of_program.contains_key(name(&action.preamble))) {
                return differ("table", called, DifferentPart::Actions);
            }
        }

        let profile = self.profiles.get(&table.implementation_id);
        let called_so = |wanted: &Option<Preamble>| self.program_profiles.get(name(wanted)).copied();
        // One that is made where it is named has no name in the program.
        match (table.implementation_id, profile, found.profile) {
            (0, _, _) => {}
            (_, Some(profile), of_program) if called_so(&profile.preamble).is_none_or(|id| Some(id) == of_program) => {}
            _ => return differ("table", called, DifferentPart::ActionProfile),
        }

        for id in &table.direct_resource_ids {
            let counter = self.direct_counters.get(id);
            let of_program = found.counter.map(|counter| self.program.counters[counter].name.as_str());
            if counter.is_some_and(|counter| of_program != Some(name(&counter.preamble))) {
                return differ("table", called, DifferentPart::DirectCounter);
            }
            let meter = self.direct_meters.get(id);
            let of_program = found.meter.map(|meter| self.program.meters[meter].name.as_str());
            if meter.is_some_and(|meter| of_program != Some(name(&meter.preamble))) {
                return differ("table", called, DifferentPart::DirectMeter);
            }
        }
        Ok(())
    }

    fn value_set(&self, set: &config::ValueSet) -> Result<(), Disagreement> {
        let called = name(&set.preamble);
        match self.program_value_sets.get(called) {
            Some(found) => {
                let fields = found.fields.iter().map(|(_, width, kind)| (*width, *kind));
                // Of an enum it has one for each member, as the reference compiler does; all but the first mean
                // nothing.
                let described = set.r#match.get(..found.fields.len()).unwrap_or(&set.r#match);
                self.fields(described, fields, "value set", called)
            }
            None => Ok(()),
        }
    }

    fn register(&self, register: &config::Register) -> Result<(), Disagreement> {
        match &register.type_spec {
            // One whose type is not that of the program's cells is not offered to anybody.
            Some(spec) => types::leaves(spec, self.info.type_info.as_ref(), &self.parts_left).map(drop),
            None => Ok(()),
        }
    }

    fn digest(&self, digest: &config::Digest) -> Result<(), Disagreement> {
        let called = name(&digest.preamble);
        let leaves = match &digest.type_spec {
            Some(spec) => types::leaves(spec, self.info.type_info.as_ref(), &self.parts_left)?,
            None => None,
        };
        match (leaves, self.program_digests.get(called)) {
            (Some(leaves), Some(found)) if !leaves.iter().eq(found.fields.iter().map(|(_, width)| width)) => {
                differ("digest", called, DifferentPart::Fields)
            }
            _ => Ok(()),
        }
    }
}

fn controller_header(header: &config::ControllerPacketMetadata) -> Result<(), Disagreement> {
    let mut all = 0;
    for field in &header.metadata {
        all += u64::from(width(field.bitwidth, WidthOf::HeaderField)?);
    }
    if all <= ir::MAX_DATA_BITS {
        Ok(())
    } else {
        Err(Disagreement::HeaderWidth { name: name(&header.preamble).to_owned(), bits: all })
    }
}

/// Returns P4Info's name of a match kind.
fn match_type(kind: MatchKind) -> MatchType {
    match kind {
        MatchKind::Exact => MatchType::Exact,
        MatchKind::Lpm => MatchType::Lpm,
        MatchKind::Ternary => MatchType::Ternary,
        MatchKind::Range => MatchType::Range,
        MatchKind::Optional => MatchType::Optional,
        MatchKind::Selector => MatchType::Unspecified,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use p4runtime_proto::config::{ActionRef, DirectCounter, DirectMeter, Table};

    use super::*;

    thread_local! {
        /// Number of ids and names looked at.
        static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    pub(super) fn count_step() {
        STEPS.set(STEPS.get() + 1);
    }

    fn preamble(kind: u32, number: u32) -> Option<Preamble> {
        Some(Preamble { id: kind << 24 | number, name: format!("object.{kind}.{number}"), ..Default::default() })
    }

    /// A program with one action, and one table that has it.
    fn program(action: &str) -> Program {
        let mut program = Program::default();
        let (body, loc) = (ir::BodyId::from_u32(0), ir::LocId::from_u32(0));
        let action = ir::Action { name: action.to_owned(), params: Vec::new(), body, annotations: Vec::new(), loc };
        let action = program.actions.push(action);
        let actions = vec![ir::TableAction { action, default_only: false, table_only: false }];
        program.tables.push(ir::Table { actions, ..ir::Table::new(name(&preamble(2, 1))) });
        program
    }

    /// Returns the number of steps for `n` actions, direct counters and direct meters, and as many references from one
    /// table.
    fn steps(n: u32) -> u64 {
        let table = Table {
            preamble: preamble(2, 1),
            action_refs: vec![ActionRef { id: 1 << 24 | n, ..Default::default() }; n as usize],
            direct_resource_ids: (1..=n).map(|number| 9 << 24 | number).collect(),
            ..Default::default()
        };
        let info = P4Info {
            tables: vec![table],
            actions: (1..=n).map(|at| config::Action { preamble: preamble(1, at), ..Default::default() }).collect(),
            direct_counters: (1..=n)
                .map(|at| DirectCounter { preamble: preamble(3, at), ..Default::default() })
                .collect(),
            direct_meters: (1..=n).map(|at| DirectMeter { preamble: preamble(4, at), ..Default::default() }).collect(),
            ..Default::default()
        };
        let program = program(name(&preamble(1, n)));
        STEPS.set(0);
        assert_eq!(agree(&program, &info), Ok(()));
        STEPS.get()
    }

    #[test]
    fn twice_the_references_take_twice_the_steps() {
        let (once, twice) = (steps(500), steps(1000));
        assert!(once > 500 && twice < 3 * once, "{once} steps, then {twice}");
    }
}
