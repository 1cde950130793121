//! Implements bit strings that grow at the end: the output of a deparser and the input of a hash.

use bits::Bits;

/// Bits in network order. The last byte is padded with zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BitString {
    bytes: Vec<u8>,
    len_bits: usize,
}

impl BitString {
    /// Creates an empty string.
    pub fn new() -> Self {
        Self::default()
    }

    /// Empties the string and keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.len_bits = 0;
    }

    /// Returns the length in bits.
    pub fn len_bits(&self) -> usize {
        self.len_bits
    }

    /// Returns the bytes, the last one padded with zeros.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends a value, most significant bit first.
    pub fn push(&mut self, value: &Bits) {
        let width = value.width() as usize;
        if width == 0 {
            return;
        }
        let used = self.len_bits % 8;
        let len_bytes = (self.len_bits + width).div_ceil(8);
        if used + width <= 128 {
            // The value after the bits of the last byte, at the top of one word.
            let word = value.low_u128() << (128 - used - width);
            let mut added = word.to_be_bytes().into_iter().take((used + width).div_ceil(8));
            if used > 0 {
                let last = self.bytes.len() - 1;
                self.bytes[last] |= added.next().unwrap_or(0);
            }
            self.bytes.extend(added);
        } else {
            self.bytes.resize(len_bytes, 0);
            value.write(&mut self.bytes, self.len_bits);
        }
        self.len_bits += width;
        debug_assert_eq!(self.bytes.len(), len_bytes);
    }

    /// Appends whole bytes.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        if self.len_bits.is_multiple_of(8) {
            self.bytes.extend_from_slice(bytes);
            self.len_bits += bytes.len() * 8;
        } else {
            bytes.iter().for_each(|byte| self.push(&Bits::new(u128::from(*byte), 8)));
        }
    }

    /// Returns the whole string as one number, its first bit the most significant, truncated or zero-extended to
    /// `width` bits.
    pub fn to_bits(&self, width: u32) -> Bits {
        let kept = self.len_bits.min(width as usize);
        Bits::read(&self.bytes, self.len_bits - kept, kept as u32).resize(width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_bit_by_bit() {
        let mut string = BitString::new();
        string.push(&Bits::new(0b101, 3));
        string.push(&Bits::new(0xabc, 12));
        string.push(&Bits::new(1, 1));
        string.push_bytes(&[0x12]);
        assert_eq!(string.as_bytes(), [0b1011_0101, 0b0111_1001, 0x12]);
        assert_eq!(string.to_bits(8), Bits::new(0x12, 8));
        assert_eq!(string.to_bits(32), Bits::new(0xb57912, 32));
    }

    #[test]
    fn wide_pieces_and_bytes_at_odd_offsets() {
        let mut string = BitString::new();
        string.push(&Bits::new(1, 4));
        string.push(&Bits::ones(128));
        string.push_bytes(&[0x00, 0xff]);
        let mut want = vec![0x1f];
        want.extend([0xff; 15]);
        want.extend([0xf0, 0x0f, 0xf0]);
        assert_eq!(string.as_bytes(), want);
        assert_eq!(string.len_bits(), 148);
    }
}
