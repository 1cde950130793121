//! Checks entries declared in a program (specification section 14.2.1.4), and their priorities.

use std::collections::HashMap;

use diagnostics::{Diagnostic, Span};
use num_traits::ToPrimitive;

use super::keyset::is_prefix;
use super::{Checker, is_error};
use crate::ast;
use crate::typed::{Expr, ExprKind, Keyset, TableEntry, TableId, Type, Value};

impl<'a> Checker<'a> {
    pub(super) fn entries(
        &mut self,
        property: &'a ast::TableProperty,
        entries: &'a [ast::EntryDecl],
        table: &'a ast::TableDecl,
        id: TableId,
    ) {
        self.out.tables[id].const_entries = property.is_const;
        let has_key =
            table.properties.iter().any(|p| matches!(&p.kind, ast::TablePropertyKind::Key(list) if !list.is_empty()));
        if !has_key {
            if entries.is_empty() {
                return;
            }
            self.error(
                Diagnostic::error("entries", table.name.span, "a table without a key cannot have entries")
                    .also(property.span, "entries listed here")
                    .help("use `default_action`"),
            );
            return;
        }
        let mut out = Vec::new();
        for entry in entries {
            if let Some(typed) = self.entry(entry, id) {
                out.push(typed);
            }
        }
        if out.len() == entries.len() {
            let key = table.properties.iter().find(|p| matches!(p.kind, ast::TablePropertyKind::Key(_)));
            let key = key.map_or(table.name.span, |key| key.span);
            self.priorities(entries, &mut out, property.is_const, key, id);
        }
        self.duplicate_keys(&out, id);
        self.out.tables[id].entries = out;
    }

    /// Reports entries with equal exact keys: no priority can distinguish them.
    fn duplicate_keys(&mut self, entries: &[TableEntry], id: TableId) {
        if self.out.tables[id].keys.iter().any(|key| &*key.match_kind != "exact") {
            return;
        }
        let mut seen: HashMap<Vec<&Value>, Span> = HashMap::new();
        for entry in entries {
            let values: Option<Vec<&Value>> = entry
                .keys
                .iter()
                .map(|key| match key {
                    Keyset::Value(Expr { kind: ExprKind::Const(value), .. }) => Some(value),
                    _ => None,
                })
                .collect();
            let Some(values) = values else { continue };
            match seen.get(&values) {
                Some(first) => {
                    let diagnostic =
                        Diagnostic::error("duplicate", entry.span, "duplicate entry: another one has the same key")
                            .also(*first, "first entry with this key");
                    self.error(diagnostic);
                }
                None => {
                    seen.insert(values, entry.span);
                }
            }
        }
    }

    fn entry(&mut self, entry: &'a ast::EntryDecl, id: TableId) -> Option<TableEntry> {
        let written_keys = self.key_count(id);
        let keys = self.out.tables[id].keys.clone();
        let mut typed_keys = Some(Vec::new());
        let written: Vec<&ast::Expr> = flatten(&entry.keys);
        if written.len() != written_keys {
            self.error(
                Diagnostic::error(
                    "wrong-count",
                    entry.span,
                    format!("an entry of this table needs {written_keys} keysets, one per key element"),
                )
                .label(format!("this entry has {}", written.len())),
            );
            typed_keys = None;
        } else {
            for (written, key) in written.into_iter().zip(&keys) {
                let keyset = self.keyset(written, &key.expr.ty);
                let keyset = keyset.filter(|keyset| self.fits_kind(keyset, &key.match_kind, &key.expr.ty, written));
                match (keyset, &mut typed_keys) {
                    (Some(keyset), Some(list)) => list.push(keyset),
                    _ => typed_keys = None,
                }
            }
        }
        let args: &'a [ast::Arg] = entry.action.args.as_deref().unwrap_or(&[]);
        let action = self.invoked(&entry.action.name, entry.action.absolute, args, entry.action.span, id);
        if let Some((at, _)) = &action {
            let listed = &self.out.tables[id].actions[*at];
            if listed.annotations.iter().any(|annotation| &*annotation.name == "defaultonly") {
                let listed = listed.span;
                self.error(
                    Diagnostic::error(
                        "default-only",
                        entry.action.span,
                        format!("`{}` may be used only as `default_action`", entry.action.name.name),
                    )
                    .also(listed, "`@defaultonly`"),
                );
            }
        }
        let priority = match &entry.priority {
            Some(written) => {
                let value = self.integer(written, "a priority")?;
                match value.to_i64().filter(|value| (0..=i64::from(i32::MAX)).contains(value)) {
                    Some(value) => Some(value),
                    None => {
                        self.error(Diagnostic::error(
                            "priority",
                            written.span,
                            format!("{value} is not a valid priority"),
                        ));
                        None
                    }
                }
            }
            None => None,
        };
        let annotations = self.annotations(&entry.annotations);
        let (action, args) = action?;
        Some(TableEntry {
            keys: typed_keys?,
            action,
            args,
            priority,
            is_const: entry.is_const,
            annotations,
            span: entry.span,
        })
    }

