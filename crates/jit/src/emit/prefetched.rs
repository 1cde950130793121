//! Uses prefetched lookup results, and the fallback where there is none.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use ir::{BlockId, TableId};

use super::Emit;
use super::scout::ScoutState;
use super::versions::{Point, ReturnSite};
use super::words::Word;
use crate::scout::{PrefetchedTable, UNKNOWN};

impl Emit<'_, '_> {
    /// Returns the location of a word of a packet's prefetched key: an address and an offset.
    pub(super) fn key_at(
        &mut self,
        prefetch: Value,
        number: Value,
        prefetched: &PrefetchedTable,
        word: usize,
    ) -> (Value, i32) {
        let words =
            if prefetched.words == 1 { number } else { self.b.ins().imul_imm_s(number, prefetched.words as i64) };
        let offset = self.b.ins().ishl_imm_u(words, 3);
        (self.b.ins().iadd(prefetch, offset), ((prefetched.keys + word) * 8) as i32)
    }

    /// Loads the prefetched result for a packet's key.
    fn found(&mut self, prefetch: Value, number: Value, prefetched: &PrefetchedTable) -> Value {
        let offset = self.b.ins().ishl_imm_u(number, 2);
        let at = self.b.ins().iadd(prefetch, offset);
        self.b.ins().sload32(self.flags.record, at, prefetched.found as i32 * 8)
    }

    /// Returns the record of a result, which is not [`UNKNOWN`].
    fn found_record(&mut self, prefetch: Value, prefetched: &PrefetchedTable, found: Value) -> Value {
        let first = self.word_of(prefetch, prefetched.records);
        let behind = self.b.ins().imul_imm_s(found, prefetched.stride as i64 * 8);
        self.b.ins().iadd(first, behind)
    }

    pub(super) fn word_of(&mut self, prefetch: Value, word: usize) -> Value {
        self.b.ins().load(types::I64, self.flags.record, prefetch, word as i32 * 8)
    }

    /// Continues at `known` if the packet's key equals the prefetched one and has a result, else at `other`.
    fn if_found(
        &mut self,
        prefetch: Value,
        number: Value,
        prefetched: &PrefetchedTable,
        found: Value,
        known: Block,
        other: Block,
    ) {
        let is_known = self.b.ins().icmp_imm_s(IntCC::NotEqual, found, i64::from(UNKNOWN as i32));
        if prefetched.is_certain {
            self.b.ins().brif(is_known, known, &[found.into()], other, &[]);
            return;
        }
        let (compare, same) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(is_known, compare, &[], other, &[]);
        self.b.switch_to_block(compare);
        let mut differs = Word::Const(0);
        for (index, part) in self.key(prefetched.table).into_iter().enumerate() {
            let (address, offset) = self.key_at(prefetch, number, prefetched, index);
            let prefetched = self.b.ins().load(types::I64, self.flags.record, address, offset);
            let other = self.w_xor(Word::Value(prefetched), part);
            differs = self.w_or(differs, other);
        }
        self.branch(differs, other, same);
        self.b.switch_to_block(same);
        self.b.ins().jump(known, &[found.into()]);
    }

    /// Returns a table's prefetch data if a scout can follow its results.
    pub(super) fn followed(&self, table: TableId) -> Option<PrefetchedTable> {
        let scouting = self.scouting.as_ref()?;
        // With a single table there is no later key to compute; if it is looked up inline, there is no scout.
        if self.prefetch.tables.len() < 2 {
            return None;
        }
        self.prefetch.of(table).filter(|prefetched| scouting.follows || prefetched.has_inline_lookup())
    }

    /// Generates the application of a table in a scout, for an instruction of a block of the current scope: the action
    /// that was found for the key runs; if there is no result yet, the key is recorded. The current block is
    /// terminated.
    pub(super) fn follow(&mut self, prefetched: &PrefetchedTable, block: BlockId, instr: usize) {
        let id = prefetched.table;
        let return_site = ReturnSite { scope: self.scope, block, instr, action: 0 };
        let (unknown, runs) = (self.b.create_block(), self.b.create_block());
        let record = self.b.append_block_param(runs, types::I64);
        if let Some(found) = self.called_lookup(id, return_site) {
            self.b.ins().brif(found, runs, &[found.into()], unknown, &[]);
        } else {
            self.find_for_scout(prefetched, runs, unknown);
        }
        let facts = self.facts.clone();
        self.b.switch_to_block(unknown);
        let (_, hit, action) = self.applied(return_site);
        self.scout_apply(id, hit, action);
        self.go_to(Point::Code { scope: self.scope, block, instr: instr + 1 });
        self.facts = facts;
        self.b.switch_to_block(runs);
        self.run_record(id, record, return_site);
    }

