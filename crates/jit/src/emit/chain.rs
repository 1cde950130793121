//! Emits tables as chains of comparisons: see [`crate::chain`].
//!
//! Entries are compiled in: values are compared with constants, and the action gets its arguments as constants, so it
//! may be specialised for them. Only a default action that the control plane may change is read from its record.

use bits::Bits;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use engine::RECORD_HIT;
use ir::{BinaryOp, Entry, KeyValue, TableId};

use super::Emit;
use super::value::Num;
use super::versions::ReturnSite;
use super::words::Word;

impl Emit<'_, '_> {
    /// Applies a table with these entries and generates the code after it. The current block is terminated.
    pub(super) fn apply_chain(&mut self, id: TableId, entries: &[&Entry], return_site: ReturnSite) {
        let table = &self.program.tables[id];
        let keys: Vec<Num> = table.keys.iter().map(|key| self.expr(&key.expr)).collect();
        for entry in entries {
            let hits = self.hits(id, entry, &keys);
            match hits {
                Word::Const(0) => continue,
                Word::Const(_) => return self.run_fixed(id, (entry.action, &entry.args), RECORD_HIT, return_site),
                Word::Value(_) => {}
            }
            let (hit, next) = (self.b.create_block(), self.b.create_block());
            self.branch(hits, hit, next);
            self.b.switch_to_block(hit);
            let known = self.facts.clone();
            self.run_fixed(id, (entry.action, &entry.args), RECORD_HIT, return_site);
            self.facts = known;
            self.in_scope(return_site.scope);
            self.b.switch_to_block(next);
        }
        if table.const_default {
            let (action, args) = &table.default_action;
            return self.run_fixed(id, (*action, args), 0, return_site);
        }
        let record = self.default_record(id);
        self.run_record(id, record, return_site);
    }

    /// Compares a key with an entry.
    fn hits(&mut self, id: TableId, entry: &Entry, keys: &[Num]) -> Word {
        let mut all = Word::Const(1);
        for ((key, part), value) in self.program.tables[id].keys.iter().zip(keys).zip(&entry.keys) {
            let one = match value {
                KeyValue::Any => continue,
                KeyValue::Exact(value) => self.equal(part, &Num::known(value)),
                KeyValue::Lpm(value, length) => {
                    let mask = Bits::ones(key.width).shl(key.width - length);
                    self.equal_under(part, value, &mask)
                }
                KeyValue::Ternary(value, mask) => self.equal_under(part, value, mask),
                KeyValue::Range(low, high) => {
                    let (low, high) = (Num::known(low), Num::known(high));
                    let (above, below) = if key.signed {
                        (self.less_signed(&low, part, true), self.less_signed(part, &high, true))
                    } else {
                        (self.less(&low, part, true), self.less(part, &high, true))
                    };
                    self.w_and(above, below)
                }
            };
            all = self.w_and(all, one);
        }
        all
    }

    fn equal_under(&mut self, part: &Num, value: &Bits, mask: &Bits) -> Word {
        let masked = self.binary(BinaryOp::And, part, &Num::known(mask));
        self.equal(&masked, &Num::known(&value.and(mask)))
    }

    /// Runs an action of a table, given by its index there, with arguments that are the same for all packets.
    fn run_fixed(&mut self, id: TableId, (place, args): (u32, &[Bits]), head: u64, return_site: ReturnSite) {
        self.record_hit(id, Word::Const(head), return_site);
        let action = self.program.tables[id].actions[place as usize].action;
        for (param, arg) in self.program.actions[action].params.iter().zip(args) {
            self.set_slot(param.slot, &Num::known(arg));
        }
        self.run_action(action, ReturnSite { action: place as usize, ..return_site });
    }

    /// Returns the record of a table's default action.
    fn default_record(&mut self, id: TableId) -> Value {
        let prefetched = self.prefetch.defaults.iter().position(|table| *table == id);
        if let (Some(lane), Some(word)) = (self.lane, prefetched) {
            return self.b.ins().load(types::I64, self.flags.record, lane.prefetch, word as i32 * 8);
        }
        let table = self.number(u64::from(id.as_u32()));
        self.call("default_record", &[self.frame, table]).expect("the function returns a word")
    }
}
