//! What a program has, by the names that people use.

use diagnostics::names::{Endings, NoName, find, listed, nearest};
use p4runtime_proto::config::{Action, MatchField, P4Info, Preamble, Table, match_field};
use subscribe_p4::Misfit;

/// The name of something.
pub fn name(preamble: &Option<Preamble>) -> &str {
    preamble.as_ref().map_or("", |preamble| &preamble.name)
}

/// The id of something.
pub fn id(preamble: &Option<Preamble>) -> u32 {
    preamble.as_ref().map_or(0, |preamble| preamble.id)
}

/// The one of `all` that is called so, in full or by an ending.
///
/// # Errors
/// What is wrong with the name, and the names there are.
pub fn look<T: Copy>(kind: &str, wanted: &str, all: &[(T, &str)]) -> Result<T, (String, String)> {
    find(wanted, all, Endings::BehindDot).map_err(|why| {
        let names = || all.iter().map(|(_, name)| *name);
        match why {
            NoName::Ambiguous(one, other) => {
                (format!("`{wanted}` may be `{one}` or `{other}`"), "write more of the name".to_owned())
            }
            NoName::Unknown if let Some(Misfit::OtherOrder(there)) = subscribe_p4::misfit(wanted, names()) => (
                format!("there is no {kind} `{wanted}`: the program was made with another order of fields"),
                format!("the field's is `{there}`, and its states are others"),
            ),
            NoName::Unknown => match nearest(wanted, names()) {
                Some(name) => (format!("there is no {kind} `{wanted}`"), format!("did you mean `{name}`?")),
                None => (format!("there is no {kind} `{wanted}`"), format!("there is {}", listed(names()))),
            },
        }
    })
}

/// The same, as a sentence.
///
/// # Errors
/// As [`look`].
pub fn look_up<T: Copy>(kind: &str, wanted: &str, all: &[(T, &str)]) -> Result<T, crate::output::Failure> {
    look(kind, wanted, all).map_err(|(what, help)| crate::output::Failure::Input(format!("{what}; {help}")))
}

/// Every table, with its name.
pub fn tables(info: &P4Info) -> Vec<(&Table, &str)> {
    info.tables.iter().map(|table| (table, name(&table.preamble))).collect()
}

/// The action with this id.
pub fn action(info: &P4Info, wanted: u32) -> Option<&Action> {
    info.actions.iter().find(|action| id(&action.preamble) == wanted)
}

/// The actions that a table's entries may have.
pub fn actions<'a>(info: &'a P4Info, table: &Table) -> Vec<(&'a Action, &'a str)> {
    let ids = table.action_refs.iter().map(|of| of.id);
    ids.filter_map(|id| action(info, id)).map(|action| (action, name(&action.preamble))).collect()
}

/// How a field is matched.
pub fn match_type(field: &MatchField) -> match_field::MatchType {
    match field.r#match {
        Some(match_field::Match::MatchType(kind)) => kind.try_into().unwrap_or_default(),
        _ => match_field::MatchType::Unspecified,
    }
}

/// Whether what matches first has to be said by a priority.
pub fn needs_priority(table: &Table) -> bool {
    use match_field::MatchType::{Optional, Range, Ternary};
    table.match_fields.iter().any(|field| matches!(match_type(field), Ternary | Range | Optional))
}
