//! A program as the control plane names it, bound to the program that runs: P4Info's ids on one side, the IR's on the
//! other.

mod bind;
mod data;
mod header;
mod sdn;

use std::collections::BTreeMap;
use std::sync::Arc;

use bits::Bits;
use ir::{ActionId, CounterId, DigestId, MatchKind, MeterId, ProfileId, Program, RegisterId, TableId, ValueSetId};
use p4runtime_proto::config;

pub use data::DataType;
pub use header::ControllerHeader;
pub use sdn::Translated;

use crate::bytestring;
use crate::status::Refusal;

/// How a value looks to the controller, where that is not how it looks to the program (`@p4runtime_translation`).
#[derive(Clone, Debug)]
pub enum Sdn {
    /// The same number.
    Plain,
    /// A number of another width, or a text.
    Translated(Translated),
}

impl Sdn {
    /// The program's bits for what a controller writes.
    ///
    /// # Errors
    /// If it does not fit, or stands for nothing in the program.
    pub fn parse(&self, bytes: &[u8], width: u32) -> Result<Bits, Refusal> {
        match self {
            Sdn::Plain => bytestring::parse(bytes, width),
            Sdn::Translated(translated) => translated.parse(bytes, width),
        }
    }

    /// What a controller reads for the program's bits.
    pub fn print(&self, value: &Bits) -> Vec<u8> {
        match self {
            Sdn::Plain => bytestring::print(value),
            Sdn::Translated(translated) => translated.print(value),
        }
    }
}

/// A value that the controller gives: a match field or a parameter.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its id within the table or action.
    pub id: u32,
    /// Its name: `hdr.ipv4.dstAddr`.
    pub name: String,
    /// Bits in the program.
    pub width: u32,
    /// How it is matched; parameters are exact.
    pub kind: MatchKind,
    /// How the controller sees it.
    pub sdn: Sdn,
}

/// An action.
#[derive(Clone, Debug)]
pub struct Action {
    /// Its P4Info id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Which it is in the program; none if no table has it.
    pub ir: Option<ActionId>,
    /// Its parameters in order.
    pub params: Vec<Field>,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its P4Info id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Which it is in the program.
    pub ir: TableId,
    /// What entries match.
    pub fields: Vec<Field>,
    /// Ids of its actions.
    pub actions: Vec<u32>,
    /// Id of its action profile.
    pub profile: Option<u32>,
    /// Id of its direct counter.
    pub counter: Option<u32>,
    /// Id of its direct meter.
    pub meter: Option<u32>,
    /// Whether entries age.
    pub idle_timeout: bool,
    /// Whether its entries are constant.
    pub constant: bool,
    /// Whether some of its entries are.
    pub has_constants: bool,
}

impl Table {
    /// Whether entries have priorities.
    pub fn needs_priority(&self) -> bool {
        self.fields.iter().any(|f| matches!(f.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional))
    }
}

/// An action profile.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its P4Info id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Which it is in the program.
    pub ir: ProfileId,
    /// Whether it has groups.
    pub selector: bool,
    /// Ids of the actions its members may have.
    pub actions: Vec<u32>,
    /// The largest `max_size` of a group; 0 for no limit.
    pub max_group_size: i32,
    /// The largest weight of a member, where groups are sized by their members; 0 for no limit.
    pub max_member_weight: i32,
    /// Whether groups are sized by the number of their members, not by the sum of the weights.
    pub counts_members: bool,
    /// Whether members have no weights.
    pub weights_disallowed: bool,
}

/// An array of counters, meters or registers.
#[derive(Clone, Debug)]
pub struct Array<Id> {
    /// Its P4Info id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Which it is in the program.
    pub ir: Id,
    /// Its number of elements.
    pub size: u64,
}

/// A register array.
#[derive(Clone, Debug)]
pub struct Register {
    /// What all arrays have.
    pub array: Array<RegisterId>,
    /// What an element is; `None` if it is nothing that P4Runtime can say.
    pub ty: Option<DataType>,
}

/// A value set.
#[derive(Clone, Debug)]
pub struct ValueSet {
    /// Its P4Info id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Which it is in the program.
    pub ir: ValueSetId,
    /// What members match.
    pub fields: Vec<Field>,
    /// How many members it holds.
    pub size: u64,
}

/// A digest.
#[derive(Clone, Debug)]
pub struct Digest {
    /// Its P4Info id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// What a message is; `None` if it is nothing that P4Runtime can say.
    pub ty: Option<DataType>,
}

/// A program, by the ids of its P4Info.
#[derive(Debug)]
pub struct Schema {
    /// The program.
    pub program: Arc<Program>,
    /// Its description.
    pub info: config::P4Info,
    /// What the program asks of entries.
    pub(crate) checker: p4_constraints::Checker,
    /// What refers to what in the program, with nothing in it yet.
    pub(crate) references: p4_constraints::References,
    pub(crate) tables: BTreeMap<u32, Table>,
    pub(crate) actions: BTreeMap<u32, Action>,
    pub(crate) profiles: BTreeMap<u32, Profile>,
    pub(crate) counters: BTreeMap<u32, Array<CounterId>>,
    pub(crate) meters: BTreeMap<u32, Array<MeterId>>,
    pub(crate) registers: BTreeMap<u32, Register>,
    pub(crate) value_sets: BTreeMap<u32, ValueSet>,
    pub(crate) digests: BTreeMap<u32, Digest>,
    pub(crate) table_ids: BTreeMap<TableId, u32>,
    pub(crate) action_ids: BTreeMap<ActionId, u32>,
    pub(crate) digest_ids: BTreeMap<DigestId, u32>,
    /// The header in front of packets to the controller.
    pub packet_in: Option<ControllerHeader>,
    /// The header in front of packets from the controller.
    pub packet_out: Option<ControllerHeader>,
}

macro_rules! lookup {
    ($($method:ident $map:ident $type:ty, $what:literal;)*) => {$(
        #[doc = concat!("The ", $what, " with this id.")]
        ///
        /// # Errors
        /// `INVALID_ARGUMENT` for the id 0, `NOT_FOUND` for other ids that are not there.
        pub fn $method(&self, id: u32) -> Result<&$type, Refusal> {
            self.$map.get(&id).ok_or_else(|| missing(id, $what, &self.info))
        }
    )*};
}

impl Schema {
    lookup! {
        table tables Table, "table";
        action actions Action, "action";
        profile profiles Profile, "action profile";
        counter counters Array<CounterId>, "counter";
        meter meters Array<MeterId>, "meter";
        register registers Register, "register";
        value_set value_sets ValueSet, "value set";
        digest digests Digest, "digest";
    }

    /// An action's name for messages.
    pub fn action_name(&self, id: u32) -> String {
        self.actions.get(&id).map_or_else(|| format!("{id:#010x}"), |action| action.name.clone())
    }

    /// The names of actions for messages: `` `a`, `b` ``.
    pub fn action_names(&self, ids: &[u32]) -> String {
        ids.iter().map(|id| format!("`{}`", self.action_name(*id))).collect::<Vec<_>>().join(", ")
    }
}

fn missing(id: u32, what: &str, info: &config::P4Info) -> Refusal {
    if id == 0 {
        return Refusal::invalid(format!("the id of the {what} is missing; 0 is no id"));
    }
    match bind::preambles(info).find(|preamble| preamble.id == id) {
        Some(other) => Refusal::invalid(format!("{id:#010x} is no {what}; it is the id of `{}`", other.name)),
        None => Refusal::not_found(format!("the program has no {what} with the id {id:#010x}")),
    }
}
