//! Reports what a shim of a live lab collects, period by period.

use std::time::Duration;

use ::tpp::map::MemoryMap;
use ::tpp::shim::{CollectedProgram, PeriodSums, PortSum, PortSums, PortWord, Shim};
use serde_json::{Value, json};
use tpp_host::ProgramReceiver;

use super::rules::ShimRules;

/// Adds up the programs of a shim, and passes a report of each period on.
pub struct ShimReporter<F> {
    map: MemoryMap,
    rules: ShimRules,
    sums: PortSums,
    send: F,
}

impl<F: FnMut(&Value)> ShimReporter<F> {
    /// Creates a reporter for a shim with these rules.
    pub fn new(map: MemoryMap, rules: ShimRules, send: F) -> ShimReporter<F> {
        ShimReporter { map, rules, sums: PortSums::default(), send }
    }
}

impl<F: FnMut(&Value)> ProgramReceiver for ShimReporter<F> {
    fn collect(&mut self, program: CollectedProgram) {
        self.sums.add(&program, &self.map);
    }

    fn end_period(&mut self, length: Duration, shim: &Shim) {
        let PeriodSums { ports, programs, unplaced } = self.sums.take();
        let (receipts, (inserted, too_long)) = (shim.receipt_counts(), self.rules.totals(shim));
        (self.send)(&json!({
            "inserted": inserted,
            "too_long": too_long,
            "collected": receipts.collected,
            "foreign": receipts.foreign,
            "damaged": receipts.damaged + receipts.malformed,
            "period": {
                "length_s": length.as_secs_f64(),
                "programs": programs,
                "unplaced": unplaced,
                "ports": ports.iter().map(|((switch, port), sum)| port_json(*switch, *port, sum)).collect::<Vec<_>>(),
            },
        }));
    }
}

fn port_json(switch: u32, port: Option<u32>, sum: &PortSum) -> Value {
    let word = |word: &PortWord| json!({ "name": word.name, "count": word.count, "sum": word.sum, "max": word.max });
    json!({
        "switch": switch,
        "port": port,
        "programs": sum.programs,
        "words": sum.words.iter().map(word).collect::<Vec<_>>(),
    })
}
