//! Converts values of any P4 type (`P4Data`, specification 8.5) to and from their bits in the program.

use bits::Bits;
use p4runtime_proto::bytestring;
use p4runtime_proto::config::p4_bitstring_like_type_spec::TypeSpec as BitstringSpec;
use p4runtime_proto::config::p4_data_type_spec::TypeSpec;
use p4runtime_proto::config::p4_new_type_spec::Representation;
use p4runtime_proto::config::{P4BitstringLikeTypeSpec, P4DataTypeSpec, P4TypeInfo};
use p4runtime_proto::v1::p4_data::Data;
use p4runtime_proto::v1::{P4Data, P4StructLike};

use crate::status::Refusal;

/// Maximum nesting depth of types. Deeper types are not described; programs have none.
const MAX_DEPTH: u32 = 32;

/// A type whose values are sent as `P4Data`. Its bits are those of its parts, the first part on top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataType {
    /// `bit<W>`.
    Bit(u32),
    /// `int<W>`.
    Int(u32),
    /// `bool`, one bit.
    Bool,
    /// A serializable enum, as a number.
    SerializableEnum(u32),
    /// An enum without numbers: the index of the member in 32 bits.
    Enum(Vec<String>),
    /// An error: the index among the program's errors in 32 bits.
    Error(Vec<String>),
    /// A struct: names and types.
    Struct(Vec<(String, DataType)>),
    /// A tuple.
    Tuple(Vec<DataType>),
}

impl DataType {
    /// Returns the type that P4Info describes; `None` for headers, stacks, unions and `varbit`, which neither
    /// registers nor digests can hold here.
    pub(super) fn of(spec: &P4DataTypeSpec, types: Option<&P4TypeInfo>) -> Option<DataType> {
        data_type(spec, types, MAX_DEPTH)
    }

    /// Returns the number of bits of a value.
    pub fn width(&self) -> u64 {
        match self {
            DataType::Bit(width) | DataType::Int(width) | DataType::SerializableEnum(width) => u64::from(*width),
            DataType::Bool => 1,
            DataType::Enum(_) | DataType::Error(_) => 32,
            DataType::Struct(members) => members.iter().map(|(_, ty)| ty.width()).sum(),
            DataType::Tuple(members) => members.iter().map(DataType::width).sum(),
        }
    }

    /// Parses a value into `self.width()` bits.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the value is of another type, `OUT_OF_RANGE` if a number does not fit.
    pub fn parse(&self, data: &P4Data) -> Result<Bits, Refusal> {
        let wrong = || Refusal::invalid(format!("the value must be {}", self.described()));
        match (self, data.data.as_ref().ok_or_else(wrong)?) {
            (DataType::Bit(width), Data::Bitstring(bytes)) => Ok(bytestring::parse(bytes, *width)?),
            (DataType::Int(width), Data::Bitstring(bytes)) => Ok(bytestring::parse_signed(bytes, *width)?),
            (DataType::SerializableEnum(width), Data::EnumValue(bytes)) => Ok(bytestring::parse(bytes, *width)?),
            (DataType::Bool, Data::Bool(value)) => Ok(Bits::bool(*value)),
            (DataType::Enum(names), Data::Enum(name)) | (DataType::Error(names), Data::Error(name)) => {
                let at = names.iter().position(|other| other == name).ok_or_else(wrong)?;
                Ok(Bits::new(at as u128, 32))
            }
            (DataType::Struct(members), Data::Struct(values)) if members.len() == values.members.len() => {
                let each = members.iter().zip(&values.members);
                concat(each.map(|((name, ty), value)| ty.parse(value).map_err(|refusal| refusal.about(name))))
            }
            (DataType::Tuple(members), Data::Tuple(values)) if members.len() == values.members.len() => {
                concat(members.iter().zip(&values.members).map(|(ty, value)| ty.parse(value)))
            }
            _ => Err(wrong()),
        }
    }

    /// Converts bits to a value.
    pub fn print(&self, bits: &Bits) -> P4Data {
        let mut rest = bits.clone();
        self.take(&mut |width| {
            let keep = rest.width().saturating_sub(width);
            let value = rest.shr(keep).resize(width);
            rest = rest.resize(keep);
            value
        })
    }

    /// Converts leaves, in order, to a value. Missing leaves are 0.
    pub fn print_leaves(&self, leaves: &[Bits]) -> P4Data {
        let mut leaves = leaves.iter();
        self.take(&mut |width| leaves.next().map_or_else(|| Bits::zero(width), |leaf| leaf.resize(width)))
    }

