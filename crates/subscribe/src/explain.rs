//! Which rules a message matches, and why the others do not.

use crate::evaluate::{Message, View};
use crate::format::{Format, Subject};
use crate::rule::{Condition, Rule};
use crate::subscriptions::{Held, RuleId, Subscriptions};
use crate::tables::Delivery;
use crate::value::show as show_value;

/// A test that decided, and what it saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The test as text: `price > 50`, `not (stock == "A")`.
    pub test: String,
    /// What it saw: `50`, or `add_order is not valid`.
    pub saw: String,
    /// Where the test stands.
    pub span: diagnostics::Span,
}

/// What a rule says of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The rule.
    pub rule: RuleId,
    /// Whether it matches.
    pub matches: bool,
    /// If it matches, every test that made it so; if not, the first that failed. Of several alternatives that all
    /// failed, each has one.
    pub because: Vec<Decided>,
}

/// What all rules together say of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The rules that match.
    pub matching: Vec<Verdict>,
    /// Rules that do not, those that failed latest first: as many as were asked for.
    pub others: Vec<Verdict>,
    /// How many rules do not match.
    pub failed: usize,
    /// What is done with the message.
    pub delivery: Delivery,
}

impl Subscriptions {
    /// Says what is done with a message and why, and why up to `others` of the rules that do not match do not. It asks
    /// every rule.
    pub fn explain(&self, message: &Message, others: usize) -> Explanation {
        let mut matching = Vec::new();
        let mut failed: Vec<(usize, RuleId)> = Vec::new();
        for (id, held) in self.held() {
            let slots = held.slots();
            let view = self.view(held, message, &slots);
            match view.holds(&held.rule.condition) {
                true => matching.push(self.verdict(id, held, message)),
                false => failed.push((passed(&held.rule.condition, &view), id)),
            }
        }
        let count = failed.len();
        failed.sort_by_key(|(passed, id)| (std::cmp::Reverse(*passed), *id));
        let verdicts = failed.into_iter().take(others).filter_map(|(_, id)| self.why(id, message));
        Explanation { matching, others: verdicts.collect(), failed: count, delivery: self.evaluate(message) }
    }

    /// What one rule says of a message, if there is a rule of this number.
    pub fn why(&self, id: RuleId, message: &Message) -> Option<Verdict> {
        let held = self.rules.get(id.0 as usize)?.as_ref()?;
        Some(self.verdict(id, held, message))
    }

    fn verdict(&self, id: RuleId, held: &Held, message: &Message) -> Verdict {
        let slots = held.slots();
        let view = self.view(held, message, &slots);
        let matches = view.holds(&held.rule.condition);
        let mut because = Vec::new();
        decide(&held.rule, &held.rule.condition, &view, false, &mut because);
        Verdict { rule: id, matches, because }
    }
}

/// How many parts of a conjunction hold before the first that does not.
fn passed(condition: &Condition, view: &View<'_>) -> usize {
    match condition {
        Condition::All(list) => list.iter().take_while(|part| view.holds(part)).count(),
        _ => 0,
    }
}

/// Collects the tests that make a condition what it is.
fn decide(rule: &Rule, condition: &Condition, view: &View<'_>, negated: bool, out: &mut Vec<Decided>) {
    let holds = view.holds(condition);
    let mut leaf = |span: diagnostics::Span, saw: String| {
        let test = rule.shown_part(condition, view.format).to_string();
        out.push(Decided { test: if negated { format!("not ({test})") } else { test }, saw, span });
    };
    match condition {
        Condition::Always | Condition::Never => leaf(rule.span, "any message".to_owned()),
        Condition::Valid { header, span } => {
            let name = &view.format.get_header(*header).name;
            let is = if view.message.is_valid(*header) { "is" } else { "is not" };
            leaf(*span, format!("`{name}` {is} valid"));
        }
        Condition::Test(test) => leaf(test.span, seen(rule, test.subject, view)),
        Condition::Not(inner) => decide(rule, inner, view, !negated, out),
        // One part decides, or all of them do.
        Condition::All(list) if !holds => {
            if let Some(part) = list.iter().find(|part| !view.holds(part)) {
                decide(rule, part, view, negated, out);
            }
        }
        Condition::Any(list) if holds => {
            if let Some(part) = list.iter().find(|part| view.holds(part)) {
                decide(rule, part, view, negated, out);
            }
        }
        Condition::All(list) | Condition::Any(list) => {
            list.iter().for_each(|part| decide(rule, part, view, negated, out));
        }
    }
}

/// The value that a test saw.
fn seen(rule: &Rule, subject: Subject, view: &View<'_>) -> String {
    let format: &Format = view.format;
    let missing = |field: crate::FieldId| {
        let header = format.get(field).header.filter(|header| !view.message.is_valid(*header));
        header.map(|header| format!("`{}` is not valid", format.get_header(header).name))
    };
    let why_not = match subject {
        Subject::Field(id) => missing(id),
        Subject::Counter(_) => None,
        Subject::Aggregate(at) => rule.aggregates[usize::from(at)].fields().find_map(missing),
    };
    match (view.value(subject), subject) {
        (None, _) => why_not.unwrap_or_default(),
        (Some(value), Subject::Field(id)) => show_value(value, format.get(id).kind, format.get(id).width),
        (Some(value), _) => value.to_string(),
    }
}
