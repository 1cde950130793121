//! Runs the program of a switch in the kernel, on the ports whose drivers permit it.
//!
//! ```text
//! interface ─> code of the program at XDP ─┬─> device of another port
//!                                          ├─> drop
//!                                          └─> AF_XDP socket ─> switch, which runs the frame from the start
//! ```
//!
//! [`KernelPorts::attach`] needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON. The hook that it returns needs none. It keeps
//! the code attached, and reports to the switch when a device can no longer be sent to. When a controller sets another
//! pipeline, the hook has it compiled in a thread of its own, and a *loader*, a thread that keeps the privileges and
//! does nothing else, loads and attaches the code. Until then, the gate of the old code is closed, and the switch
//! processes all packets.

mod hook;
mod live;
mod load;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bpf::PortState;
use ports::{RedirectLosses, XdpAttachment};
use switch::PortId;
use v1model::Switch;

pub use hook::KernelHook;
pub use live::{LiveProgram, attach_live};
use load::{KernelLoader, LoadedCode};

/// Size of an Ethernet header in bytes.
const ETHERNET_BYTES: usize = 14;

/// The reason why no packet of a program is processed in the kernel.
#[derive(Debug, thiserror::Error)]
pub enum NotInKernel {
    /// The program does not permit it.
    #[error("{0}")]
    Program(String),
    /// There is no program yet.
    #[error("a controller has not set a pipeline yet")]
    NoProgram,
    /// No packet of the program can be forwarded or dropped there.
    #[error("every packet needs the switch (`triplane check --kernel` lists the places)")]
    NoPacket,
    /// No port has a driver that permits it.
    #[error("no `kernel:` port runs XDP in the driver (native mode)")]
    NoPort,
    /// A port cannot.
    #[error("port {port}: {reason}")]
    Port {
        /// The port.
        port: PortId,
        /// The reason.
        reason: String,
    },
    /// The thread that loads later programs cannot give up its other privileges.
    #[error("the loader cannot give up privileges: {0}")]
    Loader(String),
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
    #[error("the BPF verifier rejects the program{}: {reason}", at(place.as_deref()))]
    Rejected {
        /// The place in the program of the instruction that the verifier looked at last.
        place: Option<String>,
        /// The last line of the verifier's log, without its statistics.
        reason: String,
    },
    /// The entries do not fit.
    #[error("{0}")]
    Entries(#[from] bpf::RegionError),
}

/// Returns the note that the program does not run in the kernel for this reason.
pub fn not_in_kernel(reason: &dyn fmt::Display) -> String {
    format!("the program does not run in the kernel, so the switch processes all packets: {reason}")
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

/// Returns the end of a clause about something at a place.
fn at(place: Option<&str>) -> String {
    place.map_or_else(String::new, |place| format!(" at {place}"))
}

fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> NotInKernel {
    move |source| NotInKernel::System { what, source }
}

/// The ports on which a program is to run in the kernel.
#[derive(Clone, Default)]
pub struct KernelPorts {
    ports: Vec<(PortId, XdpAttachment)>,
    /// Ports that can run no program in the kernel, with the reasons.
    beyond: Vec<(PortId, String)>,
    is_gpl: bool,
    /// Number of processors that get scratch memory. It is read at the start, as files may be restricted later.
    cpus: u32,
    /// Whether the kernel says which devices accept redirected frames.
    says_redirects: bool,
    /// The ports that ran the program when it was attached last; `None` while none is attached. Clones share it.
    running: Arc<Mutex<Option<Vec<PortId>>>>,
    /// Whether the devices are to be checked at once. Clones share it.
    check: Arc<AtomicBool>,
}

/// Called with a note for the user, one sentence, and whether packets run in the kernel.
pub type KernelNoteCallback = Box<dyn Fn(&str, bool) + Send>;

/// Called at the start of the loader's thread, to give up the privileges that loading does not need. The thread ends if
/// it fails.
pub type RestrictLoader = Box<dyn FnOnce() -> Result<(), String> + Send>;

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

/// A run whose program is, or will be, in the kernel.
pub struct KernelRun {
    /// What runs there; the reason why the present program does not.
    pub summary: Result<KernelSummary, NotInKernel>,
    /// The reason why frames that devices lose after a redirect are not counted, if they are not.
    pub losses_error: Option<String>,
    /// Ports that can run no program in the kernel, with the reasons. The switch processes their frames.
    pub beyond: Vec<(PortId, String)>,
    /// Ports on which VLAN tags may be stripped from frames, which the program does not see.
    pub without_tags: Vec<PortId>,
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
    /// Ports whose interfaces refuse the code, with the reasons. The switch processes their frames.
    pub refused: Vec<(PortId, String)>,
    /// Ports to which packets are handed over, as their device accepts no redirected frames.
    pub not_sent_to: Vec<(PortId, String)>,
    /// Number of instructions of the code.
    pub instructions: usize,
}

impl fmt::Display for KernelSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.ports.iter().map(|(id, name)| format!("{id}={name}")).collect();
        write!(f, "the program runs in the kernel on {} ({} instructions)", names.join(", "), self.instructions)
    }
}

impl KernelPorts {
    /// Says whether the program has a GPL-compatible licence. Then it sees VLAN tags that were stripped from frames.
    pub fn set_gpl(&mut self, is_gpl: bool) {
        self.is_gpl = is_gpl;
    }

