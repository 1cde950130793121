//! What of a scenario has no meaning on a live network.

use lab::scenario::{Quantity, Scenario, TrafficKind};
use lab::sim::Fault;
use lab::{Node, Topology};
use source::{Diagnostic, Diagnostics, Span};

/// Reports everything that cannot be played, at its line.
pub fn check(scenario: &Scenario, topology: &Topology, diagnostics: &mut Diagnostics) {
    let mut refuse = |span: Span, what: String, help: &str| {
        let message = format!("{what} in real time");
        diagnostics.push(Diagnostic::error("not-live", span, message).help(help));
    };
    for traffic in &scenario.traffic {
        let kind = match traffic.kind {
            TrafficKind::Udp { .. } | TrafficKind::Tcp { .. } | TrafficKind::Ping { .. } => None,
            TrafficKind::Flows { .. } => Some("flows"),
            TrafficKind::Requests { .. } => Some("requests"),
            TrafficKind::Probe { .. } => Some("probes"),
            TrafficKind::Replay(_) => Some("replays"),
        };
        if let Some(kind) = kind {
            let help = "`lab run` sends udp, tcp and ping; simulate it with `lab sim`";
            refuse(traffic.span, format!("`{}`: {kind} are not sent", traffic.name), help);
        }
        if traffic.ecn.is_some() || traffic.address.is_some() {
            let help = "leave `ecn` and `behind` out, or simulate it with `lab sim`";
            refuse(traffic.span, format!("`{}` asks for what is not sent", traffic.name), help);
        }
        let hosts = traffic.pairs.iter().flat_map(|(_, to)| to);
        for host in hosts.filter(|host| topology.hosts[**host].address.is_none()) {
            let name = &topology.hosts[*host].name;
            refuse(
                traffic.span,
                format!("`{name}` has no address and receives nothing"),
                "give it one: ip = \"10.0.1.1/24\"",
            );
        }
    }
    for planned in &scenario.faults {
        let host = match planned.node {
            Node::Host(at) => Some(topology.hosts[at].name.as_str()),
            Node::Switch(_) => None,
        };
        match (planned.fault, host) {
            (Fault::Crash | Fault::Restart, Some(name)) => {
                let help = "take its link down instead: down = [\"h1\", \"s1\"]";
                refuse(planned.span, format!("the host `{name}` does not crash"), help);
            }
            (Fault::Slow(_), None) => {
                refuse(planned.span, "a switch is not slowed".to_owned(), "slow a host, or give a link a rate");
            }
            (Fault::Skew { .. }, _) => {
                let help = "all hosts have the machine's clock; simulate it with `lab sim`";
                refuse(planned.span, "clocks are not skewed".to_owned(), help);
            }
            _ => {}
        }
    }
    for expected in &scenario.expect {
        let measured = matches!(
            expected.what,
            Quantity::Delivered(_) | Quantity::Rate(_) | Quantity::LatencyP50(_) | Quantity::LatencyP99(_)
        );
        if !measured {
            let help =
                "`lab run` measures delivered, rate, latency_p50 and latency_p99; simulate the rest with `lab sim`";
            refuse(expected.span, "this is not measured".to_owned(), help);
        }
    }
}
