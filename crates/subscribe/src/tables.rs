//! Defines the tables of a switch, and their meaning.
//!
//! The program is a chain of *stages*, one for each column of the [`ColumnLayout`], and a state that is passed from
//! stage to stage. It starts as 0. A stage for a field looks up the message's state and the field's value:
//!
//! ```text
//! state, value ──> exact ── miss ──> wide (range, lpm or ternary) ── miss ──> rest (state alone) ── miss ──> as before
//!                   hit: next state       hit: next state                hit: next state
//! ```
//!
//! If [`Stage::codes`] is set, a table of ranges ([`CodeEntry`]) first maps the value to a code, independent of the
//! state; a value without an entry has code 0. The exact and wide tables then match the code.
//!
//! If the format has headers, the first stage is that of validity. Its one table matches the validity bits of all
//! headers, independent of the state. After the last stage, the *leaf* table maps the state to a [`Delivery`]; a state
//! without a leaf delivers nothing.
//!
//! A state belongs to one stage, which its tag names ([`state`](crate::compile::state)). All other stages have no entry
//! for it and leave it unchanged, so a program may skip them. The rules determine which of a stage's tables have
//! entries. The [`TargetCapabilities`] and the field's [`Match`] alone determine which tables exist, so a program
//! can be generated before there are rules.

use crate::compile::aggregates::KeyCell;
use crate::compile::layout::{ColumnKey, ColumnLayout};
use crate::compile::slots::SlotUse;
use crate::format::{ActionId, Match, MessageFormat};
use crate::reference::evaluate::Message;
use crate::rule::Update;

/// A state of the pipeline. 0 is the initial state; after the first stage it means that nothing matches. Other states
/// name the stage that looks them up: see [`state`](crate::compile::state).
pub type StateId = u32;

/// Match kind for intervals of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wide {
    /// Ranges; each value is in at most one entry.
    Range,
    /// Prefixes; the longest wins.
    Lpm,
    /// Values with masks, all of them prefixes; [`StageEntry::priority`] decides.
    Ternary,
}

/// Capabilities of the target's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetCapabilities {
    /// Match kind for intervals in fields annotated with plain `@query_field`.
    pub wide: Wide,
    /// Whether fields whose tables match intervals also have an exact table for single values. Exact entries need less
    /// memory in hardware; in software, the table costs one more lookup.
    pub exact_beside: bool,
    /// Whether fields that require ranges (`@query_field_range`) get them; otherwise `wide` applies.
    pub has_ranges: bool,
    /// Largest multicast group number. Groups are numbered from 1.
    pub max_group: u32,
    /// Whether several ports need a multicast group; otherwise entries name the ports themselves.
    pub needs_groups: bool,
    /// Whether a message may update each counter only once; rules that need more are refused.
    pub one_update: bool,
    /// Whether entries that lead to a [plain](Delivery::is_plain) leaf contain its delivery themselves, so the
    /// leaf takes no entry. The delivery of such a leaf never changes: other ports are another leaf.
    pub carries: bool,
}

impl Default for TargetCapabilities {
    /// Returns the capabilities of v1model.
    fn default() -> Self {
        TargetCapabilities {
            wide: Wide::Range,
            exact_beside: true,
            has_ranges: true,
            max_group: 0xffff,
            needs_groups: true,
            one_update: false,
            carries: false,
        }
    }
}

/// The tables of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Lookup key.
    pub column: StageKey,
    /// Whether there is a table that matches state and value exactly.
    pub exact: bool,
    /// Match kind of the table of intervals, if there is one.
    pub wide: Option<Wide>,
    /// Width in bits of the codes that values are mapped to first, if any.
    pub codes: Option<u32>,
    /// Match kind of the code table, if there is one. A [`CodeEntry`] may take several prefixes there:
    /// [`cover`](crate::cover).
    pub code_table: Wide,
}

/// Lookup key of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageKey {
    /// The validity of every header of the format, by [`HeaderId`](crate::HeaderId).
    Validity,
    /// One column.
    Column(ColumnKey),
}

