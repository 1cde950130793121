//! Defines statements as written.

use diagnostics::Span;

use super::{Annotations, BinaryOp, Decl, Expr, Ident, TypeRef};

/// A statement or local declaration.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// Annotations of a `for`; empty elsewhere: blocks and declarations carry their own.
    pub annotations: Annotations,
    /// Kind and content.
    pub kind: StmtKind,
    /// Source span.
    pub span: Span,
}

/// `{ ... }`
#[derive(Clone, Debug)]
pub struct Block {
    /// Annotations before the brace.
    pub annotations: Annotations,
    /// Statements in order.
    pub statements: Vec<Stmt>,
    /// From brace to brace.
    pub span: Span,
}

/// The kinds of statement.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// A constant, variable or instance.
    Decl(Box<Decl>),
    /// `a = b;`, or `a op= b;`
    Assign {
        /// Destination.
        lhs: Expr,
        /// The operator of a compound assignment.
        op: Option<BinaryOp>,
        /// Value.
        rhs: Expr,
    },
    /// A call as a statement, including direct invocation (`C.apply(...)` on a type).
    Call(Expr),
    /// `if (c) a else b`
    If {
        /// Condition.
        condition: Expr,
        /// Taken when true.
        then: Box<Stmt>,
        /// Taken when false.
        otherwise: Option<Box<Stmt>>,
    },
    /// `switch (e) { ... }`
    Switch {
        /// The compared value, or `t.apply().action_run`.
        subject: Expr,
        /// Cases in order.
        cases: Vec<SwitchCase>,
    },
    /// `for (init; cond; update) body`
    For {
        /// Declarations and assignments before the first iteration.
        init: Vec<Stmt>,
        /// Condition.
        condition: Expr,
        /// Assignments after each iteration.
        update: Vec<Stmt>,
        /// Body.
        body: Box<Stmt>,
    },
    /// `for (T x in range-or-list) body`
    ForIn {
        /// The variable's type; absent when an existing variable is used.
        ty: Option<TypeRef>,
        /// The variable.
        name: Ident,
        /// `a .. b` or a list or stack.
        range: Expr,
        /// Body.
        body: Box<Stmt>,
    },
    /// A nested block.
    Block(Block),
    /// `return e;`
    Return(Option<Expr>),
    /// `exit;`
    Exit,
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `;`
    Empty,
}

/// `label: block`; without a block, it falls through to the next case with one.
#[derive(Clone, Debug)]
pub struct SwitchCase {
    /// An action's name, an expression, or `default`.
    pub label: Expr,
    /// Body of the case.
    pub body: Option<Block>,
    /// The whole case.
    pub span: Span,
}
