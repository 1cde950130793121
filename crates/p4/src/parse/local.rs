//! Parses declarations inside parsers, controls and blocks, and recognises their beginning.

use super::names::Meaning;
use super::types::TokenPosition;
use super::{ParseResult, SourceParser};
use crate::ast::{Annotations, Decl, DeclKind};

impl SourceParser<'_> {
    /// Whether the next tokens declare a variable or instance: a type and a name, or a constructor call of a known
    /// type.
    pub(super) fn begins_variable(&self) -> bool {
        let keyword = self.word().is_some_and(super::cursor::is_reserved) && self.begins_type();
        if keyword {
            return true;
        }
        let Some(end) = self.scan_type() else { return false };
        if self.is_at(end, "(") {
            // `C(a).apply()` would need an instance: no statement begins with a constructor call.
            return self.begins_type() && !self.is_method(end);
        }
        let Some(n) = self.distance(end) else { return false };
        let Some(word) = self.nth_word(n) else { return false };
        // A keyword as the name is a mistake that the declaration reports.
        !super::cursor::is_reserved(word) || ((self.nth_is(n + 1, ";") || self.nth_is(n + 1, "=")) && word != "_")
    }

    /// Whether a member follows the call at `open`, so it is not a declaration.
    fn is_method(&self, open: TokenPosition) -> bool {
        self.behind_parens(open).is_some_and(|end| self.is_at(end, "."))
    }

    /// Parses a constant, variable or instance after its annotations.
    pub(super) fn local(&mut self, annotations: Annotations) -> ParseResult<Decl> {
        let start = self.span();
        let kind = if self.is_word("const") { self.constant()? } else { self.variable(true)? };
        Ok(Decl { annotations, kind, span: self.since(start) })
    }

    /// Parses `T name`, `T name = init` or `T(args) name`, with a trailing `;` if `ended`.
    pub(super) fn variable(&mut self, ended: bool) -> ParseResult<DeclKind> {
        let ty = self.nested(Self::ty)?;
        if self.is("(") && ended {
            return Ok(DeclKind::Instance(self.instance_behind(ty)?));
        }
        let (name, ty) = self.declarator("a variable", ty)?;
        let init = if self.eat("=") { Some(self.expr()?) } else { None };
        self.names.declare(&name.name, Meaning::Value);
        if ended {
            let what = if init.is_some() { "the value of a variable" } else { "the declaration of a variable" };
            self.semicolon(what);
        }
        Ok(DeclKind::Variable { ty, name, init })
    }
}
