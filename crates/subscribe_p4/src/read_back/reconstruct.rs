//! Reconstructs a program's column order from its table names.

use std::collections::BTreeMap;
use std::fmt;

use subscribe::{ColumnKey, ColumnLayout, Match, OrderError, TargetCapabilities, Wide};

use super::CONTROL;
use crate::rule_format::RuleFormat;
use crate::write::{codes_table, part_name};

/// Suffixes of a stage's tables before the stage number.
const PARTS: [&str; 5] = ["exact", "range", "lpm", "ternary", "rest"];

/// Tables of no program that the format has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReconstructError {
    /// The table with this name belongs to another order of fields than the tables before it.
    OtherOrder(String),
    /// The names of the fields are not those of an order.
    Order(OrderError),
    /// The tables are in no order that the format has.
    NoOrder,
}

impl fmt::Display for ReconstructError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReconstructError::OtherOrder(table) => {
                write!(f, "`{table}` belongs to a program with a different field order than the other tables")
            }
            ReconstructError::Order(error) => error.fmt(f),
            ReconstructError::NoOrder => f.write_str("no program of this format has its tables in this order"),
        }
    }
}

impl std::error::Error for ReconstructError {}

/// Returns the column order and the table capabilities of a program with these tables. Fields without tables keep their
/// default positions.
///
/// # Errors
/// If no program has tables with these names.
pub fn reconstruct<'a>(
    tables: impl Iterator<Item = &'a str>,
    rules: &RuleFormat,
    of: TargetCapabilities,
) -> Result<(ColumnLayout, TargetCapabilities), ReconstructError> {
    let format = &rules.format;
    let sensible = ColumnLayout::sensible(format, &[]);
    let columns = || sensible.keys().iter().copied().filter(|key| !key.is_validity());
    let mut parts: BTreeMap<String, (ColumnKey, &str)> = BTreeMap::new();
    for key in columns() {
        parts.extend(PARTS.iter().map(|part| (placeless(key, part, rules), (key, *part))));
    }
    let mut target = of;
    let mut at: BTreeMap<usize, ColumnKey> = BTreeMap::new();
    let of_codes = |name: &str, kind: Wide| {
        let own = |key: ColumnKey| name.strip_prefix(CONTROL) == Some(&codes_table(&key.name(format), kind));
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
            return Err(ReconstructError::OtherOrder(name.to_owned()));
        }
        let matching = match key {
            ColumnKey::Field(id) => format.get(*id).matching,
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
    let order: Vec<ColumnKey> =
        (first..first + count).filter_map(|place| at.get(&place).copied().or_else(|| others.next())).collect();
    let named: Vec<String> =
        order.iter().filter(|key| !matches!(key, ColumnKey::Slot(_))).map(|key| key.name(format)).collect();
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    let layout = ColumnLayout::forced(format, &named).map_err(ReconstructError::Order)?;
    let right =
        |(place, key): (&usize, &ColumnKey)| layout.keys().get(layout.validities() + place - first) == Some(key);
    if at.iter().all(right) { Ok((layout, target)) } else { Err(ReconstructError::NoOrder) }
}

/// Returns a table name without its stage number.
fn placeless(key: ColumnKey, part: &str, rules: &RuleFormat) -> String {
    let name = part_name(&key.name(&rules.format), part, 0);
    name.strip_suffix("_0").unwrap_or(&name).to_owned()
}
