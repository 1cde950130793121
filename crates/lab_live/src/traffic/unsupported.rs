//! Reports the parts of a scenario that a live lab cannot play.

use diagnostics::{Diagnostic, Diagnostics, Span};
use lab::scenario::{Quantity, Scenario, TrafficKind};
use lab::sim::Fault;
use lab::{Node, Topology};

/// Reports every part of a scenario that a live lab cannot play, with its location. `is_isolated`: each switch has a
/// process of its own.
pub fn check_supported(scenario: &Scenario, topology: &Topology, is_isolated: bool, diagnostics: &mut Diagnostics) {
    let mut refuse = |span: Span, what: String, help: &str| {
        let message = format!("{what} on a live network");
        diagnostics.push(Diagnostic::error("not-live", span, message).help(help));
    };
    for traffic in &scenario.traffic {
        if traffic.ecn.is_some() {
            let help = "omit `ecn` and `control = \"dctcp\"`, or simulate the scenario with `lab sim`";
            refuse(traffic.span, format!("`{}`: ECN marks cannot be counted", traffic.name), help);
        }
        if let TrafficKind::Conga { .. } = traffic.kind {
            let help = "use traffic of kind `udp`, or simulate the scenario with `lab sim`";
            refuse(traffic.span, format!("`{}`: flows over several paths cannot be sent", traffic.name), help);
        }
        let sends_programs = matches!(traffic.kind, TrafficKind::Rcp { .. } | TrafficKind::Hpcc { .. });
        if traffic.program().is_some() || sends_programs {
            let help = "use `lab up` and `triplane tpp ping`, or simulate the scenario with `lab sim`";
            refuse(traffic.span, format!("`{}`: tiny packet programs cannot be sent", traffic.name), help);
        }
        if traffic.int.is_some() {
            let help = "simulate the scenario with `lab sim`, or send packets with INT to the switches yourself";
            refuse(traffic.span, format!("`{}`: INT headers cannot be added", traffic.name), help);
        }
    }
    for write in &scenario.writes {
        let help = "use a controller or `triplane ctl` (`lab up --p4runtime`), or simulate the scenario with `lab sim`";
        refuse(write.span, "`[[writes]]` are not supported".to_owned(), help);
    }
    for planned in &scenario.faults {
        let host = match planned.node {
            Node::Host(at) => Some(topology.hosts[at].name.as_str()),
            Node::Switch(_) => None,
        };
        // Stores, their operator and memory servers are processes.
        let is_member = matches!(planned.node, Node::Host(at) if !topology.has_traffic(at));
        match (planned.fault, host) {
            (Fault::Crash | Fault::Restart, Some(name)) if !is_member => {
                let help = "set its link down instead: down = [\"h1\", \"s1\"]";
                refuse(planned.span, format!("the host `{name}` cannot be crashed"), help);
            }
            (Fault::Suspend | Fault::Resume, Some(name)) if !is_member => {
                let help = "suspend a switch or a store, or simulate the scenario with `lab sim`";
                refuse(planned.span, format!("the host `{name}` cannot be suspended"), help);
            }
            (Fault::Suspend | Fault::Resume, None) if !is_isolated => {
                refuse(
                    planned.span,
                    "switches without processes cannot be suspended".to_owned(),
                    "let each switch have one: `lab run --isolate`",
                );
            }
            (Fault::Skew { .. }, _) => {
                let help = "all hosts share the machine's clock; simulate the scenario with `lab sim`";
                refuse(planned.span, "clocks cannot be skewed".to_owned(), help);
            }
            _ => {}
        }
    }
    for expected in &scenario.expect {
        let unmeasured = matches!(
            expected.what,
            Quantity::Marked(_) | Quantity::Queue(_) | Quantity::MeanQueue(_) | Quantity::Drops(_)
        );
        if unmeasured {
            refuse(
                expected.span,
                "queues and marks cannot be measured".to_owned(),
                "simulate the scenario with `lab sim`",
            );
        }
    }
}
