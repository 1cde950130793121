//! Ports: where frames enter and leave the machine's own world.
//!
//! A [`Port`] yields whole Ethernet frames, exactly as they would look on a cable, and takes such frames to send. What
//! stands behind it is a driver: an interface of the kernel ([`AfPacketPort`], and faster [`XdpPort`]), a device made for the purpose
//! ([`TapPort`]) or capture files ([`PcapPort`]). [`PortSpec`] reads the command line's `1=eth1` and opens the driver.
//!
//! *As on a cable* is the promise that costs the work here. The kernel hands frames around unfinished, in the hope that
//! a network card will finish them: checksums half computed, TCP segments of 64 KiB, VLAN tags beside the frame instead
//! of in it. Drivers finish them before anyone else sees them (see [`wire::offload`]), so a program that forwards
//! between two local stacks carries their TCP as well as a real wire would.
//!
//! [`namespace`] sets up whole networks of network namespaces and veth pairs without root and without the `ip` tool;
//! the demo and the live tests run in them.
//!
//! One loop drives many ports:
//!
//! ```text
//! loop { for port { port.receive(&mut batch, 64) }; if nothing came { wait(&fds, timeout) }
//!        step the switch; for each frame out { port.send(frame) }; for port { port.flush() } }
//! ```
//!
//! Ports block nowhere, spawn no threads and print nothing. They know nothing of P4 or of the switch. This crate and
//! `engine` are the only ones with `unsafe`: system calls and a ring shared with the kernel.

#![deny(unsafe_op_in_unsafe_fn)]

mod af_packet;
mod bpf;
mod btf;
mod error;
mod frame;
mod interface;
pub mod load;
pub mod namespace;
mod pcap;
mod port;
mod socket;
mod spec;
mod tap;
mod wait;
mod xdp;

pub use af_packet::AfPacketPort;
pub use error::PortError;
pub use frame::{Frame, Memory};
pub use pcap::PcapPort;
pub use port::{DropReason, Port, PortStats, Received, Sent};
pub use spec::{MAX_PORT, PortKind, PortSpec, SpecError};
pub use tap::TapPort;
pub use wait::wait;
pub use xdp::{NoXdp, XdpPort, XdpSettings};