    fn key_count(&self, id: TableId) -> usize {
        self.out.tables[id].keys.len()
    }

    /// Reports a keyset that does not fit the match kind.
    fn fits_kind(&mut self, keyset: &Keyset, kind: &str, ty: &Type, written: &ast::Expr) -> bool {
        let static_keyset = match keyset {
            Keyset::Value(e) => self.is_static(e),
            Keyset::Mask(a, b) | Keyset::Range(a, b) => self.is_static(a) && self.is_static(b),
            _ => true,
        };
        if !static_keyset {
            self.not_constant(written.span, "the key of an entry");
            return false;
        }
        // The meaning of a match kind declared by the program is known only to its author.
        if self.own_match_kinds.contains(kind) {
            return true;
        }
        let problem = match (kind, keyset) {
            ("exact", Keyset::Value(_)) => None,
            ("exact", _) => Some("an exact key takes a single value"),
            ("optional", Keyset::Value(_) | Keyset::Any(_)) => None,
            ("optional", _) => Some("an optional key takes a single value or `_`"),
            ("lpm", Keyset::Range(..)) => Some("an lpm key takes a prefix, `value &&& mask`"),
            ("lpm", Keyset::Mask(_, mask)) => {
                let width = match self.underlying_of_enum(ty).unwrap_or_else(|| ty.clone()) {
                    Type::Bit(width) | Type::Int(width) => width,
                    _ => 0,
                };
                match self.constant_integer(mask) {
                    Some(mask) if width > 0 && !is_prefix(&mask, width) => {
                        Some("the mask of an lpm key must be ones followed by zeros")
                    }
                    _ => None,
                }
            }
            ("ternary", Keyset::Range(..)) => Some("a ternary key takes a mask, not a range"),
            ("range", Keyset::Mask(..)) => Some("a range key takes a range, `low .. high`"),
            (_, Keyset::ValueSet(..)) => Some("value sets can be used only in parsers"),
            _ => None,
        };
        match problem {
            Some(problem) if !is_error(ty) => {
                self.error(
                    Diagnostic::error("entry-key", written.span, problem).label(format!("the match kind is `{kind}`")),
                );
                false
            }
            _ => true,
        }
    }

    /// Assigns priorities to entries if the match kinds of the key need them.
    fn priorities(
        &mut self,
        written: &'a [ast::EntryDecl],
        out: &mut [TableEntry],
        all_const: bool,
        key: Span,
        id: TableId,
    ) {
        let table = &self.out.tables[id];
        let needed = table.keys.iter().any(|key| matches!(&*key.match_kind, "ternary" | "range" | "optional"));
        let wins = table.largest_priority_wins;
        let delta = table
            .properties
            .iter()
            .find(|property| &*property.name == "priority_delta")
            .and_then(|property| self.constant_integer(&property.value))
            .and_then(|delta| delta.to_i64())
            .unwrap_or(1);
        let given = written.iter().find_map(|entry| entry.priority.as_ref());
        if !needed {
            if let Some(given) = given {
                self.error(
                    Diagnostic::error("priority", given.span, "entries of this table cannot have priorities")
                        .also(key, "key declared here")
                        .help("only entries with ternary, range or optional keys have priorities"),
                );
            }
            return;
        }
        if let (Some(given), Some(first)) = (given, written.first())
            && first.priority.is_none()
            && !all_const
        {
            self.error(
                Diagnostic::error("priority", first.span, "the first entry needs a priority")
                    .also(given.span, "since this entry has one"),
            );
            return;
        }
        let mut last: Option<i64> = None;
        let count = out.len() as i64;
        for (entry, typed) in written.iter().zip(out) {
            let priority = match (typed.priority, last) {
                (Some(priority), _) => Some(priority),
                (None, None) if wins => {
                    count.checked_sub(1).and_then(|n| n.checked_mul(delta)).and_then(|n| n.checked_add(1))
                }
                (None, None) => Some(1),
                (None, Some(last)) if wins => last.checked_sub(delta),
                (None, Some(last)) => last.checked_add(delta),
            };
            match priority.filter(|priority| (0..=i64::from(i32::MAX)).contains(priority)) {
                Some(priority) => {
                    typed.priority = Some(priority);
                    last = Some(priority);
                }
                None => {
                    self.error(
                        Diagnostic::error(
                            "priority",
                            entry.span,
                            "the computed priority of this entry is out of range",
                        )
                        .also(self.out.tables[id].span, "in this table")
                        .help("give the entry an explicit priority"),
                    );
                    return;
                }
            }
        }
    }
}

/// Returns the keysets of an entry; a list in braces is equivalent to one in parentheses.
fn flatten(keys: &[ast::Expr]) -> Vec<&ast::Expr> {
    match keys {
        [ast::Expr { kind: ast::ExprKind::List(inner), .. }] => inner.iter().collect(),
        _ => keys.iter().collect(),
    }
}
