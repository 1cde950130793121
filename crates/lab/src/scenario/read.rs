//! Reads scenario files.
//!
//! ```toml
//! duration = "2s"
//! seed = 1
//! sample = "1ms"                    # time between two samples of the queues
//!
//! [[traffic]]
//! name = "voice"
//! kind = "udp"                      # udp, tcp, flows, requests, ping, rcp, hpcc, conga, tpp, execute, probe, replay
//! from = "h1"                       # a host, a list of hosts, or "all"
//! to = "h2"                         # one for all senders, as many as senders, or (flows, ping) any
//! rate = "10Mbps"
//! size = 500                        # bytes of a frame
//! timing = "poisson"                # constant, poisson, or on-off with `on` and `off`
//! start = "100ms"
//! stop = "1s"
//! minion = "burst.tpp"              # tiny packet program in each packet, or
//!                                   # { file = "burst.tpp", one_in = 10 }; not in pings and frames
//!                                   # with count = "flows" (sources, destinations), bits = 1024, every = "10s":
//!                                   # receivers count what passed each link
//!
//! [[traffic]]
//! name = "bulk"
//! kind = "tcp"
//! from = ["h1", "h3"]
//! to = "h2"
//! bytes = 1000000                   # if left out: without end
//! control = "reno"                  # reno, cubic, none; dctcp
//! ecn = true                        # packets are ECN-capable; with dctcp they always are
//!
//! [[traffic]]
//! name = "web"
//! kind = "requests"
//! from = "h1"
//! to = ["h3", "h4"]                 # share a virtual address,
//! address = "10.0.0.100"            # the destination of the requests
//!
//! [[traffic]]
//! name = "fair"
//! kind = "rcp"                      # datagrams at the fair rate of their path (RCP*)
//! from = "h1"
//! to = "h2"
//! size = 1000
//! fairness = "max-min"              # or "proportional", or the number of another α
//! interval = "10ms"                 # time between two samples of the links
//!
//! [[traffic]]
//! name = "calm"
//! kind = "hpcc"                     # datagrams in windows that keep queues empty (HPCC)
//! from = "h1"
//! to = "h2"
//! target = 0.95                     # utilization of the busiest link
//! max-flows = 16                    # flows on a link for which its queue stays empty
//!
//! [[traffic]]
//! name = "spread"
//! kind = "conga"                    # datagrams of several flows, over paths that the sender chooses (CONGA*)
//! from = "h1"
//! to = "h2"
//! rate = "120Mbps"                  # of all flows together; size and timing as with udp
//! flows = 12
//! balance = "least-loaded"          # or "ecmp": each flow stays on the path of its source port
//! paths = 2                         # source ports that the sender tries; these four with "least-loaded" only
//! metric = "max"                    # or "sum", of the loads of a path's links
//! gap = "500us"                     # pause of a flow that ends a flowlet
//! interval = "1ms"                  # time between two samples of a path
//!
//! [[traffic]]
//! name = "path"
//! kind = "tpp"                      # a program as datagrams, which the receiver echoes
//! from = "h1"
//! to = "h2"
//! file = "path.tpp"
//! interval = "10ms"
//!
//! [[traffic]]
//! name = "queues"
//! kind = "execute"                  # a program of any size, executed reliably; what follows file is optional
//! from = "h1"
//! to = ["h2", "h3"]                 # a request for each
//! file = "queues.tpp"
//! switches = ["s1", "s2"]           # and for each switch that executes it alone
//! count = 5                         # rounds of requests
//! interval = "100ms"                # between two rounds
//! tries = 3                         # of each packet
//! timeout = "20ms"                  # from the first try to the second; it doubles with each
//! deadline = "1s"                   # of a round
//! reflect = false                   # whether the last switch sends the packets back
//!
//! [[traffic]]
//! name = "load"
//! kind = "probe"
//! from = "h1"
//! to = "h2"
//! frame = "ffffffffffff 020000000001 88b5 00000000"       # hexadecimal, from the Ethernet header on
//! interval = "10ms"
//! values = { s1 = { at = 14, bytes = 4, over = [18, 4], scale = 8.0 } }
//!
//! [[traffic]]
//! name = "search"
//! kind = "flows"
//! from = "all"
//! to = "all"
//! sizes = "web-search"              # web-search, data-mining, or a number of bytes
//! rate = "100Mbps"                  # offered load of each sender
//!
//! [[faults]]
//! at = "500ms"
//! crash = "s1"                      # or restart = "s1", down = ["s1", "s2"], up = ["s1", "s2"],
//!                                   # partition = ["s1", "h1"], heal = ["s1", "h1"],
//!                                   # slow = "h1" with by = "10us",
//!                                   # skew = "h1" with offset = "1ms" and drift_ppm = 50
//! [random-faults]
//! every = "200ms"
//! lasts = "50ms"
//! kinds = ["crash", "link"]
//!
//! [[writes]]
//! at = "1s"
//! switch = "s1"
//! delete = "old.json"               # entries file to delete first, then
//! entries = "new.json"              # the one to write; one of them may be left out
//!                                   # or add = "m3", remove = "m1": a memory server joins or leaves
//!
//! [[captures]]
//! at = "s1:2"
//! file = "s1-2.pcap"
//!
//! [[expect]]
//! traffic = "voice"
//! delivered = 0.99                  # at least; also rate = "1Mbps" (at least),
//!                                   # latency_p50 = "1ms", latency_p99 = "5ms" (at most)
//!                                   # a list is minimum and maximum: delivered = [0.0, 0.0], marked = [0.01, 0.5]
//!                                   # deviation = 3: error of the counts of links, in standard errors
//! [[expect]]
//! traffic = "load"
//! value = "s1"
//! mean = [8e6, 12e6]                # also least, most, last
//! after = "1s"
//! before = "2s"
//!
//! [[expect]]
//! link = "s1:2"                     # the sending port, or a host
//! queue = 40                        # at most; also queue_mean, drops; frames, rate (at least)
//! share = [0.4, 0.6]
//! among = ["s1:2", "s1:3"]
//! ```

