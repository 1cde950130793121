//! From what a generated program's tables were told back to what it means: the other way round than
//! [`entries`](crate::entries), for entries of anybody.

mod matched;
mod reader;
mod roles;
mod shape;

use std::collections::{BTreeMap, BTreeSet};

use subscribe::chain::Then;
use subscribe::{Chain, Layout, state};

use crate::entries::Entity;
use crate::format::Format;
use crate::rules::Rules;
use crate::write::{EVERYONE, REST_SESSION};
use reader::Reader;

pub(crate) use matched::stretches;
pub use shape::shape;

/// The control of the tables that rules fill.
const CONTROL: &str = "Subscriptions.";

/// What is wrong with an entity, or strange about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which entity, by its place among those that were given.
    pub at: usize,
    /// Another one that it has to do with.
    pub also: Option<usize>,
    /// Whether nothing can be said of all of them because of it.
    pub is_error: bool,
    /// What it is, in a sentence.
    pub message: String,
}

/// What a program with certain entries does.
#[derive(Clone, Debug)]
pub struct Meaning {
    /// What it does with a message.
    pub chain: Chain,
    /// Where packets without messages go, where they go anywhere.
    pub everyone: Vec<u32>,
    /// Whether what is left of a packet goes round.
    pub goes_round: bool,
    /// Pairs of ports: what comes in at the first does not leave at the second.
    pub split_horizon: BTreeSet<(u32, u32)>,
    /// By aggregate, the keys that have cells of their own.
    pub places: BTreeSet<(usize, Vec<u128>)>,
}

/// What these entities come to in a program whose fields are in this order. The controller's port is one like any
/// other.
pub fn read_back(entities: &[Entity], format: &Format, rules: &Rules, layout: &Layout) -> (Meaning, Vec<Finding>) {
    let mut reader = Reader {
        format,
        rules,
        roles: roles::roles(format, rules, layout),
        groups: BTreeMap::new(),
        findings: Vec::new(),
        meaning: Meaning {
            chain: Chain::new(layout.clone()),
            everyone: Vec::new(),
            goes_round: false,
            split_horizon: BTreeSet::new(),
            places: BTreeSet::new(),
        },
        taken: BTreeMap::new(),
        strangers: BTreeSet::new(),
    };
    for entity in entities {
        match entity {
            Entity::Group(id, ports) => {
                let mut ports = ports.clone();
                ports.sort_unstable();
                if *id == u32::from(EVERYONE) && format.messages.is_some() {
                    reader.meaning.everyone = ports.clone();
                }
                reader.groups.insert(*id, ports);
            }
            Entity::Session(id, _) => {
                reader.meaning.goes_round |= format.messages.is_some() && *id == u32::from(REST_SESSION);
            }
            Entity::Table(_) => {}
        }
    }
    for (at, entity) in entities.iter().enumerate() {
        if let Entity::Table(entry) = entity {
            reader.entry(at, entry);
        }
    }
    let Reader { mut meaning, mut findings, .. } = reader;
    for leaf in meaning.chain.leaves.values_mut() {
        leaf.calls.sort_unstable();
        leaf.updates.sort_unstable();
    }
    for (other, at) in meaning.chain.ambiguous() {
        let message =
            "this entry and another one match the same values with the same priority: which of them counts is not said";
        findings.push(Finding { at, also: Some(other), is_error: true, message: message.to_owned() });
    }
    astray(&meaning.chain, &mut findings);
    (meaning, findings)
}

/// Tells of states that lead back or are asked by nobody.
fn astray(chain: &Chain, findings: &mut Vec<Finding>) {
    for row in &chain.rows {
        if !chain.is_asked(row.stage, row.state) {
            let message = format!("no message comes here in state {:#010x}: another table asks it", row.state);
            findings.push(Finding { at: row.at, also: None, is_error: false, message });
            continue;
        }
        // State 0 is that of messages that nothing matches.
        if let Then::State(next @ 1..) = row.then {
            let here = state::stage_tag(row.stage.into());
            if state::tag(next) <= here && state::tag(next) < state::REMEMBERED - 1 {
                let message = format!(
                    "state {next:#010x} leads back to a table behind which messages are already: they are lost"
                );
                findings.push(Finding { at: row.at, also: None, is_error: false, message });
            }
        }
    }
}
