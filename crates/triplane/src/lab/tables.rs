//! Tabulates the measurements of a simulation over time.

use std::sync::Arc;

use lab::Topology;
use lab::scenario::Results;
use lab::sim::LinkStats;
use lab::sim::traffic::Measured;

use super::minions;

/// A table of results: named columns of the same length.
pub struct ResultTable {
    /// Name of its file, without the extension.
    pub name: &'static str,
    pub columns: Vec<(&'static str, Column)>,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    Text(Vec<Arc<str>>),
    Whole(Vec<u64>),
    Number(Vec<f64>),
}

impl ResultTable {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| match column {
            Column::Text(values) => values.len(),
            Column::Whole(values) => values.len(),
            Column::Number(values) => values.len(),
        })
    }
}

/// Turns rows into columns.
macro_rules! table {
    ($name:literal, $rows:expr, $($column:literal: $kind:ident = $value:expr),+ $(,)?) => {
        ResultTable { name: $name, columns: vec![$(($column, Column::$kind($rows.iter().map($value).collect()))),+] }
    };
}

/// Returns all tables of a simulation: flows, latencies, queues, links, and the values that probes and tiny packet
/// programs read, if there are any.
pub fn tables(topology: &Topology, results: &Results) -> Vec<ResultTable> {
    let mut tables = vec![flows(results), latencies(results), queues(topology, results), links(topology, results)];
    if results.traffic.iter().any(|flow| !flow.values.is_empty()) {
        tables.push(probes(results));
    }
    if results.minions().next().is_some() {
        tables.push(minions::table(topology, results));
    }
    tables
}

fn flows(results: &Results) -> ResultTable {
    let mut rows = Vec::new();
    for pair in &results.pairs {
        let [name, from, to] = [&pair.name, &pair.from, &pair.to].map(|text| Arc::<str>::from(text.as_str()));
        for (interval, bytes) in pair.measured.series.iter().enumerate() {
            let time = (interval as u64 * Measured::INTERVAL_NS) as f64 / 1e9;
            rows.push((Arc::clone(&name), Arc::clone(&from), Arc::clone(&to), time, *bytes));
        }
    }
    table!("flows", rows,
        "traffic": Text = |row| Arc::clone(&row.0),
        "from": Text = |row| Arc::clone(&row.1),
        "to": Text = |row| Arc::clone(&row.2),
        "time_s": Number = |row| row.3,
        "bytes": Whole = |row| row.4,
    )
}

fn latencies(results: &Results) -> ResultTable {
    let mut rows = Vec::new();
    for flow in &results.traffic {
        let name = Arc::<str>::from(flow.name.as_str());
        rows.extend(cumulative(&flow.measured).into_iter().map(|(value, share)| (Arc::clone(&name), value, share)));
    }
    table!("latency", rows,
        "traffic": Text = |row| Arc::clone(&row.0),
        "latency_ns": Whole = |row| row.1,
        "share": Number = |row| row.2,
    )
}

fn queues(topology: &Topology, results: &Results) -> ResultTable {
    let names: std::collections::BTreeMap<_, Arc<str>> =
        results.links.iter().map(|link| (link.from, topology.end_name(link.from).into())).collect();
    let samples = &results.samples;
    table!("queues", samples,
        "from": Text = |sample| Arc::clone(&names[&sample.from]),
        "time_s": Number = |sample| sample.at.as_ns() as f64 / 1e9,
        "waiting": Whole = |sample| sample.waiting,
        "carried_bytes": Whole = |sample| sample.carried_bytes,
        "queue_full": Whole = |sample| sample.queue_full,
    )
}

fn links(topology: &Topology, results: &Results) -> ResultTable {
    let end = |end| Arc::<str>::from(topology.end_name(end));
    let links = &results.links;
    let stats = |of: fn(&LinkStats) -> u64| Column::Whole(links.iter().map(|link| of(&link.stats)).collect());
    ResultTable {
        name: "links",
        columns: vec![
            ("from", Column::Text(links.iter().map(|link| end(link.from)).collect())),
            ("to", Column::Text(links.iter().map(|link| end(link.to)).collect())),
            ("offered", stats(|stats| stats.offered)),
            ("carried", stats(|stats| stats.carried)),
            ("carried_bytes", stats(|stats| stats.carried_bytes)),
            ("queue_full", stats(|stats| stats.queue_full)),
            ("lost", stats(|stats| stats.lost)),
            ("link_down", stats(|stats| stats.link_down)),
            ("too_large", stats(|stats| stats.too_large)),
            ("longest_queue", stats(|stats| stats.longest_queue)),
        ],
    }
}

fn probes(results: &Results) -> ResultTable {
    let mut rows = Vec::new();
    for flow in &results.traffic {
        for values in &flow.values {
            let [name, value] = [&flow.name, &values.name].map(|text| Arc::<str>::from(text.as_str()));
            let point = |(at, number): &(switch::Time, f64)| {
                (Arc::clone(&name), Arc::clone(&value), at.as_ns() as f64 / 1e9, *number)
            };
            rows.extend(values.points.iter().map(point));
        }
    }
    table!("probes", rows,
        "traffic": Text = |row| Arc::clone(&row.0),
        "value": Text = |row| Arc::clone(&row.1),
        "time_s": Number = |row| row.2,
        "number": Number = |row| row.3,
    )
}

/// Returns the cumulative distribution of latencies: values in nanoseconds, each with the share of latencies that do
/// not exceed it.
pub fn cumulative(measured: &Measured) -> Vec<(u64, f64)> {
    let total = measured.latency.len().max(1) as f64;
    let mut seen = 0;
    let points = measured.latency.iter_recorded().map(|step| {
        seen += step.count_since_last_iteration();
        (step.value_iterated_to(), seen as f64 / total)
    });
    points.collect()
}
