//! Reads the expected results of a scenario from a file, and checks them.

use diagnostics::Span;
use switch::Time;
use toml::de::{DeTable, DeValue};

use super::{CountResult, PathPolicy, Results, Scenario, switch_names};
use crate::read::document::{self, Reader};
use crate::topology::{Delay, End, Rate, Topology};

/// A condition that must hold at the end of the simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The quantity that is bounded.
    pub what: Quantity,
    /// Lower bound.
    pub at_least: Option<f64>,
    /// Upper bound.
    pub at_most: Option<f64>,
    /// Location in the file.
    pub span: Span,
}

/// A number that results from a simulation. Traffic is identified by its index in the scenario.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// The fraction of what some traffic sent that arrived, was answered or completed: 0 to 1.
    Delivered(usize),
    /// Goodput of some traffic: bits of payload per second.
    Rate(usize),
    /// Median latency of some traffic, in nanoseconds.
    LatencyP50(usize),
    /// 99th percentile of the latency of some traffic, in nanoseconds.
    LatencyP99(usize),
    /// The fraction of its ECN-capable packets that arrived with a mark: 0 to 1.
    Marked(usize),
    /// A value that probes read.
    Value {
        /// The probes.
        traffic: usize,
        /// Index of the reading among those of the probes.
        reading: usize,
        /// Statistic over its values.
        statistic: Statistic,
        /// Only values that arrived at this time or later.
        after: Delay,
        /// Only values that arrived before this time.
        before: Delay,
    },
    /// Largest error of the numbers of elements that sketches estimate, in standard errors.
    Deviation(usize),
    /// Packets that did not follow a policy.
    Strays {
        /// The traffic.
        traffic: usize,
        /// The paths that its packets may take.
        policy: PathPolicy,
    },
    /// Frames that an end sent.
    Frames(End),
    /// Bits of frames that an end sent, per second of the scenario.
    Carried(End),
    /// Maximum number of frames that waited at an end.
    Queue(End),
    /// Mean number of frames that waited at an end.
    MeanQueue(End),
    /// Frames that found the queue of an end full.
    Drops(End),
    /// The fraction of the frames sent by several ends that one end sent: 0 to 1.
    Share(End, Vec<End>),
}

/// A statistic over many values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The smallest.
    Least,
    /// The mean.
    Mean,
    /// The largest.
    Most,
    /// The last.
    Last,
}

/// An expectation that was not met.
#[derive(Clone, Debug, PartialEq)]
pub struct Unmet {
    /// Text with the quantity, the expected bound and the actual value.
    pub message: String,
    /// Location in the scenario file.
    pub span: Span,
}

/// The direction in which a single number bounds a quantity; a list of two bounds it in both.
#[derive(Clone, Copy, PartialEq)]
enum Bound {
    Least,
    Most,
}

const TRAFFIC: [&str; 7] = ["traffic", "delivered", "rate", "latency_p50", "latency_p99", "marked", "deviation"];
const PATH: [&str; 5] = ["traffic", "passes", "avoids", "after", "before"];
const VALUE: [&str; 8] = ["traffic", "value", "least", "mean", "most", "last", "after", "before"];
const LINK: [&str; 8] = ["link", "frames", "rate", "queue", "queue_mean", "drops", "share", "among"];

