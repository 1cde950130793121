//! Parses tables (specification section 14.2).

use diagnostics::Diagnostic;

use super::names::Meaning;
use super::recover::ListContext;
use super::{ParseResult, SourceParser};
use crate::ast::{
    ActionRef, Annotations, DeclKind, EntryDecl, Expr, Ident, KeyElement, TableDecl, TableProperty, TablePropertyKind,
};

impl SourceParser<'_> {
    /// Parses `table t { ... }`.
    pub(super) fn table(&mut self) -> ParseResult<DeclKind> {
        self.bump();
        let name = self.name("a table")?;
        self.names.declare(&name.name, Meaning::Value);
        let open = self.expect("{", "before the properties of a table")?;
        let what = format!("the table `{}`", name.name);
        let properties = self.nested(|p| Ok(p.items(open, ListContext::Members, &what, Self::property)))?;
        Ok(DeclKind::Table(TableDecl { name, properties }))
    }

    fn property(&mut self) -> ParseResult<TableProperty> {
        let annotations = self.annotations()?;
        let start = self.span();
        let is_const = self.eat_word("const");
        let name = self.name("a table property")?;
        if !self.is("=") && (self.is("{") || self.is(":")) {
            let message = format!("expected `=` after the name of the property `{}`", name.name);
            let help = format!("write `{} = ...`", name.name);
            self.mistaken("unexpected-token", self.span(), &message, &help);
            self.eat(":");
        } else {
            self.expect("=", &format!("after the name of the property `{}`", name.name))?;
        }
        let kind = match &*name.name {
            "key" | "actions" | "entries" => self.braced_property(&name, is_const)?,
            _ => {
                let value = self.expr()?;
                self.semicolon("the value of a table property");
                TablePropertyKind::Custom { name, value }
            }
        };
        Ok(TableProperty { annotations, is_const, kind, span: self.since(start) })
    }

    fn braced_property(&mut self, name: &Ident, is_const: bool) -> ParseResult<TablePropertyKind> {
        let property = &*name.name;
        if is_const && property != "entries" {
            let message = format!("`{property}` cannot be `const`");
            let diagnostic = Diagnostic::error("misplaced-const", name.span, message);
            let help = "only `entries` and properties of the form `name = value;` can be `const`";
            self.diagnostics.push(diagnostic.help(help));
        }
        let open = self.expect("{", &format!("after `{property} =`"))?;
        let what = format!("`{property}`");
        let kind = match property {
            "key" => TablePropertyKind::Key(self.items(open, ListContext::Elements, &what, Self::key_element)),
            "actions" => TablePropertyKind::Actions(self.items(open, ListContext::Elements, &what, |p| {
                let annotations = p.annotations()?;
                let action = p.action_ref(annotations)?;
                if p.is(",") {
                    let message = "expected `;` after an action, found `,`";
                    p.mistaken("unexpected-token", p.span(), message, "actions of a table end with `;`");
                    p.bump();
                } else {
                    p.semicolon("an action");
                }
                Ok(action)
            })),
            _ => TablePropertyKind::Entries(self.items(open, ListContext::Elements, &what, Self::entry)),
        };
        // A `;` after the brace is a common habit and unambiguous, but it is not P4.
        if self.is(";") {
            let message = format!("unexpected `;` after the `}}` of {what}");
            self.mistaken("unexpected-token", self.span(), &message, "remove it");
            self.bump();
        }
        Ok(kind)
    }

    fn key_element(&mut self) -> ParseResult<KeyElement> {
        let expr: Expr = self.expr()?;
        self.expect(":", "after the expression of a key, before the match kind")?;
        let match_kind = self.name("a match kind")?;
        let annotations = self.annotations()?;
        self.semicolon("an element of the key");
        Ok(KeyElement { expr, match_kind, annotations })
    }

    fn action_ref(&mut self, annotations: Annotations) -> ParseResult<ActionRef> {
        let start = self.span();
        let absolute = self.eat(".");
        let name = self.name("an action")?;
        let args = if self.is("(") { Some(self.args()?) } else { None };
        Ok(ActionRef { annotations, absolute, name, args, span: self.since(start) })
    }

    /// Parses `const priority = 10: (1, 2 &&& 3, _) : a(4) @annotation;`.
    fn entry(&mut self) -> ParseResult<EntryDecl> {
        let start = self.span();
        let is_const = self.eat_word("const");
        let mut priority = None;
        if self.is_word("priority") && self.nth_is(1, "=") {
            self.bump();
            self.bump();
            priority = Some(self.expr()?);
            self.expect(":", "after the priority of an entry")?;
        }
        let keys = self.keyset()?;
        self.expect(":", "after the keyset of an entry, before its action")?;
        let action = self.action_ref(Vec::new())?;
        let annotations = self.annotations()?;
        self.semicolon("an entry");
        Ok(EntryDecl { is_const, priority, keys, action, annotations, span: self.since(start) })
    }
}