/// Returns the stages of a program, in order.
pub fn stages(format: &MessageFormat, layout: &ColumnLayout, target: &TargetCapabilities) -> Vec<Stage> {
    let validity = Stage { column: StageKey::Validity, exact: false, wide: None, codes: None, code_table: target.wide };
    let columns = layout.keys()[layout.validities()..].iter().map(|key| {
        let matching = match key {
            ColumnKey::Field(id) => format.get(*id).matching,
            _ => Match::Any,
        };
        let (exact, wide) = match matching {
            Match::Exact => (true, None),
            Match::Lpm => (target.exact_beside, Some(Wide::Lpm)),
            Match::Range if target.has_ranges => (target.exact_beside, Some(Wide::Range)),
            Match::Range | Match::Any => (target.exact_beside, Some(target.wide)),
        };
        let codes = match key {
            ColumnKey::Field(id) => format.compressed(*id),
            _ => None,
        };
        let code_table = if target.has_ranges { Wide::Range } else { target.wide };
        Stage { column: StageKey::Column(*key), exact, wide, codes, code_table }
    });
    (layout.validities() > 0).then_some(validity).into_iter().chain(columns).collect()
}

/// Key of a stage's entry besides the state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryKey {
    /// In the exact table: this value.
    Exact(u128),
    /// In the wide table: from the first to the second, both inclusive.
    Range(u128, u128),
    /// In the wide table: values that begin with the first `length` bits of `value`.
    Prefix {
        /// The bits; 0 after the prefix.
        value: u128,
        /// Length in bits.
        length: u32,
    },
    /// In the table of the rest: any value that no other entry matches.
    Rest,
    /// In the validity table: required validity of each header; `None` matches both.
    Validity(Vec<Option<bool>>),
}

/// An entry of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StageEntry {
    /// Index of the stage in [`stages`].
    pub stage: u16,
    /// State that the entry matches; 0 in the validity table, which does not match the state.
    pub state: StateId,
    /// Value that it matches.
    pub key: EntryKey,
    /// Next state.
    pub next: StateId,
}

impl StageEntry {
    /// Returns the precedence among entries of a state that match the same value; the highest wins. It differs only
    /// between prefixes.
    pub fn priority(&self) -> u32 {
        match self.key {
            EntryKey::Prefix { length, .. } => length + 1,
            _ => 1,
        }
    }
}

/// An entry of a stage's code table: a range of values.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeEntry {
    /// Index of the stage in [`stages`].
    pub stage: u16,
    /// First value.
    pub first: u128,
    /// Last value.
    pub last: u128,
    /// Code that replaces the value.
    pub code: u128,
}

/// A multicast group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortGroup {
    /// Number, from 1.
    pub id: u32,
    /// Ports, ascending, at least two.
    pub ports: Vec<u32>,
}

/// The combined effect of all matching rules on a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Delivery {
    /// Destination ports, ascending.
    pub ports: Vec<u32>,
    /// Multicast group of these ports, if there are two or more.
    pub group: Option<u32>,
    /// Whether the controller receives a copy.
    pub to_controller: bool,
    /// Whether a rule that matches says `drop`, where that is known: in explanations. The message goes to `ports`
    /// anyway; if there are none, the flag distinguishes it from a message that no rule matches.
    pub drop: bool,
    /// Actions of the program with their arguments; each action at most once (the compiler refuses other rules).
    pub calls: Vec<(ActionId, Vec<u128>)>,
    /// Updates of counters.
    pub updates: Vec<Update>,
    /// Slots whose aggregates count this message, ascending.
    pub slots: Vec<u16>,
}

impl Delivery {
    /// Whether the message only goes to ports.
    pub fn is_plain(&self) -> bool {
        let is_more =
            self.to_controller || !self.calls.is_empty() || !self.updates.is_empty() || !self.slots.is_empty();
        !self.ports.is_empty() && !is_more
    }
}

/// An entry of the leaf table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// State after the last stage.
    pub state: StateId,
    /// Delivery in this state.
    pub delivery: Delivery,
}

/// The full contents of a switch's tables for a set of rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// Stage entries, sorted by stage, state and key.
    pub entries: Vec<StageEntry>,
    /// Leaves, sorted by state.
    pub leaves: Vec<Leaf>,
    /// Groups, sorted by number.
    pub groups: Vec<PortGroup>,
    /// Code entries, sorted by stage and value.
    pub codes: Vec<CodeEntry>,
    /// Key cells, sorted by aggregate and key.
    pub key_cells: Vec<KeyCell>,
    /// Linked slots in use, sorted by number.
    pub links: Vec<SlotUse>,
}

