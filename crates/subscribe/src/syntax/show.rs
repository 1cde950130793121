//! Formats rules as text that [`parse`](crate::syntax::parse::parse) reads back to the same rule.

use std::fmt;

use crate::compile::layout::ColumnKey;
use crate::format::{Match, MessageFormat, Subject, ValueKind, Window, max_of};
use crate::rule::{Aggregate, AggregateWindow, Condition, Operand, Rule, RuleAction, Term, Test, UpdateFunction};
use crate::syntax::value::show as show_value;
use crate::tables::Delivery;

/// A part of a rule, formatted with the names of a message format.
pub struct Shown<'a, T> {
    what: &'a T,
    aggregates: &'a [Aggregate],
    format: &'a MessageFormat,
}

impl Rule {
    /// Returns the rule as text.
    pub fn shown<'a>(&'a self, format: &'a MessageFormat) -> Shown<'a, Rule> {
        Shown { what: self, aggregates: &self.aggregates, format }
    }

    /// Returns a part of the rule's condition as text.
    pub fn shown_part<'a>(&'a self, part: &'a Condition, format: &'a MessageFormat) -> Shown<'a, Condition> {
        Shown { what: part, aggregates: &self.aggregates, format }
    }
}

impl RuleAction {
    /// Returns the action as text.
    pub fn shown<'a>(&'a self, format: &'a MessageFormat) -> Shown<'a, RuleAction> {
        Shown { what: self, aggregates: &[], format }
    }
}

impl Delivery {
    /// Returns a short description of the delivery: `fwd(1, 2); to_controller`.
    pub fn shown(&self, format: &MessageFormat) -> String {
        let mut actions = Vec::new();
        if !self.ports.is_empty() {
            actions.push(RuleAction::Forward(self.ports.clone()));
        }
        if self.to_controller {
            actions.push(RuleAction::ToController);
        }
        actions.extend(self.calls.iter().map(|(id, values)| RuleAction::Call(*id, values.clone())));
        actions.extend(self.updates.iter().map(|update| RuleAction::Update(update.clone())));
        let mut parts: Vec<String> = actions.iter().map(|action| action.shown(format).to_string()).collect();
        parts.extend(self.slots.iter().map(|slot| format!("counts for {}", ColumnKey::Slot(*slot).name(format))));
        match (parts.is_empty(), self.drop) {
            (true, true) => "drop".to_owned(),
            (true, false) => "no rule".to_owned(),
            _ => parts.join("; "),
        }
    }
}

impl Aggregate {
    /// Returns the aggregate as text.
    pub fn shown<'a>(&'a self, format: &'a MessageFormat) -> Shown<'a, Aggregate> {
        Shown { what: self, aggregates: &[], format }
    }
}

impl<'a, T> Shown<'a, T> {
    fn other<U>(&self, what: &'a U) -> Shown<'a, U> {
        Shown { what, aggregates: self.aggregates, format: self.format }
    }
}

impl fmt::Display for Shown<'_, Rule> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.what.name {
            write!(f, "rule {name}: ")?;
        }
        write!(f, "{} : ", self.other(&self.what.condition))?;
        for (at, action) in self.what.actions.iter().enumerate() {
            write!(f, "{}{}", if at > 0 { "; " } else { "" }, self.other(action))?;
        }
        Ok(())
    }
}

impl fmt::Display for Shown<'_, Condition> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            Condition::Always => f.write_str("true"),
            Condition::Never => f.write_str("false"),
            Condition::Valid { header, .. } => write!(f, "valid({})", self.format.get_header(*header).name),
            Condition::Test(test) => self.other(test).fmt(f),
            Condition::Not(inner) => match **inner {
                Condition::Valid { .. } | Condition::Always | Condition::Never => {
                    write!(f, "not {}", self.other(&**inner))
                }
                _ => write!(f, "not ({})", self.other(&**inner)),
            },
            Condition::All(list) | Condition::Any(list) => {
                let word = if matches!(self.what, Condition::All(_)) { " and " } else { " or " };
                for (at, part) in list.iter().enumerate() {
                    f.write_str(if at > 0 { word } else { "" })?;
                    match part {
                        Condition::All(_) | Condition::Any(_) => write!(f, "({})", self.other(part))?,
                        _ => self.other(part).fmt(f)?,
                    }
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Shown<'_, Test> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let test = self.what;
        match test.subject {
            Subject::Aggregate(at) => self.other(&self.aggregates[usize::from(at)]).fmt(f)?,
            named => f.write_str(self.format.name(named))?,
        }
        let width = self.format.width(test.subject);
        let kind = match test.subject {
            Subject::Field(id) => self.format.get(id).kind,
            _ => ValueKind::Unsigned,
        };
        let value = |value: u128| show_value(value, kind, width);
        let max = max_of(width);
        let matching = match test.subject {
            Subject::Field(id) => self.format.get(id).matching,
            _ => Match::Any,
        };
        let element = |f: &mut fmt::Formatter<'_>, (first, last): (u128, u128)| {
            if first == last {
                f.write_str(&value(first))
            } else {
                match prefix(first, last, width) {
                    Some(length) if matching == Match::Lpm || matches!(kind, ValueKind::Ipv4 | ValueKind::Ipv6) => {
                        write!(f, "{}/{length}", value(first))
                    }
                    _ => write!(f, "{}..{}", value(first), value(last)),
                }
            }
        };
        let set = |f: &mut fmt::Formatter<'_>, ranges: &[(u128, u128)]| {
            f.write_str("{")?;
            let mut comma = "";
            for range in ranges {
                let mut rest = Some(*range);
                while let Some(from) = rest {
                    let (part, after) = part(from, matching, width);
                    f.write_str(comma)?;
                    element(f, part)?;
                    (rest, comma) = (after, ", ");
                }
            }
            f.write_str("}")
        };
        let missing = test.values.complement(max);
        let ordered =
            matches!(matching, Match::Any | Match::Range) && !matches!(kind, ValueKind::Ipv4 | ValueKind::Ipv6);
        match (test.values.list(), missing.list()) {
            ([(first, last)], _) if first == last => write!(f, " == {}", value(*first)),
            (_, [(first, last)]) if first == last => write!(f, " != {}", value(*first)),
            ([(first, last)], [_]) if ordered && *first == 0 => write!(f, " <= {}", value(*last)),
            ([(first, last)], [_]) if ordered && *last == max => write!(f, " >= {}", value(*first)),
            (values, missing) if elements(values, matching) <= elements(missing, matching) => {
                f.write_str(" in ")?;
                set(f, values)
            }
            (_, missing) => {
                f.write_str(" not in ")?;
                set(f, missing)
            }
        }
    }
}

