//! What of a rule can be decided away from its subscriber.

use diagnostics::{Diagnostic, Span};
use subscribe::{Action, Condition, Rule, Subject, Test};

use crate::network::HostId;

/// Why a rule cannot be one of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It does more than delivering to hosts.
    Action {
        /// The rule.
        span: Span,
    },
    /// It tests a counter.
    Counter {
        /// The test.
        span: Span,
    },
    /// It delivers to a host that is not there.
    NoHost {
        /// The host.
        host: HostId,
        /// The rule.
        span: Span,
    },
}

impl Unfit {
    /// As a finding in the rules' file.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            Unfit::Action { span } => {
                Diagnostic::error("rule-network", *span, "rules of a network can only deliver to hosts")
                    .help("actions of the program and of the controller belong to one switch: compile its rules alone")
            }
            Unfit::Counter { span } => {
                Diagnostic::error("rule-network", *span, "a rule of a network cannot ask for a counter").help(
                    "each switch has counters of its own; an aggregate (`count() over 1s`) is kept where the host is",
                )
            }
            Unfit::NoHost { host, span } => {
                Diagnostic::error("rule-network", *span, format!("there is no host {} in the network", host.0))
            }
        }
    }
}

/// The hosts that a rule delivers to.
///
/// # Errors
/// [`Unfit`], if the rule is not one for several switches.
pub(crate) fn fit(rule: &Rule) -> Result<Vec<HostId>, Unfit> {
    let mut hosts = Vec::new();
    for action in &rule.actions {
        match action {
            Action::Forward(to) => hosts.extend(to.iter().map(|host| HostId(*host))),
            Action::Drop => {}
            Action::ToController | Action::Call(..) | Action::Update(_) => {
                return Err(Unfit::Action { span: rule.span });
            }
        }
    }
    match counter(&rule.condition) {
        Some(span) => Err(Unfit::Counter { span }),
        None => Ok(hosts),
    }
}

/// Where a condition tests a counter.
fn counter(condition: &Condition) -> Option<Span> {
    match condition {
        Condition::Test(Test { subject: Subject::Counter(_), span, .. }) => Some(*span),
        Condition::Not(inner) => counter(inner),
        Condition::All(parts) | Condition::Any(parts) => parts.iter().find_map(counter),
        Condition::Always | Condition::Never | Condition::Valid { .. } | Condition::Test(_) => None,
    }
}

/// A condition without aggregates that holds whenever this one does, whatever they are.
pub(crate) fn over_approximated(condition: &Condition) -> Condition {
    without(condition, true)
}

/// Tests of aggregates become `wished` where they are not negated.
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
