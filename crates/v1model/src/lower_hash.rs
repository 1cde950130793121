//! Lowers v1model's hashes, checksums and random numbers.

use diagnostics::Span;
use ir::fold;
use ir::{Algorithm, BinaryOp, Expr, HashInput, LValue, Op};
use lower::{ExternCall, Lowering, Val};
use p4::typed::Type;

use crate::description::standard_field;
use crate::lower_packet::scalar;

/// A member of `HashAlgorithm`.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum HashAlgorithm {
    Computed(Algorithm),
    Random,
}

/// The members of `HashAlgorithm` in order.
const ALGORITHMS: [HashAlgorithm; 8] = [
    HashAlgorithm::Computed(Algorithm::Crc32),
    HashAlgorithm::Computed(Algorithm::Crc32Custom),
    HashAlgorithm::Computed(Algorithm::Crc16),
    HashAlgorithm::Computed(Algorithm::Crc16Custom),
    HashAlgorithm::Random,
    HashAlgorithm::Computed(Algorithm::Identity),
    HashAlgorithm::Computed(Algorithm::Csum16),
    HashAlgorithm::Computed(Algorithm::Xor16),
];

/// Returns the algorithm that an argument names.
pub(crate) fn algorithm(cx: &mut Lowering<'_>, val: &Val, span: Span) -> Option<HashAlgorithm> {
    let chosen = val.to_u64().and_then(|index| ALGORITHMS.get(index as usize).copied());
    if chosen.is_none() {
        cx.unsupported(span, "the hash algorithm must be known at compile time");
    }
    chosen
}

/// Returns the width of an algorithm's result; for `identity`, the width that a hash is cut to.
fn result_width(algorithm: Algorithm) -> u32 {
    match algorithm {
        Algorithm::Csum16 | Algorithm::Crc16 | Algorithm::Crc16Custom | Algorithm::Xor16 => 16,
        Algorithm::Crc32 | Algorithm::Crc32Custom => 32,
        Algorithm::Identity => 64,
    }
}

/// Flattens a value into hash inputs, in order.
pub(crate) fn data(cx: &Lowering<'_>, val: Val, ty: &Type) -> Vec<HashInput> {
    let pieces = cx.leaves("", val, ty).into_iter().map(|(_, leaf, ty)| match leaf {
        Val::Varbit(header, field) => HashInput::Varbit(header, field),
        leaf => HashInput::Value(cx.bits(leaf, &ty)),
    });
    pieces.collect()
}

/// Lowers `random(result, lo, hi)`.
pub(crate) fn random(cx: &mut Lowering<'_>, call: &mut ExternCall<'_>) {
    let [result, low, high] = &mut call.args[..] else { return };
    let (low, high) = (scalar(cx, low), scalar(cx, high));
    let (place, _) = cx.out_lvalue(result);
    cx.emit(Op::Random(place, low, high));
}

/// Lowers `hash`.
///
/// ```text
/// hash(result, algo, base, data, max)      $tmp = algo(data)
///                                          result = base + $tmp % max
/// ```
///
/// `x % 0` is 0, so a `max` of 0 gives `base`, as BMv2 documents.
pub(crate) fn hash(cx: &mut Lowering<'_>, call: &mut ExternCall<'_>) {
    let span = call.span;
    let [result, algo, base, input, max] = &mut call.args[..] else { return };
    let Some(chosen) = algorithm(cx, &algo.val, span) else { return };
    let (base_width, max_width) = (cx.scalar_width(&base.ty), cx.scalar_width(&max.ty));
    let (base, max) = (scalar(cx, base), scalar(cx, max));
    let hash_width = match chosen {
        HashAlgorithm::Computed(algorithm) => result_width(algorithm),
        HashAlgorithm::Random => 64,
    };
    let hash = cx.temp(hash_width);
    match chosen {
        HashAlgorithm::Computed(algorithm) => {
            let pieces = data(cx, input.val.clone(), &input.ty);
            cx.emit(Op::Compute(LValue::Slot(hash), algorithm, pieces));
        }
        HashAlgorithm::Random => {
            let ones = Expr::Const(bits::Bits::ones(hash_width));
            cx.emit(Op::Random(LValue::Slot(hash), fold::constant(0, hash_width), ones));
        }
    }
    let (place, width) = cx.out_lvalue(result);
    let base_width = base_width.unwrap_or(32);
    let max_width = max_width.unwrap_or(32);
    let wide = hash_width.max(base_width).max(max_width).max(width);
    let hash = fold::resize(Expr::Slot(hash), hash_width, wide);
    let remainder = match fold::as_const(&max).and_then(bits::Bits::to_u64) {
        Some(max) if max.is_power_of_two() => {
            fold::binary(BinaryOp::And, hash, fold::constant(u128::from(max - 1), wide))
        }
        _ => fold::binary(BinaryOp::Rem, hash, fold::resize(max, max_width, wide)),
    };
    let sum = fold::binary(BinaryOp::Add, fold::resize(base, base_width, wide), remainder);
    cx.set(place, fold::resize(sum, wide, width));
}

