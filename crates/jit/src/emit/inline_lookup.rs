//! Emits inline lookups: in an array, in a hash table, or by a function. See [`engine::tables::inline_lookup`].

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AbiParam, Block, InstBuilder, MemFlagsData, Value, types};
use cranelift_module::Module;
use engine::tables::MISS;
use engine::tables::inline_lookup::{EMPTY, GROUP, SECRET};

use super::Emit;
use super::value::Num;
use super::words::Word;
use crate::scout::{PrefetchedTable, called, dense, hashed};

/// Mask of the hash bits that form the tag.
const TAG: i64 = 0x7f;

impl Emit<'_, '_> {
    /// Looks a key up if the prefetch memory has a hash or function descriptor of the table. In that case the code
    /// continues at `known` with the result; otherwise it continues here. Returns whether such code is generated.
    pub(super) fn look_up_inline(&mut self, prefetch: Value, prefetched: &PrefetchedTable, known: Block) -> bool {
        if let Some(at) = prefetched.hashed {
            self.look_up_hashed(prefetch, prefetched, at, known);
        }
        if let Some(at) = prefetched.called {
            self.look_up_called(prefetch, prefetched, at, known);
        }
        prefetched.hashed.is_some() || prefetched.called.is_some()
    }

    /// Branches to a new block if a word of the prefetch memory is not 0. Returns the word and the block for 0.
    fn if_word_set(&mut self, prefetch: Value, at: usize) -> (Value, Block) {
        let word = self.word_of(prefetch, at);
        let (there, other) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(word, there, &[], other, &[]);
        self.b.switch_to_block(there);
        (word, other)
    }

    fn miss(&mut self) -> Value {
        self.b.ins().iconst(types::I64, i64::from(MISS as i32))
    }

    /// Returns whether a result is a miss.
    pub(super) fn is_miss(&mut self, found: Value) -> Value {
        let miss = self.miss();
        self.b.ins().icmp(IntCC::Equal, found, miss)
    }

    /// Continues at `known` with the record of a key if all records are enumerated; otherwise continues here.
    pub(super) fn look_up_each(&mut self, prefetch: Value, prefetched: &PrefetchedTable, known: Block) {
        let Some(at) = prefetched.each else { return };
        // No key has more bits; the bounds of the load do not depend on that.
        let key = self.key(prefetched.table)[0];
        let key = self.w_and(key, Word::Const((1 << prefetched.bits) - 1));
        let behind = self.w_shl(key, 3);
        let at = Word::Const(at as u64 * 8);
        let behind = self.w_add(behind, at);
        let address = self.w_add(Word::Value(prefetch), behind);
        let address = self.value(address);
        let record = self.b.ins().load(types::I64, self.flags.record, address, 0);
        let other = self.b.create_block();
        self.b.ins().brif(record, known, &[record.into()], other, &[]);
        self.b.switch_to_block(other);
    }

    /// Looks a key up if the prefetch memory has a dense-range descriptor of the table, with the same continuations as
    /// [`Emit::look_up_inline`].
    pub(super) fn look_up_dense(&mut self, prefetch: Value, prefetched: &PrefetchedTable, known: Block) {
        let Some(at) = prefetched.dense else { return };
        let (len, other) = self.if_word_set(prefetch, at + dense::LEN);
        let key = self.key(prefetched.table)[0];
        let key = self.value(key);
        let [shift, first] = [dense::SHIFT, dense::FIRST].map(|word| self.word_of(prefetch, at + word));
        let turned = self.b.ins().rotr(key, shift);
        let place = self.b.ins().isub(turned, first);
        let is_there = self.b.ins().icmp(IntCC::UnsignedLessThan, place, len);
        let (miss, there) = (self.miss(), self.b.create_block());
        self.b.ins().brif(is_there, there, &[], known, &[miss.into()]);
        self.b.switch_to_block(there);
        let handles = self.word_of(prefetch, at + dense::HANDLES);
        let behind = self.b.ins().ishl_imm_u(place, 2);
        let at = self.b.ins().iadd(handles, behind);
        let found = self.b.ins().sload32(self.flags.record, at, 0);
        self.b.ins().jump(known, &[found.into()]);
        self.b.switch_to_block(other);
    }

