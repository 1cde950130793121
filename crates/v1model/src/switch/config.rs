//! Defines the configuration of a switch.

use switch::PortId;

/// The port that means "drop" where `egress_spec` has nine bits.
pub const DROP_PORT: u32 = 511;

/// Maximum number of a port that packets can leave through.
pub const MAX_PORT: u16 = (DROP_PORT - 1) as u16;

/// The default port to the control plane.
pub const CPU_PORT: u32 = 510;

/// The configuration of a [`crate::Switch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The ports. The CPU port need not be among them.
    pub ports: Vec<PortId>,
    /// The port whose packets become [`switch::Notification::PacketIn`], and on which packets from the control plane
    /// arrive; `None` for none.
    pub cpu_port: Option<PortId>,
    /// The `egress_spec` that drops.
    pub drop_port: u32,
    /// Seed of the program's random numbers.
    pub seed: u64,
    /// Frames shorter than this many bytes are dropped.
    pub min_frame: usize,
    /// Frames longer than this many bytes are dropped.
    pub max_frame: usize,
    /// Maximum number of times that one packet, including its ancestors, may be resubmitted, recirculated or cloned.
    pub max_passes: u16,
    /// Maximum number of ingress and egress passes that one received frame may cause before its last copy has left or
    /// waits. The default suffices for a packet that loops 32 times and makes a copy for every port each time.
    pub max_work: u32,
    /// Maximum number of notifications that wait for the control plane. Further ones are lost.
    pub max_notifications: usize,
    /// The executor of the program.
    pub executor: Executor,
}

/// The executor of a program. Traces are always interpreted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Executor {
    /// The interpreter.
    Interpreter,
    /// Machine code; programs that cannot be compiled are refused.
    Jit,
    /// Machine code if possible, else the interpreter.
    #[default]
    Auto,
}

impl Default for Config {
    /// Returns a configuration without ports except the CPU port.
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
    /// Returns a configuration with the ports `0..count`.
    pub fn with_ports(count: u32) -> Self {
        Config { ports: (0..count).map(PortId).collect(), ..Config::default() }
    }
}