    /// Adds a port, if its program runs in the interface's driver.
    pub fn add(&mut self, port: PortId, attachment: XdpAttachment) {
        if let Some(reason) = load::beyond(port) {
            self.beyond.push((port, reason));
        } else if attachment.is_native() {
            self.says_redirects |= ports::accepts_redirects(attachment.interface()).is_some();
            self.ports.push((port, attachment));
        }
    }

    /// Compiles the program of a switch and runs it on the ports, unless it is a placeholder until a controller sets a
    /// pipeline. Returns the hook of the run, which is polled before all others. With `restrict_loader`, it does the
    /// same with the pipelines that controllers set. `on_note` is called when packets begin or stop to run in the
    /// kernel.
    ///
    /// # Errors
    /// [`NotInKernel`], if no program can run in the kernel. Nothing has changed then: all frames go to the switch.
    pub fn attach(
        mut self,
        switch: &mut Switch,
        is_placeholder: bool,
        restrict_loader: Option<RestrictLoader>,
        on_note: KernelNoteCallback,
    ) -> Result<(KernelHook, KernelRun), NotInKernel> {
        if self.ports.is_empty() {
            let beyond = self.beyond.into_iter().next();
            return Err(beyond.map_or(NotInKernel::NoPort, |(port, reason)| NotInKernel::Port { port, reason }));
        }
        self.cpus = load::cpus(ports::possible_cpus());
        let loader = restrict_loader.map(|restrict| KernelLoader::start(self.clone(), restrict)).transpose()?;
        let summary = match is_placeholder {
            true => Err(NotInKernel::NoProgram),
            false => load::compile(switch.program(), switch.config(), self.cpus)
                .and_then(|code| self.load(code))
                .and_then(|loaded| self.install(switch, loaded))
                .inspect_err(|error| self.restore_after(error)),
        };
        // A run without these counts is still correct: kernels without BTF lose the same frames uncounted.
        let interfaces: Vec<u32> = self.ports.iter().map(|(_, attachment)| attachment.index()).collect();
        let losses = RedirectLosses::open(&interfaces);
        let losses_error = losses.as_ref().err().map(ToString::to_string);
        let losses = losses.ok().map(|counters| {
            let ports = self.ports.iter().map(|(port, _)| (*port, [0; 2])).collect();
            Arc::new(Losses { counters, ports: Mutex::new(ports) })
        });
        let without = self.ports.iter().filter(|(_, attachment)| !self.is_gpl && attachment.restores_tags());
        let without_tags = without.map(|(port, _)| *port).collect();
        let beyond = self.beyond.clone();
        let hook = KernelHook::new(self, loader, switch, losses.clone(), on_note);
        Ok((hook, KernelRun { summary, losses_error, beyond, without_tags, losses }))
    }

    /// Runs the ports' own programs again, unless the code waits for entries to fit.
    fn restore_after(&self, error: &NotInKernel) {
        if !matches!(error, NotInKernel::Entries(_)) {
            self.restore();
        }
    }

    /// Returns the ports that run the program, or that will run the next one if there is none.
    fn running(&self) -> Vec<PortId> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.clone().unwrap_or_else(|| self.ports.iter().map(|(port, _)| *port).collect())
    }

    /// Has the hook check the devices in its next turn.
    fn check_devices(&self) {
        self.check.store(true, Ordering::Relaxed);
    }

    fn set_running(&self, ports: Option<Vec<PortId>>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = ports;
    }

    /// Runs the ports' own programs again.
    fn restore(&self) {
        self.set_running(None);
        for (_, attachment) in &self.ports {
            // A port that has gone needs none.
            let _ = attachment.restore();
        }
    }

    /// Fills the tables of loaded code with the entries of the switch, and opens its gate.
    fn install(&self, switch: &mut Switch, loaded: LoadedCode) -> Result<KernelSummary, NotInKernel> {
        let mut summary = KernelSummary {
            ports: loaded.ports,
            refused: loaded.refused,
            not_sent_to: Vec::new(),
            instructions: loaded.instructions,
        };
        let filled = switch.attach_kernel(&loaded.code, loaded.region, wait_for_packet);
        for (state, (port, attachment)) in self.device_states().zip(&self.ports) {
            if !self.accepts_redirects(attachment) {
                summary.not_sent_to.push((*port, attachment.interface().to_owned()));
            }
            switch.set_kernel_device(*port, state);
        }
        switch.publish();
        filled?;
        Ok(summary)
    }

    /// Returns the states of the ports, whose devices have the indices from 0 on.
    fn device_states(&self) -> impl Iterator<Item = PortState> {
        (0..).zip(&self.ports).map(|(device, (_, attachment))| {
            if !self.accepts_redirects(attachment) || !attachment.has_link() {
                return PortState::Slow;
            }
            PortState::Fast { device, max_frame: (attachment.mtu() + ETHERNET_BYTES) as u32 }
        })
    }

    /// Whether the device of a port accepts redirected frames. A query that fails is one about a device that has gone,
    /// or of a process without descriptors; then it does not.
    fn accepts_redirects(&self, attachment: &XdpAttachment) -> bool {
        ports::accepts_redirects(attachment.interface()).unwrap_or(!self.says_redirects)
    }
}
