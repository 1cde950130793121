//! Enforces limits on scenarios: an unreasonable need of memory or time is reported before the run.

use std::collections::BTreeMap;

use toml::de::DeTable;
use tpp::{conga, hpcc, rcp};

use super::run::ethertype;
use super::{Scenario, Traffic, TrafficKind};
use crate::read::document::Reader;
use crate::routes::ShortestPaths;
use crate::sim::traffic::Balancing;
use crate::topology::{Delay, Link, MAX_BYTES_ON_LINK, Node, Topology};

/// Bytes of a frame in front of its IP packet.
const ETHERNET_HEADER: u32 = 14;

/// Maximum number of queue samples: about 400 MB.
const MAX_SAMPLES: u64 = 10_000_000;

/// Maximum number of queue samples if the scenario sets no sampling interval.
const USUAL_SAMPLES: u64 = 1_000_000;

/// Maximum number of pairs that ping each other: each has a socket and a histogram.
const MAX_PINGS: usize = 20_000;

/// Maximum number of frames that some traffic sends by itself: hours of simulation.
const MAX_FRAMES: u128 = 1_000_000_000;

/// Maximum number of flows that some traffic begins.
const MAX_FLOWS: f64 = 10_000_000.0;

/// Approximate maximum number of random faults.
const MAX_DRAWN: u64 = 100_000;

fn lasts_ns(traffic: &Traffic) -> u64 {
    traffic.stop.as_ns().saturating_sub(traffic.start.as_ns())
}

/// Approximate number of frames that some traffic sends by itself, independently of the network.
fn frames(traffic: &Traffic) -> u128 {
    let lasts_ns = u128::from(lasts_ns(traffic));
    let receivers: usize = traffic.pairs.iter().map(|(_, to)| to.len()).sum();
    let repeated = |count: u32, interval: Delay, senders: usize| {
        u128::from(count).min(lasts_ns / u128::from(interval.as_ns().max(1))) * senders as u128
    };
    let datagrams = |size: u32, rate_bps: u64| {
        lasts_ns * u128::from(rate_bps) / (u128::from(size) * 8_000_000_000) * traffic.pairs.len() as u128
    };
    match &traffic.kind {
        TrafficKind::Udp { size, rate_bps, .. } => datagrams(*size, *rate_bps),
        TrafficKind::Conga { size, rate_bps, balancing, .. } => {
            let programs = match balancing {
                Balancing::Ecmp => 0,
                Balancing::LeastLoaded { settings, interval_ns } => {
                    repeated(u32::MAX, Delay::from_ns(*interval_ns), traffic.pairs.len()) * settings.paths as u128
                }
            };
            datagrams(*size, *rate_bps) + programs
        }
        // Three programs for each sample of a path of up to 23 switches; datagrams depend on the network.
        TrafficKind::Rcp { interval, .. } => 3 * repeated(u32::MAX, *interval, traffic.pairs.len()),
        TrafficKind::Ping { count, interval } | TrafficKind::Tpp { count, interval, .. } => {
            repeated(*count, *interval, receivers)
        }
        TrafficKind::Execute(execution) => {
            let requests = receivers * execution.switches.len().max(1);
            repeated(execution.count, Delay::from_ns(execution.times.interval_ns), requests)
        }
        TrafficKind::Probe { count, interval, .. } => repeated(*count, *interval, traffic.pairs.len()),
        _ => 0,
    }
}

/// Returns the sender and the receiver with the most switches between them, and their number.
fn farthest(traffic: &Traffic, paths: Option<&ShortestPaths>) -> Option<(usize, usize, usize)> {
    let ends = traffic.pairs.iter().flat_map(|(from, to)| to.iter().map(|to| (*from, *to)));
    let far = ends.filter_map(|(from, to)| Some((from, to, paths?.switches_between(from, to)?)));
    far.max_by_key(|(.., switches)| *switches)
}