use diagnostics::{Diagnostics, FileId, Span, names};
use toml::de::{DeTable, DeValue};

use super::{RandomFaults, Scenario, Traffic, TrafficKind};
use crate::read::document::{self, Reader};
use crate::topology::{Delay, Node, Topology};

/// Maximum number of traffic tables: each has its own port.
const MAX_TRAFFIC: usize = 4_096;

/// Maximum number of pairs of senders and receivers in one traffic table.
const MAX_PAIRS: usize = 1_000_000;

/// Reads a scenario for a topology. `max_port` is the largest port number of its switches, as for
/// [`crate::read::read`]. Returns `None` if there was an error.
pub fn read(
    file: FileId,
    text: &str,
    topology: &Topology,
    max_port: u32,
    diagnostics: &mut Diagnostics,
) -> Option<Scenario> {
    let document = document::parse(file, text, diagnostics)?;
    let top = document.get_ref();
    let mut reader = Reader { file, diagnostics, max_port };
    let keys = ["duration", "seed", "sample", "traffic", "faults", "random-faults", "writes", "captures", "expect"];
    reader.known(top, "a scenario", &keys);
    let duration = reader.parsed(top, "duration").unwrap_or(Delay::from_ms(1_000));
    let mut scenario = Scenario {
        duration,
        seed: reader.integer(top, "seed", 0..=u32::MAX).unwrap_or(1).into(),
        sample: reader.sample(top, duration, topology),
        traffic: Vec::new(),
        faults: Vec::new(),
        random_faults: reader.random_faults(top),
        writes: Vec::new(),
        captures: Vec::new(),
        expect: Vec::new(),
    };
    for (table, span) in reader.list(top, "traffic") {
        if scenario.traffic.len() == MAX_TRAFFIC {
            reader.wrong(span, format!("a scenario can have at most {MAX_TRAFFIC} [[traffic]] sections"));
            break;
        }
        if let Some(traffic) = reader.traffic(table, span, topology, &scenario) {
            scenario.traffic.push(traffic);
        }
    }
    reader.limits(top, &scenario, topology);
    for (table, span) in reader.list(top, "faults") {
        let faults = reader.fault(table, span, topology);
        faults.first().into_iter().for_each(|fault| reader.in_time(table, fault.at, duration));
        scenario.faults.extend(faults);
    }
    for (table, span) in reader.list(top, "writes") {
        let write = reader.write(table, span, topology);
        write.iter().for_each(|write| reader.in_time(table, write.at, duration));
        scenario.writes.extend(write);
    }
    for (table, span) in reader.list(top, "captures") {
        reader.known(table, "a capture", &["at", "file"]);
        let end = reader.text(table, "at").and_then(|at| reader.end(at, topology));
        match (end, reader.text(table, "file")) {
            (_, Some((name, span))) if !is_plain(name) => {
                let message =
                    format!("`{name}` is not a plain capture file name: captures are written to the output directory");
                reader.wrong(span, message + ", so write one like \"s1.pcap\"");
            }
            (Some(_), Some((name, span))) if scenario.captures.iter().any(|(_, other)| other == name) => {
                reader.wrong(span, format!("two captures have the same file `{name}`"));
            }
            (Some(end), Some((name, _))) => scenario.captures.push((end, name.to_owned())),
            (_, None) => reader.wrong(span, "a capture needs a file: file = \"s1.pcap\""),
            (None, _) => reader.wrong(span, "a capture needs a location: at = \"s1:2\""),
        }
    }
    for (table, span) in reader.list(top, "expect") {
        let expected = reader.expectations(table, span, topology, &scenario);
        scenario.expect.extend(expected);
    }
    (!diagnostics.has_errors()).then_some(scenario)
}

