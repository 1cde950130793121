//! Which program entries are for, by the names of its tables.

use std::collections::BTreeMap;

use subscribe::{Key, Layout, Match, Target, Wide};

use super::CONTROL;
use crate::rules::Rules;
use crate::write::{codes_table, part_name};

/// The tables of a stage, as their names end before the place.
const PARTS: [&str; 5] = ["exact", "range", "lpm", "ternary", "rest"];

/// The order of the fields in a program with tables of these names, and what its tables can match. Fields of which there
/// is no table are where they are by themselves.
///
/// # Errors
/// If no program has tables of these names: a sentence.
pub fn shape<'a>(tables: impl Iterator<Item = &'a str>, rules: &Rules, of: Target) -> Result<(Layout, Target), String> {
    let format = &rules.format;
    let sensible = Layout::sensible(format, &[]);
    let columns = || sensible.keys().iter().copied().filter(|key| !key.is_validity());
    let mut parts: BTreeMap<String, (Key, &str)> = BTreeMap::new();
    for key in columns() {
        parts.extend(PARTS.iter().map(|part| (placeless(key, part, rules), (key, *part))));
    }
    let mut target = of;
    let mut at: BTreeMap<usize, Key> = BTreeMap::new();
    let of_codes = |name: &str, kind: Wide| {
        let own = |key: Key| name.strip_prefix(CONTROL) == Some(&codes_table(&key.name(format), kind));
        columns().any(own)
    };
    for name in tables {
        if let Some(kind) = [Wide::Lpm, Wide::Ternary].into_iter().find(|kind| of_codes(name, *kind)) {
            (target.wide, target.has_ranges) = (kind, false);
        }
        let Some((part, place)) = name.strip_prefix(CONTROL).and_then(|name| name.rsplit_once('_')) else { continue };
        let (Some((key, part)), Ok(place)) = (parts.get(part), place.parse::<u16>()) else { continue };
        let place = usize::from(place);
        let other = at.insert(place, *key).filter(|other| other != key);
        let elsewhere = at.iter().find(|(other, its)| **other != place && *its == key);
        if other.is_some() || elsewhere.is_some() {
            return Err(format!("`{name}` belongs to a program with another order of fields than what else is there"));
        }
        let matching = match key {
            Key::Field(id) => format.get(*id).matching,
            _ => Match::Any,
        };
        match (matching, *part) {
            (Match::Any | Match::Range | Match::Lpm, "exact") => target.exact_beside = true,
            (Match::Any, "range") => target.wide = Wide::Range,
            (Match::Any | Match::Range, "lpm") => (target.wide, target.has_ranges) = (Wide::Lpm, false),
            (Match::Any | Match::Range, "ternary") => (target.wide, target.has_ranges) = (Wide::Ternary, false),
            _ => {}
        }
    }
    let mut others = columns().filter(|key| !at.values().any(|known| known == key)).collect::<Vec<_>>().into_iter();
    let first = usize::from(sensible.validities() > 0);
    let count = columns().count();
    let order: Vec<Key> =
        (first..first + count).filter_map(|place| at.get(&place).copied().or_else(|| others.next())).collect();
    let named: Vec<String> =
        order.iter().filter(|key| !matches!(key, Key::Slot(_))).map(|key| key.name(format)).collect();
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    let layout = Layout::forced(format, &named).map_err(|wrong| wrong.to_string())?;
    let right = |(place, key): (&usize, &Key)| layout.keys().get(layout.validities() + place - first) == Some(key);
    match at.iter().all(right) {
        true => Ok((layout, target)),
        false => Err("the tables are in no order that a program of this format has".to_owned()),
    }
}

/// A table's name without its place.
fn placeless(key: Key, part: &str, rules: &Rules) -> String {
    let name = part_name(&key.name(&rules.format), part, 0);
    name.strip_suffix("_0").unwrap_or(&name).to_owned()
}
