//! Prints messages in protobuf's text format, as protobuf's own `TextFormat` does: one line per element of a repeated
//! field, fields ordered by number, map entries by key. The output is therefore deterministic, and identical to what
//! other P4 tools print.

use std::fmt::Write;

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, Value};

/// Prints a message.
pub(crate) fn print(message: &DynamicMessage) -> String {
    let mut out = String::new();
    print_fields(message, 0, &mut out);
    out
}

fn print_fields(message: &DynamicMessage, indent: usize, out: &mut String) {
    let mut set: Vec<_> = message.fields().collect();
    set.sort_by_key(|(field, _)| field.number());
    for (field, value) in set {
        match value {
            Value::List(list) => list.iter().for_each(|value| print_field(&field, value, indent, out)),
            Value::Map(map) => {
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_by_key(|(key, _)| *key);
                let Kind::Message(entry) = field.kind() else { continue };
                for (key, value) in entries {
                    open_message(field.name(), indent, out);
                    let key = match key {
                        MapKey::Bool(key) => Value::Bool(*key),
                        MapKey::I32(key) => Value::I32(*key),
                        MapKey::I64(key) => Value::I64(*key),
                        MapKey::U32(key) => Value::U32(*key),
                        MapKey::U64(key) => Value::U64(*key),
                        MapKey::String(key) => Value::String(key.clone()),
                    };
                    print_field(&entry.map_entry_key_field(), &key, indent + 1, out);
                    print_field(&entry.map_entry_value_field(), value, indent + 1, out);
                    close_message(indent, out);
                }
            }
            value => print_field(&field, value, indent, out),
        }
    }
}

fn print_field(field: &FieldDescriptor, value: &Value, indent: usize, out: &mut String) {
    let name = field.name();
    let text = match value {
        Value::Message(message) => {
            open_message(name, indent, out);
            print_fields(message, indent + 1, out);
            close_message(indent, out);
            return;
        }
        Value::String(text) => quoted(text.as_bytes()),
        Value::Bytes(bytes) => quoted(bytes),
        Value::EnumNumber(number) => match field.kind() {
            Kind::Enum(kind) => {
                kind.get_value(*number).map_or_else(|| number.to_string(), |value| value.name().to_owned())
            }
            _ => number.to_string(),
        },
        Value::Bool(value) => value.to_string(),
        Value::I32(value) => value.to_string(),
        Value::I64(value) => value.to_string(),
        Value::U32(value) => value.to_string(),
        Value::U64(value) => value.to_string(),
        Value::F32(value) => value.to_string(),
        Value::F64(value) => value.to_string(),
        Value::List(_) | Value::Map(_) => return,
    };
    let _ = writeln!(out, "{:1$}{name}: {text}", "", 2 * indent);
}

fn open_message(name: &str, indent: usize, out: &mut String) {
    let _ = writeln!(out, "{:1$}{name} {{", "", 2 * indent);
}

fn close_message(indent: usize, out: &mut String) {
    let _ = writeln!(out, "{:1$}}}", "", 2 * indent);
}

/// Quotes bytes. Quotes, backslashes and bytes that are not printable ASCII are escaped.
fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for byte in bytes {
        match byte {
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b'"' | b'\'' | b'\\' => {
                out.push('\\');
                out.push(char::from(*byte));
            }
            b' '..=b'~' => out.push(char::from(*byte)),
            _ => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out.push('"');
    out
}
