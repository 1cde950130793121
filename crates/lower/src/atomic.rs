//! Lowers `@atomic` blocks (P4-16 specification, section 18.4.1), which other packets observe as a single step.
//!
//! ```text
//!   @atomic { r.read(v, 0); if (v > 9) return; r.write(0, v + 1); }
//!
//!   begin_atomic · read · branch ─┬─> write · end_atomic
//!                                 └─> end_atomic · return
//! ```

use ir::{BodyKind, Op};
use p4::typed::{self, Callee};

use crate::lowering::Lowering;
use crate::walk::{self, CodeNode};

impl Lowering<'_> {
    /// Whether a block has to exclude other packets: it is annotated, and it calls something that may access shared
    /// state. The other effects of a parser concern a single packet, and a parser has no such blocks.
    pub(crate) fn is_atomic(&self, block: &typed::Block) -> bool {
        let is_annotated = block.annotations.iter().any(|annotation| &*annotation.name == "atomic");
        if !is_annotated || self.body.kind == BodyKind::Parser {
            return false;
        }
        let mut reaches_others = false;
        walk::block(block, &mut |node| {
            // Extern functions have no state that they could leave half updated.
            let reaches = |callee: &Callee| !matches!(callee, Callee::Builtin(..) | Callee::ExternFn(..));
            reaches_others |= matches!(node, CodeNode::Call(call) if reaches(&call.callee));
        });
        reaches_others
    }

    /// Lowers an atomic block.
    pub(crate) fn atomic(&mut self, block: &typed::Block) {
        self.emit(Op::BeginAtomic);
        if let Some(frame) = self.frames.last_mut() {
            frame.atomics.push(frame.loops.len());
        }
        self.statements(block);
        if let Some(frame) = self.frames.last_mut() {
            frame.atomics.pop();
        }
        self.end_atomics(1);
    }

    /// Ends `count` atomic blocks, which a jump is about to leave.
    pub(crate) fn end_atomics(&mut self, count: usize) {
        if !self.body.ended() {
            (0..count).for_each(|_| self.emit(Op::EndAtomic));
        }
    }
}
