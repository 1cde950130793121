//! Reports of tests, for people and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use diagnostics::{SourceMap, Span};
use serde_json::{Value as Json, json};
use switch::trace::{PassOutcome, Trace};

use crate::data::{PacketPattern, difference, hex};
use crate::run::CommandRefusal;

/// The report of a test.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Failures in the script's order.
    pub failures: Vec<Failure>,
    /// The packets that were received.
    pub packets: Vec<Sent>,
    /// All packets that left the switch, in order.
    pub arrivals: Vec<Arrival>,
    /// Results of the script's read commands.
    pub readings: Vec<Reading>,
    /// The switch's counters at the end, except those that are 0.
    pub counted: Vec<(String, u64)>,
}

/// A received packet.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Its command.
    pub at: Span,
    /// The port.
    pub port: u32,
    /// The bytes.
    pub data: Vec<u8>,
    /// Virtual time, in nanoseconds.
    pub time_ns: u64,
    /// Its trace. Only the first packets of a long test have one.
    pub trace: Option<Trace>,
}

/// A packet that left the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The port.
    pub port: u32,
    /// The bytes.
    pub data: Vec<u8>,
    /// Index of the received packet that made it leave; `None` if it had waited in a queue.
    pub cause: Option<usize>,
    /// Virtual time, in nanoseconds.
    pub time_ns: u64,
}

/// The result of a read command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The command.
    pub at: Span,
    /// The result.
    pub text: String,
}

/// A deviation from the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A packet differs from the expectation.
    Differs {
        /// The `expect`.
        at: Span,
        /// The port.
        port: u32,
        /// The expectation.
        pattern: PacketPattern,
        /// The actual bytes.
        data: Vec<u8>,
        /// The packet that caused it.
        cause: Option<usize>,
    },
    /// An expected packet is missing.
    Missing {
        /// The `expect`.
        at: Span,
        /// The port.
        port: u32,
        /// The expectation.
        pattern: PacketPattern,
        /// The last packet before the `expect`.
        after: Option<usize>,
    },
    /// A packet was not expected.
    Unexpected {
        /// The `packet` that caused it, if it is known.
        at: Option<Span>,
        /// The port.
        port: u32,
        /// The actual bytes.
        data: Vec<u8>,
        /// The packet that caused it.
        cause: Option<usize>,
    },
    /// A counter, register or digest has another value.
    Check {
        /// The command.
        at: Span,
        /// The message.
        message: String,
    },
    /// The switch refused a command.
    Refused {
        /// The command.
        at: Span,
        /// The reason.
        refusal: CommandRefusal,
    },
}

/// An `expect`.
pub(crate) struct Expectation {
    pub(crate) at: Span,
    pub(crate) port: u32,
    pub(crate) pattern: PacketPattern,
    /// The last packet before it.
    pub(crate) after: Option<usize>,
}

/// Maximum number of pairs for the search. Beyond it, expected and actual packets of a port are paired by index.
const MAX_PAIRS: usize = 1 << 18;

/// Compares the packets that left by each port that `matters` to the expected ones, in order.
pub(crate) fn compare(report: &mut Report, expected: Vec<Expectation>, matters: impl Fn(u32) -> bool) {
    let mut ports: BTreeMap<u32, (Vec<&Expectation>, Vec<&Arrival>)> = BTreeMap::new();
    for expectation in &expected {
        ports.entry(expectation.port).or_default().0.push(expectation);
    }
    for arrival in report.arrivals.iter().filter(|arrival| matters(arrival.port)) {
        ports.entry(arrival.port).or_default().1.push(arrival);
    }
    let mut failures = std::mem::take(&mut report.failures);
    for (port, (expected, arrived)) in &ports {
        for pair in pairs(expected, arrived) {
            match pair {
                (Some(want), Some(got)) if want.pattern.matches(&got.data) => {}
                (Some(want), Some(got)) => failures.push(Failure::Differs {
                    at: want.at,
                    port: *port,
                    pattern: want.pattern.clone(),
                    data: got.data.clone(),
                    cause: got.cause,
                }),
                (Some(want), None) => failures.push(Failure::Missing {
                    at: want.at,
                    port: *port,
                    pattern: want.pattern.clone(),
                    after: want.after,
                }),
                (None, Some(got)) => failures.push(Failure::Unexpected {
                    at: got.cause.map(|cause| report.packets[cause].at),
                    port: *port,
                    data: got.data.clone(),
                    cause: got.cause,
                }),
                (None, None) => {}
            }
        }
    }
    failures.sort_by_key(|failure| failure.at().map(|at| at.start));
    report.failures = failures;
}

type Pair<'a> = (Option<&'a Expectation>, Option<&'a Arrival>);