    fn take(&self, next: &mut dyn FnMut(u32) -> Bits) -> P4Data {
        let mut name = |names: &[String]| names.get(next(32).low_u64() as usize).cloned().unwrap_or_default();
        let data = match self {
            DataType::Enum(names) => Data::Enum(name(names)),
            DataType::Error(names) => Data::Error(name(names)),
            DataType::Bit(width) => Data::Bitstring(bytestring::print(&next(*width))),
            DataType::Int(width) => Data::Bitstring(bytestring::print_signed(&next(*width))),
            DataType::SerializableEnum(width) => Data::EnumValue(bytestring::print(&next(*width))),
            DataType::Bool => Data::Bool(next(1).is_true()),
            DataType::Struct(members) => {
                Data::Struct(P4StructLike { members: members.iter().map(|(_, ty)| ty.take(next)).collect() })
            }
            DataType::Tuple(members) => {
                Data::Tuple(P4StructLike { members: members.iter().map(|ty| ty.take(next)).collect() })
            }
        };
        P4Data { data: Some(data) }
    }

    fn described(&self) -> String {
        match self {
            DataType::Bit(width) => format!("a bitstring of {width} bits"),
            DataType::Int(width) => format!("a bitstring of {width} bits, signed"),
            DataType::SerializableEnum(width) => format!("an enum_value of {width} bits"),
            DataType::Bool => "a bool".to_owned(),
            DataType::Enum(names) => format!("an enum: {}", names.join(", ")),
            DataType::Error(names) => format!("an error: {}", names.join(", ")),
            DataType::Struct(members) => {
                let members: Vec<_> = members.iter().map(|(name, ty)| format!("{name}: {}", ty.described())).collect();
                format!("a struct of {} members ({})", members.len(), members.join(", "))
            }
            DataType::Tuple(members) => format!("a tuple of {} members", members.len()),
        }
    }
}

fn concat(parts: impl Iterator<Item = Result<Bits, Refusal>>) -> Result<Bits, Refusal> {
    parts.into_iter().try_fold(Bits::zero(0), |all, part| Ok(all.concat(&part?)))
}

fn bitstring(spec: &P4BitstringLikeTypeSpec) -> Option<DataType> {
    match spec.type_spec.as_ref()? {
        BitstringSpec::Bit(bit) => Some(DataType::Bit(bit.bitwidth as u32)),
        BitstringSpec::Int(int) => Some(DataType::Int(int.bitwidth as u32)),
        BitstringSpec::Varbit(_) => None,
    }
}

fn data_type(spec: &P4DataTypeSpec, types: Option<&P4TypeInfo>, depth: u32) -> Option<DataType> {
    let depth = depth.checked_sub(1)?;
    match spec.type_spec.as_ref()? {
        TypeSpec::Bitstring(spec) => bitstring(spec),
        TypeSpec::Bool(_) => Some(DataType::Bool),
        TypeSpec::Tuple(tuple) => {
            let members = tuple.members.iter().map(|member| data_type(member, types, depth));
            members.collect::<Option<_>>().map(DataType::Tuple)
        }
        TypeSpec::Struct(name) => {
            let member = |member: &p4runtime_proto::config::p4_struct_type_spec::Member| {
                Some((member.name.clone(), data_type(member.type_spec.as_ref()?, types, depth)?))
            };
            types?.structs.get(&name.name)?.members.iter().map(member).collect::<Option<_>>().map(DataType::Struct)
        }
        TypeSpec::SerializableEnum(name) => {
            let ty = types?.serializable_enums.get(&name.name)?;
            Some(DataType::SerializableEnum(ty.underlying_type.as_ref()?.bitwidth as u32))
        }
        TypeSpec::Enum(name) => {
            let members = &types?.enums.get(&name.name)?.members;
            Some(DataType::Enum(members.iter().map(|member| member.name.clone()).collect()))
        }
        TypeSpec::Error(_) => Some(DataType::Error(types?.error.as_ref()?.members.clone())),
        TypeSpec::NewType(name) => match types?.new_types.get(&name.name)?.representation.as_ref()? {
            Representation::OriginalType(spec) => data_type(spec, types, depth),
            Representation::TranslatedType(_) => None,
        },
        TypeSpec::Header(_) | TypeSpec::HeaderUnion(_) | TypeSpec::HeaderStack(_) | TypeSpec::HeaderUnionStack(_) => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_struct_is_its_members_in_order() {
        let members = vec![("port".to_owned(), DataType::Bit(9)), ("up".to_owned(), DataType::Bool)];
        let ty =
            DataType::Struct(vec![("a".to_owned(), DataType::Struct(members)), ("b".to_owned(), DataType::Int(6))]);
        assert_eq!(ty.width(), 16);
        let bits = Bits::new(0x80ff, 16);
        let data = ty.print(&bits);
        assert_eq!(ty.parse(&data).unwrap(), bits);
        let leaves = [Bits::new(257, 9), Bits::bool(true), Bits::ones(6)];
        assert_eq!(ty.print_leaves(&leaves), data);
        let refused = ty.parse(&P4Data { data: Some(Data::Bool(true)) }).unwrap_err();
        assert_eq!(refused.code, crate::Code::InvalidArgument);
    }
}