/// Emits code that stores the checksum of a call's data, `width` bits wide, in a place.
fn checksum(cx: &mut Lowering<'_>, call: &ExternCall<'_>, place: LValue, width: u32) {
    let [_, input, _, algo] = &call.args[..] else { return };
    let Some(chosen) = algorithm(cx, &algo.val, call.span) else { return };
    match chosen {
        HashAlgorithm::Computed(algorithm) => {
            let mut pieces = data(cx, input.val.clone(), &input.ty);
            if call.name.ends_with("_with_payload") {
                pieces.push(HashInput::Payload);
            }
            cx.emit(Op::Compute(place, algorithm, pieces));
        }
        HashAlgorithm::Random => {
            let ones = Expr::Const(bits::Bits::ones(width));
            cx.emit(Op::Random(place, fold::constant(0, width), ones));
        }
    }
}

/// Lowers `verify_checksum`.
///
/// ```text
/// verify_checksum(c, data, sum, algo)      if c { $tmp = algo(data); if $tmp != sum { checksum_error = 1 } }
/// ```
pub(crate) fn verify_checksum(cx: &mut Lowering<'_>, call: &mut ExternCall<'_>) {
    let [condition, _, expected, _] = &call.args[..] else { return };
    let condition = scalar(cx, condition);
    let width = cx.scalar_width(&expected.ty).unwrap_or(16);
    let expected = scalar(cx, expected);
    let Some((flag, ty)) = standard_field(cx, "checksum_error") else { return };
    let call = &*call;
    cx.when(condition, |cx| {
        let sum = cx.temp(width);
        checksum(cx, call, LValue::Slot(sum), width);
        let differs = fold::binary(BinaryOp::Ne, Expr::Slot(sum), expected);
        cx.when(differs, |cx| cx.assign(&flag, Val::Bits(fold::constant(1, 1)), &ty));
    });
}

/// Lowers `update_checksum`.
///
/// ```text
/// update_checksum(c, data, sum, algo)      if c { sum = algo(data) }
/// ```
pub(crate) fn update_checksum(cx: &mut Lowering<'_>, call: &mut ExternCall<'_>) {
    let [condition, _, target, _] = &call.args[..] else { return };
    let condition = scalar(cx, condition);
    let width = cx.scalar_width(&target.ty).unwrap_or(16);
    let call = &*call;
    cx.when(condition, |cx| {
        let [_, _, target, _] = &call.args[..] else { return };
        match target.lval.as_ref().and_then(lower::Lval::as_lvalue) {
            Some(place) => checksum(cx, call, place, width),
            None => {
                let sum = cx.temp(width);
                checksum(cx, call, LValue::Slot(sum), width);
                cx.write_out(target, Val::Bits(Expr::Slot(sum)));
            }
        }
    });
}

/// Lowers `Checksum16.get(data)`.
pub(crate) fn checksum16(cx: &mut Lowering<'_>, call: &mut ExternCall<'_>) -> Val {
    let [input] = &call.args[..] else { return cx.default_value(call.ret) };
    let pieces = data(cx, input.val.clone(), &input.ty);
    let sum = cx.temp(16);
    cx.emit(Op::Compute(LValue::Slot(sum), Algorithm::Csum16, pieces));
    Val::Bits(Expr::Slot(sum))
}
