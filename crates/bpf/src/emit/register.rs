//! Emits reads and writes of registers.
//!
//! A write waits for the commit. So a read looks first at the writes that the packet has made before it, the latest
//! first. Elements are read and written one by one, as by the workers of a switch.

use ir::{Expr, LValue, RegisterId};

use super::scratch::ScratchWord;
use super::{Emitter, HandOverReason, R0, R1, R2};
use crate::asm::{AccessSize, Alu, Cond, Instruction, MapRef, Reg};

/// Maximum number of writes that a read looks at.
const MAX_EARLIER_WRITES: usize = 64;

/// A place of the code that writes a register.
pub(super) struct RegisterSite {
    register: RegisterId,
    /// The word with the index plus 1, or 0 if the packet does not write here.
    index: ScratchWord,
    value: ScratchWord,
}

impl Emitter<'_> {
    pub(super) fn register_read_problem(
        &self,
        place: &LValue,
        register: RegisterId,
        index: &Expr,
    ) -> Option<HandOverReason> {
        let earlier = self.register_sites.iter().filter(|site| site.register == register).count();
        let is_refused = !self.layout.registers.contains_key(&register) || earlier > MAX_EARLIER_WRITES;
        is_refused
            .then_some(HandOverReason::Register)
            .or_else(|| self.place_problem(place))
            .or_else(|| self.expr_problem(index))
    }

    pub(super) fn register_write_problem(
        &self,
        register: RegisterId,
        index: &Expr,
        value: &Expr,
    ) -> Option<HandOverReason> {
        let is_refused = !self.layout.registers.contains_key(&register);
        is_refused
            .then_some(HandOverReason::Register)
            .or_else(|| self.expr_problem(index))
            .or_else(|| self.expr_problem(value))
    }

    /// Reads an element to r1: 0 beyond the end.
    pub(super) fn register_read(&mut self, register: RegisterId, index: &Expr) {
        let (_, size) = self.layout.registers[&register];
        let at = self.spill();
        let end = self.code.label();
        self.eval(index, 0);
        self.alu(Alu::Mov, R2, 0);
        self.jump_if_number(Cond::Ge, R1, size.into(), end);
        self.mov(R0, R1);
        self.alu(Alu::Add, R0, 1);
        self.store_word(at, R0);
        self.load_element_address(register, R1);
        self.push(Instruction::Load(AccessSize::B8, R2, R2, 0));
        self.load_word(R1, at);
        self.give_back(1);
        let sites = self.register_sites.iter().filter(|site| site.register == register);
        let earlier: Vec<[ScratchWord; 2]> = sites.map(|site| [site.index, site.value]).collect();
        for [index, value] in earlier {
            let is_other = self.code.label();
            self.load_word(R0, index);
            self.jump_if(Cond::Ne, R0, R1, is_other);
            self.load_word(R2, value);
            self.bind(is_other);
        }
        self.bind(end);
        self.mov(R1, R2);
    }

    /// Enters a write among the pending ones; none beyond the end.
    pub(super) fn register_write(&mut self, register: RegisterId, index: &Expr, value: &Expr) {
        let (_, size) = self.layout.registers[&register];
        let site = RegisterSite { register, index: self.scratch.pending_word(), value: self.scratch.pending_word() };
        let is_outside = self.code.label();
        let from = self.operands(index, value, 0);
        self.store_word(site.value, from);
        self.jump_if_number(Cond::Ge, R1, size.into(), is_outside);
        self.alu(Alu::Add, R1, 1);
        self.store_word(site.index, R1);
        self.bind(is_outside);
        self.register_sites.push(site);
    }

    /// Emits the pending writes, in the order in which the program makes them.
    pub(super) fn write_registers(&mut self) {
        for RegisterSite { register, index, value } in std::mem::take(&mut self.register_sites) {
            let (_, size) = self.layout.registers[&register];
            let is_none = self.code.label();
            self.load_pending_index(index, size, is_none);
            self.load_element_address(register, R1);
            self.load_word(R0, value);
            self.push(Instruction::Store(AccessSize::B8, R2, 0, R0));
            self.bind(is_none);
        }
    }

    /// Loads the address of an element to r2. The index has a bound; it is overwritten.
    fn load_element_address(&mut self, register: RegisterId, index: Reg) {
        let (first, _) = self.layout.registers[&register];
        self.push(Instruction::LoadAddress(R2, MapRef::Region, first));
        self.alu(Alu::Lsh, index, 3);
        self.alu(Alu::Add, R2, index);
    }
}