/// Returns the number of elements with which a set is written. A field with exact match has no ranges: either the set
/// or its complement is short.
fn elements(values: &[(u128, u128)], matching: Match) -> u128 {
    match matching {
        Match::Exact => {
            values.iter().fold(0, |sum: u128, (first, last)| sum.saturating_add((last - first).saturating_add(1)))
        }
        _ => values.len() as u128,
    }
}

/// Returns the length of the prefix that equals a range.
fn prefix(first: u128, last: u128, width: u32) -> Option<u32> {
    let size = last - first;
    let is_prefix = size & size.wrapping_add(1) == 0 && first & size == 0;
    is_prefix.then(|| width - size.count_ones())
}

/// Splits a range into a first part that the match kind can express and the rest.
fn part((first, last): (u128, u128), matching: Match, width: u32) -> ((u128, u128), Option<(u128, u128)>) {
    let end = match matching {
        Match::Any | Match::Range => last,
        Match::Exact => first,
        Match::Lpm => {
            let ends = (0..width).rev().map(|below| first | max_of(below + 1));
            let aligned = |end: &u128| *end <= last && prefix(first, *end, width).is_some();
            ends.chain([first]).find(aligned).unwrap_or(first)
        }
    };
    ((first, end), end.checked_add(1).filter(|next| *next <= last && end < last).map(|next| (next, last)))
}

impl fmt::Display for Shown<'_, Aggregate> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let aggregate = self.what;
        let name = |id: &crate::format::FieldId| self.format.get(*id).name.as_str();
        let field = aggregate.field.as_ref().map_or("", name);
        write!(f, "{}({field})", aggregate.function.name())?;
        if !aggregate.by.is_empty() {
            let by: Vec<&str> = aggregate.by.iter().map(name).collect();
            write!(f, " by {}", by.join(", "))?;
        }
        write!(f, " over {}", aggregate.window)
    }
}

impl fmt::Display for AggregateWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AggregateWindow::Tumbling(length) => length.fmt(f),
            AggregateWindow::Previous(length) => write!(f, "previous {length}"),
            AggregateWindow::All => f.write_str("all"),
            AggregateWindow::Decaying { shift } => Window::Packets(1 << shift).fmt(f),
        }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Window::Micros(micros) if micros.is_multiple_of(1_000_000) => write!(f, "{}s", micros / 1_000_000),
            Window::Micros(micros) if micros.is_multiple_of(1000) => write!(f, "{}ms", micros / 1000),
            Window::Micros(micros) => write!(f, "{micros}us"),
            Window::Packets(packets) => write!(f, "{packets} packets"),
        }
    }
}

impl fmt::Display for Shown<'_, RuleAction> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: Vec<String>| values.join(", ");
        match self.what {
            RuleAction::Forward(ports) => write!(f, "fwd({})", list(ports.iter().map(u32::to_string).collect())),
            RuleAction::Drop => f.write_str("drop"),
            RuleAction::ToController => f.write_str("to_controller"),
            RuleAction::Call(id, values) => {
                let action = self.format.get_action(*id);
                let shown = values.iter().zip(&action.parameters).map(|(value, parameter)| match parameter.width {
                    48 => show_value(*value, ValueKind::Mac, 48),
                    _ => value.to_string(),
                });
                write!(f, "{}({})", action.name, list(shown.collect()))
            }
            RuleAction::Update(update) => {
                let counter = &self.format.get_counter(update.counter).name;
                let term = |term: &Term| match term {
                    Term::Number(number) => number.to_string(),
                    Term::Field(id) => self.format.get(*id).name.clone(),
                    Term::Counter(id) => self.format.get_counter(*id).name.clone(),
                };
                let operand = match &update.operand {
                    Operand::Term(of) => term(of),
                    Operand::Product(one, other) => format!("{} * {}", term(one), term(other)),
                    Operand::Difference(one, other) => format!("{} - {}", term(one), term(other)),
                };
                match update.function {
                    UpdateFunction::Set => write!(f, "{counter} <- {operand}"),
                    UpdateFunction::Add => write!(f, "{counter} <- {counter} + {operand}"),
                    UpdateFunction::Subtract => write!(f, "{counter} <- {counter} - {operand}"),
                    UpdateFunction::Min => write!(f, "{counter} <- min({counter}, {operand})"),
                    UpdateFunction::Max => write!(f, "{counter} <- max({counter}, {operand})"),
                }
            }
        }
    }
}
