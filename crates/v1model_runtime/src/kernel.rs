//! Runs the program of a switch in the kernel, on the ports whose drivers permit it.
//!
//! ```text
//! interface ─> code of the program at XDP ─┬─> device of another port
//!                                          ├─> drop
//!                                          └─> AF_XDP socket ─> switch, which runs the frame from the start
//! ```
//!
//! [`KernelPorts::attach`] needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON. The hook that it returns needs none. It keeps
//! the code attached, and tells the switch when a device can no longer be sent to.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bpf::asm::Links;
use bpf::{KernelCode, KernelOptions, PortState};
use ports::{KernelProgram, KernelRegion, RedirectLosses, RedirectMap, XdpAttachment};
use runtime::{Hook, HookContext};
use switch::{PortId, Time};
use v1model::Switch;

/// Size of an Ethernet header in bytes.
const ETHERNET_BYTES: usize = 14;
/// Interval between checks of the devices in nanoseconds.
const CHECK_NS: u64 = 1_000_000_000;

/// The reason why no packet of a program is processed in the kernel.
#[derive(Debug, thiserror::Error)]
pub enum NotInKernel {
    /// The program does not permit it.
    #[error("{0}")]
    Program(String),
    /// No packet of the program can be forwarded or dropped there.
    #[error("every packet needs the switch (`triplane check --kernel` lists the places)")]
    NoPacket,
    /// No port has a driver that permits it.
    #[error("no `kernel:` port runs XDP in the driver (native mode)")]
    NoPort,
    /// The system refuses.
    #[error("{what}: {source}{}", if source.kind() == std::io::ErrorKind::PermissionDenied {
        "; grant triplane cap_net_raw, cap_net_admin, cap_bpf and cap_perfmon with `setcap`, or run it as root"
    } else {
        ""
    })]
    System {
        /// The step.
        what: &'static str,
        /// The error.
        source: std::io::Error,
    },
    /// The verifier rejects the code.
    #[error("the BPF verifier rejects the program: {reason}")]
    Rejected {
        /// The last line of the verifier's log, without its statistics.
        reason: String,
    },
    /// The entries do not fit.
    #[error("{0}")]
    Entries(#[from] bpf::RegionError),
}

/// Waits for a packet to end, for some 50 ms in all.
fn wait_for_packet(waited: u64) -> bool {
    /// Number of waits without sleep: a packet takes less than a microsecond.
    const YIELDS: u64 = 1000;
    const SLEEPS: u64 = 50;
    if waited < YIELDS {
        std::thread::yield_now();
    } else {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    waited < YIELDS + SLEEPS
}

fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> NotInKernel {
    move |source| NotInKernel::System { what, source }
}

/// The ports on which a program is to run in the kernel.
#[derive(Default)]
pub struct KernelPorts {
    ports: Vec<(PortId, XdpAttachment)>,
    is_gpl: bool,
}

/// Called with a note for the user, one sentence.
pub type KernelNoteCallback = Box<dyn Fn(&str) + Send>;

/// Counts the frames that are lost after a redirect.
struct Losses {
    counters: RedirectLosses,
    /// The ports in the order of the counters, with what has been counted.
    ports: Mutex<Vec<(PortId, [u64; 2])>>,
}

impl Losses {
    /// Counts what was lost since the last call with the switch.
    fn count(&self, switch: &mut Switch) {
        let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, (port, [lost, failed])) in ports.iter_mut().enumerate() {
            let (all_lost, all_failed) = (self.counters.lost(at), self.counters.failed(at));
            if all_lost > *lost {
                switch.count_lost_in_kernel(*port, all_lost - *lost);
            }
            if all_failed > *failed {
                switch.count_failed_in_kernel(all_failed - *failed);
            }
            (*lost, *failed) = (all_lost, all_failed);
        }
    }
}

/// A program in the kernel.
pub struct KernelRun {
    /// What runs there.
    pub summary: KernelSummary,
    losses: Option<Arc<Losses>>,
}

impl KernelRun {
    /// Ends the run: no packet is processed in the kernel any more, and the switch has all counts.
    pub fn end(self, switch: &mut Switch) {
        switch.leave_kernel();
        if let Some(losses) = self.losses {
            losses.count(switch);
        }
    }
}

