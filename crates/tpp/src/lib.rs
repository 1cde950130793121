//! Tiny packet programs (Jeyakumar et al., *Millions of Little Minions*, SIGCOMM 2014): up to five instructions in a
//! packet, which each switch on its path executes.
//!
//! | module or type | contents |
//! |---|---|
//! | [`map`] | [`MemoryMap`]: names and addresses of switch memory, generated from one table |
//! | [`int`] | [`IntNode`](int::IntNode): INT-MD in packets, filled from the same map |
//! | [`tcpu`] | [`Tcpu`], the processor of a switch, over [`SwitchMemory`]; and a simple reference |
//! | [`assemble`], [`disassemble`] | text to a [`TinyProgram`] and back |
//! | [`rcp`] | [`RcpController`](rcp::RcpController): fair rates of links, computed by senders |
//! | [`conga`] | [`CongaBalancer`](conga::CongaBalancer): load balancing over paths that senders choose |
//! | [`hpcc`] | [`HpccController`](hpcc::HpccController): windows that keep queues empty, from what links report |
//! | [`sketch`] | [`BitmapSketch`](sketch::BitmapSketch): different elements that links carried, counted by hosts |
//! | [`shim`] | [`Shim`](shim::Shim): programs in the packets that a host sends and receives |
//! | [`executor`] | [`ProgramExecutor`](executor::ProgramExecutor): programs as datagrams with retries, for one switch or many, of any size |
//! | [`probe`] | [`Prober`](probe::Prober): programs as datagrams, and their echoes |
//! | [`check()`] | read and write sets, worst case, what an [`AccessPolicy`] forbids |
//!
//! ```
//! use diagnostics::{Diagnostics, SourceMap};
//! use tpp::{AccessRights, MemoryMap, SparseMemory, Tcpu, TinyProgram};
//!
//! let (map, mut sources, mut diagnostics) = (MemoryMap::new(), SourceMap::new(), Diagnostics::new());
//! let text = "PUSH [Switch:ID]\nPUSH [Queue:QueueOccupancy]";
//! let program = tpp::assemble(&mut sources, "depth.tpp", text, &map, &mut diagnostics).expect("no mistakes");
//! let mut packet = program.packet(b"payload");
//! // A switch executes it.
//! let mut memory = SparseMemory::new();
//! memory.fixed(map.find("Switch:ID").unwrap().address, 3);
//! memory.fixed(map.find("Queue:QueueOccupancy").unwrap().address, 17);
//! Tcpu::execute(&mut packet, &mut memory, &AccessRights::all());
//! let packet = wire::tpp::Packet::new_checked(&packet).unwrap();
//! let words = TinyProgram::decode(&packet).words_by_hop(&map);
//! assert_eq!(words[0], [("Switch:ID".to_owned(), 3), ("Queue:QueueOccupancy".to_owned(), 17)]);
//! ```
//!
//! The crate is pure: no clock, no socket, no thread. It knows neither P4 nor a switch: [`SwitchMemory`] is its only
//! view of one. No packet makes it panic, and an execution never changes the length of a packet. The format itself is
//! in [`wire::tpp`].

#![forbid(unsafe_code)]

mod asm;
mod check;
pub mod conga;
pub mod executor;
#[cfg(feature = "testing")]
pub mod generate;
mod hop_words;
pub mod hpcc;
pub mod int;
pub mod map;
mod mutant;
mod policy;
pub mod probe;
pub mod rcp;
pub mod shim;
pub mod sketch;
mod strip;
pub mod tcpu;

pub use asm::{MAX_LARGE_INSTRUCTIONS, TinyProgram, assemble, assemble_large, disassemble};
pub use check::{AccessRecord, CheckFinding, CheckReport, IndirectSet, WorstCase, check, hop_guards};
pub use map::MemoryMap;
pub use mutant::Mutant;
pub use policy::{AccessOperation, AccessPolicy, PolicyRule};
pub use strip::{StripError, strip};
pub use tcpu::{AccessRights, AddressSet, Execution, ProgramVerdict, SparseMemory, SwitchMemory, Tcpu};
