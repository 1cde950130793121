//! Decodes entries: the inverse of [`entries`](crate::entries), for arbitrary entries of a generated program.

mod decoder;
mod keys;
mod reconstruct;
mod roles;

use std::collections::{BTreeMap, BTreeSet};

use subscribe::chain::RowResult;
use subscribe::{Aggregate, ColumnLayout, TableChain, state};

use crate::entries::Entity;
use crate::format::ProgramFormat;
use crate::rule_format::RuleFormat;
use crate::write::{EVERYONE, REST_SESSION};
use decoder::EntryDecoder;

pub(crate) use keys::intervals;
pub use reconstruct::{ReconstructError, reconstruct};

/// The control that contains the tables of rules.
const CONTROL: &str = "Subscriptions.";

/// An error in an entity, or a remark on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Index of the entity in the input.
    pub at: usize,
    /// Index of a related entity.
    pub also: Option<usize>,
    /// Whether the error prevents any statement about the entities.
    pub is_error: bool,
    /// The message, a sentence.
    pub message: String,
}

/// The decoded behaviour of a program with certain entries.
#[derive(Clone, Debug)]
pub struct Meaning {
    /// Delivery of messages.
    pub chain: TableChain,
    /// Ports of packets without messages, if they are forwarded.
    pub everyone: Vec<u32>,
    /// Whether the rest of a packet is recirculated.
    pub goes_round: bool,
    /// Pairs of ports: packets from the first are not sent to the second.
    pub split_horizon: BTreeSet<(u32, u32)>,
    /// Linked aggregates, by slot.
    pub links: BTreeMap<u16, Aggregate>,
    /// Keys with dedicated cells, by aggregate.
    pub places: BTreeSet<(usize, Vec<u128>)>,
}

/// Decodes the entities of a program with this column order. The controller's port has no special meaning here.
pub fn read_back(
    entities: &[Entity],
    format: &ProgramFormat,
    rules: &RuleFormat,
    layout: &ColumnLayout,
) -> (Meaning, Vec<Finding>) {
    let mut decoder = EntryDecoder {
        format,
        rules,
        roles: roles::roles(format, rules, layout),
        groups: BTreeMap::new(),
        findings: Vec::new(),
        meaning: Meaning {
            chain: TableChain::new(layout.clone()),
            everyone: Vec::new(),
            goes_round: false,
            split_horizon: BTreeSet::new(),
            links: BTreeMap::new(),
            places: BTreeSet::new(),
        },
        taken: BTreeMap::new(),
        updates: BTreeMap::new(),
        second_terms: BTreeMap::new(),
        strangers: BTreeSet::new(),
    };
    for entity in entities {
        match entity {
            Entity::Group(id, ports) => {
                let mut ports = ports.clone();
                ports.sort_unstable();
                if *id == u32::from(EVERYONE) && format.messages.is_some() {
                    decoder.meaning.everyone = ports.clone();
                }
                decoder.groups.insert(*id, ports);
            }
            Entity::Session(id, _) => {
                decoder.meaning.goes_round |= format.messages.is_some() && *id == u32::from(REST_SESSION);
            }
            Entity::Table(_) => {}
        }
    }
    for (at, entity) in entities.iter().enumerate() {
        if let Entity::Table(entry) = entity {
            decoder.entry(at, entry);
        }
    }
    decoder.finish_updates();
    let EntryDecoder { mut meaning, mut findings, .. } = decoder;
    for leaf in meaning.chain.leaves.values_mut() {
        leaf.calls.sort_unstable();
        leaf.updates.sort_unstable();
    }
    for (other, at) in meaning.chain.ambiguous() {
        let message =
            "this entry and another one match the same values with the same priority: which one applies is undefined";
        findings.push(Finding { at, also: Some(other), is_error: true, message: message.to_owned() });
    }
    astray(&meaning.chain, &mut findings);
    (meaning, findings)
}

/// Whether a table of a generated program holds rules, by its full name. Tables of the format's own controls have the
/// control's name in theirs (`Subscriptions.Route.routes`).
pub fn is_rule_table(name: &str) -> bool {
    name.strip_prefix(CONTROL).is_some_and(|rest| !rest.contains('.')) && name != crate::HOST_ADDRESSES
}

/// Reports states that lead back to an earlier stage or that no stage looks up.
fn astray(chain: &TableChain, findings: &mut Vec<Finding>) {
    for row in &chain.rows {
        if !chain.is_looked_up(row.stage, row.state) {
            let message = format!("no message reaches this in state {:#010x}: another table matches it", row.state);
            findings.push(Finding { at: row.at, also: None, is_error: false, message });
            continue;
        }
        // State 0 means that nothing matches.
        if let RowResult::State(next @ 1..) = row.then {
            let here = state::stage_tag(row.stage.into());
            if state::tag(next) <= here && state::tag(next) < state::STATEFUL_LEAF - 1 {
                let message = format!(
                    "state {next:#010x} leads back to a table that messages have already passed: they are lost"
                );
                findings.push(Finding { at: row.at, also: None, is_error: false, message });
            }
        }
    }
}
