//! Why entries are not for a program: it was made with another order of fields, or from another format.

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
    /// It was made from another format, or has a field matched in another way.
    OtherFormat,
}

impl Misfit<'_> {
    /// What is to be said of program and entries, as the rest of a sentence; `wanted` is the table that there is none of.
    pub fn told(self, wanted: &str) -> String {
        match self {
            Misfit::OtherKind => format!("do not belong together: the program matches no rules, and has no `{wanted}`"),
            Misfit::OtherOrder(there) => {
                format!("were made with different orders of fields: the program has `{there}` and no `{wanted}`")
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
    let other = placeless(wanted).and_then(|part| tables.clone().find(|name| placeless(name) == Some(part)));
    Some(other.map_or(Misfit::OtherFormat, Misfit::OtherOrder))
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
        assert_eq!(of("Subscriptions.price_exact_6"), Some(Misfit::OtherFormat));
        assert_eq!(of("Subscriptions.leaf"), Some(Misfit::OtherFormat));
        assert_eq!(of("MyIngress.price_range_1"), None);
        assert_eq!(misfit("Subscriptions.validity", ["MyIngress.t"].into_iter()), Some(Misfit::OtherKind));
    }
}
