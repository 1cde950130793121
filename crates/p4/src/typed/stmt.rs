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

/// A direct part of a statement.
#[derive(Clone, Copy, Debug)]
pub enum StmtPart<'p> {
    /// An expression, evaluated or assigned to.
    Expr(&'p Expr),
    /// A call.
    Call(&'p Call),
    /// A statement.
    Stmt(&'p Stmt),
    /// A block.
    Block(&'p Block),
}

impl Stmt {
    /// Visits the direct parts in the order of the source.
    pub fn for_each_part<'p>(&'p self, visit: &mut dyn FnMut(StmtPart<'p>)) {
        use StmtPart as Part;
        match &self.kind {
            StmtKind::Var(_, init) => init.iter().for_each(|init| visit(Part::Expr(init))),
            StmtKind::Assign { lhs, rhs, .. } => [lhs, rhs].into_iter().for_each(|e| visit(Part::Expr(e))),
            StmtKind::Call(call) => visit(Part::Call(call)),
            StmtKind::If(condition, then, otherwise) => {
                visit(Part::Expr(condition));
                [Some(then), otherwise.as_ref()].into_iter().flatten().for_each(|stmt| visit(Part::Stmt(stmt)));
            }
            StmtKind::Switch { subject, cases, default } => {
                visit(Part::Expr(subject));
                cases.iter().map(|(_, block)| block).chain(default).for_each(|block| visit(Part::Block(block)));
            }
            StmtKind::SwitchAction { apply, cases, default, .. } => {
                visit(Part::Call(apply));
                cases.iter().map(|(_, block)| block).chain(default).for_each(|block| visit(Part::Block(block)));
            }
            StmtKind::For { init, condition, update, body } => {
                init.iter().chain(update).for_each(|stmt| visit(Part::Stmt(stmt)));
                visit(Part::Expr(condition));
                visit(Part::Stmt(body));
            }
            StmtKind::ForRange { low, high, body, .. } => {
                [low, high].into_iter().for_each(|e| visit(Part::Expr(e)));
                visit(Part::Stmt(body));
            }
            StmtKind::ForEach { items, body, .. } => {
                visit(Part::Expr(items));
                visit(Part::Stmt(body));
            }
            StmtKind::Block(block) => visit(Part::Block(block)),
            StmtKind::Return(value) => value.iter().for_each(|value| visit(Part::Expr(value))),
            StmtKind::Exit | StmtKind::Break | StmtKind::Continue | StmtKind::Empty => {}
        }
    }
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
