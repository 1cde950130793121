//! Plans which ports of a live lab run the programs of their switches in the kernel.
//!
//! Only the lab's process can delay, lose and count the frames of a shaped link, pass on the messages of stores, ask
//! memory servers, execute tiny packet programs and add INT metadata. Ports and switches that need this are ordinary.

use std::collections::BTreeMap;

use diagnostics::Span;
use lab::{IntRole, KernelUse, Link, Node, Shape, TinyAccess, Topology};
use lab_live::kernel_part::{KernelNotes, KernelPart, KernelPlan, KernelPort};
use v1model::Switch;
use v1model_runtime::LiveSwitch;
use v1model_runtime::kernel::{LiveProgram, attach_live};

use super::network::Network;
use super::wanted::Live;
use crate::kernel;

/// The plans of all switches, and the reasons why not all their ports are kernel ports.
#[derive(Debug, Default)]
pub struct KernelPlans {
    switches: Vec<KernelPlan>,
    /// The mistakes of a lab that requires kernel ports where there can be none: a place, a message, and a remedy.
    pub mistakes: Vec<(Span, String, &'static str)>,
    /// Notes about ordinary ports, one sentence each.
    pub notes: Vec<String>,
}

/// Switches without kernel ports, by the reason.
type SwitchesByReason<'t> = BTreeMap<String, Vec<&'t str>>;

/// The change that makes a link one that the kernel can carry.
const UNSHAPED: &str = "write rate = \"unlimited\" and delay = \"0us\"";

impl KernelPlans {
    /// Plans a live lab. `has_remote_tables` says which switches have tables in the memory of servers.
    pub fn new(topology: &Topology, live: Live<'_>, has_remote_tables: impl Fn(usize) -> bool) -> KernelPlans {
        let mut plans = KernelPlans::default();
        let mut without = SwitchesByReason::new();
        for (at, switch) in topology.switches.iter().enumerate() {
            let mode = live.kernel.unwrap_or(switch.kernel);
            let is_required = mode == KernelUse::Require;
            let mut plan = KernelPlan { ports: Vec::new(), is_required };
            match switch_obstacle(topology, live, has_remote_tables(at)) {
                _ if mode == KernelUse::Off => {}
                Some(reason) if is_required => {
                    let message = format!("`{}` requires the kernel: {reason}", switch.name);
                    plans.mistakes.push((switch.span, message, "write kernel = \"auto\" or \"off\""));
                }
                Some(reason) => without.entry(reason.to_owned()).or_default().push(&switch.name),
                None => plan.ports = plans.ports(topology, at, is_required, &mut without),
            }
            plans.switches.push(plan);
        }
        plans.notes.extend(without.into_iter().map(|(reason, names)| {
            let has = if names.len() == 1 { "has" } else { "have" };
            format!("{} {has} no kernel ports: {reason}", names.join(", "))
        }));
        plans
    }

    /// Returns the plan of a switch.
    pub fn of(&self, switch: usize) -> KernelPlan {
        self.switches.get(switch).cloned().unwrap_or_default()
    }

    /// Whether a switch is to have kernel ports.
    pub fn has_any(&self) -> bool {
        self.switches.iter().any(|plan| !plan.ports.is_empty())
    }

