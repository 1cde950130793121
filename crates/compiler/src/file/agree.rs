//! Check that a program and a P4Info describe the same objects.
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

use super::types;

/// Maximum width of a value, in bits.
const MAX_WIDTH: i32 = 1 << 16;

/// Checks that the two describe the same objects.
///
/// # Errors
/// The first difference, as a sentence.
pub fn agree(program: &Program, info: &P4Info) -> Result<(), String> {
    let agreement = Agreement { program, info };
    agreement.names()?;
    agreement.types()?;
    info.actions.iter().try_for_each(|action| agreement.action(action))?;
    info.tables.iter().try_for_each(|table| agreement.table(table))?;
    info.value_sets.iter().try_for_each(|set| agreement.value_set(set))?;
    info.registers.iter().try_for_each(|register| agreement.register(register))?;
    info.digests.iter().try_for_each(|digest| agreement.digest(digest))?;
    info.controller_packet_metadata.iter().try_for_each(controller_header)
}

/// A width of `what`.
pub(crate) fn width(bits: i32, what: &str) -> Result<u32, String> {
    match u32::try_from(bits) {
        Ok(width) if bits <= MAX_WIDTH => Ok(width),
        _ => Err(format!("its P4Info gives {what} {bits} bits")),
    }
}

fn id(preamble: &Option<Preamble>) -> u32 {
    preamble.as_ref().map_or(0, |preamble| preamble.id)
}

fn name(preamble: &Option<Preamble>) -> &str {
    preamble.as_ref().map_or("", |preamble| &preamble.name)
}

/// Returns the object with the id `wanted`, found by its preamble.
fn by_id<T>(all: &[T], preamble: impl Fn(&T) -> &Option<Preamble>, wanted: u32) -> Option<&T> {
    all.iter().find(|it| id(preamble(it)) == wanted)
}

fn differ(what: &str, name: &str, how: &str) -> Result<(), String> {
    Err(format!("its P4Info and its program differ in {how} of {what} `{name}`"))
}

struct Agreement<'a> {
    program: &'a Program,
    info: &'a P4Info,
}