/// What runs in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSummary {
    /// The ports whose frames run there, with their interfaces.
    pub ports: Vec<(PortId, String)>,
    /// Ports to which packets are handed over, as their device accepts no redirected frames.
    pub not_sent_to: Vec<(PortId, String)>,
    /// Number of instructions of the code.
    pub instructions: usize,
    /// Number of instructions that the verifier processed.
    pub verified_instructions: Option<u64>,
    /// Size of the memory that the kernel and the switch share, in bytes.
    pub memory_bytes: u32,
    /// Ports whose senders may keep VLAN tags beside frames, which the program does not see.
    pub without_tags: Vec<PortId>,
    /// The reason why frames that devices lose after a redirect are not counted, if they are not.
    pub losses_error: Option<String>,
}

impl fmt::Display for KernelSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.ports.iter().map(|(id, name)| format!("{id}={name}")).collect();
        write!(f, "the program runs in the kernel on {} ({} instructions)", names.join(", "), self.instructions)
    }
}

impl KernelPorts {
    /// Says whether the program is offered under the GPL. Then it sees VLAN tags that are kept beside frames.
    pub fn set_gpl(&mut self, is_gpl: bool) {
        self.is_gpl = is_gpl;
    }

    /// Adds a port, if its program runs in the interface's driver.
    pub fn add(&mut self, port: PortId, attachment: XdpAttachment) {
        if attachment.is_native() {
            self.ports.push((port, attachment));
        }
    }

    /// Compiles the program of a switch and runs it on the ports. Returns the hook of the run, which is polled before
    /// all others. `on_note` is called when packets stop running in the kernel, and when they do so again.
    ///
    /// # Errors
    /// [`NotInKernel`]. Nothing has changed then: all frames go to the switch.
    pub fn attach(
        self,
        switch: &mut Switch,
        on_note: KernelNoteCallback,
    ) -> Result<(KernelHook, KernelRun), NotInKernel> {
        let code = compile(switch)?;
        if self.ports.is_empty() {
            return Err(NotInKernel::NoPort);
        }
        let region = KernelRegion::new(code.layout.bytes()).map_err(system("cannot create the shared memory"))?;
        let devices =
            RedirectMap::devices(self.ports.len() as u32).map_err(system("cannot create the map of devices"))?;
        for (at, (_, attachment)) in (0..).zip(&self.ports) {
            devices.set_device(at, attachment.index()).map_err(system("cannot add a device to the map"))?;
        }
        let load =
            |port: PortId, attachment: &XdpAttachment| load(&code, (&region, &devices), port, attachment, self.is_gpl);
        let programs: Vec<(KernelProgram, usize)> =
            self.ports.iter().map(|(port, attachment)| load(*port, attachment)).collect::<Result<_, _>>()?;
        let mut summary = KernelSummary {
            ports: self.ports.iter().map(|(port, attachment)| (*port, attachment.interface().to_owned())).collect(),
            not_sent_to: Vec::new(),
            instructions: programs[0].1,
            verified_instructions: programs[0].0.verified_instructions(),
            memory_bytes: code.layout.bytes(),
            without_tags: self.ports_without_tags(),
            losses_error: None,
        };
        let region = Arc::new(region);
        switch.attach_kernel(&code, region, wait_for_packet)?;
        let program = Arc::clone(switch.program());
        let mut hook =
            KernelHook { ports: Vec::new(), checked: Time::ZERO, program, losses: None, failure: None, on_note };
        for (at, (port, attachment)) in (0..).zip(&self.ports) {
            let state = device_state(at, attachment);
            if state == PortState::Slow {
                summary.not_sent_to.push((*port, attachment.interface().to_owned()));
            }
            switch.set_kernel_device(*port, state);
        }
        switch.publish();
        for ((_, attachment), (program, _)) in self.ports.iter().zip(&programs) {
            if let Err(source) = attachment.run(program) {
                switch.leave_kernel();
                return Err(NotInKernel::System { what: "cannot attach the program", source });
            }
        }
        // A run without these counts is still correct: kernels without BTF lose the same frames uncounted.
        let interfaces: Vec<u32> = self.ports.iter().map(|(_, attachment)| attachment.index()).collect();
        let losses = RedirectLosses::open(&interfaces);
        summary.losses_error = losses.as_ref().err().map(ToString::to_string);
        let losses = losses.ok().map(|counters| {
            let ports = self.ports.iter().map(|(port, _)| (*port, [0; 2])).collect();
            Arc::new(Losses { counters, ports: Mutex::new(ports) })
        });
        hook.losses = losses.clone();
        hook.ports = (0..).zip(self.ports).map(|(at, (port, attachment))| HookPort { at, port, attachment }).collect();
        Ok((hook, KernelRun { summary, losses }))
    }
}

