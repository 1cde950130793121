//! Prints programs as text, and parts of programs for traces and diagnostics.
//!
//! `program.to_string()` is complete: [`read`](crate::parse) returns an equal program. It is also stable: equal
//! programs print alike. The `display_*` methods print single parts with plain names, for people; they do not
//! distinguish entities that share a name.
//!
//! Printing also works on programs that break the validator's rules, since the validator quotes the instructions it
//! rejects: an id out of range is printed as its number (`#slot99`).

mod code;
mod declare;
pub(crate) use declare::unknown_position;
mod expr;
mod objects;

use std::collections::HashMap;
use std::fmt::{self, Display, Write};
use std::hash::Hash;

use cranelift_entity::EntityRef;
use diagnostics::SourcePosition;

use crate::text::{Index, NameIndex, write_label, write_name, write_string};
use crate::*;

pub(crate) type Out<'o> = &'o mut dyn Write;

/// Prints one program.
pub(crate) struct Printer<'p> {
    program: &'p Program,
    /// If present, every reference is printed unambiguously; if absent, plain names are printed.
    exact: Option<ReferenceIndex<'p>>,
}

/// Indexes needed to print references that are read back as the same ids.
struct ReferenceIndex<'p> {
    names: NameIndex,
    locs: HashMap<&'p SourcePosition, LocId>,
}

impl<'p> Printer<'p> {
    /// Creates a printer of plain names, for people.
    fn plain(program: &'p Program) -> Self {
        Printer { program, exact: None }
    }

    /// Creates a printer of unambiguous references, for the reader.
    fn exact(program: &'p Program) -> Self {
        let mut locs = HashMap::new();
        for (id, position) in &program.locs {
            locs.entry(position).or_insert(id);
        }
        Printer { program, exact: Some(ReferenceIndex { names: NameIndex::of(program), locs }) }
    }

    /// Prints a reference to (or the declaration of) the entity `id`, named `name` unless the id is out of range.
    fn entity<K: EntityRef + Hash + Display>(
        &self,
        out: Out<'_>,
        id: K,
        name: Option<&str>,
        index: impl Fn(&NameIndex) -> &Index<K>,
    ) -> fmt::Result {
        let found = self.exact.as_ref().map(|exact| name.and_then(|name| index(&exact.names).get(name)).copied());
        tagged(out, id, name, found)
    }

    /// Prints the source position of an instruction, if it has one: `  ; basic.p4:3:1`.
    fn loc(&self, out: Out<'_>, loc: LocId) -> fmt::Result {
        let (Some(exact), true) = (&self.exact, loc.index() != 0) else { return Ok(()) };
        let Some(position) = self.program.locs.get(loc) else { return write!(out, "  ; \"\":0:0 #{loc}") };
        out.write_str("  ; ")?;
        write_position(out, position)?;
        if exact.locs.get(position) == Some(&loc) { Ok(()) } else { write!(out, " #{loc}") }
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

/// Prints a name, followed by the entity's number if the name alone would resolve to another entity, `found`. `found`
/// is `None` when the text is for people only.
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

/// Prints `file:line:column`; the file name is quoted if it contains anything except letters, digits and `._/+-`.
fn write_position(out: Out<'_>, position: &SourcePosition) -> fmt::Result {
    let bare = |c: char| c.is_ascii_alphanumeric() || "._/+-".contains(c);
    if !position.file.is_empty() && position.file.chars().all(bare) {
        out.write_str(&position.file)?;
    } else {
        write_string(out, &position.file)?;
    }
    write!(out, ":{}:{}", position.line, position.column)
}

/// Prints the items of a list with a separator between them.
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
    /// Displays an expression with names for ids, in the syntax of the text form.
    pub fn display_expr<'a>(&'a self, expr: &'a Expr) -> impl Display + 'a {
        fmt::from_fn(move |f| Printer::plain(self).expr(f, expr))
    }

    /// Displays a header reference with names for ids.
    pub fn display_header<'a>(&'a self, header: &'a HeaderRef) -> impl Display + 'a {
        fmt::from_fn(move |f| Printer::plain(self).header_ref(f, header))
    }

    /// Displays a field of a header reference with names for ids.
    pub fn display_field<'a>(&'a self, header: &'a HeaderRef, field: u32) -> impl Display + 'a {
        fmt::from_fn(move |f| Printer::plain(self).field(f, header, field))
    }

    /// Displays an l-value with names for ids.
    pub fn display_lvalue<'a>(&'a self, lvalue: &'a LValue) -> impl Display + 'a {
        fmt::from_fn(move |f| Printer::plain(self).lvalue(f, lvalue))
    }

    /// Displays a piece of checksummed or hashed data with names for ids.
    pub fn display_data<'a>(&'a self, data: &'a HashInput) -> impl Display + 'a {
        fmt::from_fn(move |f| Printer::plain(self).data(f, data))
    }

    /// Displays an operation with names for ids, without its source position.
    pub fn display_op<'a>(&'a self, op: &'a Op) -> impl Display + 'a {
        fmt::from_fn(move |f| Printer::plain(self).op(f, op))
    }

    /// Displays a terminator of `body` with names for ids; on several lines if it has cases.
    pub fn display_terminator<'a>(&'a self, body: &'a Body, terminator: &'a Terminator) -> impl Display + 'a {
        fmt::from_fn(move |f| {
            let blocks = code::BlockNames::plain(body);
            Printer::plain(self).terminator(f, &blocks, terminator, LocId::new(0))
        })
    }

    /// Displays a match of a select case with names for ids.
    pub fn display_match<'a>(&'a self, matching: &'a Match) -> impl Display + 'a {
        fmt::from_fn(move |f| Printer::plain(self).matching(f, matching))
    }

    /// Displays a block's name; its number if it has none.
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
