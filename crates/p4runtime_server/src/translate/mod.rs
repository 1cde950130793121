//! Translates updates to operations on the switch and changes of the shadow: one file for each kind of entity.
//!
//! Everything that depends on the program alone is checked here, off the packet thread. Checks that depend on what is
//! installed (duplicates, references, capacity) are left to the switch.

mod action;
mod array;
mod matching;
mod profile;
mod replication;
mod sets;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use p4runtime_proto::v1;
use v1::update::Type;

use crate::restrictions;
use crate::schema::Schema;
use crate::shadow::{ShadowChange, ShadowState};
use crate::status::{Code, Refusal};
use crate::switch_ops::Op;

pub(crate) use action::print_call;
pub(crate) use array::{counter_data, no_colours, parse_index, print_meter};
pub(crate) use matching::{encode_key, parse_matches, print_matches};
pub(crate) use table::{default_of, entry_of, parse_key};

/// Translates an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpdateKind {
    Insert,
    Modify,
    Delete,
}

impl UpdateKind {
    fn of(update: &v1::Update) -> Result<UpdateKind, Refusal> {
        match Type::try_from(update.r#type) {
            Ok(Type::Insert) => Ok(UpdateKind::Insert),
            Ok(Type::Modify) => Ok(UpdateKind::Modify),
            Ok(Type::Delete) => Ok(UpdateKind::Delete),
            Ok(Type::Unspecified) | Err(_) => {
                Err(Refusal::invalid("the update has no type; it is INSERT, MODIFY or DELETE"))
            }
        }
    }

    /// Refuses types other than `MODIFY`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for any other type.
    fn must_modify(self, what: &str) -> Result<(), Refusal> {
        match self {
            UpdateKind::Modify => Ok(()),
            _ => Err(Refusal::invalid(format!("{what} always exist: they can be modified, not inserted or deleted"))),
        }
    }
}

/// An update that is ready to run.
#[derive(Clone, Debug)]
pub(crate) struct PlannedUpdate {
    pub op: Op,
    pub change: ShadowChange,
    /// The entity, for error messages.
    pub subject: String,
}

/// Effects of earlier updates of the same batch on state that the switch does not have.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    /// Digests that the batch enabled or disabled.
    digests: BTreeMap<u32, bool>,
    /// Profiles that the batch uses with members, and with one-shot sets.
    with_members: BTreeSet<u32>,
    with_sets: BTreeSet<u32>,
}

/// Translates the updates of a batch.
pub(crate) struct EntityTranslator<'a> {
    pub schema: &'a Schema,
    pub shadow: &'a ShadowState,
    /// The ports of the switch.
    pub ports: &'a BTreeSet<u32>,
    pub overlay: Overlay,
}

impl EntityTranslator<'_> {
    /// Translates an update.
    pub(crate) fn update(&mut self, update: &v1::Update) -> Result<PlannedUpdate, Refusal> {
        use v1::entity::Entity;
        let kind = UpdateKind::of(update)?;
        let entity = update.entity.as_ref().and_then(|entity| entity.entity.as_ref());
        let planned = match entity.ok_or_else(|| Refusal::invalid("the update has no entity"))? {
            Entity::TableEntry(entry) => self.table_entry(kind, entry),
            Entity::ActionProfileMember(member) => self.member(kind, member),
            Entity::ActionProfileGroup(group) => self.group(kind, group),
            Entity::CounterEntry(entry) => self.counter(kind, entry),
            Entity::DirectCounterEntry(entry) => self.direct_counter(kind, entry),
            Entity::MeterEntry(entry) => self.meter(kind, entry),
            Entity::DirectMeterEntry(entry) => self.direct_meter(kind, entry),
            Entity::RegisterEntry(entry) => self.register(kind, entry),
            Entity::PacketReplicationEngineEntry(entry) => self.replication(kind, entry),
            Entity::ValueSetEntry(entry) => self.value_set(kind, entry),
            Entity::DigestEntry(entry) => self.digest(kind, entry),
            Entity::ExternEntry(_) => Err(Refusal::unimplemented(
                "the architecture has no extern objects besides those that P4Runtime defines",
            )),
        }?;
        restrictions::check(self.schema, &planned.change).map_err(|refusal| refusal.about(&planned.subject))?;
        Ok(planned)
    }

    /// Checks a port number.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a port that the switch does not have.
    fn known_port(&self, port: u32) -> Result<(), Refusal> {
        if self.ports.contains(&port) {
            return Ok(());
        }
        /// Maximum number of ports listed.
        const LISTED: usize = 16;
        let listed: Vec<_> = self.ports.iter().take(LISTED).map(u32::to_string).collect();
        let more = if self.ports.len() > LISTED { ", ..." } else { "" };
        Err(Refusal::invalid(format!("the switch has no port {port}; it has {}{more}", listed.join(", "))))
    }
}

/// Returns the P4Info id of an entity, for the access rights of roles, or `None` for replication.
pub(crate) fn subject_id(entity: &v1::entity::Entity) -> Option<u32> {
    use v1::entity::Entity;
    match entity {
        Entity::TableEntry(entry) => Some(entry.table_id),
        Entity::ActionProfileMember(member) => Some(member.action_profile_id),
        Entity::ActionProfileGroup(group) => Some(group.action_profile_id),
        Entity::CounterEntry(entry) => Some(entry.counter_id),
        Entity::DirectCounterEntry(entry) => entry.table_entry.as_ref().map(|entry| entry.table_id),
        Entity::MeterEntry(entry) => Some(entry.meter_id),
        Entity::DirectMeterEntry(entry) => entry.table_entry.as_ref().map(|entry| entry.table_id),
        Entity::RegisterEntry(entry) => Some(entry.register_id),
        Entity::ValueSetEntry(entry) => Some(entry.value_set_id),
        Entity::DigestEntry(entry) => Some(entry.digest_id),
        Entity::ExternEntry(entry) => Some(entry.extern_id),
        Entity::PacketReplicationEngineEntry(_) => None,
    }
}

/// Maximum size of a controller's own metadata of an entry or group, in bytes.
pub(crate) const MAX_METADATA_BYTES: usize = 1 << 10;

/// Checks the size of metadata.
///
/// # Errors
/// `RESOURCE_EXHAUSTED` if they are too long.
fn check_metadata(metadata: &[u8]) -> Result<(), Refusal> {
    if metadata.len() <= MAX_METADATA_BYTES {
        Ok(())
    } else {
        Err(Refusal::new(
            Code::ResourceExhausted,
            format!("its metadata has {} bytes; the limit is {MAX_METADATA_BYTES}", metadata.len()),
        ))
    }
}
