//! Table entries of the program: converts keysets to values in the form of the key's match kind.

use bits::Bits;
use diagnostics::{Diagnostic, Span};
use ir::{Entry, Key, KeyValue, MatchKind};
use p4::typed::{self, Keyset, TableEntry};

use crate::lowering::Lowering;
use ir::fold;

/// Returns the argument of `@priority(n)`.
fn annotated(annotations: &typed::Annotations) -> Option<i64> {
    let annotation = annotations.iter().find(|annotation| &*annotation.name == "priority")?;
    match &annotation.body {
        typed::AnnotationBody::Unstructured(text, _) => text.trim().parse().ok(),
        typed::AnnotationBody::Expressions(values) => match values.first()? {
            typed::Value::Integer(value) => i64::try_from(value).ok(),
            typed::Value::Bits(bits) => bits.to_u64().and_then(|value| i64::try_from(value).ok()),
            _ => None,
        },
        _ => None,
    }
}

impl<'a> Lowering<'a> {
    /// Lowers a table's entries. Priorities follow P4Runtime: larger wins. Among entries without a priority in the
    /// program, the first has the largest.
    pub(crate) fn entries(&mut self, decl: &typed::Table, keys: &[Key]) -> Vec<Entry> {
        let ranked =
            keys.iter().any(|key| matches!(key.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional));
        let given: Vec<i64> = decl.entries.iter().filter_map(|entry| entry.priority).collect();
        let (low, high) = (given.iter().min().copied().unwrap_or(0), given.iter().max().copied().unwrap_or(0));
        let count = decl.entries.len() as i64;
        // `@priority(n)` predates priorities in the language: the smallest wins, and the priority of an entry without
        // one is its position.
        let annotated: Vec<Option<i64>> = decl.entries.iter().map(|entry| annotated(&entry.annotations)).collect();
        let old_style = annotated.iter().any(Option::is_some);
        let rank = |at: usize| annotated[at].unwrap_or(at as i64 + 1);
        let last = (0..annotated.len()).map(rank).max().unwrap_or(0);
        let mut entries = Vec::new();
        for (at, entry) in decl.entries.iter().enumerate() {
            let outer = self.at(entry.span);
            let priority = match entry.priority {
                _ if !ranked => 0,
                _ if old_style => last.saturating_sub(rank(at)).saturating_add(1),
                Some(priority) if decl.largest_priority_wins => priority,
                Some(priority) => low.saturating_add(high).saturating_sub(priority),
                None => count - at as i64,
            };
            let priority = i32::try_from(priority).ok().filter(|priority| *priority >= 0).unwrap_or_else(|| {
                self.error(Diagnostic::error("priority", entry.span, format!("{priority} is not a valid priority")));
                0
            });
            if let Some(keys) = self.entry_keys(entry, keys) {
                let args = self.action_data(&entry.args);
                let loc = self.here();
                let (action, constant) = (entry.action as u32, entry.is_const);
                entries.push(Entry { keys, priority, action, args, constant, loc });
            }
            self.at(outer);
        }
        entries
    }

    fn entry_keys(&mut self, entry: &TableEntry, keys: &[Key]) -> Option<Vec<KeyValue>> {
        let all = matches!(&entry.keys[..], [Keyset::Any(_)]);
        let mut values = Vec::new();
        for (i, key) in keys.iter().enumerate() {
            if key.kind == MatchKind::Selector {
                continue;
            }
            let keyset = if all { entry.keys.first()? } else { entry.keys.get(i)? };
            values.push(self.key_value(keyset, key, entry.span)?);
        }
        Some(values)
    }

    fn const_bits(&mut self, e: &typed::Expr, width: u32) -> Option<Bits> {
        let val = self.without_emitting(|cx| cx.value(e));
        let bits = match val {
            crate::value::Val::Integer(value) => ir::Expr::Const(Bits::from_signed_big(&value, width)),
            val => self.bits(val, &e.ty),
        };
        match fold::as_const(&bits) {
            Some(bits) => Some(bits.resize(width)),
            None => {
                self.unsupported(e.span, "a key of an entry must be known at compile time");
                None
            }
        }
    }

