//! Limits of the work and the memory that one received packet may take.

use crate::evaluator::{Evaluated, Stop};
use crate::value::Value;

/// Maximum number of steps: statements, parser states, expressions, and 64 bytes of the values that they copy.
const MAX_STEPS: u64 = 4_000_000;
/// Maximum number of times that ingress or egress runs.
const MAX_PASSES: u32 = 1024;
/// Maximum size of what is kept: packets, copies of packets, digests and elements of registers, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The work and the memory that are left for a packet. Without any left, the evaluation ends with [`Stop::TooLong`].
#[derive(Clone, Debug)]
pub(crate) struct PacketBudget {
    steps: u64,
    passes: u32,
    bytes: u64,
}

impl PacketBudget {
    /// Returns the budget of one received packet.
    pub(crate) fn new() -> PacketBudget {
        PacketBudget { steps: MAX_STEPS, passes: MAX_PASSES, bytes: MAX_BYTES }
    }

    /// Counts steps.
    pub(crate) fn step(&mut self, count: u64) -> Evaluated<()> {
        self.steps = self.steps.checked_sub(count).ok_or(Stop::TooLong)?;
        Ok(())
    }

    /// Counts the steps of copying a value.
    pub(crate) fn copy(&mut self, value: &Value) -> Evaluated<()> {
        self.step(value.bytes() / 64)
    }

    /// Counts the steps of reading or writing bits one by one.
    pub(crate) fn bits(&mut self, count: usize) -> Evaluated<()> {
        self.step(count as u64 / 8)
    }

    /// Counts a run of ingress or egress.
    pub(crate) fn pass(&mut self) -> Evaluated<()> {
        self.passes = self.passes.checked_sub(1).ok_or(Stop::TooLong)?;
        Ok(())
    }

    /// Counts bytes that are kept.
    pub(crate) fn keep(&mut self, bytes: u64) -> Evaluated<()> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(Stop::TooLong)?;
        Ok(())
    }
}
