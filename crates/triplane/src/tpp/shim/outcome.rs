//! Prints what a shim did.

use ::tpp::shim::{Shim, WordSums};
use serde_json::json;
use tpp_host::RelayCounts;

use super::rules::ShimRules;
use super::sums;
use crate::output::{aligned, grouped};

/// The counts and sums of a shim that has ended.
pub struct ShimOutcome<'a> {
    pub rules: &'a ShimRules,
    pub shim: &'a Shim,
    pub counts: RelayCounts,
    pub sums: &'a WordSums,
    /// Number of programs that were not printed; `None` without `--lines`.
    pub unprinted: Option<u64>,
}

impl ShimOutcome<'_> {
    /// Formats the outcome as tables.
    pub fn text(&self) -> String {
        let (receipts, counts) = (self.shim.receipt_counts(), self.counts);
        let mut rows = self.rules.rows(self.shim);
        rows.extend(
            [
                ("programs collected", receipts.collected),
                ("of other hosts", receipts.foreign),
                ("damaged or malformed", receipts.damaged + receipts.malformed),
                ("frames to the wire", counts.to_wire),
                ("frames to the host", counts.to_host),
                ("frames lost at a port", counts.lost),
                ("frames not received", counts.unreceived),
            ]
            .map(|(name, count)| [name.to_owned(), grouped(count)]),
        );
        let rare = [
            ("to groups, without program", Some(counts.to_groups).filter(|count| *count > 0)),
            ("refused behind a program", Some(counts.refused).filter(|count| *count > 0)),
            ("programs not printed", self.unprinted),
        ];
        rows.extend(rare.into_iter().filter_map(|(name, count)| Some([name.to_owned(), grouped(count?)])));
        sums::text(self.sums) + &aligned(&rows, &[1])
    }

    /// Formats the outcome as JSON. It is one line if lines precede it.
    pub fn json(&self) -> String {
        let (receipts, counts) = (self.shim.receipt_counts(), self.counts);
        let report = json!({
            "rules": self.rules.json(self.shim),
            "received": {
                "collected": receipts.collected,
                "foreign": receipts.foreign,
                "damaged": receipts.damaged,
                "malformed": receipts.malformed,
            },
            "to_wire": counts.to_wire,
            "to_host": counts.to_host,
            "to_groups": counts.to_groups,
            "refused": counts.refused,
            "lost": counts.lost,
            "unreceived": counts.unreceived,
            "unprinted": self.unprinted.unwrap_or(0),
            "not_executed": self.sums.not_executed,
            "unnamed": self.sums.unnamed,
            "words": sums::json(self.sums),
        });
        if self.unprinted.is_some() { format!("{report}\n") } else { format!("{report:#}\n") }
    }
}