    fn key_value(&mut self, keyset: &Keyset, key: &Key, span: Span) -> Option<KeyValue> {
        let width = key.width;
        let ones = Bits::ones(width);
        Some(match (key.kind, keyset) {
            (MatchKind::Exact, Keyset::Value(e)) => KeyValue::Exact(self.const_bits(e, width)?),
            (MatchKind::Optional, Keyset::Value(e)) => KeyValue::Exact(self.const_bits(e, width)?),
            (MatchKind::Optional, Keyset::Any(_)) => KeyValue::Any,
            (MatchKind::Lpm, Keyset::Value(e)) => KeyValue::Lpm(self.const_bits(e, width)?, width),
            (MatchKind::Lpm, Keyset::Any(_)) => KeyValue::Lpm(Bits::zero(width), 0),
            (MatchKind::Lpm, Keyset::Mask(value, mask)) => {
                let (value, mask) = (self.const_bits(value, width)?, self.const_bits(mask, width)?);
                let prefix = (0..width).take_while(|i| mask.bit(width - 1 - i)).count() as u32;
                if mask != ones.shl(width - prefix) {
                    self.error(
                        Diagnostic::error("prefix", span, "the mask of an `lpm` key must be a prefix")
                            .label("a one follows a zero"),
                    );
                    return None;
                }
                KeyValue::Lpm(value.and(&mask), prefix)
            }
            (MatchKind::Ternary, Keyset::Value(e)) => KeyValue::Ternary(self.const_bits(e, width)?, ones),
            (MatchKind::Ternary, Keyset::Any(_)) => KeyValue::Ternary(Bits::zero(width), Bits::zero(width)),
            (MatchKind::Ternary, Keyset::Mask(value, mask)) => {
                let (value, mask) = (self.const_bits(value, width)?, self.const_bits(mask, width)?);
                KeyValue::Ternary(value.and(&mask), mask)
            }
            (MatchKind::Exact | MatchKind::Optional, Keyset::Mask(value, mask)) => {
                let (value, mask) = (self.const_bits(value, width)?, self.const_bits(mask, width)?);
                if mask == ones {
                    KeyValue::Exact(value)
                } else if mask.is_zero() && key.kind == MatchKind::Optional {
                    KeyValue::Any
                } else {
                    return self.misfit(key.kind, span);
                }
            }
            (MatchKind::Range, Keyset::Value(e)) => {
                let value = self.const_bits(e, width)?;
                KeyValue::Range(value.clone(), value)
            }
            (MatchKind::Range, Keyset::Range(low, high)) => {
                let (low, high) = (self.const_bits(low, width)?, self.const_bits(high, width)?);
                let order = if key.signed { low.signed_cmp(&high) } else { low.unsigned_cmp(&high) };
                if order == std::cmp::Ordering::Greater {
                    self.error(Diagnostic::warning("empty-range", span, "this range is empty"));
                    return None;
                }
                KeyValue::Range(low, high)
            }
            (MatchKind::Range, Keyset::Any(_)) if key.signed && width > 0 => {
                let lowest = Bits::new(1, width).shl(width - 1);
                KeyValue::Range(lowest.clone(), lowest.not())
            }
            (MatchKind::Range, Keyset::Any(_)) => KeyValue::Range(Bits::zero(width), ones),
            (kind, _) => return self.misfit(kind, span),
        })
    }

    fn misfit(&mut self, kind: MatchKind, span: Span) -> Option<KeyValue> {
        let kind = match kind {
            MatchKind::Exact => "an `exact` key takes a single value",
            MatchKind::Lpm => "an `lpm` key takes a value, a prefix (`value &&& mask`) or `_`",
            MatchKind::Ternary => "a `ternary` key takes a value, `value &&& mask` or `_`",
            MatchKind::Range => "a `range` key takes a value, `low .. high` or `_`",
            MatchKind::Optional => "an `optional` key takes a value or `_`",
            MatchKind::Selector => "a `selector` key is not matched",
        };
        self.error(Diagnostic::error("keyset", span, kind));
        None
    }
}