impl Agreement<'_> {
    fn names(&self) -> Result<(), String> {
        let info = self.info;
        let mut ids = BTreeSet::new();
        let mut kind = |what: &str, all: Vec<&Option<Preamble>>| {
            let mut names = BTreeSet::new();
            for preamble in all {
                let (id, name) = (id(preamble), name(preamble));
                if id == 0 || !ids.insert(id) || name.is_empty() || !names.insert(name.to_owned()) {
                    return Err(format!(
                        "the {what} `{name}` of its P4Info has a name or an id that another has, or none"
                    ));
                }
            }
            Ok(())
        };
        kind("table", info.tables.iter().map(|it| &it.preamble).collect())?;
        kind("action", info.actions.iter().map(|it| &it.preamble).collect())?;
        kind("action profile", info.action_profiles.iter().map(|it| &it.preamble).collect())?;
        kind("counter", info.counters.iter().map(|it| &it.preamble).collect())?;
        kind("direct counter", info.direct_counters.iter().map(|it| &it.preamble).collect())?;
        kind("meter", info.meters.iter().map(|it| &it.preamble).collect())?;
        kind("direct meter", info.direct_meters.iter().map(|it| &it.preamble).collect())?;
        kind("register", info.registers.iter().map(|it| &it.preamble).collect())?;
        kind("value set", info.value_sets.iter().map(|it| &it.preamble).collect())?;
        kind("digest", info.digests.iter().map(|it| &it.preamble).collect())?;
        kind("controller header", info.controller_packet_metadata.iter().map(|it| &it.preamble).collect())
    }

    /// Rule 5, for types that have names.
    fn types(&self) -> Result<(), String> {
        let Some(types) = &self.info.type_info else { return Ok(()) };
        for (name, new) in &types.new_types {
            if let Some(Representation::TranslatedType(translated)) = &new.representation
                && let Some(config::p4_new_type_translation::SdnType::SdnBitwidth(bits)) = translated.sdn_type
            {
                width(bits, &format!("the type `{name}`"))?;
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

    fn fits(&self, bits: i32, named: &Option<P4NamedType>, of_program: u32, what: &str) -> Result<bool, String> {
        let told = width(bits, what)?;
        Ok(told == of_program || told == 0 || self.is_translated(named))
    }

    fn action(&self, action: &config::Action) -> Result<(), String> {
        let called = name(&action.preamble);
        let ids: BTreeSet<u32> = action.params.iter().map(|param| param.id).collect();
        if ids.len() != action.params.len() {
            return Err(format!("two parameters of action `{called}` have one id in its P4Info"));
        }
        let found = self.program.actions.values().find(|found| found.name == called);
        let Some(found) = found else {
            return action.params.iter().try_for_each(|param| width(param.bitwidth, "a parameter").map(drop));
        };
        if action.params.len() != found.params.len() {
            return differ("action", called, "the parameters");
        }
        for (param, of_program) in action.params.iter().zip(&found.params) {
            let of_program = self.program.slots[of_program.slot].width;
            if !self.fits(param.bitwidth, &param.type_name, of_program, "a parameter")? {
                return differ("action", called, &format!("the parameter `{}`", param.name));
            }
        }
        Ok(())
    }

    fn fields<'b>(
        &self,
        fields: &[MatchField],
        of_program: impl ExactSizeIterator<Item = (u32, MatchKind)> + 'b,
        what: &str,
        called: &str,
    ) -> Result<(), String> {
        let ids: BTreeSet<u32> = fields.iter().map(|field| field.id).collect();
        if fields.len() != of_program.len() || ids.len() != fields.len() {
            return differ(what, called, "the match fields");
        }
        for (field, (width, kind)) in fields.iter().zip(of_program) {
            let is_of_kind = match &field.r#match {
                Some(Match::MatchType(it)) => MatchType::try_from(*it) == Ok(match_type(kind)),
                _ => false,
            };
            if !is_of_kind || !self.fits(field.bitwidth, &field.type_name, width, "a match field")? {
                return differ(what, called, &format!("the match field `{}`", field.name));
            }
        }
        Ok(())
    }

    fn table(&self, table: &config::Table) -> Result<(), String> {
        let called = name(&table.preamble);
        let Some(found) = self.program.table_named(called) else { return Ok(()) };
        let found = &self.program.tables[found];
        let keys: Vec<_> = found.keys.iter().filter(|key| key.kind != MatchKind::Selector).collect();
        self.fields(&table.match_fields, keys.into_iter().map(|key| (key.width, key.kind)), "table", called)?;

        let of_program: BTreeMap<&str, _> =
            found.actions.iter().map(|it| (self.program.actions[it.action].name.as_str(), it.action)).collect();
        for action in &table.action_refs {
            let action = by_id(&self.info.actions, |it| &it.preamble, action.id);
            if action.is_none_or(|action| !of_program.contains_key(name(&action.preamble))) {
                return differ("table", called, "the actions");
            }
        }

        let profile = by_id(&self.info.action_profiles, |it| &it.preamble, table.implementation_id);
        let called_so = |wanted: &Option<Preamble>| {
            let all = self.program.profiles.iter();
            all.filter(|(_, it)| it.name == name(wanted)).map(|(id, _)| id).next()
        };
        // One that is made where it is named has no name in the program.
        match (table.implementation_id, profile, found.profile) {
            (0, _, _) => {}
            (_, Some(profile), of_program) if called_so(&profile.preamble).is_none_or(|id| Some(id) == of_program) => {}
            _ => return differ("table", called, "the action profile"),
        }

        for id in &table.direct_resource_ids {
            let counter = by_id(&self.info.direct_counters, |it| &it.preamble, *id);
            let of_program = found.counter.map(|counter| self.program.counters[counter].name.as_str());
            if counter.is_some_and(|counter| of_program != Some(name(&counter.preamble))) {
                return differ("table", called, "the direct counter");
            }
            let meter = by_id(&self.info.direct_meters, |it| &it.preamble, *id);
            let of_program = found.meter.map(|meter| self.program.meters[meter].name.as_str());
            if meter.is_some_and(|meter| of_program != Some(name(&meter.preamble))) {
                return differ("table", called, "the direct meter");
            }
        }
        Ok(())
    }

    fn value_set(&self, set: &config::ValueSet) -> Result<(), String> {
        let called = name(&set.preamble);
        match self.program.value_sets.values().find(|found| found.name == called) {
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

    fn register(&self, register: &config::Register) -> Result<(), String> {
        match &register.type_spec {
            // One whose type is not that of the program's cells is not offered to anybody.
            Some(spec) => types::leaves(spec, self.info.type_info.as_ref()).map(drop),
            None => Ok(()),
        }
    }

    fn digest(&self, digest: &config::Digest) -> Result<(), String> {
        let called = name(&digest.preamble);
        let leaves = match &digest.type_spec {
            Some(spec) => types::leaves(spec, self.info.type_info.as_ref())?,
            None => None,
        };
        let found = self.program.digests.values().find(|found| found.name == called);
        match (leaves, found) {
            (Some(leaves), Some(found)) if !leaves.iter().eq(found.fields.iter().map(|(_, width)| width)) => {
                differ("digest", called, "the fields")
            }
            _ => Ok(()),
        }
    }
}

fn controller_header(header: &config::ControllerPacketMetadata) -> Result<(), String> {
    let mut all = 0;
    for field in &header.metadata {
        all += u64::from(width(field.bitwidth, "a field of a controller header")?);
    }
    match all <= ir::MAX_HEADER_BITS {
        true => Ok(()),
        false => Err(format!("its P4Info gives the controller header `{}` {all} bits", name(&header.preamble))),
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
