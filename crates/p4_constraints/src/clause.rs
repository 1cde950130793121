//! Evaluates a checked restriction on an entry.

use num_bigint::BigInt;
use num_traits::{One, Signed};

use crate::expr::Comparison;
use crate::lex::TextRange;
use crate::value::{KeyPart, MatchKind, MatchValue};

/// A condition on an entry, and its position in the text.
#[derive(Clone, Debug)]
pub(crate) struct Clause {
    pub(crate) test: Test,
    pub(crate) at: TextRange,
}

#[derive(Clone, Debug)]
pub(crate) enum Test {
    Constant(bool),
    Not(Box<Clause>),
    All(Vec<Clause>),
    Any(Vec<Clause>),
    Implies(Box<[Clause; 2]>),
    /// For `true`, both hold or neither does; for `false`, exactly one holds.
    Same(bool, Box<[Clause; 2]>),
    Compare(Comparison, Box<[Operand; 2]>),
}

/// An operand. Both sides of a comparison are numbers, or both are matches of one kind.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Constant(BigInt),
    /// Index of one of the table's keys, or the action's parameters.
    Key(usize),
    Part(usize, KeyPart),
    Priority,
    Negative(Box<Operand>),
    /// Modulo `2^width`.
    Wrapped(Box<Operand>, u32),
    /// The match of exactly this number.
    Exactly(Box<Operand>, MatchKind, u32),
}

/// The values of an entry that restrictions can read.
pub(crate) struct EntryValues {
    pub(crate) keys: Vec<MatchValue>,
    pub(crate) priority: i32,
}

impl Clause {
    /// Whether the clause holds for these values.
    pub(crate) fn holds(&self, seen: &EntryValues) -> bool {
        match &self.test {
            Test::Constant(truth) => *truth,
            Test::Not(clause) => !clause.holds(seen),
            Test::All(clauses) => clauses.iter().all(|clause| clause.holds(seen)),
            Test::Any(clauses) => clauses.iter().any(|clause| clause.holds(seen)),
            Test::Implies(both) => !both[0].holds(seen) || both[1].holds(seen),
            Test::Same(same, both) => (both[0].holds(seen) == both[1].holds(seen)) == *same,
            Test::Compare(comparison, both) => {
                let (left, right) = (both[0].value(seen), both[1].value(seen));
                match comparison {
                    Comparison::Equal => left == right,
                    Comparison::NotEqual => left != right,
                    ordered => compare(*ordered, &left, &right),
                }
            }
        }
    }

    /// Collects the smallest conjuncts that have to hold and do not.
    pub(crate) fn failing<'a>(&'a self, seen: &EntryValues, out: &mut Vec<&'a Clause>) {
        match &self.test {
            Test::All(clauses) => clauses.iter().for_each(|clause| clause.failing(seen, out)),
            _ if !self.holds(seen) => out.push(self),
            _ => {}
        }
    }

    /// Calls `with` for every operand that refers to the entry, in textual order.
    pub(crate) fn mentions(&self, with: &mut dyn FnMut(&Operand)) {
        match &self.test {
            Test::Constant(_) => {}
            Test::Not(clause) => clause.mentions(with),
            Test::All(clauses) | Test::Any(clauses) => clauses.iter().for_each(|clause| clause.mentions(with)),
            Test::Implies(both) | Test::Same(_, both) => both.iter().for_each(|clause| clause.mentions(with)),
            Test::Compare(_, both) => both.iter().for_each(|operand| operand.mentions(with)),
        }
    }
}

/// Compares two values. Only numbers are ordered; the type check rejects ordered comparisons of anything else.
fn compare(comparison: Comparison, left: &MatchValue, right: &MatchValue) -> bool {
    let (MatchValue::Number(left), MatchValue::Number(right)) = (left, right) else { return false };
    match comparison {
        Comparison::Less => left < right,
        Comparison::LessEqual => left <= right,
        Comparison::Greater => left > right,
        Comparison::GreaterEqual => left >= right,
        Comparison::Equal => left == right,
        Comparison::NotEqual => left != right,
    }
}

/// Returns `number` modulo `2^width`, which is not negative.
pub(crate) fn wrapped(number: &BigInt, width: u32) -> BigInt {
    let size = BigInt::one() << width;
    let rest = number % &size;
    if rest.is_negative() { rest + size } else { rest }
}

impl Operand {
    fn number(&self, seen: &EntryValues) -> BigInt {
        match self.value(seen) {
            MatchValue::Number(number) => number,
            _ => BigInt::default(),
        }
    }

    fn value(&self, seen: &EntryValues) -> MatchValue {
        MatchValue::Number(match self {
            Operand::Constant(number) => number.clone(),
            Operand::Key(key) => return seen.keys[*key].clone(),
            Operand::Part(key, part) => seen.keys[*key].part(*part),
            Operand::Priority => seen.priority.into(),
            Operand::Negative(operand) => -operand.number(seen),
            Operand::Wrapped(operand, width) => wrapped(&operand.number(seen), *width),
            Operand::Exactly(operand, kind, width) => return MatchValue::exactly(*kind, *width, operand.number(seen)),
        })
    }

    fn mentions(&self, with: &mut dyn FnMut(&Operand)) {
        match self {
            Operand::Constant(_) => {}
            Operand::Key(_) | Operand::Part(..) | Operand::Priority => with(self),
            Operand::Negative(operand) | Operand::Wrapped(operand, _) | Operand::Exactly(operand, ..) => {
                operand.mentions(with);
            }
        }
    }

    /// Formats the operand's value in an entry: numbers of the entry in hexadecimal, counts in decimal.
    pub(crate) fn shown(&self, seen: &EntryValues) -> String {
        match self {
            Operand::Priority | Operand::Part(_, KeyPart::PrefixLength) => self.number(seen).to_string(),
            _ => self.value(seen).to_string(),
        }
    }
}
