//! Expressions against the keys of a table or the parameters of an action.
//!
//! The types of what is compared are those of the specification: integers, `bit<w>`, and matches of a kind and a width. Integers
//! become `bit<w>`, and both become matches, where the other side of a comparison asks for it.

use num_bigint::BigInt;

use crate::clause::{Clause, Operand, Test, wrapped};
use crate::expr::{Comparison, Expr, Kind};
use crate::lex::{At, Finding};
use crate::value::{Key, MatchKind, Part};

/// Whose restriction it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Table,
    Action,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Int,
    Bits(u32),
    Match(MatchKind, u32),
}

impl Type {
    fn describe(self) -> String {
        match self {
            Type::Int => "int".to_owned(),
            Type::Bits(width) => format!("bit<{width}>"),
            Type::Match(kind, width) => format!("{}<{width}>", kind.name()),
        }
    }

    fn has_order(self) -> bool {
        matches!(self, Type::Int | Type::Bits(_) | Type::Match(MatchKind::Exact, _))
    }
}

/// The restriction `expr` of something with these keys. `None` if anything is wrong, which `findings` then says.
pub(crate) fn check(expr: &Expr, owner: Owner, keys: &[Key], findings: &mut Vec<Finding>) -> Option<Clause> {
    Check { owner, keys, findings }.clause(expr)
}

struct Check<'a> {
    owner: Owner,
    keys: &'a [Key],
    findings: &'a mut Vec<Finding>,
}

