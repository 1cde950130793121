//! Lint findings: rules that never match, redundant rules and ineffective `drop` rules.

use diagnostics::{Diagnostic, SourceMap, Span};

use crate::subscriptions::{RuleId, Subscriptions};

/// A lint finding about a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LintFinding {
    /// No possible message matches the rule.
    NeverMatches {
        /// The rule.
        rule: RuleId,
        /// Two tests that exclude each other, or one that no message passes; empty if the reason is more complex.
        because: Vec<Span>,
    },
    /// Other rules have all effects of this rule on every message that it matches.
    Covered {
        /// The rule.
        rule: RuleId,
        /// The other rules, if they are few and were searched for.
        by: Vec<RuleId>,
    },
    /// The rule only drops messages, and another rule delivers some of them anyway.
    IneffectiveDrop {
        /// The rule.
        rule: RuleId,
        /// The rule that delivers.
        delivered: RuleId,
    },
}

impl LintFinding {
    /// Returns the rule of the finding.
    pub fn rule(&self) -> RuleId {
        match self {
            LintFinding::NeverMatches { rule, .. }
            | LintFinding::Covered { rule, .. }
            | LintFinding::IneffectiveDrop { rule, .. } => *rule,
        }
    }

    /// Returns the finding as a warning.
    pub fn diagnostic(&self, of: &Subscriptions, map: &SourceMap) -> Option<Diagnostic> {
        let rule = of.rule(self.rule())?;
        let label = rule.label(map);
        Some(match self {
            LintFinding::NeverMatches { because, .. } => {
                let message = format!("{label} never matches");
                match because.as_slice() {
                    [one, other, ..] => Diagnostic::warning("never-matches", *one, message)
                        .label("this")
                        .also(*other, "and this are mutually exclusive"),
                    [one] => Diagnostic::warning("never-matches", *one, message).label("no message satisfies this"),
                    [] => Diagnostic::warning("never-matches", rule.span, message).label("its tests are contradictory"),
                }
            }
            LintFinding::Covered { by, .. } => {
                let (others, does) = match by.len() {
                    0 => ("other rules together", ""),
                    1 => ("another rule", "this rule covers it"),
                    _ => ("other rules together", "this rule covers part of it"),
                };
                let message = format!("{label} is covered by {others}");
                let finding = Diagnostic::warning("covered", rule.span, message);
                by.iter().filter_map(|id| of.rule(*id)).fold(finding, |finding, by| finding.also(by.span, does))
            }
            LintFinding::IneffectiveDrop { delivered, .. } => {
                let message = format!("{label} does not stop other rules from delivering these messages");
                Diagnostic::warning("no-veto", rule.span, message)
                    .also(of.rule(*delivered)?.span, "this rule matches some of the same messages")
                    .help(
                        "all matching rules apply: add `and not (…)` to the rules that must not deliver these messages",
                    )
            }
        })
    }
}
