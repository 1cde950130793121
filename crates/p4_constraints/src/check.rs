//! Checks expressions against the keys of a table or the parameters of an action.
//!
//! Operands have the types of the specification: integers, `bit<w>`, and matches of a kind and a width. Integers
//! convert to `bit<w>`, and both convert to matches, as the other side of a comparison requires.

use num_bigint::BigInt;

use crate::clause::{Clause, Operand, Test, wrapped};
use crate::expr::{Comparison, Expr, ExprKind};
use crate::lex::{Finding, TextRange};
use crate::value::{KeyPart, KeySpec, MatchKind};

/// Kind of object that a restriction belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Table,
    Action,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OperandType {
    Int,
    Bits(u32),
    Match(MatchKind, u32),
}

impl OperandType {
    fn describe(self) -> String {
        match self {
            OperandType::Int => "int".to_owned(),
            OperandType::Bits(width) => format!("bit<{width}>"),
            OperandType::Match(kind, width) => format!("{}<{width}>", kind.name()),
        }
    }

    /// Whether it is the type of a key, or a part of a key, that is a string to the control plane.
    fn is_string(self) -> bool {
        matches!(self, OperandType::Bits(0) | OperandType::Match(_, 0))
    }

    fn has_order(self) -> bool {
        matches!(self, OperandType::Int | OperandType::Bits(_) | OperandType::Match(MatchKind::Exact, _))
    }
}

/// Checks the restriction `expr` of an object with these keys. Returns `None` if there is an error, which is then in
/// `findings`. A conjunct that refers to a field that restrictions cannot read is left out, with a warning; if no other
/// is left, the result is `None` as well.
pub(crate) fn check(expr: &Expr, owner: Owner, keys: &[KeySpec], findings: &mut Vec<Finding>) -> Option<Clause> {
    let mut conjuncts = Vec::new();
    collect_conjuncts(expr, &mut conjuncts);
    let mut check = TypeCheck { owner, keys, findings, reported: vec![false; keys.len()] };
    let (mut kept, mut has_errors) = (Vec::new(), false);
    for conjunct in conjuncts {
        let before = check.findings.len();
        match check.clause(conjunct) {
            Some(clause) => kept.push(clause),
            None => has_errors |= check.findings[before..].iter().any(|finding| !finding.harmless),
        }
    }
    if has_errors || kept.is_empty() {
        return None;
    }
    Some(if kept.len() == 1 { kept.remove(0) } else { Clause { test: Test::All(kept), at: expr.at } })
}

/// Collects the expressions that have to hold each by itself.
fn collect_conjuncts<'a>(expr: &'a Expr, out: &mut Vec<&'a Expr>) {
    match &expr.kind {
        ExprKind::All(exprs) => exprs.iter().for_each(|expr| collect_conjuncts(expr, out)),
        _ => out.push(expr),
    }
}

struct TypeCheck<'a> {
    owner: Owner,
    keys: &'a [KeySpec],
    findings: &'a mut Vec<Finding>,
    /// For each key, whether a warning explained that it is a string.
    reported: Vec<bool>,
}

