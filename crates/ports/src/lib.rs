//! Implements ports: the drivers through which frames enter and leave a switch.
//!
//! A [`Port`] receives whole Ethernet frames, exactly as they would look on a cable, and sends such frames. Each port
//! has a driver: a kernel interface ([`AfPacketPort`], or the faster [`XdpPort`]), a TAP device ([`TapPort`]) or
//! capture files ([`PcapPort`]). [`PortSpec`] parses the command line's `1=eth1` and opens the driver.
//!
//! The promise *as on a cable* is what takes work. The kernel passes unfinished frames around and relies on a network
//! card to finish them: partial checksums, TCP segments of 64 KiB, VLAN tags beside the frame instead of in it. Drivers
//! finish them before anything else sees them (see [`wire::offload`]), so a program that forwards between two local
//! stacks carries their TCP as well as a real cable would.
//!
//! [`namespace`] sets up networks of network namespaces and veth pairs without root and without the `ip` tool; the demo
//! and the live tests run in them.
//!
//! One loop drives many ports:
//!
//! ```text
//! loop { for port { port.receive(&mut batch, 64) }; if nothing came { wait(&fds, timeout) }
//!        step the switch; for each frame out { port.send(frame) }; for port { port.flush() } }
//! ```
//!
//! Ports never block, start no threads and print nothing. They know nothing of P4 or of the switch. This crate is one
//! of three with `unsafe` (`jit`, `ports`, `tables`); here it covers system calls and rings shared with the kernel.

#![deny(unsafe_op_in_unsafe_fn)]

mod af_packet;
mod bpf;
mod btf;
mod error;
mod frame;
mod huge;
mod interface;
mod interposed;
mod kernel_program;
mod links;
pub mod load;
pub mod namespace;
mod pcap;
mod port;
mod recorded;
mod redirect_losses;
mod shaping;
mod socket;
mod spec;
mod tap;
mod wait;
mod xdp;
mod xdp_features;

pub use af_packet::AfPacketPort;
pub use bpf::{is_program_loaded, possible_cpus};
pub use error::PortError;
pub use frame::{Frame, Memory};
pub use huge::HugeBytes;
pub use interface::interface_index;
pub use interposed::{HiddenFrames, InterposedFrames, InterposedPorts, RouteCounts, RouteFollower};
pub use kernel_program::{KernelProgram, KernelRegion, ProgramRejected, RedirectMap, kernel_time_ns};
pub use links::{ChangedLinks, Link, LinkWatcher};
pub use pcap::PcapPort;
pub use port::{DropReason, Port, PortStats, Received, Sent};
pub use recorded::RecordedPort;
pub use redirect_losses::RedirectLosses;
pub use shaping::shaped_rate_bps;
pub use spec::{PortKind, PortSpec, SpecError};
pub use tap::TapPort;
pub use wait::wait;
pub use xdp::{HandOverOrder, NoXdp, XdpAttachment, XdpPort, XdpSettings};
pub use xdp_features::accepts_redirects;
