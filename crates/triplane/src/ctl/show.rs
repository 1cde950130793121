//! Formats entries, as users write them and as JSON.

use std::fmt::{Display, Formatter, Write};

use p4runtime_proto::config::{MatchField, P4Info, Table};
use p4runtime_proto::v1::field_match::FieldMatchType;
use p4runtime_proto::v1::{self, table_action::Type as ActionType};
use serde_json::{Map, Value, json};

use super::{names, value};

/// A change as users write it: `WHAT -> VALUE`, or `WHAT` alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedEntry {
    /// The changed object: a key or a number.
    pub what: String,
    /// The new value; may be empty.
    pub value: String,
}

impl Display for RenderedEntry {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let arrow = if self.value.is_empty() { "" } else { " -> " };
        write!(f, "{}{arrow}{}", self.what, self.value)
    }
}

/// Formats an entry: `hdr.ipv4.dst=10.0.0.0/8 -> forward(mac=02:00:00:00:00:01, port=2)`
pub fn entry(info: &P4Info, table: &Table, entry: &v1::TableEntry) -> RenderedEntry {
    RenderedEntry { what: key(table, entry), value: action(info, entry.action.as_ref()) }
}

/// Formats the key of an entry: `hdr.ipv4.dst=10.0.0.0/8, priority=3`.
pub fn key(table: &Table, entry: &v1::TableEntry) -> String {
    let mut words: Vec<String> = matches(&table.match_fields, &entry.r#match)
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    match (entry.is_default_action, words.is_empty()) {
        (true, _) => words.push("default".to_owned()),
        (false, true) => words.extend(table.match_fields.first().map(|field| format!("{}=*", field.name))),
        (false, false) => {}
    }
    if entry.priority != 0 {
        words.push(format!("priority={}", entry.priority));
    }
    if entry.idle_timeout_ns != 0 {
        words.push(format!("timeout={}", entry.idle_timeout_ns as f64 / 1e9));
    }
    words.join(", ")
}

/// Formats an entry as JSON.
pub fn entry_json(info: &P4Info, table: &Table, entry: &v1::TableEntry) -> Value {
    let matches: Map<_, _> = matches(&table.match_fields, &entry.r#match)
        .into_iter()
        .map(|(name, value)| (name.to_owned(), Value::from(value)))
        .collect();
    let mut object = json!({
        "table": names::name(&table.preamble), "default": entry.is_default_action, "match": matches,
        "priority": entry.priority, "constant": entry.is_const,
    });
    match entry.action.as_ref().and_then(|action| action.r#type.as_ref()) {
        Some(ActionType::Action(action)) => {
            let (name, params) = call(info, action);
            object["action"] = name.into();
            object["parameters"] = params.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
        }
        Some(_) => object["action"] = self::action(info, entry.action.as_ref()).into(),
        None => {}
    }
    object
}

/// Returns the fields with their values, in the order of the table's key.
fn matches<'a>(fields: &'a [MatchField], all: &[v1::FieldMatch]) -> Vec<(&'a str, String)> {
    let mut shown = Vec::new();
    for field in fields {
        let given = all.iter().find(|given| given.field_id == field.id);
        let Some(kind) = given.and_then(|given| given.field_match_type.as_ref()) else { continue };
        let one = |bytes: &[u8]| value::show(&field.name, field.bitwidth, bytes);
        let text = match kind {
            FieldMatchType::Exact(exact) => one(&exact.value),
            FieldMatchType::Optional(optional) => one(&optional.value),
            FieldMatchType::Lpm(lpm) => format!("{}/{}", one(&lpm.value), lpm.prefix_len),
            FieldMatchType::Ternary(ternary) => format!("{}&&&{}", one(&ternary.value), one(&ternary.mask)),
            FieldMatchType::Range(range) => format!("{}..{}", one(&range.low), one(&range.high)),
            FieldMatchType::Other(_) => "?".to_owned(),
        };
        shown.push((&*field.name, text));
    }
    shown
}

/// Formats fields: `port=80, kind=6`. A field without a name is only its value.
pub fn fields(fields: &[MatchField], all: &[v1::FieldMatch]) -> String {
    let shown = matches(fields, all).into_iter().map(|(name, value)| match name {
        "" => value,
        name => format!("{name}={value}"),
    });
    let shown: Vec<_> = shown.collect();
    if shown.is_empty() { "*".to_owned() } else { shown.join(", ") }
}

/// Formats a port.
pub fn port(bytes: &[u8]) -> String {
    p4runtime_proto::bytestring::parse_u32(bytes)
        .map_or_else(|_| p4runtime_proto::bytestring::hex(bytes), |port| port.to_string())
}

/// Formats an action: `forward(mac=02:00:00:00:00:01, port=2)`
pub fn written(info: &P4Info, action: &v1::Action) -> String {
    let (name, params) = call(info, action);
    let params: Vec<_> = params.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("{name}({})", params.join(", "))
}

/// Formats the action of an entry.
pub fn action(info: &P4Info, action: Option<&v1::TableAction>) -> String {
    use v1::action_profile_action::WatchKind;
    match action.and_then(|action| action.r#type.as_ref()) {
        Some(ActionType::Action(action)) => written(info, action),
        Some(ActionType::ActionProfileMemberId(id)) => format!("member({id})"),
        Some(ActionType::ActionProfileGroupId(id)) => format!("group({id})"),
        Some(ActionType::ActionProfileActionSet(set)) => {
            let mut text = String::new();
            for one in &set.action_profile_actions {
                let separator = if text.is_empty() { "" } else { " | " };
                let _ =
                    write!(text, "{separator}{}", one.action.as_ref().map(|it| written(info, it)).unwrap_or_default());
                if set.action_profile_actions.len() > 1 || one.weight != 1 {
                    let _ = write!(text, " weight {}", one.weight);
                }
                #[allow(deprecated, reason = "controllers still write ports in the older form, and get them back so")]
                let watched = one.watch_kind.as_ref().map(|watch| match watch {
                    WatchKind::Watch(port) => port.to_string(),
                    WatchKind::WatchPort(bytes) => port(bytes),
                });
                if let Some(watched) = watched {
                    let _ = write!(text, " watch {watched}");
                }
            }
            text
        }
        None => "nothing".to_owned(),
    }
}

fn call(info: &P4Info, action: &v1::Action) -> (String, Vec<(String, String)>) {
    let Some(known) = names::action(info, action.action_id) else {
        return (format!("{:#x}", action.action_id), Vec::new());
    };
    let params = action.params.iter().map(|given| match known.params.iter().find(|param| param.id == given.param_id) {
        Some(param) => (param.name.clone(), value::show(&param.name, param.bitwidth, &given.value)),
        None => (given.param_id.to_string(), p4runtime_proto::bytestring::hex(&given.value)),
    });
    (names::name(&known.preamble).to_owned(), params.collect())
}
