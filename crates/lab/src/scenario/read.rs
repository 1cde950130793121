//! Scenario files.
//!
//! ```toml
//! duration = "2s"
//! seed = 1
//! sample = "1ms"                    # how often queues are sampled
//!
//! [[traffic]]
//! name = "voice"
//! kind = "udp"                      # udp, tcp, flows, requests, ping, replay
//! from = "h1"                       # a host, a list of hosts, or "all"
//! to = "h2"                         # one for all senders, as many as senders, or (flows, ping) any
//! rate = "10Mbps"
//! size = 500                        # bytes of a frame
//! timing = "poisson"                # constant, poisson, or on-off with `on` and `off`
//! start = "100ms"
//! stop = "1s"
//!
//! [[traffic]]
//! name = "bulk"
//! kind = "tcp"
//! from = ["h1", "h3"]
//! to = "h2"
//! bytes = 1000000                   # none: without end
//! control = "reno"                  # reno, cubic, none
//!
//! [[traffic]]
//! name = "search"
//! kind = "flows"
//! from = "all"
//! to = "all"
//! sizes = "web-search"              # web-search, data-mining, or a number of bytes
//! rate = "100Mbps"                  # that each sender offers
//!
//! [[faults]]
//! at = "500ms"
//! crash = "s1"                      # or restart = "s1", down = ["s1", "s2"], up = ["s1", "s2"],
//!                                   # partition = ["s1", "h1"], heal = ["s1", "h1"],
//!                                   # slow = "h1" with by = "10us", skew = "h1" with offset = "1ms" and drift_ppm = 50
//! [random-faults]
//! every = "200ms"
//! lasts = "50ms"
//! kinds = ["crash", "link"]
//!
//! [[captures]]
//! at = "s1:2"
//! file = "s1-2.pcap"
//!
//! [[expect]]
//! traffic = "voice"
//! delivered = 0.99                  # at least; also rate = "1Mbps", latency_p50 = "1ms", latency_p99 = "5ms" (at most)
//! ```

use source::{Diagnostics, FileId, Span};
use toml::de::{DeTable, DeValue};

use super::{Expectation, Quantity, RandomFaults, Scenario, Timing, Traffic, TrafficKind};
use crate::read::document::{self, Reader};
use crate::read::field;
use crate::sim::CongestionControl;
use crate::sim::traffic::SizeDistribution;
use crate::topology::{Delay, Node, Rate, Topology};

const TRAFFIC_KEYS: [&str; 21] = [
    "name", "kind", "from", "to", "start", "stop", "rate", "size", "timing", "on", "off", "bytes", "control", "window",
    "sizes", "request", "response", "think", "file", "count", "interval",
];

/// Reads a scenario for a topology. `None` if there was an error.
pub fn read(file: FileId, text: &str, topology: &Topology, diagnostics: &mut Diagnostics) -> Option<Scenario> {
    let document = document::parse(file, text, diagnostics)?;
    let top = document.get_ref();
    let mut reader = Reader { file, diagnostics };
    let keys = ["duration", "seed", "sample", "traffic", "faults", "random-faults", "captures", "expect"];
    reader.known(top, "a scenario", &keys);
    let duration = reader.parsed(top, "duration").unwrap_or(Delay::from_ms(1_000));
    let mut scenario = Scenario {
        duration,
        seed: reader.integer(top, "seed", 0..=u32::MAX).unwrap_or(1).into(),
        sample: reader.parsed(top, "sample").unwrap_or(Delay::from_ms(1)).max(Delay::from_ns(1_000)),
        traffic: Vec::new(),
        faults: Vec::new(),
        random_faults: reader.random_faults(top),
        captures: Vec::new(),
        expect: Vec::new(),
    };
    for (table, span) in reader.list(top, "traffic") {
        if let Some(traffic) = reader.traffic(table, span, topology, &scenario) {
            scenario.traffic.push(traffic);
        }
    }
    for (table, span) in reader.list(top, "faults") {
        let faults = reader.fault(table, span, topology);
        scenario.faults.extend(faults);
    }
    for (table, span) in reader.list(top, "captures") {
        reader.known(table, "a capture", &["at", "file"]);
        let end = reader.text(table, "at").and_then(|at| reader.end(at, topology));
        match (end, reader.text(table, "file")) {
            (Some(end), Some((name, _))) => scenario.captures.push((end, name.to_owned())),
            (_, None) => reader.wrong(span, "a capture needs a file: file = \"s1.pcap\""),
            (None, _) => reader.wrong(span, "a capture needs a place: at = \"s1:2\""),
        }
    }
    for (table, span) in reader.list(top, "expect") {
        reader.expectations(table, span, &mut scenario);
    }
    (!diagnostics.has_errors()).then_some(scenario)
}