impl KernelPorts {
    fn ports_without_tags(&self) -> Vec<PortId> {
        let without = self.ports.iter().filter(|(_, attachment)| !self.is_gpl && attachment.restores_tags());
        without.map(|(port, _)| *port).collect()
    }
}

/// Compiles the program of a switch.
fn compile(switch: &Switch) -> Result<KernelCode, NotInKernel> {
    let pipeline =
        v1model::kernel_pipeline(switch.program()).map_err(|error| NotInKernel::Program(error.to_string()))?;
    let widest = switch.config().ports.iter().map(|port| port.0).max().unwrap_or(0);
    let ports = (widest + 1).next_power_of_two().min(KernelOptions::default().ports);
    let options = KernelOptions { ports, ..KernelOptions::default() };
    let code = bpf::compile(switch.program(), &pipeline, options);
    let code = code.map_err(|error| NotInKernel::Program(error.to_string()))?;
    if code.can_forward || code.can_drop { Ok(code) } else { Err(NotInKernel::NoPacket) }
}

/// Loads the code for one port. Returns it with the number of its instructions.
fn load(
    code: &KernelCode,
    (region, devices): (&KernelRegion, &RedirectMap),
    port: PortId,
    attachment: &XdpAttachment,
    is_gpl: bool,
) -> Result<(KernelProgram, usize), NotInKernel> {
    let links = Links {
        region: region.descriptor(),
        devices: devices.descriptor(),
        sockets: attachment.sockets(),
        port: port.0,
        has_local_senders: attachment.has_local_senders(),
    };
    let words = code.encode(&links, true).map_err(|error| NotInKernel::Program(error.to_string()))?;
    match attachment.load(&words, is_gpl) {
        Ok(program) => Ok((program, words.len())),
        Err(rejected) if rejected.log.is_empty() => {
            Err(NotInKernel::System { what: "cannot load the program", source: rejected.error })
        }
        Err(rejected) => {
            let reason = rejected.log.lines().rev().find(|line| !line.starts_with("processed")).unwrap_or_default();
            Err(NotInKernel::Rejected { reason: reason.to_owned() })
        }
    }
}

/// Returns the state of a port whose device has this index.
fn device_state(at: u32, attachment: &XdpAttachment) -> PortState {
    if ports::accepts_redirects(attachment.interface()) == Some(false) {
        return PortState::Slow;
    }
    let max_frame = (attachment.mtu() + ETHERNET_BYTES) as u32;
    PortState::Fast { device: at, max_frame }
}

/// A port whose frames run in the kernel.
struct HookPort {
    at: u32,
    port: PortId,
    attachment: XdpAttachment,
}

/// Keeps a program in the kernel, and the switch's view of it up to date.
pub struct KernelHook {
    ports: Vec<HookPort>,
    /// Time of the last check of the devices.
    checked: Time,
    /// The program that was attached.
    program: Arc<ir::Program>,
    losses: Option<Arc<Losses>>,
    /// The failure that was noted.
    failure: Option<bpf::RegionError>,
    on_note: KernelNoteCallback,
}

impl KernelHook {
    /// Notes that packets stopped running in the kernel, or do so again.
    fn note_failure(&mut self, switch: &Switch) {
        if switch.kernel_failure() == self.failure.as_ref() {
            return;
        }
        self.failure = switch.kernel_failure().cloned();
        match &self.failure {
            Some(error) => {
                (self.on_note)(&format!(
                    "no packets run in the kernel any more, the switch processes them all: {error}"
                ));
            }
            None => (self.on_note)("packets run in the kernel again"),
        }
    }
}

impl Hook<Switch> for KernelHook {
    fn poll(&mut self, context: &mut HookContext<'_, Switch>) {
        if context.now.since_ns(self.checked) >= CHECK_NS && Arc::ptr_eq(&self.program, context.switch.program()) {
            self.checked = context.now;
            for HookPort { at, port, attachment } in &self.ports {
                context.switch.set_kernel_device(*port, device_state(*at, attachment));
            }
            if let Some(losses) = &self.losses {
                losses.count(context.switch);
            }
        }
        // What other hooks and the worker changed: ports that were lost, for example.
        context.switch.publish();
        self.note_failure(context.switch);
    }

    fn next_deadline(&self) -> Option<Time> {
        Some(self.checked.after_ns(CHECK_NS))
    }
}
