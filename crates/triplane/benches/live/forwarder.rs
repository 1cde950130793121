//! The forwarders: Triplane, a bare loop over AF_XDP, the kernel, Open vSwitch. Each runs in the router's namespace.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ports::{Frame, Port, XdpPort, XdpSettings, wait};

use crate::network::{Network, ROUTER_MACS, SINK_MAC, mac_text};
use crate::process::{BenchProcess, cpu, pinned};

/// First argument of the process that runs the bare forwarder.
pub const BARE: &str = "bare-forwarder";

/// A kind of forwarder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwarderKind {
    Bare,
    Triplane,
    TriplaneAfPacket,
    TriplaneKernel,
    Kernel,
    OpenVswitch,
    Testpmd,
}

impl ForwarderKind {
    /// Every kind, and its name on the command line.
    pub const ALL: [(ForwarderKind, &str); 7] = [
        (ForwarderKind::Bare, "bare"),
        (ForwarderKind::Triplane, "triplane"),
        (ForwarderKind::TriplaneAfPacket, "af_packet"),
        (ForwarderKind::TriplaneKernel, "triplane_kernel"),
        (ForwarderKind::Kernel, "kernel"),
        (ForwarderKind::OpenVswitch, "ovs"),
        (ForwarderKind::Testpmd, "testpmd"),
    ];

    pub fn name(self) -> &'static str {
        match self {
            ForwarderKind::Bare => "bare AF_XDP forwarder",
            ForwarderKind::Triplane => "triplane run, router.p4, AF_XDP",
            ForwarderKind::TriplaneAfPacket => "triplane run, router.p4, AF_PACKET",
            ForwarderKind::TriplaneKernel => "triplane run, router.p4, in the kernel",
            ForwarderKind::Kernel => "Linux kernel, routing",
            ForwarderKind::OpenVswitch => "Open vSwitch, userspace, AF_XDP",
            ForwarderKind::Testpmd => "DPDK testpmd, new addresses, AF_XDP",
        }
    }
}

/// A running forwarder. It stops when this value is dropped.
pub struct Running {
    process: Option<BenchProcess>,
    vswitch: Option<Vswitch>,
}

impl ForwarderKind {
    /// Starts a forwarder in the router's namespace, on its own processor if the machine has several. `directory` holds
    /// its files.
    pub fn start(self, network: &Network, directory: &Path) -> Result<Running, Box<dyn Error>> {
        let mut running = Running { process: None, vswitch: None };
        network.let_kernel_route(self == ForwarderKind::Kernel)?;
        match self {
            ForwarderKind::Kernel => {}
            ForwarderKind::Bare => {
                let own = std::env::current_exe()?;
                let mut command = pinned(&network.router, "1", &own)?;
                running.process = Some(BenchProcess::start(command.arg(BARE), "forwarding")?);
            }
            ForwarderKind::Triplane | ForwarderKind::TriplaneAfPacket | ForwarderKind::TriplaneKernel => {
                let kind = match self {
                    ForwarderKind::Triplane => "xdp:",
                    ForwarderKind::TriplaneKernel => "kernel:",
                    _ => "",
                };
                let mut command = pinned(&network.router, "1", Path::new(env!("CARGO_BIN_EXE_triplane")))?;
                route(&mut command, directory, kind);
                running.process = Some(BenchProcess::start(&mut command, "press Ctrl-C to stop")?);
            }
            ForwarderKind::OpenVswitch => running.vswitch = Some(Vswitch::start(network, directory)?),
            ForwarderKind::Testpmd => running.process = Some(testpmd(network)?),
        }
        Ok(running)
    }
}

/// Starts DPDK's testpmd, which gives frames new addresses and looks nothing up.
fn testpmd(network: &Network) -> Result<BenchProcess, Box<dyn Error>> {
    // It reports on its standard output that it forwards, and ends at the end of its input.
    let script = format!(
        "exec stdbuf -oL dpdk-testpmd --lcores 0@1,1@1 --no-pci --no-huge -m 512 --vdev net_af_xdp0,iface=r1 \
         --vdev net_af_xdp1,iface=r2 -- --forward-mode=mac --auto-start --eth-peer=1,{} --total-num-mbufs=32768 >&2",
        mac_text(SINK_MAC)
    );
    let mut command = network.router.command("setpriv")?;
    command.args(["--pdeathsig", "KILL", "sh", "-c", &script]).stdin(Stdio::piped());
    BenchProcess::start(&mut command, "packets/burst")
}

/// Starts Triplane with `workers` workers, on any of the processors.
pub fn with_workers(workers: u32, network: &Network, directory: &Path) -> Result<Running, Box<dyn Error>> {
    let mut command = network.router.command("taskset")?;
    command.args(["-c", "0-1023"]).arg(env!("CARGO_BIN_EXE_triplane"));
    route(&mut command, directory, "xdp:");
    command.args(["--workers", &workers.to_string()]);
    Ok(Running { process: Some(BenchProcess::start(&mut command, "press Ctrl-C to stop")?), vswitch: None })
}

