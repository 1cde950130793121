//! Whether a switch's program is one for these rules.

use std::collections::BTreeMap;

use p4runtime_proto::config::match_field::Match;
use p4runtime_proto::config::{Action, P4Info, Preamble, Table};
use subscribe_p4::Misfit;

/// Why a program is not the one for rules whose program is `ours`, in a sentence, and what helps; `None` if it is. `is_of_format` says
/// whether its tables are those of all fields of the format, in any order.
pub(crate) fn misfit(theirs: &P4Info, ours: &P4Info, is_of_format: bool) -> Option<String> {
    if let Some(table) = none_of_rules(theirs, ours) {
        return Some(format!(
            "the switch runs another program, which matches no rules: it has no table `{table}`. {LOADED}"
        ));
    }
    let why = tables_missing(theirs, ours, is_of_format);
    let why = why.or_else(|| actions_other(theirs, ours)).or_else(|| tables_other(theirs, ours))?;
    let remedy = if is_of_format { REMADE } else { LOADED };
    Some(format!("the switch's program and these rules {why}. {remedy}"))
}

/// What helps where the switch has a program that is not for the rules.
pub(crate) const REMADE: &str = "Make the program again with the `--order`, `--ranges` and `--exact-tables` that `serve` has, \
                                 and load it; or, if the switch is Triplane's, leave out --keep-program, and `serve` loads it";
const LOADED: &str = "Have the switch load what `triplane subscribe program` makes of this format, or serve the format that its \
                      program was made of; or, if the switch is Triplane's, leave out --keep-program, and `serve` loads it";

/// A table of the rules, if the program has none of such tables.
fn none_of_rules<'a>(theirs: &P4Info, ours: &'a P4Info) -> Option<&'a str> {
    let there = tables(theirs);
    let is_none = |name: &&str| subscribe_p4::misfit(name, there.keys().copied()) == Some(Misfit::OtherKind);
    tables(ours).into_keys().find(is_none)
}

fn name(preamble: &Option<Preamble>) -> &str {
    preamble.as_ref().map_or("", |preamble| &preamble.name)
}

fn tables(info: &P4Info) -> BTreeMap<&str, &Table> {
    info.tables.iter().map(|table| (name(&table.preamble), table)).collect()
}

fn actions(info: &P4Info) -> BTreeMap<&str, &Action> {
    info.actions.iter().map(|action| (name(&action.preamble), action)).collect()
}

