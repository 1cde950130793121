//! Chooses how a program delivers to several ports: by bitmaps of ports, or by multicast groups.

use subscribe::{Rule, RuleAction};
use subscribe_p4::ProgramOptions;

use super::args::ShapeArgs;
use super::load::Loaded;

/// Number of ports of a program that is generated without rules: those of a bitmap of 64 bits, whose highest bit is for
/// the controller.
const PORTS_WITHOUT_RULES: u32 = 63;

/// The way in which a program delivers to several ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// By bitmaps of this width in bits.
    Bitmaps(u32),
    /// By multicast groups.
    Groups,
}

/// Returns the options of a program that can deliver to these ports and to the controller's, as the user chose.
pub fn options_for(shape: &ShapeArgs, ports: impl Iterator<Item = u32>, cpu_port: u32) -> ProgramOptions {
    let options =
        ProgramOptions { target: shape.target(), messages_per_pass: shape.messages_per_pass, ..Default::default() };
    if shape.groups {
        return options;
    }
    // The controller's usual port has a bit in every bitmap.
    let ports = ports.chain(Some(cpu_port)).filter(|port| *port != v1model::CPU_PORT);
    let needed = ports.max().map_or(0, |port| port.saturating_add(1));
    options.with_bitmaps(needed.max(shape.bitmaps.unwrap_or(PORTS_WITHOUT_RULES)))
}

/// Returns the options of a program that rules may be added to later. It has no more ports than the user, or the
/// program whose field order is used, says.
pub fn options_without_rules(shape: &ShapeArgs, loaded: &Loaded) -> ProgramOptions {
    let options = options_for(shape, std::iter::empty(), v1model::CPU_PORT);
    match loaded.replication.filter(|_| shape.bitmaps.is_none() && !shape.groups) {
        Some(Replication::Bitmaps(width)) => options.with_bitmap_width(Some(width)),
        Some(Replication::Groups) => options.with_bitmap_width(None),
        None => options,
    }
}

/// Returns the options to compile rules without a program: no number of ports or of sets of ports is too large.
pub fn options_without_program() -> ProgramOptions {
    ProgramOptions::default().with_bitmaps(u32::MAX)
}

/// Returns the ports that rules forward to.
pub fn ports(rules: &[Rule]) -> impl Iterator<Item = u32> + '_ {
    let of_action = |action: &RuleAction| match action {
        RuleAction::Forward(ports) => ports.last().copied(),
        _ => None,
    };
    // The ports of an action ascend.
    rules.iter().flat_map(|rule| &rule.actions).filter_map(of_action)
}