    fn look_up_hashed(&mut self, prefetch: Value, prefetched: &PrefetchedTable, at: usize, known: Block) {
        let (groups, other) = self.if_word_set(prefetch, at + hashed::GROUPS);
        let (tags, slots) = (self.word_of(prefetch, at + hashed::TAGS), self.word_of(prefetch, at + hashed::SLOTS));
        let key = self.key(prefetched.table);
        let hash = self.hash_of(&key);
        let hash = self.value(hash);
        // The index of the key's group is below the number of groups, since the high half of the hash is below 2^32.
        let high = self.b.ins().ushr_imm_u(hash, 32);
        let scaled = self.b.ins().imul(high, groups);
        let group = self.b.ins().ushr_imm_u(scaled, 32);
        let first = self.b.ins().imul_imm_s(group, GROUP as i64);
        let tags = self.b.ins().iadd(tags, first);
        // They may be unaligned.
        let flags = MemFlagsData::new().with_notrap();
        let tags = self.b.ins().load(types::I8X16, flags, tags, 0);
        let tag = self.b.ins().band_imm_u(hash, TAG);
        let tag = self.b.ins().ireduce(types::I8, tag);
        let candidates = self.slots_with(tags, tag);
        let (head, none, compare) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let left = self.b.append_block_param(head, types::I32);
        self.b.ins().jump(head, &[candidates.into()]);
        self.b.switch_to_block(head);
        self.b.ins().brif(left, compare, &[], none, &[]);
        self.b.switch_to_block(compare);
        let place = self.b.ins().ctz(left);
        let place = self.b.ins().uextend(types::I64, place);
        let slot = self.b.ins().iadd(first, place);
        let behind = self.b.ins().imul_imm_s(slot, (prefetched.words as i64 + 1) * 8);
        let slot = self.b.ins().iadd(slots, behind);
        let mut differs = Word::Const(0);
        for (index, part) in key.into_iter().enumerate() {
            let there = self.b.ins().load(types::I64, self.flags.record, slot, index as i32 * 8);
            let other = self.w_xor(Word::Value(there), part);
            differs = self.w_or(differs, other);
        }
        let found = self.b.ins().sload32(self.flags.record, slot, prefetched.words as i32 * 8);
        let less = self.b.ins().iadd_imm_s(left, -1);
        let next = self.b.ins().band(left, less);
        let differs = self.value(differs);
        self.b.ins().brif(differs, head, &[next.into()], known, &[found.into()]);
        self.b.switch_to_block(none);
        // The key may have overflowed from a full group to the next.
        let empty = self.b.ins().iconst(types::I8, i64::from(EMPTY as i8));
        let ends = self.slots_with(tags, empty);
        let miss = self.miss();
        self.b.ins().brif(ends, known, &[miss.into()], other, &[]);
        self.b.switch_to_block(other);
    }

    /// Returns a bitmap of the 16 tags that equal this one.
    fn slots_with(&mut self, tags: Value, tag: Value) -> Value {
        let all = self.b.ins().splat(types::I8X16, tag);
        let same = self.b.ins().icmp(IntCC::Equal, tags, all);
        self.b.ins().vhigh_bits(types::I32, same)
    }

    /// Computes the hash of a key.
    fn hash_of(&mut self, key: &[Word]) -> Word {
        let word = |at: usize| key.get(at).copied();
        let first = self.w_xor(key[0], Word::Const(SECRET[0]));
        let second = self.w_xor(word(1).unwrap_or(Word::Const(0)), Word::Const(SECRET[1]));
        let mut hash = self.fold_product(first, second);
        for pair in key.get(2..).unwrap_or_default().chunks(2) {
            let first = self.w_xor(pair[0], hash);
            let second = match pair {
                [_, second] => self.w_xor(*second, Word::Const(SECRET[2])),
                _ => Word::Const(SECRET[3]),
            };
            hash = self.fold_product(first, second);
        }
        hash
    }

    /// Returns the exclusive or of the two halves of a product.
    fn fold_product(&mut self, a: Word, b: Word) -> Word {
        let (a, b) = (self.value(a), self.value(b));
        let (low, high) = (self.b.ins().imul(a, b), self.b.ins().umulhi(a, b));
        Word::Value(self.b.ins().bxor(low, high))
    }

    fn look_up_called(&mut self, prefetch: Value, prefetched: &PrefetchedTable, at: usize, known: Block) {
        let (function, other) = self.if_word_set(prefetch, at + called::FUNCTION);
        let table = self.word_of(prefetch, at + called::TABLE);
        let words = self.key(prefetched.table);
        let key = self.spill(&Num { width: words.len() as u32 * 64, words });
        let mut signature = self.module.make_signature();
        signature.params.extend([AbiParam::new(types::I64); 2]);
        signature.returns.push(AbiParam::new(types::I32));
        let signature = self.b.import_signature(signature);
        let call = self.b.ins().call_indirect(signature, function, &[table, key]);
        let found = self.b.inst_results(call)[0];
        let found = self.b.ins().sextend(types::I64, found);
        self.b.ins().jump(known, &[found.into()]);
        self.b.switch_to_block(other);
    }
}