impl Check<'_> {
    fn wrong<T>(&mut self, at: At, message: impl Into<String>) -> Option<T> {
        self.findings.push(Finding::error("restriction-type", at, message));
        None
    }

    /// Each of these; none if one of them is wrong, after all of them have been looked at.
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
            Kind::Bool(truth) => Test::Constant(*truth),
            Kind::Not(inner) => Test::Not(Box::new(self.clause(inner)?)),
            Kind::All(exprs) => Test::All(self.clauses(exprs)?),
            Kind::Any(exprs) => Test::Any(self.clauses(exprs)?),
            Kind::Implies(exprs) => Test::Implies(self.both(exprs)?),
            Kind::Compare(comparison, exprs) => self.compare(*comparison, exprs, expr.at)?,
            _ => {
                let (_, found) = self.operand(expr)?;
                let finding = Finding::error(
                    "restriction-type",
                    expr.at,
                    format!("expected something true or false, found {}", found.describe()),
                );
                self.findings.push(finding.help("compare it with something, as in `key == 1`"));
                return None;
            }
        };
        Some(Clause { test, at: expr.at })
    }

    fn compare(&mut self, comparison: Comparison, exprs: &[Expr; 2], at: At) -> Option<Test> {
        if is_truth(&exprs[0]) && is_truth(&exprs[1]) {
            let both = self.both(exprs)?;
            if comparison.is_ordered() {
                return self.wrong(at, "true and false have no order");
            }
            return Some(Test::Same(comparison == Comparison::Equal, both));
        }
        let (left, right) = (self.operand(&exprs[0]), self.operand(&exprs[1]));
        let ((left, left_type), (right, right_type)) = (left?, right?);
        let Some(target) = upper(left_type, right_type) else {
            let message = format!("{} cannot be compared with {}", left_type.describe(), right_type.describe());
            let mut finding = Finding::error("restriction-type", at, message);
            if let (Type::Match(..), Type::Match(..)) | (Type::Bits(_), _) | (_, Type::Bits(_)) =
                (left_type, right_type)
            {
                finding = finding.help("compare parts of one width, as in `a::value == b::value`");
            }
            self.findings.push(finding);
            return None;
        };
        if comparison.is_ordered() && !target.has_order() {
            let finding =
                Finding::error("restriction-type", at, format!("matches of type {} have no order", target.describe()));
            let part = match target {
                Type::Match(kind, _) => kind.parts()[0].name(),
                _ => "value",
            };
            self.findings.push(finding.help(format!("compare a part of the key, as in `key::{part}`")));
            return None;
        }
        let left = self.convert(left, left_type, target, exprs[0].at);
        let right = self.convert(right, right_type, target, exprs[1].at);
        Some(Test::Compare(comparison, Box::new([left, right])))
    }

    /// `operand` of type `from` as one of type `to`, which is not below it.
    fn convert(&mut self, operand: Operand, from: Type, to: Type, at: At) -> Operand {
        let width = match to {
            Type::Bits(width) | Type::Match(_, width) => width,
            Type::Int => return operand,
        };
        let mut operand = operand;
        if from == Type::Int {
            operand = match operand {
                Operand::Constant(number) => {
                    let fits = wrapped(&number, width);
                    if number > crate::value::ones(width) || number < -(BigInt::from(1) << width.saturating_sub(1)) {
                        self.findings.push(Finding {
                            harmless: true,
                            ..Finding::error(
                                "restriction-constant",
                                at,
                                format!("{number} does not fit into {width} bits and is taken as {fits}"),
                            )
                        });
                    }
                    Operand::Constant(fits)
                }
                other => Operand::Wrapped(Box::new(other), width),
            };
        }
        match to {
            // Exact matches and `bit<w>` are the same number.
            Type::Match(kind, width) if kind != MatchKind::Exact && !matches!(from, Type::Match(..)) => {
                Operand::Exactly(Box::new(operand), kind, width)
            }
            _ => operand,
        }
    }

    fn operand(&mut self, expr: &Expr) -> Option<(Operand, Type)> {
        match &expr.kind {
            Kind::Number(number) => Some((Operand::Constant(number.clone()), Type::Int)),
            Kind::Name(name) => {
                let (key, width) = self.key(name, expr.at)?;
                let kind = self.keys[key].kind;
                let of = if kind == MatchKind::Parameter { Type::Bits(width) } else { Type::Match(kind, width) };
                Some((Operand::Key(key), of))
            }
            Kind::Attribute(name) => self.attribute(name, expr.at),
            Kind::Part(inner, part) => self.part(inner, part, expr.at),
            Kind::Negative(inner) => match self.operand(inner)? {
                (Operand::Constant(number), Type::Int) => Some((Operand::Constant(-number), Type::Int)),
                (operand, Type::Int) => Some((Operand::Negative(Box::new(operand)), Type::Int)),
                (_, found) => {
                    let message = format!("only integers have a negative, and this is {}", found.describe());
                    self.wrong(inner.at, message)
                }
            },
            _ => {
                let found = self.clause(expr)?;
                self.wrong(found.at, "expected a key or a number, found something true or false")
            }
        }
    }

    fn attribute(&mut self, name: &str, at: At) -> Option<(Operand, Type)> {
        if name == "priority" && self.owner == Owner::Table {
            return Some((Operand::Priority, Type::Int));
        }
        let message = match self.owner {
            Owner::Table => format!("entries have no attribute `{name}`"),
            Owner::Action => "actions have no attributes".to_owned(),
        };
        let finding = Finding::error("restriction-name", at, message);
        self.findings.push(match self.owner {
            Owner::Table => finding.help("the one attribute is `::priority`"),
            Owner::Action => finding.help("write `@entry_restriction` at a table for what depends on the entry"),
        });
        None
    }

    fn part(&mut self, inner: &Expr, part: &str, at: At) -> Option<(Operand, Type)> {
        let (operand, of) = self.operand(inner)?;
        let (Operand::Key(key), Type::Match(kind, width)) = (operand, of) else {
            return self.wrong(at, format!("something of type {} has no parts", of.describe()));
        };
        let Some(found) = kind.parts().iter().find(|candidate| candidate.name() == part) else {
            let parts: Vec<_> = kind.parts().iter().map(|part| format!("`::{}`", part.name())).collect();
            let message = format!("a key matched as {} has no part `{part}`", kind.name());
            let finding = Finding::error("restriction-name", at, message);
            self.findings.push(finding.help(format!("it has {}", parts.join(" and "))));
            return None;
        };
        let of = if *found == Part::PrefixLength { Type::Int } else { Type::Bits(width) };
        Some((Operand::Part(key, *found), of))
    }

    /// The key with this name and its width.
    fn key(&mut self, name: &str, at: At) -> Option<(usize, u32)> {
        let what = if self.owner == Owner::Table { "key" } else { "parameter" };
        let Some(found) = self.keys.iter().position(|key| key.name == name) else {
            let whose = if self.owner == Owner::Table { "table" } else { "action" };
            let finding = Finding::error("restriction-name", at, format!("the {whose} has no {what} `{name}`"));
            let near = diagnostics::names::nearest(name, self.keys.iter().map(|key| key.name.as_str()));
            self.findings.push(match near {
                Some(key) => finding.help(format!("did you mean `{key}`?")),
                None if name.chars().all(|c| !c.is_ascii_lowercase()) => {
                    finding.help("macros are not replaced inside a string: write the number")
                }
                None => {
                    let names: Vec<_> = self.keys.iter().take(8).map(|key| format!("`{}`", key.name)).collect();
                    if names.is_empty() { finding } else { finding.help(format!("it has {}", names.join(", "))) }
                }
            });
            return None;
        };
        match self.keys[found].width {
            Some(width) => Some((found, width)),
            None => self.wrong(at, format!("restrictions can speak of numbers only, and {what} `{name}` is none")),
        }
    }
}

/// Whether an expression is something true or false, by its form.
fn is_truth(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Bool(_) | Kind::Not(_) | Kind::All(_) | Kind::Any(_) | Kind::Implies(_) | Kind::Compare(..) => true,
        Kind::Number(_) | Kind::Name(_) | Kind::Attribute(_) | Kind::Part(..) | Kind::Negative(_) => false,
    }
}

/// The type that both become when they are compared.
fn upper(left: Type, right: Type) -> Option<Type> {
    let above = |high: Type, low: Type| match (high, low) {
        (Type::Bits(_) | Type::Match(..), Type::Int) => true,
        (Type::Match(_, width), Type::Bits(other)) => width == other,
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
