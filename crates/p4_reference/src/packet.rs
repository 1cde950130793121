//! Implements `packet_in` and `packet_out` (sections 13.8 and 16.1).

use num_traits::ToPrimitive;
use p4::ast::StructKind;
use p4::typed::{Call, Type};

use crate::call::Passed;
use crate::evaluator::{BlockEvaluator, Evaluated, unspecified, unsupported};
use crate::number::Number;
use crate::value::{Value, assemble, field_types, number_width, resolve, struct_kind};

/// The bits of a packet: those that arrive, and those that leave.
#[derive(Clone, Debug, Default)]
pub struct PacketBits {
    /// The packet as it arrived, most significant bit of each byte first.
    input: Vec<bool>,
    /// Number of bits that the parser has consumed.
    cursor: usize,
    /// Bits that the deparser has emitted.
    output: Vec<bool>,
}

impl PacketBits {
    /// Creates a packet of these bytes.
    pub fn new(data: &[u8]) -> PacketBits {
        PacketBits { input: to_bits(data), cursor: 0, output: Vec::new() }
    }

    /// Returns the number of bytes that arrived.
    pub fn input_bytes(&self) -> usize {
        self.input.len() / 8
    }

    /// Returns the bytes after those that the parser consumed, even in part.
    pub fn payload(&self) -> Vec<u8> {
        to_bytes(&self.input[(self.cursor.div_ceil(8) * 8).min(self.input.len())..])
    }

    /// Returns the packet that leaves: what was emitted, in whole bytes, and the payload.
    pub fn leaving(&self) -> Vec<u8> {
        let mut bytes = to_bytes(&self.output);
        bytes.extend(self.payload());
        bytes
    }

    /// Forgets everything emitted.
    pub fn restart_output(&mut self) {
        self.output.clear();
    }

    fn left(&self) -> usize {
        self.input.len() - self.cursor
    }

    fn take(&mut self, count: usize) -> Number {
        let number = Number::from_bit_list(&self.input[self.cursor..self.cursor + count]);
        self.cursor += count;
        number
    }
}

/// Returns the bits of bytes.
pub(crate) fn to_bits(data: &[u8]) -> Vec<bool> {
    data.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)).collect()
}

/// Returns bits as bytes; the last byte is filled with zeros.
pub(crate) fn to_bytes(bits: &[bool]) -> Vec<u8> {
    let byte = |chunk: &[bool]| (0..8).fold(0u8, |byte, at| byte << 1 | u8::from(chunk.get(at) == Some(&true)));
    bits.chunks(8).map(byte).collect()
}

