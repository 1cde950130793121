//! Flattens types of P4Info to the sequence of bit vectors that a value consists of.

use std::cell::Cell;

use p4runtime_proto::config::p4_bitstring_like_type_spec::TypeSpec as Bitstring;
use p4runtime_proto::config::p4_data_type_spec::TypeSpec;
use p4runtime_proto::config::p4_new_type_spec::Representation;
use p4runtime_proto::config::{P4BitstringLikeTypeSpec, P4DataTypeSpec, P4TypeInfo};

use super::agree::width;
use super::disagreement::{Disagreement, WidthOf};

/// Parts of a type that are looked at. Types may name each other, so a short description can mean a type without
/// end.
const MAX_PARTS: u32 = 1 << 16;

/// Parts of all types of a P4Info that are looked at, counting the members of enums, whose names every use repeats in
/// memory. A million digests may name one type.
const MAX_PARTS_IN_ALL: u32 = 1 << 20;

/// Parts of types that may still be looked at, over all types of a P4Info.
pub(crate) struct PartsLeft(Cell<u32>);

impl PartsLeft {
    pub(crate) fn new() -> PartsLeft {
        PartsLeft(Cell::new(MAX_PARTS_IN_ALL))
    }

    fn spend(&self, parts: usize) -> Result<(), TooManyParts> {
        let left = u32::try_from(parts).ok().and_then(|parts| self.0.get().checked_sub(parts));
        self.0.set(left.ok_or(TooManyParts)?);
        Ok(())
    }
}

/// A type with too many parts, or without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a type of its P4Info has too many parts")]
pub struct TooManyParts;

/// The widths of the bit vectors that a value of this type consists of, in order; `None` for types that no value of
/// P4Data has here (headers, `varbit`, translated types).
///
/// # Errors
/// If the type has too many parts, alone or with the types before it, or a part is too wide.
pub(crate) fn leaves(
    spec: &P4DataTypeSpec,
    types: Option<&P4TypeInfo>,
    in_all: &PartsLeft,
) -> Result<Option<Vec<u32>>, Disagreement> {
    let empty = P4TypeInfo::default();
    let mut walk = Walk { types: types.unwrap_or(&empty), parts_left: MAX_PARTS, in_all, leaves: Vec::new() };
    let is_data = walk.part(spec)?;
    Ok(is_data.then_some(walk.leaves))
}

struct Walk<'a> {
    types: &'a P4TypeInfo,
    parts_left: u32,
    in_all: &'a PartsLeft,
    leaves: Vec<u32>,
}

impl<'a> Walk<'a> {
    /// Whether the type is one of data.
    fn part(&mut self, spec: &'a P4DataTypeSpec) -> Result<bool, Disagreement> {
        let mut waiting = vec![spec];
        while let Some(spec) = waiting.pop() {
            let Some(spec) = &spec.type_spec else { return Ok(false) };
            match spec {
                TypeSpec::Bitstring(spec) => match bitstring(spec)? {
                    Some(width) => self.leaves.push(width),
                    None => return Ok(false),
                },
                TypeSpec::Bool(_) => self.leaves.push(1),
                TypeSpec::Enum(name) => {
                    self.in_all.spend(self.types.enums.get(&name.name).map_or(0, |found| found.members.len()))?;
                    self.leaves.push(32);
                }
                TypeSpec::Error(_) => {
                    self.in_all.spend(self.types.error.as_ref().map_or(0, |error| error.members.len()))?;
                    self.leaves.push(32);
                }
                TypeSpec::Tuple(tuple) => {
                    self.spend(tuple.members.len())?;
                    waiting.extend(tuple.members.iter().rev());
                }
                TypeSpec::Struct(name) => {
                    let Some(found) = self.types.structs.get(&name.name) else { return Ok(false) };
                    self.spend(found.members.len())?;
                    for member in found.members.iter().rev() {
                        let Some(spec) = &member.type_spec else { return Ok(false) };
                        waiting.push(spec);
                    }
                }
                TypeSpec::SerializableEnum(name) => {
                    let found = self.types.serializable_enums.get(&name.name);
                    let Some(of) = found.and_then(|found| found.underlying_type.as_ref()) else { return Ok(false) };
                    self.leaves.push(width(of.bitwidth, WidthOf::Enum)?);
                }
                TypeSpec::NewType(name) => {
                    let found = self.types.new_types.get(&name.name);
                    match found.and_then(|found| found.representation.as_ref()) {
                        Some(Representation::OriginalType(spec)) => {
                            self.spend(1)?;
                            waiting.push(spec);
                        }
                        _ => return Ok(false),
                    }
                }
                TypeSpec::Header(_)
                | TypeSpec::HeaderUnion(_)
                | TypeSpec::HeaderStack(_)
                | TypeSpec::HeaderUnionStack(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// A structure costs one part even if it is empty.
    fn spend(&mut self, parts: usize) -> Result<(), TooManyParts> {
        let left = u32::try_from(parts.max(1)).ok().and_then(|parts| self.parts_left.checked_sub(parts));
        self.parts_left = left.ok_or(TooManyParts)?;
        self.in_all.spend(parts.max(1))
    }
}

fn bitstring(spec: &P4BitstringLikeTypeSpec) -> Result<Option<u32>, Disagreement> {
    match &spec.type_spec {
        Some(Bitstring::Bit(bit)) => width(bit.bitwidth, WidthOf::Type).map(Some),
        Some(Bitstring::Int(int)) => width(int.bitwidth, WidthOf::Type).map(Some),
        Some(Bitstring::Varbit(_)) | None => Ok(None),
    }
}