impl Tables {
    /// Returns the delivery of a message, looked up as in a switch.
    pub fn run(&self, format: &MessageFormat, layout: &ColumnLayout, message: &Message) -> Delivery {
        let mut state = 0;
        let mut at = 0;
        while let Some(entry) = self.entries.get(at) {
            let stage = usize::from(entry.stage);
            let end = at + self.entries[at..].partition_point(|entry| usize::from(entry.stage) == stage);
            let of_stage = &self.entries[at..end];
            let from = of_stage.partition_point(|entry| entry.state < state);
            let to = of_stage.partition_point(|entry| entry.state <= state);
            state = self.look_up(&of_stage[from..to], format, layout, message).unwrap_or(state);
            at = end;
        }
        let leaf = self.leaves.binary_search_by_key(&state, |leaf| leaf.state);
        leaf.map(|at| self.leaves[at].delivery.clone()).unwrap_or_default()
    }
}

impl Tables {
    /// Returns the next state, given the entries of one state in one stage.
    fn look_up(
        &self,
        entries: &[StageEntry],
        format: &MessageFormat,
        layout: &ColumnLayout,
        message: &Message,
    ) -> Option<StateId> {
        let stage = entries.first()?.stage;
        let has_validity = layout.validities() > 0;
        let key = match usize::from(stage) {
            0 if has_validity => ColumnKey::Valid(crate::format::HeaderId(0)),
            stage => layout.keys()[layout.validities() + stage - usize::from(has_validity)],
        };
        let (mut value, mut width) = (message.column(format, key), key.width(format));
        if let ColumnKey::Field(id) = key
            && let Some(bits) = format.compressed(id)
        {
            let code = self.codes.iter().find(|code| code.stage == stage && (code.first..=code.last).contains(&value));
            (value, width) = (code.map_or(0, |code| code.code), bits);
        }
        let rank = |entry: &StageEntry| match &entry.key {
            EntryKey::Exact(wanted) => (*wanted == value).then_some(u32::MAX),
            EntryKey::Range(first, last) => (*first..=*last).contains(&value).then_some(1),
            EntryKey::Prefix { value: wanted, length } => {
                let below = width - length;
                let same = below >= 128 || *wanted >> below == value >> below;
                same.then_some(length + 1)
            }
            EntryKey::Rest => Some(0),
            EntryKey::Validity(wanted) => {
                let same =
                    wanted.iter().zip(&message.valid).all(|(wanted, is)| wanted.is_none_or(|wanted| wanted == *is));
                same.then_some(1)
            }
        };
        let ranked = entries.iter().filter_map(|entry| Some((rank(entry)?, entry.next)));
        ranked.max_by_key(|(rank, _)| *rank).map(|(_, next)| next)
    }
}

/// Difference between the tables before and after a change of rules.
///
/// Applied at once, it leaves no message with a mixture of old and new rules. A target without atomic writes applies
/// one write after the other, in the order of the fields here. For per-message consistency, the rules must then be
/// compiled for [`UpdateMode::PerMessageConsistent`](crate::UpdateMode::PerMessageConsistent), which specifies the
/// order of the entries of a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableChange {
    /// Code entries to delete first.
    pub old_codes: Vec<CodeEntry>,
    /// Code entries to add next. A value may have no code in between: if bounds of a field with codes change, only an
    /// atomic change leaves no message with a mixture.
    pub new_codes: Vec<CodeEntry>,
    /// Linked slots that change.
    pub links: Vec<SlotUse>,
    /// Key cells to assign first; a cell may be one that is freed by this change.
    pub new_key_cells: Vec<KeyCell>,
    /// Groups to create first.
    pub new_groups: Vec<PortGroup>,
    /// Leaves to add.
    pub new_leaves: Vec<Leaf>,
    /// Leaves whose delivery changes.
    pub modified_leaves: Vec<Leaf>,
    /// Entries to add.
    pub inserted: Vec<StageEntry>,
    /// Entries whose `next` changes.
    pub modified: Vec<StageEntry>,
    /// Entries to delete, with their previous `next`.
    pub deleted: Vec<StageEntry>,
    /// States whose leaves are deleted.
    pub old_leaves: Vec<StateId>,
    /// Groups to delete last.
    pub old_groups: Vec<u32>,
    /// Key cells to free last.
    pub old_key_cells: Vec<KeyCell>,
    /// States that stay and whose entries change, including 0; ascending. All other entries in the change belong to
    /// states that are new or removed.
    pub kept: Vec<StateId>,
}

impl TableChange {
    /// Returns the number of writes.
    pub fn len(&self) -> usize {
        self.new_groups.len()
            + self.new_leaves.len()
            + self.modified_leaves.len()
            + self.inserted.len()
            + self.modified.len()
            + self.deleted.len()
            + self.old_leaves.len()
            + self.old_groups.len()
            + self.old_codes.len()
            + self.new_codes.len()
            + self.new_key_cells.len()
            + self.old_key_cells.len()
            + self.links.len()
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
