//! L-values (section 6.7): a variable, a path into it, and perhaps a slice of bits.

use num_traits::ToPrimitive;
use p4::typed::{Expr, ExprKind, Type, VarId};

use crate::evaluator::{BlockEvaluator, Evaluated, unspecified, unsupported};
use crate::value::{Initial, Value, initial};

/// An l-value whose indices have been evaluated.
#[derive(Clone, Debug)]
pub struct PlacePath {
    root: VarId,
    /// Fields and elements, from the variable on.
    path: Vec<usize>,
    /// Bits `high` to `low` of the number there.
    slice: Option<(u32, u32)>,
    /// Whether an index is beyond the end of its stack: then writes have no effect.
    is_nowhere: bool,
    /// Type of the whole value, without the slice.
    ty: Type,
}

impl BlockEvaluator<'_> {
    /// Evaluates an l-value.
    pub(crate) fn place(&mut self, e: &Expr) -> Evaluated<PlacePath> {
        self.step()?;
        Ok(match &e.kind {
            ExprKind::Var(var) => {
                PlacePath { root: *var, path: Vec::new(), slice: None, is_nowhere: false, ty: e.ty.clone() }
            }
            ExprKind::Field(base, index) => self.place(base)?.then(*index, &e.ty),
            ExprKind::Element(base, index) => {
                let place = self.place(base)?;
                let index = self.integer(index)?.to_usize();
                let size = self.read(&place)?.parts().len();
                match index.filter(|index| *index < size) {
                    Some(index) => place.then(index, &e.ty),
                    None => PlacePath { is_nowhere: true, ..place.then(0, &e.ty) },
                }
            }
            ExprKind::Next(base) => {
                let place = self.place(base)?;
                let stack = self.read(&place)?;
                let index = self.next_index(&stack)?;
                place.then(index, &e.ty)
            }
            ExprKind::Last(base) => {
                let place = self.place(base)?;
                let stack = self.read(&place)?;
                let index = self.last_index(&stack)?;
                place.then(index, &e.ty)
            }
            ExprKind::Slice(base, high, low) => {
                let place = self.place(base)?;
                let offset = place.slice.map_or(0, |(_, low)| low);
                PlacePath { slice: Some((high + offset, low + offset)), ..place }
            }
            _ => return Err(unsupported("an l-value of this form")),
        })
    }

    /// Reads an l-value.
    pub(crate) fn read(&mut self, place: &PlacePath) -> Evaluated<Value> {
        if place.is_nowhere {
            let whole = initial(self.program, &place.ty, Initial::Zero);
            self.budget.copy(&whole)?;
            return self.sliced(whole, place);
        }
        let mut value = self.env.get(&place.root).ok_or_else(|| unsupported("a variable without storage"))?;
        for index in &place.path {
            value = value.parts().get(*index).ok_or_else(|| unsupported("a part of this"))?;
        }
        self.budget.copy(value)?;
        self.sliced(value.clone(), place)
    }

    fn sliced(&self, value: Value, place: &PlacePath) -> Evaluated<Value> {
        match place.slice {
            Some(_) if value == Value::Unspecified => Ok(value),
            Some((high, low)) => Ok(Value::Number(self.as_number(value, &place.ty)?.slice(high, low))),
            None => Ok(value),
        }
    }

    /// Writes a value to an l-value. Assigning a header to a member of a union is special (section 8.19): if it is
    /// valid, the other members become invalid.
    pub(crate) fn write(&mut self, place: &PlacePath, value: Value) -> Evaluated<()> {
        if place.is_nowhere {
            return Ok(());
        }
        let value = match place.slice {
            None => value,
            Some(_) if value == Value::Unspecified => return Err(unspecified("a slice is set to it")),
            Some((high, low)) => {
                let whole = PlacePath { slice: None, ..place.clone() };
                let old = match self.read(&whole)? {
                    Value::Unspecified => return Err(unspecified("a slice of it is written")),
                    old => self.as_number(old, &place.ty)?,
                };
                let part = self.as_number(value, &place.ty)?;
                Value::Number(old.with_slice(high, low, &part))
            }
        };
        let mut at = self.env.get_mut(&place.root).ok_or_else(|| unsupported("a variable without storage"))?;
        for (depth, index) in place.path.iter().enumerate() {
            let is_last = depth + 1 == place.path.len();
            if let (Value::Union(members), true) = (&mut *at, is_last) {
                set_member(members, *index, value);
                return Ok(());
            }
            at = at.parts_mut().get_mut(*index).ok_or_else(|| unsupported("a part of this"))?;
        }
        *at = value;
        Ok(())
    }

    /// Whether an l-value is a part of a number or of a header union.
    pub(crate) fn is_partial(&self, place: &PlacePath) -> bool {
        let mut at = self.env.get(&place.root);
        let mut parents = place.path.iter().map(|index| {
            let parent = at;
            at = parent.and_then(|value| value.parts().get(*index));
            parent
        });
        place.slice.is_some() || parents.any(|parent| matches!(parent, Some(Value::Union(_))))
    }

    /// Changes the value of an l-value in place.
    pub(crate) fn update(&mut self, place: &PlacePath, change: impl FnOnce(&mut Value)) -> Evaluated<()> {
        let mut value = self.read(place)?;
        change(&mut value);
        self.write(place, value)
    }
}

/// `u.hi = e` (section 8.19): a valid `e` makes the other members invalid. An invalid `e` makes it `u.hi.setInvalid()`,
/// after which no member is valid.
pub(crate) fn set_member(members: &mut [Value], index: usize, value: Value) {
    members.iter_mut().for_each(|member| member.set_valid(false));
    if let Some(member) = members.get_mut(index) {
        *member = value;
    }
}

impl PlacePath {
    fn then(mut self, index: usize, ty: &Type) -> PlacePath {
        self.path.push(index);
        self.ty = ty.clone();
        self
    }

    /// Whether one l-value contains the other.
    pub(crate) fn overlaps(&self, other: &PlacePath) -> bool {
        self.root == other.root && self.path.iter().zip(&other.path).all(|(a, b)| a == b)
    }

    /// Whether an index is beyond the end of its stack.
    pub(crate) fn is_out_of_range(&self) -> bool {
        self.is_nowhere
    }

    /// Returns the l-value that contains this one, and the index of this one in it, if it is a part of another.
    pub(crate) fn parent(&self) -> Option<(PlacePath, usize)> {
        let mut parent = self.clone();
        let index = parent.path.pop()?;
        Some((parent, index))
    }
}