impl Reader<'_> {
    /// Reads the expectations of one table.
    pub(super) fn expectations(
        &mut self,
        table: &DeTable<'_>,
        span: Span,
        topology: &Topology,
        scenario: &Scenario,
    ) -> Vec<Expectation> {
        let before = self.diagnostics.error_count();
        let mut found = Vec::new();
        let mut expect = |what, bounds: Option<([Option<f64>; 2], Span)>| {
            if let Some(([at_least, at_most], span)) = bounds {
                found.push(Expectation { what, at_least, at_most, span });
            }
        };
        let number = document::number;
        let rate = |value: &DeValue<'_>| value.as_str()?.parse::<Rate>().ok().map(|rate| rate.bps() as f64);
        let delay = |value: &DeValue<'_>| value.as_str()?.parse::<Delay>().ok().map(|delay| delay.as_ns() as f64);
        if self.get(table, "link").is_some() {
            self.known(table, "an expectation of a link", &LINK);
            let Some(end) = self.text(table, "link").and_then(|text| self.sending_end(text, topology)) else {
                return found;
            };
            expect(Quantity::Frames(end), self.bounds(table, "frames", Bound::Least, number, "1000"));
            expect(Quantity::Carried(end), self.bounds(table, "rate", Bound::Least, rate, "\"10Mbps\""));
            expect(Quantity::Queue(end), self.bounds(table, "queue", Bound::Most, number, "40"));
            expect(Quantity::MeanQueue(end), self.bounds(table, "queue_mean", Bound::Most, number, "12.5"));
            expect(Quantity::Drops(end), self.bounds(table, "drops", Bound::Most, number, "0"));
            let among = self.ends_among(table, topology);
            if among.is_some() != self.get(table, "share").is_some() {
                self.wrong(
                    span,
                    "`share` and `among` must be given together: share = [0.4, 0.6] and among = [\"s1:1\", \"s1:2\"]",
                );
            }
            let share = self.bounds(table, "share", Bound::Least, number, "0.5");
            expect(Quantity::Share(end, among.unwrap_or_default()), share);
        } else {
            let Some((name, name_span)) = self.text(table, "traffic") else {
                self.wrong(span, "an expectation needs a traffic or a link: traffic = \"voice\", link = \"s1:2\"");
                return found;
            };
            let Some(traffic) = scenario.traffic.iter().position(|traffic| traffic.name == name) else {
                self.wrong(name_span, format!("there is no traffic `{name}`"));
                return found;
            };
            if let Some((value, value_span)) = self.text(table, "value") {
                self.known(table, "an expectation of a value", &VALUE);
                let readings = scenario.traffic[traffic].kind.readings();
                let Some(reading) = readings.iter().position(|reading| reading.name == value) else {
                    self.wrong(value_span, format!("`{name}` reads no value `{value}`"));
                    return found;
                };
                let after = self.parsed(table, "after").unwrap_or_default();
                let before = self.parsed(table, "before").unwrap_or(Delay::MAX);
                let statistics = [
                    ("least", Statistic::Least, Bound::Least),
                    ("mean", Statistic::Mean, Bound::Least),
                    ("most", Statistic::Most, Bound::Most),
                    ("last", Statistic::Last, Bound::Least),
                ];
                for (key, statistic, bound) in statistics {
                    let what = Quantity::Value { traffic, reading, statistic, after, before };
                    expect(what, self.bounds(table, key, bound, number, "0.5"));
                }
            } else if let Some(policy) = self.path_policy(table, topology) {
                self.known(table, "an expectation of paths", &PATH);
                if scenario.traffic[traffic].program().is_none() {
                    let message = format!("the packets of `{name}` record no paths: add minion = \"path.tpp\"");
                    self.wrong(name_span, message);
                }
                expect(Quantity::Strays { traffic, policy }, Some(([None, Some(0.0)], span)));
            } else {
                self.known(table, "an expectation of traffic", &TRAFFIC);
                let (least, most) = (Bound::Least, Bound::Most);
                expect(Quantity::Delivered(traffic), self.bounds(table, "delivered", least, share, "0.99"));
                expect(Quantity::Rate(traffic), self.bounds(table, "rate", least, rate, "\"10Mbps\""));
                expect(Quantity::LatencyP50(traffic), self.bounds(table, "latency_p50", most, delay, "\"1ms\""));
                expect(Quantity::LatencyP99(traffic), self.bounds(table, "latency_p99", most, delay, "\"5ms\""));
                expect(Quantity::Marked(traffic), self.bounds(table, "marked", least, share, "0.01"));
                let is_counted = scenario.traffic[traffic].minion.as_ref().is_some_and(|minion| minion.count.is_some());
                if self.get(table, "deviation").is_some() && !is_counted {
                    let message = format!("`{name}` counts nothing on links: add `count` to its minion");
                    self.wrong(name_span, message);
                }
                expect(Quantity::Deviation(traffic), self.bounds(table, "deviation", most, number, "3"));
            }
        }
        if found.is_empty() && self.diagnostics.error_count() == before {
            self.wrong(span, "an expectation needs a bound: delivered = 0.99, rate = \"1Mbps\", queue = 40");
        }
        found
    }

    /// Reads the bounds of a number, with their location: a single bound, or a list of the lower and the upper one.
    fn bounds(
        &mut self,
        table: &DeTable<'_>,
        key: &str,
        bound: Bound,
        read: impl Fn(&DeValue<'_>) -> Option<f64>,
        example: &str,
    ) -> Option<([Option<f64>; 2], Span)> {
        let (value, span) = self.get(table, key)?;
        let found = match value {
            DeValue::Array(list) => match list.iter().map(|one| read(one.get_ref())).collect::<Vec<_>>()[..] {
                [Some(least), Some(most)] if least <= most => Some([Some(least), Some(most)]),
                _ => None,
            },
            one => read(one).map(|one| if bound == Bound::Least { [Some(one), None] } else { [None, Some(one)] }),
        };
        if found.is_none() {
            let which = if bound == Bound::Least { "at least" } else { "at most" };
            let message = format!(
                "`{key}` must be a bound, {key} = {example} ({which}), or a lower and an upper bound: [{example}, \
                 {example}]"
            );
            self.wrong(span, message);
        }
        found.map(|bounds| (bounds, span))
    }

    /// Parses the end that sends: `s1:2`, or a host.
    fn sending_end(&mut self, text: (&str, Span), topology: &Topology) -> Option<End> {
        let end = self.end(text, topology)?;
        let linked = topology.links.iter().any(|link| link.ends.contains(&end));
        if !linked {
            self.wrong(text.1, format!("`{}` has no link", topology.end_name(end)));
        }
        linked.then_some(end)
    }

    fn ends_among(&mut self, table: &DeTable<'_>, topology: &Topology) -> Option<Vec<End>> {
        let names = self.names(table, "among")?;
        Some(names.into_iter().filter_map(|name| self.sending_end(name, topology)).collect())
    }
}