    /// Returns the ports of a switch whose links the kernel can carry, and notes the others.
    fn ports<'t>(
        &mut self,
        topology: &'t Topology,
        at: usize,
        is_required: bool,
        without: &mut SwitchesByReason<'t>,
    ) -> Vec<u32> {
        const REMEDY: &str = "write rate = \"unlimited\" and delay = \"0us\", or kernel = \"auto\"";
        let name = topology.switches[at].name.as_str();
        let (mut ports, mut shaped) = (Vec::new(), BTreeMap::<String, Vec<u32>>::new());
        for (port, link) in links_of(topology, at) {
            match shaped_by(&link.shape) {
                None => ports.push(port),
                Some(shape) if is_required => {
                    let message = format!("port {port} of `{name}` requires the kernel, which cannot apply {shape}");
                    self.mistakes.push((link.span, message, REMEDY));
                }
                Some(shape) => shaped.entry(shape).or_default().push(port),
            }
        }
        for (shape, ordinary) in shaped {
            if ports.is_empty() {
                let reason = format!("the kernel cannot apply {shape}; {UNSHAPED} for their links");
                without.entry(reason).or_default().push(name);
                continue;
            }
            let (ports, are) = (numbers(&ordinary), if ordinary.len() == 1 { "is ordinary" } else { "are ordinary" });
            self.notes.push(format!("{name}: {ports} {are}, since the kernel cannot apply {shape}; {UNSHAPED}"));
        }
        ports
    }
}

/// Returns the ports of a switch with their links, in ascending order.
fn links_of(topology: &Topology, at: usize) -> BTreeMap<u32, &Link> {
    let ends = topology.links.iter().flat_map(|link| link.ends.map(|end| (end, link)));
    ends.filter(|(end, _)| end.node == Node::Switch(at)).map(|(end, link)| (end.port, link)).collect()
}

impl Network {
    /// Runs the program of a live switch in the kernel.
    pub fn attach_kernel(
        &self,
        at: usize,
        switch: &mut LiveSwitch<Switch>,
        ports: Vec<KernelPort>,
        notes: &KernelNotes,
    ) -> Result<Box<dyn KernelPart<LiveSwitch<Switch>>>, String> {
        let is_served = self.endpoints[at].is_some();
        let program = LiveProgram {
            is_placeholder: is_served && self.pipeline(at).is_none(),
            restrict_loader: is_served.then(kernel::loader_restriction),
            is_required: self.kernel.of(at).is_required,
        };
        attach_live(switch, ports, program, notes)
    }
}

/// Returns the reason why no packet of a switch can be processed in the kernel.
fn switch_obstacle(topology: &Topology, live: Live<'_>, has_remote_tables: bool) -> Option<&'static str> {
    let obstacles = [
        (live.interpret, "--interpret asks for the interpreter"),
        (topology.tpp != TinyAccess::Off, "`tpp` executes tiny packet programs, which only the switch can do"),
        (topology.int != IntRole::Off, "`int` adds metadata to packets, which only the switch can do"),
        (!topology.stores().is_empty(), "the switches of a lab with stores pass on their messages"),
        (has_remote_tables, "its tables lie on memory servers, which only the switch can query"),
    ];
    obstacles.into_iter().find(|(applies, _)| *applies).map(|(_, reason)| reason)
}

/// Returns what the lab's process does to the frames of a link, and the kernel cannot: `a rate of 1Gbps and a delay of
/// 10us`.
fn shaped_by(shape: &Shape) -> Option<String> {
    let chances = [
        (shape.loss, "loss"),
        (shape.corruption, "corruption"),
        (shape.duplication, "duplication"),
        (shape.reordering, "reordering"),
    ];
    let mut parts: Vec<String> = shape.rate.iter().map(|rate| format!("a rate of {rate}")).collect();
    if shape.delay.as_ns() > 0 {
        let default = if shape.delay == Shape::default().delay { " (the default)" } else { "" };
        parts.push(format!("a delay of {}{default}", shape.delay));
    }
    parts.extend(chances.iter().filter(|(chance, _)| *chance > 0.0).map(|(_, what)| (*what).to_owned()));
    let last = parts.pop()?;
    Some(if parts.is_empty() { last } else { format!("{} and {last}", parts.join(", ")) })
}

/// Formats port numbers: `port 1`, or `ports 1, 2`.
pub fn numbers(ports: &[u32]) -> String {
    let list: Vec<String> = ports.iter().map(u32::to_string).collect();
    format!("{} {}", if list.len() == 1 { "port" } else { "ports" }, list.join(", "))
}
