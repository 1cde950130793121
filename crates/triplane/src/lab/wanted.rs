//! Defines the purposes for which a network is loaded.

use std::net::SocketAddr;

use lab::KernelUse;
use v1model::Executor;

/// The purpose for which a network is loaded.
pub struct Wanted<'a> {
    /// The executor of the programs.
    pub executor: Executor,
    /// Options of a live network; `None` in virtual time, which has no controllers.
    pub live: Option<Live<'a>>,
}

/// Options of a live network.
#[derive(Clone, Copy, Default)]
pub struct Live<'a> {
    /// Makes every switch serve P4Runtime, the first one at this address. Without it, the topology selects the switches
    /// that serve P4Runtime.
    pub p4runtime: Option<SocketAddr>,
    /// Replaces `kernel` of all switches.
    pub kernel: Option<KernelUse>,
    /// Whether the user asks for the interpreter.
    pub interpret: bool,
    /// Prepares only this switch, in a network without stores.
    pub only: Option<&'a str>,
}
