//! Names and ids of P4Info.

use p4runtime_proto::config::{Action, MatchField, P4Info, Preamble, Table, match_field};

/// Returns the full name of an object.
pub fn name(preamble: &Option<Preamble>) -> &str {
    preamble.as_ref().map_or("", |preamble| &preamble.name)
}

/// Returns the id of an object.
pub fn id(preamble: &Option<Preamble>) -> u32 {
    preamble.as_ref().map_or(0, |preamble| preamble.id)
}

/// Returns every table with its name.
pub fn tables(info: &P4Info) -> Vec<(&Table, &str)> {
    info.tables.iter().map(|table| (table, name(&table.preamble))).collect()
}

/// Returns the table with this id.
pub fn table(info: &P4Info, table_id: u32) -> Option<&Table> {
    info.tables.iter().find(|table| id(&table.preamble) == table_id)
}

/// Returns the action with this id.
pub fn action(info: &P4Info, action_id: u32) -> Option<&Action> {
    info.actions.iter().find(|action| id(&action.preamble) == action_id)
}

/// Returns the actions that entries of a table may have, with their names.
pub fn actions<'a>(info: &'a P4Info, table: &Table) -> Vec<(&'a Action, &'a str)> {
    let ids = table.action_refs.iter().map(|reference| reference.id);
    ids.filter_map(|id| action(info, id)).map(|action| (action, name(&action.preamble))).collect()
}

/// Returns the match kind of a field.
pub fn match_type(field: &MatchField) -> match_field::MatchType {
    match field.r#match {
        Some(match_field::Match::MatchType(kind)) => kind.try_into().unwrap_or_default(),
        _ => match_field::MatchType::Unspecified,
    }
}

/// Whether entries of a table need a priority: those with ternary, range or optional fields do (specification 9.1.1).
pub fn needs_priority(table: &Table) -> bool {
    use match_field::MatchType::{Optional, Range, Ternary};
    table.match_fields.iter().any(|field| matches!(match_type(field), Ternary | Range | Optional))
}