/// Pairs expected and actual packets in order, from the first difference on. As many as possible match, and the rest
/// between matches is paired in order too.
fn pairs<'a>(expected: &[&'a Expectation], arrived: &[&'a Arrival]) -> Vec<Pair<'a>> {
    // Packets that match from the start need no search.
    let same = expected.iter().zip(arrived).take_while(|(want, got)| want.pattern.matches(&got.data)).count();
    let (expected, arrived) = (&expected[same..], &arrived[same..]);
    let mut pairs = Vec::new();
    let mut gap = |from: (usize, usize), to: (usize, usize)| {
        let (wanted, got) = (&expected[from.0..to.0], &arrived[from.1..to.1]);
        // Of several unmatched packets, the most similar ones are paired.
        let skip_expected = best_shift(wanted, got);
        let skip_arrived = best_shift_back(wanted, got);
        for want in &wanted[..skip_expected] {
            pairs.push((Some(*want), None));
        }
        for extra in &got[..skip_arrived] {
            pairs.push((None, Some(*extra)));
        }
        let (wanted, got) = (&wanted[skip_expected..], &got[skip_arrived..]);
        for index in 0..wanted.len().max(got.len()) {
            pairs.push((wanted.get(index).copied(), got.get(index).copied()));
        }
    };
    let mut at = (0, 0);
    for (e, a) in fitting(expected, arrived) {
        gap(at, (e, a));
        at = (e + 1, a + 1);
    }
    gap(at, (expected.len(), arrived.len()));
    pairs
}

/// Returns the number of expected packets to skip first, so that the others are most similar to the actual ones.
fn best_shift(wanted: &[&Expectation], got: &[&Arrival]) -> usize {
    if wanted.len() <= got.len() || got.is_empty() || wanted.len() * got.len() > MAX_PAIRS {
        return 0;
    }
    let distance = |shift: usize| -> usize {
        wanted[shift..].iter().zip(got).map(|(want, got)| want.pattern.distance(&got.data)).sum()
    };
    (0..=wanted.len() - got.len()).min_by_key(|shift| distance(*shift)).unwrap_or(0)
}

/// Returns the number of actual packets to skip first, so that the others are most similar to the expected ones.
fn best_shift_back(wanted: &[&Expectation], got: &[&Arrival]) -> usize {
    if got.len() <= wanted.len() || wanted.is_empty() || wanted.len() * got.len() > MAX_PAIRS {
        return 0;
    }
    let distance = |shift: usize| -> usize {
        wanted.iter().zip(&got[shift..]).map(|(want, got)| want.pattern.distance(&got.data)).sum()
    };
    (0..=got.len() - wanted.len()).min_by_key(|shift| distance(*shift)).unwrap_or(0)
}

/// Returns the indices of a longest common subsequence: packets that match.
fn fitting(expected: &[&Expectation], arrived: &[&Arrival]) -> Vec<(usize, usize)> {
    let (rows, columns) = (expected.len(), arrived.len());
    let fits = |e: usize, a: usize| expected[e].pattern.matches(&arrived[a].data);
    if rows.saturating_mul(columns) > MAX_PAIRS {
        return (0..rows.min(columns)).filter(|at| fits(*at, *at)).map(|at| (at, at)).collect();
    }
    let mut longest = vec![vec![0u32; columns + 1]; rows + 1];
    for e in (0..rows).rev() {
        for a in (0..columns).rev() {
            longest[e][a] =
                if fits(e, a) { longest[e + 1][a + 1] + 1 } else { longest[e + 1][a].max(longest[e][a + 1]) };
        }
    }
    let (mut e, mut a, mut found) = (0, 0, Vec::new());
    while e < rows && a < columns {
        if fits(e, a) {
            found.push((e, a));
            (e, a) = (e + 1, a + 1);
        } else if longest[e + 1][a] >= longest[e][a + 1] {
            e += 1;
        } else {
            a += 1;
        }
    }
    found
}

impl Failure {
    /// Returns the span of the command.
    pub fn at(&self) -> Option<Span> {
        match self {
            Failure::Unexpected { at, .. } => *at,
            Failure::Differs { at, .. }
            | Failure::Missing { at, .. }
            | Failure::Check { at, .. }
            | Failure::Refused { at, .. } => Some(*at),
        }
    }

    /// Returns the packet whose trace has details.
    pub fn packet(&self) -> Option<usize> {
        match self {
            Failure::Differs { cause, .. } | Failure::Unexpected { cause, .. } => *cause,
            Failure::Missing { after, .. } => *after,
            Failure::Check { .. } | Failure::Refused { .. } => None,
        }
    }

    /// Returns the failure as one sentence.
    pub fn sentence(&self) -> String {
        match self {
            Failure::Differs { port, .. } => format!("the packet on port {port} differs from the expected one"),
            Failure::Missing { port, .. } => format!("port {port} did not send the expected packet"),
            Failure::Unexpected { port, .. } => format!("port {port} sent an unexpected packet"),
            Failure::Check { message, .. } => message.clone(),
            Failure::Refused { refusal, .. } => format!("the switch rejected this: {refusal}"),
        }
    }
}

impl Report {
    /// Whether there are no failures.
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }

    /// Renders all failures for people. Empty if the test passed.
    pub fn render(&self, map: &SourceMap) -> String {
        let mut text = String::new();
        for failure in &self.failures {
            if !text.is_empty() {
                text.push('\n');
            }
            let place = failure.at().map_or(String::new(), |at| format!("{}: ", line(map, at)));
            let _ = writeln!(text, "{place}{}", failure.sentence());
            match failure {
                Failure::Differs { pattern, data, .. } => text.push_str(&difference(pattern, data)),
                Failure::Missing { pattern, .. } if pattern.nibbles.is_empty() => {}
                Failure::Missing { pattern, .. } => {
                    let _ = writeln!(text, "  expected {}", pattern.text());
                }
                Failure::Unexpected { data, .. } => {
                    let _ = writeln!(text, "  got {}", hex(data));
                }
                Failure::Check { .. } | Failure::Refused { .. } => {}
            }
            self.render_cause(&mut text, map, failure);
        }
        text
    }

    /// Renders the fate of the packet that caused a failure.
    fn render_cause(&self, text: &mut String, map: &SourceMap, failure: &Failure) {
        let Some(packet) = failure.packet().and_then(|index| self.packets.get(index)) else { return };
        let place = if failure.at() == Some(packet.at) { String::new() } else { format!("{}: ", line(map, packet.at)) };
        let _ = writeln!(text, "  {place}the packet received on port {}", packet.port);
        let Some(trace) = &packet.trace else { return };
        for pass in &trace.passes {
            let outcome = match &pass.outcome {
                PassOutcome::Sent { port, data, .. } => format!("was sent on port {port}, {} bytes", data.len() / 2),
                PassOutcome::Dropped { sentence, place, body, port, .. } => {
                    let place = place.as_deref().map_or(String::new(), |place| format!(" at {place}"));
                    let body = body.as_deref().map_or(String::new(), |body| format!(" ({body})"));
                    let port = port.map_or(String::new(), |port| format!(" (port {port})"));
                    format!("was dropped {sentence}{place}{body}{port}")
                }
                PassOutcome::Replicated { copies, .. } => format!("was copied {copies} times"),
                PassOutcome::ReplicatedToPorts { ports } => format!("was copied {} times", ports.len()),
                PassOutcome::Parked => "waits for a row of resilient state".to_owned(),
                PassOutcome::Resubmitted => "was resubmitted".to_owned(),
                PassOutcome::Recirculated { .. } => "was recirculated".to_owned(),
                PassOutcome::Queued { port, .. } => format!("waited in a queue of port {port}"),
                PassOutcome::Running => continue,
            };
            let _ = writeln!(text, "    {outcome}");
        }
    }

    /// Converts the report to JSON, with the traces of packets if `traces` is set.
    pub fn to_json(&self, map: &SourceMap, traces: bool) -> Json {
        let failures: Vec<Json> = self.failures.iter().map(|failure| self.failure_json(map, failure)).collect();
        let packets = self.packets.iter().enumerate().map(|(index, packet)| {
            let left = self.arrivals.iter().filter(|arrival| arrival.cause == Some(index));
            let left: Vec<Json> =
                left.map(|it| json!({ "port": it.port, "data": compact(&it.data), "time_ns": it.time_ns })).collect();
            let mut json = json!({
                "line": map.position(packet.at).line,
                "port": packet.port,
                "data": compact(&packet.data),
                "time_ns": packet.time_ns,
                "left": left,
            });
            if let (true, Some(trace)) = (traces, &packet.trace) {
                json["trace"] = trace.to_json();
            }
            json
        });
        let readings = self.readings.iter().map(|it| json!({ "line": map.position(it.at).line, "text": it.text }));
        json!({
            "passed": self.passed(),
            "failures": failures,
            "packets": packets.collect::<Vec<_>>(),
            "readings": readings.collect::<Vec<_>>(),
        })
    }

    fn failure_json(&self, map: &SourceMap, failure: &Failure) -> Json {
        let mut json = json!({
            "kind": match failure {
                Failure::Differs { .. } => "differs",
                Failure::Missing { .. } => "missing",
                Failure::Unexpected { .. } => "unexpected",
                Failure::Check { .. } => "check",
                Failure::Refused { .. } => "refused",
            },
            "line": failure.at().map(|at| map.position(at).line),
            "message": failure.sentence(),
            "packet": failure.packet(),
        });
        if let Failure::Differs { port, .. } | Failure::Missing { port, .. } | Failure::Unexpected { port, .. } =
            failure
        {
            json["port"] = json!(port);
        }
        if let Failure::Differs { pattern, .. } | Failure::Missing { pattern, .. } = failure {
            json["expected"] = json!(pattern.text().replace(' ', ""));
        }
        if let Failure::Differs { data, .. } | Failure::Unexpected { data, .. } = failure {
            json["got"] = json!(compact(data));
        }
        json
    }
}

fn compact(bytes: &[u8]) -> String {
    hex(bytes).replace(' ', "")
}

/// `test.stf:12`
fn line(map: &SourceMap, at: Span) -> String {
    let place = map.position(at);
    format!("{}:{}", place.file, place.line)
}
