//! Translates table entries and default entries (specification 9.1).

use engine::{ActionSpec, WeightedCall};
use ir::KeyValue;
use p4runtime_proto::v1;
use v1::table_action::Type as Target;

use super::action::print_call;
use super::array::{counter_value, meter_config};
use super::{EntityTranslator, PlannedUpdate, UpdateKind, check_metadata, encode_key, parse_matches, print_matches};
use crate::key::EntryKey;
use crate::schema::{ProfileSchema, Schema, TableSchema};
use crate::shadow::ShadowChange;
use crate::status::Refusal;
use crate::switch_ops::{EntryWrite, Op};

/// The key of an entry: values, priority, and both as bytes.
pub(crate) struct ParsedKey {
    pub keys: Vec<KeyValue>,
    pub priority: i32,
    pub bytes: EntryKey,
}

/// Parses the key of an entry.
///
/// # Errors
/// For any invalid key.
pub(crate) fn parse_key(table: &TableSchema, entry: &v1::TableEntry) -> Result<ParsedKey, Refusal> {
    let keys = parse_matches(&table.fields, &entry.r#match)?;
    let priority = entry.priority;
    match table.needs_priority() {
        true if priority <= 0 => {
            return Err(Refusal::invalid(format!(
                "its key has ternary, range or optional fields, so an entry needs a priority above 0; \
                 {priority} is given"
            )));
        }
        false if priority != 0 => {
            return Err(Refusal::invalid(format!(
                "its key has no ternary, range or optional field, so entries have no priority; \
                 {priority} is given"
            )));
        }
        _ => {}
    }
    let bytes = encode_key(&table.fields, &keys, priority);
    Ok(ParsedKey { keys, priority, bytes })
}

impl EntityTranslator<'_> {
    pub(super) fn table_entry(&mut self, kind: UpdateKind, entry: &v1::TableEntry) -> Result<PlannedUpdate, Refusal> {
        let schema = self.schema;
        let table = schema.table(entry.table_id)?;
        let subject = format!("table {}", table.name);
        let about = |refusal: Refusal| refusal.about(&subject);
        if kind == UpdateKind::Insert {
            check_mark(entry).map_err(about)?;
        }
        check_metadata(&entry.metadata).map_err(about)?;
        let (op, change) = if entry.is_default_action {
            self.default_entry(kind, table, entry).map_err(about)?
        } else {
            self.match_entry(kind, table, entry).map_err(about)?
        };
        Ok(PlannedUpdate { op, change, subject })
    }

    fn match_entry(
        &mut self,
        kind: UpdateKind,
        table: &TableSchema,
        entry: &v1::TableEntry,
    ) -> Result<(Op, ShadowChange), Refusal> {
        if table.constant && (kind != UpdateKind::Modify || entry.action.is_some()) {
            return Err(Refusal::denied(
                "its entries are constant; only their counters and meters can be modified, without an action",
            ));
        }
        if table.fields.is_empty() && kind == UpdateKind::Insert {
            return Err(Refusal::invalid("it has no key and therefore no entries, only a default action"));
        }
        let key = parse_key(table, entry)?;
        let constant = self.is_constant(table, &key.bytes);
        if constant && kind != UpdateKind::Insert && (kind != UpdateKind::Modify || entry.action.is_some()) {
            return Err(Refusal::denied(
                "this entry is `const` in the program; only its counter and meter can be modified, without an action",
            ));
        }
        // A controller that sends a constant entry back as it was read knows that it is constant.
        check_mark(entry)?;
        if kind == UpdateKind::Delete {
            let op = Op::DeleteEntry { table: table.ir, keys: key.keys, priority: key.priority };
            return Ok((op, ShadowChange::DropEntry { table: table.id, key: key.bytes }));
        }
        let idle_timeout_ns = idle_timeout(table, entry, constant)?;
        if entry.meter_counter_data.is_some() {
            return Err(Refusal::unimplemented("meters do not count colours; leave meter_counter_data unset"));
        }
        let counter = match (&entry.counter_data, table.counter) {
            (Some(_), None) => return Err(Refusal::invalid("it has no direct counter; leave counter_data unset")),
            (data, _) => data.as_ref().map(counter_value).transpose()?,
        };
        let meter = match (&entry.meter_config, table.meter) {
            (Some(_), None) => return Err(Refusal::invalid("it has no direct meter; leave meter_config unset")),
            (config, Some(_)) => Some(config.as_ref().map(meter_config).transpose()?),
            (None, None) => None,
        };
        let (action, canonical) = match &entry.action {
            Some(action) => {
                let (spec, action) = self.target(table, action)?;
                (Some(spec), Some(action))
            }
            None if kind == UpdateKind::Insert => {
                return Err(Refusal::invalid(format!(
                    "an INSERT needs an action: {}",
                    self.schema.action_names(&table.actions)
                )));
            }
            None => (None, None),
        };
        let kept = v1::TableEntry {
            table_id: table.id,
            r#match: print_matches(&table.fields, &key.keys),
            action: canonical,
            priority: key.priority,
            meter_config: entry.meter_config,
            idle_timeout_ns: entry.idle_timeout_ns,
            metadata: entry.metadata.clone(),
            is_const: constant,
            ..controller_metadata(entry)
        };
        let write = EntryWrite {
            table: table.ir,
            keys: key.keys,
            priority: key.priority,
            action,
            idle_timeout_ns,
            counter,
            meter,
            constant,
        };
        let change = ShadowChange::PutEntry { table: table.id, key: key.bytes, entry: Box::new(kept) };
        match kind {
            UpdateKind::Insert => Ok((Op::InsertEntry(write), change)),
            _ => Ok((Op::ModifyEntry(write), change)),
        }
    }

    /// Whether an entry is a `const` entry of the program. No write changes this, so the shadow suffices, whatever
    /// else is in the batch.
    fn is_constant(&self, table: &TableSchema, key: &EntryKey) -> bool {
        table.has_constants && self.shadow.entry(table.id, key).is_some_and(|entry| entry.is_const)
    }

    fn default_entry(
        &self,
        kind: UpdateKind,
        table: &TableSchema,
        entry: &v1::TableEntry,
    ) -> Result<(Op, ShadowChange), Refusal> {
        if kind != UpdateKind::Modify {
            return Err(Refusal::invalid(
                "the default entry always exists: it can be modified, not inserted or deleted",
            ));
        }
        if !entry.r#match.is_empty() || entry.priority != 0 {
            return Err(Refusal::invalid("the default entry has neither match fields nor a priority"));
        }
        if entry.idle_timeout_ns != 0 || entry.time_since_last_hit.is_some() {
            return Err(Refusal::invalid(
                "the default entry does not age; leave idle_timeout_ns and \
                time_since_last_hit unset",
            ));
        }
        if entry.counter_data.is_some() || entry.meter_config.is_some() || entry.meter_counter_data.is_some() {
            return Err(Refusal::unimplemented(
                "misses are neither counted nor metered; leave counter_data and \
                meter_config of the default entry unset",
            ));
        }
        if table.profile.is_some() {
            return Err(Refusal::denied("its actions come from an action profile, and its default action is constant"));
        }
        if has_constant_default(self.schema, table) {
            return Err(Refusal::denied("its default action is constant"));
        }
        check_mark(entry)?;
        let (call, action) = match &entry.action {
            None => (None, None),
            Some(v1::TableAction { r#type: Some(Target::Action(action)) }) => {
                let (call, action) = self.call(action, &table.actions, "the table")?;
                (Some(call), Some(v1::TableAction { r#type: Some(Target::Action(action)) }))
            }
            Some(_) => return Err(Refusal::invalid("the default entry takes an action of the table")),
        };
        let kept = action.map(|action| {
            Box::new(v1::TableEntry {
                table_id: table.id,
                action: Some(action),
                metadata: entry.metadata.clone(),
                is_default_action: true,
                ..controller_metadata(entry)
            })
        });
        Ok((Op::SetDefault(table.ir, call), ShadowChange::PutDefault { table: table.id, entry: kept }))
    }

    /// Parses the action of an entry. Also returns it in canonical form.
    fn target(
        &mut self,
        table: &TableSchema,
        action: &v1::TableAction,
    ) -> Result<(ActionSpec, v1::TableAction), Refusal> {
        let target = action.r#type.as_ref().ok_or_else(|| Refusal::invalid("its action is empty"))?;
        let profile = table.profile.map(|id| self.schema.profile(id)).transpose()?;
        let (spec, kept) = match (target, profile) {
            (Target::Action(action), None) => {
                let (call, action) = self.call(action, &table.actions, "the table")?;
                (ActionSpec::Direct(call), Target::Action(action))
            }
            (_, None) => return Err(Refusal::invalid("it has no action profile: its entries take an action")),
            (Target::Action(_), Some(profile)) => {
                return Err(Refusal::invalid(format!(
                    "its actions come from the action profile {}: an entry takes a member{}",
                    profile.name,
                    if profile.selector { ", a group or an action set" } else { "" }
                )));
            }
            (Target::ActionProfileMemberId(id), Some(profile)) => {
                self.use_members(profile)?;
                (ActionSpec::Member(*id), target.clone())
            }
            (_, Some(profile)) if !profile.selector => {
                return Err(Refusal::invalid(format!(
                    "the action profile {} has no selector: an entry takes a member",
                    profile.name
                )));
            }
            (Target::ActionProfileGroupId(id), Some(profile)) => {
                self.use_members(profile)?;
                (ActionSpec::Group(*id), target.clone())
            }
            (Target::ActionProfileActionSet(set), Some(profile)) => {
                let (calls, set) = self.action_set(table, profile, set)?;
                (ActionSpec::OneShot(calls), Target::ActionProfileActionSet(set))
            }
        };
        Ok((spec, v1::TableAction { r#type: Some(kept) }))
    }

    /// Parses a one-shot action set (specification 9.2.3).
    fn action_set(
        &mut self,
        table: &TableSchema,
        profile: &ProfileSchema,
        set: &v1::ActionProfileActionSet,
    ) -> Result<(Vec<WeightedCall>, v1::ActionProfileActionSet), Refusal> {
        self.use_sets(profile)?;
        self.check_set_modes(profile, set)?;
        let actions = &set.action_profile_actions;
        let sizes = actions.iter().map(|action| action.weight);
        super::profile::check_sizes(profile, sizes, profile.max_group_size)?;
        let mut calls = Vec::new();
        let mut kept = Vec::new();
        for given in actions {
            let action =
                given.action.as_ref().ok_or_else(|| Refusal::invalid("an element of the set has no action"))?;
            let (call, action) = self.call(action, &table.actions, "the table")?;
            let watch = given.watch_kind.as_ref().map(super::profile::set_watch);
            let (watch_port, watch) = self.watch(watch)?;
            calls.push(WeightedCall { call, weight: super::profile::weight(profile, given.weight)?, watch_port });
            let watch_kind = watch.map(super::profile::watch_of_set);
            kept.push(v1::ActionProfileAction { action: Some(action), weight: given.weight, watch_kind });
        }
        let set = v1::ActionProfileActionSet {
            action_profile_actions: kept,
            action_selection_mode: set.action_selection_mode,
            size_semantics: set.size_semantics,
        };
        Ok((calls, set))
    }

    fn check_set_modes(&self, profile: &ProfileSchema, set: &v1::ActionProfileActionSet) -> Result<(), Refusal> {
        use v1::action_profile_action_set::{ActionSelectionMode as Mode, SizeSemantics};
        match Mode::try_from(set.action_selection_mode) {
            Ok(Mode::DefaultModeDeterminedByActionSelector | Mode::Hash) => {}
            Ok(Mode::Random) => return Err(Refusal::unimplemented("selectors choose by hash, not at random")),
            Err(_) => return Err(Refusal::invalid("unknown action_selection_mode")),
        }
        match (SizeSemantics::try_from(set.size_semantics), profile.counts_members) {
            (Ok(SizeSemantics::DefaultSizeDeterminedByActionSelector), _)
            | (Ok(SizeSemantics::SumOfWeights), false)
            | (Ok(SizeSemantics::SumOfMembers), true) => Ok(()),
            (Ok(_), _) => Err(Refusal::unimplemented("the size semantics of a set are those of its selector")),
            (Err(_), _) => Err(Refusal::invalid("unknown size_semantics")),
        }
    }
}

#[expect(deprecated, reason = "clients still use it, and it has to be given back")]
fn controller_metadata(entry: &v1::TableEntry) -> v1::TableEntry {
    v1::TableEntry { controller_metadata: entry.controller_metadata, ..Default::default() }
}

/// Refuses `is_const`, which only the program can set.
fn check_mark(entry: &v1::TableEntry) -> Result<(), Refusal> {
    if entry.is_const {
        Err(Refusal::invalid("is_const is for the program's own entries; leave it false in writes"))
    } else {
        Ok(())
    }
}

fn idle_timeout(table: &TableSchema, entry: &v1::TableEntry, constant: bool) -> Result<u64, Refusal> {
    if entry.time_since_last_hit.is_some() {
        return Err(Refusal::invalid("time_since_last_hit is for reads; leave it unset in writes"));
    }
    match u64::try_from(entry.idle_timeout_ns) {
        Ok(timeout) if timeout > 0 && constant => {
            Err(Refusal::invalid("constant entries do not age; leave idle_timeout_ns 0"))
        }
        Ok(timeout) if timeout > 0 && !table.idle_timeout => Err(Refusal::invalid(
            "its entries do not age (the table has no `support_timeout = true`); leave idle_timeout_ns 0",
        )),
        Ok(timeout) => Ok(timeout),
        Err(_) => Err(Refusal::invalid(format!("idle_timeout_ns is {}; it must be at least 0", entry.idle_timeout_ns))),
    }
}

/// Converts an entry of the switch to the controller's form, for the program's own entries in a new shadow.
pub(crate) fn entry_of(
    schema: &Schema,
    table: &TableSchema,
    entry: &engine::TableEntry,
    constant: bool,
) -> v1::TableEntry {
    let target = match &entry.action {
        ActionSpec::Direct(call) => Target::Action(print_call(schema, call)),
        ActionSpec::Member(id) => Target::ActionProfileMemberId(*id),
        ActionSpec::Group(id) => Target::ActionProfileGroupId(*id),
        ActionSpec::OneShot(calls) => {
            let action = |weighted: &WeightedCall| v1::ActionProfileAction {
                action: Some(print_call(schema, &weighted.call)),
                weight: weighted.weight as i32,
                watch_kind: weighted.watch_port.map(|port| {
                    v1::action_profile_action::WatchKind::WatchPort(p4runtime_proto::bytestring::shortest(
                        &port.to_be_bytes(),
                    ))
                }),
            };
            Target::ActionProfileActionSet(v1::ActionProfileActionSet {
                action_profile_actions: calls.iter().map(action).collect(),
                ..Default::default()
            })
        }
    };
    v1::TableEntry {
        table_id: table.id,
        r#match: print_matches(&table.fields, &entry.keys),
        action: Some(v1::TableAction { r#type: Some(target) }),
        priority: entry.priority,
        idle_timeout_ns: entry.idle_timeout_ns as i64,
        is_const: constant,
        ..Default::default()
    }
}

/// Whether the default action of a table cannot be changed: that of an action profile's table stays NoAction (9.1.3).
fn has_constant_default(schema: &Schema, table: &TableSchema) -> bool {
    schema.program.tables[table.ir].const_default || table.profile.is_some()
}

/// Converts a default action to the controller's form.
pub(crate) fn default_of(schema: &Schema, table: &TableSchema, call: &engine::ActionCall) -> v1::TableEntry {
    v1::TableEntry {
        table_id: table.id,
        action: Some(v1::TableAction { r#type: Some(Target::Action(print_call(schema, call))) }),
        is_default_action: true,
        is_const: has_constant_default(schema, table),
        ..Default::default()
    }
}
