//! Who is told where a packet stands.

use engine::{PacketState, Watch};
use ir::{BodyId, Program};

use super::{Outcome, PassKind};

/// Someone who is told where packets stand in the switch, while executors tell what they do there. Passes have
/// numbers, which [`Recorder::begin`] gives out. `()` records nothing.
pub trait Recorder: Watch {
    /// Whether anything is recorded.
    fn records(&self) -> bool {
        false
    }

    /// A pass begins with so many bytes.
    fn begin(&mut self, _parent: Option<usize>, _kind: PassKind, _bytes: usize) -> usize {
        0
    }

    /// A block of the program is about to run.
    fn section(&mut self, _pass: usize, _role: &str, _program: &Program, _body: BodyId, _state: &PacketState) {}

    /// The parser is done.
    fn parsed(&mut self, _pass: usize, _program: &Program, _state: &PacketState) {}

    /// The packet goes to egress, for this port.
    fn egress(&mut self, _pass: usize, _port: u32) {}

    /// The architecture has something to say.
    fn note(&mut self, _pass: usize, _text: impl FnOnce() -> String) {}

    /// The pass ended; a later end replaces an earlier one.
    fn end(&mut self, _pass: usize, _outcome: impl FnOnce() -> Outcome) {}

    /// The packet leaves as these bytes.
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
