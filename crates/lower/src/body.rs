//! Holds a body under construction.

use std::collections::HashMap;

use cranelift_entity::PrimaryMap;
use ir::{Block, BlockId, BodyKind, Instr, LocId, Op, Terminator};
use p4::typed::VarId;

use crate::instance::InstRef;
use crate::storage::Store;

/// A body under construction. Instructions are appended to the current block until a terminator ends it. Code after a
/// terminator is unreachable and is not emitted.
pub(crate) struct BodyBuilder {
    pub(crate) name: String,
    pub(crate) kind: BodyKind,
    pub(crate) blocks: PrimaryMap<BlockId, Block>,
    current: BlockId,
    ended: bool,
    /// Storage of local variables. The same variable of the same instance, inlined again, reuses its storage: P4 has no
    /// recursion.
    pub(crate) stores: HashMap<(Option<InstRef>, VarId), Store>,
}

impl BodyBuilder {
    pub(crate) fn new(name: String, kind: BodyKind) -> Self {
        let mut builder = BodyBuilder {
            name,
            kind,
            blocks: PrimaryMap::new(),
            current: BlockId::from_u32(0),
            ended: false,
            stores: HashMap::new(),
        };
        builder.current = builder.block("start");
        builder
    }

    /// Creates a block that returns; nothing jumps to it yet.
    pub(crate) fn block(&mut self, name: &str) -> BlockId {
        self.blocks.push(Block {
            name: name.to_owned(),
            is_state: false,
            instrs: Vec::new(),
            terminator: Terminator::Return,
            loc: LocId::from_u32(0),
        })
    }

    /// Makes `block` the current block.
    pub(crate) fn start(&mut self, block: BlockId) {
        self.current = block;
        self.ended = false;
    }

    /// Whether the code emitted next is unreachable.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    pub(crate) fn emit(&mut self, op: Op, loc: LocId) {
        if !self.ended {
            self.blocks[self.current].instrs.push(Instr { op, loc });
        }
    }

    pub(crate) fn terminate(&mut self, terminator: Terminator, loc: LocId) {
        if !self.ended {
            let block = &mut self.blocks[self.current];
            block.terminator = terminator;
            block.loc = loc;
            self.ended = true;
        }
    }
}
