//! Rules as text that [`parse`](crate::parse) reads back to the same rule.

use std::fmt;

use crate::format::{Format, Subject, Window, max_of};
use crate::rule::{Action, Aggregate, Condition, Operand, Rule, Test, UpdateFunction};
use crate::value::show as show_value;

/// Something of a rule, to be shown with the names of a format.
pub struct Shown<'a, T> {
    what: &'a T,
    aggregates: &'a [Aggregate],
    format: &'a Format,
}

impl Rule {
    /// The rule as text.
    pub fn shown<'a>(&'a self, format: &'a Format) -> Shown<'a, Rule> {
        Shown { what: self, aggregates: &self.aggregates, format }
    }

    /// A part of the rule's condition as text.
    pub fn shown_part<'a>(&'a self, part: &'a Condition, format: &'a Format) -> Shown<'a, Condition> {
        Shown { what: part, aggregates: &self.aggregates, format }
    }
}

impl Action {
    /// The action as text.
    pub fn shown<'a>(&'a self, format: &'a Format) -> Shown<'a, Action> {
        Shown { what: self, aggregates: &[], format }
    }
}

impl Aggregate {
    /// The aggregate as text.
    pub fn shown<'a>(&'a self, format: &'a Format) -> Shown<'a, Aggregate> {
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
            _ => crate::format::Kind::Unsigned,
        };
        let value = |value: u128| show_value(value, kind, width);
        let max = max_of(width);
        let set = |f: &mut fmt::Formatter<'_>, ranges: &[(u128, u128)]| {
            f.write_str("{")?;
            for (at, (first, last)) in ranges.iter().enumerate() {
                let comma = if at > 0 { ", " } else { "" };
                match first == last {
                    true => write!(f, "{comma}{}", value(*first))?,
                    false => write!(f, "{comma}{}..{}", value(*first), value(*last))?,
                }
            }
            f.write_str("}")
        };
        let missing = test.values.complement(max);
        match (test.values.list(), missing.list()) {
            ([(first, last)], _) if first == last => write!(f, " == {}", value(*first)),
            (_, [(first, last)]) if first == last => write!(f, " != {}", value(*first)),
            ([(first, last)], [_]) if *first == 0 => write!(f, " <= {}", value(*last)),
            ([(first, last)], [_]) if *last == max => write!(f, " >= {}", value(*first)),
            (values, missing) if values.len() <= missing.len() => {
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

impl fmt::Display for Shown<'_, Aggregate> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let aggregate = self.what;
        let name = |id: &crate::format::FieldId| self.format.get(*id).name.as_str();
        write!(f, "{}({}", aggregate.function.name(), aggregate.field.as_ref().map_or("", name))?;
        if !aggregate.by.is_empty() {
            let by: Vec<&str> = aggregate.by.iter().map(name).collect();
            write!(f, " by {}", by.join(", "))?;
        }
        match aggregate.window {
            Window::Micros(micros) => write!(f, " over {micros} us)"),
            Window::Packets(packets) => write!(f, " over {packets} packets)"),
        }
    }
}

impl fmt::Display for Shown<'_, Action> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: Vec<String>| values.join(", ");
        match self.what {
            Action::Forward(ports) => write!(f, "fwd({})", list(ports.iter().map(u32::to_string).collect())),
            Action::Drop => f.write_str("drop"),
            Action::ToController => f.write_str("to_controller"),
            Action::Call(id, values) => {
                let name = &self.format.get_action(*id).name;
                write!(f, "{name}({})", list(values.iter().map(u128::to_string).collect()))
            }
            Action::Update(update) => {
                let counter = &self.format.get_counter(update.counter).name;
                let operand = match &update.operand {
                    Operand::Number(number) => number.to_string(),
                    Operand::Field(id) => self.format.get(*id).name.clone(),
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
