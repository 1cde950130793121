//! Translates match fields (specification 9.1.1): the form of each match kind, and "don't care" as an omitted field.

use bits::Bits;
use ir::{KeyValue, MatchKind};
use p4runtime_proto::bytestring;
use p4runtime_proto::v1::FieldMatch;
use p4runtime_proto::v1::field_match::{Exact, FieldMatchType, Lpm, Optional, Range, Ternary};

use crate::key::EntryKey;
use crate::schema::{FieldSchema, ValueEncoding};
use crate::status::{Code, Refusal};

/// Parses a controller's value.
pub(super) fn parse_value(field: &FieldSchema, bytes: &[u8]) -> Result<Bits, Refusal> {
    field.sdn.parse(bytes, field.width)
}

/// Converts a value to the controller's form.
pub(super) fn print_value(field: &FieldSchema, value: &Bits) -> Vec<u8> {
    field.sdn.print(value)
}

/// Parses the values of a key, one for each field, in the order of the fields.
///
/// # Errors
/// `INVALID_ARGUMENT` for fields that are unknown, given twice, missing or of the wrong form; `OUT_OF_RANGE` for
/// values that do not fit.
pub(crate) fn parse_matches(fields: &[FieldSchema], matches: &[FieldMatch]) -> Result<Vec<KeyValue>, Refusal> {
    let mut keys: Vec<Option<KeyValue>> = vec![None; fields.len()];
    for given in matches {
        let Some(at) = fields.iter().position(|field| field.id == given.field_id) else {
            let known: Vec<_> = fields.iter().map(|field| format!("{} `{}`", field.id, field.name)).collect();
            return Err(Refusal::invalid(format!(
                "there is no match field {}; the fields are {}",
                given.field_id,
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            )));
        };
        let field = &fields[at];
        let about = |refusal: Refusal| Refusal {
            message: format!("field {} is {}, {}", field.name, field.kind, refusal.message),
            ..refusal
        };
        if keys[at].is_some() {
            return Err(about(Refusal::invalid("and given twice")));
        }
        keys[at] = Some(parse_match(field, given.field_match_type.as_ref()).map_err(about)?);
    }
    let fill = |(field, key): (&FieldSchema, Option<KeyValue>)| match key {
        Some(key) => Ok(key),
        None if field.kind == MatchKind::Exact => Err(Refusal::invalid(format!(
            "field {} is exact and must be given: field_id {}, {} bits",
            field.name, field.id, field.width
        ))),
        None => Ok(KeyValue::Any),
    };
    fields.iter().zip(keys).map(fill).collect()
}

fn parse_match(field: &FieldSchema, given: Option<&FieldMatchType>) -> Result<KeyValue, Refusal> {
    let width = field.width;
    let data = match (&field.sdn, given) {
        (ValueEncoding::Translated(translated), Some(given)) => Some(translated.match_to_data(given, width)?),
        _ => None,
    };
    let given = data.as_ref().or(given);
    let value = |bytes: &[u8]| bytestring::parse(bytes, width);
    let dont_care = || Refusal::invalid("and matches everything; leave a field out to match everything");
    match (field.kind, given) {
        (MatchKind::Exact, Some(FieldMatchType::Exact(exact))) => Ok(KeyValue::Exact(value(&exact.value)?)),
        (MatchKind::Optional, Some(FieldMatchType::Optional(given))) => Ok(KeyValue::Exact(value(&given.value)?)),
        (MatchKind::Lpm, Some(FieldMatchType::Lpm(lpm))) => {
            let bits = value(&lpm.value)?;
            let length = match u32::try_from(lpm.prefix_len) {
                Ok(0) => return Err(dont_care()),
                Ok(length) if length <= width => length,
                _ => return Err(Refusal::invalid(format!("{width} bits; prefix length {}", lpm.prefix_len))),
            };
            let kept = bits.shr(width - length).shl(width - length);
            if kept != bits {
                return Err(Refusal::invalid(format!(
                    "the value {} has bits set after its prefix of {length} bits; did you mean {}?",
                    bytestring::hex(&lpm.value),
                    bytestring::hex(&bytestring::print(&kept))
                )));
            }
            Ok(KeyValue::Lpm(bits, length))
        }
        (MatchKind::Ternary, Some(FieldMatchType::Ternary(ternary))) => {
            let (bits, mask) = (value(&ternary.value)?, value(&ternary.mask)?);
            if mask.is_zero() {
                return Err(dont_care());
            }
            if bits.and(&mask) != bits {
                return Err(Refusal::invalid(format!(
                    "the value {} has bits set where its mask {} has none",
                    bytestring::hex(&ternary.value),
                    bytestring::hex(&ternary.mask)
                )));
            }
            Ok(KeyValue::Ternary(bits, mask))
        }
        (MatchKind::Range, Some(FieldMatchType::Range(range))) => {
            let (low, high) = (value(&range.low)?, value(&range.high)?);
            if low.unsigned_cmp(&high).is_gt() {
                return Err(Refusal::invalid(format!(
                    "the low bound {} is above the high bound {}",
                    bytestring::hex(&range.low),
                    bytestring::hex(&range.high)
                )));
            }
            if low.is_zero() && high == Bits::ones(width) {
                return Err(dont_care());
            }
            Ok(KeyValue::Range(low, high))
        }
        (_, None) => Err(Refusal::invalid("and its value is missing")),
        (_, Some(other)) => Err(match match_kind(other) {
            Some(kind) => Refusal::invalid(format!("the value is {kind}")),
            None => Refusal::new(Code::InvalidArgument, "the value is of an unknown kind"),
        }),
    }
}

