//! Defines the interface through which architectures report the progress of packets.

use engine::{PacketState, Watch};
use ir::{BodyId, Program};

use super::{PassKind, PassOutcome};

/// A recorder of packets' progress, while executors report their steps. [`Recorder::begin`] assigns numbers to
/// passes. `()` records nothing.
pub trait Recorder: Watch {
    /// Whether anything is recorded.
    fn records(&self) -> bool {
        false
    }

    /// Begins a pass with a packet of this length.
    fn begin(&mut self, _parent: Option<usize>, _kind: PassKind, _bytes: usize) -> usize {
        0
    }

    /// Begins a block of the program.
    fn section(&mut self, _pass: usize, _role: &str, _program: &Program, _body: BodyId, _state: &PacketState) {}

    /// Records the result of the parser.
    fn parsed(&mut self, _pass: usize, _program: &Program, _state: &PacketState) {}

    /// Records that the packet enters egress, for this port.
    fn egress(&mut self, _pass: usize, _port: u32) {}

    /// Records a message of the architecture.
    fn note(&mut self, _pass: usize, _text: impl FnOnce() -> String) {}

    /// Ends the pass. A later end replaces an earlier one.
    fn end(&mut self, _pass: usize, _outcome: impl FnOnce() -> PassOutcome) {}

    /// Records that the packet was sent with these bytes.
    fn sent(
        &mut self,
        _pass: usize,
        _port: u32,
        _to_controller: bool,
        _data: &[u8],
        _program: &Program,
        _state: &PacketState,
    ) {
    }
}

impl Recorder for () {}
