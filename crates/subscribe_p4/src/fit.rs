//! Why entries are not for a program: it was made with another order of fields, for other tables, or from another format.

use subscribe::{Format, Key, Layout};

use crate::write::part_name;

/// The controls whose tables rules fill.
const CONTROLS: [&str; 2] = ["Subscriptions.", "SubscriptionsEgress."];

/// Why a program lacks a table that entries of rules are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit<'a> {
    /// The program is none that matches rules.
    OtherKind,
    /// It was made with another order of fields, or before or after the format got a field: this is the same field's table in
    /// its place there.
    OtherOrder(&'a str),
    /// It was made for a target whose tables take something else: this is a table of the same field's there.
    OtherTables(&'a str),
    /// It was made from another format, or has a field matched in another way.
    OtherFormat,
}

impl Misfit<'_> {
    /// What to do about it, with the flags of `triplane subscribe`.
    pub fn remedy(self) -> &'static str {
        match self {
            Misfit::OtherOrder(_) => "make both with the same `--order`, of the same version of the format",
            Misfit::OtherTables(_) => {
                "make both with the same `--ranges` and `--exact-tables`, of the same version of the format"
            }
            Misfit::OtherFormat => {
                "make both of the same version of the format, with the same `--order`, `--ranges` and `--exact-tables`"
            }
            Misfit::OtherKind => "run the program that was made of the rules' format",
        }
    }

    /// What is to be said of program and entries, as the rest of a sentence; `wanted` is the table that there is none of.
    pub fn told(self, wanted: &str) -> String {
        match self {
            Misfit::OtherKind => format!("do not belong together: the program matches no rules, and has no `{wanted}`"),
            Misfit::OtherOrder(there) => {
                format!("were made with different orders of fields: the program has `{there}` and no `{wanted}`")
            }
            Misfit::OtherTables(there) => {
                format!("were made for different kinds of tables: the program has `{there}` and no `{wanted}`")
            }
            Misfit::OtherFormat => format!("were made of different formats: the program has no `{wanted}`"),
        }
    }
}

/// Why a program with these tables has none that is called `wanted`; `None` if it has, or if that is no table of rules.
pub fn misfit<'a>(wanted: &str, tables: impl Iterator<Item = &'a str> + Clone) -> Option<Misfit<'a>> {
    let is_ours = |name: &str| CONTROLS.iter().any(|control| name.starts_with(control));
    if !is_ours(wanted) || tables.clone().any(|name| name == wanted) {
        return None;
    }
    if !tables.clone().any(is_ours) {
        return Some(Misfit::OtherKind);
    }
    if let Some(there) = placeless(wanted).and_then(|part| tables.clone().find(|name| placeless(name) == Some(part))) {
        return Some(Misfit::OtherOrder(there));
    }
    let other = column(wanted).and_then(|of| tables.clone().find(|name| column(name) == Some(of)));
    Some(other.map_or(Misfit::OtherFormat, Misfit::OtherTables))
}

/// The column of a table that matches its values, or their codes (`price` of `price_range_5`); and whether it is a table of codes.
fn column(table: &str) -> Option<(&str, bool)> {
    const PARTS: [&str; 4] = ["exact", "range", "ternary", "lpm"];
    if let Some(part) = placeless(table) {
        let (column, part) = part.rsplit_once('_')?;
        return PARTS.contains(&part).then_some((column, false));
    }
    let of = PARTS.iter().find_map(|part| table.strip_suffix(part)?.strip_suffix('_')).unwrap_or(table);
    of.strip_suffix("_codes").map(|column| (column, true))
}

/// The order that a program with these tables was made with, if it was made for rules over this format.
pub fn order<'a>(format: &Format, tables: impl Iterator<Item = &'a str> + Clone) -> Option<Layout> {
    let any = Layout::sensible(format, &[]);
    let mut found: Vec<(usize, Key)> = Vec::new();
    for key in any.keys().iter().filter(|key| !key.is_validity()) {
        // Every stage has this table.
        let rest = format!("{}{}", CONTROLS[0], part_name(&key.name(format), "rest", 0));
        let own = tables.clone().find(|name| placeless(name).is_some() && placeless(name) == placeless(&rest))?;
        found.push((own.rsplit_once('_')?.1.parse().ok()?, *key));
    }
    found.sort_unstable();
    // A format that got or lost a field since is another one.
    let first = usize::from(any.validities() > 0);
    let is_whole = found.iter().enumerate().all(|(at, (place, _))| at + first == *place);
    let named = found.iter().filter(|(_, key)| !matches!(key, Key::Slot(_)));
    let names: Vec<String> = named.map(|(_, key)| key.name(format)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Layout::forced(format, &names).ok().filter(|_| is_whole)
}

/// A table's name without its place in the order, if it has one (`price_range` of `price_range_5`).
fn placeless(table: &str) -> Option<&str> {
    let (part, place) = table.rsplit_once('_')?;
    place.bytes().all(|byte| byte.is_ascii_digit()).then_some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_other_orders_formats_and_kinds_are_told_apart() {
        const TABLES: [&str; 3] =
            ["Subscriptions.validity", "Subscriptions.price_range_6", "Subscriptions.price_rest_6"];
        let of = |wanted| misfit(wanted, TABLES.into_iter());
        assert_eq!(of("Subscriptions.price_range_6"), None);
        assert_eq!(of("Subscriptions.price_range_1"), Some(Misfit::OtherOrder("Subscriptions.price_range_6")));
        for other in ["price_exact_6", "price_ternary_6", "price_lpm_1"] {
            let wanted = format!("Subscriptions.{other}");
            assert_eq!(misfit(&wanted, TABLES.into_iter()), Some(Misfit::OtherTables("Subscriptions.price_range_6")));
        }
        let codes = ["Subscriptions.price_codes", "Subscriptions.price_range_6"];
        let other = misfit("Subscriptions.price_codes_lpm", codes.into_iter());
        assert_eq!(other, Some(Misfit::OtherTables("Subscriptions.price_codes")));
        assert_eq!(of("Subscriptions.shares_range_6"), Some(Misfit::OtherFormat));
        assert_eq!(of("Subscriptions.leaf"), Some(Misfit::OtherFormat));
        assert_eq!(of("MyIngress.price_range_1"), None);
        assert_eq!(misfit("Subscriptions.validity", ["MyIngress.t"].into_iter()), Some(Misfit::OtherKind));
    }
}
