//! What each table of a program is there for.

use std::collections::BTreeMap;

use subscribe::chain::Part;
use subscribe::{Key, Layout, Wide};

use super::CONTROL;
use crate::format::Format;
use crate::rules::Rules;
use crate::write::{COUNTS, VALIDITY, codes_table, do_table, part_name, place_table, update_table, wide_name};

/// The table of pairs of ports between which nothing is copied.
const SPLIT_HORIZON: &str = "SubscriptionsEgress.split_horizon";

/// What a table is there for.
#[derive(Clone, Copy)]
pub(super) enum Role {
    Validity,
    /// A stage's, and the width of what it matches.
    Stage(u16, Part, u32),
    Codes(u16),
    Leaf,
    Do(usize),
    Counts,
    Update(usize),
    Place(usize),
    SplitHorizon,
}

/// The tables of a program, by their full names.
pub(super) fn roles(format: &Format, rules: &Rules, layout: &Layout) -> BTreeMap<String, Role> {
    let mut roles = BTreeMap::new();
    let mut add = |name: String, role: Role| roles.insert(format!("{CONTROL}{name}"), role);
    let first = usize::from(layout.validities() > 0);
    add(VALIDITY.to_owned(), Role::Validity);
    for (number, key) in (first..).zip(&layout.keys()[layout.validities()..]) {
        let (stage, column) = (number as u16, key.name(&rules.format));
        let codes = match key {
            Key::Field(id) => rules.format.compressed(*id),
            _ => None,
        };
        let width = codes.unwrap_or_else(|| key.width(&rules.format));
        add(part_name(&column, "exact", number), Role::Stage(stage, Part::Exact, width));
        for wide in [Wide::Range, Wide::Lpm, Wide::Ternary] {
            add(part_name(&column, wide_name(wide), number), Role::Stage(stage, Part::Wide, width));
        }
        add(part_name(&column, "rest", number), Role::Stage(stage, Part::Rest, width));
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
    }
    for at in 0..format.aggregates.len() {
        add(place_table(at), Role::Place(at));
    }
    roles.insert(SPLIT_HORIZON.to_owned(), Role::SplitHorizon);
    roles
}
