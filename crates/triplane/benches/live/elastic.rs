//! Compares a program whose table is in the memory of a server with itself, and with a bare forwarder.
//!
//! ```text
//!   source ── r1 router r2 ── sink
//!                    r3 ── memory server
//! ```
//!
//! All forwarders run at the same time, each in a network of its own, and wait while another one is measured. The
//! memory server shares the first processor with the load.

use std::error::Error;
use std::fmt::Write;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ports::load::{Flood, Sink, Vary};
use ports::namespace::{Namespace, veth_with_queues};
use rng::SplitMix64;
use wire::ethernet;

use crate::Settings;
use crate::figures::{median, sorted};
use crate::forwarder::BARE;
use crate::load::{self, Load, Rate};
use crate::measure;
use crate::network::{Network, ROUTER_MACS, SOURCE_MAC};
use crate::process::{BenchProcess, pinned};

/// First argument of a process that runs a load.
pub const LOAD: &str = "elastic-load";

const TRIPLANE: &str = env!("CARGO_BIN_EXE_triplane");

/// The program of an IPv6 NAT, which leaves the place of its table to the including file.
const PROGRAM: &str = "crates/xtask/programs/remote-tables.p4";

/// Number of entries, and of flows.
const FLOWS: u32 = 1 << 17;

/// Length of frames: the headers of IPv6 and UDP, and four bytes.
const LENGTH: usize = 66;

/// Offset of the bytes that number the flow: the end of the destination address.
const FLOW_AT: usize = 50;

/// Popularity of flows.
const ZIPF: f64 = 0.99;

/// Time within which a switch has to fill its server.
const FILL_TIMEOUT: Duration = Duration::from_secs(60);

/// Time for which frames pass before measurements, so that popular entries are cached.
const WARM_UP: f64 = 2.0;

/// A distribution of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlowOrder {
    Uniform,
    Zipf,
}

impl FlowOrder {
    fn name(self) -> &'static str {
        match self {
            FlowOrder::Uniform => "uniform",
            FlowOrder::Zipf => "zipf",
        }
    }
}

/// A forwarder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bare,
    Local,
    /// With this many cached entries.
    Elastic(u32),
}

/// Runs the process of a load. Its arguments are the distribution of flows and the share of 64 frames.
pub fn run_load() -> Result<(), Box<dyn Error>> {
    let argument = |at| std::env::args().nth(at).ok_or("an argument is missing");
    let share = argument(3)?.parse()?;
    let flood = if argument(2)? == FlowOrder::Uniform.name() {
        let vary = Vary { offset: FLOW_AT, first: 0, count: FLOWS, balance: None };
        Flood::scattered("eth0", &frame(0), vary, share)?
    } else {
        Flood::listed("eth0", &frame(0), FLOW_AT, &popular_flows(), share)?
    };
    load::run(&flood)
}

/// Returns flows by their popularity.
fn popular_flows() -> Vec<u32> {
    let mut sum = 0.0;
    let ends: Vec<f64> = (1..=FLOWS)
        .map(|flow| {
            sum += f64::from(flow).powf(-ZIPF);
            sum
        })
        .collect();
    let mut random = SplitMix64::new(99);
    let draw = |_| {
        let point = random.fraction() * sum;
        ends.partition_point(|end| *end <= point) as u32 % FLOWS
    };
    (0..FLOWS).map(draw).collect()
}

/// Returns the destination of a flow.
fn destination(flow: u32) -> Ipv6Addr {
    Ipv6Addr::from((0x2001_0db8_u128 << 96) | u128::from(flow))
}

const SOURCE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);

/// Returns the frame of a flow.
fn frame(flow: u32) -> Vec<u8> {
    let mut packet = vec![0; LENGTH - ethernet::HEADER_LEN];
    packet[0] = 0x60;
    packet[4..6].copy_from_slice(&12_u16.to_be_bytes());
    packet[6..8].copy_from_slice(&[17, 64]);
    packet[8..24].copy_from_slice(&SOURCE.octets());
    packet[24..40].copy_from_slice(&destination(flow).octets());
    packet[40..46].copy_from_slice(&[0x10, 0, 0, 53, 0, 12]);
    ethernet::Repr {
        destination: ethernet::Address(ROUTER_MACS[0]),
        source: ethernet::Address(SOURCE_MAC),
        ethertype: 0x86dd,
    }
    .packet(&packet)
}

