//! What a switch is told when it is made.

use switch::PortId;

/// The port that means "drop" where `egress_spec` has nine bits.
pub const DROP_PORT: u32 = 511;

/// Maximum number of a port that packets can leave through.
pub const MAX_PORT: u16 = (DROP_PORT - 1) as u16;

/// The port to the control plane, unless another is chosen.
pub const CPU_PORT: u32 = 510;

/// What a [`crate::Switch`] is told when it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The ports it has. The CPU port need not be among them.
    pub ports: Vec<PortId>,
    /// The port whose packets become [`switch::Notification::PacketIn`], and on which packets from the control plane
    /// come in; `None` for none.
    pub cpu_port: Option<PortId>,
    /// The `egress_spec` that drops.
    pub drop_port: u32,
    /// Where the program's random numbers begin.
    pub seed: u64,
    /// Frames shorter than this many bytes are dropped.
    pub min_frame: usize,
    /// Frames longer than this many bytes are dropped.
    pub max_frame: usize,
    /// How often one packet, with everything it was before, may be resubmitted, recirculated or cloned.
    pub max_passes: u16,
    /// How many ingress and egress passes one received frame may cause before its last copy has left or waits. By default, enough
    /// for a packet that goes round 32 times and makes a copy for every port each time.
    pub max_work: u32,
    /// How many notifications wait for the control plane before further ones are lost.
    pub max_notifications: usize,
    /// What runs the program.
    pub executor: Executor,
}

/// What runs a program. Traces are interpreted in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Executor {
    /// The interpreter.
    Interpreter,
    /// Machine code; programs that cannot be compiled are refused.
    Jit,
    /// Machine code if it can be made, else the interpreter.
    #[default]
    Auto,
}

impl Default for Config {
    /// No ports but the CPU port.
    fn default() -> Self {
        Config {
            ports: Vec::new(),
            cpu_port: Some(PortId(CPU_PORT)),
            drop_port: DROP_PORT,
            seed: 0,
            min_frame: 1,
            max_frame: 10_240,
            max_passes: 64,
            max_work: 34 * 512,
            max_notifications: 65_536,
            executor: Executor::default(),
        }
    }
}

impl Config {
    /// A switch with the ports `0..count`.
    pub fn with_ports(count: u32) -> Self {
        Config { ports: (0..count).map(PortId).collect(), ..Config::default() }
    }
}
