//! Lowers externs that affect a packet (drop, clone, resubmit, recirculate, truncate) and those that report (digest,
//! log, assert).

use std::collections::HashSet;

use ir::{Expr, FieldListItem, LValue, Op, Request};
use lower::{Block, BlockParam, ExternArg, ExternCall, Lowering, Store, Val};
use p4::lex::TokenKind;
use p4::typed::{Annotation, AnnotationBody, Type, Value};

use crate::description::{DROP_SITE, REPLICA_PORTS, REPLICAS, part, standard_field};
use crate::switch::drop_port_of;

/// Returns the scalar value of an argument.
pub(crate) fn scalar(cx: &Lowering<'_>, arg: &ExternArg) -> Expr {
    cx.bits(arg.val.clone(), &arg.ty)
}

/// Returns the slot with the place in the source that dropped a packet.
fn drop_site(cx: &mut Lowering<'_>) -> ir::SlotId {
    match cx.ir.slot_named(DROP_SITE) {
        Some(slot) => slot,
        None => cx.packet_slot(DROP_SITE, 32),
    }
}

/// ```text
/// mark_to_drop(sm)       sm.egress_spec = 511      // all ones of its width
///                        sm.mcast_grp = 0
///                        $drop_site = the number of this place
/// ```
pub(crate) fn mark_to_drop(cx: &mut Lowering<'_>, call: &mut ExternCall<'_>) {
    let metadata = call.args.first().and_then(|arg| match (&arg.lval, &arg.ty) {
        (Some(lval), Type::Struct(id)) => Some((lval.store.clone(), *id)),
        _ => None,
    });
    for field in ["egress_spec", "mcast_grp"] {
        let found = match &metadata {
            Some((store, id)) => part(cx.program, store, *id, field),
            None => standard_field(cx, field),
        };
        if let Some((store, ty)) = found {
            let width = cx.scalar_width(&ty).unwrap_or(0);
            let value = if field == "egress_spec" { drop_port_of(width) } else { 0 };
            cx.assign(&store, Val::Bits(ir::fold::constant(value.into(), width)), &ty);
        }
    }
    let site = drop_site(cx);
    let here = cx.here();
    cx.set(LValue::Slot(site), ir::fold::constant(u128::from(here.as_u32()), 32));
}

/// Returns the fields that `@field_list(n)` preserves, from the annotations of the metadata struct.
pub(crate) fn field_lists(cx: &mut Lowering<'_>, ingress: &Val, block: &Block) {
    let Some(ty) = cx.params_of(ingress).get(1).map(|param| param.ty.clone()) else { return };
    let Some(BlockParam::Shared(name)) = block.params.get(1) else { return };
    let store = cx.shared(name, &ty);
    collect(cx, &store, &ty);
}

fn collect(cx: &mut Lowering<'_>, store: &Store, ty: &Type) {
    let (Type::Struct(id), Store::Fields(parts)) = (ty, store) else { return };
    let program = cx.program;
    for (field, part) in program.structs[*id].fields.iter().zip(parts) {
        for annotation in field.annotations.iter().filter(|annotation| &*annotation.name == "field_list") {
            for list in numbers(annotation) {
                let mut kept = Vec::new();
                keep(cx, part, &mut kept);
                let entry = cx.ir.field_lists.entry(list).or_default();
                for item in kept {
                    if !entry.contains(&item) {
                        entry.push(item);
                    }
                }
            }
        }
        collect(cx, part, &field.ty);
    }
}

fn numbers(annotation: &Annotation) -> Vec<u32> {
    match &annotation.body {
        AnnotationBody::Unstructured(_, tokens) => tokens
            .iter()
            .filter_map(|token| match &token.kind {
                TokenKind::Int(literal) => u32::try_from(&literal.value).ok(),
                _ => None,
            })
            .collect(),
        AnnotationBody::Expressions(values) => values
            .iter()
            .filter_map(|value| match value {
                Value::Integer(value) => u32::try_from(value).ok(),
                Value::Bits(bits) => bits.to_u64().and_then(|value| u32::try_from(value).ok()),
                _ => None,
            })
            .collect(),
        AnnotationBody::Empty | AnnotationBody::KeyValues(_) => Vec::new(),
    }
}

