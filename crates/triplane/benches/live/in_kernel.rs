//! Compares P4 in the kernel with hand-written programs at XDP, the kernel's routing, and the switch over AF_XDP.
//!
//! Frames have scattered destinations, except for those of one flow: ascending ones would find the prefixes of the last
//! frame in the cache. They are counted and dropped in the driver of the last device, except where the device must not
//! accept redirected frames; frames with socket buffers would cost more than any forwarder.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use p4runtime_client::{BlockingClient, ServerTarget, names};
use p4runtime_proto::v1;
use p4runtime_proto::v1::write_request::Atomicity;
use ports::load::{HandWrittenRouter, Ipv4Route, NextHop, RedirectOnly};

use crate::Settings;
use crate::figures::{median, sorted};
use crate::forwarder::{ForwarderKind, Running};
use crate::load::{self, Rate};
use crate::network::{Destinations, Network, ROUTER_MACS, RouteKeys, SINK_MAC, entries_for};
use crate::process::{BenchProcess, pinned};
use crate::xdp_object::AttachedObject;

/// First argument of the process of a controller.
pub const WRITER: &str = "writer";

/// Share of the packets that need the switch: see [`RouteKeys::SlowPrefixes`].
const SLOW_SHARE: f64 = 656.0 / 65_536.0;
/// Address of the P4Runtime server in the router's namespace.
const ADDRESS: &str = "127.0.0.1:9559";
/// Time for which single writes are counted.
const WRITING: Duration = Duration::from_secs(1);

/// A forwarder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KernelForwarder {
    RedirectOnly,
    HandWritten,
    HandWrittenWide,
    Object,
    Kernel,
    KernelWide,
    KernelSlow,
    KernelLate,
    KernelRules,
    Routing,
    OpenVswitch,
    Testpmd,
    AfXdp,
    AfXdpRules,
    AllSlow,
}

/// A forwarder, its name, and those that it is compared with, each with the minimum ratio, if one is required.
type RowOfTable = (KernelForwarder, &'static str, &'static [(KernelForwarder, Option<f64>)]);

/// Every forwarder.
const ROWS: [RowOfTable; 15] = [
    (KernelForwarder::RedirectOnly, "redirect only, at XDP", &[]),
    (KernelForwarder::HandWritten, "hand-written router, 256 prefixes", &[]),
    (KernelForwarder::HandWrittenWide, "hand-written router, 64 K prefixes", &[]),
    (KernelForwarder::Object, "the object file, 256 prefixes", &[]),
    (KernelForwarder::Routing, "Linux kernel, routing, 256 prefixes", &[]),
    (KernelForwarder::OpenVswitch, "Open vSwitch, AF_XDP, one flow rule", &[]),
    (KernelForwarder::Testpmd, "DPDK testpmd, AF_XDP, no lookup", &[]),
    (KernelForwarder::AfXdp, "router.p4 over AF_XDP, 256 prefixes", &[]),
    (
        KernelForwarder::Kernel,
        "router.p4 in the kernel, 256 prefixes",
        &[
            (KernelForwarder::HandWritten, Some(0.9)),
            (KernelForwarder::RedirectOnly, Some(0.75)),
            (KernelForwarder::Routing, Some(2.5)),
            (KernelForwarder::AfXdp, Some(3.0)),
            (KernelForwarder::OpenVswitch, None),
            (KernelForwarder::Testpmd, None),
            (KernelForwarder::Object, None),
        ],
    ),
    (
        KernelForwarder::KernelWide,
        "router.p4 in the kernel, 64 K prefixes",
        &[(KernelForwarder::HandWrittenWide, Some(1.5))],
    ),
    (
        KernelForwarder::KernelSlow,
        "router.p4 in the kernel, 1 % to the switch",
        &[(KernelForwarder::Kernel, Some(0.8))],
    ),
    (
        KernelForwarder::KernelLate,
        "router.p4 in the kernel, started under a flood of one flow",
        &[(KernelForwarder::Kernel, Some(0.9))],
    ),
    (KernelForwarder::AfXdpRules, "ternary routes over AF_XDP, 2,304 rules", &[]),
    (
        KernelForwarder::KernelRules,
        "ternary routes in the kernel, 2,304 rules",
        &[(KernelForwarder::AfXdpRules, None), (KernelForwarder::Kernel, None)],
    ),
    (KernelForwarder::AllSlow, "router.p4 in the kernel, all to the switch", &[(KernelForwarder::AfXdp, Some(0.9))]),
];

