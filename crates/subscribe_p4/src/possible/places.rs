//! Where headers lie among all headers, and what an expression names of them.

use std::collections::BTreeMap;

use p4::ast::StructKind;
use p4::typed::{Expr, ExprKind, Program, StructDecl, Type, VarId};
use subscribe::Ranges;

use super::select::MOST_STRETCHES;
use super::{Given, Values};
use crate::format::{Format, HeaderId};
use crate::widths;

/// Members one in the other, from the struct of headers on. An element of a stack is [`ELEMENT`].
pub(super) type Path = Vec<usize>;
pub(super) const ELEMENT: usize = usize::MAX;

/// Values by the place of a field: header and member.
pub(super) type FieldValues = BTreeMap<(HeaderId, usize), Ranges>;

/// The headers of a format.
pub(super) struct Places<'a> {
    program: &'a Program,
    /// By [`HeaderId`].
    pub headers: Vec<Place<'a>>,
    /// Where the messages are.
    pub stack: Option<Path>,
}

/// A header.
pub(super) struct Place<'a> {
    /// Where it lies, of each message's element in one.
    pub path: Path,
    pub decl: &'a StructDecl,
    /// The others of its union, if it is in one.
    pub siblings: Vec<HeaderId>,
    pub in_message: bool,
}

impl<'a> Places<'a> {
    /// `None` if a header is not found, which would be a mistake of the reader's.
    pub fn new(program: &'a Program, format: &Format) -> Option<Places<'a>> {
        let all = program.structs.values().find(|decl| *decl.name == *format.parts.headers)?;
        let member = |decl: &'a StructDecl, name: &str| {
            let at = decl.fields.iter().position(|field| *field.name == *name)?;
            Some((at, &decl.fields[at].ty))
        };
        let declaration = |ty: &Type| match ty {
            Type::Struct(id) => Some(&program.structs[*id]),
            _ => None,
        };
        let mut places = Places { program, headers: Vec::new(), stack: None };
        for (at, header) in format.headers.iter().enumerate() {
            let (path, ty) = match (&format.messages, header.in_message) {
                (Some(messages), true) => {
                    let (stack, ty) = member(all, &messages.stack)?;
                    let Type::Stack(element, _) = ty else { return None };
                    places.stack = Some(vec![stack]);
                    match &messages.kinds.iter().find(|kind| kind.header.0 == at)?.member {
                        None => (vec![stack, ELEMENT], &**element),
                        Some(name) => {
                            let (within, ty) = member(declaration(element)?, name)?;
                            (vec![stack, ELEMENT, within], ty)
                        }
                    }
                }
                _ => match header.name.split_once('.') {
                    None => {
                        let (at, ty) = member(all, &header.name)?;
                        (vec![at], ty)
                    }
                    Some((union, name)) => {
                        let (at, ty) = member(all, union)?;
                        let (within, ty) = member(declaration(ty)?, name)?;
                        (vec![at, within], ty)
                    }
                },
            };
            let (decl, in_message) = (declaration(ty)?, header.in_message);
            places.headers.push(Place { path, decl, siblings: Vec::new(), in_message });
        }
        let paths: Vec<Path> = places.headers.iter().map(|place| place.path.clone()).collect();
        for (at, place) in places.headers.iter_mut().enumerate() {
            let is_sibling = |other: &Path| other.len() == 2 && place.path.len() == 2 && other[0] == place.path[0];
            let others = (0..paths.len()).filter(|other| *other != at && is_sibling(&paths[*other]));
            place.siblings = others.map(HeaderId).collect();
        }
        Some(places)
    }

    /// The header that lies at a path, if it is one that a packet has once.
    pub fn header(&self, path: &[usize]) -> Option<HeaderId> {
        self.headers.iter().position(|place| !place.in_message && place.path == path).map(HeaderId)
    }

    /// The kind of message that lies at a path.
    pub fn kind(&self, path: &[usize]) -> Option<HeaderId> {
        self.headers.iter().position(|place| place.in_message && place.path == path).map(HeaderId)
    }

    /// Whether something at a path is, or is part of, or has the messages.
    pub fn is_of_messages(&self, path: &[usize]) -> bool {
        self.stack.as_ref().is_some_and(|stack| stack.starts_with(path) || path.starts_with(stack))
    }

    /// Where in a header each of its fields lies, in bits: index, offset and width, of those with a known place.
    pub fn fields(&self, header: HeaderId) -> impl Iterator<Item = (usize, u32, u32)> {
        let mut offset = Some(0);
        self.headers[header.0].decl.fields.iter().enumerate().map_while(move |(at, field)| {
            let width = widths::fixed(self.program, &field.ty);
            let place = (at, offset?, width?);
            offset = offset.zip(width).map(|(offset, width)| offset + width);
            Some(place)
        })
    }

    /// The width of a type whose values are unsigned numbers of up to 128 bits.
    pub fn unsigned(&self, ty: &Type) -> Option<u32> {
        let width = match ty {
            Type::Bit(width) => Some(*width),
            Type::New(id) => self.unsigned(&self.program.new_types[*id].underlying),
            Type::Enum(id) => self.unsigned(self.program.enums[*id].underlying.as_ref()?),
            _ => None,
        };
        width.filter(|width| (1..=128).contains(width))
    }

    /// Where a member of a struct or header lies in it, in bits.
    pub fn offset(&self, ty: &Type, member: usize) -> Option<u32> {
        let Type::Struct(id) = ty else { return None };
        let decl = &self.program.structs[*id];
        if decl.kind == StructKind::Union {
            return None;
        }
        decl.fields[..member].iter().map(|field| widths::fixed(self.program, &field.ty)).sum()
    }

    /// What is known, for others.
    pub fn given(&self, valid: &[Option<bool>], values: FieldValues) -> Given {
        let known = (0..self.headers.len()).map(HeaderId).zip(valid).filter(|(id, _)| !self.headers[id.0].in_message);
        let valid = known.filter_map(|(id, valid)| Some((id, (*valid)?))).collect();
        let mut given = Given { valid, ..Given::default() };
        for ((header, member), values) in values.into_iter().filter(|(_, values)| is_short(values)) {
            let name = self.headers[header.0].decl.fields[member].name.to_string();
            given.values.entry(header).or_default().insert(name, values);
        }
        given
    }

    /// Values by the names of fields.
    pub fn named(&self, header: HeaderId, values: BTreeMap<usize, Ranges>) -> Values {
        let fields = &self.headers[header.0].decl.fields;
        let short = values.into_iter().filter(|(_, values)| is_short(values));
        short.map(|(member, values)| (fields[member].name.to_string(), values)).collect()
    }
}

/// Whether values are few stretches: longer lists would make what holds of every message large.
fn is_short(values: &Ranges) -> bool {
    values.list().len() <= MOST_STRETCHES
}

/// The variable that an expression names a part of, and the part; `None` for values.
pub(super) fn place(e: &Expr) -> Option<(VarId, Path)> {
    let within = |e: &Expr, step: usize| {
        let (var, mut path) = place(e)?;
        path.push(step);
        Some((var, path))
    };
    match &e.kind {
        ExprKind::Var(var) => Some((*var, Path::new())),
        ExprKind::Field(of, at) => within(of, *at),
        ExprKind::Element(of, _) | ExprKind::Next(of) | ExprKind::Last(of) => within(of, ELEMENT),
        ExprKind::Slice(of, ..) => place(of),
        _ => None,
    }
}
