//! Reasons that a set of rules cannot be compiled, and the remedies.

use std::collections::BTreeSet;

use bdd::{LimitExceeded, Ref, Store};
use diagnostics::{Diagnostic, SourceMap, Span};

use crate::compile::emit::EmitError;
use crate::compile::layout::{ColumnKey, visit};
use crate::format::{Match, Subject};
use crate::rule::{Aggregate, Rule, RuleAction};
use crate::subscriptions::Subscriptions;
use crate::tables::Wide;

/// Reason that rules cannot be compiled to tables.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The decision diagram or the tables exceed a limit.
    TooLarge {
        /// The exceeded limit.
        full: ExceededLimit,
        /// Number of rules whose union failed, and total number of rules.
        rules: (usize, usize),
        /// Fields with range tests and their numbers of distinct bounds, in descending order.
        ranges: Vec<(String, usize)>,
        /// Fields with tests for single values only.
        values: Vec<String>,
        /// Location of the first rule.
        at: Span,
    },
    /// All slots that can compute an aggregate hold other states.
    Slots {
        /// The rule that found no free slot.
        rule: Box<Rule>,
        /// The aggregate.
        aggregate: String,
        /// Number of slots that can compute it.
        slots: usize,
        /// Aggregates in the linked slots among them.
        linked: Vec<String>,
        /// Whether the format declares aggregates or linked slots.
        computed: bool,
    },
    /// Rules name more keys of an aggregate than it has cells.
    Keys {
        /// The aggregate.
        aggregate: String,
        /// Number of its cells.
        keys: u32,
        /// Location of one of the rules.
        at: Span,
    },
    /// A message can match rules that update a counter differently, and the target supports one update per message.
    Updates {
        /// The counter.
        counter: String,
        /// The rules.
        rules: Vec<Rule>,
    },
    /// State explosion: one message can match all of these rules, which test different states of aggregates.
    StateExplosion(Vec<Rule>),
    /// Distinct port sets need more multicast groups than the target has; the limit.
    Groups(u32),
    /// Rules test a field against more distinct bounds than it has codes: its name, and the width of the codes in bits.
    Codes(String, u32),
    /// The rules distinguish too many combinations of valid headers.
    Validity,
    /// Two rules that match the same message run the same action with different arguments.
    Conflict {
        /// The action's name.
        action: String,
        /// The rules.
        rules: Vec<Rule>,
    },
}

/// A limit that was exceeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExceededLimit {
    /// Limit on nodes.
    Nodes(usize),
    /// Limit on memory, in bytes.
    Bytes(usize),
    /// Limit on work.
    Steps,
    /// Limit on entries for a field: its name, and the limit.
    Entries(String, usize),
    /// The same for a field with range tests whose tables match prefixes.
    Prefixes(String, usize),
}

impl Refusal {
    pub(crate) fn slots(of: &Subscriptions, rule: Rule, aggregate: &Aggregate) -> Refusal {
        let format = &of.format;
        let computed = !format.computed().is_empty();
        let fitting = (0..format.slots).filter(|slot| format.slot_takes(*slot, aggregate));
        let in_linked = |slot: u16| of.aggregate_in(slot).filter(|_| computed && format.is_linked(slot));
        let mut linked: Vec<String> =
            fitting.clone().filter_map(in_linked).map(|aggregate| aggregate.shown(format).to_string()).collect();
        linked.sort_unstable();
        linked.dedup();
        let aggregate = aggregate.shown(format).to_string();
        Refusal::Slots { rule: Box::new(rule), aggregate, slots: fitting.count(), linked, computed }
    }

    /// Returns the refusal for an aggregate, by its index in [`MessageFormat::computed`].
    pub(crate) fn keys(of: &Subscriptions, computed: u16) -> Refusal {
        let keys = of.format.computed()[usize::from(computed)].keys;
        let aggregate = of.format.slots_of(computed.into()).find_map(|slot| of.aggregate_in(slot));
        let uses = |rule: &&Rule| aggregate.is_some_and(|aggregate| rule.aggregates.contains(aggregate));
        let at = of.rules().map(|(_, rule)| rule).filter(uses).last().map_or(Span::default(), |rule| rule.span);
        let aggregate = aggregate.map(|aggregate| aggregate.shown(&of.format).to_string()).unwrap_or_default();
        Refusal::Keys { aggregate, keys, at }
    }