/// What keeps a forwarder running.
enum RunningForwarder {
    Routing,
    Redirect(#[expect(dead_code, reason = "dropping it ends the forwarder")] RedirectOnly),
    Router(#[expect(dead_code, reason = "dropping it ends the forwarder")] HandWrittenRouter),
    Object(AttachedObject),
    Triplane(BenchProcess),
    Other(Running),
}

impl RunningForwarder {
    fn stop(self) -> Result<(), Box<dyn Error>> {
        match self {
            RunningForwarder::Object(attached) => attached.detach(),
            RunningForwarder::Triplane(process) => process.stop().map(drop),
            RunningForwarder::Other(running) => running.stop().map(drop),
            RunningForwarder::Routing | RunningForwarder::Redirect(_) | RunningForwarder::Router(_) => Ok(()),
        }
    }
}

impl KernelForwarder {
    fn destinations(self) -> Destinations {
        match self {
            KernelForwarder::KernelLate => Destinations::One,
            KernelForwarder::HandWrittenWide | KernelForwarder::KernelWide => Destinations::Wide,
            _ => Destinations::Scattered,
        }
    }

    fn start(
        self,
        settings: &Settings,
        network: &Network,
        directory: &Path,
    ) -> Result<RunningForwarder, Box<dyn Error>> {
        network.let_kernel_route(self == KernelForwarder::Routing)?;
        Ok(match self {
            KernelForwarder::Routing => RunningForwarder::Routing,
            KernelForwarder::OpenVswitch => {
                RunningForwarder::Other(ForwarderKind::OpenVswitch.start(network, directory)?)
            }
            KernelForwarder::Testpmd => RunningForwarder::Other(ForwarderKind::Testpmd.start(network, directory)?),
            KernelForwarder::RedirectOnly => {
                RunningForwarder::Redirect(network.router.enter(|| RedirectOnly::attach("r1", "r2"))??)
            }
            KernelForwarder::HandWritten | KernelForwarder::HandWrittenWide => {
                let hop = [NextHop { interface: "r2", source: ROUTER_MACS[1], destination: SINK_MAC }];
                let route = |address| Ipv4Route { address, length: 24, next_hop: 0 };
                let routes: Vec<_> = self.destinations().prefixes().map(route).collect();
                RunningForwarder::Router(network.router.enter(|| HandWrittenRouter::attach(&["r1"], &routes, &hop))??)
            }
            KernelForwarder::Object => {
                let object = settings.object.as_ref().ok_or("no object file is named")?;
                RunningForwarder::Object(object.attach(network)?)
            }
            KernelForwarder::Kernel
            | KernelForwarder::KernelWide
            | KernelForwarder::KernelSlow
            | KernelForwarder::KernelLate
            | KernelForwarder::KernelRules
            | KernelForwarder::AfXdp
            | KernelForwarder::AfXdpRules
            | KernelForwarder::AllSlow => {
                let is_kernel = !matches!(self, KernelForwarder::AfXdp | KernelForwarder::AfXdpRules);
                let (program, entries) = match self {
                    KernelForwarder::KernelWide => ("router.p4", "wide.json"),
                    KernelForwarder::KernelSlow => ("router.p4", "slow.json"),
                    KernelForwarder::KernelRules | KernelForwarder::AfXdpRules => ("rules.p4", "rules.json"),
                    _ => ("router.p4", "entries.json"),
                };
                let kind = if is_kernel { "kernel:" } else { "xdp:" };
                RunningForwarder::Triplane(triplane(network, directory, kind, program, entries, &[])?)
            }
        })
    }

    /// Measures a round.
    fn measure(self, settings: &Settings, network: &Network, directory: &Path) -> Result<Rate, Box<dyn Error>> {
        let is_driver = !matches!(
            self,
            KernelForwarder::AfXdp
                | KernelForwarder::AfXdpRules
                | KernelForwarder::AllSlow
                | KernelForwarder::OpenVswitch
                | KernelForwarder::Testpmd
        );
        let sink = if is_driver { network.driver_sink()? } else { network.sink()? };
        let flood = || network.load_to(self.destinations(), settings.len, 64, None);
        // A program that starts under the flood finds the flow at the switch.
        let early = if self == KernelForwarder::KernelLate { Some(flood()?) } else { None };
        let running = self.start(settings, network, directory)?;
        let mut load = early.map_or_else(flood, Ok)?;
        let rate = load::rate(&mut load, &sink, settings.seconds, || None)?;
        drop(load);
        running.stop()?;
        // Packets to the switch leave by a port that does not exist, so they do not arrive.
        let lost = if self == KernelForwarder::KernelSlow { SLOW_SHARE } else { 0.0 };
        Ok(Rate { arrived: rate.arrived / (1.0 - lost), ..rate })
    }
}

/// Whether a forwarder of others works on this machine; the reason is printed if it does not.
fn works(row: KernelForwarder, name: &str, settings: &Settings, network: &Network, directory: &Path) -> bool {
    let result = match row {
        KernelForwarder::OpenVswitch | KernelForwarder::Testpmd => {
            row.start(settings, network, directory).and_then(RunningForwarder::stop)
        }
        // The file may be anything.
        KernelForwarder::Object if settings.object.is_some() => {
            row.measure(settings, network, directory).and_then(|rate| match rate.arrived > 0.0 {
                true => Ok(()),
                false => Err("it forwards no frame".into()),
            })
        }
        KernelForwarder::Object => return false,
        _ => return true,
    };
    result.inspect_err(|error| println!("{name}: left out, {error}")).is_ok()
}

/// Starts a router with entries of a file.
fn triplane(
    network: &Network,
    directory: &Path,
    kind: &str,
    program: &str,
    entries: &str,
    more: &[&str],
) -> Result<BenchProcess, Box<dyn Error>> {
    let mut command = pinned(&network.router, "1", Path::new(env!("CARGO_BIN_EXE_triplane")))?;
    command.arg("run").arg(directory.join(program)).arg("--entries").arg(directory.join(entries)).args(more);
    command.args(["--json", "--port", &format!("1={kind}r1"), "--port", &format!("2={kind}r2")]);
    BenchProcess::start(&mut command, "press Ctrl-C to stop")
}

/// Measures all rows and prints their ratios.
pub fn compare(settings: &Settings, network: &Network, directory: &Path) -> Result<(), Box<dyn Error>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/router/router.p4");
    // The same router with room for all prefixes.
    let source = std::fs::read_to_string(source)?.replace("size = 1024;", "size = 65536;");
    std::fs::write(directory.join("router.p4"), &source)?;
    let ternary = source.replace("hdr.ipv4.dst: lpm", "hdr.ipv4.dst: ternary");
    std::fs::write(directory.join("rules.p4"), ternary)?;
    std::fs::write(directory.join("wide.json"), entries_for(Destinations::Wide, RouteKeys::Prefixes))?;
    std::fs::write(directory.join("slow.json"), entries_for(Destinations::Ascending, RouteKeys::SlowPrefixes))?;
    std::fs::write(directory.join("rules.json"), entries_for(Destinations::Ascending, RouteKeys::Rules))?;
    let rows: Vec<RowOfTable> =
        ROWS.into_iter().filter(|(row, name, _)| works(*row, name, settings, network, directory)).collect();
    let mut rounds: Vec<Vec<Rate>> = Vec::new();
    for _ in 0..settings.rounds {
        let round = rows.iter().map(|(row, ..)| row.measure(settings, network, directory));
        rounds.push(round.collect::<Result<_, _>>()?);
    }
    println!(
        "\nP4 in the kernel: frames forwarded under a flood, Mpps: median (minimum to maximum); median ratios within rounds,\nwith the required minimum"
    );
    let place = |row: KernelForwarder| rows.iter().position(|(other, ..)| *other == row);
    for (at, (_, name, bars)) in rows.iter().enumerate() {
        let rates = sorted(rounds.iter().map(|round| round[at].arrived));
        let (middle, least, most) = (rates[rates.len() / 2], rates[0], rates[rates.len() - 1]);
        println!("  {name:42} {middle:6.3} ({least:.3} to {most:.3})");
        for (other, bar) in *bars {
            let Some(other) = place(*other) else { continue };
            let ratio = median(rounds.iter().map(|round| round[at].arrived / round[other].arrived));
            let bar = bar.map_or_else(String::new, |bar| format!(" (at least {bar})"));
            println!("    {ratio:5.2} of {}{bar}", rows[other].1);
        }
    }
    let writes: Vec<f64> =
        (0..settings.rounds.min(3)).map(|_| writes(settings, network, directory)).collect::<Result<_, _>>()?;
    println!("  single writes acknowledged a second, under a flood: {:.0} (at least 5000)", median(writes.into_iter()));
    Ok(())
}

/// Returns the number of single writes that are acknowledged a second, one after the other, under a flood.
fn writes(settings: &Settings, network: &Network, directory: &Path) -> Result<f64, Box<dyn Error>> {
    network.router.set_up("lo")?;
    network.let_kernel_route(false)?;
    let _sink = network.driver_sink()?;
    let process = triplane(network, directory, "kernel:", "router.p4", "entries.json", &["--p4runtime", ADDRESS])?;
    let _load = network.load_to(Destinations::Scattered, settings.len, 64, None)?;
    // The controller shares the processor of the switch, as the flood takes all of its own.
    let own = std::env::current_exe()?;
    let output = pinned(&network.router, "1", &own)?.arg(WRITER).output()?;
    process.stop()?;
    let rate = String::from_utf8_lossy(&output.stdout).trim().parse();
    rate.map_err(|_| format!("the controller failed: {}", String::from_utf8_lossy(&output.stderr)).into())
}

/// Runs the process of a controller: inserts and deletes a route for a second, and prints the rate of writes.
pub fn run_writer() -> Result<(), Box<dyn Error>> {
    let target = ServerTarget::new(ADDRESS, None)?;
    let client = BlockingClient::connect(&target, 1)?;
    let (_stream, election) = client.become_primary(Some(1))?;
    let info = client.pipeline_config()?.and_then(|config| config.p4info).ok_or("there is no pipeline")?;
    let (table, _) = names::tables(&info).into_iter().find(|(_, name)| name.ends_with("ipv4_lpm")).ok_or("no table")?;
    let action = info.actions.iter().find(|action| names::name(&action.preamble).ends_with("no_route"));
    let action_id = names::id(&action.ok_or("no action")?.preamble);
    let lpm = v1::field_match::Lpm { value: vec![10, 9, 0, 0], prefix_len: 16 };
    let entry = v1::TableEntry {
        table_id: names::id(&table.preamble),
        r#match: vec![v1::FieldMatch {
            field_id: table.match_fields[0].id,
            field_match_type: Some(v1::field_match::FieldMatchType::Lpm(lpm)),
        }],
        action: Some(v1::TableAction {
            r#type: Some(v1::table_action::Type::Action(v1::Action { action_id, params: Vec::new() })),
        }),
        ..Default::default()
    };
    let update = |kind: v1::update::Type| v1::Update {
        r#type: kind.into(),
        entity: Some(v1::Entity { entity: Some(v1::entity::Entity::TableEntry(entry.clone())) }),
    };
    let (begin, mut count) = (Instant::now(), 0);
    while begin.elapsed() < WRITING {
        for kind in [v1::update::Type::Insert, v1::update::Type::Delete] {
            client.write(election, vec![update(kind)], Atomicity::ContinueOnError)?;
            count += 1;
        }
    }
    println!("{}", f64::from(count) / begin.elapsed().as_secs_f64());
    Ok(())
}
