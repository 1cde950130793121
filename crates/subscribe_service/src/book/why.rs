//! For which rules a switch is asked what it refuses.

use std::collections::BTreeSet;

use subscribe::{Action, Rule};

use super::Book;
use crate::blame::Refused;

impl Book<'_> {
    /// What a switch refused, with the rules that may be why: those of `among` (ascending), or else of all, that deliver to the
    /// ports that it is about. Ports that only these deliver to say more than others.
    pub fn blame(&self, refused: &Refused, among: &[u64]) -> String {
        /// Rules that are told, and letters of each.
        const MOST: (usize, usize) = (3, 120);
        let is_one = |id: &u64| among.is_empty() || among.binary_search(id).is_ok();
        let all = || self.held.iter().filter_map(|(id, held)| Some((*id, self.subscriptions.rule(held.rule)?)));
        let ports = |rule: &Rule| -> Vec<u32> {
            let of = |action: &Action| match action {
                Action::Forward(ports) => ports.clone(),
                Action::ToController => vec![self.program.cpu_port],
                _ => Vec::new(),
            };
            rule.actions.iter().flat_map(of).collect()
        };
        let others: BTreeSet<u32> = all().filter(|(id, _)| !is_one(id)).flat_map(|(_, rule)| ports(rule)).collect();
        let mut wanted: BTreeSet<u32> = refused.ports.iter().copied().collect();
        if !wanted.is_subset(&others) {
            wanted = &wanted - &others;
        }
        let is_why = |(id, rule): &(u64, &Rule)| is_one(id) && ports(rule).iter().any(|port| wanted.contains(port));
        let mut ids: Vec<u64> = all().filter(is_why).map(|(id, _)| id).collect();
        if ids.is_empty() && among.len() == 1 {
            ids = among.to_vec();
        }
        let told: Vec<String> = ids
            .iter()
            .take(MOST.0)
            .filter_map(|id| {
                let text: Vec<&str> = self.held.get(id)?.text.split_whitespace().collect();
                let mut text = text.join(" ");
                if let Some((end, _)) = text.char_indices().nth(MOST.1) {
                    text.truncate(end);
                    text.push_str("...");
                }
                // Rules of a change that is not made do not keep their ids.
                Some(if among.is_empty() { format!("rule {id}, `{text}`") } else { format!("`{text}`") })
            })
            .collect();
        let more = if ids.len() > told.len() { format!(" and {} more", ids.len() - told.len()) } else { String::new() };
        match told.is_empty() {
            true => refused.told.clone(),
            false => format!("{}; it is for {}{more}", refused.told, told.join(" or ")),
        }
    }
}
