//! Drives a switch in real time between its ports, or from capture to capture in the captures' time.
//!
//! ```text
//!   RunConfig ── run_live ──> one worker:      loop { hooks, Worker::poll, sleep }
//!      │                      several workers: WorkerPool, and the hooks beside it
//!      └──────── run_offline ─> frames by the times of their captures
//!                                  └──> RunReport: the switch, ports, failures
//! ```
//!
//! The central type is [`Worker`]: a switch and its ports in one thread. [`WorkerPool`] runs several; they share ports
//! whose driver only one of them has. A [`Hook`] is polled between two batches and has the switch to itself during its
//! turn: P4Runtime, metrics and the compilation of a program that runs already ([`CompileHook`]) are hooks. A loop of
//! another crate, such as that of a lab's switch between its shaped links, uses [`PortSet`] and [`HookList`] too.
//!
//! **Invariants.** Packets and hooks never run at the same time on the same switch. With several workers, none runs
//! packets while a hook replaces the program. The loop does not sleep while a hook is due, nor past a hook's deadline.
//!
//! Everything is generic over [`PacketSwitch`](switch::PacketSwitch), so the packet loop of each architecture is
//! compiled without virtual calls, and a wrapper around a switch runs like any switch. The crate knows no architecture,
//! prints nothing and opens no device. `docs/design/runtime.md` has the reasons.

mod clock;
mod compile;
mod config;
mod flow;
mod gate;
mod handle;
mod hook;
mod limit;
mod links;
mod live;
mod offline;
mod pool;
mod port_set;
mod shared_port;
mod sink;
mod ticks;
mod waker;
mod worker;

pub use clock::Clock;
pub use compile::{CompileHook, TakeoverCallback};
pub use config::{PortDrivers, PortReport, RunConfig, RunReport};
pub use flow::flow_hash;
pub use gate::{QuiescenceFlag, QuiescenceGate, RunningGuard};
pub use handle::RunHandle;
pub use hook::{Hook, HookContext, HookList};
pub use links::LinkCallback;
pub use pool::WorkerPool;
pub use port_set::{AttachedPort, PortLossCallback, PortSet};
pub use sink::NotificationSink;
pub use ticks::tick_during;
pub use waker::Waker;
pub use worker::Worker;
