//! What came of a test, for people and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use diagnostics::{SourceMap, Span};
use serde_json::{Value as Json, json};
use switch::trace::{Outcome, Trace};

use crate::data::{Pattern, difference, hex};

/// What came of a test.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What is not as the script says, in its order.
    pub failures: Vec<Failure>,
    /// The packets that went in.
    pub packets: Vec<Sent>,
    /// Everything that left the switch, in that order.
    pub arrivals: Vec<Arrival>,
    /// What the script asked to be read.
    pub readings: Vec<Reading>,
    /// What the switch had counted in the end, what is 0 left out.
    pub counted: Vec<(String, u64)>,
}

/// A packet that went in.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Its command.
    pub at: Span,
    /// The port.
    pub port: u32,
    /// The bytes.
    pub data: Vec<u8>,
    /// When, in nanoseconds of virtual time.
    pub time_ns: u64,
    /// What happened to it; only the first of very many have one.
    pub trace: Option<Trace>,
}

/// A packet that left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The port.
    pub port: u32,
    /// The bytes.
    pub data: Vec<u8>,
    /// The index of the packet whose coming made it leave; `None` if it had waited in a queue.
    pub cause: Option<usize>,
    /// When, in nanoseconds of virtual time.
    pub time_ns: u64,
}

/// Something that the script asked to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The command.
    pub at: Span,
    /// What was read.
    pub text: String,
}

/// Something that is not as the script says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A packet is not as expected.
    Differs {
        /// The `expect`.
        at: Span,
        /// The port.
        port: u32,
        /// What was expected.
        pattern: Pattern,
        /// What left.
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
        /// What was expected.
        pattern: Pattern,
        /// The last packet before the `expect`.
        after: Option<usize>,
    },
    /// A packet that was not expected.
    Unexpected {
        /// The `packet` that caused it, if that is known.
        at: Option<Span>,
        /// The port.
        port: u32,
        /// What left.
        data: Vec<u8>,
        /// The packet that caused it.
        cause: Option<usize>,
    },
    /// A counter, register or digest that is not as it should be.
    Check {
        /// The command.
        at: Span,
        /// What is not as it should be.
        message: String,
    },
    /// The switch refused a command.
    Refused {
        /// The command.
        at: Span,
        /// Why.
        message: String,
    },
}

/// An `expect`.
pub(crate) struct Expectation {
    pub(crate) at: Span,
    pub(crate) port: u32,
    pub(crate) pattern: Pattern,
    /// The last packet before it.
    pub(crate) after: Option<usize>,
}

/// Beyond so many pairs, expected and actual packets of a port are paired by their numbers.
const MAX_PAIRS: usize = 1 << 18;

/// Holds what left by each port that `matters` against what was expected there, in order.
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

