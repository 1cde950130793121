//! Parses statements (specification section 12).

use diagnostics::{Diagnostic, Span};

use super::names::Meaning;
use super::recover::{ListContext, found};
use super::{ParseResult, SourceParser, operators};
use crate::ast::{Annotations, Block, Decl, Expr, ExprKind, Stmt, StmtKind, SwitchCase, TypeRef, TypeRefKind};
use crate::lex::TokenKind;

impl SourceParser<'_> {
    /// Parses `{ ... }` with preceding annotations. `what` is, for example, "the body of an action".
    pub(super) fn block(&mut self, what: &str) -> ParseResult<Block> {
        let annotations = self.annotations()?;
        self.nested(|p| p.block_behind(annotations, what))
    }

    fn block_behind(&mut self, annotations: Annotations, what: &str) -> ParseResult<Block> {
        let open = self.expect("{", &format!("at the beginning of {what}"))?;
        self.names.open();
        let statements = self.items(open, ListContext::Block, what, Self::statement);
        self.names.close();
        Ok(Block { annotations, statements, span: self.since(open) })
    }

    /// Parses a statement or local declaration.
    pub(super) fn statement(&mut self) -> ParseResult<Stmt> {
        self.nested(Self::statement_here)
    }

    fn statement_here(&mut self) -> ParseResult<Stmt> {
        let annotations = self.annotations()?;
        let start = self.span();
        if self.is("{") {
            let block = self.block_behind(annotations, "the block")?;
            return Ok(Stmt { annotations: Vec::new(), kind: StmtKind::Block(block), span: self.since(start) });
        }
        if self.is_word("const") || self.begins_variable() {
            let decl = self.local(annotations)?;
            return Ok(Stmt { annotations: Vec::new(), kind: StmtKind::Decl(decl.into()), span: self.since(start) });
        }
        let word = self.word().unwrap_or("").to_owned();
        if word == "for" {
            let mut annotations = annotations;
            let kind = self.for_loop(&mut annotations)?;
            return Ok(Stmt { annotations, kind, span: self.since(start) });
        }
        self.no_annotations(&annotations, "this statement");
        let kind = match word.as_str() {
            "if" => self.conditional()?,
            "switch" => self.switch()?,
            "return" => {
                self.bump();
                let none = self.is(";") || self.is("}") || self.begins_line();
                let value = if none { None } else { Some(self.expr()?) };
                self.semicolon("`return`");
                StmtKind::Return(value)
            }
            "exit" | "break" | "continue" => {
                self.bump();
                self.semicolon(&format!("`{word}`"));
                match word.as_str() {
                    "exit" => StmtKind::Exit,
                    "break" => StmtKind::Break,
                    _ => StmtKind::Continue,
                }
            }
            "while" | "do" if self.nth_is(1, "(") || self.nth_is(1, "{") => {
                let message = format!("P4 has no `{word}`");
                let help = "loops are bounded: `for (bit<8> i = 0; i < 8; i = i + 1) { ... }`";
                let skip = self.mistaken("unexpected-token", start, &message, help);
                self.skip_item();
                if word == "do" && self.is_word("while") {
                    self.skip_item();
                }
                self.settled = true;
                return Err(skip);
            }
            "else" => {
                let help = "is there an extra `;` before it, or is a `}` missing?";
                return Err(self.mistaken("stray-else", start, "`else` without `if`", help));
            }
            "transition" => {
                let message = "`transition` must be the last statement of a state";
                return Err(self.mistaken("misplaced-statement", start, message, "move it to the end of the state"));
            }
            _ if self.eat(";") => StmtKind::Empty,
            _ => {
                let kind = self.simple_statement()?;
                if !matches!(&kind, StmtKind::Decl(_)) {
                    let what = if matches!(kind, StmtKind::Call(_)) { "a call" } else { "an assignment" };
                    self.semicolon(what);
                }
                kind
            }
        };
        Ok(Stmt { annotations: Vec::new(), kind, span: self.since(start) })
    }

    /// Parses an assignment or call without the `;`.
    fn simple_statement(&mut self) -> ParseResult<StmtKind> {
        if !matches!(self.kind(), TokenKind::Ident(_) | TokenKind::Punct("." | "(")) {
            return Err(self.unexpected("a statement", ""));
        }
        let lhs = self.postfix()?;
        let span = self.span();
        let sign = match self.kind() {
            TokenKind::Punct(sign) => *sign,
            _ => "",
        };
        if let Some(op) = operators::assignment(sign) {
            self.bump();
            let rhs = self.expr()?;
            return Ok(StmtKind::Assign { lhs, op, rhs });
        }
        if sign == "==" {
            let message = "a comparison has no effect as a statement";
            self.mistaken("comparison-as-statement", span, message, "write `=` to assign");
            self.bump();
            let rhs = self.expr()?;
            return Ok(StmtKind::Assign { lhs, op: None, rhs });
        }
        if matches!(sign, "++" | "--") && (self.nth_is(1, ";") || self.nth_is(1, ")")) {
            let help = "write `+= 1` instead";
            return Err(self.mistaken("unexpected-token", span, "P4 has no `++` statement", help));
        }
        if self.nth_is_name(0)
            && let ExprKind::Call { callee, type_args, args } = lhs.kind
        {
            return self.late_instance(*callee, type_args, args, lhs.span);
        }
        if matches!(lhs.kind, ExprKind::Call { .. }) {
            return Ok(StmtKind::Call(lhs));
        }
        if self.is(";") {
            let message = "this expression is not a statement";
            let help = "assign it with `=`, or call it with `(...)`";
            self.mistaken("not-a-statement", lhs.span, message, help);
            return self.skip();
        }
        Err(self.unexpected("`=` or `(`", "in a statement"))
    }

    /// Parses `T(args) name;` where `T` is not a known type and was therefore parsed as a call.
    fn late_instance(
        &mut self,
        callee: Expr,
        args: Vec<TypeRef>,
        values: Vec<crate::ast::Arg>,
        start: Span,
    ) -> ParseResult<StmtKind> {
        let ExprKind::Name { absolute, name } = callee.kind else {
            return Err(self.unexpected("`;`", "after a call"));
        };
        if self.begins_line() {
            // Two statements with a missing `;` between them are likelier than an instance over two lines.
            let kind = ExprKind::Call {
                callee: Box::new(Expr { kind: ExprKind::Name { absolute, name }, span: callee.span }),
                type_args: args,
                args: values,
            };
            return Ok(StmtKind::Call(Expr { kind, span: start }));
        }
        let ty = TypeRef { kind: TypeRefKind::Named { absolute, name, args }, span: callee.span };
        let instance = self.instance_named(ty, values)?;
        let kind = crate::ast::DeclKind::Instance(instance);
        let decl = Decl { annotations: Vec::new(), kind, span: self.since(start) };
        Ok(StmtKind::Decl(decl.into()))
    }

    /// Parses the expression in parentheses after `if` and `switch`.
    fn parenthesised(&mut self, what: &str) -> ParseResult<Expr> {
        if !self.is("(") && !self.is("{") && !self.is(";") {
            let message = format!("expected `(` before the {what}, found {}", found(self.peek(0)));
            self.mistaken("unexpected-token", self.span(), &message, "put it in parentheses: `(...)`");
            return self.comparison();
        }
        let open = self.expect("(", &format!("before the {what}"))?;
        let expr = self.comparison()?;
        self.expect_close(")", open, &format!("after the {what}"));
        Ok(expr)
    }

    fn conditional(&mut self) -> ParseResult<StmtKind> {
        self.bump();
        let condition = self.parenthesised("condition of `if`")?;
        let then = self.branch("`if`")?;
        let otherwise = if self.eat_word("else") { Some(self.branch("`else`")?.into()) } else { None };
        Ok(StmtKind::If { condition, then: then.into(), otherwise })
    }

    /// Parses the statement after `if`, `else` or a loop's head, which cannot be a declaration.
    fn branch(&mut self, of: &str) -> ParseResult<Stmt> {
        self.names.open();
        let statement = self.statement()?;
        self.names.close();
        if let StmtKind::Decl(_) = statement.kind {
            let message = format!("a declaration cannot be the only statement after {of}");
            let diagnostic = Diagnostic::error("misplaced-declaration", statement.span, message);
            self.diagnostics.push(diagnostic.help("put it in a block with the statements that use it"));
        }
        Ok(statement)
    }

    fn switch(&mut self) -> ParseResult<StmtKind> {
        self.bump();
        let subject = self.parenthesised("subject of `switch`")?;
        let open = self.expect("{", "before the cases of `switch`")?;
        let cases = self.items(open, ListContext::Members, "`switch`", |p| p.nested(Self::switch_case));
        Ok(StmtKind::Switch { subject, cases })
    }

    fn switch_case(&mut self) -> ParseResult<SwitchCase> {
        let start = self.span();
        if self.is_word("case") && !self.nth_is(1, ":") && !self.nth_is(1, ".") {
            self.mistaken("unexpected-token", start, "P4 has no `case`", "write the label alone: `label: { ... }`");
            self.bump();
        }
        let span = self.span();
        let label = if self.eat_word("default") {
            Expr { kind: ExprKind::Default, span }
        } else if self.is("{") {
            return Err(self.unexpected("a label", "of `switch`"));
        } else {
            self.expr()?
        };
        self.expect(":", "after the label of a case")?;
        let body = if self.is("{") || self.is("@") { Some(self.block("the body of a case")?) } else { None };
        Ok(SwitchCase { label, body, span: self.since(start) })
    }

    /// Parses `for (init; condition; update) body` or `for (T x in range) body`. Annotations of the variable of the
    /// second form join those of the statement, which has no other declarations.
    fn for_loop(&mut self, annotations: &mut Annotations) -> ParseResult<StmtKind> {
        self.bump();
        let open = self.expect("(", "after `for`")?;
        self.names.open();
        let start = self.at;
        let result = self.for_head(annotations, open);
        if result.is_err() && !self.settled {
            self.skip_for(start)?;
        }
        let kind = result?;
        self.names.close();
        Ok(kind)
    }

    /// Skips a loop whose head, from token `start` on, could not be parsed, so that its clauses are not parsed as
    /// statements.
    fn skip_for(&mut self, start: usize) -> ParseResult<()> {
        let mistake = self.at;
        self.at = start;
        self.half = None;
        while !self.at_end() && (self.at < mistake || !(self.is(")") || self.is("{") || self.is("}"))) {
            self.bump();
        }
        self.eat(")");
        if self.is("{") {
            self.block("the body of `for`")?;
        }
        self.settled = self.at > mistake;
        self.skip()
    }

    fn for_head(&mut self, own: &mut Annotations, open: Span) -> ParseResult<StmtKind> {
        let mut annotations = self.annotations()?;
        if self.nth_is_name(0) && self.nth_word(1) == Some("in") {
            own.append(&mut annotations);
            return self.for_in(None, open);
        }
        let typed = self.scan_type().and_then(|end| self.distance(end));
        if typed.is_some_and(|n| self.nth_word(n).is_some() && self.nth_word(n + 1) == Some("in")) {
            let ty = self.nested(Self::ty)?;
            own.append(&mut annotations);
            return self.for_in(Some(ty), open);
        }
        let init = self.for_clause(";", annotations, true)?;
        self.expect(";", "after the first clause of `for`")?;
        let condition = self.comparison()?;
        self.expect(";", "after the condition of `for`")?;
        let update = self.for_clause(")", Vec::new(), false)?;
        self.expect_close(")", open, "after the clauses of `for`");
        let body = self.branch("`for`")?;
        Ok(StmtKind::For { init, condition, update, body: body.into() })
    }

    /// Parses statements separated by `,` up to `end`.
    fn for_clause(&mut self, end: &str, mut annotations: Annotations, declares: bool) -> ParseResult<Vec<Stmt>> {
        let mut statements = Vec::new();
        while !self.is(end) {
            let start = self.span();
            if !annotations.is_empty() || self.is("@") {
                annotations.append(&mut self.annotations()?);
            }
            let kind = if declares && self.begins_variable() {
                let kind = self.variable(false)?;
                let annotations = std::mem::take(&mut annotations);
                StmtKind::Decl(Box::new(Decl { annotations, kind, span: self.since(start) }))
            } else {
                self.simple_statement()?
            };
            self.no_annotations(&annotations, "this statement");
            annotations.clear();
            statements.push(Stmt { annotations: Vec::new(), kind, span: self.since(start) });
            if !self.eat(",") {
                break;
            }
        }
        Ok(statements)
    }

    fn for_in(&mut self, ty: Option<TypeRef>, open: Span) -> ParseResult<StmtKind> {
        let name = self.name("a variable")?;
        if ty.is_some() {
            self.names.declare(&name.name, Meaning::Value);
        }
        self.expect_word("in", "after the variable of `for`")?;
        let range = self.key()?;
        self.expect_close(")", open, "after the values of `for`");
        let body = self.branch("`for`")?;
        Ok(StmtKind::ForIn { ty, name, range, body: body.into() })
    }
}
