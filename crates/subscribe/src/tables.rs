//! What a switch is given: table entries, and the meaning of them.
//!
//! The program is a chain of *stages*, one for each column of the [`Layout`], and a state that goes from
//! stage to stage. It begins as 0. In a stage for a field, the message's state and the field's value are looked up:
//!
//! ```text
//! state, value ──> exact ── miss ──> wide (range, lpm or ternary) ── miss ──> rest (state alone) ── miss ──> as before
//!                   hit: next state       hit: next state                hit: next state
//! ```
//!
//! Where [`Stage::codes`] says so, the value is first mapped onto a code by a table of ranges ([`CodeEntry`]), which
//! knows no state; a value without an entry has code 0. Exact and wide tables then match the code.
//!
//! The first stage is that of validity, if the format has headers: its one table matches the validity bits of all of them
//! and knows no state. Behind the last stage, the *leaf* table maps the state to a [`Delivery`]; a state without a leaf
//! delivers nothing.
//!
//! A state is of one stage, which its number tells ([`state`](crate::state)); the others have no entry for it and let
//! it pass, so that a program may skip them. Which of a stage's tables have entries depends on the rules, which of them
//! exist on the [`Target`] and the field's [`Match`] alone, so that a program can be generated before there are rules.

use crate::computed::Place;
use crate::evaluate::Message;
use crate::format::{ActionId, Format, Match};
use crate::layout::{Key, Layout};
use crate::rule::Update;

/// A state of the pipeline. 0 is the state that messages begin with; after the first stage it means that nothing matches.
/// Others tell which stage asks them: see [`state`](crate::state).
pub type State = u32;

/// How a target matches stretches of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wide {
    /// As ranges, each value in one entry at most.
    Range,
    /// As prefixes; the longest wins.
    Lpm,
    /// As values with masks, all of them prefixes; [`Entry::priority`] says which wins.
    Ternary,
}

/// What the tables of a target can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// How stretches are matched in fields that say no more than `@query_field`.
    pub wide: Wide,
    /// Whether fields whose tables match stretches have an exact table too, which takes all single values: memory for
    /// exact entries costs a switch less. It is one lookup more for software.
    pub exact_beside: bool,
    /// Whether fields that ask for ranges (`@query_field_range`) can have them; else they are matched as `wide` says.
    pub has_ranges: bool,
    /// The largest multicast group's number. Groups are numbered from 1.
    pub max_group: u32,
    /// Whether a message updates each counter once at most: rules that ask for more are refused.
    pub one_update: bool,
    /// Whether entries that lead to a leaf where messages are [delivered and no more](Delivery::is_plain) say
    /// themselves where to, so that such a leaf takes no entry. Then its delivery never changes: other ports are
    /// another leaf.
    pub carries: bool,
}

impl Default for Target {
    /// v1model.
    fn default() -> Self {
        Target {
            wide: Wide::Range,
            exact_beside: true,
            has_ranges: true,
            max_group: 0xffff,
            one_update: false,
            carries: false,
        }
    }
}

/// The tables of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// What is looked up.
    pub column: StageKey,
    /// Whether there is a table that matches state and value exactly.
    pub exact: bool,
    /// How the table for stretches matches, if there is one.
    pub wide: Option<Wide>,
    /// The width of the codes that values are mapped onto before, if they are.
    pub codes: Option<u32>,
    /// How the table of the codes matches values, if there is one. A [`CodeEntry`] may take several prefixes there:
    /// [`cover`](crate::cover).
    pub code_table: Wide,
}

/// What a stage looks up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageKey {
    /// The validity of every header of the format, by [`HeaderId`](crate::HeaderId).
    Validity,
    /// One column.
    Column(Key),
}

/// The stages of a program, in order.
pub fn stages(format: &Format, layout: &Layout, target: &Target) -> Vec<Stage> {
    let validity = Stage { column: StageKey::Validity, exact: false, wide: None, codes: None, code_table: target.wide };
    let columns = layout.keys()[layout.validities()..].iter().map(|key| {
        let matching = match key {
            Key::Field(id) => format.get(*id).matching,
            _ => Match::Any,
        };
        let (exact, wide) = match matching {
            Match::Exact => (true, None),
            Match::Lpm => (target.exact_beside, Some(Wide::Lpm)),
            Match::Range if target.has_ranges => (target.exact_beside, Some(Wide::Range)),
            Match::Range | Match::Any => (target.exact_beside, Some(target.wide)),
        };
        let codes = match key {
            Key::Field(id) => format.compressed(*id),
            _ => None,
        };
        let code_table = if target.has_ranges { Wide::Range } else { target.wide };
        Stage { column: StageKey::Column(*key), exact, wide, codes, code_table }
    });
    (layout.validities() > 0).then_some(validity).into_iter().chain(columns).collect()
}

/// What an entry of a stage matches besides the state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryKey {
    /// In the exact table: this value.
    Exact(u128),
    /// In the wide table: from the first to the second, both included.
    Range(u128, u128),
    /// In the wide table: values whose first bits are those of `value`.
    Prefix {
        /// The bits; 0 behind the prefix.
        value: u128,
        /// How many.
        length: u32,
    },
    /// In the table of the rest: any value that nothing else matches.
    Rest,
    /// In the validity table: for each header whether it is valid; `None` for no matter.
    Validity(Vec<Option<bool>>),
}

