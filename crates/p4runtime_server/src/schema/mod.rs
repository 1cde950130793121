//! Builds the schema of a program: P4Info's ids bound to the IR's.

mod bind;
mod data;
mod header;
mod sdn;

use std::collections::BTreeMap;
use std::sync::Arc;

use bits::Bits;
use ir::{ActionId, CounterId, DigestId, MatchKind, MeterId, ProfileId, Program, RegisterId, TableId, ValueSetId};
use p4runtime_proto::bytestring;
use p4runtime_proto::config;

pub use data::DataType;
pub use header::ControllerHeader;
pub use sdn::Translated;

use crate::status::Refusal;

/// The controller's encoding of a value, which `@p4runtime_translation` may change.
#[derive(Clone, Debug)]
pub enum ValueEncoding {
    /// The same number.
    Plain,
    /// A number of another width, or a text.
    Translated(Translated),
}

impl ValueEncoding {
    /// Parses a controller's value.
    ///
    /// # Errors
    /// If it does not fit or has no counterpart in the program.
    pub fn parse(&self, bytes: &[u8], width: u32) -> Result<Bits, Refusal> {
        match self {
            ValueEncoding::Plain => Ok(bytestring::parse(bytes, width)?),
            ValueEncoding::Translated(translated) => translated.parse(bytes, width),
        }
    }

    /// Converts bits of the program to the controller's form.
    pub fn print(&self, value: &Bits) -> Vec<u8> {
        match self {
            ValueEncoding::Plain => bytestring::print(value),
            ValueEncoding::Translated(translated) => translated.print(value),
        }
    }
}

/// A value from the controller: a match field or a parameter.
#[derive(Clone, Debug)]
pub struct FieldSchema {
    /// Id within the table or action.
    pub id: u32,
    /// Name: `hdr.ipv4.dstAddr`.
    pub name: String,
    /// Number of bits in the program.
    pub width: u32,
    /// Match kind; parameters are exact.
    pub kind: MatchKind,
    /// The controller's encoding.
    pub sdn: ValueEncoding,
}

/// An action.
#[derive(Clone, Debug)]
pub struct ActionSchema {
    /// P4Info id.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Id in the program; `None` if no table uses the action.
    pub ir: Option<ActionId>,
    /// Parameters in order.
    pub params: Vec<FieldSchema>,
}

/// A table.
#[derive(Clone, Debug)]
pub struct TableSchema {
    /// P4Info id.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Id in the program.
    pub ir: TableId,
    /// Match fields.
    pub fields: Vec<FieldSchema>,
    /// P4Info ids of its actions.
    pub actions: Vec<u32>,
    /// P4Info id of its action profile.
    pub profile: Option<u32>,
    /// P4Info id of its direct counter.
    pub counter: Option<u32>,
    /// P4Info id of its direct meter.
    pub meter: Option<u32>,
    /// Whether entries age.
    pub idle_timeout: bool,
    /// Whether all entries are constant.
    pub constant: bool,
    /// Whether some entries are constant.
    pub has_constants: bool,
}

impl TableSchema {
    /// Whether entries have priorities.
    pub fn needs_priority(&self) -> bool {
        self.fields.iter().any(|f| matches!(f.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional))
    }
}

/// An action profile.
#[derive(Clone, Debug)]
pub struct ProfileSchema {
    /// P4Info id.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Id in the program.
    pub ir: ProfileId,
    /// Whether it has groups.
    pub selector: bool,
    /// P4Info ids of the actions that members may have.
    pub actions: Vec<u32>,
    /// Maximum `max_size` of a group; 0 for no limit.
    pub max_group_size: i32,
    /// Maximum weight of a member, if the size of a group is its number of members; 0 for no limit.
    pub max_member_weight: i32,
    /// Whether the size of a group is its number of members, not the sum of their weights.
    pub counts_members: bool,
    /// Whether members have no weights.
    pub weights_disallowed: bool,
}

/// An array of counters, meters or registers.
#[derive(Clone, Debug)]
pub struct ArraySchema<Id> {
    /// P4Info id.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Id in the program.
    pub ir: Id,
    /// Number of elements.
    pub size: u64,
}

/// A register array.
#[derive(Clone, Debug)]
pub struct RegisterSchema {
    /// Id, name and size.
    pub array: ArraySchema<RegisterId>,
    /// Type of the elements; `None` if P4Runtime cannot represent it.
    pub ty: Option<DataType>,
}