impl BlockEvaluator<'_> {
    /// A method of `packet_in`.
    pub(crate) fn packet_in(
        &mut self,
        method: &str,
        call: &Call,
        type_args: &[Type],
        passed: Vec<Passed>,
        ret: &Type,
    ) -> Evaluated<Value> {
        match method {
            "extract" => self.extract(call, passed).map(|()| Value::Void),
            "lookahead" => {
                let ty = type_args.first().unwrap_or(ret);
                let cursor = self.packet.cursor;
                let bits = self.fixed_bits(ty)?;
                if bits > self.packet.left() {
                    return Err(self.reject("PacketTooShort"));
                }
                self.budget.bits(bits)?;
                let value = self.take_value(ty, 0);
                self.packet.cursor = cursor;
                value
            }
            "advance" => {
                let bits = self.scalar(&passed, 0)?.to_usize().unwrap_or(usize::MAX);
                if bits > self.packet.left() {
                    return Err(self.reject("PacketTooShort"));
                }
                self.packet.cursor += bits;
                Ok(Value::Void)
            }
            "length" => Ok(Value::Number(Number::new(self.packet.input_bytes() as u64, 32))),
            other => Err(unsupported(&format!("packet_in.{other}"))),
        }
    }

    /// `extract` (sections 13.8.1 and 13.8.2). The order of the checks is that of BMv2, which the project keeps: the
    /// stack's end, the size's divisibility, the packet's end, the field's maximum.
    fn extract(&mut self, call: &Call, passed: Vec<Passed>) -> Evaluated<()> {
        let Some(p4::typed::Arg::Expr(target)) = call.args.first() else {
            let Some(p4::typed::Arg::DontCare(ty)) = call.args.first() else {
                return Err(unsupported("extract without an argument"));
            };
            return self.extracted(&ty.clone(), None).map(drop);
        };
        let size = match call.args.len() {
            2 => Some(self.scalar(&passed, 1)?.to_usize().unwrap_or(usize::MAX)),
            _ => None,
        };
        let place = passed.into_iter().next().and_then(|passed| passed.place);
        let place = place.ok_or_else(|| unsupported("extract into this"))?;
        if place.is_out_of_range() {
            return Err(self.reject("StackOutOfBounds"));
        }
        let value = self.extracted(&target.ty, size)?;
        self.write(&place, value)?;
        // Section 13.9: extracting into `next`, or into a member of it, advances `nextIndex`.
        let mut e = target;
        let mut at = place;
        loop {
            match &e.kind {
                p4::typed::ExprKind::Next(_) => {
                    if let Some((stack, _)) = at.parent() {
                        self.update(&stack, |stack| {
                            if let Value::Stack { next, .. } = stack {
                                *next += 1;
                            }
                        })?;
                    }
                    return Ok(());
                }
                p4::typed::ExprKind::Field(base, _) => match at.parent() {
                    Some((parent, _)) => (e, at) = (base, parent),
                    None => return Ok(()),
                },
                _ => return Ok(()),
            }
        }
    }

    /// Reads a header from the packet.
    fn extracted(&mut self, ty: &Type, size: Option<usize>) -> Evaluated<Value> {
        let types = field_types(self.program, ty);
        let maximum = types.iter().find_map(|ty| match resolve(self.program, ty) {
            Type::Varbit(maximum) => Some(*maximum as usize),
            _ => None,
        });
        let mut fixed = 0;
        for ty in &types {
            if !matches!(resolve(self.program, ty), Type::Varbit(_)) {
                fixed += self.fixed_bits(ty)?;
            }
        }
        let variable = if maximum.is_some() { size.unwrap_or(0) } else { 0 };
        let total = fixed.saturating_add(variable);
        if maximum.is_some() && size.is_some() && !total.is_multiple_of(8) {
            return Err(self.reject("ParserInvalidArgument"));
        }
        if total > self.packet.left() {
            return Err(self.reject("PacketTooShort"));
        }
        if variable > maximum.unwrap_or(0) {
            return Err(self.reject("HeaderTooShort"));
        }
        self.budget.bits(total)?;
        let value = self.take_value(ty, variable)?;
        self.budget.copy(&value)?;
        Ok(value)
    }

    /// Returns the number of bits of a type without `varbit`.
    fn fixed_bits(&self, ty: &Type) -> Evaluated<usize> {
        if let Some(width) = number_width(self.program, ty) {
            return Ok(width as usize);
        }
        match resolve(self.program, ty) {
            Type::Bool => Ok(1),
            Type::Struct(_) | Type::Tuple(_) => {
                field_types(self.program, ty).iter().map(|ty| self.fixed_bits(ty)).sum()
            }
            Type::Stack(element, size) => Ok(self.fixed_bits(element)? * *size as usize),
            _ => Err(unsupported("the size of this type")),
        }
    }

    /// Takes a value from the packet, which is long enough.
    fn take_value(&mut self, ty: &Type, varbit: usize) -> Evaluated<Value> {
        if let Some(width) = number_width(self.program, ty) {
            return Ok(Value::Number(self.packet.take(width as usize)));
        }
        match resolve(self.program, ty).clone() {
            Type::Bool => Ok(Value::Bool(self.packet.take(1).bits.bit(0))),
            Type::Varbit(_) => Ok(Value::Varbit(self.packet.take(varbit))),
            Type::Struct(_) | Type::Tuple(_) => {
                if matches!(struct_kind(self.program, ty), Some((_, StructKind::Union))) {
                    return Err(unsupported("a union that is read from the packet"));
                }
                let types = field_types(self.program, ty);
                let fields = types.iter().map(|ty| self.take_value(ty, varbit)).collect::<Evaluated<Vec<Value>>>()?;
                Ok(assemble(self.program, ty, fields))
            }
            Type::Stack(element, size) => {
                let elements =
                    (0..size).map(|_| self.take_value(&element, varbit)).collect::<Evaluated<Vec<Value>>>()?;
                Ok(Value::Stack { elements, next: 0 })
            }
            _ => Err(unsupported("a value of this type in the packet")),
        }
    }

    /// `emit` (section 16.1): valid headers, and the valid headers inside structs, stacks and unions.
    pub(crate) fn emit(&mut self, value: &Value) -> Evaluated<()> {
        match value {
            Value::Header { valid: true, fields } => {
                let mut bits = Vec::new();
                for field in fields {
                    push_bits(field, &mut bits)?;
                }
                self.budget.bits(bits.len())?;
                self.budget.keep(bits.len() as u64 / 8)?;
                self.packet.output.extend(bits);
                Ok(())
            }
            Value::Header { valid: false, .. } => Ok(()),
            other => other.parts().iter().try_for_each(|part| self.emit(part)),
        }
    }
}

/// Appends the bits of a scalar, struct or header.
pub(crate) fn push_bits(value: &Value, bits: &mut Vec<bool>) -> Evaluated<()> {
    let mut problem = None;
    value.scalars(&mut |scalar| match scalar {
        Value::Number(number) | Value::Varbit(number) => bits.extend(number.to_bit_list()),
        Value::Bool(value) => bits.push(*value),
        Value::Error(index) => bits.extend(Number::new(*index as u64, 32).to_bit_list()),
        Value::Unspecified => problem = Some(unspecified("the bits of a value")),
        Value::Void => {}
        other => problem = Some(unsupported(&format!("the bits of {other:?}"))),
    });
    problem.map_or(Ok(()), Err)
}

/// Returns the number of bits of the valid headers in a value.
pub(crate) fn valid_header_bits(value: &Value) -> usize {
    match value {
        Value::Header { valid: true, fields } => {
            let mut bits = 0;
            fields.iter().for_each(|field| {
                field.scalars(&mut |scalar| match scalar {
                    Value::Number(number) | Value::Varbit(number) => bits += number.width as usize,
                    Value::Bool(_) => bits += 1,
                    _ => {}
                });
            });
            bits
        }
        Value::Header { valid: false, .. } => 0,
        other => other.parts().iter().map(valid_header_bits).sum(),
    }
}
