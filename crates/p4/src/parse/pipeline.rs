//! Parses parsers, controls and packages (specification sections 13, 14 and 17).

use diagnostics::{Diagnostic, Span};

use super::names::Meaning;
use super::recover::ListContext;
use super::{ParseResult, SourceParser, misspelled};
use crate::ast::{
    Annotations, Block, ControlDecl, Decl, DeclKind, Ident, Param, ParserDecl, PipelineType, SelectCase, State, Stmt,
    StmtKind, Transition,
};

/// An item of a parser.
enum ParserItem {
    Local(Box<Decl>),
    State(Box<State>),
}

/// An item of a control.
enum ControlItem {
    Local(Box<Decl>),
    Apply(Block, Span),
}

impl SourceParser<'_> {
    /// Parses name, type parameters and parameters of a parser, control or package. Leaves a scope with the parameters
    /// open.
    fn signature(&mut self, what: &str) -> ParseResult<PipelineType> {
        self.bump();
        let name = self.name(&format!("a {what}"))?;
        self.names.declare(&name.name, Meaning::Type);
        self.names.open();
        let type_params = self.type_params()?;
        let params = self.params(&format!("after the name of a {what}"))?;
        Ok(PipelineType { name, type_params, params })
    }

    fn constructor_params(&mut self) -> ParseResult<Vec<Param>> {
        if self.is("(") { self.params("before constructor parameters") } else { Ok(Vec::new()) }
    }

    /// Parses `package P<T>(params);`.
    pub(super) fn package(&mut self) -> ParseResult<DeclKind> {
        let ty = self.signature("package")?;
        self.names.close();
        self.semicolon("the declaration of a package");
        Ok(DeclKind::PackageType(ty))
    }

    /// Parses `parser P<T>(params);` or `parser P(params)(constructor params) { ... }`.
    pub(super) fn parser(&mut self) -> ParseResult<DeclKind> {
        let ty = self.signature("parser")?;
        if self.eat(";") {
            self.names.close();
            return Ok(DeclKind::ParserType(ty));
        }
        let ctor_params = self.constructor_params()?;
        let open = self.expect("{", "before the states of a parser, or `;` after its type")?;
        let what = format!("the parser `{}`", ty.name.name);
        let items = self.nested(|p| Ok(p.items(open, ListContext::Pipeline, &what, Self::parser_item)))?;
        self.names.close();
        let (mut locals, mut states) = (Vec::new(), Vec::new());
        for item in items {
            match item {
                ParserItem::State(state) => states.push(*state),
                ParserItem::Local(local) => {
                    if let Some(state) = states.first() {
                        let message = "the locals of a parser must precede its states";
                        let diagnostic = Diagnostic::error("misplaced-declaration", local.span, message);
                        self.diagnostics.push(diagnostic.also(state.name.span, "first state"));
                    }
                    locals.push(*local);
                }
            }
        }
        Ok(DeclKind::Parser(ParserDecl { ty, ctor_params, locals, states }))
    }

    fn parser_item(&mut self) -> ParseResult<ParserItem> {
        let annotations = self.annotations()?;
        self.correct_keyword(misspelled::IN_PARSER);
        if self.is_word("state") && self.nth_word(1).is_some() && !self.nth_is(2, ";") && !self.nth_is(2, "=") {
            return Ok(ParserItem::State(Box::new(self.nested(|p| p.state(annotations))?)));
        }
        if self.is_word("value_set") {
            let start = self.span();
            let kind = self.value_set()?;
            return Ok(ParserItem::Local(Box::new(Decl { annotations, kind, span: self.since(start) })));
        }
        if matches!(self.word(), Some("action" | "table" | "apply")) && (self.nth_is(2, "{") || !self.is_word("apply"))
        {
            let word = self.word().unwrap_or("").to_owned();
            let message = format!("`{word}` is not allowed in a parser");
            return Err(self.mistaken("misplaced-declaration", self.span(), &message, "it belongs in a control"));
        }
        self.pipeline_local(annotations, "a parser", "a state").map(|local| ParserItem::Local(Box::new(local)))
    }

    /// Parses a constant, variable or instance of a parser or control.
    fn pipeline_local(&mut self, annotations: Annotations, owner: &str, code: &str) -> ParseResult<Decl> {
        if self.is_word("const") || self.begins_variable() || self.begins_instance() {
            return self.local(annotations);
        }
        if self.nth_is_name(0)
            || matches!(self.word(), Some("if" | "switch" | "return" | "exit" | "transition" | "for" | "select"))
        {
            if self.stray_end != Some(self.at) {
                let message = format!("a statement is not allowed directly in {owner}");
                let help = format!("it belongs in {code}; is there an extra `}}` before it?");
                self.mistaken("misplaced-statement", self.span(), &message, &help);
            }
            self.skip_item();
            self.stray_end = Some(self.at);
            self.settled = true;
            return self.skip();
        }
        let rest = if owner == "a parser" { "a state or a local declaration" } else { "a declaration or `apply`" };
        Err(self.unexpected(rest, &format!("in {owner}")))
    }

    /// Whether a type, `(args)` and a name come next. The name may be missing if the type is known.
    fn begins_instance(&self) -> bool {
        let Some(end) = self.scan_type() else { return false };
        let Some(n) = self.behind_parens(end).and_then(|end| self.distance(end)) else { return false };
        self.nth_is_name(n) || self.nth_is(n, ";") && self.begins_type()
    }

    fn state(&mut self, annotations: Annotations) -> ParseResult<State> {
        let start = self.span();
        self.bump();
        let name = self.name("a state")?;
        let open = self.expect("{", "before the statements of a state")?;
        let what = format!("the state `{}`", name.name);
        let mut transition: Option<Transition> = None;
        self.names.open();
        let items = self.items(open, ListContext::Block, &what, |p| {
            if transition.is_some() && !p.is(";") {
                let message = format!("statement after the transition of {what}");
                p.mistaken("statement-after-transition", p.span(), &message, "move it before `transition`");
            }
            if p.is_word("transition") {
                transition = Some(p.transition()?);
                return Ok(None);
            }
            if p.is_word("select") && p.nth_is(1, "(") {
                p.mistaken(
                    "missing-transition",
                    p.span(),
                    "`select` without `transition`",
                    "write `transition select(...)`",
                );
                transition = Some(p.select()?);
                return Ok(None);
            }
            if p.nth_is_name(0) && p.nth_is(1, ";") {
                let target = p.word().unwrap_or("").to_owned();
                let message = format!("expected a statement, found the name `{target}`");
                p.mistaken(
                    "missing-transition",
                    p.span(),
                    &message,
                    &format!("write `transition {target};` to go there"),
                );
                transition = Some(Transition::Direct(p.name("a state")?));
                p.bump();
                return Ok(None);
            }
            let statement = p.statement()?;
            p.check_parser_statement(&statement);
            Ok(Some(statement))
        });
        self.names.close();
        let statements = items.into_iter().flatten().collect();
        Ok(State { annotations, name, statements, transition, span: self.since(start) })
    }

    /// Reports statements that the grammar does not allow in parsers.
    fn check_parser_statement(&mut self, statement: &Stmt) {
        let what = match &statement.kind {
            StmtKind::Switch { .. } => "`switch`",
            StmtKind::Return(_) => "`return`",
            StmtKind::Exit => "`exit`",
            StmtKind::If { then, otherwise, .. } => {
                self.check_parser_statement(then);
                if let Some(otherwise) = otherwise {
                    self.check_parser_statement(otherwise);
                }
                return;
            }
            StmtKind::Block(block) => {
                for statement in &block.statements {
                    self.check_parser_statement(statement);
                }
                return;
            }
            _ => return,
        };
        let message = format!("{what} is not allowed in a parser state");
        let help = "use `transition select(...)` to choose the next state";
        self.diagnostics.push(Diagnostic::error("misplaced-statement", statement.span, message).help(help));
    }

    fn transition(&mut self) -> ParseResult<Transition> {
        self.bump();
        if self.is_word("select") {
            return self.select();
        }
        let name = self.name("a state")?;
        self.semicolon("a transition");
        Ok(Transition::Direct(name))
    }

    fn select(&mut self) -> ParseResult<Transition> {
        let start = self.span();
        self.bump();
        let open = self.expect("(", "after `select`")?;
        let exprs = self.list(open, ")", "after the selected expressions", Self::expr)?;
        let open = self.expect("{", "before the cases of `select`")?;
        let cases = self.nested(|p| Ok(p.items(open, ListContext::Members, "`select`", Self::select_case)))?;
        Ok(Transition::Select { exprs, cases, span: self.since(start) })
    }

    fn select_case(&mut self) -> ParseResult<SelectCase> {
        let start = self.span();
        let keys = self.keyset()?;
        self.expect(":", "after the keyset of a case")?;
        let state: Ident = self.name("a state")?;
        self.semicolon("a case of `select`");
        Ok(SelectCase { keys, state, span: self.since(start) })
    }

    /// Parses `control C<T>(params);` or `control C(params)(constructor params) { ... apply { ... } }`.
    pub(super) fn control(&mut self) -> ParseResult<DeclKind> {
        let ty = self.signature("control")?;
        if self.eat(";") {
            self.names.close();
            return Ok(DeclKind::ControlType(ty));
        }
        let ctor_params = self.constructor_params()?;
        let open = self.expect("{", "before the body of a control, or `;` after its type")?;
        let what = format!("the control `{}`", ty.name.name);
        let errors = self.diagnostics.error_count();
        let items = self.nested(|p| Ok(p.items(open, ListContext::Pipeline, &what, Self::control_item)))?;
        self.names.close();
        let mut locals = Vec::new();
        let mut body: Option<(Block, Span)> = None;
        for item in items {
            match (item, &body) {
                (ControlItem::Local(local), before) => {
                    if let Some((_, at)) = before {
                        let message = "the locals of a control must precede `apply`";
                        let diagnostic = Diagnostic::error("misplaced-declaration", local.span, message);
                        self.diagnostics.push(diagnostic.also(*at, "`apply` block"));
                    }
                    locals.push(*local);
                }
                (ControlItem::Apply(_, at), Some((_, first))) => {
                    let message = "duplicate `apply` block";
                    let diagnostic = Diagnostic::error("duplicate-apply", at, message);
                    self.diagnostics.push(diagnostic.also(*first, "first `apply` block"));
                }
                (ControlItem::Apply(block, at), None) => body = Some((block, at)),
            }
        }
        let body = match body {
            Some((body, _)) => body,
            None => {
                let end = self.before();
                if self.diagnostics.error_count() == errors && !self.stopped {
                    let message = format!("the control `{}` has no `apply` block", ty.name.name);
                    let diagnostic = Diagnostic::error("missing-apply", ty.name.span, message);
                    self.diagnostics.push(diagnostic.help("write `apply { }` before its `}`"));
                }
                Block { annotations: Vec::new(), statements: Vec::new(), span: end }
            }
        };
        Ok(DeclKind::Control(ControlDecl { ty, ctor_params, locals, body }))
    }

    fn control_item(&mut self) -> ParseResult<ControlItem> {
        let annotations = self.annotations()?;
        self.correct_keyword(misspelled::IN_CONTROL);
        let start = self.span();
        let kind = match self.word() {
            Some("apply") if self.nth_is(1, "{") || self.nth_is(1, "@") => {
                self.no_annotations(&annotations, "`apply`");
                self.bump();
                let body = self.block("the apply block")?;
                return Ok(ControlItem::Apply(body, start));
            }
            Some("action") => self.nested(Self::action)?,
            Some("table") => self.nested(Self::table)?,
            Some("state") if self.nth_is(2, "{") => {
                let message = "`state` is not allowed in a control";
                return Err(self.mistaken("misplaced-declaration", start, message, "it belongs in a parser"));
            }
            _ => {
                let local = self.pipeline_local(annotations, "a control", "the `apply` block")?;
                return Ok(ControlItem::Local(Box::new(local)));
            }
        };
        Ok(ControlItem::Local(Box::new(Decl { annotations, kind, span: self.since(start) })))
    }
}
