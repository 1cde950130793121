//! Defines values of P4's types (chapter 7) and the values that variables begin with (sections 6.8, 7.2 and 11.2).

use std::sync::Arc;

use num_bigint::BigInt;
use p4::ast::StructKind;
use p4::typed::{self, Program, StructId, Type};

use crate::instance::Object;
use crate::number::Number;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `bool`
    Bool(bool),
    /// `bit<w>`, `int<w>`, and members of enums by their representation (32 bits for an enum without one).
    Number(Number),
    /// `int`
    Integer(BigInt),
    /// `string`
    Text(Arc<str>),
    /// `error`, by its index in the program's list.
    Error(usize),
    /// `varbit<n>` with its current width.
    Varbit(Number),
    /// A header: its validity and fields. An invalid header keeps its fields (see the crate's page).
    Header {
        /// Validity bit.
        valid: bool,
        /// Fields in order.
        fields: Vec<Value>,
    },
    /// A header union: all member headers.
    Union(Vec<Value>),
    /// A header stack.
    Stack {
        /// Elements in order.
        elements: Vec<Value>,
        /// `nextIndex`
        next: u32,
    },
    /// A struct, tuple or list.
    Struct(Vec<Value>),
    /// A parser, control or extern object.
    Object(Object),
    /// No value: the result of a `void` call, or an absent optional argument.
    Void,
    /// A scalar value that neither the specification nor the project defines.
    Unspecified,
}

/// The initial values of the parts of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initial {
    /// Storage of the packet: every scalar is 0, every header invalid with fields of 0.
    Zero,
    /// An `out` parameter (section 6.8): headers are invalid; scalars are 0 here.
    Out,
    /// A variable without initializer (section 11.2): headers are invalid (section 7.2.2), scalars have no value.
    Variable,
}

/// Returns the underlying type of `type` declarations.
pub fn resolve<'p>(program: &'p Program, mut ty: &'p Type) -> &'p Type {
    while let Type::New(id) = ty {
        ty = &program.new_types[*id].underlying;
    }
    ty
}

/// Returns the width of a type whose values are [`Value::Number`].
pub fn number_width(program: &Program, ty: &Type) -> Option<u32> {
    match resolve(program, ty) {
        Type::Bit(width) | Type::Int(width) => Some(*width),
        Type::Enum(id) => Some(match &program.enums[*id].underlying {
            Some(underlying) => number_width(program, underlying).unwrap_or(32),
            None => 32,
        }),
        _ => None,
    }
}

/// Whether numbers of the type are signed.
pub fn is_signed(program: &Program, ty: &Type) -> bool {
    match resolve(program, ty) {
        Type::Int(_) => true,
        Type::Enum(id) => program.enums[*id].underlying.as_ref().is_some_and(|ty| is_signed(program, ty)),
        _ => false,
    }
}

/// Returns the declaration kind of a struct, header or header union.
pub fn struct_kind(program: &Program, ty: &Type) -> Option<(StructId, StructKind)> {
    match resolve(program, ty) {
        Type::Struct(id) => Some((*id, program.structs[*id].kind)),
        _ => None,
    }
}

/// Returns the types of the fields of a struct, header, union or tuple.
pub fn field_types(program: &Program, ty: &Type) -> Vec<Type> {
    match resolve(program, ty) {
        Type::Struct(id) => program.structs[*id].fields.iter().map(|field| field.ty.clone()).collect(),
        Type::Tuple(types) => types.clone(),
        _ => Vec::new(),
    }
}

/// Returns the value of a fresh variable.
pub fn initial(program: &Program, ty: &Type, how: Initial) -> Value {
    let scalar = |zero: Value| if how == Initial::Variable { Value::Unspecified } else { zero };
    if let Some(width) = number_width(program, ty) {
        return scalar(Value::Number(Number::new(0, width)));
    }
    match resolve(program, ty) {
        Type::Bool => scalar(Value::Bool(false)),
        Type::Error => scalar(Value::Error(0)),
        Type::Varbit(_) => scalar(Value::Varbit(Number::new(0, 0))),
        Type::Integer => Value::Integer(BigInt::default()),
        Type::Struct(id) => {
            let decl = &program.structs[*id];
            // The fields of an invalid header have no value (section 8.25), but for headers of the packet.
            let inner = match (decl.kind, how) {
                (StructKind::Header, Initial::Out) => Initial::Variable,
                _ => how,
            };
            let fields = decl.fields.iter().map(|field| initial(program, &field.ty, inner)).collect();
            match decl.kind {
                StructKind::Struct => Value::Struct(fields),
                StructKind::Header => Value::Header { valid: false, fields },
                StructKind::Union => Value::Union(fields),
            }
        }
        Type::Tuple(types) => Value::Struct(types.iter().map(|ty| initial(program, ty, how)).collect()),
        Type::Stack(element, size) => {
            Value::Stack { elements: vec![initial(program, element, how); *size as usize], next: 0 }
        }
        _ => Value::Void,
    }
}