impl Reader<'_> {
    /// Returns the time between two samples of the queues.
    pub(super) fn sample(&mut self, top: &DeTable<'_>, duration: Delay, topology: &Topology) -> Delay {
        let ends = 2 * topology.links.len() as u64;
        let fits = |samples: u64| Delay::from_ns(duration.as_ns() / (samples / ends.max(1)).max(1));
        let Some(asked) = self.parsed::<Delay>(top, "sample") else {
            return fits(USUAL_SAMPLES).max(Delay::from_ms(1));
        };
        let least = fits(MAX_SAMPLES).max(Delay::from_ns(1_000));
        if asked < least
            && let Some((_, span)) = self.get(top, "sample")
        {
            let most = MAX_SAMPLES;
            self.wrong(
                span,
                format!("{ends} link ends over {duration} give more than {most} samples: sample at most every {least}"),
            );
        }
        asked.max(Delay::from_ns(1_000))
    }

    /// Reports probes with the same EtherType that arrive at the same host, because they cannot be distinguished.
    fn probes(&mut self, scenario: &Scenario, topology: &Topology) {
        let mut seen: BTreeMap<(u16, usize), &Traffic> = BTreeMap::new();
        for traffic in &scenario.traffic {
            let TrafficKind::Probe { frame, .. } = &traffic.kind else { continue };
            let ethertype = ethertype(frame);
            let mut receivers: Vec<usize> = traffic.pairs.iter().flat_map(|(_, to)| to.iter().copied()).collect();
            receivers.sort_unstable();
            receivers.dedup();
            for host in receivers {
                let Some(other) = seen.insert((ethertype, host), traffic) else { continue };
                let (name, other, host) = (&traffic.name, &other.name, &topology.hosts[host].name);
                let message =
                    format!("`{name}` and `{other}` both send frames with EtherType {ethertype:04x} to `{host}`");
                self.wrong(
                    traffic.span,
                    message + ", which cannot distinguish them: use another EtherType for one of them",
                );
                break;
            }
        }
    }

    /// Reports flows of RCP* that could not compute the load of their links: samples that are rarer than the clock of a
    /// switch repeats in a word, and paths with more switches than a program counts.
    fn fair_rates(&mut self, scenario: &Scenario, topology: &Topology) {
        let longest = Delay::from_ns(rcp::LONGEST_INTERVAL_NS);
        let paths = (topology.switches.len() > rcp::MAX_HOPS).then(|| ShortestPaths::new(topology));
        for traffic in &scenario.traffic {
            let TrafficKind::Rcp { interval, .. } = &traffic.kind else { continue };
            let name = &traffic.name;
            if *interval > longest {
                let message = format!("`{name}` samples its links every {interval}; the maximum is {longest}");
                self.wrong(traffic.span, message);
            }
            if let Some((from, to, switches)) = farthest(traffic, paths.as_ref())
                && switches > rcp::MAX_HOPS
            {
                let (from, to, most) = (&topology.hosts[from].name, &topology.hosts[to].name, rcp::MAX_HOPS);
                let message = format!(
                    "`{name}` has {switches} switches from `{from}` to `{to}`; the maximum for fair rates is {most}"
                );
                self.wrong(traffic.span, message);
            }
        }
    }

    /// Reports flows of HPCC on paths with more switches than a program has memory for, or in networks without rates.
    fn windows(&mut self, scenario: &Scenario, topology: &Topology) {
        let paths = (topology.switches.len() > hpcc::MAX_HOPS).then(|| ShortestPaths::new(topology));
        let has_rate = topology.links.iter().any(|link| link.shape.rate.is_some());
        for traffic in scenario.traffic.iter().filter(|traffic| matches!(traffic.kind, TrafficKind::Hpcc { .. })) {
            let name = &traffic.name;
            if !has_rate {
                let message =
                    format!("`{name}` would not send, as no link has a rate: add rate = \"100Mbps\" to links");
                self.wrong(traffic.span, message);
            }
            if let Some((from, to, switches)) = farthest(traffic, paths.as_ref())
                && switches > hpcc::MAX_HOPS
            {
                let (from, to, most) = (&topology.hosts[from].name, &topology.hosts[to].name, hpcc::MAX_HOPS);
                let message =
                    format!("`{name}` has {switches} switches from `{from}` to `{to}`; the maximum for HPCC is {most}");
                self.wrong(traffic.span, message);
            }
        }
    }

    /// Reports flows over several paths that could not compute the loads of their links: samples that are too rare, and
    /// paths with more switches than a program has memory for.
    fn balanced(&mut self, scenario: &Scenario, topology: &Topology) {
        let paths = (topology.switches.len() > conga::MAX_HOPS).then(|| ShortestPaths::new(topology));
        for traffic in &scenario.traffic {
            let TrafficKind::Conga { balancing: Balancing::LeastLoaded { interval_ns, .. }, .. } = traffic.kind else {
                continue;
            };
            let (name, span) = (&traffic.name, traffic.span);
            let (interval, longest) = (Delay::from_ns(interval_ns), Delay::from_ns(conga::LONGEST_INTERVAL_NS));
            if interval > longest {
                let message = format!("`{name}` samples its paths every {interval}; the maximum is {longest}");
                self.wrong(span, message);
            }
            if let Some((from, to, switches)) = farthest(traffic, paths.as_ref())
                && switches > conga::MAX_HOPS
            {
                let (from, to, most) = (&topology.hosts[from].name, &topology.hosts[to].name, conga::MAX_HOPS);
                let message = format!(
                    "`{name}` has {switches} switches from `{from}` to `{to}`; the maximum for load balancing is {most}"
                );
                self.wrong(span, message);
            }
        }
    }

    /// Reports datagrams that no host can send, as hosts do not fragment packets.
    fn datagrams(&mut self, scenario: &Scenario, topology: &Topology) {
        for traffic in &scenario.traffic {
            let (TrafficKind::Udp { size, .. } | TrafficKind::Rcp { size, .. } | TrafficKind::Conga { size, .. }) =
                traffic.kind
            else {
                continue;
            };
            let packet = size - ETHERNET_HEADER;
            let mtu = |host: usize| {
                let at_host = |link: &&Link| link.ends.iter().any(|end| end.node == Node::Host(host));
                topology.links.iter().find(at_host).map(|link| (host, link.shape.mtu))
            };
            let narrow = traffic.pairs.iter().filter_map(|(from, _)| mtu(*from)).find(|(_, mtu)| packet > *mtu);
            if let Some((host, mtu)) = narrow {
                let (name, host, most) = (&traffic.name, &topology.hosts[host].name, mtu + ETHERNET_HEADER);
                let message = format!(
                    "`{name}` has frames of {size} bytes, whose packets of {packet} bytes exceed the MTU of `{host}`, {mtu}: \
                     use size = {most} or less, or mtu = {packet} or more for its link"
                );
                self.wrong(traffic.span, message);
            }
        }
    }

    /// Checks the limits of a scenario as a whole.
    pub(super) fn limits(&mut self, top: &DeTable<'_>, scenario: &Scenario, topology: &Topology) {
        if let (Some(faults), Some((_, span))) = (scenario.random_faults, self.get(top, "random-faults"))
            && scenario.duration.as_ns() / faults.every.as_ns().max(1) > MAX_DRAWN
        {
            let (every, most) = (faults.every, MAX_DRAWN);
            self.wrong(span, format!("a fault every {every} gives more than {most} faults in {}", scenario.duration));
        }
        self.probes(scenario, topology);
        self.fair_rates(scenario, topology);
        self.windows(scenario, topology);
        self.balanced(scenario, topology);
        self.datagrams(scenario, topology);
        let longest = topology.links.iter().map(|link| link.shape.delay).max().unwrap_or_default();
        for traffic in &scenario.traffic {
            let (name, span) = (&traffic.name, &traffic.span);
            let pairs: usize = traffic.pairs.iter().map(|(_, to)| to.len()).sum();
            if matches!(traffic.kind, TrafficKind::Ping { .. }) && pairs > MAX_PINGS {
                self.wrong(
                    *span,
                    format!("`{name}` has {pairs} pairs that ping each other; the maximum is {MAX_PINGS}"),
                );
            }
            let offered = match &traffic.kind {
                TrafficKind::Udp { rate_bps, .. } | TrafficKind::Conga { rate_bps, .. } => {
                    u128::from(*rate_bps) * traffic.pairs.len() as u128
                }
                TrafficKind::Probe { frame, interval, .. } => {
                    frame.len() as u128 * 8_000_000_000 / u128::from(interval.as_ns().max(1)) * pairs as u128
                }
                _ => 0,
            };
            let travelling = offered * u128::from(longest.as_ns()) / 8_000_000_000;
            if travelling > u128::from(MAX_BYTES_ON_LINK) {
                let message = format!(
                    "`{name}` would have {travelling} bytes in flight on a link with a delay of {longest}; the maximum \
                     is {MAX_BYTES_ON_LINK}"
                );
                self.wrong(*span, message);
            }
            let frames = frames(traffic);
            if frames > MAX_FRAMES {
                let message = format!("`{name}` sends about {frames} frames; the maximum is {MAX_FRAMES}");
                self.wrong(*span, message);
            }
            if let TrafficKind::Flows { sizes, rate_bps, .. } = &traffic.kind {
                let seconds = lasts_ns(traffic) as f64 / 1e9;
                let flows = *rate_bps as f64 / 8.0 / sizes.mean().max(1.0) * seconds * traffic.pairs.len() as f64;
                if flows > MAX_FLOWS {
                    let message = format!("`{name}` starts about {flows:.0} flows; the maximum is {MAX_FLOWS}");
                    self.wrong(*span, message);
                }
            }
        }
    }
}