    /// Generates the lookup of a table in a scout: continues at `runs` with the record if there is a result, else at
    /// `unknown`. The current block is terminated.
    pub(super) fn find_for_scout(&mut self, prefetched: &PrefetchedTable, runs: Block, unknown: Block) {
        let ScoutState { prefetch, number, follows, .. } = self.scouting.clone().expect("only scouts follow");
        let known = self.b.create_block();
        let found = self.b.append_block_param(known, types::I64);
        self.look_up_each(prefetch, prefetched, runs);
        self.look_up_dense(prefetch, prefetched, known);
        if follows {
            let (found, other) = (self.found(prefetch, number, prefetched), self.b.create_block());
            self.if_found(prefetch, number, prefetched, found, known, other);
            self.b.switch_to_block(other);
        }
        let there = self.b.create_block();
        let found_there = self.b.append_block_param(there, types::I64);
        if self.look_up_inline(prefetch, prefetched, there) {
            // Keys that are not looked up inline are recorded, but only once.
            let other = self.b.current_block().expect("there is a block for the other keys");
            self.b.switch_to_block(there);
            let scouting = self.scouting.clone().expect("only scouts follow");
            self.write_key(&scouting, prefetched);
            let offset = self.b.ins().ishl_imm_u(number, 2);
            let at = self.b.ins().iadd(prefetch, offset);
            self.b.ins().istore32(self.flags.record, found_there, at, prefetched.found as i32 * 8);
            self.b.ins().jump(known, &[found_there.into()]);
            self.b.switch_to_block(other);
        }
        self.b.ins().jump(unknown, &[]);
        self.b.switch_to_block(known);
        let found_record = self.found_record(prefetch, prefetched, found);
        self.b.ins().jump(runs, &[found_record.into()]);
    }

    /// Returns the record that a table runs, which is applied at an instruction: the prefetched result for the packet's
    /// key, else the result of a lookup. Ends the unit if the table's result is pending.
    pub(super) fn record(&mut self, id: TableId, return_site: ReturnSite) -> Value {
        let (Some(lane), Some(prefetched)) = (self.lane, self.prefetch.of(id)) else {
            let key = self.key(id);
            let record = self.looked_up(id, key);
            self.end_if_pending(id, record);
            return record;
        };
        if let Some(record) = self.called_lookup(id, return_site) {
            self.end_if_pending(id, record);
            return record;
        }
        let number = self.lane_number(lane);
        self.find(lane.prefetch, number, &prefetched, true)
    }

    /// Returns the record for a packet's key. If the table's result is pending, ends the unit if it `ends`, else
    /// returns 0.
    pub(super) fn find(&mut self, prefetch: Value, number: Value, prefetched: &PrefetchedTable, ends: bool) -> Value {
        let id = prefetched.table;
        let (known, other, on) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let found = self.b.append_block_param(known, types::I64);
        let chosen = self.b.append_block_param(on, types::I64);
        self.look_up_each(prefetch, prefetched, on);
        self.look_up_dense(prefetch, prefetched, known);
        let (noted_found, not_noted) = (self.found(prefetch, number, prefetched), self.b.create_block());
        self.if_found(prefetch, number, prefetched, noted_found, known, not_noted);
        self.b.switch_to_block(not_noted);
        self.look_up_inline(prefetch, prefetched, known);
        self.b.ins().jump(other, &[]);
        self.b.switch_to_block(known);
        if self.program.tables[id].waits_for_entries() {
            // The packet may have to wait for the row of a miss.
            let (is_miss, hit) = (self.is_miss(found), self.b.create_block());
            self.b.ins().brif(is_miss, other, &[], hit, &[]);
            self.b.switch_to_block(hit);
        }
        let record = if prefetched.counts {
            let table = self.number(u64::from(id.as_u32()));
            self.call("apply_prefetched", &[self.frame, table, found]).expect("the function returns a word")
        } else {
            self.note_use(id, found);
            self.found_record(prefetch, prefetched, found)
        };
        self.b.ins().jump(on, &[record.into()]);
        self.b.set_cold_block(other);
        self.b.switch_to_block(other);
        let key = self.key(id);
        let record = self.looked_up(id, key);
        if ends {
            self.end_if_pending(id, record);
        }
        self.b.ins().jump(on, &[record.into()]);
        self.b.switch_to_block(on);
        chosen
    }
}
