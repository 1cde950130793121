//! Evaluates the externs of `core.p4` and v1model. The statement of each is that of `v1model.p4` and docs/v1model.md.

use p4::typed::{Arg, Call, Program, Type};

use crate::call::Passed;
use crate::checksum::{CRC16, CRC32, crc, internet_checksum, reduce_to_range, xor16};
use crate::evaluator::{BlockEvaluator, Evaluated, Stop, unspecified, unsupported};
use crate::instance::Object;
use crate::number::Number;
use crate::packet::{push_bits, to_bits};
use crate::v1model::SwitchRequest;
use crate::value::{Initial, Value, initial, number_width};

/// Returns the `egress_spec` that drops: all ones, in the width that the program's `v1model.p4` gives it.
pub(crate) fn drop_spec(program: &Program) -> u64 {
    let standard = program.structs.values().find(|decl| &*decl.name == "standard_metadata_t");
    let field = standard.and_then(|decl| decl.fields.iter().find(|field| &*field.name == "egress_spec"));
    let width = field.and_then(|field| number_width(program, &field.ty)).unwrap_or(9);
    u64::MAX >> (64 - width.clamp(1, 64))
}

impl BlockEvaluator<'_> {
    /// Returns an argument as a number.
    pub(crate) fn scalar(&self, passed: &[Passed], index: usize) -> Evaluated<num_bigint::BigInt> {
        match passed.get(index).and_then(|passed| passed.value.clone()) {
            Some(Value::Integer(value)) => Ok(value),
            Some(value) => Ok(self.as_number(value, &Type::Bit(32))?.unsigned()),
            None => Err(unsupported("an argument without a value")),
        }
    }

    fn flag(&self, passed: &[Passed], index: usize) -> Evaluated<bool> {
        match passed.get(index).and_then(|passed| passed.value.clone()) {
            Some(Value::Bool(value)) => Ok(value),
            Some(Value::Unspecified) => Err(unspecified("a condition")),
            _ => Err(unsupported("a condition of this form")),
        }
    }

    fn set(&mut self, passed: &[Passed], index: usize, value: Value) -> Evaluated<()> {
        match passed.get(index).and_then(|passed| passed.place.clone()) {
            Some(place) => self.write(&place, value),
            None => Ok(()),
        }
    }

    pub(crate) fn extern_function(
        &mut self,
        name: &str,
        call: &Call,
        _type_args: &[Type],
        passed: Vec<Passed>,
    ) -> Evaluated<Value> {
        let ty = |index: usize| match call.args.get(index) {
            Some(Arg::Expr(e)) => e.ty.clone(),
            Some(Arg::DontCare(ty)) => ty.clone(),
            _ => Type::Void,
        };
        match name {
            "verify" => {
                let holds = self.flag(&passed, 0)?;
                return self.verify(holds, passed[1].value.clone().unwrap_or(Value::Void));
            }
            "mark_to_drop" => match passed.first() {
                Some(Passed { place: Some(place), value: Some(value) }) => {
                    let mut metadata = value.clone();
                    self.set_field(&mut metadata, "egress_spec", drop_spec(self.program));
                    self.set_field(&mut metadata, "mcast_grp", 0);
                    self.write(&place.clone(), metadata)?;
                }
                _ => return Err(unsupported("mark_to_drop without an argument")),
            },
            "assert" | "assume" => {
                if !self.flag(&passed, 0)? {
                    return Err(Stop::AssertFailed);
                }
            }
            "log_msg" => {}
            "hash" => {
                let hash = self.checksum(&passed[1], &passed[3], false)?;
                let operand =
                    |index: usize| self.as_number(passed[index].value.clone().unwrap_or(Value::Void), &ty(index));
                let (base, max) = (operand(2)?, operand(4)?);
                let width = number_width(self.program, &ty(0)).unwrap_or(32);
                // `identity` gives at most 64 bits to a hash.
                let hash = Number::wrap(&hash.unsigned(), hash.width.min(64));
                self.set(&passed, 0, Value::Number(reduce_to_range(&hash, &base, &max, width)))?;
            }
            "verify_checksum" | "verify_checksum_with_payload" => {
                if self.flag(&passed, 0)? {
                    let sum = self.checksum(&passed[3], &passed[1], name.ends_with("_with_payload"))?;
                    let expected = self.as_number(passed[2].value.clone().unwrap_or(Value::Void), &ty(2))?;
                    if Number::wrap(&sum.unsigned(), expected.width) != expected {
                        self.effects.checksum_error = true;
                    }
                }
            }
            "update_checksum" | "update_checksum_with_payload" => {
                if self.flag(&passed, 0)? {
                    let sum = self.checksum(&passed[3], &passed[1], name.ends_with("_with_payload"))?;
                    let width = number_width(self.program, &ty(2)).unwrap_or(16);
                    self.set(&passed, 2, Value::Number(Number::wrap(&sum.unsigned(), width)))?;
                }
            }
            "truncate" => {
                let bytes = self.scalar(&passed, 0)?;
                self.effects.requests.push(SwitchRequest::Truncate(u32::try_from(bytes).unwrap_or(u32::MAX)));
            }
            "digest" => {
                let mut values = Vec::new();
                let data = passed[1].value.clone().unwrap_or(Value::Void);
                self.budget.keep(data.bytes())?;
                let mut scalars = Vec::new();
                data.scalars(&mut |scalar| scalars.push(scalar.clone()));
                for scalar in scalars {
                    values.push(self.as_number(scalar, &Type::Bit(32))?);
                }
                self.effects.requests.push(SwitchRequest::Digest(values));
            }
            "clone" | "clone_preserving_field_list" => {
                let session = u32::try_from(self.scalar(&passed, 1)?).unwrap_or(u32::MAX);
                let keep = if passed.len() > 2 { Some(self.list(&passed, 2)?) } else { None };
                self.effects.requests.push(SwitchRequest::Clone { session, keep });
            }
            "resubmit_preserving_field_list" => {
                let keep = self.list(&passed, 0)?;
                self.effects.requests.push(SwitchRequest::Resubmit(keep));
            }
            "recirculate_preserving_field_list" => {
                let keep = self.list(&passed, 0)?;
                self.effects.requests.push(SwitchRequest::Recirculate(keep));
            }
            other => return Err(unsupported(&format!("the extern function `{other}`"))),
        }
        Ok(Value::Void)
    }

    fn list(&self, passed: &[Passed], index: usize) -> Evaluated<u32> {
        Ok(u32::try_from(self.scalar(passed, index)?).unwrap_or(u32::MAX))
    }

    /// Sets a field of the standard metadata.
    pub(crate) fn set_field(&self, metadata: &mut Value, field: &str, value: u64) {
        let found = self.program.structs.values().find(|decl| &*decl.name == "standard_metadata_t");
        let index = found.and_then(|decl| decl.fields.iter().position(|known| &*known.name == field));
        if let Some(Value::Number(number)) = index.and_then(|index| metadata.parts_mut().get_mut(index)) {
            *number = Number::new(value, number.width);
        }
    }

    /// Computes an algorithm over the bits of a value. The members of `HashAlgorithm` are numbered in order.
    fn checksum(&mut self, algorithm: &Passed, data: &Passed, with_payload: bool) -> Evaluated<Number> {
        let algorithm = match &algorithm.value {
            Some(Value::Number(number)) => number.to_u64(),
            _ => None,
        };
        let mut bits = Vec::new();
        push_bits(data.value.as_ref().unwrap_or(&Value::Void), &mut bits)?;
        if with_payload {
            bits.extend(to_bits(&self.packet.payload()));
        }
        self.budget.bits(bits.len())?;
        let custom = &self.control_plane.custom_crcs;
        Ok(match algorithm {
            Some(0) => crc(CRC32, &bits),
            Some(1) => crc(custom[1].unwrap_or(CRC32), &bits),
            Some(2) => crc(CRC16, &bits),
            Some(3) => crc(custom[0].unwrap_or(CRC16), &bits),
            Some(5) => Number::from_bit_list(&bits),
            Some(6) => internet_checksum(&bits),
            Some(7) => xor16(&bits),
            _ => return Err(unsupported("a random hash")),
        })
    }

    pub(crate) fn extern_method(
        &mut self,
        object: Object,
        method: &str,
        call: &Call,
        type_args: &[Type],
        passed: Vec<Passed>,
        ret: &Type,
    ) -> Evaluated<Value> {
        let index = match object {
            Object::PacketIn => return self.packet_in(method, call, type_args, passed, ret),
            Object::PacketOut => {
                let value = passed.into_iter().next().and_then(|passed| passed.value);
                self.emit(&value.unwrap_or(Value::Void))?;
                return Ok(Value::Void);
            }
            Object::Instance(index) => index,
        };
        let instance = &self.instances.list[index];
        let Type::Extern(decl) = instance.ty else { return Err(unsupported("a method of this")) };
        let decl = &self.program.externs[decl];
        let path = instance.path.clone();
        match (&*decl.name, method) {
            ("register", "read") => {
                let at = self.in_array(index, &passed, 1)?;
                let element = decl.type_args.first().cloned().unwrap_or(Type::Void);
                let elements = self.control_plane.registers.get(&path);
                let known = at.and_then(|at| elements.and_then(|elements| elements.get(&at)).cloned());
                let value = known.unwrap_or_else(|| initial(self.program, &element, Initial::Zero));
                self.budget.copy(&value)?;
                self.set(&passed, 0, value)?;
            }
            ("register", "write") => {
                let value = passed[1].value.clone().unwrap_or(Value::Void);
                let mut is_known = true;
                value.scalars(&mut |scalar| is_known &= *scalar != Value::Unspecified);
                if !is_known {
                    return Err(unspecified("the value that a register stores"));
                }
                if let Some(at) = self.in_array(index, &passed, 0)? {
                    self.budget.keep(value.bytes())?;
                    self.control_plane.registers.entry(path).or_default().insert(at, value);
                }
            }
            ("counter", "count") => {
                if let Some(at) = self.in_array(index, &passed, 0)? {
                    let bytes = self.effects.packet_length;
                    let count = self.control_plane.counters.entry(path).or_default().entry(at).or_default();
                    *count = (count.0 + 1, count.1 + bytes);
                }
            }
            ("direct_counter", "count") => {}
            ("Checksum16", "get") => {
                let mut bits = Vec::new();
                push_bits(passed[0].value.as_ref().unwrap_or(&Value::Void), &mut bits)?;
                self.budget.bits(bits.len())?;
                return Ok(Value::Number(internet_checksum(&bits)));
            }
            (object, method) => return Err(unsupported(&format!("`{object}.{method}`"))),
        }
        Ok(Value::Void)
    }

    /// Returns the index of an element of a register or counter, if there is such an element. The size is the first
    /// argument of the constructor.
    fn in_array(&self, instance: usize, passed: &[Passed], index: usize) -> Evaluated<Option<u64>> {
        let size = match self.instances.list[instance].args.first() {
            Some(Value::Number(size)) => size.to_u64().unwrap_or(0),
            _ => 0,
        };
        Ok(u64::try_from(self.scalar(passed, index)?).ok().filter(|at| *at < size))
    }
}
