//! Checks the compatibility of a switch's program with the rules.

use std::collections::BTreeMap;

use p4runtime_proto::config::match_field::Match;
use p4runtime_proto::config::{Action, P4Info, Preamble, Table};
use subscribe_p4::ProgramMismatch;

/// The first difference between a switch's program and the program of the rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramDifference {
    /// The program has no table for rules.
    #[error("the switch runs a program that was not generated for rules: it has no table `{table}`")]
    OtherKind {
        /// A table that the rules need.
        table: String,
    },
    /// The program is for other rules.
    #[error("the switch's program and these rules {difference}")]
    OtherRules {
        /// The object that differs.
        difference: ObjectDifference,
        /// Whether the program's tables are those of all fields of the format, in any order.
        is_of_format: bool,
    },
}

/// An object that a switch's program lacks, or has in another form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectDifference {
    /// A table was made with other options, or of another format; the text says which.
    #[error("{0}")]
    Options(String),
    /// There is no table of this name.
    #[error("{DIFFERENT}: the program has no table `{0}`")]
    NoTable(String),
    /// There is no action of this name.
    #[error("{DIFFERENT}: the program has no action `{0}`")]
    NoAction(String),
    /// The action of this name has other parameters.
    #[error("{DIFFERENT}: the program's action `{0}` has other parameters")]
    Parameters(String),
    /// The table of this name has other match fields.
    #[error("{DIFFERENT}: the program's table `{0}` has other match fields")]
    MatchFields(String),
    /// A table does not have an action.
    #[error("{DIFFERENT}: the program's table `{table}` has no action `{action}`")]
    TableAction {
        /// The table.
        table: String,
        /// The action.
        action: String,
    },
}

/// Finds the reason why a program does not fit rules whose generated program is `ours`; `None` if the program fits.
/// `is_of_format` says whether its tables are those of all fields of the format, in any order.
pub(crate) fn find_mismatch(theirs: &P4Info, ours: &P4Info, is_of_format: bool) -> Option<ProgramDifference> {
    if let Some(table) = missing_kind(theirs, ours) {
        return Some(ProgramDifference::OtherKind { table: table.to_owned() });
    }
    let difference = missing_table(theirs, ours, is_of_format);
    let difference = difference.or_else(|| different_bitmaps(theirs, ours));
    let difference = difference.or_else(|| different_action(theirs, ours)).or_else(|| different_table(theirs, ours))?;
    Some(ProgramDifference::OtherRules { difference, is_of_format })
}

/// The action that delivers to one port.
const TO_PORT: &str = "Subscriptions.to_port";

const DIFFERENT: &str = "were generated from different formats, or by different versions of Triplane";

/// Returns a table of the rules if the program has no table for rules at all.
fn missing_kind<'a>(theirs: &P4Info, ours: &'a P4Info) -> Option<&'a str> {
    let there = tables(theirs);
    let is_missing =
        |name: &&str| subscribe_p4::mismatch(name, there.keys().copied()) == Some(ProgramMismatch::OtherKind);
    tables(ours).into_keys().find(is_missing)
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