/// Returns an entries file with all flows.
fn entries() -> String {
    let mut text = String::from("{\"table_entries\": [");
    for flow in 0..FLOWS {
        let comma = if flow > 0 { "," } else { "" };
        let destination = destination(flow);
        write!(
            text,
            "{comma}\n{{\"table\": \"FunctionIngress.flows\", \"match\": {{\"hdr.ipv6.next_header\": 17, \
             \"hdr.ipv6.src\": \"{SOURCE}\", \"hdr.ipv6.dst\": \"{destination}\", \"hdr.ports.src\": 4096, \
             \"hdr.ports.dst\": 53}}, \"action_name\": \"FunctionIngress.translate\", \"action_params\": {{\"address\": \
             \"2001:db8:2::1\", \"port\": 4000}}}}"
        )
        .expect("text takes everything");
    }
    text + "\n]}\n"
}

/// A running forwarder with its network.
struct Variant {
    network: Network,
    _memory: Option<(Namespace, BenchProcess)>,
    forwarder: BenchProcess,
    sink: Sink,
    socket: PathBuf,
}

impl Variant {
    fn start(kind: Kind, directory: &Path) -> Result<Variant, Box<dyn Error>> {
        let network = Network::new(1)?;
        network.let_kernel_route(false)?;
        let sink = network.sink()?;
        let name = format!("{kind:?}");
        let socket = directory.join(format!("{name}.sock"));
        if kind == Kind::Bare {
            let own = std::env::current_exe()?;
            let forwarder = BenchProcess::start(pinned(&network.router, "1", &own)?.arg(BARE), "forwarding")?;
            return Ok(Variant { network, _memory: None, forwarder, sink, socket });
        }
        let annotation = match kind {
            Kind::Elastic(cache) => format!(" @elastic[cache = \"{cache}\"]"),
            _ => String::new(),
        };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
        let program = directory.join(format!("{name}.p4"));
        std::fs::write(
            &program,
            format!(
                "#define NAT\n#define ENTRIES {FLOWS}\n#define TABLE_ANNOTATION{annotation}\n#include \"{}\"\n",
                root.join(PROGRAM).display()
            ),
        )?;
        let mut command = pinned(&network.router, "1", Path::new(TRIPLANE))?;
        command.arg("run").arg(program).arg("--entries").arg(directory.join("flows.json"));
        command.args(["--json", "--port", "1=xdp:r1", "--port", "2=xdp:r2"]);
        let mut memory = None;
        if let Kind::Elastic(_) = kind {
            let namespace = Namespace::new("memory")?;
            namespace.disable_ipv6()?;
            veth_with_queues(&namespace, "eth0", &network.router, "r3", 1)?;
            namespace.set_up("eth0")?;
            network.router.set_up("r3")?;
            namespace.wait_for_link("eth0", Duration::from_secs(1))?;
            network.router.wait_for_link("r3", Duration::from_secs(1))?;
            let mut serve = pinned(&namespace, "0", Path::new(TRIPLANE))?;
            serve.args(["memory", "serve", "--port", "xdp:eth0", "--address", "10.9.0.1", "--memory", "1GiB"]);
            let server = BenchProcess::start(&mut serve, "Ctrl-C")?;
            memory = Some((namespace, server));
            command.args(["--port", "3=xdp:r3", "--memory", "10.9.0.1@3", "--socket"]).arg(&socket);
        }
        let forwarder = BenchProcess::start(&mut command, "press Ctrl-C to stop")?;
        Ok(Variant { network, _memory: memory, forwarder, sink, socket })
    }

