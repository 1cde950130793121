//! From what a controller writes to what the switch does and the mirror keeps: one file a kind of entity.
//!
//! Everything that can be told from the program alone is checked here, beside the packets; what depends on what is there
//! already (duplicates, references, room) is the switch's to say.

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

use crate::asked;
use crate::mirror::{Change, Mirror};
use crate::op::Op;
use crate::schema::Schema;
use crate::status::{Code, Refusal};

pub(crate) use action::print_call;
pub(crate) use array::{counter_data, no_colours, parse_index, print_meter};
pub(crate) use matching::{encode_key, parse_matches, print_matches};
pub(crate) use table::{default_of, entry_of, parse_key};

/// What an update does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Insert,
    Modify,
    Delete,
}

impl Kind {
    fn of(update: &v1::Update) -> Result<Kind, Refusal> {
        match Type::try_from(update.r#type) {
            Ok(Type::Insert) => Ok(Kind::Insert),
            Ok(Type::Modify) => Ok(Kind::Modify),
            Ok(Type::Delete) => Ok(Kind::Delete),
            Ok(Type::Unspecified) | Err(_) => {
                Err(Refusal::invalid("the update has no type; it is INSERT, MODIFY or DELETE"))
            }
        }
    }

    /// # Errors
    /// `INVALID_ARGUMENT` for anything but `MODIFY`.
    fn must_modify(self, what: &str) -> Result<(), Refusal> {
        match self {
            Kind::Modify => Ok(()),
            _ => {
                Err(Refusal::invalid(format!("{what} are always there: they can be modified, not inserted or deleted")))
            }
        }
    }
}

/// An update that is ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub op: Op,
    pub change: Change,
    /// What it is about, for what the switch may say.
    pub subject: String,
}

/// What updates of one batch did to things that the switch does not know.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    /// Digests that the batch enabled or disabled.
    digests: BTreeMap<u32, bool>,
    /// Profiles that the batch uses with members, and with one-shot sets.
    with_members: BTreeSet<u32>,
    with_sets: BTreeSet<u32>,
}

/// Translates updates.
pub(crate) struct Translator<'a> {
    pub schema: &'a Schema,
    pub mirror: &'a Mirror,
    /// The ports of the switch.
    pub ports: &'a BTreeSet<u32>,
    pub overlay: Overlay,
}

impl Translator<'_> {
    /// What an update does.
    pub(crate) fn update(&mut self, update: &v1::Update) -> Result<Planned, Refusal> {
        use v1::entity::Entity;
        let kind = Kind::of(update)?;
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
                "v1model has no extern objects but those that P4Runtime has messages of their own for",
            )),
        }?;
        asked::check(self.schema, &planned.change).map_err(|refusal| refusal.about(&planned.subject))?;
        Ok(planned)
    }

    /// # Errors
    /// `INVALID_ARGUMENT` for a port that the switch does not have.
    fn known_port(&self, port: u32) -> Result<(), Refusal> {
        if self.ports.contains(&port) {
            return Ok(());
        }
        /// More are not listed.
        const LISTED: usize = 16;
        let listed: Vec<_> = self.ports.iter().take(LISTED).map(u32::to_string).collect();
        let more = if self.ports.len() > LISTED { ", ..." } else { "" };
        Err(Refusal::invalid(format!("the switch has no port {port}; it has {}{more}", listed.join(", "))))
    }
}

/// The P4Info id that an entity is about, for the access of roles; none for replication.
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

/// Bytes of what a controller keeps with an entry or group for itself.
pub(crate) const MAX_METADATA_BYTES: usize = 1 << 10;

/// # Errors
/// `RESOURCE_EXHAUSTED` if it is too long.
fn check_metadata(metadata: &[u8]) -> Result<(), Refusal> {
    match metadata.len() <= MAX_METADATA_BYTES {
        true => Ok(()),
        false => Err(Refusal::new(
            Code::ResourceExhausted,
            format!("its metadata has {} bytes; there may be {MAX_METADATA_BYTES}", metadata.len()),
        )),
    }
}
