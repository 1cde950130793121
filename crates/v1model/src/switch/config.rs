//! Defines the configuration of a switch.

use ir::Program;
use switch::PortId;

use super::layout::LoadError;
use super::tiny::{IntSettings, TinySettings};

/// The port that means "drop" where ports have nine bits, as in the shipped `v1model.p4`.
pub const DROP_PORT: u32 = 511;

/// Maximum number of a port that packets can leave through where ports have nine bits.
pub const MAX_PORT: u16 = (DROP_PORT - 1) as u16;

/// Maximum number of a port of any switch. A program may declare ports of more than nine bits in its own `v1model.p4`.
pub const WIDEST_PORT: u16 = u16::MAX - 1;

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
    /// Bits per second that leave by a port, for the ports that have such a limit. It can be changed later.
    pub bandwidths: Vec<(PortId, u64)>,
    /// Seed of the program's random numbers.
    pub seed: u64,
    /// Frames shorter than this many bytes are dropped.
    pub min_frame: usize,
    /// Frames longer than this many bytes are dropped.
    pub max_frame: usize,
    /// Maximum number of times that one packet, including its ancestors, may be resubmitted, recirculated or cloned.
    pub max_passes: u16,
    /// Maximum number of ingress and egress passes that one received frame may cause before its last copy has left or
    /// waits. The default suffices for a packet that loops 38 times and makes a copy for every port each time.
    pub max_work: u32,
    /// Maximum number of notifications that wait for the control plane. Further ones are lost.
    pub max_notifications: usize,
    /// The executor of the program.
    pub executor: Executor,
    /// The settings of tiny packet programs, if they are executed. It can be changed later.
    pub tiny_programs: Option<TinySettings>,
    /// The settings of a node of an INT domain, if the switch is one. It can be changed later.
    pub int: Option<IntSettings>,
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
            bandwidths: Vec::new(),
            seed: 0,
            min_frame: 1,
            max_frame: 10_240,
            max_passes: 255,
            max_work: 40 * 512,
            max_notifications: 65_536,
            executor: Executor::default(),
            tiny_programs: None,
            int: None,
        }
    }
}

/// Returns the port that means "drop" in a program whose ports have `width` bits: all ones.
pub(crate) fn drop_port_of(width: u32) -> u32 {
    u32::MAX >> (32 - width.clamp(1, 32))
}

/// Returns the port that means "drop" in a program.
pub fn drop_port(program: &Program) -> u32 {
    drop_port_of(program.slot_named("standard_metadata.egress_spec").map_or(9, |slot| program.slots[slot].width))
}

/// Returns the largest port number in a program, which is less than the port that means "drop".
pub fn max_port(program: &Program) -> u16 {
    u16::try_from(drop_port(program) - 1).unwrap_or(u16::MAX).min(WIDEST_PORT)
}

impl Config {
    /// Checks that a program can name the ports, and the CPU port if it is not the default one. A program whose ports
    /// are narrower than the default CPU port cannot reach the control plane.
    ///
    /// # Errors
    /// [`LoadError::PortWidth`] with the first port that it cannot name.
    pub fn check_ports(&self, program: &Program) -> Result<(), LoadError> {
        let max = max_port(program);
        let chosen = self.cpu_port.iter().filter(|port| port.0 != CPU_PORT);
        match self.ports.iter().chain(chosen).find(|port| port.0 > max.into()) {
            Some(port) => Err(LoadError::PortWidth { port: port.0, max }),
            None => Ok(()),
        }
    }

    /// Returns a configuration with the ports `0..count`.
    pub fn with_ports(count: u32) -> Self {
        Config { ports: (0..count).map(PortId).collect(), ..Config::default() }
    }
}