    pub(crate) fn too_large(of: &Subscriptions, full: LimitExceeded, rules: usize) -> Refusal {
        let limits = &of.options.limits;
        let full = match full {
            LimitExceeded::Nodes => ExceededLimit::Nodes(limits.nodes),
            LimitExceeded::Bytes => ExceededLimit::Bytes(limits.bytes),
            LimitExceeded::Steps => ExceededLimit::Steps,
        };
        Refusal::with(of, full, rules)
    }

    fn with(of: &Subscriptions, full: ExceededLimit, rules: usize) -> Refusal {
        let mut bounds: Vec<(bool, BTreeSet<u128>)> = vec![Default::default(); of.format.fields().len()];
        for (_, rule) in of.rules() {
            visit(&rule.condition, &mut |test| {
                if let Subject::Field(id) = test.subject {
                    let (is_range, bounds) = &mut bounds[usize::from(id.0)];
                    *is_range |= test.values.list().iter().any(|(first, last)| first != last);
                    bounds.extend(test.values.list().iter().flat_map(|(first, last)| [*first, *last]));
                }
            });
        }
        let asked = || of.format.fields().iter().zip(&bounds).filter(|(_, (_, bounds))| !bounds.is_empty());
        let mut ranges: Vec<(String, usize)> = asked()
            .filter(|(_, (is_range, _))| *is_range)
            .map(|(field, (_, bounds))| (field.name.clone(), bounds.len()))
            .collect();
        ranges.sort_by_key(|(_, bounds)| std::cmp::Reverse(*bounds));
        let values = asked().filter(|(_, (is_range, _))| !is_range).map(|(field, _)| field.name.clone()).collect();
        let at = of.rules().next().map_or(Span::default(), |(_, rule)| rule.span);
        Refusal::TooLarge { full, rules: (rules, of.rules().count()), ranges, values, at }
    }

