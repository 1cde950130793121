//! What of a scenario has no meaning on a live network.

use diagnostics::{Diagnostic, Diagnostics, Span};
use lab::scenario::{Quantity, Scenario};
use lab::sim::Fault;
use lab::{Node, Topology};

/// Reports everything that cannot be played, at its line.
pub fn check(scenario: &Scenario, topology: &Topology, diagnostics: &mut Diagnostics) {
    let mut refuse = |span: Span, what: String, help: &str| {
        let message = format!("{what} in real time");
        diagnostics.push(Diagnostic::error("not-live", span, message).help(help));
    };
    for traffic in &scenario.traffic {
        if traffic.ecn.is_some() {
            let help = "leave `ecn` and `control = \"dctcp\"` out, or simulate it with `lab sim`";
            refuse(traffic.span, format!("`{}`: marks are not counted", traffic.name), help);
        }
    }
    for write in &scenario.writes {
        let help = "use a controller or `triplane ctl` (`lab up --p4runtime`), or simulate it with `lab sim`";
        refuse(write.span, "entries are not written".to_owned(), help);
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
            (Fault::Skew { .. }, _) => {
                let help = "all hosts have the machine's clock; simulate it with `lab sim`";
                refuse(planned.span, "clocks are not skewed".to_owned(), help);
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
            refuse(expected.span, "queues and marks are not measured".to_owned(), "simulate it with `lab sim`");
        }
    }
}
