//! Evaluates checked P4 programs for v1model as a reference: the specification's text as code, without a thought for
//! speed.
//!
//! It walks [`p4::typed::Program`] and shares no code with `lower`, `engine` and `jit`. The interpreter and machine
//! code run one IR, so a comparison between them shows no mistake of the lowering. A comparison with this crate does.
//! The design is in docs/design/reference.md.
//!
//! The central type is [`Reference`]: a program, its entries and registers, and [`Reference::packet`]. Section numbers
//! in this crate are those of the P4_16 language specification 1.2.5.
//!
//! | module | sections |
//! |---|---|
//! | `number` | 7.1.6, 8.6, 8.7, 8.9: arithmetic of fixed width |
//! | `value` | 7, 8.25: types, values, initial values |
//! | `place` | 6.7: l-values |
//! | `expr` | 8: expressions |
//! | `call` | 6.8, 8.17 to 8.20: calls, methods of headers and stacks |
//! | `stmt` | 11.2, 12, 14.4: statements, controls |
//! | `parser`, `packet` | 13, 16: parsers, extraction, emission |
//! | `table`, `control_plane` | 14.2: tables and their entries |
//! | `instance` | 18.2, 18.3: instances and their names |
//! | `externs`, `checksum`, `v1model` | docs/v1model.md |
//!
//! # Undefined results
//! Where the specification leaves a result open and the project defines it (the page of the crate `ir`), the evaluator
//! follows the project: the storage of a packet is zero at first, an invalid header keeps its fields, an element beyond
//! the end of a stack is an invalid header of zeros. Where neither defines it, the value is [`Value::Unspecified`].
//! Computing with such a value is harmless; the evaluation ends with [`Stop::Unspecified`] where one decides about
//! anything that can be observed. No comparison follows then.
//!
//! # Limits
//! Programs are untrusted. The work, the passes and the memory for one received packet are limited ([`Stop::TooLong`]),
//! however many packets it becomes.

#![forbid(unsafe_code)]

mod budget;
mod call;
mod checksum;
mod control_plane;
mod evaluator;
mod expr;
mod externs;
mod instance;
mod number;
mod packet;
mod parser;
mod place;
mod stmt;
mod table;
mod v1model;
mod value;

pub use control_plane::{ActionCall, ControlPlane, Count, CrcParameters, KeyMatch, ReferenceEntry, TableState};
pub use evaluator::Stop;
pub use number::Number;
pub use v1model::{MirrorSession, Outcome, Replica, Sent, Traffic};
pub use value::Value;

use budget::PacketBudget;
use instance::Instances;
use p4::typed::Program;

/// A program under evaluation, with everything that outlives packets.
pub struct Reference<'p> {
    pub(crate) program: &'p Program,
    pub(crate) instances: Instances,
    pub(crate) blocks: v1model::Blocks,
    pub(crate) now_us: u64,
    pub(crate) budget: PacketBudget,
    /// Entries, value sets, registers and counters.
    pub control_plane: ControlPlane,
    /// Mirror sessions and multicast groups.
    pub traffic: Traffic,
}

impl<'p> Reference<'p> {
    /// Instantiates a checked program; `None` if its `main` is not a `V1Switch`.
    pub fn new(program: &'p Program) -> Option<Reference<'p>> {
        let instances = Instances::of(program);
        let blocks = v1model::Blocks::of(program, &instances)?;
        let (control_plane, traffic) = (ControlPlane::default(), Traffic::default());
        Some(Reference { program, instances, blocks, now_us: 0, budget: PacketBudget::new(), control_plane, traffic })
    }

    /// Returns the value of a register's element as the bits that the control plane reads; `None` if it was never
    /// written.
    pub fn register(&self, name: &str, index: u64) -> Option<Number> {
        let value = self.control_plane.registers.get(name)?.get(&index)?;
        let mut bits = Vec::new();
        packet::push_bits(value, &mut bits).ok()?;
        Some(Number::from_bit_list(&bits))
    }
}
