//! Emits accesses to bit fields in memory: loads and stores of fields at known offsets from an address.
//!
//! A field is read with one load wherever a power-of-two number of bytes that covers it lies inside its header. No
//! access ever leaves the header.

use cranelift_codegen::ir::{InstBuilder, Type, Value, types};

use super::Emit;
use super::value::{Num, words_of};
use super::words::Word;

fn int(bytes: u32) -> Type {
    match bytes {
        1 => types::I8,
        2 => types::I16,
        4 => types::I32,
        _ => types::I64,
    }
}

/// Returns the range of bytes to access for a field of at most 8 bytes: start and length.
fn window(bit: u32, width: u32, available: u32) -> Option<(u32, u32)> {
    let (first, end) = (bit / 8, (bit + width).div_ceil(8));
    let bytes = (end - first).next_power_of_two();
    if bytes > 8 || bytes > available {
        return None;
    }
    Some((first.min(available - bytes), bytes))
}

impl Emit<'_, '_> {
    /// Loads a power-of-two number of bytes as a big-endian number.
    fn load_bytes(&mut self, at: Value, offset: u32, bytes: u32) -> Value {
        let ty = int(bytes);
        let loaded = self.b.ins().load(ty, self.flags.packet, at, offset as i32);
        match bytes {
            1 => self.b.ins().uextend(types::I64, loaded),
            8 => self.b.ins().bswap(loaded),
            _ => {
                let swapped = self.b.ins().bswap(loaded);
                self.b.ins().uextend(types::I64, swapped)
            }
        }
    }

    fn store_bytes(&mut self, at: Value, offset: u32, bytes: u32, value: Value) {
        let ty = int(bytes);
        let narrow = if bytes == 8 { value } else { self.b.ins().ireduce(ty, value) };
        let swapped = if bytes == 1 { narrow } else { self.b.ins().bswap(narrow) };
        self.b.ins().store(self.flags.packet, swapped, at, offset as i32);
    }

    /// Loads the `width` bits that begin `bit` bits after an address where `available` bytes may be read.
    pub(super) fn load_field(&mut self, at: Value, bit: u32, width: u32, available: u32) -> Num {
        if width == 0 {
            return Num::number(0, 0);
        }
        if width > 64 {
            // Load word by word from the end.
            let mut words = Vec::new();
            for index in 0..words_of(width) as u32 {
                let bits = (width - index * 64).min(64);
                let piece = self.load_field(at, bit + width - index * 64 - bits, bits, available);
                words.push(piece.low());
            }
            return Num { width, words };
        }
        if let Some((start, bytes)) = window(bit, width, available) {
            let whole = self.load_bytes(at, start, bytes);
            let below = (start + bytes) * 8 - (bit + width);
            return self.slice(&Num { width: bytes * 8, words: vec![Word::Value(whole)] }, below, width);
        }
        let low_bits = (width / 2).next_multiple_of(8).min(width - 1);
        let high = self.load_field(at, bit, width - low_bits, available);
        let low = self.load_field(at, bit + width - low_bits, low_bits, available);
        self.concat(&high, &low)
    }

    /// Stores a value to the bits that begin `bit` bits after an address.
    pub(super) fn store_field(&mut self, at: Value, bit: u32, num: &Num, available: u32) {
        let width = num.width;
        if width == 0 {
            return;
        }
        if bit.is_multiple_of(8) && width.is_multiple_of(8) {
            let (mut done, end) = (0, width / 8);
            while done < end {
                let left = end - done;
                let bytes = if left >= 8 { 8 } else { 1 << left.ilog2() };
                let piece = self.slice(num, (left - bytes) * 8, bytes * 8);
                let value = self.value(piece.low());
                self.store_bytes(at, bit / 8 + done, bytes, value);
                done += bytes;
            }
            return;
        }
        if width <= 64
            && let Some((start, bytes)) = window(bit, width, available)
        {
            let below = (start + bytes) * 8 - (bit + width);
            let ones = if width == 64 { u64::MAX } else { (1 << width) - 1 };
            let old = self.load_bytes(at, start, bytes);
            let kept = self.w_and(Word::Value(old), Word::Const(!(ones << below)));
            let placed = self.w_shl(num.low(), below);
            let new = self.w_or(kept, placed);
            let new = self.value(new);
            return self.store_bytes(at, start, bytes, new);
        }
        // Split at byte boundaries, so that whole bytes are stored without a load.
        let head = match bit % 8 {
            0 => (width / 8) * 8,
            used => (8 - used).min(width),
        };
        let head = if head == width { width / 2 } else { head };
        let high = self.slice(num, width - head, head);
        let low = self.slice(num, 0, width - head);
        self.store_field(at, bit, &high, available);
        self.store_field(at, bit + head, &low, available);
    }

    /// Copies a constant number of bytes.
    pub(super) fn copy_bytes(&mut self, to: Value, from: Value, bytes: u32) {
        if bytes > 64 {
            let bytes = self.b.ins().iconst(types::I64, i64::from(bytes));
            self.call("move_bytes", &[to, from, bytes]);
            return;
        }
        let mut loaded = Vec::new();
        let mut done = 0;
        while done < bytes {
            let left = bytes - done;
            let piece = if left >= 8 { 8 } else { 1 << left.ilog2() };
            loaded.push((done, self.b.ins().load(int(piece), self.flags.packet, from, done as i32)));
            done += piece;
        }
        for (offset, value) in loaded {
            self.b.ins().store(self.flags.packet, value, to, offset as i32);
        }
    }

    /// Zeros memory whose size is a multiple of 8.
    pub(super) fn zero_bytes(&mut self, at: Value, bytes: u32) {
        if bytes > 128 {
            let bytes = self.b.ins().iconst(types::I64, i64::from(bytes));
            self.call("zero_bytes", &[at, bytes]);
            return;
        }
        let zero = self.b.ins().iconst(types::I64, 0);
        for offset in (0..bytes).step_by(8) {
            self.b.ins().store(self.flags.packet, zero, at, offset as i32);
        }
    }
}
