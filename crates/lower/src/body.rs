//! A body under construction.

use std::collections::HashMap;

use cranelift_entity::PrimaryMap;
use ir::{Block, BlockId, BodyKind, Instr, LocId, Op, Terminator};
use p4::typed::VarId;

use crate::instance::InstRef;
use crate::storage::Store;

/// A body that is being written. Instructions go to the current block until a terminator ends it; what comes behind a
/// terminator cannot be reached and is not written at all.
pub(crate) struct Builder {
    pub(crate) name: String,
    pub(crate) kind: BodyKind,
    pub(crate) blocks: PrimaryMap<BlockId, Block>,
    current: BlockId,
    ended: bool,
    /// Storage of local variables. The same variable of the same instance, inlined a second time, can use it again:
    /// P4 has no recursion.
    pub(crate) stores: HashMap<(Option<InstRef>, VarId), Store>,
}

impl Builder {
    pub(crate) fn new(name: String, kind: BodyKind) -> Self {
        let mut builder = Builder {
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

    /// A new block that returns; nothing leads to it yet.
    pub(crate) fn block(&mut self, name: &str) -> BlockId {
        self.blocks.push(Block {
            name: name.to_owned(),
            is_state: false,
            instrs: Vec::new(),
            terminator: Terminator::Return,
            loc: LocId::from_u32(0),
        })
    }

    /// Goes on writing in `block`.
    pub(crate) fn start(&mut self, block: BlockId) {
        self.current = block;
        self.ended = false;
    }

    /// Whether what would be written now cannot be reached.
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