/// A value set.
#[derive(Clone, Debug)]
pub struct ValueSetSchema {
    /// P4Info id.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Id in the program.
    pub ir: ValueSetId,
    /// Match fields of the members.
    pub fields: Vec<FieldSchema>,
    /// Maximum number of members.
    pub size: u64,
}

/// A digest.
#[derive(Clone, Debug)]
pub struct DigestSchema {
    /// P4Info id.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Type of the messages; `None` if P4Runtime cannot represent it.
    pub ty: Option<DataType>,
}

/// A program, indexed by the ids of its P4Info.
#[derive(Debug)]
pub struct Schema {
    /// The program.
    pub program: Arc<Program>,
    /// Its P4Info.
    pub info: config::P4Info,
    /// Restrictions on entries.
    pub(crate) checker: p4_constraints::Checker,
    /// References between tables, without entries.
    pub(crate) references: p4_constraints::References,
    pub(crate) tables: BTreeMap<u32, TableSchema>,
    pub(crate) actions: BTreeMap<u32, ActionSchema>,
    pub(crate) profiles: BTreeMap<u32, ProfileSchema>,
    pub(crate) counters: BTreeMap<u32, ArraySchema<CounterId>>,
    pub(crate) meters: BTreeMap<u32, ArraySchema<MeterId>>,
    pub(crate) registers: BTreeMap<u32, RegisterSchema>,
    pub(crate) value_sets: BTreeMap<u32, ValueSetSchema>,
    pub(crate) digests: BTreeMap<u32, DigestSchema>,
    pub(crate) table_ids: BTreeMap<TableId, u32>,
    pub(crate) action_ids: BTreeMap<ActionId, u32>,
    pub(crate) digest_ids: BTreeMap<DigestId, u32>,
    /// The header of packets to the controller.
    pub packet_in: Option<ControllerHeader>,
    /// The header of packets from the controller.
    pub packet_out: Option<ControllerHeader>,
}

macro_rules! lookup {
    ($($method:ident $map:ident $type:ty, $what:literal;)*) => {$(
        #[doc = concat!("The ", $what, " with this id.")]
        ///
        /// # Errors
        /// `INVALID_ARGUMENT` for the id 0, `NOT_FOUND` for other unknown ids.
        pub fn $method(&self, id: u32) -> Result<&$type, Refusal> {
            self.$map.get(&id).ok_or_else(|| missing(id, $what, &self.info))
        }
    )*};
}

impl Schema {
    lookup! {
        table tables TableSchema, "table";
        action actions ActionSchema, "action";
        profile profiles ProfileSchema, "action profile";
        counter counters ArraySchema<CounterId>, "counter";
        meter meters ArraySchema<MeterId>, "meter";
        register registers RegisterSchema, "register";
        value_set value_sets ValueSetSchema, "value set";
        digest digests DigestSchema, "digest";
    }

    /// Returns the ids and names of all objects of P4Info.
    pub(crate) fn objects(&self) -> impl Iterator<Item = (u32, &str)> {
        bind::preambles(&self.info).map(|preamble| (preamble.id, preamble.name.as_str()))
    }

    /// Returns the names in P4Info of what clients read and write.
    pub(crate) fn readable_names(&self) -> impl Iterator<Item = &str> {
        bind::readable_preambles(&self.info).map(|preamble| preamble.name.as_str())
    }

    /// Returns an action's name for messages.
    pub fn action_name(&self, id: u32) -> String {
        self.actions.get(&id).map_or_else(|| format!("{id:#010x}"), |action| action.name.clone())
    }

    /// Returns the names of actions for messages: `` `a`, `b` ``.
    pub fn action_names(&self, ids: &[u32]) -> String {
        ids.iter().map(|id| format!("`{}`", self.action_name(*id))).collect::<Vec<_>>().join(", ")
    }
}

fn missing(id: u32, what: &str, info: &config::P4Info) -> Refusal {
    if id == 0 {
        return Refusal::invalid(format!("the id of the {what} is missing; 0 is not a valid id"));
    }
    match bind::preambles(info).find(|preamble| preamble.id == id) {
        Some(other) => Refusal::invalid(format!("{id:#010x} is not a {what} but the id of `{}`", other.name)),
        None => Refusal::not_found(format!("the program has no {what} with the id {id:#010x}")),
    }
}
