//! Coverage of one set of values by another: finds cases and entries that can never be the first to match.

use diagnostics::{Diagnostic, Span};
use num_bigint::BigInt;

use super::Warnings;
use crate::typed::{Expr, ExprKind, Keyset, SelectCase, Table, Type, Value};

/// Maximum number of cases or entries of one list that are compared with each other.
const MAX_COMPARED: usize = 1024;

/// Reports cases of a `select` that earlier ones cover.
pub(super) fn cases(cases: &[SelectCase], findings: &mut Warnings<'_>) {
    for (span, by) in covered(&cases.iter().map(|case| (&case.keys[..], case.span)).collect::<Vec<_>>()) {
        findings.push(
            Diagnostic::warning("unreachable", span, "this case is never reached")
                .also(by, "this case already covers it"),
        );
    }
}

/// Reports entries of a table that others of a higher priority cover.
pub(super) fn entries(table: &Table, findings: &mut Warnings<'_>) {
    let mut entries: Vec<_> = table.entries.iter().collect();
    // The longest prefix wins regardless of the order: only equal prefixes hide each other.
    if table.keys.iter().any(|key| &*key.match_kind == "lpm") {
        return;
    }
    if entries.iter().all(|entry| entry.priority.is_some()) {
        if table.largest_priority_wins {
            entries.sort_by_key(|entry| std::cmp::Reverse(entry.priority));
        } else {
            entries.sort_by_key(|entry| entry.priority);
        }
    }
    let rows: Vec<_> = entries.iter().map(|entry| (&entry.keys[..], entry.span)).collect();
    for (span, by) in covered(&rows) {
        findings.push(
            Diagnostic::warning("unreachable", span, "this entry never matches")
                .also(by, "this entry takes precedence and covers it"),
        );
    }
}

fn covered(rows: &[(&[Keyset], Span)]) -> Vec<(Span, Span)> {
    let mut found = Vec::new();
    for (at, (keys, span)) in rows.iter().enumerate().take(MAX_COMPARED) {
        let by = rows[..at].iter().find(|(earlier, _)| covers_all(earlier, keys));
        if let Some((_, by)) = by {
            found.push((*span, *by));
        }
    }
    found
}

fn covers_all(a: &[Keyset], b: &[Keyset]) -> bool {
    match a {
        // One `default` stands for all expressions.
        [Keyset::Any(_)] => true,
        _ => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| covers(a, b)),
    }
}

fn covers(a: &Keyset, b: &Keyset) -> bool {
    match (a, b) {
        (Keyset::Any(_), _) => true,
        (Keyset::ValueSet(a, _), Keyset::ValueSet(b, _)) => a == b,
        (Keyset::Value(a), Keyset::Value(b)) => match (&a.kind, &b.kind) {
            (ExprKind::Const(a), ExprKind::Const(b)) => a == b,
            _ => false,
        },
        (Keyset::Mask(value, mask), other) => {
            let (Some(value), Some(mask)) = (number(value), number(mask)) else { return false };
            let (low, fixed) = match other {
                Keyset::Value(e) => (number(e), Some(mask.clone())),
                Keyset::Mask(e, m) => (number(e), number(m)),
                _ => return false,
            };
            let (Some(low), Some(fixed)) = (low, fixed) else { return false };
            // Every bit that `a` compares is fixed in `b` with the same value.
            &mask & &fixed == mask && &low & &mask == &value & &mask
        }
        (Keyset::Range(from, to), other) => {
            let (Some(from), Some(to)) = (number(from), number(to)) else { return false };
            let (low, high) = match other {
                Keyset::Value(e) => (number(e), number(e)),
                Keyset::Range(a, b) => (number(a), number(b)),
                _ => return false,
            };
            matches!((low, high), (Some(low), Some(high)) if low <= high && from <= low && high <= to)
        }
        _ => false,
    }
}

/// Returns the value of a constant; a `bool` is 0 or 1.
pub(super) fn number(e: &Expr) -> Option<BigInt> {
    match (&e.kind, &e.ty) {
        (ExprKind::Const(Value::Bits(bits)), Type::Int(_)) => Some(bits.to_signed_big()),
        (ExprKind::Const(Value::Bits(bits)), _) => Some(BigInt::from(bits.to_big())),
        (ExprKind::Const(Value::Integer(value)), _) => Some(value.clone()),
        (ExprKind::Const(Value::Bool(value)), _) => Some(BigInt::from(u8::from(*value))),
        _ => None,
    }
}