/// Another order says most of why tables are missing, and is looked for first.
fn tables_missing(theirs: &P4Info, ours: &P4Info, is_of_format: bool) -> Option<String> {
    let there = tables(theirs);
    let missing: Vec<&str> = tables(ours).into_keys().filter(|name| !there.contains_key(name)).collect();
    let told: Vec<(&str, Misfit<'_>)> =
        missing.iter().filter_map(|name| Some((*name, subscribe_p4::misfit(name, there.keys().copied())?))).collect();
    let is_order = |(_, why): &&(&str, Misfit<'_>)| matches!(why, Misfit::OtherOrder(_));
    // Of another format, fields that both have are elsewhere because others are not there.
    let is_telling = |of: &&(&str, Misfit<'_>)| is_of_format || !is_order(of);
    let first = told.iter().find(is_telling);
    let best = told.iter().find(|of| is_of_format && is_order(of)).or(first).map(|(name, why)| why.told(name));
    best.or_else(|| missing.first().map(|name| other(&format!("the program has no table `{name}`"))))
}

fn actions_other(theirs: &P4Info, ours: &P4Info) -> Option<String> {
    let there = actions(theirs);
    actions(ours).into_iter().find_map(|(name, action)| {
        let params = |action: &Action| -> BTreeMap<String, i32> {
            action.params.iter().map(|param| (param.name.clone(), param.bitwidth)).collect()
        };
        match there.get(name) {
            None => Some(other(&format!("the program has no action `{name}`"))),
            Some(known) if params(known) != params(action) => {
                Some(other(&format!("the program's action `{name}` has other parameters")))
            }
            Some(_) => None,
        }
    })
}

/// What tables match, and what their entries may do: an older program may have the table, and not all of that.
fn tables_other(theirs: &P4Info, ours: &P4Info) -> Option<String> {
    let (there, known_actions, our_actions) = (tables(theirs), ids(theirs), ids(ours));
    tables(ours).into_iter().find_map(|(name, table)| {
        let known = there.get(name)?;
        if matches_of(known) != matches_of(table) {
            return Some(other(&format!("the program's table `{name}` matches something else")));
        }
        let has = |action: &str| known.action_refs.iter().any(|of| known_actions.get(&of.id) == Some(&action));
        let wanted = table.action_refs.iter().filter_map(|of| our_actions.get(&of.id));
        let lacking = wanted.copied().find(|action| !has(action))?;
        Some(other(&format!("the program's table `{name}` has no action `{lacking}`")))
    })
}

fn ids(info: &P4Info) -> BTreeMap<u32, &str> {
    let preambles = info.actions.iter().map(|action| &action.preamble);
    preambles.map(|preamble| (preamble.as_ref().map_or(0, |of| of.id), name(preamble))).collect()
}

fn matches_of(table: &Table) -> BTreeMap<&str, (i32, Option<&Match>)> {
    table.match_fields.iter().map(|field| (field.name.as_str(), (field.bitwidth, field.r#match.as_ref()))).collect()
}

fn other(what: &str) -> String {
    format!("were made of different formats, or by different versions of Triplane: {what}")
}

#[cfg(test)]
mod tests {
    use p4runtime_proto::config::action::Param;
    use p4runtime_proto::config::match_field::MatchType;
    use p4runtime_proto::config::{ActionRef, MatchField};

    use super::*;

    fn preamble(id: u32, name: &str) -> Option<Preamble> {
        Some(Preamble { id, name: format!("Subscriptions.{name}"), ..Preamble::default() })
    }

    /// Tables with one field each, that lead to a state or to a port. Ids are others in another program, and mean nothing.
    fn info(first: u32, names: &[&str]) -> P4Info {
        let action = |id, name: &str| {
            let params = vec![Param { id: 1, name: "to".to_owned(), bitwidth: 9, ..Param::default() }];
            Action { preamble: preamble(first + id, name), params }
        };
        let table = |(at, name): (u32, &&str)| {
            let kind = Some(Match::MatchType(MatchType::Exact.into()));
            let field = MatchField { name: "value".to_owned(), bitwidth: 16, r#match: kind, ..MatchField::default() };
            let action_refs = [1, 2].map(|id| ActionRef { id: first + id, ..ActionRef::default() }).to_vec();
            let preamble = preamble(first + 10 + at, name);
            Table { preamble, match_fields: vec![field], action_refs, ..Table::default() }
        };
        let actions = vec![action(1, "to_state"), action(2, "to_port")];
        P4Info { tables: (0..).zip(names).map(table).collect(), actions, ..P4Info::default() }
    }

    #[test]
    fn the_cause_is_told() {
        const NAMES: &[&str] = &["price_exact_1", "stock_exact_2"];
        let ours = info(0, NAMES);
        assert_eq!(misfit(&info(50, NAMES), &ours, true), None, "ids are the switch's own");
        assert_eq!(misfit(&info(50, &["more", "stock_exact_2", "price_exact_1"]), &ours, true), None);
        let told = |change: &dyn Fn(&mut P4Info)| {
            let mut there = info(50, NAMES);
            change(&mut there);
            misfit(&there, &ours, true).expect("it is another program")
        };
        // That a table is in another place says more than that one is not there at all.
        let order = told(&|there| *there = info(50, &["stock_exact_3"]));
        assert!(order.contains("orders of fields: the program has `Subscriptions.stock_exact_3` and no"), "{order}");
        let format = told(&|there| drop(there.tables.pop()));
        assert!(format.contains("different formats: the program has no `Subscriptions.stock_exact_2`"), "{format}");
        let action = told(&|there| drop(there.tables[1].action_refs.pop()));
        assert!(action.contains("`Subscriptions.stock_exact_2` has no action `Subscriptions.to_port`"), "{action}");
        let field = told(&|there| there.tables[0].match_fields[0].bitwidth = 8);
        assert!(field.contains("`Subscriptions.price_exact_1` matches something else"), "{field}");
        let params = told(&|there| there.actions[0].params[0].bitwidth = 8);
        assert!(params.contains("`Subscriptions.to_state` has other parameters"), "{params}");
        let gone = told(&|there| drop(there.actions.pop()));
        assert!(gone.contains("no action `Subscriptions.to_port`"), "{gone}");
        // Another format has a field of this name, too, in another place.
        let there = info(50, &["price_exact_2", "side_exact_1"]);
        let other = misfit(&there, &ours, false).expect("it is of another format");
        assert!(other.contains("different formats") && other.contains("no `Subscriptions.stock_exact_2`"), "{other}");
        assert!(!other.contains("order") && other.contains("serve the format that its program was made of"), "{other}");
        let other = misfit(&info(50, &["price_exact_2"]), &info(0, &["price_exact_1"]), false).expect("it is, too");
        assert!(other.contains("different formats") && !other.contains("order"), "{other}");
        let none = misfit(&P4Info::default(), &ours, false).expect("nothing is there");
        assert!(none.starts_with("the switch runs another program, which matches no rules"), "{none}");
    }
}