    /// Waits until the server has all entries, and the switch has nothing to do.
    fn wait_until_filled(&self) -> Result<(), Box<dyn Error>> {
        let deadline = Instant::now() + FILL_TIMEOUT;
        loop {
            let output =
                Command::new(TRIPLANE).args(["memory", "list", "--json", "--socket"]).arg(&self.socket).output()?;
            let list: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let server = &list["servers"][0];
            let before = self.forwarder.cpu();
            std::thread::sleep(Duration::from_millis(500));
            let used = self.forwarder.cpu().zip(before).map_or(Duration::ZERO, |(after, before)| after - before);
            let is_filled = server["missing_bytes"] == 0 && server["entries"].as_u64() > Some(0);
            if is_filled && used < Duration::from_millis(20) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("the memory server was not filled: {list}").into());
            }
        }
    }

    /// Offers a flood for a time.
    fn measure(&self, order: FlowOrder, seconds: f64) -> Result<Rate, Box<dyn Error>> {
        let mut command = self.network.source.command(std::env::current_exe()?)?;
        let mut load = Load::start(command.args([LOAD, order.name(), "64"]))?;
        load::rate(&mut load, &self.sink, seconds, || self.forwarder.cpu())
    }

    /// Returns the median and the 99th percentile of the times of single frames, in microseconds.
    fn latency(&self) -> Result<[f64; 2], Box<dyn Error>> {
        const COUNT: u32 = 1000;
        let frames: Vec<Vec<u8>> = (0..COUNT).map(|number| frame(number * 1009 % FLOWS)).collect();
        let mut times = measure::latency(&self.network, &frames, COUNT as usize, Duration::from_micros(200))?;
        times.sort_unstable();
        let at = |share: f64| times.get((times.len() as f64 * share) as usize).map_or(f64::NAN, |ns| *ns as f64 / 1e3);
        Ok([at(0.5), at(0.99)])
    }
}

/// The measurements of a round.
const ROWS: [(&str, Kind, FlowOrder); 5] = [
    ("bare AF_XDP forwarder, uniform flows", Kind::Bare, FlowOrder::Uniform),
    ("local table, uniform flows", Kind::Local, FlowOrder::Uniform),
    ("@elastic without cache, uniform flows", Kind::Elastic(0), FlowOrder::Uniform),
    ("local table, Zipf 0.99", Kind::Local, FlowOrder::Zipf),
    ("@elastic, 1,024 cached, Zipf 0.99", Kind::Elastic(1024), FlowOrder::Zipf),
];

/// Measures all forwarders and prints their ratios.
pub fn compare(settings: &Settings, directory: &Path) -> Result<(), Box<dyn Error>> {
    std::fs::write(directory.join("flows.json"), entries())?;
    let kinds = [Kind::Bare, Kind::Local, Kind::Elastic(0), Kind::Elastic(1024)];
    let variants = kinds.map(|kind| Variant::start(kind, directory).map(|variant| (kind, variant)));
    let variants = variants.into_iter().collect::<Result<Vec<_>, _>>()?;
    let of = |kind| &variants.iter().find(|(other, _)| *other == kind).expect("each kind runs").1;
    for (kind, variant) in &variants {
        if let Kind::Elastic(_) = kind {
            variant.wait_until_filled()?;
        }
        variant.measure(FlowOrder::Zipf, WARM_UP)?;
    }
    let mut rounds: Vec<Vec<Rate>> = Vec::new();
    for _ in 0..settings.rounds {
        let measure = |(_, kind, order): &(&str, Kind, FlowOrder)| of(*kind).measure(*order, settings.seconds);
        rounds.push(ROWS.iter().map(measure).collect::<Result<_, _>>()?);
    }
    println!(
        "\ntables in the memory of a server, {FLOWS} entries: forwarded of a flood, Mpps, median (least to most);"
    );
    println!("the forwarder's processor time for a frame");
    for (at, (name, ..)) in ROWS.iter().enumerate() {
        let arrived = sorted(rounds.iter().map(|round| round[at].arrived));
        let cpu = median(rounds.iter().filter_map(|round| round[at].cpu_ns));
        let (middle, last) = (arrived[arrived.len() / 2], arrived[arrived.len() - 1]);
        println!("  {name:40} {middle:6.3} ({:.3} to {last:.3})  {cpu:5.0} ns", arrived[0]);
    }
    let ratio = |one: usize, other: usize| median(rounds.iter().map(|round| round[one].arrived / round[other].arrived));
    println!("  without cache, ratio to half of the bare forwarder {:.2} (bound 0.60)", 2.0 * ratio(2, 0));
    println!("  with cache, ratio to the local table               {:.2} (bound 0.75)", ratio(4, 3));
    for (name, kind) in [("local table", Kind::Local), ("@elastic without cache", Kind::Elastic(0))] {
        let [p50, p99] = of(kind).latency()?;
        println!("  latency of single frames, {name:24} p50 {p50:6.1} us  p99 {p99:6.1} us");
    }
    Ok(())
}