/// Adds the arguments that make `triplane` the router.
fn route(command: &mut Command, directory: &Path, kind: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    command.arg("run").arg(root.join("examples/router/router.p4")).arg("--entries").arg(directory.join("entries.json"));
    command.args(["--json", "--port", &format!("1={kind}r1"), "--port", &format!("2={kind}r2")]);
}

impl Running {
    /// Returns the processor time that the forwarder's processes have used; `None` for the kernel, which forwards in
    /// the time of other processes.
    pub fn cpu(&self) -> Option<Duration> {
        match &self.vswitch {
            Some(vswitch) => Some(vswitch.processes.iter().filter_map(|process| cpu(process.id())).sum()),
            None => self.process.as_ref()?.cpu(),
        }
    }

    /// Ends the forwarder and returns its output.
    pub fn stop(self) -> Result<String, Box<dyn Error>> {
        self.process.map_or(Ok(String::new()), BenchProcess::stop)
    }
}

/// Runs the bare forwarder: every frame that arrives at one interface leaves by the other, unchanged.
pub fn bare() -> Result<(), Box<dyn Error>> {
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, stop.clone())?;
    let mut ports = XdpPort::open_together(&["r1", "r2"], XdpSettings::default())?;
    let descriptors: Vec<_> = ports.iter().filter_map(XdpPort::poll_fd).collect();
    let mut frames: Vec<Frame> = Vec::new();
    eprintln!("forwarding");
    while !stop.load(Ordering::Relaxed) {
        let mut count = 0;
        for from in 0..2 {
            count += ports[from].receive_frames(&mut frames, 32)?;
            for frame in frames.drain(..) {
                ports[1 - from].send_frame(frame)?;
            }
            ports[1 - from].flush()?;
        }
        if count == 0 {
            wait(&descriptors, Duration::from_millis(100))?;
        }
    }
    Ok(())
}

/// Open vSwitch with a bridge of its userspace datapath, and its own database.
struct Vswitch {
    processes: Vec<Child>,
}

impl Vswitch {
    fn start(network: &Network, directory: &Path) -> Result<Vswitch, Box<dyn Error>> {
        let at = directory.join("ovs");
        let _ = std::fs::remove_dir_all(&at);
        std::fs::create_dir(&at)?;
        let path = |name: &str| -> PathBuf { at.join(name) };
        let socket = format!("unix:{}", path("db").display());
        let schema = "/usr/share/openvswitch/vswitch.ovsschema";
        let command = |program: &str| -> Result<Command, Box<dyn Error>> {
            let mut command = network.router.command(program)?;
            command.env("OVS_RUNDIR", &at).env("OVS_LOGDIR", &at).env("OVS_DBDIR", &at);
            command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
            Ok(command)
        };
        done(command("ovsdb-tool")?.arg("create").arg(path("conf")).arg(schema))?;
        let mut this = Vswitch { processes: Vec::new() };
        let server = command("ovsdb-server")?.arg(path("conf")).arg(format!("--remote=p{socket}")).spawn()?;
        this.processes.push(server);
        wait_for(&path("db"))?;
        done(command("ovs-vsctl")?.arg(format!("--db={socket}")).args(["--no-wait", "init"]))?;
        this.processes.push(command("ovs-vswitchd")?.arg(&socket).spawn()?);
        let mut bridge = command("ovs-vsctl")?;
        bridge.arg(format!("--db={socket}")).arg("--timeout=10");
        bridge.args(["--", "set", "Open_vSwitch", ".", "other_config:pmd-cpu-mask=0x2"]);
        bridge.args(["--", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev", "fail_mode=secure"]);
        for end in ["r1", "r2"] {
            bridge.args(["--", "add-port", "br0", end, "--", "set", "interface", end, "type=afxdp"]);
        }
        done(&mut bridge)?;
        let flow = format!(
            "in_port=r1,ip,nw_dst=10.2.0.0/16,actions=dec_ttl,mod_dl_src:{},mod_dl_dst:{},output:r2",
            mac_text(ROUTER_MACS[1]),
            mac_text(SINK_MAC)
        );
        done(command("ovs-ofctl")?.args(["--timeout=10", "add-flow"]).arg(path("br0.mgmt")).arg(flow))?;
        Ok(this)
    }
}

impl Drop for Vswitch {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().rev() {
            let _ = Command::new("kill").arg(process.id().to_string()).status();
            let _ = process.wait();
        }
    }
}

fn done(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("{:?}: {status}", command.get_program()).into()) }
}

fn wait_for(path: &Path) -> Result<(), Box<dyn Error>> {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !path.exists() {
        if Instant::now() > deadline {
            return Err(format!("{} does not appear", path.display()).into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
