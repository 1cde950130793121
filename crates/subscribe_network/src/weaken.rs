//! Weakens rules for switches away from the subscriber.

use diagnostics::{Diagnostic, Span};
use subscribe::{Condition, Rule, RuleAction, Subject, Test};

use crate::network::HostId;

/// Reason that a rule cannot be used in a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsupportedRule {
    /// An action other than delivery to hosts.
    Action {
        /// The rule.
        span: Span,
    },
    /// A test of a counter.
    Counter {
        /// The test.
        span: Span,
    },
    /// Delivery to an unknown host.
    NoHost {
        /// The host.
        host: HostId,
        /// The rule.
        span: Span,
    },
}

impl UnsupportedRule {
    /// Returns a diagnostic for the rule's file.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            UnsupportedRule::Action { span } => {
                Diagnostic::error("rule-network", *span, "rules of a network can only deliver to hosts")
                    .help("program actions and `to_controller` belong to one switch: compile its rules separately")
            }
            UnsupportedRule::Counter { span } => {
                Diagnostic::error("rule-network", *span, "a rule of a network cannot test a counter").help(
                    "each switch has its own counters; an aggregate (`count() over 1s`) is kept at the host's switch",
                )
            }
            UnsupportedRule::NoHost { host, span } => {
                Diagnostic::error("rule-network", *span, format!("there is no host {} in the network", host.0))
            }
        }
    }
}

/// Returns the hosts that a rule delivers to.
///
/// # Errors
/// [`UnsupportedRule`], if the rule cannot be used in a network.
pub(crate) fn destination_hosts(rule: &Rule) -> Result<Vec<HostId>, UnsupportedRule> {
    let mut hosts = Vec::new();
    for action in &rule.actions {
        match action {
            RuleAction::Forward(to) => hosts.extend(to.iter().map(|host| HostId(*host))),
            RuleAction::Drop => {}
            RuleAction::ToController | RuleAction::Call(..) | RuleAction::Update(_) => {
                return Err(UnsupportedRule::Action { span: rule.span });
            }
        }
    }
    match counter(&rule.condition) {
        Some(span) => Err(UnsupportedRule::Counter { span }),
        None => Ok(hosts),
    }
}

/// Returns the location of a test of a counter.
fn counter(condition: &Condition) -> Option<Span> {
    match condition {
        Condition::Test(Test { subject: Subject::Counter(_), span, .. }) => Some(*span),
        Condition::Not(inner) => counter(inner),
        Condition::All(parts) | Condition::Any(parts) => parts.iter().find_map(counter),
        Condition::Always | Condition::Never | Condition::Valid { .. } | Condition::Test(_) => None,
    }
}

/// Returns a condition without aggregates that is implied by this one, for any values of the aggregates.
pub(crate) fn over_approximated(condition: &Condition) -> Condition {
    without(condition, true)
}

/// Replaces tests of aggregates by `wished`, inverted under negation.
fn without(condition: &Condition, wished: bool) -> Condition {
    let all = |parts: &[Condition]| parts.iter().map(|part| without(part, wished)).collect();
    match condition {
        Condition::Test(Test { subject: Subject::Aggregate(_), .. }) if wished => Condition::Always,
        Condition::Test(Test { subject: Subject::Aggregate(_), .. }) => Condition::Never,
        Condition::Not(inner) => Condition::Not(Box::new(without(inner, !wished))),
        Condition::All(parts) => Condition::All(all(parts)),
        Condition::Any(parts) => Condition::Any(all(parts)),
        other => other.clone(),
    }
}