/// Collects everything in a piece of storage that lives as long as the packet.
fn keep(cx: &Lowering<'_>, store: &Store, kept: &mut Vec<FieldListItem>) {
    let mut headers = Vec::new();
    match store {
        Store::Slot(slot) => {
            if cx.ir.slots[*slot].kind == ir::SlotKind::Metadata {
                kept.push(FieldListItem::Slot(*slot));
            }
        }
        Store::Fields(parts) => parts.iter().for_each(|part| keep(cx, part, kept)),
        Store::Header(header) | Store::Field(header, _) | Store::Varbit(header, _) => headers.push(header.clone()),
        Store::Member(members, _) | Store::Union(members) => headers.extend(members.iter().cloned()),
        Store::Stack(stack) => {
            let stack = &cx.ir.stacks[*stack];
            kept.push(FieldListItem::Slot(stack.next));
            let first = stack.first.as_u32();
            headers.extend((0..stack.size).map(|i| ir::HeaderRef::Header(ir::HeaderId::from_u32(first + i))));
        }
        Store::Array(elements, next) => {
            kept.extend(next.map(FieldListItem::Slot));
            elements.iter().for_each(|element| keep(cx, element, kept));
        }
    }
    for header in headers {
        if let ir::HeaderRef::Header(header) = header {
            let item = FieldListItem::Header(header);
            if !cx.ir.headers[header].local && !kept.contains(&item) {
                kept.push(item);
            }
        }
    }
}

/// First number of the field lists for the data of deprecated calls. Those of programs have 8 bits.
const FIRST_OWN_LIST: u32 = 256;

/// Returns the field list of a call: the index that it gives, or the data of a deprecated call.
fn list_of(cx: &mut Lowering<'_>, call: &ExternCall<'_>) -> Option<u32> {
    if let Some(index) = call.args.iter().find(|arg| &*arg.name == "index") {
        let Some(list) = index.val.to_u64().and_then(|index| u32::try_from(index).ok()) else {
            cx.unsupported(call.span, "the index of the field list must be known at compile time");
            return None;
        };
        cx.ir.field_lists.entry(list).or_default();
        return Some(list);
    }
    let data = call.args.iter().find(|arg| &*arg.name == "data")?;
    let mut kept = Vec::new();
    let mut seen = HashSet::new();
    for (_, leaf, _) in cx.leaves("", data.val.clone(), &data.ty) {
        match leaf {
            Val::Bits(Expr::Slot(slot)) if seen.insert(slot) => keep(cx, &Store::Slot(slot), &mut kept),
            Val::Bits(Expr::Field(header, field)) => keep(cx, &Store::Field(header, field), &mut kept),
            _ => {}
        }
    }
    if kept.is_empty() {
        return None;
    }
    if let Some((list, _)) = cx.ir.field_lists.iter().find(|(_, old)| **old == kept) {
        return Some(*list);
    }
    let next = cx.ir.field_lists.keys().next_back().map_or(FIRST_OWN_LIST, |last| (last + 1).max(FIRST_OWN_LIST));
    cx.ir.field_lists.insert(next, kept);
    Some(next)
}

/// `clone(type, session)` and its variants.
pub(crate) fn clone(cx: &mut Lowering<'_>, call: &mut ExternCall<'_>) {
    let [kind, session, ..] = &call.args[..] else { return };
    let session = scalar(cx, session);
    let kind = scalar(cx, kind);
    let keep = list_of(cx, call);
    match ir::fold::as_const(&kind) {
        // The order of the members of `CloneType`: I2E, E2E.
        Some(kind) => {
            let ingress = kind.is_zero();
            cx.emit(Op::Request(Request::Clone { ingress, session, keep }));
        }
        None => cx.unsupported(call.span, "the type of the clone must be known at compile time"),
    }
}

/// `resubmit` and `recirculate`.
pub(crate) fn again(cx: &mut Lowering<'_>, call: &mut ExternCall<'_>, request: fn(Option<u32>) -> Request) {
    let keep = list_of(cx, call);
    cx.emit(Op::Request(request(keep)));
}

pub(crate) fn truncate(cx: &mut Lowering<'_>, call: &mut ExternCall<'_>) {
    let [length] = &call.args[..] else { return };
    let length = scalar(cx, length);
    cx.emit(Op::Request(Request::Truncate(length)));
}

