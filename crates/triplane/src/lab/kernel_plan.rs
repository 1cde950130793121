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
    pub mistakes: Vec<(Span, String, String)>,
    /// Notes about ordinary ports, one sentence each.
    pub notes: Vec<String>,
}

/// Switches without kernel ports, by the reason.
type SwitchesByReason<'t> = BTreeMap<String, Vec<&'t str>>;

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
                    plans.mistakes.push((switch.span, message, "write kernel = \"auto\" or \"off\"".to_owned()));
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
        let name = topology.switches[at].name.as_str();
        let (mut ports, mut shaped) = (Vec::new(), BTreeMap::<Shaping, Vec<u32>>::new());
        for (port, link) in links_of(topology, at) {
            match shaped_by(&link.shape) {
                None => ports.push(port),
                Some(Shaping { what, remedy }) if is_required => {
                    let message = format!("port {port} of `{name}` requires the kernel, which cannot apply {what}");
                    self.mistakes.push((link.span, message, format!("{remedy}, or kernel = \"auto\"")));
                }
                Some(shape) => shaped.entry(shape).or_default().push(port),
            }
        }
        for (Shaping { what, remedy }, ordinary) in shaped {
            if ports.is_empty() {
                let reason = format!("the kernel cannot apply {what}; {remedy} for their links");
                without.entry(reason).or_default().push(name);
                continue;
            }
            let (ports, are) = (numbers(&ordinary), if ordinary.len() == 1 { "is ordinary" } else { "are ordinary" });
            self.notes.push(format!("{name}: {ports} {are}, since the kernel cannot apply {what}; {remedy}"));
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

/// What the lab's process does to the frames of a link, and the kernel cannot.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Shaping {
    /// For example `a rate of 1Gbps and a delay of 10us`.
    what: String,
    /// The change that makes the link one that the kernel can carry.
    remedy: String,
}

/// Returns the shaping of a link, if there is any.
fn shaped_by(shape: &Shape) -> Option<Shaping> {
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
    // A link without one of them alone is rarely what is meant.
    let timing: &[&str] = if parts.is_empty() { &[] } else { &["rate = \"unlimited\"", "delay = \"0us\""] };
    let mut changes: Vec<String> = timing.iter().map(|change| (*change).to_owned()).collect();
    for (_, name) in chances.iter().filter(|(chance, _)| *chance > 0.0) {
        parts.push((*name).to_owned());
        changes.push(format!("{name} = 0"));
    }
    Some(Shaping { what: listed(parts)?, remedy: format!("write {}", listed(changes)?) })
}

/// Joins the parts of a list: `a, b and c`.
fn listed(mut parts: Vec<String>) -> Option<String> {
    let last = parts.pop()?;
    Some(if parts.is_empty() { last } else { format!("{} and {last}", parts.join(", ")) })
}

/// Formats port numbers: `port 1`, or `ports 1, 2`.
pub fn numbers(ports: &[u32]) -> String {
    let list: Vec<String> = ports.iter().map(u32::to_string).collect();
    format!("{} {}", if list.len() == 1 { "port" } else { "ports" }, list.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_are_those_of_the_shape() {
        let delay = lab::Delay::default();
        let remedy = |shape: Shape| shaped_by(&shape).map(|shaping| shaping.remedy);
        let plain = Shape { rate: None, delay, ..Shape::default() };
        assert_eq!(remedy(plain), None);
        assert_eq!(remedy(Shape { loss: 0.01, ..plain }).as_deref(), Some("write loss = 0"));
        let both = "write rate = \"unlimited\" and delay = \"0us\"";
        assert_eq!(remedy(Shape { rate: None, ..Shape::default() }).as_deref(), Some(both));
        let all = "write rate = \"unlimited\", delay = \"0us\", corruption = 0 and reordering = 0";
        assert_eq!(remedy(Shape { corruption: 0.1, reordering: 0.1, ..Shape::default() }).as_deref(), Some(all));
    }
}