/// Whether a capture's name stays in the output directory and is not the name of another output.
fn is_plain(name: &str) -> bool {
    let ends = [".pcap", ".pcapng", ".cap"].iter().any(|end| name.len() > end.len() && name.ends_with(end));
    ends && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}

impl Reader<'_> {
    /// Returns the tables of an array of tables.
    fn list<'a>(&mut self, top: &'a DeTable<'a>, key: &str) -> Vec<(&'a DeTable<'a>, Span)> {
        let Some((value, span)) = self.get(top, key) else { return Vec::new() };
        let Some(items) = value.as_array() else {
            self.wrong(span, format!("`{key}` must be a list: write [[{key}]] before each"));
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

    /// Reads a string or a list of strings.
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
            self.wrong(span, format!("`{key}` must be a name or a list of names"));
        }
        texts
    }

    fn node(&mut self, (name, span): (&str, Span), topology: &Topology) -> Option<Node> {
        let node = topology.node(name);
        if node.is_none() {
            let hosts = topology.hosts.iter().map(|host| host.name.as_str());
            let names = hosts.chain(topology.switches.iter().map(|switch| switch.name.as_str()));
            let near = names::nearest(name, names).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            self.wrong(span, format!("there is no host or switch `{name}`{near}"));
        }
        node
    }

    fn hosts_of(&mut self, table: &DeTable<'_>, key: &str, topology: &Topology) -> Option<Vec<usize>> {
        let texts = self.texts(table, key)?;
        if let [("all", _)] = texts[..] {
            return Some(topology.traffic_hosts());
        }
        let mut hosts = Vec::new();
        for text in texts {
            match self.node(text, topology) {
                Some(Node::Host(host)) if topology.hosts[host].is_store => {
                    self.wrong(text.1, format!("`{}` is a store, which sends and receives no traffic", text.0));
                }
                Some(Node::Host(host)) if topology.hosts[host].memory.is_some() => {
                    let message = format!("`{}` is a memory server, which sends and receives no other traffic", text.0);
                    self.wrong(text.1, message);
                }
                Some(Node::Host(host)) => hosts.push(host),
                Some(Node::Switch(_)) => {
                    self.wrong(text.1, format!("`{}` is a switch; only hosts send and receive", text.0))
                }
                None => {}
            }
        }
        Some(hosts)
    }

    pub(super) fn one_of<T: Clone>(&mut self, table: &DeTable<'_>, key: &str, choices: &[(&str, T)]) -> Option<T> {
        let (text, span) = self.text(table, key)?;
        let found = choices.iter().find(|(name, _)| *name == text);
        if found.is_none() {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            self.wrong(span, format!("`{key}` must be one of {}", names.join(", ")));
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
        self.words(table);
        let number = scenario.traffic.len() + 1;
        let name = self.text(table, "name").map_or(format!("traffic {number}"), |(name, span)| {
            self.showable(name, span);
            name.to_owned()
        });
        if scenario.traffic.iter().any(|other| other.name == name) {
            self.wrong(span, format!("the name `{name}` is used twice"));
        }
        let Some((kind, kind_span)) = self.text(table, "kind") else {
            self.wrong(
                span,
                "traffic needs a kind: udp, tcp, flows, requests, ping, rcp, hpcc, conga, tpp, execute, probe \
                 or replay",
            );
            return None;
        };
        let before = self.diagnostics.error_count();
        let kind = self.kind(table, span, kind, kind_span, topology);
        let ecn = self.ecn(table);
        let address = self.behind(table);
        let minion = self.minion(table);
        let int = self.int(table);
        let from = self.hosts_of(table, "from", topology);
        if from.is_none() {
            self.wrong(span, "traffic needs senders: from = \"h1\"");
        }
        let to = self.hosts_of(table, "to", topology);
        let (kind, from) = (kind?, from?);
        let wrong = self.diagnostics.error_count();
        let pairs = self.pairs(span, &kind, address.is_some(), from, to)?;
        if pairs.is_empty() && wrong == before {
            self.wrong(
                span,
                format!("`{name}` sends nothing: it has no senders, or no receivers other than the senders"),
            );
        }
        self.bounded(span, &kind, &pairs);
        self.addressed(span, &name, &kind, address.is_some(), &pairs, topology);
        let start: Delay = self.parsed(table, "start").unwrap_or_default();
        let stop = self.parsed(table, "stop").unwrap_or(scenario.duration);
        if stop <= start {
            self.wrong(span, format!("`{name}` stops before it starts"));
        }
        Some(Traffic { name, pairs, start, stop, address, ecn, minion, int, kind, span })
    }

    /// Returns each sender with its receivers.
    fn pairs(
        &mut self,
        span: Span,
        kind: &TrafficKind,
        behind_one: bool,
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
        let any = behind_one
            || matches!(
                kind,
                TrafficKind::Flows { .. }
                    | TrafficKind::Ping { .. }
                    | TrafficKind::Tpp { .. }
                    | TrafficKind::Execute(_)
                    | TrafficKind::Probe { .. }
            );
        let several = to.len() > 1;
        if any && from.len().saturating_mul(to.len()) > MAX_PAIRS {
            let (from, to) = (from.len(), to.len());
            self.wrong(span, format!("{from} senders and {to} receivers form more than {MAX_PAIRS} pairs"));
            return None;
        }
        if !any && several && to.len() != from.len() {
            let (from, to) = (from.len(), to.len());
            self.wrong(span, format!("{from} senders and {to} receivers: specify one receiver, or as many as senders"));
            return None;
        }
        // A probe may return to its sender.
        let itself = matches!(kind, TrafficKind::Probe { .. });
        let pairs = from.into_iter().enumerate().map(|(at, host)| {
            let receivers = if any || !several { &to[..] } else { &to[at..=at] };
            (host, receivers.iter().copied().filter(|other| itself || *other != host).collect::<Vec<_>>())
        });
        Some(pairs.filter(|(_, receivers)| !receivers.is_empty()).collect())
    }

    /// Reports hosts without an address, which can neither send nor receive IP packets.
    fn addressed(
        &mut self,
        span: Span,
        name: &str,
        kind: &TrafficKind,
        behind_one: bool,
        pairs: &[(usize, Vec<usize>)],
        topology: &Topology,
    ) {
        if matches!(kind, TrafficKind::Probe { .. } | TrafficKind::Replay(_)) {
            return;
        }
        let senders = pairs.iter().map(|(from, _)| from);
        let receivers = pairs.iter().flat_map(|(_, to)| to).filter(|_| !behind_one);
        if let Some(host) = senders.chain(receivers).find(|host| topology.hosts[**host].address.is_none()) {
            let host = &topology.hosts[*host].name;
            self.wrong(span, format!("`{host}`, which has no address, cannot send or receive `{name}`"));
        }
    }

    fn random_faults(&mut self, top: &DeTable<'_>) -> Option<RandomFaults> {
        let table = self.table(top, "random-faults")?;
        self.known(table, "`random-faults`", &["every", "lasts", "kinds"]);
        let kinds = self.texts(table, "kinds");
        for (kind, span) in kinds.iter().flatten() {
            if !["crash", "link"].contains(kind) {
                self.wrong(*span, format!("unknown kind of random fault `{kind}`: expected crash or link"));
            }
        }
        if let (Some([]), Some((_, span))) = (kinds.as_deref(), self.get(table, "kinds")) {
            self.wrong(span, "`kinds` must not be empty: kinds = [\"crash\", \"link\"]");
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
