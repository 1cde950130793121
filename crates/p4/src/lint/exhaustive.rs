//! Warns about `select`s without a case for some packets: those are rejected, which few authors intend without saying
//! so.

use diagnostics::{Diagnostic, Span};
use num_bigint::BigInt;

use super::Warnings;
use super::cover::number;
use crate::typed::{Expr, Keyset, Program, SelectCase, Type};

/// Maximum number of values or combinations of values that are tried.
const MAX_TRIED: usize = 1 << 12;

/// Reports a `select` with cases that do not match all values.
pub(super) fn select(program: &Program, exprs: &[Expr], cases: &[SelectCase], span: Span, findings: &mut Warnings<'_>) {
    let catches_all = |case: &SelectCase| case.keys.iter().all(|key| matches!(key, Keyset::Any(_)));
    if cases.iter().any(catches_all) || leaves_nothing(program, exprs, cases) {
        return;
    }
    findings.push(
        Diagnostic::warning("missing-default", span, "this `select` has no `default`")
            .label("packets that match no case are rejected")
            .help("add `default: accept;`, or `default: reject;` if this is intended"),
    );
}

/// Whether every combination of values has a case. Only a limited number is tried; beyond it the answer is no.
fn leaves_nothing(program: &Program, exprs: &[Expr], cases: &[SelectCase]) -> bool {
    let Some(domains) = exprs.iter().map(|e| domain(program, &e.ty)).collect::<Option<Vec<_>>>() else { return false };
    let count = domains.iter().try_fold(1usize, |product, values| product.checked_mul(values.len()));
    let Some(count) = count.filter(|count| count.saturating_mul(cases.len()) <= MAX_TRIED) else { return false };
    (0..count).all(|mut at| {
        let values: Vec<&BigInt> = domains
            .iter()
            .map(|values| {
                let value = &values[at % values.len()];
                at /= values.len();
                value
            })
            .collect();
        cases.iter().any(|case| case.keys.iter().zip(&values).all(|(key, value)| matches(key, value)))
    })
}

/// Returns the values of a type, if there are few.
fn domain(program: &Program, ty: &Type) -> Option<Vec<BigInt>> {
    let numbers = |from: i64, to: i64| Some((from..to).map(BigInt::from).collect());
    match ty {
        Type::Bool => numbers(0, 2),
        Type::Bit(width) if *width <= 12 => numbers(0, 1 << width),
        Type::Int(width) if *width <= 12 => numbers(-(1 << (width - 1)), 1 << (width - 1)),
        Type::New(id) => domain(program, &program.new_types.get(*id)?.underlying),
        Type::Enum(id) => match &program.enums[*id].underlying {
            Some(underlying) => domain(program, underlying),
            None => numbers(0, program.enums[*id].members.len() as i64),
        },
        _ => None,
    }
}

fn matches(key: &Keyset, value: &BigInt) -> bool {
    match key {
        Keyset::Any(_) => true,
        Keyset::Value(e) => number(e).is_some_and(|e| e == *value),
        Keyset::Mask(e, mask) => {
            matches!((number(e), number(mask)), (Some(e), Some(mask)) if &e & &mask == value & &mask)
        }
        Keyset::Range(low, high) => {
            matches!((number(low), number(high)), (Some(low), Some(high)) if low <= *value && *value <= high)
        }
        Keyset::ValueSet(..) => false,
    }
}