impl TypeCheck<'_> {
    fn wrong<T>(&mut self, at: TextRange, message: impl Into<String>) -> Option<T> {
        self.findings.push(Finding::error("restriction-type", at, message));
        None
    }

    /// Warns that the conjunct at hand is not enforced.
    fn left_out<T>(&mut self, at: TextRange, why: impl std::fmt::Display) -> Option<T> {
        let finding = Finding::error("restriction-ignored", at, format!("{why}: this condition is not enforced"));
        let finding =
            finding.help("restrictions read numbers only; remove the condition, or check it in the controller");
        self.findings.push(Finding { harmless: true, ..finding });
        None
    }

    /// Checks every expression. Returns `None` if one of them is wrong, but only after checking all of them.
    fn clauses(&mut self, exprs: &[Expr]) -> Option<Vec<Clause>> {
        let clauses: Vec<_> = exprs.iter().map(|expr| self.clause(expr)).collect();
        clauses.into_iter().collect()
    }

    fn both(&mut self, exprs: &[Expr; 2]) -> Option<Box<[Clause; 2]>> {
        let (left, right) = (self.clause(&exprs[0]), self.clause(&exprs[1]));
        Some(Box::new([left?, right?]))
    }

    fn clause(&mut self, expr: &Expr) -> Option<Clause> {
        let test = match &expr.kind {
            ExprKind::Bool(truth) => Test::Constant(*truth),
            ExprKind::Not(inner) => Test::Not(Box::new(self.clause(inner)?)),
            ExprKind::All(exprs) => Test::All(self.clauses(exprs)?),
            ExprKind::Any(exprs) => Test::Any(self.clauses(exprs)?),
            ExprKind::Implies(exprs) => Test::Implies(self.both(exprs)?),
            ExprKind::Compare(comparison, exprs) => self.compare(*comparison, exprs, expr.at)?,
            _ => {
                let (_, found) = self.operand(expr)?;
                let finding = Finding::error(
                    "restriction-type",
                    expr.at,
                    format!("expected a Boolean, found {}", found.describe()),
                );
                self.findings.push(finding.help("compare it with a value, as in `key == 1`"));
                return None;
            }
        };
        Some(Clause { test, at: expr.at })
    }

    fn compare(&mut self, comparison: Comparison, exprs: &[Expr; 2], at: TextRange) -> Option<Test> {
        if is_truth(&exprs[0]) && is_truth(&exprs[1]) {
            let both = self.both(exprs)?;
            if comparison.is_ordered() {
                return self.wrong(at, "Booleans cannot be ordered");
            }
            return Some(Test::Same(comparison == Comparison::Equal, both));
        }
        let (left, right) = (self.operand(&exprs[0]), self.operand(&exprs[1]));
        let ((left, left_type), (right, right_type)) = (left?, right?);
        let Some(target) = upper(left_type, right_type) else {
            if left_type.is_string() || right_type.is_string() {
                return self.left_out(at, "a string cannot be compared with a number of the entry");
            }
            let message = format!("{} cannot be compared with {}", left_type.describe(), right_type.describe());
            let mut finding = Finding::error("restriction-type", at, message);
            if let (OperandType::Match(..), OperandType::Match(..))
            | (OperandType::Bits(_), _)
            | (_, OperandType::Bits(_)) = (left_type, right_type)
            {
                finding = finding.help("compare parts of the same width, as in `a::value == b::value`");
            }
            self.findings.push(finding);
            return None;
        };
        if comparison.is_ordered() && !target.has_order() {
            let message = format!("values of type {} cannot be ordered", target.describe());
            let finding = Finding::error("restriction-type", at, message);
            let part = match target {
                OperandType::Match(kind, _) => kind.parts()[0].name(),
                _ => "value",
            };
            self.findings.push(finding.help(format!("compare a part of the key, as in `key::{part}`")));
            return None;
        }
        let left = self.convert(left, left_type, target, exprs[0].at);
        let right = self.convert(right, right_type, target, exprs[1].at);
        Some(Test::Compare(comparison, Box::new([left, right])))
    }

    /// Converts `operand` of type `from` to type `to`, which ranks no lower.
    fn convert(&mut self, operand: Operand, from: OperandType, to: OperandType, at: TextRange) -> Operand {
        let width = match to {
            OperandType::Bits(width) | OperandType::Match(_, width) => width,
            OperandType::Int => return operand,
        };
        let mut operand = operand;
        if from == OperandType::Int {
            operand = match operand {
                Operand::Constant(number) => {
                    let fits = wrapped(&number, width);
                    let lowest = -(BigInt::from(1) << width.saturating_sub(1));
                    // That numbers beside a string count as 0 is reported at its name.
                    if width > 0 && (number > crate::value::ones(width) || number < lowest) {
                        self.findings.push(Finding {
                            harmless: true,
                            ..Finding::error(
                                "restriction-constant",
                                at,
                                format!("{number} does not fit in {width} bits and is truncated to {fits}"),
                            )
                        });
                    }
                    Operand::Constant(fits)
                }
                other => Operand::Wrapped(Box::new(other), width),
            };
        }
        match to {
            // An exact match and a `bit<w>` are the same number.
            OperandType::Match(kind, width) if kind != MatchKind::Exact && !matches!(from, OperandType::Match(..)) => {
                Operand::Exactly(Box::new(operand), kind, width)
            }
            _ => operand,
        }
    }

    fn operand(&mut self, expr: &Expr) -> Option<(Operand, OperandType)> {
        match &expr.kind {
            ExprKind::Number(number) => Some((Operand::Constant(number.clone()), OperandType::Int)),
            ExprKind::Name(name) => {
                let (key, width) = self.key(name, expr.at)?;
                let kind = self.keys[key].kind;
                let of = if kind == MatchKind::Parameter {
                    OperandType::Bits(width)
                } else {
                    OperandType::Match(kind, width)
                };
                Some((Operand::Key(key), of))
            }
            ExprKind::Attribute(name) => self.attribute(name, expr.at),
            ExprKind::Part(inner, part) => self.part(inner, part, expr.at),
            ExprKind::Negative(inner) => match self.operand(inner)? {
                (Operand::Constant(number), OperandType::Int) => Some((Operand::Constant(-number), OperandType::Int)),
                (operand, OperandType::Int) => Some((Operand::Negative(Box::new(operand)), OperandType::Int)),
                (_, found) => {
                    let message = format!("only an integer can be negated, and this is {}", found.describe());
                    self.wrong(inner.at, message)
                }
            },
            _ => {
                let found = self.clause(expr)?;
                self.wrong(found.at, "expected a key or a number, found a Boolean")
            }
        }
    }

    fn attribute(&mut self, name: &str, at: TextRange) -> Option<(Operand, OperandType)> {
        if name == "priority" && self.owner == Owner::Table {
            return Some((Operand::Priority, OperandType::Int));
        }
        let message = match self.owner {
            Owner::Table => format!("entries have no attribute `{name}`"),
            Owner::Action => "actions have no attributes".to_owned(),
        };
        let finding = Finding::error("restriction-name", at, message);
        self.findings.push(match self.owner {
            Owner::Table => finding.help("the only attribute is `::priority`"),
            Owner::Action => finding.help("use `@entry_restriction` on the table for conditions on the entry"),
        });
        None
    }

    fn part(&mut self, inner: &Expr, part: &str, at: TextRange) -> Option<(Operand, OperandType)> {
        let (operand, of) = self.operand(inner)?;
        let (Operand::Key(key), OperandType::Match(kind, width)) = (operand, of) else {
            return self.wrong(at, format!("a value of type {} has no parts", of.describe()));
        };
        let Some(found) = kind.parts().iter().find(|candidate| candidate.name() == part) else {
            let parts: Vec<_> = kind.parts().iter().map(|part| format!("`::{}`", part.name())).collect();
            let message = format!("a key matched as {} has no part `{part}`", kind.name());
            let finding = Finding::error("restriction-name", at, message);
            self.findings.push(finding.help(format!("it has {}", parts.join(" and "))));
            return None;
        };
        let of = if *found == KeyPart::PrefixLength { OperandType::Int } else { OperandType::Bits(width) };
        Some((Operand::Part(key, *found), of))
    }

    /// Returns the key with this name and its width.
    fn key(&mut self, name: &str, at: TextRange) -> Option<(usize, u32)> {
        let what = if self.owner == Owner::Table { "key" } else { "parameter" };
        let Some(found) = self.keys.iter().position(|key| key.name == name) else {
            let whose = if self.owner == Owner::Table { "table" } else { "action" };
            let finding = Finding::error("restriction-name", at, format!("the {whose} has no {what} `{name}`"));
            let near = diagnostics::names::nearest(name, self.keys.iter().map(|key| key.name.as_str()));
            self.findings.push(match near {
                Some(key) => finding.help(format!("did you mean `{key}`?")),
                None if name.chars().all(|c| !c.is_ascii_lowercase()) => finding.help(
                    "macros are expanded in a string from its second line on: write the number, or start a new line",
                ),
                None => {
                    let names: Vec<_> = self.keys.iter().take(8).map(|key| format!("`{}`", key.name)).collect();
                    if names.is_empty() { finding } else { finding.help(format!("it has {}", names.join(", "))) }
                }
            });
            return None;
        };
        let key = &self.keys[found];
        let Some(width) = key.width else {
            let is_string = key.kind == MatchKind::Parameter;
            let why = if is_string { "is a string to the control plane" } else { "has a match kind of its own" };
            return self.left_out(at, format!("{what} `{name}` {why}"));
        };
        if key.is_string() && !std::mem::replace(&mut self.reported[found], true) {
            let message = format!("key `{name}` is a string to the control plane: every number beside it counts as 0");
            let finding = Finding::error("restriction-string", at, message);
            let finding = finding.help("only the empty string is 0, so `key != 0` and `key == 0` can be meant");
            self.findings.push(Finding { harmless: true, ..finding });
        }
        Some((found, width))
    }
}

/// Whether an expression is boolean, judged by its form.
fn is_truth(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Bool(_)
        | ExprKind::Not(_)
        | ExprKind::All(_)
        | ExprKind::Any(_)
        | ExprKind::Implies(_)
        | ExprKind::Compare(..) => true,
        ExprKind::Number(_)
        | ExprKind::Name(_)
        | ExprKind::Attribute(_)
        | ExprKind::Part(..)
        | ExprKind::Negative(_) => false,
    }
}

/// Returns the type to which both sides of a comparison convert.
fn upper(left: OperandType, right: OperandType) -> Option<OperandType> {
    let above = |high: OperandType, low: OperandType| match (high, low) {
        (OperandType::Bits(_) | OperandType::Match(..), OperandType::Int) => true,
        (OperandType::Match(_, width), OperandType::Bits(other)) => width == other,
        _ => high == low,
    };
    if above(left, right) {
        Some(left)
    } else if above(right, left) {
        Some(right)
    } else {
        None
    }
}
