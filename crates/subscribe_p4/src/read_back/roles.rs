//! Roles of a program's tables.

use std::collections::BTreeMap;

use subscribe::chain::StageTable;
use subscribe::{ColumnKey, ColumnLayout, Wide};

use super::CONTROL;
use crate::format::ProgramFormat;
use crate::rule_format::RuleFormat;
use crate::write::{
    COUNTS, VALIDITY, codes_table, combine_table, do_table, link_table, match_kind_name, part_name, place_table,
    update_table,
};

/// Table of port pairs between which nothing is forwarded.
const SPLIT_HORIZON: &str = "SubscriptionsEgress.split_horizon";

/// The role of a table.
#[derive(Clone, Copy)]
pub(super) enum Role {
    Validity,
    /// A table of a stage, with the width of its lookup key in bits.
    Stage(u16, StageTable, u32),
    Codes(u16),
    Leaf,
    Do(usize),
    Counts,
    Update(usize),
    Combine(usize),
    Place(usize),
    /// The link of a slot.
    Link(u16),
    SplitHorizon,
}

/// Returns the roles of a program's tables by full name.
pub(super) fn roles(format: &ProgramFormat, rules: &RuleFormat, layout: &ColumnLayout) -> BTreeMap<String, Role> {
    let mut roles = BTreeMap::new();
    let mut add = |name: String, role: Role| roles.insert(format!("{CONTROL}{name}"), role);
    let first = usize::from(layout.validities() > 0);
    add(VALIDITY.to_owned(), Role::Validity);
    for (number, key) in (first..).zip(&layout.keys()[layout.validities()..]) {
        let (stage, column) = (number as u16, key.name(&rules.format));
        let codes = match key {
            ColumnKey::Field(id) => rules.format.compressed(*id),
            _ => None,
        };
        let width = codes.unwrap_or_else(|| key.width(&rules.format));
        add(part_name(&column, "exact", number), Role::Stage(stage, StageTable::Exact, width));
        for wide in [Wide::Range, Wide::Lpm, Wide::Ternary] {
            add(part_name(&column, match_kind_name(wide), number), Role::Stage(stage, StageTable::Wide, width));
        }
        add(part_name(&column, "rest", number), Role::Stage(stage, StageTable::Rest, width));
        if codes.is_some() {
            for kind in [Wide::Range, Wide::Lpm, Wide::Ternary] {
                add(codes_table(&column, kind), Role::Codes(stage));
            }
        }
    }
    add("leaf".to_owned(), Role::Leaf);
    for (at, action) in format.actions.iter().enumerate() {
        add(do_table(&action.name), Role::Do(at));
    }
    add(COUNTS.to_owned(), Role::Counts);
    for (at, counter) in format.counters.iter().enumerate() {
        add(update_table(&counter.name), Role::Update(at));
        add(combine_table(&counter.name), Role::Combine(at));
    }
    for at in 0..format.aggregates.len() {
        add(place_table(at), Role::Place(at));
    }
    for slot in (0..rules.format.slots).filter(|slot| rules.format.declared_in(*slot).is_none()) {
        add(link_table(slot), Role::Link(slot));
    }
    roles.insert(SPLIT_HORIZON.to_owned(), Role::SplitHorizon);
    roles
}