impl Reader<'_> {
    /// The tables of a list of tables.
    fn list<'a>(&mut self, top: &'a DeTable<'a>, key: &str) -> Vec<(&'a DeTable<'a>, Span)> {
        let Some((value, span)) = self.get(top, key) else { return Vec::new() };
        let Some(items) = value.as_array() else {
            self.wrong(span, format!("`{key}` is a list: write [[{key}]] before each"));
            return Vec::new();
        };
        let mut found = Vec::new();
        for item in items.iter() {
            let span = self.span(item.span());
            match item.get_ref().as_table() {
                Some(table) => found.push((table, span)),
                None => self.wrong(span, format!("write [[{key}]] before each")),
            }
        }
        found
    }

    /// Texts that are one or a list.
    fn texts<'a>(&mut self, table: &'a DeTable<'a>, key: &str) -> Option<Vec<(&'a str, Span)>> {
        let (value, span) = self.get(table, key)?;
        let texts = match value {
            DeValue::String(text) => Some(vec![(text.as_ref(), span)]),
            DeValue::Array(list) => {
                list.iter().map(|one| Some((one.get_ref().as_str()?, self.span(one.span())))).collect()
            }
            _ => None,
        };
        if texts.is_none() {
            self.wrong(span, format!("`{key}` is a name, or a list of names"));
        }
        texts
    }

    fn node(&mut self, (name, span): (&str, Span), topology: &Topology) -> Option<Node> {
        let node = topology.node(name);
        if node.is_none() {
            let hosts = topology.hosts.iter().map(|host| host.name.as_str());
            let names = hosts.chain(topology.switches.iter().map(|switch| switch.name.as_str()));
            let near = field::nearest(name, names).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            self.wrong(span, format!("there is no host or switch `{name}`{near}"));
        }
        node
    }

    fn hosts_of(&mut self, table: &DeTable<'_>, key: &str, topology: &Topology) -> Option<Vec<usize>> {
        let texts = self.texts(table, key)?;
        if let [("all", _)] = texts[..] {
            return Some((0..topology.hosts.len()).collect());
        }
        let mut hosts = Vec::new();
        for text in texts {
            match self.node(text, topology) {
                Some(Node::Host(host)) => hosts.push(host),
                Some(Node::Switch(_)) => {
                    self.wrong(text.1, format!("`{}` is a switch; hosts send and receive", text.0))
                }
                None => {}
            }
        }
        Some(hosts)
    }

    fn one_of<T: Clone>(&mut self, table: &DeTable<'_>, key: &str, choices: &[(&str, T)]) -> Option<T> {
        let (text, span) = self.text(table, key)?;
        let found = choices.iter().find(|(name, _)| *name == text);
        if found.is_none() {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            self.wrong(span, format!("`{key}` is one of {}", names.join(", ")));
        }
        found.map(|(_, value)| value.clone())
    }

    fn traffic(
        &mut self,
        table: &DeTable<'_>,
        span: Span,
        topology: &Topology,
        scenario: &Scenario,
    ) -> Option<Traffic> {
        self.known(table, "traffic", &TRAFFIC_KEYS);
        let number = scenario.traffic.len() + 1;
        let name = self.text(table, "name").map_or(format!("traffic {number}"), |(name, _)| name.to_owned());
        if scenario.traffic.iter().any(|other| other.name == name) {
            self.wrong(span, format!("there are two of the name `{name}`"));
        }
        let Some((kind, kind_span)) = self.text(table, "kind") else {
            self.wrong(span, "traffic needs a kind: udp, tcp, flows, requests, ping or replay");
            return None;
        };
        let kind = self.kind(table, span, kind, kind_span);
        let from = self.hosts_of(table, "from", topology);
        if from.is_none() {
            self.wrong(span, "traffic needs senders: from = \"h1\"");
        }
        let to = self.hosts_of(table, "to", topology);
        let (kind, from) = (kind?, from?);
        let pairs = self.pairs(span, &kind, from, to)?;
        let start: Delay = self.parsed(table, "start").unwrap_or_default();
        let stop = self.parsed(table, "stop").unwrap_or(scenario.duration);
        if stop <= start {
            self.wrong(span, format!("`{name}` stops before it starts"));
        }
        Some(Traffic { name, pairs, start, stop, kind })
    }

    fn kind(&mut self, table: &DeTable<'_>, span: Span, kind: &str, kind_span: Span) -> Option<TrafficKind> {
        Some(match kind {
            "udp" => self.udp(table, span)?,
            "tcp" => TrafficKind::Tcp {
                bytes: self.integer(table, "bytes", 1..=u32::MAX).map(u64::from),
                window: self.integer(table, "window", 2_048..=1 << 26).unwrap_or(1 << 18),
                control: self.control(table),
            },
            "flows" => TrafficKind::Flows {
                sizes: self.sizes(table),
                rate_bps: self.offered(table, span)?,
                control: self.control(table),
            },
            "requests" => TrafficKind::Requests {
                request: self.integer(table, "request", 16..=1 << 30).unwrap_or(100),
                response: self.integer(table, "response", 1..=1 << 30).unwrap_or(1_000),
                think: self.parsed(table, "think").unwrap_or_default(),
                control: self.control(table),
            },
            "ping" => TrafficKind::Ping {
                count: self.integer(table, "count", 1..=1_000_000).unwrap_or(5),
                interval: self.parsed(table, "interval").unwrap_or(Delay::from_ms(100)),
            },
            "replay" => match self.text(table, "file") {
                Some((file, _)) => TrafficKind::Replay(file.to_owned()),
                None => {
                    self.wrong(span, "a replay needs a file: file = \"in.pcap\"");
                    return None;
                }
            },
            other => {
                let message =
                    format!("`{other}` is no kind of traffic; there are udp, tcp, flows, requests, ping, replay");
                self.wrong(kind_span, message);
                return None;
            }
        })
    }

    fn udp(&mut self, table: &DeTable<'_>, span: Span) -> Option<TrafficKind> {
        let timings = [
            ("constant", Timing::Constant),
            ("poisson", Timing::Poisson),
            ("on-off", Timing::OnOff { on: Delay::from_ms(10), off: Delay::from_ms(10) }),
        ];
        let mut timing = self.one_of(table, "timing", &timings).unwrap_or(Timing::Constant);
        if let Timing::OnOff { on, off } = &mut timing {
            *on = self.parsed(table, "on").unwrap_or(*on);
            *off = self.parsed(table, "off").unwrap_or(*off);
        }
        let size = self.integer(table, "size", 62..=9_230).unwrap_or(512);
        Some(TrafficKind::Udp { size, rate_bps: self.offered(table, span)?, timing })
    }

    fn offered(&mut self, table: &DeTable<'_>, span: Span) -> Option<u64> {
        if self.get(table, "rate").is_none() {
            self.wrong(span, "this traffic needs a rate: rate = \"10Mbps\"");
        }
        self.parsed(table, "rate").map(Rate::bps)
    }

    fn control(&mut self, table: &DeTable<'_>) -> CongestionControl {
        let controls =
            [("reno", CongestionControl::Reno), ("cubic", CongestionControl::Cubic), ("none", CongestionControl::None)];
        self.one_of(table, "control", &controls).unwrap_or(CongestionControl::Reno)
    }

    fn sizes(&mut self, table: &DeTable<'_>) -> SizeDistribution {
        match self.get(table, "sizes") {
            Some((DeValue::Integer(_), _)) => {
                SizeDistribution::fixed(self.integer(table, "sizes", 1..=u32::MAX).unwrap_or(1).into())
            }
            _ => {
                let known =
                    [("web-search", SizeDistribution::web_search()), ("data-mining", SizeDistribution::data_mining())];
                self.one_of(table, "sizes", &known).unwrap_or_else(SizeDistribution::web_search)
            }
        }
    }

    /// Who sends to whom.
    fn pairs(
        &mut self,
        span: Span,
        kind: &TrafficKind,
        from: Vec<usize>,
        to: Option<Vec<usize>>,
    ) -> Option<Vec<(usize, Vec<usize>)>> {
        if matches!(kind, TrafficKind::Replay(_)) {
            return Some(from.into_iter().map(|host| (host, Vec::new())).collect());
        }
        let Some(to) = to else {
            self.wrong(span, "traffic needs receivers: to = \"h2\"");
            return None;
        };
        let any = matches!(kind, TrafficKind::Flows { .. } | TrafficKind::Ping { .. });
        let several = to.len() > 1;
        if !any && several && to.len() != from.len() {
            let (from, to) = (from.len(), to.len());
            self.wrong(span, format!("{from} senders and {to} receivers: name one receiver, or as many as senders"));
            return None;
        }
        let pairs = from.into_iter().enumerate().map(|(at, host)| {
            let receivers = match (any, several) {
                (false, true) => vec![to[at]],
                _ => to.iter().copied().filter(|other| *other != host).collect(),
            };
            (host, receivers)
        });
        Some(pairs.filter(|(host, receivers)| receivers.iter().any(|other| other != host)).collect())
    }

    fn expectations(&mut self, table: &DeTable<'_>, span: Span, scenario: &mut Scenario) {
        self.known(table, "an expectation", &["traffic", "delivered", "rate", "latency_p50", "latency_p99"]);
        let Some((name, name_span)) = self.text(table, "traffic") else {
            return self.wrong(span, "an expectation is about some traffic: traffic = \"voice\"");
        };
        let Some(traffic) = scenario.traffic.iter().position(|traffic| traffic.name == name) else {
            return self.wrong(name_span, format!("there is no traffic `{name}`"));
        };
        let mut expect = |what, at_least, at_most| {
            scenario.expect.push(Expectation { traffic, what, at_least, at_most, span });
        };
        if let Some(share) = self.chance(table, "delivered") {
            expect(Quantity::Delivered, Some(share), None);
        }
        if let Some(rate) = self.parsed::<Rate>(table, "rate") {
            expect(Quantity::Rate, Some(rate.bps() as f64), None);
        }
        for (key, what) in [("latency_p50", Quantity::LatencyP50), ("latency_p99", Quantity::LatencyP99)] {
            if let Some(most) = self.parsed::<Delay>(table, key) {
                expect(what, None, Some(most.as_ns() as f64));
            }
        }
    }

    fn random_faults(&mut self, top: &DeTable<'_>) -> Option<RandomFaults> {
        let table = self.table(top, "random-faults")?;
        self.known(table, "`random-faults`", &["every", "lasts", "kinds"]);
        let kinds = self.texts(table, "kinds");
        for (kind, span) in kinds.iter().flatten() {
            if !["crash", "link"].contains(kind) {
                self.wrong(*span, format!("`{kind}` is no kind of random fault; there are crash and link"));
            }
        }
        let has = |wanted: &str| kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|(kind, _)| *kind == wanted));
        Some(RandomFaults {
            crashes: has("crash"),
            links: has("link"),
            every: self.parsed(table, "every").unwrap_or(Delay::from_ms(1_000)),
            lasts: self.parsed(table, "lasts").unwrap_or(Delay::from_ms(100)),
        })
    }

    pub(super) fn place(&mut self, text: (&str, Span), topology: &Topology) -> Option<Node> {
        self.node(text, topology)
    }

    pub(super) fn names<'a>(&mut self, table: &'a DeTable<'a>, key: &str) -> Option<Vec<(&'a str, Span)>> {
        self.texts(table, key)
    }
}