/// Returns the value of a compile-time constant.
pub fn constant(program: &Program, value: &typed::Value, ty: &Type) -> Value {
    let ty = resolve(program, ty);
    match value {
        typed::Value::Bool(value) => Value::Bool(*value),
        typed::Value::Integer(value) => match number_width(program, ty) {
            Some(width) => Value::Number(Number::wrap(value, width)),
            None => Value::Integer(value.clone()),
        },
        typed::Value::Bits(value) => Value::Number(Number::from_bits(value)),
        typed::Value::String(text) => Value::Text(text.clone()),
        typed::Value::Error(index) => Value::Error(*index),
        typed::Value::MatchKind(_) => Value::Void,
        typed::Value::Invalid => invalid(program, ty),
        typed::Value::Fields(values) => {
            let types = match ty {
                Type::List(element) | Type::Stack(element, _) => vec![(**element).clone(); values.len()],
                _ => field_types(program, ty),
            };
            let fields = values.iter().zip(&types).map(|(value, ty)| constant(program, value, ty)).collect();
            assemble(program, ty, fields)
        }
    }
}

/// Returns the value of `{#}` (section 8.17): an invalid header, or a union of such.
pub fn invalid(program: &Program, ty: &Type) -> Value {
    initial(program, ty, Initial::Variable)
}

/// Returns the struct, valid header or stack with these fields (sections 8.13, 8.17 and 8.18.1).
pub fn assemble(program: &Program, ty: &Type, fields: Vec<Value>) -> Value {
    match (struct_kind(program, ty), resolve(program, ty)) {
        (Some((_, StructKind::Header)), _) => Value::Header { valid: true, fields },
        (Some((_, StructKind::Union)), _) => Value::Union(fields),
        (_, Type::Stack(..)) => Value::Stack { elements: fields, next: 0 },
        _ => Value::Struct(fields),
    }
}

impl Value {
    /// Whether the value, a header or header union, is valid.
    pub fn is_valid(&self) -> bool {
        match self {
            Value::Header { valid, .. } => *valid,
            Value::Union(members) => members.iter().any(Value::is_valid),
            _ => false,
        }
    }

    /// Sets the validity of a header, and of all headers of a union or stack to false.
    pub fn set_valid(&mut self, to: bool) {
        match self {
            Value::Header { valid, .. } => *valid = to,
            Value::Union(members) => members.iter_mut().for_each(|member| member.set_valid(false)),
            _ => {}
        }
    }

    /// Returns the parts of a struct, header or union.
    pub fn parts(&self) -> &[Value] {
        match self {
            Value::Struct(parts) | Value::Union(parts) | Value::Header { fields: parts, .. } => parts,
            Value::Stack { elements, .. } => elements,
            _ => &[],
        }
    }

    /// Returns the parts of a struct, header, union or stack for modification.
    pub fn parts_mut(&mut self) -> &mut [Value] {
        match self {
            Value::Struct(parts) | Value::Union(parts) | Value::Header { fields: parts, .. } => parts,
            Value::Stack { elements, .. } => elements,
            _ => &mut [],
        }
    }

    /// Returns the approximate size of the value in memory, in bytes.
    pub fn bytes(&self) -> u64 {
        let number = match self {
            Value::Number(number) | Value::Varbit(number) => u64::from(number.width) / 8,
            Value::Integer(value) => value.bits() / 8,
            _ => 0,
        };
        64 + number + self.parts().iter().map(Value::bytes).sum::<u64>()
    }

    /// Visits the scalars of the value in order.
    pub fn scalars<'v>(&'v self, visit: &mut impl FnMut(&'v Value)) {
        match self {
            Value::Struct(parts) | Value::Union(parts) | Value::Header { fields: parts, .. } => {
                parts.iter().for_each(|part| part.scalars(visit));
            }
            Value::Stack { elements, .. } => elements.iter().for_each(|part| part.scalars(visit)),
            scalar => visit(scalar),
        }
    }
}
