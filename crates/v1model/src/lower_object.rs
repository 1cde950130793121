//! Lowers extern objects: counters, meters, registers, action profiles.

use diagnostics::{Diagnostic, Span};
use ir::{Expr, LValue, Op, Unit};
use lower::{ExternCall, ExternInstance, Lowering, Object, Val};

use crate::lower_hash::{HashAlgorithm, algorithm, checksum16};
use crate::lower_packet::scalar;

/// The object of a `Checksum16`, which has no state.
const CHECKSUM16: Object = Object::Other(0);

/// The object of an invalid instance.
const NONE: Object = Object::Other(1);

/// Makes an object.
pub(crate) fn instance(cx: &mut Lowering<'_>, new: &ExternInstance<'_>) -> Object {
    let name = new.name.clone();
    let annotations = new.annotations.clone();
    match &*new.decl.name {
        "counter" => {
            let (size, unit) = (array_size(cx, new, 1), counter_unit(cx, new, 1));
            Object::Counter(cx.ir.counters.push(ir::Counter { name, unit, size: Some(size), annotations }))
        }
        "direct_counter" => {
            let unit = counter_unit(cx, new, 0);
            Object::Counter(cx.ir.counters.push(ir::Counter { name, unit, size: None, annotations }))
        }
        "meter" => {
            let (size, unit) = (array_size(cx, new, 1), meter_unit(cx, new, 1));
            Object::Meter(cx.ir.meters.push(ir::Meter { name, unit, size: Some(size), annotations }))
        }
        "direct_meter" => {
            let unit = meter_unit(cx, new, 0);
            Object::Meter(cx.ir.meters.push(ir::Meter { name, unit, size: None, annotations }))
        }
        "register" => {
            let Some(width) = new.decl.type_args.first().and_then(|ty| cx.packed_width(ty)) else {
                cx.unsupported(new.span, "a register's elements must be numbers, or structs of them");
                return NONE;
            };
            let size = array_size(cx, new, width);
            Object::Register(cx.ir.registers.push(ir::Register { name, width, size, annotations }))
        }
        "action_profile" => {
            let size = size(cx, new, 0);
            let profile = ir::Profile { name, size, selector: None, hash_width: 0, annotations };
            Object::Profile(cx.ir.profiles.push(profile))
        }
        "action_selector" => {
            let selector = match new.args.first().and_then(|val| algorithm(cx, val, new.span)) {
                Some(HashAlgorithm::Computed(algorithm)) => algorithm,
                Some(HashAlgorithm::Random) => {
                    cx.unsupported(new.span, "a selector with random selection is not supported");
                    return NONE;
                }
                None => return NONE,
            };
            let (members, hash_width) = (size(cx, new, 1), size(cx, new, 2));
            let hash_width = u32::try_from(hash_width).unwrap_or(u32::MAX);
            let profile = ir::Profile { name, size: members, selector: Some(selector), hash_width, annotations };
            Object::Profile(cx.ir.profiles.push(profile))
        }
        "Checksum16" => CHECKSUM16,
        other => {
            cx.unsupported(new.span, format!("v1model has no extern object `{other}`"));
            NONE
        }
    }
}

fn size(cx: &mut Lowering<'_>, new: &ExternInstance<'_>, index: usize) -> u64 {
    match new.args.get(index).and_then(Val::to_u64) {
        Some(size) => size,
        None => {
            cx.unsupported(new.span, "the arguments of a constructor must be known at compile time");
            0
        }
    }
}

/// Returns the number of elements of an array, the constructor's first argument. Reports a number that no switch
/// could hold.
fn array_size(cx: &mut Lowering<'_>, new: &ExternInstance<'_>, width: u32) -> u64 {
    let size = size(cx, new, 0);
    let most = ir::MAX_ARRAY_SIZE.min(ir::MAX_REGISTER_BITS / u64::from(width.max(1)));
    if size > most {
        let message = format!("{size} elements are too many for a {}", new.decl.name);
        let wide = if width > 1 { format!(" of {width} bits") } else { String::new() };
        cx.error(
            Diagnostic::error("too-large", new.span, message)
                .label("too large")
                .help(format!("the maximum is {most} elements{wide}")),
        );
        return 0;
    }
    size
}

/// The members of `CounterType` in order.
fn counter_unit(cx: &mut Lowering<'_>, new: &ExternInstance<'_>, index: usize) -> Unit {
    match size(cx, new, index) {
        0 => Unit::Packets,
        1 => Unit::Bytes,
        _ => Unit::PacketsAndBytes,
    }
}

