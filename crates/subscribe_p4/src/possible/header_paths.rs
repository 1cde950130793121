//! Paths of headers within the struct of headers, and the paths that expressions denote.

use std::collections::BTreeMap;

use p4::ast::StructKind;
use p4::typed::{Expr, ExprKind, Program, StructDecl, Type, VarId};
use subscribe::Ranges;

use super::refine::MAX_RANGES;
use super::{KnownHeaders, Values};
use crate::format::{HeaderId, ProgramFormat};
use crate::widths;

/// Member indices from the struct of headers inwards. A stack element is [`ELEMENT`].
pub(super) type Path = Vec<usize>;
pub(super) const ELEMENT: usize = usize::MAX;

/// Field values by header and member index.
pub(super) type FieldValues = BTreeMap<(HeaderId, usize), Ranges>;

/// The headers of a format.
pub(super) struct HeaderPaths<'a> {
    program: &'a Program,
    /// Headers by [`HeaderId`].
    pub headers: Vec<HeaderLocation<'a>>,
    /// Path of the message stack.
    pub stack: Option<Path>,
}

/// A header with its location.
pub(super) struct HeaderLocation<'a> {
    /// Path of the header; for a message kind, its path within an element of the stack.
    pub path: Path,
    pub decl: &'a StructDecl,
    /// Other members of its union, if it is in one.
    pub siblings: Vec<HeaderId>,
    pub in_message: bool,
}

impl<'a> HeaderPaths<'a> {
    /// Returns `None` if a header is not found, which would be an error in the reader.
    pub fn new(program: &'a Program, format: &ProgramFormat) -> Option<HeaderPaths<'a>> {
        let all = program.structs.values().find(|decl| *decl.name == *format.parts.headers)?;
        let member = |decl: &'a StructDecl, name: &str| {
            let at = decl.fields.iter().position(|field| *field.name == *name)?;
            Some((at, &decl.fields[at].ty))
        };
        let declaration = |ty: &Type| match ty {
            Type::Struct(id) => Some(&program.structs[*id]),
            _ => None,
        };
        let mut found = HeaderPaths { program, headers: Vec::new(), stack: None };
        for (at, header) in format.headers.iter().enumerate() {
            let (path, ty) = match (&format.messages, header.in_message) {
                (Some(messages), true) => {
                    let (stack, ty) = member(all, &messages.stack)?;
                    let Type::Stack(element, _) = ty else { return None };
                    found.stack = Some(vec![stack]);
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
            found.headers.push(HeaderLocation { path, decl, siblings: Vec::new(), in_message });
        }
        let paths: Vec<Path> = found.headers.iter().map(|location| location.path.clone()).collect();
        for (at, location) in found.headers.iter_mut().enumerate() {
            let is_sibling =
                |other: &Path| other.len() == 2 && location.path.len() == 2 && other[0] == location.path[0];
            let others = (0..paths.len()).filter(|other| *other != at && is_sibling(&paths[*other]));
            location.siblings = others.map(HeaderId).collect();
        }
        Some(found)
    }

    /// Returns the header at a path, if a packet has it once.
    pub fn header(&self, path: &[usize]) -> Option<HeaderId> {
        self.headers.iter().position(|place| !place.in_message && place.path == path).map(HeaderId)
    }

    /// Returns the message kind at a path.
    pub fn kind(&self, path: &[usize]) -> Option<HeaderId> {
        self.headers.iter().position(|place| place.in_message && place.path == path).map(HeaderId)
    }

    /// Whether a path is a prefix of the message stack's path or lies within the stack.
    pub fn is_of_messages(&self, path: &[usize]) -> bool {
        self.stack.as_ref().is_some_and(|stack| stack.starts_with(path) || path.starts_with(stack))
    }

    /// Returns the index, offset and width in bits of each field of a header, up to the first field with an unknown
    /// offset.
    pub fn fields(&self, header: HeaderId) -> impl Iterator<Item = (usize, u32, u32)> {
        let mut offset = Some(0);
        self.headers[header.0].decl.fields.iter().enumerate().map_while(move |(at, field)| {
            let width = widths::fixed(self.program, &field.ty);
            let place = (at, offset?, width?);
            offset = offset.zip(width).map(|(offset, width)| offset + width);
            Some(place)
        })
    }

    /// Returns the width of a type whose values are unsigned numbers of up to 128 bits.
    pub fn unsigned(&self, ty: &Type) -> Option<u32> {
        let width = match ty {
            Type::Bit(width) => Some(*width),
            Type::New(id) => self.unsigned(&self.program.new_types[*id].underlying),
            Type::Enum(id) => self.unsigned(self.program.enums[*id].underlying.as_ref()?),
            _ => None,
        };
        width.filter(|width| (1..=128).contains(width))
    }

    /// Returns the bit offset of a member in a struct or header.
    pub fn offset(&self, ty: &Type, member: usize) -> Option<u32> {
        let Type::Struct(id) = ty else { return None };
        let decl = &self.program.structs[*id];
        if decl.kind == StructKind::Union {
            return None;
        }
        decl.fields[..member].iter().map(|field| widths::fixed(self.program, &field.ty)).sum()
    }

    /// Converts an abstract state to its public form.
    pub fn given(&self, valid: &[Option<bool>], values: FieldValues) -> KnownHeaders {
        let known = (0..self.headers.len()).map(HeaderId).zip(valid).filter(|(id, _)| !self.headers[id.0].in_message);
        let valid = known.filter_map(|(id, valid)| Some((id, (*valid)?))).collect();
        let mut given = KnownHeaders { valid, ..KnownHeaders::default() };
        for ((header, member), values) in values.into_iter().filter(|(_, values)| is_short(values)) {
            let name = self.headers[header.0].decl.fields[member].name.to_string();
            given.values.entry(header).or_default().insert(name, values);
        }
        given
    }

    /// Converts values to a map by field name.
    pub fn named(&self, header: HeaderId, values: BTreeMap<usize, Ranges>) -> Values {
        let fields = &self.headers[header.0].decl.fields;
        let short = values.into_iter().filter(|(_, values)| is_short(values));
        short.map(|(member, values)| (fields[member].name.to_string(), values)).collect()
    }
}

/// Whether a set has few ranges. Longer lists would make the condition on all messages large.
fn is_short(values: &Ranges) -> bool {
    values.list().len() <= MAX_RANGES
}

/// Returns the variable and the path that an expression denotes; `None` for r-values.
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
