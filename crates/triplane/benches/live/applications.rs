//! Compares the application examples in the kernel with themselves over AF_XDP.

use std::error::Error;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::Settings;
use crate::figures::{median, sorted};
use crate::load;
use crate::network::{Destinations, Network, ROUTER_MACS, SINK_MAC, mac_text};
use crate::process::{BenchProcess, pinned};

/// An example, with entries for which it sends every frame to the sink.
struct Application {
    name: &'static str,
    /// The program, under `examples`.
    program: &'static str,
    destinations: Destinations,
    state: ApplicationState,
}

/// What decides where the frames of an application go.
enum ApplicationState {
    Entries(fn() -> Vec<Value>),
    /// Rules of packet subscriptions: the program is a format.
    Rules(fn() -> String),
}

/// Every example.
const APPLICATIONS: [Application; 6] = [
    Application {
        name: "firewall, from the inside",
        program: "firewall/firewall.p4",
        destinations: Destinations::Scattered,
        state: ApplicationState::Entries(|| {
            vec![
                entry(
                    "FirewallIngress.zones",
                    json!({ "standard.ingress_port": 1 }),
                    "FirewallIngress.inside",
                    json!({}),
                ),
                route("FirewallIngress"),
            ]
        }),
    },
    Application {
        name: "congestion marks",
        program: "ecn/ecn.p4",
        destinations: Destinations::Scattered,
        state: ApplicationState::Entries(|| {
            let marking = json!({ "threshold": 20 });
            vec![
                entry("EcnEgress.marking", json!({ "standard.egress_port": 2 }), "EcnEgress.mark_from", marking),
                route("EcnIngress"),
            ]
        }),
    },
    Application {
        name: "load balancer, routed packets",
        program: "load-balancer/balancer.p4",
        destinations: Destinations::Scattered,
        state: ApplicationState::Entries(|| vec![route("BalanceIngress")]),
    },
    Application {
        name: "load balancer, packets to a service",
        program: "load-balancer/balancer.p4",
        destinations: Destinations::One,
        state: ApplicationState::Entries(|| {
            let member = |at: u32| {
                json!({
                    "action_name": "BalanceIngress.to_server",
                    "action_params": { "server": format!("10.3.0.{at}") },
                    "weight": 1,
                    "watch_port": 2,
                })
            };
            let service = json!({
                "table": "BalanceIngress.services",
                "match": { "hdr.ipv4.dst": "10.2.0.0" },
                "one_shot": (1..=3).map(member).collect::<Vec<_>>(),
            });
            vec![service, route("BalanceIngress")]
        }),
    },
    Application {
        name: "tunnel, encapsulation",
        program: "tunnel/tunnel.p4",
        destinations: Destinations::Scattered,
        state: ApplicationState::Entries(|| {
            let ends = json!({ "from": "10.0.1.254", "to": "10.4.0.1", "number": 1 });
            let begins = json!({ "hdr.outer.dst": "10.2.0.0/16" });
            vec![
                entry("TunnelIngress.begins", begins, "TunnelIngress.enter", ends),
                route_by("hdr.outer.dst", "TunnelIngress"),
            ]
        }),
    },
    Application {
        name: "subscriptions, 64 shares of flows",
        program: "flow-balancer/balancer.p4",
        destinations: Destinations::Scattered,
        state: ApplicationState::Rules(|| {
            let server = mac_text(SINK_MAC);
            let rule = |first: u32| {
                let share = format!("bucket in {first}..{} and src in 10.0.0.0/8", first + 3);
                format!("rule r{first}: {share}: to_server({server}); fwd(2)\n")
            };
            (0..256).step_by(4).map(rule).collect()
        }),
    },
];

fn entry(table: &str, matches: Value, action: &str, params: Value) -> Value {
    json!({ "table": table, "match": matches, "action_name": action, "action_params": params })
}

/// Returns a route for all destinations to the sink.
fn route(control: &str) -> Value {
    route_by("hdr.ipv4.dst", control)
}

fn route_by(key: &str, control: &str) -> Value {
    let params = json!({ "port": 2, "own": mac_text(ROUTER_MACS[1]), "next": mac_text(SINK_MAC) });
    entry(&format!("{control}.routes"), json!({ key: "10.0.0.0/8" }), &format!("{control}.forward"), params)
}

impl Application {
    /// Measures a round. Returns the rate that arrives, and the share of the packets that stayed in the kernel.
    fn measure(
        &self,
        kind: &str,
        settings: &Settings,
        network: &Network,
        directory: &Path,
    ) -> Result<[f64; 2], Box<dyn Error>> {
        network.let_kernel_route(false)?;
        let sink = if kind == "kernel:" { network.driver_sink()? } else { network.sink()? };
        let entries = directory.join("application.json");
        let mut program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(self.program);
        match self.state {
            ApplicationState::Entries(list) => {
                std::fs::write(&entries, json!({ "table_entries": list() }).to_string())?;
            }
            ApplicationState::Rules(text) => {
                let [rules, switch] = ["application.sub", "application.p4"].map(|name| directory.join(name));
                std::fs::write(&rules, text())?;
                let mut compile = Command::new(env!("CARGO_BIN_EXE_triplane"));
                compile.args(["subscribe", "compile"]).args([&program, &rules]);
                let output = compile.arg("-o").arg(&entries).arg("--program").arg(&switch).output()?;
                if !output.status.success() {
                    return Err(String::from_utf8_lossy(&output.stderr).into());
                }
                program = switch;
            }
        }
        let mut command = pinned(&network.router, "1", Path::new(env!("CARGO_BIN_EXE_triplane")))?;
        command.arg("run").arg(program).arg("--entries").arg(entries);
        command.args(["--json", "--port", &format!("1={kind}r1"), "--port", &format!("2={kind}r2")]);
        let process = BenchProcess::start(&mut command, "press Ctrl-C to stop")?;
        let mut load = network.load_to(self.destinations, settings.len, 64, None)?;
        let rate = load::rate(&mut load, &sink, settings.seconds, || None)?;
        drop(load);
        let summary: Value = serde_json::from_str(&process.stop()?)?;
        let count = |name: &str| summary["kernel"][name].as_f64().unwrap_or(0.0);
        let all = count("packets") + count("switch_packets");
        Ok([rate.arrived, if all > 0.0 { count("packets") / all } else { 0.0 }])
    }
}

/// Measures all examples and prints their ratios.
pub fn compare(settings: &Settings, network: &Network, directory: &Path) -> Result<(), Box<dyn Error>> {
    println!(
        "\napplications: frames forwarded under a flood, Mpps: in the kernel; over AF_XDP; median ratio within rounds; share\nof the packets that stayed in the kernel"
    );
    for application in &APPLICATIONS {
        let mut rounds = Vec::new();
        for _ in 0..settings.rounds {
            let measure = |kind| application.measure(kind, settings, network, directory);
            rounds.push([measure("kernel:")?, measure("xdp:")?]);
        }
        let middle = |kind: usize, figure: usize| {
            let figures = sorted(rounds.iter().map(|round| round[kind][figure]));
            figures[figures.len() / 2]
        };
        let ratio = median(rounds.iter().map(|[kernel, switch]| kernel[0] / switch[0]));
        let (kernel, switch, share) = (middle(0, 0), middle(1, 0), 100.0 * middle(0, 1));
        println!("  {:36} {kernel:6.3} {switch:6.3} {ratio:5.2} {share:6.1} %", application.name);
    }
    Ok(())
}