/// Expected and actual packets side by side, in order, from the first that does not fit on: as many as possible fit,
/// and what is left between those that do is paired in order too.
fn pairs<'a>(expected: &[&'a Expectation], arrived: &[&'a Arrival]) -> Vec<Pair<'a>> {
    // What came as expected from the first packet on needs no search.
    let same = expected.iter().zip(arrived).take_while(|(want, got)| want.pattern.matches(&got.data)).count();
    let (expected, arrived) = (&expected[same..], &arrived[same..]);
    let mut pairs = Vec::new();
    let mut gap = |from: (usize, usize), to: (usize, usize)| {
        let (wanted, got) = (&expected[from.0..to.0], &arrived[from.1..to.1]);
        // Of several left over, those that are most alike belong together.
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

/// How many expected packets to leave out first, so that the others are most like those that came.
fn best_shift(wanted: &[&Expectation], got: &[&Arrival]) -> usize {
    if wanted.len() <= got.len() || got.is_empty() || wanted.len() * got.len() > MAX_PAIRS {
        return 0;
    }
    let distance = |shift: usize| -> usize {
        wanted[shift..].iter().zip(got).map(|(want, got)| want.pattern.distance(&got.data)).sum()
    };
    (0..=wanted.len() - got.len()).min_by_key(|shift| distance(*shift)).unwrap_or(0)
}

/// How many packets that came to leave out first, so that the others are most like those that were expected.
fn best_shift_back(wanted: &[&Expectation], got: &[&Arrival]) -> usize {
    if got.len() <= wanted.len() || wanted.is_empty() || wanted.len() * got.len() > MAX_PAIRS {
        return 0;
    }
    let distance = |shift: usize| -> usize {
        wanted.iter().zip(&got[shift..]).map(|(want, got)| want.pattern.distance(&got.data)).sum()
    };
    (0..=got.len() - wanted.len()).min_by_key(|shift| distance(*shift)).unwrap_or(0)
}

/// Indices of a longest common subsequence: packets that came as expected.
fn fitting(expected: &[&Expectation], arrived: &[&Arrival]) -> Vec<(usize, usize)> {
    let (rows, columns) = (expected.len(), arrived.len());
    let fits = |e: usize, a: usize| expected[e].pattern.matches(&arrived[a].data);
    if rows.saturating_mul(columns) > MAX_PAIRS {
        return (0..rows.min(columns)).filter(|at| fits(*at, *at)).map(|at| (at, at)).collect();
    }
    let mut longest = vec![vec![0u32; columns + 1]; rows + 1];
    for e in (0..rows).rev() {
        for a in (0..columns).rev() {
            longest[e][a] = match fits(e, a) {
                true => longest[e + 1][a + 1] + 1,
                false => longest[e + 1][a].max(longest[e][a + 1]),
            };
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
    /// The command it is about.
    pub fn at(&self) -> Option<Span> {
        match self {
            Failure::Unexpected { at, .. } => *at,
            Failure::Differs { at, .. }
            | Failure::Missing { at, .. }
            | Failure::Check { at, .. }
            | Failure::Refused { at, .. } => Some(*at),
        }
    }

    /// The packet whose trace tells more.
    pub fn packet(&self) -> Option<usize> {
        match self {
            Failure::Differs { cause, .. } | Failure::Unexpected { cause, .. } => *cause,
            Failure::Missing { after, .. } => *after,
            Failure::Check { .. } | Failure::Refused { .. } => None,
        }
    }

    /// It in one sentence.
    pub fn sentence(&self) -> String {
        match self {
            Failure::Differs { port, .. } => format!("the packet on port {port} is not as expected"),
            Failure::Missing { port, .. } => format!("port {port} did not send the packet that is expected here"),
            Failure::Unexpected { port, .. } => format!("port {port} sent a packet that nothing expects"),
            Failure::Check { message, .. } => message.clone(),
            Failure::Refused { message, .. } => format!("the switch refuses this: {message}"),
        }
    }
}

impl Report {
    /// Whether all is as the script says.
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }

    /// Every failure, for people; empty if the test passed.
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

    /// What became of the packet that a failure goes back to.
    fn render_cause(&self, text: &mut String, map: &SourceMap, failure: &Failure) {
        let Some(packet) = failure.packet().and_then(|index| self.packets.get(index)) else { return };
        let place = match failure.at() == Some(packet.at) {
            true => String::new(),
            false => format!("{}: ", line(map, packet.at)),
        };
        let _ = writeln!(text, "  {place}the packet into port {}", packet.port);
        let Some(trace) = &packet.trace else { return };
        for pass in &trace.passes {
            let outcome = match &pass.outcome {
                Outcome::Sent { port, data, .. } => format!("was sent by port {port}, {} bytes", data.len() / 2),
                Outcome::Dropped { sentence, place, body, .. } => {
                    let place = place.as_deref().map_or(String::new(), |place| format!(" at {place}"));
                    let body = body.as_deref().map_or(String::new(), |body| format!(" ({body})"));
                    format!("was dropped {sentence}{place}{body}")
                }
                Outcome::Replicated { copies, .. } => format!("was copied {copies} times"),
                Outcome::Resubmitted => "was resubmitted".to_owned(),
                Outcome::Recirculated { .. } => "was recirculated".to_owned(),
                Outcome::Queued { port, .. } => format!("waited in a queue of port {port}"),
                Outcome::Running => continue,
            };
            let _ = writeln!(text, "    {outcome}");
        }
    }

    /// The report as JSON; packets with what happened to them if `traces`.
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
