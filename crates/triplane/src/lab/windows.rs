//! Reports the flows of HPCC: their goodput, their windows, and the samples that these follow.

use lab::scenario::{FlowResult, HpccResult, Results};
use serde_json::{Value, json};

use super::report::bits;
use crate::output::{aligned, grouped};

/// Maximum number of flows that are listed.
const FLOWS: usize = 16;

/// Formats the flows of HPCC, and how equal their goodputs are.
pub fn text(results: &Results) -> String {
    let flows: Vec<_> = results.pairs.iter().filter_map(|flow| Some((flow, flow.hpcc.as_ref()?))).collect();
    let mut rows = vec![
        [
            "flows of HPCC",
            "from",
            "to",
            "goodput",
            "not arrived",
            "window, mean",
            "max",
            "samples",
            "no echo",
            "implausible",
            "silences",
        ]
        .map(str::to_owned),
    ];
    for (flow, hpcc) in flows.iter().take(FLOWS) {
        let HpccResult { counts, windows, .. } = hpcc;
        let missing = flow.measured.sent.saturating_sub(flow.measured.received);
        let bytes = |bytes: f64| grouped(bytes.round() as u64);
        rows.push([
            flow.name.clone(),
            flow.from.clone(),
            flow.to.clone(),
            bits(flow.measured.rate_bps()),
            grouped(missing),
            bytes(windows.mean()),
            bytes(windows.max),
            grouped(counts.sent),
            grouped(unanswered(hpcc)),
            grouped(counts.implausible),
            grouped(counts.silences),
        ]);
    }
    if flows.is_empty() {
        return String::new();
    }
    let more = flows.len().saturating_sub(FLOWS);
    let more = if more > 0 { format!("and {more} more\n") } else { String::new() };
    let index = fairness(&results.pairs).filter(|_| flows.len() > 1);
    let index = index.map(|index| format!("Jain's index of their goodputs: {index:.3}\n"));
    format!("\n{}{more}{}", aligned(&rows, &[3, 4, 5, 6, 7, 8, 9, 10]), index.unwrap_or_default())
}

/// Returns Jain's index of the goodputs of the flows of HPCC; `None` if nothing arrived.
pub fn fairness(pairs: &[FlowResult]) -> Option<f64> {
    jain(pairs.iter().filter(|flow| flow.hpcc.is_some()).map(|flow| flow.measured.rate_bps()))
}

/// Returns the samples whose echo did not come, or only after that of a later one.
fn unanswered(hpcc: &HpccResult) -> u64 {
    let counts = &hpcc.counts;
    counts.sent.saturating_sub(counts.samples + counts.changed_paths)
}

/// Returns Jain's index of rates, from one over their number to 1 if all are equal; `None` if all are 0.
fn jain(rates: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum, squares) =
        rates.fold((0.0, 0.0, 0.0), |(count, sum, squares), rate| (count + 1.0, sum + rate, squares + rate * rate));
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

/// Returns the counts and windows of controllers as JSON, with windows in bytes.
pub fn json(hpcc: &HpccResult) -> Value {
    let HpccResult { program_bytes, counts, windows } = hpcc;
    json!({
        "program_bytes": program_bytes, "sent_samples": counts.sent, "samples": counts.samples,
        "unanswered_samples": unanswered(hpcc), "stale": counts.stale, "implausible": counts.implausible,
        "changed_paths": counts.changed_paths, "silences": counts.silences, "mean_window": windows.mean(),
        "max_window": windows.max,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rates_have_the_index_1_and_a_single_one_of_many_its_share() {
        assert_eq!(jain([5.0, 5.0, 5.0].into_iter()), Some(1.0));
        assert_eq!(jain([8.0, 0.0, 0.0, 0.0].into_iter()), Some(0.25));
        assert_eq!(jain([0.0, 0.0].into_iter()), None);
        assert_eq!(jain(std::iter::empty()), None);
    }
}