    /// Returns the refusal as a diagnostic. Rules are named by their locations in `map`.
    pub fn diagnostic(&self, map: &SourceMap) -> Diagnostic {
        match self {
            Refusal::TooLarge { full, rules: (stopped, all), ranges, values, at } => {
                let diagram = |what: String| {
                    format!(
                        "the diagram of these rules needs {what}: compilation stopped after {stopped} of {all} rules"
                    )
                };
                let message = match full {
                    ExceededLimit::Nodes(limit) => diagram(format!("more than {limit} nodes")),
                    ExceededLimit::Bytes(limit) => diagram(format!("more than {}", show_bytes(*limit))),
                    ExceededLimit::Steps => diagram("more work than is allowed".to_owned()),
                    ExceededLimit::Entries(field, limit) | ExceededLimit::Prefixes(field, limit) => {
                        format!(
                            "these {all} rules need more than {limit} entries for `{field}`, the size of its tables"
                        )
                    }
                };
                let prefixes = match full {
                    ExceededLimit::Prefixes(..) => {
                        "ranges are expanded to prefixes here; range tables need fewer entries; "
                    }
                    _ => "",
                };
                let shown: Vec<String> =
                    ranges.iter().take(6).map(|(name, bounds)| format!("`{name}` ({bounds} bounds)")).collect();
                let why = match ranges.len() {
                    0 | 1 => String::new(),
                    _ => format!("ranges over several fields intersect: {}; ", shown.join(", ")),
                };
                let help = if values.is_empty() {
                    "test a field for equality in every rule, so that rules fall into disjoint groups; \
                             or use fewer different bounds, fewer fields with ranges, or fewer rules in one switch"
                        .to_owned()
                } else {
                    format!(
                        "put {} first in the order and test it in every rule; or use fewer different bounds, fewer fields \
                         with ranges, or fewer rules in one switch",
                        diagnostics::names::listed(values.iter().map(String::as_str))
                    )
                };
                Diagnostic::error("rules-too-large", *at, message).help(prefixes.to_owned() + &why + &help)
            }
            Refusal::Slots { rule, aggregate, slots, linked, .. } if !linked.is_empty() => {
                let message = format!(
                    "{} needs a slot for `{aggregate}`, but all {slots} slots that can compute it are in use",
                    rule.label(map)
                );
                let linked = diagnostics::names::listed(linked.iter().map(String::as_str));
                Diagnostic::error("aggregates", rule.span, message)
                    .label(format!("linked slots compute {linked}"))
                    .help(
                        "remove a rule with another aggregate or condition; or declare the aggregate, or raise the \
                         third argument of `@query_aggregate(\"any\", …)`, and regenerate the program",
                    )
            }
            Refusal::Slots { rule, aggregate, slots, computed, .. } => {
                let message = format!(
                    "{} needs another state for `{aggregate}`, but the program has {slots}, all in use",
                    rule.label(map)
                );
                let shared = "rules that differ only in the constant that they compare it with, or in tests of its key, share a state";
                Diagnostic::error("aggregates", rule.span, message).help(if *computed {
                    format!("{shared}; or regenerate the program with more: the third argument of `@query_aggregate`")
                } else {
                    shared.to_owned()
                })
            }
            Refusal::Keys { aggregate, keys, at } => {
                let message =
                    format!("the rules name more than {keys} keys of `{aggregate}`, the maximum of the program");
                Diagnostic::error("aggregates", *at, message)
                    .help("regenerate the program with more: the second argument of `@query_aggregate`")
            }
            Refusal::Updates { counter, rules } => {
                let span = rules.first().map_or(diagnostics::Span::default(), |rule| rule.span);
                let message = format!("a message can match rules that update `{counter}` differently");
                let error = Diagnostic::error("conflict", span, message);
                let others = rules.iter().skip(1);
                let error = others.fold(error, |error, rule| error.also(rule.span, "and this rule"));
                error.help("all matching rules apply: make their conditions mutually exclusive, or use two counters")
            }
            Refusal::StateExplosion(rules) => state_explosion(rules, map),
            Refusal::Groups(max) => {
                let message = format!("the rules deliver to more than {max} different sets of ports");
                Diagnostic::error("groups", diagnostics::Span::default(), message)
                    .help("the target has no more multicast groups: reduce the overlap of the rules")
            }
            Refusal::Codes(field, bits) => {
                let message = format!(
                    "the rules test `{field}` against more different bounds than codes of {bits} bits can represent"
                );
                Diagnostic::error("codes", diagnostics::Span::default(), message)
                    .help("give the field wider codes, or none; or use fewer different bounds")
            }
            Refusal::Validity => {
                let message = "the rules distinguish too many combinations of valid headers";
                Diagnostic::error("validity", diagnostics::Span::default(), message)
                    .help("put rules about different headers that can be valid together on different switches")
            }
            Refusal::Conflict { action, rules } => {
                let span = rules.first().map_or(diagnostics::Span::default(), |rule| rule.span);
                let message = format!("a message can match rules that run `{action}` with different arguments");
                let error = Diagnostic::error("conflict", span, message);
                let others = rules.iter().skip(1);
                let error = others.fold(error, |error, rule| error.also(rule.span, "and this rule"));
                error.help("all matching rules apply, in no order: make their conditions mutually exclusive")
            }
        }
    }
}

fn state_explosion(rules: &[Rule], map: &SourceMap) -> Diagnostic {
    /// Maximum number of rules shown.
    const SHOWN: usize = 4;
    let many = rules.len();
    let message = format!(
        "one message can match {many} rules that test different states of aggregates: its delivery depends on all of \
         them, and their tables are too large"
    );
    let labels: Vec<String> = rules.iter().take(SHOWN).map(|rule| rule.label(map)).collect();
    let others = if many > SHOWN { format!(", and {} others", many - SHOWN) } else { String::new() };
    let error = Diagnostic::error("rules-too-large", rules.first().map_or(Span::default(), |rule| rule.span), message);
    let error = rules.iter().take(SHOWN).skip(1).fold(error, |error, rule| error.also(rule.span, "and this rule"));
    error.help(format!(
        "they are {}{others}; make their conditions mutually exclusive, or let them differ only in the constant that \
         an aggregate is compared with or in tests of its key: then they share a state",
        labels.join(", ")
    ))
}

