//! Parses top-level declarations (specification sections 7 and 10).

use diagnostics::Diagnostic;

use super::names::Meaning;
use super::recover::ListContext;
use super::{ParseResult, Skip, SourceParser, misspelled};
use crate::ast::{
    Annotations, Decl, DeclKind, Direction, Expr, Field, FunctionProto, Ident, InstanceDecl, Method, Param, Program,
    StructKind, TypeRef, TypeRefKind,
};

impl SourceParser<'_> {
    /// Parses the whole program.
    pub(super) fn program(&mut self) -> Program {
        let mut decls = Vec::new();
        let mut lost = false;
        while !self.at_end() {
            if self.eat(";") {
                continue;
            }
            let before = self.at;
            if self.is("}") {
                if !lost {
                    let message = "unmatched `}`";
                    let help = "remove it, or look for an extra `}` before it";
                    self.mistaken("unmatched-brace", self.span(), message, help);
                }
                self.bump();
                lost = true;
                continue;
            }
            // After a mistake that left the parser outside of a declaration, everything up to the next keyword is a
            // consequence of it.
            if lost && !self.begins_declaration() {
                self.skip_item();
                if self.at == before {
                    self.bump();
                }
                continue;
            }
            let mut made = Vec::new();
            let result = self.declaration(&mut made);
            decls.append(&mut self.hoisted);
            decls.append(&mut made);
            lost = false;
            if let Err(Skip) = result {
                lost = !self.closed_declaration(before);
                self.resume(before, 1);
            }
            self.names.close_to(1);
        }
        Program { decls }
    }

    /// Whether the declaration that began at token `before` ended with a `}` or `;` in spite of a mistake.
    fn closed_declaration(&self, before: usize) -> bool {
        use crate::lex::TokenKind::Punct;
        self.at > before && matches!(self.tokens[self.at - 1].kind, Punct(";" | "}"))
    }

    /// Whether a keyword or annotation that begins a top-level declaration comes next, at the start of a line.
    fn begins_declaration(&self) -> bool {
        let word = self.word().unwrap_or("");
        self.begins_line()
            && (self.is("@")
                || matches!(
                    word,
                    "const" | "extern" | "action" | "parser" | "control" | "package" | "header" | "header_union"
                )
                || matches!(word, "struct" | "enum" | "typedef" | "error" | "match_kind")
                || self.begins_type())
    }

    /// Parses one top-level declaration. A `typedef` of a type that is declared inline yields two.
    pub(super) fn declaration(&mut self, made: &mut Vec<Decl>) -> ParseResult<()> {
        let annotations = self.annotations()?;
        let start = self.span();
        self.correct_keyword(misspelled::TOP_LEVEL);
        let kind = match self.word() {
            Some("const") => self.constant()?,
            Some("extern") => match self.extern_declaration()? {
                Some(kind) => kind,
                None => return Ok(()),
            },
            Some("action") => self.action()?,
            Some("parser") => self.parser()?,
            Some("control") => self.control()?,
            Some("package") => self.package()?,
            Some("struct" | "header" | "header_union" | "enum") => self.derived_type()?,
            Some("typedef") => self.typedef(made)?,
            Some("type") if !self.nth_is(1, "(") => self.new_type()?,
            Some("error") if self.nth_is(1, "{") => self.errors()?,
            Some("match_kind") if self.nth_is(1, "{") => self.match_kinds()?,
            Some("value_set") => self.value_set()?,
            Some("table" | "state") if self.nth_is(2, "{") => return Err(self.misplaced_local()),
            Some("apply") if self.nth_is(1, "{") => return Err(self.misplaced_local()),
            Some("header_type" | "field_list") if self.nth_is(2, "{") => return Err(self.older_version()),
            _ => self.function_or_instance()?,
        };
        made.push(Decl { annotations, kind, span: self.since(start) });
        Ok(())
    }

    /// Reports a program in P4_14. Further mistakes would all be of this kind, so the rest is skipped.
    fn older_version(&mut self) -> Skip {
        let message = "this program is written in P4_14, not in P4_16";
        let help = "p4c's `p4test` can translate it to P4_16: see its options `std` and `pp`";
        let skip = self.mistaken("p4-14", self.span(), message, help);
        while !self.at_end() {
            self.bump();
        }
        skip
    }

    fn misplaced_local(&mut self) -> Skip {
        let word = self.word().unwrap_or("").to_owned();
        let owner = if word == "state" { "parser" } else { "control" };
        let message = format!("`{word}` is allowed only in a {owner}");
        let help = format!("is there an extra `}}` before it, which ended the {owner}?");
        self.mistaken("misplaced-declaration", self.span(), &message, &help)
    }

    /// Parses `const T name = value;`.
    pub(super) fn constant(&mut self) -> ParseResult<DeclKind> {
        self.bump();
        let ty = self.nested(Self::ty)?;
        let (name, ty) = self.declarator("a constant", ty)?;
        self.expect("=", "after the name of a constant, which needs a value")?;
        let value = self.expr()?;
        self.names.declare(&name.name, Meaning::Value);
        self.semicolon("the value of the constant");
        Ok(DeclKind::Const { ty, name, value })
    }

    /// Parses a name followed by array sizes, which become part of its type.
    pub(super) fn declarator(&mut self, what: &str, mut ty: TypeRef) -> ParseResult<(Ident, TypeRef)> {
        let name = self.name(what)?;
        while self.is("[") {
            let below = self.height;
            let size = self.array_size()?;
            self.grow(below.max(self.height))?;
            let span = ty.span;
            ty = TypeRef { kind: TypeRefKind::Stack(ty.into(), size.into()), span };
        }
        Ok((name, ty))
    }

    /// Parses `extern name { methods }` or `extern T f(params);`. Returns nothing for the forward declaration `extern
    /// name;`.
    fn extern_declaration(&mut self) -> ParseResult<Option<DeclKind>> {
        self.bump();
        if self.nth_is_name(0) && (self.nth_is(1, "{") || self.nth_is(1, "<") && !self.is_function()) {
            return self.extern_object().map(Some);
        }
        if self.nth_is_name(0) && self.nth_is(1, ";") {
            let name = self.name("an extern")?;
            self.names.declare(&name.name, Meaning::Type);
            self.bump();
            return Ok(None);
        }
        let proto = self.prototype()?;
        self.names.close();
        self.semicolon("the declaration of an extern function");
        Ok(Some(DeclKind::ExternFunction(proto)))
    }

    /// Whether a type followed by a name comes next.
    fn is_function(&self) -> bool {
        self.scan_type().and_then(|end| self.distance(end)).is_some_and(|n| self.nth_is_name(n))
    }

    fn extern_object(&mut self) -> ParseResult<DeclKind> {
        let name = self.name("an extern")?;
        self.names.declare(&name.name, Meaning::Type);
        self.names.open();
        let type_params = self.type_params()?;
        let open = self.expect("{", "before the methods of an extern")?;
        let what = format!("the extern `{}`", name.name);
        let methods = self.items(open, ListContext::Members, &what, |p| p.method(&name));
        self.names.close();
        Ok(DeclKind::ExternObject { name, type_params, methods })
    }

    fn method(&mut self, object: &Ident) -> ParseResult<Method> {
        let annotations = self.annotations()?;
        let is_abstract = self.eat_word("abstract");
        let span = self.span();
        if self.nth_is_name(0) && self.nth_is(1, "(") {
            let name = self.name("a constructor")?;
            if name.name != object.name {
                let message = format!("method `{}` has no return type", name.name);
                let help =
                    format!("write `void {}(...)`; only a constructor, `{}(...)`, has none", name.name, object.name);
                self.diagnostics.push(Diagnostic::error("missing-type", span, message).help(help));
            }
            let is_constructor = name.name == object.name;
            let ret = TypeRef { kind: TypeRefKind::Void, span };
            self.names.open();
            let params = self.params("after the name of a constructor")?;
            self.names.close();
            self.semicolon("the declaration of a constructor");
            let proto = FunctionProto { ret, name, type_params: Vec::new(), params };
            return Ok(Method { annotations, is_abstract, is_constructor, proto });
        }
        let proto = self.prototype()?;
        self.names.close();
        self.semicolon("the declaration of a method");
        Ok(Method { annotations, is_abstract, is_constructor: false, proto })
    }

    /// Parses `T f<U>(params)`. Leaves a scope with the parameters open for the body.
    fn prototype(&mut self) -> ParseResult<FunctionProto> {
        let ret = self.nested(Self::ty)?;
        self.prototype_behind(ret)
    }

    fn prototype_behind(&mut self, ret: TypeRef) -> ParseResult<FunctionProto> {
        let name = self.name("a function")?;
        self.names.declare(&name.name, Meaning::Value);
        self.names.open();
        let type_params = self.type_params()?;
        let params = self.params("after the name of a function")?;
        Ok(FunctionProto { ret, name, type_params, params })
    }

    /// Parses parameters in parentheses and declares them in the innermost scope.
    pub(super) fn params(&mut self, context: &str) -> ParseResult<Vec<Param>> {
        let open = self.expect("(", context)?;
        self.list(open, ")", "after the parameters", Self::param)
    }

    fn param(&mut self) -> ParseResult<Param> {
        let start = self.span();
        let annotations = self.annotations()?;
        let direction = match self.word() {
            Some("in") => Direction::In,
            Some("out") => Direction::Out,
            Some("inout") => Direction::InOut,
            _ => Direction::None,
        };
        if direction != Direction::None {
            self.bump();
        }
        let ty = self.nested(Self::ty)?;
        let (name, ty) = self.declarator("a parameter", ty)?;
        let default = if self.eat("=") { Some(self.expr()?) } else { None };
        self.names.declare(&name.name, Meaning::Value);
        Ok(Param { annotations, direction, ty, name, default, span: self.since(start) })
    }

    /// Parses `struct`, `header`, `header_union` and `enum`.
    fn derived_type(&mut self) -> ParseResult<DeclKind> {
        let (kind, what) = match self.word() {
            Some("struct") => (StructKind::Struct, "struct"),
            Some("header") => (StructKind::Header, "header"),
            Some("header_union") => (StructKind::Union, "header union"),
            _ => return self.enumeration(),
        };
        self.bump();
        let name = self.name(&format!("a {what}"))?;
        self.names.declare(&name.name, Meaning::Type);
        self.names.open();
        let type_params = self.type_params()?;
        let open = self.expect("{", &format!("before the fields of a {what}"))?;
        let fields = self.items(open, ListContext::Members, &format!("the {what} `{}`", name.name), Self::field);
        self.names.close();
        Ok(DeclKind::Struct { kind, name, type_params, fields })
    }

    fn field(&mut self) -> ParseResult<Field> {
        let annotations = self.annotations()?;
        let ty = self.nested(Self::ty)?;
        let (name, ty) = self.declarator("a field", ty)?;
        if self.is(",") {
            let message = "expected `;` after a field, found `,`";
            self.mistaken("unexpected-token", self.span(), message, "fields end with `;`");
            self.bump();
        } else {
            // The last field before the brace needs one, too.
            self.semicolon("a field");
        }
        Ok(Field { annotations, ty, name })
    }

    fn enumeration(&mut self) -> ParseResult<DeclKind> {
        self.bump();
        let underlying = if self.nth_is_name(0) && self.nth_is(1, "{") { None } else { Some(self.nested(Self::ty)?) };
        let name = self.name("an enum")?;
        self.names.declare(&name.name, Meaning::Type);
        let open = self.expect("{", "before the members of an enum")?;
        let members = self.list(open, "}", "at the end of the enum", |p| {
            let annotations = p.annotations()?;
            let name = p.name("a member of an enum")?;
            let value = if p.eat("=") { Some(p.expr()?) } else { None };
            Ok((annotations, name, value))
        })?;
        Ok(DeclKind::Enum { underlying, name, members })
    }

    fn errors(&mut self) -> ParseResult<DeclKind> {
        self.bump();
        let open = self.expect("{", "after `error`")?;
        Ok(DeclKind::Errors(self.list(open, "}", "at the end of the errors", |p| p.name("an error"))?))
    }

    fn match_kinds(&mut self) -> ParseResult<DeclKind> {
        self.bump();
        let open = self.expect("{", "after `match_kind`")?;
        let kinds =
            self.list(open, "}", "at the end of the match kinds", |p| Ok((p.annotations()?, p.name("a match kind")?)))?;
        Ok(DeclKind::MatchKinds(kinds))
    }

    /// Parses `typedef T name;` or `typedef struct S { ... } name;`.
    fn typedef(&mut self, made: &mut Vec<Decl>) -> ParseResult<DeclKind> {
        self.bump();
        let annotations: Annotations = self.annotations()?;
        let ty = if matches!(self.word(), Some("struct" | "header" | "header_union" | "enum")) {
            let start = self.span();
            let kind = self.derived_type()?;
            let (DeclKind::Struct { name, .. } | DeclKind::Enum { name, .. }) = &kind else { return self.skip() };
            let named = TypeRefKind::Named { absolute: false, name: name.clone(), args: Vec::new() };
            let ty = TypeRef { kind: named, span: name.span };
            made.push(Decl { annotations, kind, span: self.since(start) });
            ty
        } else {
            self.no_annotations(&annotations, "the type of a typedef");
            self.nested(Self::ty)?
        };
        let (name, ty) = self.declarator("a typedef", ty)?;
        self.names.declare(&name.name, Meaning::Type);
        self.semicolon("a typedef");
        Ok(DeclKind::Typedef { ty, name })
    }

    /// Parses `type T name;`.
    fn new_type(&mut self) -> ParseResult<DeclKind> {
        self.bump();
        let ty = self.nested(Self::ty)?;
        let (name, ty) = self.declarator("a type", ty)?;
        self.names.declare(&name.name, Meaning::Type);
        self.semicolon("the declaration of a type");
        Ok(DeclKind::NewType { ty, name })
    }

    /// Parses `T f(params) { ... }` or `T(args) name;`.
    fn function_or_instance(&mut self) -> ParseResult<DeclKind> {
        if self.word().is_none() && !self.is(".") {
            return Err(self.unexpected("a declaration", ""));
        }
        if self.nth_is_name(0) && !self.nth_is(1, "(") && !self.nth_is(1, "<") && !self.nth_is(1, "[") {
            let followed = self.nth_is_name(1) && (self.nth_is(2, "(") || self.nth_is(2, "<"));
            if !followed && !self.nth_is_name(1) {
                return Err(self.unexpected("a declaration", ""));
            }
        }
        let ty = self.nested(Self::ty)?;
        if self.is("(") {
            return Ok(DeclKind::Instance(self.instance_behind(ty)?));
        }
        if self.nth_is_name(0) && (self.nth_is(1, ";") || self.nth_is(1, "=")) {
            let span = self.span();
            let message = "a variable cannot be declared at top level";
            self.mistaken("top-level-variable", span, message, "make it a `const`, or move it into a control");
            let (name, ty) = self.declarator("a variable", ty)?;
            self.names.declare(&name.name, Meaning::Value);
            let init = if self.eat("=") { Some(self.expr()?) } else { None };
            self.semicolon("a variable");
            return Ok(DeclKind::Variable { ty, name, init });
        }
        self.function_behind(ty)
    }

    /// Parses a function after its result type.
    pub(super) fn function_behind(&mut self, ret: TypeRef) -> ParseResult<DeclKind> {
        let proto = self.prototype_behind(ret)?;
        if self.is(";") {
            let message = format!("function `{}` has no body", proto.name.name);
            self.mistaken("missing-body", self.span(), &message, "give it one in braces, or write `extern` before it");
            self.bump();
            self.names.close();
            return Ok(DeclKind::ExternFunction(proto));
        }
        let body = self.block("the body of a function")?;
        self.names.close();
        Ok(DeclKind::Function { proto, body })
    }

    /// Parses an instance after its type: `(args) name;` or `(args) name = { implementations };`.
    pub(super) fn instance_behind(&mut self, ty: TypeRef) -> ParseResult<InstanceDecl> {
        let args = self.args()?;
        self.instance_named(ty, args)
    }

    pub(super) fn instance_named(&mut self, ty: TypeRef, args: Vec<crate::ast::Arg>) -> ParseResult<InstanceDecl> {
        let (name, ty) = if self.is(";") {
            let message = "this instance has no name";
            self.mistaken("missing-name", self.span(), message, "write a name before the `;`: `main` for the package");
            (self.nameless(), ty)
        } else {
            self.declarator("an instance", ty)?
        };
        self.names.declare(&name.name, Meaning::Value);
        let mut body = None;
        if self.eat("=") {
            let open = self.expect("{", "before the implementations of an instance")?;
            self.names.open();
            let what = format!("the instance `{}`", name.name);
            body = Some(self.nested(|p| Ok(p.items(open, ListContext::Pipeline, &what, Self::implementation)))?);
            self.names.close();
        }
        self.semicolon("an instance");
        Ok(InstanceDecl { ty, args, name, body })
    }

    fn implementation(&mut self) -> ParseResult<Decl> {
        let annotations = self.annotations()?;
        let start = self.span();
        let ty = self.nested(Self::ty)?;
        let kind = if self.is("(") {
            DeclKind::Instance(self.nested(|p| p.instance_behind(ty))?)
        } else {
            self.function_behind(ty)?
        };
        Ok(Decl { annotations, kind, span: self.since(start) })
    }

    /// Parses `action a(params) { ... }`.
    pub(super) fn action(&mut self) -> ParseResult<DeclKind> {
        self.bump();
        let name = self.name("an action")?;
        self.names.declare(&name.name, Meaning::Value);
        self.names.open();
        let params = self.params("after the name of an action")?;
        let body = self.block("the body of an action")?;
        self.names.close();
        Ok(DeclKind::Action { name, params, body })
    }

    /// Parses `value_set<T>(size) name;`.
    pub(super) fn value_set(&mut self) -> ParseResult<DeclKind> {
        self.bump();
        self.expect("<", "after `value_set`")?;
        let ty = self.nested(Self::ty)?;
        self.expect_angle("after the type of a value set")?;
        let open = self.expect("(", "before the size of a value set")?;
        let size: Expr = self.expr()?;
        self.expect_close(")", open, "after the size of a value set");
        let name = self.name("a value set")?;
        self.names.declare(&name.name, Meaning::Value);
        self.semicolon("a value set");
        Ok(DeclKind::ValueSet { ty, size, name })
    }
}