/// Describes a missing table. Another order of fields is the best explanation, and is looked for first.
fn missing_table(theirs: &P4Info, ours: &P4Info, is_of_format: bool) -> Option<ObjectDifference> {
    let there = tables(theirs);
    let missing: Vec<&str> = tables(ours).into_keys().filter(|name| !there.contains_key(name)).collect();
    let explained: Vec<(&str, ProgramMismatch<'_>)> =
        missing.iter().filter_map(|name| Some((*name, subscribe_p4::mismatch(name, there.keys().copied())?))).collect();
    let is_order = |(_, why): &&(&str, ProgramMismatch<'_>)| matches!(why, ProgramMismatch::OtherOrder(_));
    // A field that two formats share is in another place if other fields are missing.
    let is_telling = |of: &&(&str, ProgramMismatch<'_>)| is_of_format || !is_order(of);
    let first = explained.iter().find(is_telling);
    let best = explained.iter().find(|of| is_of_format && is_order(of)).or(first).map(|(name, why)| why.describe(name));
    best.map(ObjectDifference::Options)
        .or_else(|| missing.first().map(|name| ObjectDifference::NoTable((*name).to_owned())))
}

/// Describes another way to deliver to several ports.
fn different_bitmaps(theirs: &P4Info, ours: &P4Info) -> Option<ObjectDifference> {
    let width = |info| {
        let to_port = actions(info).get(TO_PORT).copied();
        subscribe_p4::bitmap_of(to_port.iter().flat_map(|action| &action.params).map(|param| param.name.as_str()))
    };
    let describe = |width: Option<u32>| match width {
        Some(bits) => format!("bitmaps of {bits} bits"),
        None => "multicast groups".to_owned(),
    };
    let (theirs, ours) = (width(theirs), width(ours));
    (theirs != ours).then(|| {
        let (theirs, ours) = (describe(theirs), describe(ours));
        ObjectDifference::Options(format!(
            "were generated for different ways to deliver: the program has {theirs}, the rules {ours}"
        ))
    })
}

/// Describes a missing action, or one with other parameters.
fn different_action(theirs: &P4Info, ours: &P4Info) -> Option<ObjectDifference> {
    let there = actions(theirs);
    actions(ours).into_iter().find_map(|(name, action)| {
        let params = |action: &Action| -> BTreeMap<String, i32> {
            action.params.iter().map(|param| (param.name.clone(), param.bitwidth)).collect()
        };
        match there.get(name) {
            None => Some(ObjectDifference::NoAction(name.to_owned())),
            Some(known) if params(known) != params(action) => Some(ObjectDifference::Parameters(name.to_owned())),
            Some(_) => None,
        }
    })
}

/// Describes a table with other fields or actions. An older program may have the table without some of them.
fn different_table(theirs: &P4Info, ours: &P4Info) -> Option<ObjectDifference> {
    let (there, known_actions, our_actions) = (tables(theirs), action_names(theirs), action_names(ours));
    tables(ours).into_iter().find_map(|(name, table)| {
        let known = there.get(name)?;
        if match_fields(known) != match_fields(table) {
            return Some(ObjectDifference::MatchFields(name.to_owned()));
        }
        let has = |action: &str| known.action_refs.iter().any(|of| known_actions.get(&of.id) == Some(&action));
        let wanted = table.action_refs.iter().filter_map(|of| our_actions.get(&of.id));
        let lacking = wanted.copied().find(|action| !has(action))?;
        Some(ObjectDifference::TableAction { table: name.to_owned(), action: lacking.to_owned() })
    })
}

/// Returns the names of actions by their ids.
fn action_names(info: &P4Info) -> BTreeMap<u32, &str> {
    let preambles = info.actions.iter().map(|action| &action.preamble);
    preambles.map(|preamble| (preamble.as_ref().map_or(0, |of| of.id), name(preamble))).collect()
}

fn match_fields(table: &Table) -> BTreeMap<&str, (i32, Option<&Match>)> {
    table.match_fields.iter().map(|field| (field.name.as_str(), (field.bitwidth, field.r#match.as_ref()))).collect()
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

    /// Tables with one field each, whose actions lead to a state or to a port. Ids have no meaning: they differ between
    /// programs.
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
    fn the_cause_is_reported() {
        const NAMES: &[&str] = &["price_exact_1", "stock_exact_2"];
        let ours = info(0, NAMES);
        assert_eq!(find_mismatch(&info(50, NAMES), &ours, true), None, "ids are the switch's own");
        assert_eq!(find_mismatch(&info(50, &["more", "stock_exact_2", "price_exact_1"]), &ours, true), None);
        let mismatch = |change: &dyn Fn(&mut P4Info)| {
            let mut there = info(50, NAMES);
            change(&mut there);
            find_mismatch(&there, &ours, true).expect("it is another program").to_string()
        };
        // A table in another place explains more than a missing one.
        let order = mismatch(&|there| *there = info(50, &["stock_exact_3"]));
        assert!(order.contains("field orders: the program has `Subscriptions.stock_exact_3` and no"), "{order}");
        let format = mismatch(&|there| drop(there.tables.pop()));
        assert!(format.contains("different formats: the program has no `Subscriptions.stock_exact_2`"), "{format}");
        let action = mismatch(&|there| drop(there.tables[1].action_refs.pop()));
        assert!(action.contains("`Subscriptions.stock_exact_2` has no action `Subscriptions.to_port`"), "{action}");
        let field = mismatch(&|there| there.tables[0].match_fields[0].bitwidth = 8);
        assert!(field.contains("`Subscriptions.price_exact_1` has other match fields"), "{field}");
        let params = mismatch(&|there| there.actions[0].params[0].bitwidth = 8);
        assert!(params.contains("`Subscriptions.to_state` has other parameters"), "{params}");
        let gone = mismatch(&|there| drop(there.actions.pop()));
        assert!(gone.contains("no action `Subscriptions.to_port`"), "{gone}");
        // Another format has a field of the same name in another place.
        let there = info(50, &["price_exact_2", "side_exact_1"]);
        let other = find_mismatch(&there, &ours, false).expect("it is of another format");
        assert!(matches!(other, ProgramDifference::OtherRules { is_of_format: false, .. }), "{other}");
        let other = other.to_string();
        assert!(other.contains("different formats") && other.contains("no `Subscriptions.stock_exact_2`"), "{other}");
        assert!(!other.contains("order"), "{other}");
        let other = find_mismatch(&info(50, &["price_exact_2"]), &info(0, &["price_exact_1"]), false)
            .expect("it is, too")
            .to_string();
        assert!(other.contains("different formats") && !other.contains("order"), "{other}");
        let none = find_mismatch(&P4Info::default(), &ours, false).expect("nothing is there").to_string();
        assert!(none.starts_with("the switch runs a program that was not generated for rules"), "{none}");
    }
}
