//! A restriction that makes sense, and what it says of an entry.

use num_bigint::BigInt;
use num_traits::{One, Signed};

use crate::expr::Comparison;
use crate::lex::At;
use crate::value::{MatchKind, Matched, Part};

/// Something that is true of an entry or not, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Clause {
    pub(crate) test: Test,
    pub(crate) at: At,
}

#[derive(Clone, Debug)]
pub(crate) enum Test {
    Constant(bool),
    Not(Box<Clause>),
    All(Vec<Clause>),
    Any(Vec<Clause>),
    Implies(Box<[Clause; 2]>),
    /// Whether both are true or both are false, for `true`; the opposite for `false`.
    Same(bool, Box<[Clause; 2]>),
    Compare(Comparison, Box<[Operand; 2]>),
}

/// Something with a value. Both sides of a comparison are numbers, or both are matches of one kind.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Constant(BigInt),
    /// A number of the table's keys, or the action's parameters.
    Key(usize),
    Part(usize, Part),
    Priority,
    Negative(Box<Operand>),
    /// Modulo `2^width`.
    Wrapped(Box<Operand>, u32),
    /// The match of exactly this number.
    Exactly(Box<Operand>, MatchKind, u32),
}

/// What restrictions see of an entry.
pub(crate) struct Seen {
    pub(crate) keys: Vec<Matched>,
    pub(crate) priority: i32,
}

impl Clause {
    /// Whether the clause is true of what is seen.
    pub(crate) fn holds(&self, seen: &Seen) -> bool {
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

    /// The smallest conjuncts of which each has to hold, and does not.
    pub(crate) fn failing<'a>(&'a self, seen: &Seen, out: &mut Vec<&'a Clause>) {
        match &self.test {
            Test::All(clauses) => clauses.iter().for_each(|clause| clause.failing(seen, out)),
            _ if !self.holds(seen) => out.push(self),
            _ => {}
        }
    }

    /// Calls `with` for every operand that names something of the entry, in the order of the text.
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

/// Only numbers have an order; the check sees to it that nothing else comes here.
fn compare(comparison: Comparison, left: &Matched, right: &Matched) -> bool {
    let (Matched::Number(left), Matched::Number(right)) = (left, right) else { return false };
    match comparison {
        Comparison::Less => left < right,
        Comparison::LessEqual => left <= right,
        Comparison::Greater => left > right,
        Comparison::GreaterEqual => left >= right,
        Comparison::Equal => left == right,
        Comparison::NotEqual => left != right,
    }
}

/// `number` modulo `2^width`, not negative.
pub(crate) fn wrapped(number: &BigInt, width: u32) -> BigInt {
    let size = BigInt::one() << width;
    let rest = number % &size;
    if rest.is_negative() { rest + size } else { rest }
}

impl Operand {
    fn number(&self, seen: &Seen) -> BigInt {
        match self.value(seen) {
            Matched::Number(number) => number,
            _ => BigInt::default(),
        }
    }

    fn value(&self, seen: &Seen) -> Matched {
        Matched::Number(match self {
            Operand::Constant(number) => number.clone(),
            Operand::Key(key) => return seen.keys[*key].clone(),
            Operand::Part(key, part) => seen.keys[*key].part(*part),
            Operand::Priority => seen.priority.into(),
            Operand::Negative(operand) => -operand.number(seen),
            Operand::Wrapped(operand, width) => wrapped(&operand.number(seen), *width),
            Operand::Exactly(operand, kind, width) => return Matched::exactly(*kind, *width, operand.number(seen)),
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

    /// What it has in an entry, as people read it: numbers of the entry in hexadecimal, counts in decimal.
    pub(crate) fn shown(&self, seen: &Seen) -> String {
        match self {
            Operand::Priority | Operand::Part(_, Part::PrefixLength) => self.number(seen).to_string(),
            _ => self.value(seen).to_string(),
        }
    }
}
