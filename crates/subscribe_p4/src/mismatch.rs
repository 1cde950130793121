//! Diagnosis of entries that do not fit a program: other field order, other table kinds, or another format.

use subscribe::{ColumnKey, ColumnLayout, MessageFormat};

use crate::write::part_name;

/// Controls that contain the tables of rules.
const CONTROLS: [&str; 2] = ["Subscriptions.", "SubscriptionsEgress."];

/// Reason that a program lacks a table of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramMismatch<'a> {
    /// The program does not match rules at all.
    OtherKind,
    /// The program has another field order, or one of both was made before the format gained a field. The string is the
    /// same field's table in the program.
    OtherOrder(&'a str),
    /// The program was made for another match kind. The string is a table of the same field in the program.
    OtherTables(&'a str),
    /// The program was made from another format, or matches a field in another way.
    OtherFormat,
}

impl ProgramMismatch<'_> {
    /// Returns a clause about the program and the entries; `wanted` is the missing table.
    pub fn describe(self, wanted: &str) -> String {
        match self {
            ProgramMismatch::OtherKind => {
                format!("do not match: the program matches no rules, and has no `{wanted}`")
            }
            ProgramMismatch::OtherOrder(there) => {
                format!("were generated with different field orders: the program has `{there}` and no `{wanted}`")
            }
            ProgramMismatch::OtherTables(there) => {
                format!("were generated for different kinds of tables: the program has `{there}` and no `{wanted}`")
            }
            ProgramMismatch::OtherFormat => {
                format!("were generated from different formats: the program has no `{wanted}`")
            }
        }
    }
}

/// Returns the reason that a program with these tables lacks `wanted`; `None` if the table exists or is not a table of
/// rules.
pub fn mismatch<'a>(wanted: &str, tables: impl Iterator<Item = &'a str> + Clone) -> Option<ProgramMismatch<'a>> {
    let is_ours = |name: &str| CONTROLS.iter().any(|control| name.starts_with(control));
    if !is_ours(wanted) || tables.clone().any(|name| name == wanted) {
        return None;
    }
    if !tables.clone().any(is_ours) {
        return Some(ProgramMismatch::OtherKind);
    }
    if let Some(there) = placeless(wanted).and_then(|part| tables.clone().find(|name| placeless(name) == Some(part))) {
        return Some(ProgramMismatch::OtherOrder(there));
    }
    let other = column(wanted).and_then(|of| tables.clone().find(|name| column(name) == Some(of)));
    Some(other.map_or(ProgramMismatch::OtherFormat, ProgramMismatch::OtherTables))
}

/// Returns the column of a table that matches values or codes (`price` of `price_range_5`), and whether it is a code
/// table.
fn column(table: &str) -> Option<(&str, bool)> {
    const PARTS: [&str; 4] = ["exact", "range", "ternary", "lpm"];
    if let Some(part) = placeless(table) {
        let (column, part) = part.rsplit_once('_')?;
        return PARTS.contains(&part).then_some((column, false));
    }
    let of = PARTS.iter().find_map(|part| table.strip_suffix(part)?.strip_suffix('_')).unwrap_or(table);
    of.strip_suffix("_codes").map(|column| (column, true))
}

/// Returns the column order of a program with these tables, if it was made for rules over this format.
pub fn order<'a>(format: &MessageFormat, tables: impl Iterator<Item = &'a str> + Clone) -> Option<ColumnLayout> {
    let any = ColumnLayout::sensible(format, &[]);
    let mut found: Vec<(usize, ColumnKey)> = Vec::new();
    for key in any.keys().iter().filter(|key| !key.is_validity()) {
        // Every stage has this table.
        let rest = format!("{}{}", CONTROLS[0], part_name(&key.name(format), "rest", 0));
        let own = tables.clone().find(|name| placeless(name).is_some() && placeless(name) == placeless(&rest))?;
        found.push((own.rsplit_once('_')?.1.parse().ok()?, *key));
    }
    found.sort_unstable();
    // A format that gained or lost a field is another format.
    let first = usize::from(any.validities() > 0);
    let is_whole = found.iter().enumerate().all(|(at, (place, _))| at + first == *place);
    let named = found.iter().filter(|(_, key)| !matches!(key, ColumnKey::Slot(_)));
    let names: Vec<String> = named.map(|(_, key)| key.name(format)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    ColumnLayout::forced(format, &names).ok().filter(|_| is_whole)
}

/// Returns a table name without its stage number, if it has one (`price_range` of `price_range_5`).
fn placeless(table: &str) -> Option<&str> {
    let (part, place) = table.rsplit_once('_')?;
    place.bytes().all(|byte| byte.is_ascii_digit()).then_some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_other_orders_formats_and_kinds_are_distinguished() {
        const TABLES: [&str; 3] =
            ["Subscriptions.validity", "Subscriptions.price_range_6", "Subscriptions.price_rest_6"];
        let of = |wanted| mismatch(wanted, TABLES.into_iter());
        assert_eq!(of("Subscriptions.price_range_6"), None);
        assert_eq!(of("Subscriptions.price_range_1"), Some(ProgramMismatch::OtherOrder("Subscriptions.price_range_6")));
        for other in ["price_exact_6", "price_ternary_6", "price_lpm_1"] {
            let wanted = format!("Subscriptions.{other}");
            assert_eq!(
                mismatch(&wanted, TABLES.into_iter()),
                Some(ProgramMismatch::OtherTables("Subscriptions.price_range_6"))
            );
        }
        let codes = ["Subscriptions.price_codes", "Subscriptions.price_range_6"];
        let other = mismatch("Subscriptions.price_codes_lpm", codes.into_iter());
        assert_eq!(other, Some(ProgramMismatch::OtherTables("Subscriptions.price_codes")));
        assert_eq!(of("Subscriptions.shares_range_6"), Some(ProgramMismatch::OtherFormat));
        assert_eq!(of("Subscriptions.leaf"), Some(ProgramMismatch::OtherFormat));
        assert_eq!(of("MyIngress.price_range_1"), None);
        assert_eq!(mismatch("Subscriptions.validity", ["MyIngress.t"].into_iter()), Some(ProgramMismatch::OtherKind));
    }
}
