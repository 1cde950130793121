//! Defines typed statements.

use diagnostics::Span;

use super::*;
use crate::ast::BinaryOp;

/// Statements in order, in a scope of their own.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The statements.
    pub statements: Vec<Stmt>,
    /// Annotations (`@atomic`).
    pub annotations: Vec<Annotation>,
    /// From brace to brace.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// Kind and content.
    pub kind: StmtKind,
    /// Source span.
    pub span: Span,
}

/// The kinds of statement.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// A variable declaration.
    Var(VarId, Option<Expr>),
    /// `lhs = rhs`. With an operator, `lhs = lhs op rhs` with `lhs` evaluated once.
    Assign {
        /// An lvalue.
        lhs: Expr,
        /// The operator of a compound assignment.
        op: Option<BinaryOp>,
        /// The value.
        rhs: Expr,
    },
    /// A call whose value, if any, is not used.
    Call(Call),
    /// `if`
    If(Expr, Box<Stmt>, Option<Box<Stmt>>),
    /// `switch` on a value: the first case with an equal label, else `default`.
    Switch {
        /// Compared expressions.
        subject: Expr,
        /// Labels (constants of the subject's type) and bodies; fall-through is resolved into several labels.
        cases: Vec<(Vec<Expr>, Block)>,
        /// The `default` body.
        default: Option<Block>,
    },
    /// `switch (t.apply().action_run)`: labels are indices into the table's actions.
    SwitchAction {
        /// The apply.
        apply: Call,
        /// The table.
        table: TableId,
        /// Labels and bodies.
        cases: Vec<(Vec<usize>, Block)>,
        /// The `default` body.
        default: Option<Block>,
    },
    /// `for (init; condition; update) body`
    For {
        /// Executed before the first iteration.
        init: Vec<Stmt>,
        /// Condition of another iteration.
        condition: Expr,
        /// Executed after each iteration, including those ended by `continue`.
        update: Vec<Stmt>,
        /// The body.
        body: Box<Stmt>,
    },
    /// `for (v in low .. high) body`; both bounds inclusive, evaluated once.
    ForRange {
        /// The variable.
        var: VarId,
        /// First value.
        low: Expr,
        /// Last value.
        high: Expr,
        /// The body.
        body: Box<Stmt>,
    },
    /// `for (v in list) body` over a list's values or a stack's elements.
    ForEach {
        /// The variable.
        var: VarId,
        /// Iterated values.
        items: Expr,
        /// The body.
        body: Box<Stmt>,
    },
    /// A nested block.
    Block(Block),
    /// `return`
    Return(Option<Expr>),
    /// `exit`
    Exit,
    /// `break`
    Break,
    /// `continue`
    Continue,
    /// Nothing.
    Empty,
}
