//! Converts the results of a scenario on a live lab to the form of a simulation's results.

use lab::scenario::{FlowResult, LinkResult, Results, Scenario, TrafficKind, Values};
use lab::sim::LinkStats;
use lab::sim::traffic::Measured;
use lab::{End, Node, Topology};
use serde_json::Value;
use switch::Time;

use super::measurements::TrafficMeasurements;
use super::threads::TrafficFlow;

/// Returns the results of a scenario's flows. `status` is the response to [`crate::LabRequest::Status`] at the end.
pub fn results(
    topology: &Topology,
    scenario: &Scenario,
    flows: &[TrafficFlow],
    mut measured: TrafficMeasurements,
    status: &Value,
) -> Results {
    let mut results = Results { end: Time::from_ns(scenario.duration.as_ns()), ..Results::default() };
    for (number, traffic) in scenario.traffic.iter().enumerate() {
        let result = |from, to, measured, values| FlowResult {
            name: traffic.name.clone(),
            from: hosts(topology, from),
            to: hosts(topology, to),
            unit: unit(&traffic.kind),
            measured,
            marks: Default::default(),
            values,
            minion: None,
            int: None,
            rcp: None,
            hpcc: None,
            conga: None,
        };
        let (mut all, mut from, mut to) = (Measured::default(), Vec::new(), Vec::new());
        for (at, flow) in flows.iter().enumerate().filter(|(_, flow)| flow.traffic == number) {
            let measured = u32::try_from(at).ok().and_then(|at| measured.flows.remove(&at)).unwrap_or_default();
            all.add(&measured);
            from.push(flow.from);
            to.extend(&flow.to);
            results.pairs.push(result(vec![flow.from], flow.to.clone(), measured, Vec::new()));
        }
        let mut read = measured.values.remove(&number).unwrap_or_default().into_iter();
        let values = traffic.kind.readings().iter().map(|reading| {
            let mut points = read.next().unwrap_or_default();
            points.sort_by_key(|(at, _)| *at);
            Values { name: reading.name.clone(), points }
        });
        results.traffic.push(result(from, to, all, values.collect()));
    }
    results.links = links(topology, status);
    results.unmet = lab::scenario::unmet(scenario, topology, &results);
    results
}

fn unit(kind: &TrafficKind) -> &'static str {
    match kind {
        TrafficKind::Udp { .. } | TrafficKind::Rcp { .. } | TrafficKind::Hpcc { .. } | TrafficKind::Conga { .. } => {
            "datagrams"
        }
        TrafficKind::Tcp { .. } | TrafficKind::Flows { .. } => "flows",
        TrafficKind::Requests { .. } | TrafficKind::Execute(_) => "requests",
        TrafficKind::Ping { .. } | TrafficKind::Tpp { .. } => "echoes",
        TrafficKind::Probe { .. } | TrafficKind::Replay(_) => "frames",
    }
}

/// Returns the name of a host, or the number of several hosts.
fn hosts(topology: &Topology, mut hosts: Vec<usize>) -> String {
    hosts.sort_unstable();
    hosts.dedup();
    match hosts[..] {
        [host] => topology.hosts[host].name.clone(),
        _ => format!("{} hosts", hosts.len()),
    }
}

/// Returns the traffic on each direction of each link. A switch counts its own frames and those of its hosts.
fn links(topology: &Topology, status: &Value) -> Vec<LinkResult> {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let port = |end: End| match end.node {
        Node::Switch(at) => status["switches"][at]["ports"].as_array()?.iter().find(|port| port["port"] == end.port),
        Node::Host(_) => None,
    };
    let direction = |from: End, to: End| {
        let (carried, carried_bytes) = match (port(from), port(to)) {
            (Some(port), _) => (number(&port["sent"]), number(&port["sent_bytes"])),
            (None, Some(port)) => (number(&port["from_host"]), number(&port["from_host_bytes"])),
            (None, None) => (0, 0),
        };
        LinkResult { from, to, stats: LinkStats { carried, carried_bytes, ..LinkStats::default() } }
    };
    topology
        .links
        .iter()
        .flat_map(|link| [(0, 1), (1, 0)].map(|(a, b)| direction(link.ends[a], link.ends[b])))
        .collect()
}
