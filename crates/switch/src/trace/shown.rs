//! Renders program parts in a trace: expressions, entries, requests.

use bits::Bits;
use engine::{PacketState, Requested, TableEntry};
use ir::{Expr, HeaderId, KeyValue, Program, TableId};

use super::value;

/// Maximum length of an expression, in characters.
const MAX_EXPR: usize = 100;

/// Renders a value without a name: in hexadecimal if it has eight bits or more, else in decimal.
pub(super) fn key(value: &Bits) -> String {
    value::show(if value.width() >= 8 { "type" } else { "" }, value)
}

/// Returns a name as in the source: the compiler numbers names that it needs more than once (`x$1`). Returns `None`
/// for its own names, which start with `$` (`$tmp`).
pub(super) fn author_name(name: &str) -> Option<&str> {
    let plain = match name.rsplit_once('$') {
        Some((before, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => before,
        _ => name,
    };
    (!plain.contains('$')).then_some(plain)
}

/// Returns a header's name; `_` for one that only the compiler has.
pub(super) fn header(program: &Program, header: HeaderId) -> &str {
    author_name(&program.headers[header].name).unwrap_or("_")
}

/// Renders an expression without the widths of its constants, truncated if it is long. Names that only the compiler
/// has are replaced by their values in `state`. Returns `None` if the expression has nothing else.
pub(super) fn expr(program: &Program, expr: &Expr, state: Option<&PacketState>) -> Option<String> {
    let text = without_widths(&program.display_expr(expr).to_string());
    let mut shown = String::new();
    let mut is_named = !text.contains('$');
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        let length = rest.find(|c| !in_name(c)).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(length);
        if name.is_empty() {
            shown.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        rest = behind;
        let value = || state.zip(program.slot_named(name)).map(|(state, slot)| key(state.slot(slot)));
        match author_name(name) {
            Some(plain) => {
                is_named |= !name.starts_with(|c: char| c.is_ascii_digit());
                shown.push_str(plain);
            }
            // `h[h.$next]` and `h[h.$next - 0x1]`
            None if name.strip_suffix(".$next").is_some_and(|stack| shown.ends_with(&format!("{stack}["))) => {
                let last = rest.starts_with(" - 0x1]");
                shown.pop();
                shown.push_str(if last { ".last" } else { ".next" });
                rest = rest.split_once(']').map_or("", |(_, rest)| rest);
            }
            None => shown.push_str(&value().unwrap_or_else(|| "_".to_owned())),
        }
    }
    let shown = match shown.char_indices().nth(MAX_EXPR) {
        Some((at, _)) => format!("{}...", &shown[..at]),
        None => shown,
    };
    is_named.then_some(shown)
}

fn in_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '$')
}

/// `0x1:16` is 0x1.
fn without_widths(text: &str) -> String {
    let mut plain = String::new();
    let mut in_width = false;
    for c in text.chars() {
        in_width = c == ':' || (in_width && c.is_ascii_digit());
        if !in_width {
            plain.push(c);
        }
    }
    plain
}

/// `hdr.ipv4.dstAddr = 10.0.1.0/24`
pub(super) fn entry(program: &Program, table: TableId, entry: &TableEntry) -> String {
    let keys = program.tables[table].keys.iter().filter(|key| key.kind != ir::MatchKind::Selector);
    let shown: Vec<String> = keys
        .zip(&entry.keys)
        .map(|(key, value)| {
            let show = |value: &Bits| value::show(&key.name, value);
            let value = match value {
                KeyValue::Exact(value) => show(value),
                KeyValue::Lpm(value, len) => format!("{}/{len}", show(value)),
                KeyValue::Ternary(value, mask) => format!("{} &&& {}", show(value), value::show("mask", mask)),
                KeyValue::Range(low, high) => format!("{}..{}", show(low), show(high)),
                KeyValue::Any => "*".to_string(),
            };
            format!("{} = {value}", key.name)
        })
        .collect();
    let priority = if entry.priority != 0 { format!(" priority {}", entry.priority) } else { String::new() };
    format!("{}{priority}", shown.join(", "))
}

pub(super) fn request(program: &Program, request: &Requested) -> String {
    let keeping = |list: &Option<u32>| list.map_or(String::new(), |list| format!(", keeping field list {list}"));
    match request {
        Requested::Clone { session, keep, .. } => format!("clone to mirror session {session}{}", keeping(keep)),
        Requested::Resubmit(keep) => format!("resubmit{}", keeping(keep)),
        Requested::Recirculate(keep) => format!("recirculate{}", keeping(keep)),
        Requested::Truncate(bytes) => format!("truncate to {bytes} bytes"),
        Requested::Digest(digest, values) => {
            let fields = program.digests[*digest].fields.iter().zip(values);
            let fields: Vec<String> = fields.map(|((n, _), v)| format!("{n}={}", value::show(n, v))).collect();
            format!("digest {}({})", program.digests[*digest].name, fields.join(", "))
        }
        Requested::Hold => "hold what the packet sends".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_their_author_knows_them() {
        for (name, plain) in [
            ("hdr.h.a", Some("hdr.h.a")),
            ("MyIngress.i$1", Some("MyIngress.i")),
            ("$tmp", None),
            ("$tmp$12", None),
            ("$element.a$1", None),
            ("hdr.labels.$next", None),
        ] {
            assert_eq!(author_name(name), plain, "{name}");
        }
    }
}
