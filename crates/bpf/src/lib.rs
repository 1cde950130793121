//! Compiles the pipeline IR to programs of the kernel's virtual machine (eBPF), to run at XDP.
//!
//! [`compile`] turns a [`KernelPipeline`], the steps of a packet through a whole architecture, into [`KernelCode`]. The
//! code works on a *region*: words of memory that the kernel and the switch both map. [`RegionLayout`] says where
//! tables, counts and scratch memory are in it, and a [`RegionWriter`] keeps its tables equal to those of
//! [`engine::Objects`].
//!
//! A packet is processed in two phases. The first parses, looks up and runs actions on scratch memory. The second, the
//! *commit*, counts, changes the packet and sends or drops it. Everything that the code cannot do ends the first phase
//! with a *hand-over*: the packet goes to the switch as it was received, and nothing in the region but the scratch
//! memory has changed. So the meaning of a program stays that of [`engine::Interpreter`].
//!
//! [`machine::run`] interprets the encoded program with checked memory. It needs no privileges, and tests compare it
//! with the interpreter of the IR.
//!
//! The crate is pure: it opens no file and makes no system call. It knows no architecture.

#![forbid(unsafe_code)]

pub mod asm;
mod disassemble;
mod emit;
mod header_order;
mod layout;
pub mod machine;
mod region;
mod split;
mod stacks;
pub mod uapi;
mod usage;
mod writer;

pub use disassemble::disassemble;
pub use emit::{HAND_OVER_MARK, MAX_FOLLOWED, MAX_WAITING};
pub use emit::{HandOver, HandOverReason, KernelCode, compile};
pub use layout::{ORDERED_QUEUES, PAGE_BYTES, RegionLayout, Unsupported};
pub use region::{CountSink, EntryHits, PortState, RegionCounts, finish_hand_overs, set_clock_origin, set_port};
pub use writer::{RegionError, RegionWriter, WaitForPacket};

use engine::Step;
use ir::SlotId;

/// The steps of a packet through the whole pipeline of an architecture.
#[derive(Clone, Debug)]
pub struct KernelPipeline {
    /// The steps in execution order.
    pub steps: Vec<Step>,
    /// The step at which egress begins. Packets that are dropped before it are dropped by ingress.
    pub egress_begins: usize,
    /// The slot with the number of the port by which the packet came.
    pub ingress_port: SlotId,
    /// Index of the kept result with the number of the port by which the packet leaves.
    pub egress_port: usize,
    /// The slot with the place of the drop, if the program has it.
    pub drop_site: Option<SlotId>,
    /// The slot with the time of arrival in microseconds, if the program has it.
    pub arrival_time: Option<SlotId>,
}

/// Choices of a compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelOptions {
    /// Number of processors with scratch memory, a power of two. Packets on others are handed over.
    pub cpus: u32,
    /// Number of ports, numbered from 0. Packets to others are handed over.
    pub ports: u32,
}

impl Default for KernelOptions {
    fn default() -> KernelOptions {
        KernelOptions { cpus: 64, ports: 512 }
    }
}
