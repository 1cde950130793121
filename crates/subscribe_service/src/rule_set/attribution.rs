//! Finds the rules that a rejected update belongs to.

use std::collections::BTreeSet;

use subscribe::{Rule, RuleAction};

use super::RuleSet;
use crate::attribution::RejectedUpdate;

/// Maximum number of rules in a description.
const MAX_RULES: usize = 3;
/// Maximum number of characters of each.
const MAX_RULE_CHARS: usize = 120;

impl RuleSet<'_> {
    /// Describes a rejected update with the rules that may have caused it: those of `among` (in ascending order), or of
    /// the whole set if it is empty, that deliver to the ports of the update. Ports that only these rules deliver to
    /// take precedence.
    pub fn attribute(&self, rejected: &RejectedUpdate, among: &[u64]) -> String {
        let is_candidate = |id: &u64| among.is_empty() || among.binary_search(id).is_ok();
        let all = || self.held.iter().filter_map(|(id, held)| Some((*id, self.subscriptions.rule(held.rule)?)));
        let others = all().filter(|(id, _)| !is_candidate(id));
        let others: BTreeSet<u32> = others.flat_map(|(_, rule)| self.ports(rule)).collect();
        let mut wanted: BTreeSet<u32> = rejected.ports.iter().copied().collect();
        if !wanted.is_subset(&others) {
            wanted = &wanted - &others;
        }
        let mut ids = Vec::new();
        for (id, rule) in all() {
            if is_candidate(&id) && self.ports(rule).iter().any(|port| wanted.contains(port)) {
                ids.push(id);
            }
        }
        if ids.is_empty() && among.len() == 1 {
            ids = among.to_vec();
        }
        let mut shown = Vec::new();
        for id in ids.iter().take(MAX_RULES) {
            let Some(text) = self.shortened_text(*id) else { continue };
            // Rules of a change that is not made do not keep their ids.
            shown.push(if among.is_empty() { format!("rule {id}, `{text}`") } else { format!("`{text}`") });
        }
        if shown.is_empty() {
            return rejected.description.clone();
        }
        let more =
            if ids.len() > shown.len() { format!(" and {} more", ids.len() - shown.len()) } else { String::new() };
        format!("{}; it is for {}{more}", rejected.description, shown.join(" or "))
    }

    /// Returns the ports that a rule delivers to.
    fn ports(&self, rule: &Rule) -> Vec<u32> {
        let mut ports = Vec::new();
        for action in &rule.actions {
            match action {
                RuleAction::Forward(to) => ports.extend(to.iter().copied()),
                RuleAction::ToController => ports.push(self.program.cpu_port),
                _ => {}
            }
        }
        ports
    }

    /// Returns the text of a rule in one line, cut at the maximum length.
    fn shortened_text(&self, id: u64) -> Option<String> {
        let words: Vec<&str> = self.held.get(&id)?.text.split_whitespace().collect();
        let mut text = words.join(" ");
        if let Some((end, _)) = text.char_indices().nth(MAX_RULE_CHARS) {
            text.truncate(end);
            text.push_str("...");
        }
        Some(text)
    }
}