/// ```text
/// replicate_to_ports(p)  $replicas = p
///                        sm.mcast_grp = 0
///                        sm.egress_spec = p == 0 ? 511 : 0      // all ones of its width, or any other port
///                        $drop_site = the number of this place
/// ```
pub(crate) fn replicate_to_ports(cx: &mut Lowering<'_>, call: &mut ExternCall<'_>) {
    let [ports] = &call.args[..] else { return };
    let width = match &ports.ty {
        Type::Bit(_) => cx.scalar_width(&ports.ty).unwrap_or(0),
        _ => 0,
    };
    if width == 0 || width > REPLICA_PORTS {
        let message = format!("the ports must be a `bit<W>` of 1 to {REPLICA_PORTS} bits");
        cx.unsupported(call.span, message);
        return;
    }
    let ports = scalar(cx, ports);
    let slot = match cx.ir.slot_named(REPLICAS) {
        Some(slot) => slot,
        None => cx.packet_slot(REPLICAS, REPLICA_PORTS),
    };
    cx.set(LValue::Slot(slot), ir::fold::resize(ports, width, REPLICA_PORTS));
    for field in ["egress_spec", "mcast_grp"] {
        let Some((store, ty)) = standard_field(cx, field) else { continue };
        let width = cx.scalar_width(&ty).unwrap_or(0);
        let (none, other) = if field == "egress_spec" {
            let drops = drop_port_of(width);
            (drops, u32::from(drops == 0))
        } else {
            (0, 0)
        };
        let number = |value: u32| ir::fold::constant(value.into(), width);
        let has_none =
            Expr::Binary(ir::BinaryOp::Eq, Box::new(Expr::Slot(slot)), Box::new(ir::fold::constant(0, REPLICA_PORTS)));
        let value = ir::fold::choose(has_none, number(none), number(other));
        cx.assign(&store, Val::Bits(value), &ty);
    }
    let site = drop_site(cx);
    let here = cx.here();
    cx.set(LValue::Slot(site), ir::fold::constant(u128::from(here.as_u32()), 32));
}

/// `digest(receiver, data)`: one message type for each type of data.
pub(crate) fn digest(cx: &mut Lowering<'_>, call: &mut ExternCall<'_>) {
    let [_, data] = &call.args[..] else { return };
    let own_name = match &data.ty {
        Type::Struct(id) => Some(cx.program.structs[*id].name.to_string()),
        _ => None,
    };
    let root = if matches!(data.val, Val::Bits(_)) { "value" } else { "" };
    let leaves = cx.leaves(root, data.val.clone(), &data.ty);
    let mut fields = Vec::new();
    let mut values = Vec::new();
    for (name, leaf, ty) in leaves {
        let Some(width) = cx.scalar_width(&ty) else {
            cx.unsupported(call.span, "a digest can contain only numbers, `bool`s, errors and enums");
            return;
        };
        fields.push((name, width));
        values.push(cx.bits(leaf, &ty));
    }
    let found = cx.ir.digests.iter().find(|(_, digest)| match &own_name {
        Some(name) => digest.name == *name && digest.fields == fields,
        None => digest.name.starts_with("digest_") && digest.fields == fields,
    });
    let id = match found.map(|(id, _)| id) {
        Some(id) => id,
        None => {
            let name = own_name.unwrap_or_else(|| format!("digest_{}", cx.ir.digests.len()));
            cx.ir.digests.push(ir::Digest { name, fields })
        }
    };
    cx.emit(Op::Request(Request::Digest(id, values)));
}

pub(crate) fn log_msg(cx: &mut Lowering<'_>, call: &mut ExternCall<'_>) {
    let Some(Val::Text(message)) = call.args.first().map(|arg| &arg.val) else {
        cx.unsupported(call.span, "the message must be known at compile time");
        return;
    };
    let mut values = Vec::new();
    if let Some(data) = call.args.get(1) {
        for (_, leaf, ty) in cx.leaves("", data.val.clone(), &data.ty) {
            match leaf {
                Val::Varbit(header, field) => values.push(Expr::VarbitWidth(header, field)),
                leaf => values.push(cx.bits(leaf, &ty)),
            }
        }
    }
    cx.emit(Op::Log(message.to_string(), values));
}

pub(crate) fn assert(cx: &mut Lowering<'_>, call: &mut ExternCall<'_>) {
    let [check] = &call.args[..] else { return };
    let check = scalar(cx, check);
    if ir::fold::as_const(&check).is_none_or(bits::Bits::is_zero) {
        cx.emit(Op::Assert(check));
    }
}
