//! Emits the lock of `@atomic` sections, which the workers of the switch take, too.
//!
//! A section's writes are made at the commit, so a packet keeps the lock from its first section until then. A packet in
//! the kernel may not wait for a thread that has no processor, so it tries a number of times and is handed over then.

use super::scratch::ScratchWord;
use super::{Emitter, HandOverReason, R0, R2, R3, SCRATCH};
use crate::asm::{AccessSize, Alu, Cond, Instruction, MapRef};

/// Number of times that a packet looks at a lock, with a pause between two of them. That takes half a microsecond,
/// longer than another packet has the lock for a few registers. One that searches rules behind its section may have it
/// for longer. The verifier follows each look.
const ATTEMPTS: i32 = 12;
/// Number of atomic operations in a pause, of some nanoseconds each.
const PAUSE: usize = 8;

impl Emitter<'_> {
    /// Takes the lock, unless the packet has it. Hands over if others have it for long.
    pub(super) fn take_lock(&mut self) {
        let lock = self.layout.atomic_lock.expect("a program with sections has a lock");
        let end = self.code.label();
        self.load_word(R0, ScratchWord::HAS_LOCK);
        self.jump_if(Cond::Ne, R0, 0, end);
        self.push(Instruction::LoadAddress(R2, MapRef::Region, lock));
        self.lock(0, HandOverReason::Atomic);
        self.store_imm(ScratchWord::HAS_LOCK, 1);
        self.bind(end);
    }

    /// Releases the lock, if the packet has it. Its accesses in sections are done then.
    pub(super) fn release_lock(&mut self) {
        let Some(lock) = self.layout.atomic_lock else { return };
        let end = self.code.label();
        self.load_word(R0, ScratchWord::HAS_LOCK);
        self.jump_if(Cond::Eq, R0, 0, end);
        self.store_imm(ScratchWord::HAS_LOCK, 0);
        self.push(Instruction::LoadAddress(R2, MapRef::Region, lock));
        self.unlock(0);
        self.bind(end);
    }

    /// Takes a lock, the word at an offset from r2. Hands over if others have it for long. Overwrites r0 and r3.
    pub(super) fn lock(&mut self, offset: i16, reason: HandOverReason) {
        let [look, again, end] = [(); 3].map(|()| self.code.label());
        self.alu(Alu::Mov, R3, ATTEMPTS);
        self.bind(look);
        self.push(Instruction::Load(AccessSize::B8, R0, R2, offset));
        self.jump_if(Cond::Ne, R0, 0, again);
        self.alu(Alu::Mov, R0, 1);
        self.push(Instruction::AtomicExchange(R2, offset, R0));
        self.jump_if(Cond::Eq, R0, 0, end);
        self.bind(again);
        self.alu(Alu::Sub, R3, 1);
        self.hand_over_if(Cond::Eq, R3, 0, reason);
        self.pause();
        self.jump(look);
        self.bind(end);
    }

    /// Waits for some 40 ns, without a change of memory. Overwrites r0.
    fn pause(&mut self) {
        for _ in 0..PAUSE {
            self.alu(Alu::Mov, R0, 0);
            self.push(Instruction::AtomicFetchAdd(SCRATCH, ScratchWord::EPOCH.offset(), R0));
        }
    }

    /// Releases a lock, the word at an offset from r2. Overwrites r0.
    pub(super) fn unlock(&mut self, offset: i16) {
        if cfg!(target_arch = "x86_64") {
            // Stores are not reordered with accesses before them.
            self.push(Instruction::StoreImm(AccessSize::B8, R2, offset, 0));
        } else {
            self.alu(Alu::Mov, R0, 0);
            self.push(Instruction::AtomicExchange(R2, offset, R0));
        }
    }
}