fn share(value: &DeValue<'_>) -> Option<f64> {
    document::number(value).filter(|share| (0.0..=1.0).contains(share))
}

/// Returns the expectations that were not met.
pub fn unmet(scenario: &Scenario, topology: &Topology, results: &Results) -> Vec<Unmet> {
    let one = |expected: &Expectation| {
        let (what, value) = value(&expected.what, topology, results);
        let low = expected.at_least.filter(|least| value.is_nan() || value < *least);
        let high = expected.at_most.filter(|most| value.is_nan() || value > *most);
        let bound = low.map(|least| format!("at least {least}")).or(high.map(|most| format!("at most {most}")))?;
        let is = if value.is_nan() { "was not measured".to_owned() } else { format!("is {}", shown(value, expected)) };
        Some(Unmet { message: format!("{what} {is}, expected {bound}"), span: expected.span })
    };
    scenario.expect.iter().filter_map(one).collect()
}

/// Formats a value to four digits after the decimal point, or to all digits if the rounded value would seem to meet the
/// expectation.
fn shown(value: f64, expected: &Expectation) -> String {
    let short = (value * 1e4).round() / 1e4;
    let meets =
        expected.at_least.is_none_or(|least| short >= least) && expected.at_most.is_none_or(|most| short <= most);
    if meets { value.to_string() } else { short.to_string() }
}

