//! Programs as text, and the parts of programs as text for traces and diagnostics.
//!
//! `program.to_string()` is complete: [`read`](crate::parse) gives an equal program back. It is also stable: equal
//! programs print alike. The `display_*` methods print single parts with plain names, for people; where two entities
//! share a name they do not tell them apart.
//!
//! Printing works on programs that break the validator's rules too, since the validator quotes what it objects to: an
//! id out of range prints as its number (`#slot99`).

mod code;
mod declare;
pub(crate) use declare::nowhere;
mod expr;
mod objects;

use std::collections::HashMap;
use std::fmt::{self, Display, Write};
use std::hash::Hash;

use cranelift_entity::EntityRef;
use diagnostics::Place as SourcePlace;

use crate::text::{Index, Names, write_label, write_name, write_string};
use crate::*;

pub(crate) type Out<'o> = &'o mut dyn Write;

/// Prints one program.
pub(crate) struct Printer<'p> {
    program: &'p Program,
    /// With names, every reference is unmistakable; without, the plain name is printed.
    exact: Option<Exact<'p>>,
}

/// What it takes to print references that are read back as the same ids.
struct Exact<'p> {
    names: Names,
    locs: HashMap<&'p SourcePlace, LocId>,
}

impl<'p> Printer<'p> {
    /// For people: plain names.
    fn plain(program: &'p Program) -> Self {
        Printer { program, exact: None }
    }

    /// For the reader.
    fn exact(program: &'p Program) -> Self {
        let mut locs = HashMap::new();
        for (id, place) in &program.locs {
            locs.entry(place).or_insert(id);
        }
        Printer { program, exact: Some(Exact { names: Names::of(program), locs }) }
    }

    /// A reference to (or the declaration of) the entity `id`, called `name` unless the id is out of range.
    fn entity<K: EntityRef + Hash + Display>(
        &self,
        out: Out<'_>,
        id: K,
        name: Option<&str>,
        index: impl Fn(&Names) -> &Index<K>,
    ) -> fmt::Result {
        let found = self.exact.as_ref().map(|exact| name.and_then(|name| index(&exact.names).get(name)).copied());
        tagged(out, id, name, found)
    }

    /// The place in the source of an instruction, if it has one: `  ; basic.p4:3:1`.
    fn loc(&self, out: Out<'_>, loc: LocId) -> fmt::Result {
        let (Some(exact), true) = (&self.exact, loc.index() != 0) else { return Ok(()) };
        let Some(place) = self.program.locs.get(loc) else { return write!(out, "  ; \"\":0:0 #{loc}") };
        out.write_str("  ; ")?;
        write_place(out, place)?;
        if exact.locs.get(place) == Some(&loc) { Ok(()) } else { write!(out, " #{loc}") }
    }

    fn annotations(&self, out: Out<'_>, annotations: &[Annotation], before: &str) -> fmt::Result {
        for annotation in annotations {
            write!(out, "{before}@")?;
            write_label(out, &annotation.name)?;
            if !annotation.text.is_empty() {
                out.write_char('(')?;
                write_string(out, &annotation.text)?;
                out.write_char(')')?;
            }
        }
        Ok(())
    }
}

/// A name, and the entity's number if the name alone would be `found` to mean something else. `found` is `None` when
/// the text is for people only.
fn tagged<K: EntityRef + Display>(out: Out<'_>, id: K, name: Option<&str>, found: Option<Option<K>>) -> fmt::Result {
    match (name, found) {
        (None, _) => write!(out, "#{id}"),
        (Some(""), None) => write!(out, "{id}"),
        (Some(name), None) => write_name(out, name),
        (Some(name), Some(found)) if !name.is_empty() && found == Some(id) => write_name(out, name),
        (Some(name), Some(_)) => {
            if !name.is_empty() {
                write_name(out, name)?;
            }
            write!(out, "#{id}")
        }
    }
}

/// `file:line:column`, the file's name in quotes if it holds anything but letters, digits and `._/+-`.
fn write_place(out: Out<'_>, place: &SourcePlace) -> fmt::Result {
    let bare = |c: char| c.is_ascii_alphanumeric() || "._/+-".contains(c);
    if !place.file.is_empty() && place.file.chars().all(bare) {
        out.write_str(&place.file)?;
    } else {
        write_string(out, &place.file)?;
    }
    write!(out, ":{}:{}", place.line, place.column)
}

/// Writes the items of a list with something between them.
fn separated<T>(
    out: Out<'_>,
    items: impl IntoIterator<Item = T>,
    between: &str,
    mut write: impl FnMut(Out<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.write_str(between)?;
        }
        write(out, item)?;
    }
    Ok(())
}

impl Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printer::exact(self).program(f)
    }
}

impl Program {
    /// An expression with names for ids, in the syntax of the text form.
    pub fn display_expr<'a>(&'a self, expr: &'a Expr) -> impl Display + 'a {
        fmt::from_fn(move |f| Printer::plain(self).expr(f, expr))
    }

    /// A header reference with names for ids.
    pub fn display_header<'a>(&'a self, header: &'a HeaderRef) -> impl Display + 'a {
        fmt::from_fn(move |f| Printer::plain(self).header_ref(f, header))
    }

    /// A field of a header reference with names for ids.
    pub fn display_field<'a>(&'a self, header: &'a HeaderRef, field: u32) -> impl Display + 'a {
        fmt::from_fn(move |f| Printer::plain(self).field(f, header, field))
    }

    /// A place with names for ids.
    pub fn display_place<'a>(&'a self, place: &'a Place) -> impl Display + 'a {
        fmt::from_fn(move |f| Printer::plain(self).place(f, place))
    }

    /// A piece of checksummed or hashed data with names for ids.
    pub fn display_data<'a>(&'a self, data: &'a Data) -> impl Display + 'a {
        fmt::from_fn(move |f| Printer::plain(self).data(f, data))
    }

    /// What an instruction does, with names for ids, without its place in the source.
    pub fn display_op<'a>(&'a self, op: &'a Op) -> impl Display + 'a {
        fmt::from_fn(move |f| Printer::plain(self).op(f, op))
    }

    /// How a block of `body` ends, with names for ids; several lines if it has cases.
    pub fn display_terminator<'a>(&'a self, body: &'a Body, terminator: &'a Terminator) -> impl Display + 'a {
        fmt::from_fn(move |f| {
            let blocks = code::BlockNames::plain(body);
            Printer::plain(self).terminator(f, &blocks, terminator, LocId::new(0))
        })
    }

    /// What a select case holds a value against, with names for ids.
    pub fn display_match<'a>(&'a self, matching: &'a Match) -> impl Display + 'a {
        fmt::from_fn(move |f| Printer::plain(self).matching(f, matching))
    }

    /// A block's name for people; its number if it has none.
    pub fn display_block<'a>(&'a self, body: &'a Body, block: BlockId) -> impl Display + 'a {
        fmt::from_fn(move |f| code::BlockNames::plain(body).write(f, block))
    }
}

impl Display for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        objects::key_value(f, self)
    }
}

macro_rules! display_words {
    ($($ty:ty: $table:ident,)*) => {$(
        impl Display for $ty {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(crate::text::word_for(crate::text::$table, self))
            }
        }
    )*};
}

display_words! {
    Algorithm: ALGORITHMS,
    MatchKind: MATCH_KINDS,
    Unit: UNITS,
    SlotKind: SLOT_KINDS,
    BinaryOp: BINARY,
}
