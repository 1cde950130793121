//! Provides the common parts of switches of all architectures: frames and ports, time, queues, multicast groups, mirror
//! sessions, drop reasons, notifications to the control plane, and the [`Registry`] of counters.
//!
//! A switch has two traits, [`SwitchControl`] for the control plane and [`PacketSwitch`] for drivers. Both build on
//! [`Device`]: frames in, frames out, time as an argument. A device reads no clock, opens no socket, spawns no thread
//! and has no randomness except from a seed. Live ports and a simulated network therefore drive the same code, and
//! the same input gives the same output to the bit.
//!
//! ```text
//!               frames        ┌──────────────────────────────┐        frames
//!   driver ── step(now, ..) ─>│ architecture's pipeline      │─> output, next_event()
//!                             │ groups · mirrors · queues    │
//!   control ── tables, .. ───>│ registry · drops             │─> notifications
//!                             └──────────────────────────────┘
//! ```
//!
//! Invariants: a frame that enters leaves, waits in a queue, or is counted under a [`DropReason`]; a name in the
//! registry is never reused for something else. This crate knows neither P4 nor the architectures on top of it.

mod drops;
mod either;
mod forward;
mod frame;
mod frame_mut;
mod mirror;
mod multicast;
mod notification;
mod packet_switch;
mod ports;
mod queue;
mod registry;
mod row_switch;
mod takeover;
mod time;
pub mod trace;
mod utilization;

pub use drops::{DropReason, DropSite, Drops};
pub use either::EitherSwitch;
pub use frame::{Device, Frame, PortId};
pub use frame_mut::{Egress, FrameMut, HeadroomBuf};
pub use mirror::{MirrorSession, MirrorSessions};
pub use multicast::{Backup, MAX_REPLICAS, MulticastGroup, MulticastGroups, Replica};
pub use notification::Notification;
pub use packet_switch::{BuildError, PacketSwitch, SwitchControl};
pub use ports::Ports;
pub use queue::{Departure, EgressQueues, PRIORITIES, QueueFull, QueueSettings};
pub use registry::{Registry, Stat};
pub use row_switch::{AwaitedRow, HeldOutput, Output, RowSwitch};
pub use takeover::{CompileJob, CompiledCode, Takeover};
pub use time::Time;