/// Returns the name of a quantity and its actual value; NaN if nothing was measured.
fn value(what: &Quantity, topology: &Topology, results: &Results) -> (String, f64) {
    let named = |what: &str, traffic: usize| format!("{what} of `{}`", results.traffic[traffic].name);
    let at = |what: &str, end: End| format!("{what} at {}", topology.end_name(end));
    let percentile = |traffic: usize, share| {
        let latency = &results.traffic[traffic].measured.latency;
        if latency.is_empty() { f64::NAN } else { latency.value_at_quantile(share) as f64 }
    };
    let stats = |end: End| results.links.iter().find(|link| link.from == end).map(|link| &link.stats);
    let frames = |end: End| stats(end).map_or(0.0, |stats| stats.carried as f64);
    let seconds = results.end.as_ns().max(1) as f64 / 1e9;
    match what {
        Quantity::Delivered(traffic) => (named("the share delivered", *traffic), results.traffic[*traffic].delivered()),
        Quantity::Rate(traffic) => {
            (named("the rate in bit/s", *traffic), results.traffic[*traffic].measured.rate_bps())
        }
        Quantity::LatencyP50(traffic) => (named("the median latency in ns", *traffic), percentile(*traffic, 0.50)),
        Quantity::LatencyP99(traffic) => {
            (named("the 99th percentile of the latency in ns", *traffic), percentile(*traffic, 0.99))
        }
        Quantity::Marked(traffic) => {
            let marks = results.traffic[*traffic].marks;
            let share = marks.marked as f64 / marks.capable as f64;
            (named("the share of marked packets", *traffic), share)
        }
        Quantity::Value { traffic, reading, statistic, after, before } => {
            let values = &results.traffic[*traffic].values[*reading];
            let during = Time::from_ns(after.as_ns())..Time::from_ns(before.as_ns());
            let points: Vec<f64> =
                values.points.iter().filter(|(at, _)| during.contains(at)).map(|(_, value)| *value).collect();
            let (word, value) = match statistic {
                Statistic::Least => ("the minimum", points.iter().copied().fold(f64::NAN, f64::min)),
                Statistic::Mean => ("the mean", points.iter().sum::<f64>() / points.len() as f64),
                Statistic::Most => ("the maximum", points.iter().copied().fold(f64::NAN, f64::max)),
                Statistic::Last => ("the last value", points.last().copied().unwrap_or(f64::NAN)),
            };
            (named(&format!("{word} of `{}`", values.name), *traffic), value)
        }
        Quantity::Strays { traffic, policy } => {
            let (first, count) = policy.strays(results.traffic[*traffic].minion.as_ref(), topology);
            (named("the number of packets on other paths", *traffic) + &first, count)
        }
        Quantity::Deviation(traffic) => {
            let minion = results.traffic[*traffic].minion.as_ref();
            let largest = minion.and_then(|minion| minion.counts.as_ref()).and_then(CountResult::deviation);
            let at = largest.map_or_else(String::new, |(link, _)| {
                let (switch, number) = (switch_names(&[link.link.switch], topology), link.period + 1);
                format!(" (at {switch}:{}, period {number})", link.link.port)
            });
            let what = named("the largest error of an estimate in standard errors", *traffic) + &at;
            (what, largest.map_or(f64::NAN, |(_, deviation)| deviation))
        }
        Quantity::Frames(end) => (at("the frames sent", *end), frames(*end)),
        Quantity::Carried(end) => {
            let bits = stats(*end).map_or(0.0, |stats| stats.carried_bytes as f64 * 8.0);
            (at("the rate in bit/s", *end), bits / seconds)
        }
        Quantity::Queue(end) => {
            (at("the longest queue", *end), stats(*end).map_or(0.0, |stats| stats.longest_queue as f64))
        }
        Quantity::MeanQueue(end) => {
            let waiting = results.samples.iter().filter(|sample| sample.from == *end).map(|sample| sample.waiting);
            let (sum, count) = waiting.fold((0, 0_u64), |(sum, count), waiting| (sum + waiting, count + 1));
            (at("the mean queue", *end), sum as f64 / count as f64)
        }
        Quantity::Drops(end) => (
            at("the frames dropped because of a full queue", *end),
            stats(*end).map_or(0.0, |stats| stats.queue_full as f64),
        ),
        Quantity::Share(end, among) => {
            let all: f64 = among.iter().copied().map(frames).sum();
            (at("the share of frames", *end), frames(*end) / all)
        }
    }
}