/// The members of `MeterType` in order.
fn meter_unit(cx: &mut Lowering<'_>, new: &ExternInstance<'_>, index: usize) -> Unit {
    match size(cx, new, index) {
        0 => Unit::Packets,
        _ => Unit::Bytes,
    }
}

/// Lowers a method call.
pub(crate) fn method(cx: &mut Lowering<'_>, object: &Object, call: &mut ExternCall<'_>) -> Val {
    let direct = match object {
        Object::Counter(id) => cx.ir.counters[*id].size.is_none(),
        Object::Meter(id) => cx.ir.meters[*id].size.is_none(),
        _ => false,
    };
    match (object, call.name, &mut call.args[..]) {
        // A direct counter counts automatically whenever its table is hit.
        (Object::Counter(_), "count", []) if direct => {}
        (Object::Counter(id), "count", [index]) if !direct => {
            let index = scalar(cx, index);
            cx.emit(Op::Count(*id, index));
        }
        (Object::Meter(id), "execute_meter", [index, result]) if !direct => {
            let index = scalar(cx, index);
            let (place, _) = cx.out_lvalue(result);
            cx.emit(Op::MeterExecute(*id, index, place));
        }
        (Object::Meter(id), "read", [result]) if direct => {
            let (place, _) = cx.out_lvalue(result);
            cx.emit(Op::DirectMeterRead(*id, place));
        }
        (Object::Register(id), "read", [result, index]) => {
            let index = scalar(cx, index);
            if cx.scalar_width(&result.ty).is_some() {
                let (place, _) = cx.out_lvalue(result);
                cx.emit(Op::RegisterRead(place, *id, index));
            } else {
                let width = cx.ir.registers[*id].width;
                let packed = cx.temp(width);
                cx.emit(Op::RegisterRead(LValue::Slot(packed), *id, index));
                let val = cx.unpack(&Expr::Slot(packed), width, &result.ty);
                cx.write_out(result, val);
            }
        }
        (Object::Register(id), "write", [index, value]) => {
            let index = scalar(cx, index);
            match cx.pack(value.val.clone(), &value.ty) {
                Some((packed, _)) => cx.emit(Op::RegisterWrite(*id, index, packed)),
                None => cx.unsupported(call.span, "this value cannot be stored in a register"),
            }
        }
        (object, "get", [_]) if *object == CHECKSUM16 => return checksum16(cx, call),
        (object, _, _) if *object == NONE => return cx.default_value(call.ret),
        (_, other, _) => {
            cx.unsupported(call.span, format!("this object has no method `{other}` in v1model"));
            return cx.default_value(call.ret);
        }
    }
    Val::Absent
}

/// Whether an object can be a table's direct object. If not, reports the reason.
fn direct(cx: &mut Lowering<'_>, is_direct: bool, taken: bool, property: &str, span: Span) -> bool {
    if !is_direct {
        cx.error(
            Diagnostic::error("not-direct", span, format!("`{property}` takes a direct object, not an array"))
                .help("declare a `direct_counter` or `direct_meter`"),
        );
    } else if taken {
        cx.error(
            Diagnostic::error("not-direct", span, "a direct object can belong to only one table")
                .label("it already belongs to another table"),
        );
    }
    is_direct && !taken
}

/// Handles `implementation`, `counters`, `meters` and `support_timeout`.
pub(crate) fn table_property(cx: &mut Lowering<'_>, table: &mut ir::Table, name: &str, value: &Val, span: Span) {
    match (name, value) {
        ("implementation", Val::Object(Object::Profile(profile))) => table.profile = Some(*profile),
        ("counters", Val::Object(Object::Counter(counter))) => {
            let taken = cx.ir.tables.values().any(|other| other.counter == Some(*counter));
            if direct(cx, cx.ir.counters[*counter].size.is_none(), taken, name, span) {
                table.counter = Some(*counter);
            }
        }
        ("meters", Val::Object(Object::Meter(meter))) => {
            let taken = cx.ir.tables.values().any(|other| other.meter == Some(*meter));
            if direct(cx, cx.ir.meters[*meter].size.is_none(), taken, name, span) {
                table.meter = Some(*meter);
            }
        }
        ("support_timeout", value) => {
            table.idle_timeout = value.as_const().is_some_and(bits::Bits::is_true);
        }
        (_, Val::Object(object)) if *object == NONE => {}
        ("implementation" | "counters" | "meters", _) => {
            cx.unsupported(span, format!("this is not a valid `{name}` in v1model"));
        }
        _ => {
            let message = format!("v1model has no table property `{name}`");
            let warning = Diagnostic::warning("unknown-property", span, message);
            cx.error(warning.help("the properties are `implementation`, `counters`, `meters` and `support_timeout`"));
        }
    }
}