/// An entry of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry {
    /// The place of the stage in [`stages`].
    pub stage: u16,
    /// The state that it is for; 0 in the validity table, which does not match it.
    pub state: State,
    /// What it matches.
    pub key: EntryKey,
    /// The state afterwards.
    pub next: State,
}

impl Entry {
    /// Of two entries for a state that match a value, the one with the higher priority counts. Different in prefixes
    /// only.
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
    /// The place of the stage in [`stages`].
    pub stage: u16,
    /// The first value.
    pub first: u128,
    /// The last value.
    pub last: u128,
    /// What takes the value's place.
    pub code: u128,
}

/// A multicast group; numbers begin at 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    /// Its number.
    pub id: u32,
    /// Ascending, two or more.
    pub ports: Vec<u32>,
}

/// All that is done with a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Delivery {
    /// Where it goes; ascending.
    pub ports: Vec<u32>,
    /// The group of these ports, if there are two or more.
    pub group: Option<u32>,
    /// Whether the controller gets it.
    pub to_controller: bool,
    /// Whether a rule says `drop`. It goes to `ports` all the same; if there are none, this tells it from a message that
    /// no rule matches.
    pub drop: bool,
    /// Actions of the program with their arguments; each action once (the compiler refuses other rules).
    pub calls: Vec<(ActionId, Vec<u128>)>,
    /// Updates of counters.
    pub updates: Vec<Update>,
    /// Slots whose aggregates this message counts for; ascending.
    pub slots: Vec<u16>,
}

impl Delivery {
    /// Whether messages go to ports, and nothing else is done.
    pub fn is_plain(&self) -> bool {
        let is_more =
            self.to_controller || !self.calls.is_empty() || !self.updates.is_empty() || !self.slots.is_empty();
        !self.ports.is_empty() && !is_more
    }
}

/// An entry of the leaf table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The state behind the last stage.
    pub state: State,
    /// What is done.
    pub delivery: Delivery,
}

/// All that a switch holds for a set of rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// By stage, state and key.
    pub entries: Vec<Entry>,
    /// By state.
    pub leaves: Vec<Leaf>,
    /// By number.
    pub groups: Vec<Group>,
    /// By stage and value.
    pub codes: Vec<CodeEntry>,
    /// By aggregate and key.
    pub places: Vec<Place>,
}

impl Tables {
    /// What the tables do with a message, looked up as a switch does it.
    pub fn run(&self, format: &Format, layout: &Layout, message: &Message) -> Delivery {
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
    /// The next state, by the entries of one state in one stage.
    fn look_up(&self, entries: &[Entry], format: &Format, layout: &Layout, message: &Message) -> Option<State> {
        let stage = entries.first()?.stage;
        let has_validity = layout.validities() > 0;
        let key = match usize::from(stage) {
            0 if has_validity => Key::Valid(crate::format::HeaderId(0)),
            stage => layout.keys()[layout.validities() + stage - usize::from(has_validity)],
        };
        let (mut value, mut width) = (message.column(key), key.width(format));
        if let Key::Field(id) = key
            && let Some(bits) = format.compressed(id)
        {
            let code = self.codes.iter().find(|code| code.stage == stage && (code.first..=code.last).contains(&value));
            (value, width) = (code.map_or(0, |code| code.code), bits);
        }
        let rank = |entry: &Entry| match &entry.key {
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

/// What a change of the rules changes in the tables.
///
/// All of it at once leaves no message with a mixture. A target that cannot do that applies one write after the other, in
/// the order of the fields here; so that a message sees the old rules or the new ones also then, the rules are to be
/// compiled for [`Writes::InTurn`](crate::Writes::InTurn), whose page says in which order the entries of a state go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Entries of code tables to delete before all else.
    pub old_codes: Vec<CodeEntry>,
    /// Entries of code tables to add then. A value may have no code in between: only all of a change at once leaves no
    /// message with a mixture where bounds of a field with codes come or go.
    pub new_codes: Vec<CodeEntry>,
    /// Places of keys to make first; a place may be one that goes with this change.
    pub new_places: Vec<Place>,
    /// Groups to make first.
    pub new_groups: Vec<Group>,
    /// Leaves to add.
    pub new_leaves: Vec<Leaf>,
    /// Leaves whose delivery changes.
    pub modified_leaves: Vec<Leaf>,
    /// Entries to add.
    pub inserted: Vec<Entry>,
    /// Entries whose `next` changes.
    pub modified: Vec<Entry>,
    /// Entries to delete; `next` is what it was.
    pub deleted: Vec<Entry>,
    /// States whose leaves are deleted.
    pub old_leaves: Vec<State>,
    /// Groups to delete last.
    pub old_groups: Vec<u32>,
    /// Places of keys to delete last.
    pub old_places: Vec<Place>,
    /// States that stay and whose entries change, 0 among them; ascending. All other entries here are of states that are
    /// new or go.
    pub kept: Vec<State>,
}

impl Change {
    /// How many writes it takes.
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
            + self.new_places.len()
            + self.old_places.len()
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
