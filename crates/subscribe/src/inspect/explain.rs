//! Explains which rules match a message, and why others do not.

use crate::format::{MessageFormat, Subject};
use crate::reference::evaluate::{Message, View};
use crate::rule::{Condition, Rule, RuleAction};
use crate::subscriptions::{RuleId, RuleRecord, Subscriptions};
use crate::syntax::value::show as show_value;
use crate::tables::Delivery;

/// A decisive test with the value that it read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestOutcome {
    /// The test as text: `price > 50`, `not (stock == "A")`.
    pub test: String,
    /// The value that it read: `50`, `add_order is not valid`, or `no value: no message counts yet`.
    pub saw: String,
    /// Source location of the test.
    pub span: diagnostics::Span,
}

/// The result of one rule for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The rule.
    pub rule: RuleId,
    /// Whether it matches.
    pub matches: bool,
    /// For a match, every test that contributed; otherwise the first failed test of each alternative.
    pub because: Vec<TestOutcome>,
}

/// The result of all rules for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The rules that match.
    pub matching: Vec<Verdict>,
    /// Rules that do not match, those that failed latest first, up to the requested number.
    pub others: Vec<Verdict>,
    /// Total number of rules that do not match.
    pub failed: usize,
    /// Delivery of the message.
    pub delivery: Delivery,
}

impl Subscriptions {
    /// Explains the delivery of a message: all rules that match, and up to `others` of those that do not. Evaluates
    /// every rule.
    pub fn explain(&self, message: &Message, others: usize) -> Explanation {
        let mut matching = Vec::new();
        let mut failed: Vec<(usize, RuleId)> = Vec::new();
        for (id, record) in self.records() {
            let slots = record.slots();
            let view = self.view(record, message, &slots);
            if view.holds(&record.rule.condition) {
                matching.push(self.verdict(id, record, message))
            } else {
                failed.push((passed(&record.rule.condition, &view), id))
            }
        }
        let count = failed.len();
        failed.sort_by_key(|(passed, id)| (std::cmp::Reverse(*passed), *id));
        let verdicts = failed.into_iter().take(others).filter_map(|(_, id)| self.why(id, message));
        let drops =
            |verdict: &Verdict| self.rule(verdict.rule).is_some_and(|rule| rule.actions.contains(&RuleAction::Drop));
        let delivery = Delivery { drop: matching.iter().any(drops), ..self.evaluate(message) };
        Explanation { matching, others: verdicts.collect(), failed: count, delivery }
    }

    /// Returns the result of one rule for a message, or `None` if there is no such rule.
    pub fn why(&self, id: RuleId, message: &Message) -> Option<Verdict> {
        let record = self.rules.get(id.0 as usize)?.as_ref()?;
        Some(self.verdict(id, record, message))
    }

    fn verdict(&self, id: RuleId, record: &RuleRecord, message: &Message) -> Verdict {
        let slots = record.slots();
        let view = self.view(record, message, &slots);
        let matches = view.holds(&record.rule.condition);
        let mut because = Vec::new();
        decide(&record.rule, &record.rule.condition, &view, false, &mut because);
        Verdict { rule: id, matches, because }
    }
}

/// Returns the number of leading conjuncts that hold.
fn passed(condition: &Condition, view: &View<'_>) -> usize {
    match condition {
        Condition::All(list) => list.iter().take_while(|part| view.holds(part)).count(),
        _ => 0,
    }
}

/// Collects the tests that determine the value of a condition.
fn decide(rule: &Rule, condition: &Condition, view: &View<'_>, negated: bool, out: &mut Vec<TestOutcome>) {
    let holds = view.holds(condition);
    let mut leaf = |span: diagnostics::Span, saw: String| {
        let test = rule.shown_part(condition, view.format).to_string();
        out.push(TestOutcome { test: if negated { format!("not ({test})") } else { test }, saw, span });
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
        // One part decides, or all parts do.
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

/// Describes the value that a test read.
fn seen(rule: &Rule, subject: Subject, view: &View<'_>) -> String {
    let format: &MessageFormat = view.format;
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
        (None, _) => why_not.unwrap_or_else(|| "no value: no message counts yet".to_owned()),
        (Some(value), Subject::Field(id)) => show_value(value, format.get(id).kind, format.get(id).width),
        (Some(value), _) => value.to_string(),
    }
}