impl Subscriptions {
    pub(crate) fn refusal(&self, root: Ref, refused: EmitError) -> Refusal {
        match refused {
            EmitError::Validity => Refusal::Validity,
            EmitError::Groups(max) => Refusal::Groups(max),
            EmitError::Entries(level, limit) => {
                let key = self.layout.keys()[level as usize];
                let name = key.name(&self.format);
                let is_lpm = matches!(key, ColumnKey::Field(id) if self.format.get(id).matching == Match::Lpm);
                let wide = self.stages[self.emit_context().stage(level).0].wide;
                let full = match wide {
                    Some(Wide::Lpm | Wide::Ternary) if !is_lpm => ExceededLimit::Prefixes(name, limit),
                    _ => ExceededLimit::Entries(name, limit),
                };
                Refusal::with(self, full, self.rules().count())
            }
            EmitError::States => {
                let full = ExceededLimit::Nodes(1 << crate::compile::state::NUMBER_BITS);
                Refusal::with(self, full, self.rules().count())
            }
            EmitError::Codes(level, bits) => {
                Refusal::Codes(self.layout.keys()[level as usize].name(&self.format), bits)
            }
            EmitError::Updates(set, counter) => {
                let is_update =
                    |act: &RuleAction| matches!(act, RuleAction::Update(update) if update.counter == counter);
                let rules = self.rules_for(root, set, &is_update);
                Refusal::Updates { counter: self.format.get_counter(counter).name.clone(), rules }
            }
            EmitError::Calls(set, action) => {
                let is_call = |act: &RuleAction| matches!(act, RuleAction::Call(id, _) if *id == action);
                let rules = self.rules_for(root, set, &is_call);
                Refusal::Conflict { action: self.format.get_action(action).name.clone(), rules }
            }
        }
    }

    /// Returns up to two rules with different actions for a message that reaches this terminal of a diagram.
    fn rules_for(&self, root: Ref, set: Ref, acts: &dyn Fn(&RuleAction) -> bool) -> Vec<Rule> {
        let message = self.message_for(&self.store, root, set);
        let mut rules: Vec<Rule> = Vec::new();
        for (_, record) in self.records() {
            let act = record.rule.actions.iter().find(|act| acts(act));
            let slots = record.slots();
            let Some(act) = act.filter(|_| self.view(record, &message, &slots).holds(&record.rule.condition)) else {
                continue;
            };
            // One rule for each of two different actions is enough.
            if rules.len() < 2 && !rules.iter().any(|rule| rule.actions.contains(act)) {
                rules.push(record.rule.clone());
            }
        }
        rules
    }

    /// Returns a message that reaches this terminal of a diagram.
    pub(crate) fn message_for(&self, store: &Store, root: Ref, set: Ref) -> crate::Message {
        let mut reached: std::collections::HashMap<Ref, Option<(Ref, u32, u128)>> = [(root, None)].into();
        let mut waiting = vec![root];
        while let Some(at) = waiting.pop() {
            for (value, child) in store.arms(at) {
                let level = store.level(at).unwrap_or(0);
                reached.entry(child).or_insert_with(|| {
                    waiting.push(child);
                    Some((at, level, value))
                });
            }
        }
        let mut message = crate::Message::empty(&self.format);
        let mut at = set;
        while let Some(Some((parent, level, value))) = reached.get(&at) {
            message.put(&self.format, self.layout.keys()[*level as usize], *value);
            at = *parent;
        }
        message
    }
}

/// Formats a number of bytes in the largest unit that does not round it to zero.
fn show_bytes(bytes: usize) -> String {
    match bytes {
        0..0x400 => format!("{bytes} bytes"),
        0x400..0x10_0000 => format!("{} KB", bytes >> 10),
        _ => format!("{} MB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_are_shown_in_the_largest_unit_that_is_not_zero() {
        let slot_uses = [1, 1023, 1024, (1 << 20) - 1, 1 << 20, 4 << 30].map(super::show_bytes);
        assert_eq!(slot_uses, ["1 bytes", "1023 bytes", "1 KB", "1023 KB", "1 MB", "4096 MB"]);
    }
}