/// Returns the match kind that a value is of; `None` if it is of an architecture's own kind.
fn match_kind(given: &FieldMatchType) -> Option<MatchKind> {
    match given {
        FieldMatchType::Exact(_) => Some(MatchKind::Exact),
        FieldMatchType::Ternary(_) => Some(MatchKind::Ternary),
        FieldMatchType::Lpm(_) => Some(MatchKind::Lpm),
        FieldMatchType::Range(_) => Some(MatchKind::Range),
        FieldMatchType::Optional(_) => Some(MatchKind::Optional),
        FieldMatchType::Other(_) => None,
    }
}

/// Converts a key to canonical match fields: shortest values, and no field for "don't care".
pub(crate) fn print_matches(fields: &[FieldSchema], keys: &[KeyValue]) -> Vec<FieldMatch> {
    let print = |(field, key): (&FieldSchema, &KeyValue)| {
        let value = bytestring::print;
        let given = match (field.kind, key) {
            (_, KeyValue::Any) => return None,
            (MatchKind::Optional, KeyValue::Exact(bits)) => FieldMatchType::Optional(Optional { value: value(bits) }),
            (_, KeyValue::Exact(bits)) => FieldMatchType::Exact(Exact { value: value(bits) }),
            (_, KeyValue::Lpm(_, 0)) => return None,
            (_, KeyValue::Lpm(bits, length)) => {
                FieldMatchType::Lpm(Lpm { value: value(bits), prefix_len: *length as i32 })
            }
            (_, KeyValue::Ternary(_, mask)) if mask.is_zero() => return None,
            (_, KeyValue::Ternary(bits, mask)) => {
                FieldMatchType::Ternary(Ternary { value: value(bits), mask: value(mask) })
            }
            (_, KeyValue::Range(low, high)) if low.is_zero() && *high == Bits::ones(field.width) => return None,
            (_, KeyValue::Range(low, high)) => FieldMatchType::Range(Range { low: value(low), high: value(high) }),
        };
        let given = match &field.sdn {
            ValueEncoding::Plain => given,
            ValueEncoding::Translated(translated) => translated.match_to_sdn(given),
        };
        Some(FieldMatch { field_id: field.id, field_match_type: Some(given) })
    };
    fields.iter().zip(keys).filter_map(print).collect()
}

/// Encodes a key and a priority as bytes. Equal keys have equal bytes, and the bytes sort like the values.
pub(crate) fn encode_key(fields: &[FieldSchema], keys: &[KeyValue], priority: i32) -> EntryKey {
    let mut out = Vec::with_capacity(32);
    for (field, key) in fields.iter().zip(keys) {
        let zero = || Bits::zero(field.width);
        let (first, second) = match (field.kind, key) {
            (MatchKind::Exact, KeyValue::Exact(value)) => (value.clone(), None),
            (MatchKind::Lpm, KeyValue::Lpm(value, length)) => (value.clone(), Some(Bits::new((*length).into(), 32))),
            (MatchKind::Lpm, _) => (zero(), Some(Bits::zero(32))),
            (MatchKind::Ternary, KeyValue::Ternary(value, mask)) => (value.clone(), Some(mask.clone())),
            (MatchKind::Ternary, _) => (zero(), Some(zero())),
            (MatchKind::Range, KeyValue::Range(low, high)) => (low.clone(), Some(high.clone())),
            (MatchKind::Range, _) => (zero(), Some(Bits::ones(field.width))),
            (_, KeyValue::Exact(value)) => (value.clone(), Some(Bits::bool(true))),
            _ => (zero(), Some(Bits::bool(false))),
        };
        out.extend(first.to_be_bytes());
        if let Some(second) = second {
            out.extend(second.to_be_bytes());
        }
    }
    out.extend(priority.to_be_bytes());
    out.as_slice().into()
}
